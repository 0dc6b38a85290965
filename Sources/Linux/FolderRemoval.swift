import CLinux
import Glibc
package import Posix

/// Removes folders with all that is in them, some entries at a time, so that a folder with very many entries does not block
/// the caller. The folders may belong to another user: no link is followed, and no other user can add entries meanwhile.
///
/// A folder that is to be removed gets another name in `parent`, which belongs to the caller. Its subfolders follow it there,
/// so their depth needs no memory.
package struct FolderRemoval {
    private let parent: String
    private var names: [String] = []
    private var lastNumber = 0
    /// App IDs and other names of the caller do not begin with a dot.
    private static let prefix = ".removed-"

    /// - Parameter parent: folders that a previous daemon was removing in it are removed too.
    package init(in parent: String) {
        self.parent = parent
        names = ((try? folderEntries(at: parent)) ?? []).filter { $0.hasPrefix(Self.prefix) }
        lastNumber = names.compactMap { Int($0.dropFirst(Self.prefix.count)) }.max() ?? 0
    }

    package var isEmpty: Bool { names.isEmpty }

    /// Takes a folder in `parent` away from its name. `step` removes it.
    package mutating func add(_ name: String) throws(SystemError) {
        let path = "\(parent)/\(name)"
        try move { rename(path, $0) }
    }

    /// Takes a folder away from another one in the same file system.
    package mutating func add(_ name: String, in folder: KeptFolder) throws(SystemError) {
        try move { folder.move(name, to: $0) }
    }

    private mutating func move(_ rename: (String) -> Int32) throws(SystemError) {
        let name = Self.prefix + "\(lastNumber + 1)"
        let path = "\(parent)/\(name)"
        try checkErrno(rename(path), "rename to", path)
        lastNumber += 1
        names.append(name)
        // Its owner can add nothing any more. A descriptor of it is not enough: each new entry needs permission.
        lchown(path, geteuid(), getegid())
        chmod(path, 0o700)
    }

    /// Removes at most `limit` entries. Does nothing if there is no folder to remove.
    /// - Throws: if a folder cannot be removed: it stays, and is not tried again.
    package mutating func step(limit: Int) throws(SystemError) {
        guard let name = names.last else { return }
        let path = "\(parent)/\(name)"
        do {
            let isEmpty = try removeEntries(in: path, limit: limit) { (folder, subfolder) throws(SystemError) in
                try move { renameat(folder, subfolder, AT_FDCWD, $0) }
            }
            guard isEmpty else { return }
            try removeFile(at: path, folder: true)
            names.removeAll { $0 == name }
        } catch {
            names.removeAll { $0 == name }
            throw error
        }
    }
}
