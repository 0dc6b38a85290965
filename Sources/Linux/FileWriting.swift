import Glibc

/// Who a new file or folder shall belong to.
package struct Owner: Equatable {
    package var uid: UInt32
    package var gid: UInt32

    package init(uid: UInt32, gid: UInt32) {
        self.uid = uid
        self.gid = gid
    }
}

/// Writes into an existing file in one write, as the files of cgroups and /proc want it. Creates and truncates nothing,
/// and asks the kernel not to wait (which memory.max and memory.high mind since 6.16).
package func writeControlFile(_ name: String, _ text: String, in directory: Int32 = currentFolder) throws(SystemError) {
    let file = try Descriptor.open(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW, in: directory)
    var text = text
    let (count, length) = text.withUTF8 { bytes in
        (retryInterrupted { write(file.raw, bytes.baseAddress, bytes.count) }, bytes.count)
    }
    try checkErrno(count, "write \"\(text)\" to", name)
    if count != length { throw SystemError(call: "write \"\(text)\" to", errno: EIO, path: name) }
}

/// Writes all of it where the descriptor stands.
package func writeAll(_ bytes: [UInt8], to raw: Int32, path: String? = nil) throws(SystemError) {
    var done = 0
    while done < bytes.count {
        let count = retryInterrupted {
            bytes.withUnsafeBytes { write(raw, $0.baseAddress! + done, bytes.count - done) }
        }
        try checkErrno(count, "write", path)
        done += count
    }
}

/// Replaces a file as a whole: whoever reads it sees the old content or the new one, also after a crash.
/// - Parameters:
///   - mode: of the new file, whatever the umask says.
///   - durable: wait until the disk has it (fsync of file and folder).
package func replaceFile(
    at path: String, with contents: [UInt8], mode: UInt32 = 0o644, owner: Owner? = nil, durable: Bool = false
) throws(SystemError) {
    let (folderPath, name) = try splitPath(path)
    let folder = try Descriptor.open(folderPath, O_RDONLY | O_DIRECTORY)
    // Only one process writes a given folder of ours, so the pid makes the name unique; what lies there is a leftover of
    // a crash.
    let temporary = ".\(name).\(getpid())~"
    if unlinkat(folder.raw, temporary, 0) < 0, errno != ENOENT {
        throw SystemError(call: "unlink", errno: errno, path: "\(folderPath)/\(temporary)")
    }
    let file = try Descriptor.open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600, in: folder.raw)
    do {
        try writeAll(contents, to: file.raw, path: path)
        if let owner { try checkErrno(fchown(file.raw, owner.uid, owner.gid), "fchown", path) }
        try checkErrno(fchmod(file.raw, mode), "fchmod", path)
        if durable { try checkErrno(fsync(file.raw), "fsync", path) }
        try checkErrno(renameat(folder.raw, temporary, folder.raw, name), "rename", path)
    } catch {
        unlinkat(folder.raw, temporary, 0)
        throw error
    }
    if durable { try checkErrno(fsync(folder.raw), "fsync", folderPath) }
}

/// Removes a file or an empty folder; false when it was not there.
@discardableResult
package func removeFile(at path: String, folder: Bool = false) throws(SystemError) -> Bool {
    try path.refuseNul("unlink")
    if unlinkat(AT_FDCWD, path, folder ? AT_REMOVEDIR : 0) == 0 { return true }
    if errno == ENOENT { return false }
    throw SystemError(call: folder ? "rmdir" : "unlink", errno: errno, path: path)
}

/// mkdir -p. Folders made on the way are 0755 and ours. The last one gets `mode` and `owner`, also when it was there
/// already; it is never a symbolic link, since its parent may belong to an app's user, who could point it anywhere.
/// For the same reason a link on the way is followed only if it belongs to root or to us, and lies in a folder where nobody
/// else could put another in its place after we have looked.
package func createDirectories(
    at path: String, mode: UInt32 = 0o755, owner: Owner? = nil
) throws(SystemError) {
    try path.refuseNul("mkdir")
    var folder = try Descriptor.open(path.utf8.first == UInt8(ascii: "/") ? "/" : ".", O_RDONLY | O_DIRECTORY)
    let names = path.split(separator: "/").map(String.init).filter { $0 != "." }
    for (index, name) in names.enumerated() {
        if name == ".." { throw SystemError(call: "mkdir", errno: EINVAL, path: path) }
        let isLast = index == names.count - 1
        if mkdirat(folder.raw, name, isLast ? 0o700 : 0o755) < 0, errno != EEXIST {
            throw SystemError(call: "mkdir", errno: errno, path: path)
        }
        let trusted = try trustedLink(name, in: folder.raw, path: path)
        let flags = O_RDONLY | O_DIRECTORY | (!isLast && trusted ? 0 : O_NOFOLLOW)
        do {
            folder = try Descriptor.open(name, flags, in: folder.raw)
        } catch {
            throw SystemError(call: "open folder", errno: error.errno, path: path)
        }
    }
    if names.isEmpty { return }
    if let owner { try checkErrno(fchown(folder.raw, owner.uid, owner.gid), "fchown", path) }
    try checkErrno(fchmod(folder.raw, mode), "fchmod", path)
}

private func trustedLink(_ name: String, in folder: Int32, path: String) throws(SystemError) -> Bool {
    var about = Glibc.stat()
    try checkErrno(fstat(folder, &about), "stat", path)
    guard about.st_uid == 0 || about.st_uid == geteuid() else { return false }
    // In a sticky folder such as /tmp only its owner replaces an entry.
    guard about.st_mode & (S_IWGRP | S_IWOTH) == 0 || about.st_mode & S_ISVTX != 0 else { return false }
    try checkErrno(fstatat(folder, name, &about, AT_SYMLINK_NOFOLLOW), "stat", path)
    return about.st_uid == 0 || about.st_uid == geteuid()
}

/// Why a folder is no place for files of ours: somebody else could exchange them. `nil`: it is one, or is not there yet.
package func reasonToDistrust(folder path: String) -> String? {
    var about = Glibc.stat()
    guard stat(path, &about) == 0 else { return nil }
    if about.st_uid != 0 && about.st_uid != geteuid() { return "it belongs to uid \(about.st_uid)" }
    if about.st_mode & S_IWOTH != 0 {
        return "everybody may write there (mode \(String(about.st_mode & 0o7777, radix: 8)))"
    }
    return nil
}

/// "/a/b" is b in /a; "b" is b in ".".
func splitPath(_ path: String) throws(SystemError) -> (folder: String, name: String) {
    try path.refuseNul("open")
    guard let slash = path.lastIndex(of: "/") else { return (".", path) }
    let name = String(path[path.index(after: slash)...])
    if name.isEmpty || name == "." || name == ".." { throw SystemError(call: "open", errno: EINVAL, path: path) }
    return (slash == path.startIndex ? "/" : String(path[..<slash]), name)
}
