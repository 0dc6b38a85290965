import Glibc
package import Posix

/// Writes to an existing file in one write, as files of cgroups and /proc require. The file is opened with O_NONBLOCK, with
/// which memory.max and memory.high do not block since Linux 6.16.
package func writeControlFile(_ name: String, _ text: String, in folder: SharedDescriptor? = nil) throws(SystemError) {
    let file = try openFile(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW, in: folder)
    try writeControl(text, to: file, name)
}

/// Writes to a file that `writeControlFile` would open.
/// - Parameter name: of the file, for errors.
func writeControl(_ text: String, to file: borrowing Descriptor, _ name: String) throws(SystemError) {
    var text = text
    let number = file.raw
    let (count, length) = text.withUTF8 { bytes in
        (retryInterrupted { write(number, bytes.baseAddress, bytes.count) }, bytes.count)
    }
    try checkErrno(count, "write \"\(text)\" to", name)
    if count != length { throw SystemError(call: "write \"\(text)\" to", errno: EIO, path: name) }
}

/// Writes all bytes at the file offset.
package func writeAll(_ bytes: [UInt8], to file: borrowing Descriptor, path: String? = nil) throws(SystemError) {
    let number = file.raw
    var done = 0
    while done < bytes.count {
        let count = retryInterrupted {
            bytes.withUnsafeBytes { write(number, $0.baseAddress! + done, bytes.count - done) }
        }
        try checkErrno(count, "write", path)
        done += count
    }
}

/// Replaces a file atomically: a reader sees the old contents or the new ones, also after a crash.
/// - Parameters:
///   - mode: of the new file, independent of the umask.
///   - durable: whether to wait until the disk has stored it (fsync of file and folder).
package func replaceFile(
    at path: String, with contents: [UInt8], mode: UInt32 = 0o644, owner: Owner? = nil, durable: Bool = false
) throws(SystemError) {
    let (folderPath, name) = try splitPath(path)
    let folder = try Descriptor.open(folderPath, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    // Only one process writes to a folder, so the pid makes the name unique. A file of that name is left from a crash.
    let temporary = ".\(name).\(getpid())~"
    if unlinkat(folder.raw, temporary, 0) < 0, errno != ENOENT {
        throw SystemError(call: "unlink", errno: errno, path: "\(folderPath)/\(temporary)")
    }
    let file = try folder.open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
    do {
        try writeAll(contents, to: file, path: path)
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

/// Removes a file or an empty folder; false if it did not exist.
@discardableResult
package func removeFile(at path: String, folder: Bool = false) throws(SystemError) -> Bool {
    try path.refuseNul("unlink")
    if unlinkat(AT_FDCWD, path, folder ? AT_REMOVEDIR : 0) == 0 { return true }
    if errno == ENOENT { return false }
    throw SystemError(call: folder ? "rmdir" : "unlink", errno: errno, path: path)
}

/// Removes the files in a folder that may belong to another user. Links are not followed and folders stay. At most `limit`
/// entries are examined, so that the owner cannot block the caller with many files. A missing folder is no error.
/// - Returns: whether all entries were examined.
@discardableResult
package func removeFiles(in path: String, limit: Int = 10_000) throws(SystemError) -> Bool {
    try removeEntries(in: path, limit: limit) { (_, _) throws(SystemError) in }
}

/// - Parameter removeFolder: gets the folder that contains a folder, and its name.
func removeEntries(
    in path: String, limit: Int, removeFolder: (Int32, UnsafePointer<CChar>) throws(SystemError) -> Void
) throws(SystemError) -> Bool {
    let (parent, name) = try splitPath(path)
    let descriptor: Descriptor
    do {
        // A file system that is mounted on the folder is not asked: its server may not answer.
        descriptor = try Descriptor.open(parent, O_RDONLY | O_DIRECTORY).openEntry(name, O_RDONLY | O_DIRECTORY)
    } catch {
        if error.errno == ENOENT { return true }
        throw SystemError(call: error.call, errno: error.errno, path: path)
    }
    return try removeEntries(descriptor, path, limit: limit, removeFolder: removeFolder)
}

/// - Parameters:
///   - descriptor: of the folder.
///   - path: for messages.
///   - removeFolder: gets the folder that contains a folder, and its name.
func removeEntries(
    _ descriptor: consuming Descriptor, _ path: String, limit: Int,
    removeFolder: (Int32, UnsafePointer<CChar>) throws(SystemError) -> Void
) throws(SystemError) -> Bool {
    guard let folder = fdopendir(descriptor.raw) else {
        throw SystemError(call: "opendir", errno: errno, path: path)
    }
    _ = descriptor.release()
    defer { closedir(folder) }
    var seen = 0
    while let entry = readdir(folder) {
        guard let offset = MemoryLayout<dirent>.offset(of: \.d_name) else {
            throw SystemError(call: "readdir", errno: ENOSYS, path: path)
        }
        let name = UnsafeRawPointer(entry).advanced(by: offset).assumingMemoryBound(to: CChar.self)
        if strcmp(name, ".") == 0 || strcmp(name, "..") == 0 { continue }
        if seen >= limit { return false }
        seen += 1
        if Int32(entry.pointee.d_type) != Int32(DT_DIR) {
            if unlinkat(dirfd(folder), name, 0) == 0 || errno == ENOENT { continue }
            if errno != EISDIR { throw SystemError(call: "unlink", errno: errno, path: path) }
        }
        try removeFolder(dirfd(folder), name)
    }
    return true
}

/// Creates a folder and its missing parents, as mkdir -p does. Parents get mode 0755 and the daemon's user.
///
/// The last folder gets `mode` and `owner`, also if it exists. It must not be a symbolic link: its parent may belong to an
/// app's user, who could make the link point anywhere. A link among its parents is followed only if it belongs to root or to
/// the daemon's user and lies in a folder where no other user can replace it.
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
        let trusted = try trustedLink(name, in: folder, path: path)
        let flags = O_RDONLY | O_DIRECTORY | (!isLast && trusted ? 0 : O_NOFOLLOW)
        do {
            folder = try folder.open(name, flags)
        } catch {
            throw SystemError(call: "open folder", errno: error.errno, path: path)
        }
    }
    if names.isEmpty { return }
    if let owner { try checkErrno(fchown(folder.raw, owner.uid, owner.gid), "fchown", path) }
    try checkErrno(fchmod(folder.raw, mode), "fchmod", path)
}

private func trustedLink(_ name: String, in folder: borrowing Descriptor, path: String) throws(SystemError) -> Bool {
    var about = Glibc.stat()
    try checkErrno(fstat(folder.raw, &about), "stat", path)
    guard about.st_uid == 0 || about.st_uid == geteuid() else { return false }
    // In a sticky folder such as /tmp only the owner of an entry can replace it.
    guard about.st_mode & (S_IWGRP | S_IWOTH) == 0 || about.st_mode & S_ISVTX != 0 else { return false }
    try checkErrno(fstatat(folder.raw, name, &about, AT_SYMLINK_NOFOLLOW), "stat", path)
    return about.st_uid == 0 || about.st_uid == geteuid()
}

/// Splits a path into folder and name: "/a/b" is b in /a, "b" is b in ".".
func splitPath(_ path: String) throws(SystemError) -> (folder: String, name: String) {
    try path.refuseNul("open")
    guard let slash = path.lastIndex(of: "/") else { return (".", path) }
    let name = String(path[path.index(after: slash)...])
    if name.isEmpty || name == "." || name == ".." { throw SystemError(call: "open", errno: EINVAL, path: path) }
    return (slash == path.startIndex ? "/" : String(path[..<slash]), name)
}
