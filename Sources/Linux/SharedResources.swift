import Glibc
import Posix

/// What an app has to let go of before it is suspended (L43, `Releases=`): device nodes, files, and any lock on a file.
package struct SharedResources: Hashable, Sendable {
    /// Absolute paths, with the wildcards of fnmatch(3), of which none matches a slash.
    package var paths: [String] = []
    /// The same, of files of which a lock counts, whatever its kind.
    package var locks: [String] = []

    package init(paths: [String] = [], locks: [String] = []) {
        self.paths = paths
        self.locks = locks
    }

    package var isEmpty: Bool { paths.isEmpty && locks.isEmpty }

    /// - Parameter path: as /proc shows it. That of a device which was removed while it is held ends with " (deleted)".
    func containsHeld(_ path: String) -> Bool { Self.match(path, paths) }

    func containsLocked(_ path: String) -> Bool { Self.match(path, locks) }

    private static func match(_ path: String, _ patterns: [String]) -> Bool {
        if patterns.isEmpty { return false }
        let name = path.hasSuffix(deleted) ? String(path.dropLast(deleted.count)) : path
        let isCommon = isCommonDevice(name)
        return patterns.contains { $0 == name || !isCommon && fnmatch($0, name, FNM_PATHNAME) == 0 }
    }

    /// Most programs have such a device open, and keep no other from it: a wildcard does not name it.
    private static func isCommonDevice(_ path: String) -> Bool {
        commonDevices.contains(path) || path.hasPrefix("/dev/pts/")
    }

    private static let commonDevices: Set<String> = [
        "/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty",
    ]

    private static let deleted = " (deleted)"
}

/// The paths of files that a process has mapped, from lines of /proc/PID/maps (proc_pid_maps(5)): a device can be used without a
/// descriptor.
func mappedPaths(_ bytes: some Collection<UInt8>) -> [String] {
    var paths: [String] = []
    var scanner = ByteScanner(Array(bytes))
    while let line = scanner.line() {
        var words = ByteScanner(line)
        // The addresses, the rights, the offset, the device and the inode. The path may contain spaces.
        guard (0..<5).allSatisfy({ _ in words.word() != nil }), let slash = line.firstIndex(of: UInt8(ascii: "/"))
        else {
            continue
        }
        let path = line[slash...].text
        if paths.last != path { paths.append(path) }
    }
    return paths
}
