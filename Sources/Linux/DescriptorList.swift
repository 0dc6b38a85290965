import CLinux
import Glibc
package import Posix

/// What a descriptor of another process is, as far as its link in /proc/PID/fd shows.
enum ListedKind {
    /// Nothing arrives there: a regular file, a folder, most devices.
    case ignored
    case socket, pipe, terminal, timerfd, eventfd, inotify, pidfd, epoll, signalfd, ioUring, device
    /// A file that may be a POSIX message queue.
    case maybeQueue
    case unknown
    /// The process may not be examined.
    case notPermitted

    init(_ number: Int32) {
        switch UInt32(bitPattern: number) {
        case CLINUX_DESCRIPTOR_SOCKET.rawValue: self = .socket
        case CLINUX_DESCRIPTOR_PIPE.rawValue: self = .pipe
        case CLINUX_DESCRIPTOR_TERMINAL.rawValue: self = .terminal
        case CLINUX_DESCRIPTOR_TIMERFD.rawValue: self = .timerfd
        case CLINUX_DESCRIPTOR_EVENTFD.rawValue: self = .eventfd
        case CLINUX_DESCRIPTOR_INOTIFY.rawValue: self = .inotify
        case CLINUX_DESCRIPTOR_PIDFD.rawValue: self = .pidfd
        case CLINUX_DESCRIPTOR_EPOLL.rawValue: self = .epoll
        case CLINUX_DESCRIPTOR_SIGNALFD.rawValue: self = .signalfd
        case CLINUX_DESCRIPTOR_IO_URING.rawValue: self = .ioUring
        case CLINUX_DESCRIPTOR_DEVICE.rawValue: self = .device
        case CLINUX_DESCRIPTOR_MAYBE_QUEUE.rawValue: self = .maybeQueue
        case CLINUX_DESCRIPTOR_UNKNOWN.rawValue: self = .unknown
        case CLINUX_DESCRIPTOR_NOT_PERMITTED.rawValue: self = .notPermitted
        default: self = .ignored
        }
    }

    /// Whether input can arrive there that a duplicate shows.
    var isWatchable: Bool {
        switch self {
        case .socket, .pipe, .terminal, .timerfd, .eventfd, .inotify, .pidfd, .device, .maybeQueue, .unknown,
            .notPermitted:
            true
        // Epoll descriptors come last, and a signalfd shows the signals of the process that asks.
        case .ignored, .epoll, .signalfd, .ioUring: false
        }
    }

    /// Whether a thread that reads from it waits for something that is watched while it is frozen. Of a signalfd it is signals.
    var endsWaits: Bool {
        switch self {
        case .socket, .pipe, .terminal, .timerfd, .eventfd, .inotify, .pidfd, .device, .maybeQueue, .signalfd: true
        case .ignored, .unknown, .notPermitted, .epoll, .ioUring: false
        }
    }
}

/// A descriptor of a process.
struct ListedDescriptor {
    /// The position of the process in the list of processes.
    let process: Int
    /// The position of the table in the list of tables.
    let table: Int
    let number: Int32
    let kind: ListedKind
    /// Of a socket, pipe or FIFO; otherwise 0.
    let inode: UInt64
    /// Of a FIFO: its device.
    let device: UInt64
    let canRead: Bool
    let canWrite: Bool
    /// Of an unknown one.
    let name: String
    /// Its input is watched, or none can arrive.
    var isCovered = false

    fileprivate init(_ entry: clinux_descriptor_entry, process: Int, table: Int) {
        self.process = process
        self.table = table
        number = entry.number
        kind = ListedKind(entry.kind)
        inode = entry.inode
        device = entry.device
        canRead = entry.can_read
        canWrite = entry.can_write
        name =
            entry.name.0 == 0
            ? ""
            : withUnsafeBytes(of: entry.name) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }

    /// The same for all descriptors that watch the same: nginx's workers share their listening sockets.
    struct Key: Hashable {
        let inode: UInt64
        let device: UInt64
        /// Each end of a pipe has the same inode.
        let canRead: Bool
        let canWrite: Bool
    }

    /// `nil`: two descriptors of this kind do not show whether they are of the same file.
    var key: Key? {
        inode == 0 ? nil : Key(inode: inode, device: device, canRead: canRead, canWrite: canWrite)
    }

    /// As `status` shows it.
    var what: String {
        switch kind {
        case .socket: "socket"
        case .pipe: device == 0 ? "pipe" : "FIFO"
        case .terminal: "terminal"
        case .timerfd: "timerfd"
        case .eventfd: "eventfd"
        case .inotify: "inotify"
        case .pidfd: "pidfd"
        case .epoll: "epoll"
        case .signalfd: "signalfd"
        case .ioUring: "io_uring"
        case .device: "device"
        case .maybeQueue: "message queue"
        case .unknown: String(name.filter { $0 != "[" && $0 != "]" })
        case .ignored, .notPermitted: "descriptor"
        }
    }
}

/// Lists the descriptors of a table in ascending order, some at a time.
final class DescriptorList {
    private let folder: Descriptor
    private let process: Int
    private let table: Int

    /// - Parameters:
    ///   - folder: /proc/PID or /proc/PID/task/TID.
    ///   - owner: the process.
    ///   - process: its position in the list of processes.
    ///   - table: the position of the table in the list of tables.
    /// - Throws: ESRCH if the process has ended; EACCES if it may not be examined.
    init(in folder: String, of owner: Process, process: Int, table: Int) throws(SystemError) {
        let path = folder + "/fd"
        self.folder = try Descriptor.open(path, O_RDONLY | O_DIRECTORY)
        self.process = process
        self.table = table
        // Its pid may belong to another process by now. While it lives, the folder is its own.
        if owner.isOver { throw SystemError(call: "open", errno: ESRCH, path: path) }
    }

    /// Returns the next descriptors, about 80; none at the end.
    func next() throws(SystemError) -> [ListedDescriptor] {
        try nextDescriptors(folder.raw, process: process, table: table)
    }
}

/// Returns the next descriptors of /proc/PID/fd, about 80; none at the end.
func nextDescriptors(_ number: Int32, process: Int, table: Int) throws(SystemError) -> [ListedDescriptor] {
    var result: Int32 = 0
    let listed = withUnsafeTemporaryAllocation(of: clinux_descriptor_entry.self, capacity: Int(clinux_most_entries)) {
        buffer in
        guard let start = buffer.baseAddress else { return [ListedDescriptor]() }
        result = clinux_list_descriptors(number, start)
        return (0..<Int(max(result, 0))).map { ListedDescriptor(buffer[$0], process: process, table: table) }
    }
    try check(result, "getdents64")
    return listed
}

extension Enclosure {
    /// Opens the processes, each by a pidfd.
    /// - Parameters:
    ///   - limit: of their number; the others are counted.
    ///   - known: a process that is open already. It is used if it is one of them.
    package func openProcesses(limit: Int, known: Process? = nil) throws(SystemError) -> (
        opened: [Process], omitted: Int
    ) {
        var opened: [Process] = []
        switch kind {
        case .cgroup(let leaf):
            let pids = try leaf.pids()
            for pid in pids.prefix(limit) {
                let isKnown = known?.pid == pid && known?.isOver == false
                if let process = try isKnown ? known : Process.open(pid) { opened.append(process) }
            }
            if opened.allSatisfy({ $0 === known }) { return (opened, max(0, pids.count - limit)) }
            // A pid that was opened and is in the group now belongs to the process that was opened.
            let members = Set(try leaf.pids())
            return (opened.filter { members.contains($0.pid) }, max(0, pids.count - limit))
        case .family(let family):
            let members = try family.members()
            for member in members.prefix(limit) {
                guard let process = try Process.open(member.pid), try proc.stat(of: member.pid)?.key == member.key
                else { continue }
                opened.append(process)
            }
            return (opened, max(0, members.count - limit))
        }
    }
}
