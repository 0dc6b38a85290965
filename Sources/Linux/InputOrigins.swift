import Glibc
import Posix

/// Finds out which input the app has sent to itself (L53): it was there when the watch was made, and the other end of the pipe
/// or socket is in the app, too. A frozen app sends nothing more, so what arrives later comes from outside.
///
/// Only descriptors at which input waits are asked for: an app that rests has none.
final class InputOrigins {
    private struct Candidate {
        /// The position of the duplicate.
        let position: Int
        let inode: UInt64
    }

    /// How many AF_UNIX sockets a step asks for: some 3 µs each.
    private static let askedInStep = 16

    private let sockets: Set<UInt64>
    private var unix: ArraySlice<Candidate> = []
    private var tcp: [Candidate] = []
    private var diagnostics: DiagnosticSocket?
    private let dump: ConnectionDump
    /// The positions of the duplicates whose input is the app's own.
    private(set) var own: [Int] = []

    /// - Parameters:
    ///   - cgroup: the ID of the app's cgroup, if it has one.
    ///   - known: a TCP socket as the last look at the app has found it, by its inode.
    /// - Returns: `nil` if no input waits of which this can be known.
    init?(
        of duplicates: [WatchedDescriptor], _ listed: [ListedDescriptor], cgroup: UInt64?,
        known: (UInt64) -> KnownSocket?
    ) {
        let waiting = duplicates.indices.filter {
            duplicates[$0].hadInput && duplicates[$0].number >= 0 && duplicates[$0].inode != 0
        }
        guard !waiting.isEmpty else { return nil }
        var (sockets, pipes): (Set<UInt64>, Set<UInt64>) = ([], [])
        for item in listed {
            if item.kind == .socket { sockets.insert(item.inode) }
            if item.kind == .pipe, item.device == 0, item.canWrite { pipes.insert(item.inode) }
        }
        self.sockets = sockets
        dump = ConnectionDump(of: sockets, cgroup: cgroup)
        for position in waiting {
            let duplicate = duplicates[position]
            let candidate = Candidate(position: position, inode: duplicate.inode)
            if duplicate.kind == .pipe {
                if pipes.contains(duplicate.inode) { own.append(position) }
            } else if DiagnosticSocket.isSerialized {
                // Any process on the machine could delay the answer.
                continue
            } else if duplicate.domain == AF_UNIX {
                unix.append(candidate)
            } else if duplicate.isTCP {
                tcp.append(candidate)
            }
        }
        if !tcp.isEmpty {
            let ends = PossibleEnds(Self.connections(sockets, duplicates), known: known)
            tcp.removeAll { !Self.mayBeOwn($0, duplicates, ends, known) }
        }
        if unix.isEmpty, tcp.isEmpty, own.isEmpty { return nil }
    }

    /// Without a socket that can be the other end, the input is from outside. Most servers have none, and a client waits for the
    /// answer of a dump.
    private static func mayBeOwn(
        _ candidate: Candidate, _ duplicates: [WatchedDescriptor], _ ends: PossibleEnds,
        _ known: (UInt64) -> KnownSocket?
    ) -> Bool {
        duplicates[candidate.position].kind == .listener
            ? ends.hasClient(of: known(candidate.inode)) : ends.hasEnd(of: candidate.inode)
    }

    /// The sockets that may be connections of TCP: all but those that are known to be something else.
    private static func connections(_ sockets: Set<UInt64>, _ duplicates: [WatchedDescriptor]) -> Set<UInt64> {
        var connections = sockets
        for duplicate in duplicates where !duplicate.isTCP || duplicate.kind == .listener {
            connections.remove(duplicate.inode)
        }
        return connections
    }

    /// Does the next step, of some 100 µs.
    /// - Returns: whether there is more.
    func advance() -> Bool {
        if !unix.isEmpty {
            for candidate in unix.prefix(Self.askedInStep) where isOwn(candidate) { own.append(candidate.position) }
            unix = unix.dropFirst(Self.askedInStep)
        } else if tcp.isEmpty {
            return false
        } else if !dump.advance() {
            let connections = OwnConnections(Array(dump.found.values))
            for candidate in tcp {
                guard let socket = dump.found[candidate.inode], connections.isOwn(socket) else { continue }
                own.append(candidate.position)
            }
            tcp = []
        }
        return true
    }

    /// What the kernel does not tell is from outside.
    private func isOwn(_ candidate: Candidate) -> Bool {
        do throws(SystemError) {
            let diagnostics = if let made = self.diagnostics { made } else { try DiagnosticSocket() }
            self.diagnostics = diagnostics
            guard let bytes = try diagnostics.one(DiagnosticRequest.unix(inode: candidate.inode)),
                let queue = UnixQueue(parsing: bytes), queue.inode == candidate.inode
            else { return false }
            return queue.isOwn { sockets.contains($0) }
        } catch {
            // The answer may still come.
            self.diagnostics = nil
            return false
        }
    }
}

/// Searches the TCP sockets of the daemon's network namespace for those of one app, in pieces. No socket's lock is taken.
private final class ConnectionDump {
    /// How many messages of the kernel are read, of some 250 sockets each: input may wait for the end of the search.
    private static let mostMessages = 64

    private let sockets: Set<UInt64>
    private var isFiltered: Bool
    private var requests: [[UInt8]]
    private var socket: DiagnosticSocket?
    private var messages = 0
    /// By inode; none if not all were searched.
    private(set) var found: [UInt64: InternetSocket] = [:]

    init(of sockets: Set<UInt64>, cgroup: UInt64?) {
        self.sockets = sockets
        isFiltered = cgroup != nil
        requests = Self.requests(cgroup)
    }

    private static func requests(_ cgroup: UInt64?) -> [[UInt8]] {
        DiagnosticRequest.families.map {
            DiagnosticRequest.all(family: $0, protocol: DiagnosticRequest.tcp, cgroup: cgroup)
        }
    }

    /// - Returns: whether there is more.
    func advance() -> Bool {
        do throws(SystemError) {
            if try receive() { return true }
            if !requests.isEmpty { return true }
        } catch {
            found = [:]
            requests = []
        }
        return false
    }

    /// - Returns: whether there is more of this request.
    private func receive() throws(SystemError) -> Bool {
        if socket == nil {
            guard !requests.isEmpty else { return false }
            // A new one for each request: what is left of a dump in a socket refuses the next one.
            let made = try DiagnosticSocket()
            try made.send(requests.removeFirst())
            socket = made
        }
        messages += 1
        if messages > Self.mostMessages { throw SystemError(call: "NETLINK_SOCK_DIAG", errno: E2BIG) }
        let received = try socket?.receive() ?? []
        var isDone = received.isEmpty
        for message in received {
            switch message {
            case .socket(let bytes):
                guard let one = InternetSocket(parsing: bytes), sockets.contains(one.inode) else { continue }
                found[one.inode] = one
            case .done: isDone = true
            case .failed:
                isDone = true
                // Before Linux 5.9 there is no filter for cgroups. Without one, the kernel has no such protocol.
                if isFiltered { requests = Self.requests(nil) }
                isFiltered = false
            }
        }
        if isDone { socket = nil }
        return !isDone
    }
}

extension DescriptorWatch {
    /// Finds out who has sent what waits.
    func findOrigins() {
        if let origins, origins.advance() { return }
        for position in origins?.own ?? [] { duplicates[position].isOwn = true }
        origins = nil
        stage = .complete
    }
}
