/// Both ends of a TCP connection, as one of them sees it. An IPv4 address has the form in which IPv6 shows it.
struct SocketFlow: Hashable {
    struct End: Hashable {
        /// In the order of the network.
        var address: SIMD16<UInt8>
        var port: UInt16

        /// - Parameters:
        ///   - port: the offset of the port in the identity.
        ///   - address: that of the address.
        fileprivate init(_ socket: KnownSocket, port: Int, address: Int) {
            // AF_INET
            let isShort = socket.family == 2
            self.port = UInt16(socket.identity[port]) << 8 | UInt16(socket.identity[port + 1])
            var bytes = SIMD16<UInt8>()
            for index in 0..<(isShort ? 4 : 16) { bytes[(isShort ? 12 : 0) + index] = socket.identity[address + index] }
            if isShort {
                bytes[10] = 0xff
                bytes[11] = 0xff
            }
            self.address = bytes
        }

        /// 0.0.0.0 or ::, of a socket that listens at all addresses.
        fileprivate var isAnyAddress: Bool {
            (0..<16).allSatisfy { address[$0] == 0 || ($0 == 10 || $0 == 11) && address[$0] == 0xff }
        }

        /// 127.0.0.0/8 or ::1.
        fileprivate var isLoopback: Bool {
            if address[10] == 0xff, address[11] == 0xff, address[12] == 127 {
                return (0..<10).allSatisfy { address[$0] == 0 }
            }
            return address[15] == 1 && (0..<15).allSatisfy { address[$0] == 0 }
        }
    }

    var own: End
    var peer: End

    init(_ socket: KnownSocket) {
        own = End(socket, port: 0, address: 4)
        peer = End(socket, port: 2, address: 20)
    }

    init(_ socket: InternetSocket) {
        self.init(KnownSocket(family: socket.family, identity: socket.identity))
    }

    /// As the other end sees it.
    var reversed: SocketFlow {
        var other = self
        (other.own, other.peer) = (peer, own)
        return other
    }

    /// Whether both ends are on this machine, as far as the addresses show it.
    fileprivate var isLocal: Bool { peer.isLoopback || own.address == peer.address }
}

/// Which TCP connections of an app are to the app itself: both sockets are its own (L53).
struct OwnConnections {
    private var flows: Set<SocketFlow> = []
    /// Connections of the app to this machine whose other end is no socket of the app: by port, the addresses.
    private var unaccepted: [UInt16: [SIMD16<UInt8>]] = [:]
    /// How many connections wait at the listening sockets of the app, by port.
    private var waiting: [UInt16: UInt64] = [:]

    /// States of a connection that both ends know (include/net/tcp_states.h): established, FIN_WAIT1, FIN_WAIT2, CLOSE_WAIT.
    private static let connected: Set<UInt8> = [1, 4, 5, 8]

    /// - Parameter sockets: the TCP sockets of the app.
    init(_ sockets: [InternetSocket]) {
        for socket in sockets where Self.connected.contains(socket.state) { flows.insert(SocketFlow(socket)) }
        for flow in flows where flow.isLocal && !flows.contains(flow.reversed) {
            unaccepted[flow.peer.port, default: []].append(flow.peer.address)
        }
        for socket in sockets where socket.isListening { waiting[socket.localPort, default: 0] += socket.unread }
    }

    /// Whether the other end is the app's. Of a listening socket: whether all connections that wait are.
    func isOwn(_ socket: InternetSocket) -> Bool {
        let flow = SocketFlow(socket)
        guard socket.isListening else { return flows.contains(flow.reversed) }
        // Which socket of several on one port gets a connection is not known: all of them count.
        guard let waiting = waiting[flow.own.port], waiting > 0 else { return false }
        let isAny = flow.own.isAnyAddress
        let own = unaccepted[flow.own.port]?.count { isAny || $0 == flow.own.address } ?? 0
        return UInt64(own) >= waiting
    }
}

/// Which TCP sockets of an app can be connected to each other, as far as it is known without a question to the kernel.
struct PossibleEnds {
    /// With more sockets a dump takes less time.
    private static let mostSockets = 256

    private var flows: [UInt64: SocketFlow] = [:]
    /// Sockets that an earlier look has not found: they can be connected to anything.
    private var unknown: Set<UInt64> = []
    private let isTooLarge: Bool

    /// - Parameters:
    ///   - sockets: those of the app that may be connections of TCP.
    ///   - known: as the last look has found a socket.
    init(_ sockets: Set<UInt64>, known: (UInt64) -> KnownSocket?) {
        isTooLarge = sockets.count > Self.mostSockets
        if isTooLarge { return }
        for inode in sockets {
            if let socket = known(inode) { flows[inode] = SocketFlow(socket) } else { unknown.insert(inode) }
        }
    }

    /// Whether another socket of the app can be the other end of this one.
    func hasEnd(of inode: UInt64) -> Bool {
        if isTooLarge || unknown.contains(where: { $0 != inode }) { return true }
        guard let reversed = flows[inode]?.reversed else { return !flows.isEmpty }
        return flows.values.contains(reversed)
    }

    /// Whether a socket of the app can be connected to a socket that listens.
    /// - Parameter listener: as the last look has found it; `nil`: it has not.
    func hasClient(of listener: KnownSocket?) -> Bool {
        if isTooLarge || !unknown.isEmpty { return true }
        guard let port = listener.map({ SocketFlow($0).own.port }) else { return !flows.isEmpty }
        return flows.values.contains { $0.peer.port == port }
    }
}

extension UnixQueue {
    /// Whether the other end is one of these sockets. Of a listening socket: whether all that wait are.
    func isOwn(_ sockets: (UInt64) -> Bool) -> Bool {
        isListening ? !clients.isEmpty && clients.allSatisfy(sockets) : peer != 0 && sockets(peer)
    }
}
