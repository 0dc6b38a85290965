import Glibc
import Posix

/// What kind of socket a descriptor is, by the table in which it was found.
package enum SocketKind: CaseIterable, Hashable, Sendable {
    case tcp, udp, unix
    /// It was in no table: it is new, not bound, or a netlink or packet socket and so on.
    case unknown
}

/// A socket of sock_diag(7). It needs no privilege, and shows the network namespace in which it was created. The kernel answers
/// in the calls themselves. No call blocks, except for requests of counters (`SocketQuestion`) and on kernels that serialize
/// requests.
final class DiagnosticSocket {
    private let descriptor: SharedDescriptor
    /// How much the kernel puts into one message of a dump: some 250 TCP sockets.
    private static let size = 32 * 1024

    /// Whether the kernel carries out one request at a time, of all processes (`sock_diag_mutex`, before Linux 6.9). One that
    /// waits for a socket's lock then delays all others, of any kind.
    static let isSerialized: Bool = {
        var name = utsname()
        guard uname(&name) == 0 else { return true }
        let release = withUnsafeBytes(of: name.release) { Array($0.prefix { $0 != 0 }) }
        return DiagnosticSocket.serializes(release)
    }()

    /// - Parameter release: as uname(2) reports it, such as `6.1.0-28-amd64`.
    static func serializes(_ release: [UInt8]) -> Bool {
        let numbers = release.split(separator: UInt8(ascii: "."), maxSplits: 2, omittingEmptySubsequences: false)
        guard numbers.count >= 2 else { return true }
        let digits = numbers.prefix(2).map { $0.prefix { (0x30...0x39).contains($0) } }
        guard let major: UInt64 = parseNumber(digits[0]), let minor: UInt64 = parseNumber(digits[1]) else {
            return true
        }
        return (major, minor) < (6, 9)
    }

    init() throws(SystemError) {
        let type = Int32(SOCK_RAW.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        // AF_NETLINK, NETLINK_SOCK_DIAG
        let number = try checkErrno(socket(16, type, 4), "socket AF_NETLINK")
        descriptor = SharedDescriptor(Descriptor(adopting: number))
    }

    func send(_ request: [UInt8]) throws(SystemError) {
        let number = descriptor.raw
        let sent = retryInterrupted { Glibc.send(number, request, request.count, 0) }
        try checkErrno(sent, "send NETLINK_SOCK_DIAG")
    }

    /// Returns the messages of the kernel's next datagram; of a dump it is created now.
    func receive() throws(SystemError) -> [DiagnosticMessage] {
        let number = descriptor.raw
        let bytes = try readBuffer(Self.size, "recv NETLINK_SOCK_DIAG", nil) { recv(number, $0, Self.size, 0) }
        return diagnosticMessages(bytes)
    }

    /// Asks for one socket.
    /// - Returns: its message; `nil`: there is none.
    func one(_ request: [UInt8]) throws(SystemError) -> ArraySlice<UInt8>? {
        try send(request)
        for message in try receive() {
            if case .socket(let bytes) = message { return bytes }
        }
        return nil
    }
}

/// The sockets of one kind in the daemon's network namespace.
struct SocketTable {
    /// The most sockets that are kept.
    static let mostSockets = 65_536
    /// The most ports that are kept.
    static let mostPorts = 4096

    /// When the dump began (CLOCK_MONOTONIC).
    let began: Duration
    var internet: [UInt64: InternetSocket] = [:]
    var unix: [UInt64: UnixQueue] = [:]
    /// The ports on which TCP sockets listen.
    var ports: Set<UInt16> = []
    var count: Int { internet.count + unix.count }
    /// There are more sockets than are kept.
    var isCut = false

    init(began: Duration) { self.began = began }

    mutating func insert(_ bytes: ArraySlice<UInt8>, kind: SocketKind) {
        guard count < Self.mostSockets else {
            isCut = true
            return
        }
        switch kind {
        case .unix: if let queue = UnixQueue(parsing: bytes) { unix[queue.inode] = queue }
        case .tcp, .udp:
            // Sockets without a descriptor (TIME_WAIT, not accepted) have no inode.
            guard let socket = InternetSocket(parsing: bytes), socket.inode != 0 else { return }
            internet[socket.inode] = socket
            if kind == .tcp, socket.isListening, ports.count < Self.mostPorts { ports.insert(socket.localPort) }
        case .unknown: break
        }
    }
}

/// A dump of all sockets of one kind, in pieces: the kernel takes about 1 µs for each. It has no counters, so the kernel takes
/// no socket's lock.
final class SocketDump {
    let kind: SocketKind
    /// Only the sockets of this cgroup.
    let cgroup: UInt64?
    private(set) var table: SocketTable
    /// What is not asked yet.
    private(set) var requests: [[UInt8]]
    private var socket: DiagnosticSocket?

    init(_ kind: SocketKind, cgroup: UInt64? = nil, at now: Duration) {
        self.kind = kind
        self.cgroup = cgroup
        table = SocketTable(began: now)
        switch kind {
        case .tcp, .udp:
            let number = kind == .tcp ? DiagnosticRequest.tcp : DiagnosticRequest.udp
            requests = DiagnosticRequest.families.map {
                DiagnosticRequest.all(family: $0, protocol: number, cgroup: cgroup)
            }
        case .unix: requests = [DiagnosticRequest.unix(inode: nil)]
        case .unknown: requests = []
        }
    }

    /// Receives the next sockets.
    /// - Returns: whether there are more.
    /// - Throws: ENOENT if the kernel cannot list sockets of this kind (a module), EINVAL if it has no such filter.
    func advance() throws(SystemError) -> Bool {
        if socket == nil {
            guard !requests.isEmpty else { return false }
            // A new one for each request: what is left of a dump in a socket refuses the next one.
            let made = try DiagnosticSocket()
            try made.send(requests.removeFirst())
            socket = made
        }
        let messages = try socket?.receive() ?? [.done]
        var isDone = messages.isEmpty
        for message in messages {
            switch message {
            case .socket(let bytes): table.insert(bytes, kind: kind)
            case .done: isDone = true
            case .failed(let errno):
                socket = nil
                throw SystemError(call: "NETLINK_SOCK_DIAG", errno: errno)
            }
        }
        if isDone || table.isCut { socket = nil }
        return socket != nil || !requests.isEmpty
    }

    /// Reads the next sockets from what a helper thread has received for all requests.
    /// - Returns: whether there are more.
    /// - Throws: the same.
    func advance(_ answers: DiagnosticAnswers) throws(SystemError) -> Bool {
        let messages = try answers.next()
        for message in messages {
            switch message {
            case .socket(let bytes): table.insert(bytes, kind: kind)
            case .done: break
            case .failed(let errno): throw SystemError(call: "NETLINK_SOCK_DIAG", errno: errno)
            }
        }
        return !messages.isEmpty && !table.isCut
    }
}

/// The last dumps, for looks that follow each other closely.
package final class SocketTables {
    /// Whether a helper thread makes all requests, because any of them can block.
    package let isSerialized: Bool
    private var tables: [SocketKind: SocketTable] = [:]
    private var sizes: [SocketKind: Int] = [:]
    /// How many dumps were made.
    private(set) var dumps = 0
    /// Kinds that the kernel cannot list.
    private(set) var unsupported: Set<SocketKind> = []
    /// The kernel has no filter for cgroups.
    var cannotFilter = false
    /// The ports on which TCP sockets of the namespace listened at the last dump.
    private(set) var ports: Set<UInt16> = []

    /// For how long a dump serves other looks.
    static let validity = Duration.milliseconds(50)
    /// A dump of more sockets is only made if a filtered one has not found all.
    static let largeDump = 1024

    package convenience init() { self.init(isSerialized: DiagnosticSocket.isSerialized) }

    /// - Parameter isSerialized: whether the kernel carries out one request at a time, for all processes (before Linux 6.9).
    package init(isSerialized: Bool) { self.isSerialized = isSerialized }

    /// Returns the last dump, if it began at this time or later.
    func table(_ kind: SocketKind, since time: Duration) -> SocketTable? {
        guard let table = tables[kind], table.began >= time else { return nil }
        return table
    }

    /// Whether the last dump of all sockets of a kind had many.
    func isLarge(_ kind: SocketKind) -> Bool { (sizes[kind] ?? 0) > Self.largeDump }

    func insert(_ table: SocketTable, _ kind: SocketKind) {
        dumps += 1
        tables[kind] = table
        sizes[kind] = table.count
        if kind == .tcp { ports = table.ports }
    }

    func setUnsupported(_ kind: SocketKind) { unsupported.insert(kind) }

    /// Removes the dumps. Call it when no look waits.
    package func removeAll() { tables = [:] }
}
