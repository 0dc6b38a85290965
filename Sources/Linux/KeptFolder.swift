import CLinux
import Glibc
package import Posix

/// A folder by a descriptor that is kept open. What is mounted on its path later, or put in its position, does not count: each
/// entry is found relative to the descriptor (openat(2)), and no symbolic link is followed. So a folder that an app may write
/// to can neither block the daemon, with a FUSE server that does not answer, nor lead it to another folder.
package final class KeptFolder {
    /// The path of the folder that contains it, which all folders in that one share. With an empty name it is the path of this one.
    private let parent: String
    private let name: String
    private let folder: Descriptor

    /// Opens a folder that no app may replace.
    package init(_ path: String) throws(SystemError) {
        (parent, name) = (path, "")
        folder = try Descriptor.open(path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
    }

    private init(_ name: String, in parent: String, adopting folder: consuming Descriptor) {
        (self.parent, self.name) = (parent, name)
        self.folder = folder
    }

    /// For messages.
    package var path: String { name.isEmpty ? parent : parent + "/" + name }

    /// Whether the folder still has a name.
    package var isLinked: Bool { (try? about())?.st_nlink ?? 0 > 0 }

    private func about() throws(SystemError) -> stat {
        var about = Glibc.stat()
        try checkErrno(fstat(folder.raw, &about), "fstat", path)
        return about
    }

    // MARK: Folders in it

    /// Opens a folder in this one, whose owner may have removed the permission to do so.
    /// - Throws: EXDEV if a file system is mounted on it; ELOOP or ENOTDIR if it is no folder; ENOENT.
    package func subfolder(_ name: String) throws(SystemError) -> KeptFolder {
        let parent = path
        do throws(SystemError) {
            return KeptFolder(name, in: parent, adopting: try folder.openEntry(name, O_RDONLY | O_DIRECTORY))
        } catch {
            let path = parent + "/" + name
            guard error.errno == EACCES else { throw SystemError(call: error.call, errno: error.errno, path: path) }
        }
        let entry = try folder.openEntry(name, clinux_path_only | O_DIRECTORY)
        try checkErrno(chmod("/proc/self/fd/\(entry.raw)", 0o700), "chmod", parent + "/" + name)
        return KeptFolder(name, in: parent, adopting: try folder.openEntry(name, O_RDONLY | O_DIRECTORY))
    }

    /// How many entries that are no folder are removed for one new folder: another process may create one after the other.
    private static let mostReplaced = 3

    /// Opens a folder in this one, and creates it if there is none. An entry of the name that is no folder is removed.
    /// - Throws: EXDEV if a file system is mounted on it.
    package func makeFolder(_ name: String, mode: UInt32, owner: Owner?) throws(SystemError) -> KeptFolder {
        var replaced = 0
        while true {
            if mkdirat(folder.raw, name, 0o700) < 0, errno != EEXIST {
                throw SystemError(call: "mkdir", errno: errno, path: path + "/" + name)
            }
            do throws(SystemError) {
                let made = try subfolder(name)
                try made.set(mode: mode, owner: owner)
                return made
            } catch {
                guard error.errno == ELOOP || error.errno == ENOTDIR, replaced < Self.mostReplaced else { throw error }
            }
            replaced += 1
            try remove(name)
        }
    }

    /// Gives the folder its mode and owner again.
    package func set(mode: UInt32, owner: Owner?) throws(SystemError) {
        if let owner { try checkErrno(fchown(folder.raw, owner.uid, owner.gid), "fchown", path) }
        try checkErrno(fchmod(folder.raw, mode), "fchmod", path)
    }

    /// Whether an entry of this folder is that folder.
    package func contains(_ other: KeptFolder, as name: String) -> Bool {
        guard let entry = try? folder.openEntry(name, clinux_path_only), let known = try? other.about() else {
            return false
        }
        var about = Glibc.stat()
        return fstat(entry.raw, &about) == 0 && about.st_ino == known.st_ino && about.st_dev == known.st_dev
    }

    // MARK: Files

    /// Replaces a file of another folder in the same file system atomically. The new file is written here, where no app sees it
    /// or has taken its name.
    /// - Parameter temporary: its name here. An entry of that name is removed.
    package func replaceFile(
        _ name: String, in target: KeptFolder, with contents: [UInt8], mode: UInt32, owner: Owner?, temporary: String
    ) throws(SystemError) {
        let path = target.path + "/" + name
        try name.refuseNul("open")
        try remove(temporary)
        let file: Descriptor
        do {
            file = try folder.open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
        } catch {
            throw SystemError(call: error.call, errno: error.errno, path: path)
        }
        do throws(SystemError) {
            try writeAll(contents, to: file, path: path)
            if let owner { try checkErrno(fchown(file.raw, owner.uid, owner.gid), "fchown", path) }
            try checkErrno(fchmod(file.raw, mode), "fchmod", path)
            try checkErrno(renameat(folder.raw, temporary, target.folder.raw, name), "rename", path)
        } catch {
            unlinkat(folder.raw, temporary, 0)
            throw error
        }
    }

    /// Removes an entry that is no folder.
    /// - Returns: whether it was there.
    @discardableResult
    package func remove(_ name: String) throws(SystemError) -> Bool {
        try name.refuseNul("unlink")
        if unlinkat(folder.raw, name, 0) == 0 { return true }
        if errno == ENOENT { return false }
        throw SystemError(call: "unlink", errno: errno, path: path + "/" + name)
    }

    /// Removes an empty folder in this one.
    package func removeFolder(_ name: String) throws(SystemError) {
        try name.refuseNul("rmdir")
        try checkErrno(unlinkat(folder.raw, name, AT_REMOVEDIR), "rmdir", path + "/" + name)
    }

    /// Gives an entry another name, or moves it to a path.
    func move(_ name: String, to path: String) -> Int32 { renameat(folder.raw, name, AT_FDCWD, path) }

    /// Whether there is an entry of this name. One that a file system is mounted on counts.
    package func contains(_ name: String) -> Bool {
        do throws(SystemError) {
            _ = try folder.openEntry(name, clinux_path_only)
            return true
        } catch {
            // A symbolic link is not opened.
            return error.errno == EXDEV || error.errno == ELOOP
        }
    }

    /// Removes the files in it, as `removeFiles(in:limit:)` does.
    /// - Returns: whether all entries were examined.
    package func removeFiles(limit: Int) throws(SystemError) -> Bool {
        try removeEntries(try reopened(), path, limit: limit) { (_, _) throws(SystemError) in }
    }

    /// The names of at most `limit` entries.
    package func names(limit: Int) throws(SystemError) -> [String] {
        try FolderReader(adopting: try reopened(), path).next(limit)
    }

    /// A descriptor with an offset of its own. "." does not lead to what is mounted on the folder.
    private func reopened() throws(SystemError) -> Descriptor {
        do throws(SystemError) {
            return try folder.open(".", O_RDONLY | O_DIRECTORY)
        } catch {
            guard error.errno == EACCES else { throw SystemError(call: error.call, errno: error.errno, path: path) }
        }
        try checkErrno(fchmod(folder.raw, 0o700), "fchmod", path)
        return try folder.open(".", O_RDONLY | O_DIRECTORY)
    }
}

extension Descriptor {
    /// Opens an entry of this folder, close-on-exec. What is mounted on it is not opened, and its file system not asked.
    /// - Throws: EXDEV if a file system is mounted on it; ELOOP for a symbolic link.
    package func openEntry(_ name: String, _ flags: Int32) throws(SystemError) -> Descriptor {
        try name.refuseNul("open")
        return Descriptor(adopting: try check(clinux_open_entry(raw, name, flags), "open", name))
    }
}

/// Detaches a file system that was mounted on a path, as root only.
/// - Returns: whether it did.
package func detachMount(at path: String) -> Bool { geteuid() == 0 && clinux_detach_mount(path) == 0 }
