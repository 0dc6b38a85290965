import Glibc
package import Posix

/// The proc file system, or in tests a folder with the same structure. Files of a process that has ended read as `nil`.
package struct ProcFS {
    package let root: String

    package init(root: String = "/proc") { self.root = root }

    /// The limit of a file that is read whole, in bytes; the kernel's are smaller.
    static let limit = 64 * 1024

    package func read(_ name: String, of pid: Int32, limit: Int = ProcFS.limit) throws(SystemError) -> [UInt8]? {
        try readFileIfPresent(at: "\(root)/\(pid)/\(name)", limit: limit)
    }

    /// A file that the kernel writes as one record, as most are that describe a process or a thread; not `maps`, `mountinfo`, `timers`.
    package func readRecord(_ name: String, of pid: Int32, limit: Int = ProcFS.limit) throws(SystemError) -> [UInt8]? {
        try Posix.readRecord(at: "\(root)/\(pid)/\(name)", limit: limit)
    }

    package func stat(of pid: Int32) throws(SystemError) -> ProcessStat? {
        try readRecord("stat", of: pid).flatMap { ProcessStat(parsing: $0) }
    }

    package func thread(_ thread: Int32, of pid: Int32) throws(SystemError) -> ProcessStat? {
        try readRecord("task/\(thread)/stat", of: pid).flatMap { ProcessStat(parsing: $0) }
    }

    /// Returns all pids in ascending order.
    package func pids() throws(SystemError) -> [Int32] {
        try folderEntries(at: root).compactMap { Int32($0) }.sorted()
    }
}

/// Returns the names in a folder, unsorted, without "." and "..".
/// - Parameter onlyFolders: leaves out entries that are not folders, as far as the file system reports their types.
package func folderEntries(at path: String, onlyFolders: Bool = false) throws(SystemError) -> [String] {
    try FolderReader(path, onlyFolders: onlyFolders).next(.max)
}

/// Reads the names in a folder, some at a time.
package final class FolderReader {
    private let path: String
    private let onlyFolders: Bool
    private let folder: OpaquePointer
    /// Whether all names were returned.
    package private(set) var isAtEnd = false

    /// - Parameter onlyFolders: leaves out entries that are not folders, as far as the file system reports their types.
    package init(_ path: String, onlyFolders: Bool = false) throws(SystemError) {
        try path.refuseNul("opendir")
        guard let folder = opendir(path) else { throw SystemError(call: "opendir", errno: errno, path: path) }
        self.path = path
        self.onlyFolders = onlyFolders
        self.folder = folder
    }

    /// Reads a folder that is open. `path`: for messages.
    package init(adopting descriptor: consuming Descriptor, _ path: String) throws(SystemError) {
        guard let folder = fdopendir(descriptor.raw) else {
            throw SystemError(call: "opendir", errno: errno, path: path)
        }
        _ = descriptor.release()
        self.path = path
        onlyFolders = false
        self.folder = folder
    }

    deinit { closedir(folder) }

    /// Returns at most `limit` further names, unsorted, without "." and "..".
    package func next(_ limit: Int) throws(SystemError) -> [String] {
        var names: [String] = []
        while names.count < limit {
            errno = 0
            guard let entry = readdir(folder) else {
                if errno != 0 { throw SystemError(call: "readdir", errno: errno, path: path) }
                isAtEnd = true
                break
            }
            let type = Int32(entry.pointee.d_type)
            if onlyFolders, type != Int32(DT_DIR), type != Int32(DT_UNKNOWN) { continue }
            let name = withUnsafePointer(to: &entry.pointee.d_name) {
                $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
            }
            if name != "." && name != ".." { names.append(name) }
        }
        return names
    }
}
