package import Idleness

/// What one look at the processes of an app has found (L51).
package struct WorkFindings {
    /// When the look began (CLOCK_MONOTONIC).
    package let began: Duration
    /// Processor time of all processes since the launch.
    package let cpu: Duration
    var processes: Set<Int32>
    /// Its threads, and its timer descriptors.
    var threads: [ThreadSighting] = []
    /// The processes of the threads that one may ask about.
    var processOf: [Int: Int32] = [:]
    /// Pipes and FIFOs of which another program may have the other end.
    var outsidePipes: Set<UInt64> = []
    /// Calls of read(2) and write(2), bytes read and bytes written, of all processes since their launch.
    var transfers = Transfers()
    /// Of a frozen app.
    package var signalTimers: [SignalTimer] = []
    var sockets: [UInt64: FoundSocket] = [:]
    /// Ports on which TCP sockets of the network namespace listen.
    var ports: Set<UInt16> = []
    var isIncomplete = false

    init(began: Duration, processes: [Int32], cpu: Duration) {
        self.began = began
        self.processes = Set(processes)
        self.cpu = cpu
    }
}

extension WorkFindings {
    /// With more sockets, all count as connected to other programs.
    private static let mostCompared = 4096

    /// Whether the other ends of all these sockets are sockets of the app. What cannot be known is from outside.
    func areOwn(_ some: [FoundSocket]) -> Bool {
        guard sockets.count <= Self.mostCompared else { return false }
        var tcp: [InternetSocket] = []
        for found in some {
            switch found {
            case .internet(let socket, .tcp): tcp.append(socket)
            case .unix(let queue): if !queue.isOwn({ sockets[$0] != nil }) { return false }
            case .internet, .listed, .absent: return false
            }
        }
        return tcp.isEmpty || ownConnections.map { connections in tcp.allSatisfy { connections.isOwn($0) } } ?? false
    }

    /// The TCP connections of the app to itself; `nil`: there are none, or too many sockets to compare.
    var ownConnections: OwnConnections? {
        guard sockets.count <= Self.mostCompared else { return nil }
        let tcp = sockets.values.compactMap { found in
            if case .internet(let socket, .tcp) = found { socket } else { nil }
        }
        return tcp.count < 2 ? nil : OwnConnections(tcp)
    }
}

/// A socket of the app.
enum FoundSocket {
    case internet(InternetSocket, SocketKind)
    case unix(UnixQueue)
    /// In another network namespace, or without sock_diag(7).
    case listed(ListedSocket, SocketKind)
    /// In no table: not bound, closed, or of a kind that is not examined.
    case absent(SocketKind)

    var kind: SocketKind {
        switch self {
        case .internet(_, let kind), .listed(_, let kind), .absent(let kind): kind
        case .unix: .unix
        }
    }
    var unread: UInt64 {
        switch self {
        case .internet(let socket, _): socket.unread
        case .unix(let queue): queue.unread
        case .listed(let socket, _): socket.unread
        case .absent: 0
        }
    }
    var unsent: UInt64 {
        switch self {
        case .internet(let socket, .tcp): socket.unsent
        case .listed(let socket, .tcp): socket.unsent
        // What an AF_UNIX socket has sent is what its peer has not read.
        case .internet, .listed, .unix, .absent: 0
        }
    }
}

/// From /proc/PID/io. What goes through send(2) and recv(2) counts nowhere. A process has what its children had that it has waited for.
struct Transfers: Equatable {
    var calls: UInt64 = 0
    /// By process.
    var written: [Int32: UInt64] = [:]
    /// Bytes that read(2) and similar have returned.
    var received: UInt64 = 0
}

/// What an app has to do, as one look found it in comparison with the look before.
package struct WorkMeasurement: Equatable, Sendable {
    package var cpu: Duration
    package var hasNewProcesses = false
    /// Bytes that the app has not read; a connection that waits counts as one.
    package var unread: UInt64 = 0
    /// Bytes that its peers have not confirmed.
    package var unsent: UInt64 = 0
    /// Established connections that it accepted.
    package var connections = 0
    package var waits = WaitVerdict()
    /// Of `waits`: which thread waits where.
    package var detail = ""
    /// How long ago bytes went over an open connection; `nil`: not known, or none did.
    package var traffic: Duration?
    package var isIncomplete = false
    /// Something is unread, and the app has sent all of it to itself.
    package var isOwn = false
    /// Only the processor time and the processes are new; the rest was not examined.
    package var isBrief = false

    init(cpu: Duration) { self.cpu = cpu }
}
