import CLinux
import Glibc

/// What a descriptor refers to, as far as the kernel itself reports it. No call here reaches a file system, so none blocks: the
/// name of a descriptor in /proc is made from what the kernel has cached, and seals exist only in the kernel's own memory.
package enum DescriptorKind: Equatable, Sendable {
    case socket
    /// A pipe without a path.
    case pipe
    /// An object of the kernel that programs wait for: `eventNames`.
    case event
    /// A file in memory: a memfd, or a file of a tmpfs or of hugetlbfs. Only these have seals (F_GET_SEALS, fcntl(2)).
    case memory
    /// Anything with a path: a file, a folder, a named pipe, a device.
    case file
    /// Another object without a path, with the kernel's name for it; empty if the kernel does not report one.
    case other(String)

    /// From the kernel's sources: the names in anon_inode_getfile() of fs/eventfd.c, fs/eventpoll.c, fs/timerfd.c,
    /// fs/signalfd.c, fs/notify/inotify/inotify_user.c and kernel/fork.c; since Linux 6.9 fs/pidfs.c.
    private static let eventNames: Set<String> = [
        "[eventfd]", "[eventpoll]", "[timerfd]", "[signalfd]", "inotify", "[pidfd]",
    ]

    /// Longer names are cut off: a path may be longer.
    private static let longestName = 64

    package init(of number: Int32) {
        let name = Self.name(of: number)
        // A path starts with a slash, also in another mount namespace. The names that the kernel gives to other objects
        // do not (d_path() in fs/d_path.c).
        if name.hasPrefix("socket:") {
            self = .socket
        } else if name.hasPrefix("pipe:") {
            self = .pipe
        } else if name.hasPrefix("anon_inode:"), Self.eventNames.contains(String(name.dropFirst(11))) {
            self = .event
        } else if clinux_get_seals(number) >= 0 {
            self = .memory
        } else {
            self = name.hasPrefix("/") ? .file : .other(name)
        }
    }

    private static func name(of number: Int32) -> String {
        var name = [CChar](repeating: 0, count: longestName)
        let count = readlink("/proc/self/fd/\(number)", &name, name.count)
        return String(decoding: name.prefix(max(count, 0)).map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// Whether a close(2) that is not the last one never blocks. For a file with a path it can: each close(2), also of a
    /// duplicate, waits for the server of a FUSE or NFS file (the operation `flush` of the kernel).
    package var closesAtOnce: Bool {
        switch self {
        case .socket, .pipe, .event, .memory: true
        case .file, .other: false
        }
    }
}
