/// What sock_diag(7) answers, and what it is asked: messages of NETLINK_SOCK_DIAG as bytes. No input makes a parser trap.

/// A TCP or UDP socket, as linux/inet_diag.h describes it.
package struct InternetSocket: Equatable {
    /// The states of a socket (include/net/tcp_states.h).
    package enum State {
        package static let established: UInt8 = 1
        package static let closeWait: UInt8 = 8
        package static let lastAck: UInt8 = 9
        package static let listening: UInt8 = 10
        package static let closing: UInt8 = 11
    }

    /// AF_INET or AF_INET6.
    package var family: UInt8
    package var state: UInt8
    /// With it the kernel finds the socket again.
    package var identity: SocketIdentity
    package var localPort: UInt16
    /// Of a listener: how many connections wait. Of others: bytes that were not read; a FIN counts as one.
    package var readQueue: UInt32
    /// Bytes that the other end has not confirmed. Of a listener: how many connections may wait.
    package var writeQueue: UInt32
    package var inode: UInt64
    /// TCP only. For it the kernel waits for the socket's lock, unless the socket listens.
    package var info: TCPInfo?

    /// Whether the other end has sent its FIN.
    package var hasEnd: Bool { state == State.closeWait || state == State.lastAck || state == State.closing }
    package var isListening: Bool { state == State.listening }
    /// Data can arrive, or can be sent.
    var isConnected: Bool { state == State.established || state == State.closeWait }

    /// Bytes, or connections, that wait for the app.
    package var unread: UInt64 { UInt64(hasEnd && readQueue > 0 ? readQueue - 1 : readQueue) }
    package var unsent: UInt64 { isListening ? 0 : UInt64(writeQueue) }

    /// - Parameter bytes: a message without its netlink header: `struct inet_diag_msg` and attributes.
    init?(parsing bytes: ArraySlice<UInt8>) {
        guard bytes.count >= 72, let identity = SocketIdentity(parsing: bytes, at: 4),
            let readQueue: UInt32 = nativeNumber(bytes, at: 56), let writeQueue: UInt32 = nativeNumber(bytes, at: 60),
            let inode: UInt32 = nativeNumber(bytes, at: 68), let port: UInt16 = nativeNumber(bytes, at: 4)
        else { return nil }
        family = bytes[bytes.startIndex]
        state = bytes[bytes.startIndex + 1]
        self.identity = identity
        localPort = UInt16(bigEndian: port)
        self.readQueue = readQueue
        self.writeQueue = writeQueue
        self.inode = UInt64(inode)
        // INET_DIAG_INFO
        info = netlinkAttribute(2, of: bytes.dropFirst(72)).flatMap { TCPInfo(parsing: $0) }
        if hasEnd, let received = info?.received, received > 0 { info?.received = received - 1 }
    }
}

/// `struct inet_diag_sockid`: ports, addresses, interface and cookie.
package struct SocketIdentity: Hashable {
    static let size = 48
    /// Its 48 bytes; the rest is 0.
    private var words = SIMD8<UInt64>()

    init?(parsing bytes: ArraySlice<UInt8>, at offset: Int) {
        for index in 0..<6 {
            guard let word: UInt64 = nativeNumber(bytes, at: offset + 8 * index) else { return nil }
            words[index] = word
        }
    }

    var bytes: [UInt8] { withUnsafeBytes(of: words) { Array($0.prefix(Self.size)) } }

    /// - Parameter index: less than `size`.
    subscript(index: Int) -> UInt8 { withUnsafeBytes(of: words) { $0[index] } }
}

/// A part of `struct tcp_info` (linux/tcp.h).
package struct TCPInfo: Equatable {
    /// How long ago the app sent and received data, in ms. The kernel's clock has ticks of up to 10 ms.
    package var lastSent: UInt32
    package var lastReceived: UInt32
    /// Bytes since the connection was made, without a FIN.
    package var received: UInt64
    package var sent: UInt64

    /// - Returns: `nil` for a kernel that does not count the bytes sent (before 4.19).
    init?(parsing bytes: ArraySlice<UInt8>) {
        guard let lastSent: UInt32 = nativeNumber(bytes, at: 44),
            let lastReceived: UInt32 = nativeNumber(bytes, at: 52),
            let received: UInt64 = nativeNumber(bytes, at: 128), let sent: UInt64 = nativeNumber(bytes, at: 200)
        else { return nil }
        self.lastSent = lastSent
        self.lastReceived = lastReceived
        self.received = received
        self.sent = sent
    }
}

/// An AF_UNIX socket, as linux/unix_diag.h describes it.
package struct UnixQueue: Equatable {
    package var inode: UInt64
    package var isListening: Bool
    /// Of a listener: how many connections wait. Of others: bytes that were not read, of datagrams those of the first.
    package var unread: UInt64
    /// The inode of the socket that it is connected to; 0: of none, or its process has closed it.
    package var peer: UInt64
    /// Of a listener: the inodes of the sockets whose connections wait; 0 as of `peer`.
    package var clients: [UInt64]
    /// It is bound, or was accepted by a listener, whose address it has then.
    package var hasName: Bool

    /// - Parameter bytes: a message without its netlink header: `struct unix_diag_msg` and attributes.
    init?(parsing bytes: ArraySlice<UInt8>) {
        guard bytes.count >= 16, let inode: UInt32 = nativeNumber(bytes, at: 4) else { return nil }
        self.inode = UInt64(inode)
        isListening = bytes[bytes.startIndex + 2] == InternetSocket.State.listening
        // UNIX_DIAG_RQLEN
        let queue: UInt32? = netlinkAttribute(4, of: bytes.dropFirst(16)).flatMap { nativeNumber($0, at: 0) }
        unread = UInt64(queue ?? 0)
        // UNIX_DIAG_PEER
        let other: UInt32? = netlinkAttribute(2, of: bytes.dropFirst(16)).flatMap { nativeNumber($0, at: 0) }
        peer = UInt64(other ?? 0)
        // UNIX_DIAG_NAME
        hasName = netlinkAttribute(0, of: bytes.dropFirst(16)) != nil
        // UNIX_DIAG_ICONS
        let waiting = netlinkAttribute(3, of: bytes.dropFirst(16)) ?? []
        clients = stride(from: 0, to: waiting.count - waiting.count % 4, by: 4).map { offset in
            let inode: UInt32? = nativeNumber(waiting, at: offset)
            return UInt64(inode ?? 0)
        }
    }
}

/// A message of NETLINK_SOCK_DIAG.
enum DiagnosticMessage: Equatable {
    case socket(ArraySlice<UInt8>)
    /// The end of a dump.
    case done
    case failed(errno: Int32)
}

/// Splits a datagram of the kernel. What does not have the form of a message ends it.
func diagnosticMessages(_ bytes: [UInt8]) -> [DiagnosticMessage] {
    var messages: [DiagnosticMessage] = []
    var rest = bytes[...]
    while let length: UInt32 = nativeNumber(rest, at: 0), let type: UInt16 = nativeNumber(rest, at: 4), length >= 16,
        Int(length) <= rest.count
    {
        let payload = rest.dropFirst(16).prefix(Int(length) - 16)
        switch type {
        case 2, 3:  // NLMSG_ERROR, and NLMSG_DONE, which may have an error too
            let code: Int32 = nativeNumber(payload, at: 0) ?? 0
            messages.append(code == 0 ? .done : .failed(errno: code == .min ? .max : abs(code)))
        case 20: messages.append(.socket(payload))  // SOCK_DIAG_BY_FAMILY
        default: break
        }
        rest = rest.dropFirst((Int(length) + 3) & ~3)
    }
    return messages
}

/// Returns the contents of the first attribute of a type (`struct rtattr`).
func netlinkAttribute(_ wanted: UInt16, of bytes: ArraySlice<UInt8>) -> ArraySlice<UInt8>? {
    var rest = bytes
    while let length: UInt16 = nativeNumber(rest, at: 0), let type: UInt16 = nativeNumber(rest, at: 2), length >= 4,
        Int(length) <= rest.count
    {
        // The upper bits are flags (NLA_F_NESTED, NLA_F_NET_BYTEORDER).
        if type & 0x3fff == wanted { return rest.dropFirst(4).prefix(Int(length) - 4) }
        rest = rest.dropFirst((Int(length) + 3) & ~3)
    }
    return nil
}

/// Requests of NETLINK_SOCK_DIAG.
enum DiagnosticRequest {
    /// IPPROTO_TCP and IPPROTO_UDP.
    static let tcp: UInt8 = 6
    static let udp: UInt8 = 17
    static let families: [UInt8] = [2, 10]

    /// All sockets of a family and protocol, without the counters of TCP.
    /// - Parameter cgroup: only those that were created in this group, or by a listener of this group
    ///   (INET_DIAG_BC_CGROUP_COND, since Linux 5.9).
    /// - Parameter onlyListening: only those that listen. They have a table of their own, so the others cost no time.
    static func all(
        family: UInt8, protocol number: UInt8, cgroup: UInt64? = nil, onlyListening: Bool = false
    ) -> [UInt8] {
        var filter: [UInt8] = []
        if let cgroup {
            // An attribute (INET_DIAG_REQ_BYTECODE) with one operation: of 12 bytes, to its end or beyond.
            filter += nativeBytes(UInt16(16)) + nativeBytes(UInt16(1))
            filter += [13, 12] + nativeBytes(UInt16(16)) + nativeBytes(cgroup)
        }
        let identity = [UInt8](repeating: 0, count: SocketIdentity.size)
        let states: UInt32 = onlyListening ? 1 << 10 : .max  // TCP_LISTEN
        return request(inet(family, number, identity, states: states) + filter, isDump: true)
    }

    /// One TCP socket, with its counters: for these the kernel waits for its lock. Only a helper thread sends this.
    static func exact(_ socket: KnownSocket) -> [UInt8] {
        request(inet(socket.family, tcp, socket.identity.bytes, hasCounters: true), isDump: false)
    }

    /// The same socket without INET_DIAG_INFO, for which the kernel takes the socket's lock.
    static func brief(_ socket: KnownSocket) -> [UInt8] {
        request(inet(socket.family, tcp, socket.identity.bytes), isDump: false)
    }

    /// All AF_UNIX sockets, or the one with an inode.
    static func unix(inode: UInt64?) -> [UInt8] {
        // UDIAG_SHOW_NAME, UDIAG_SHOW_PEER, UDIAG_SHOW_ICONS and UDIAG_SHOW_RQLEN, and a cookie that is not compared.
        let body: [UInt8] =
            [1, 0, 0, 0] + nativeBytes(UInt32.max) + nativeBytes(UInt32(truncatingIfNeeded: inode ?? 0))
            + nativeBytes(UInt32(0x1d)) + nativeBytes(UInt64.max)
        return request(body, isDump: inode == nil)
    }

    /// `struct inet_diag_req_v2`.
    /// - Parameters:
    ///   - hasCounters: with INET_DIAG_INFO.
    ///   - states: a bit for each state of TCP.
    private static func inet(
        _ family: UInt8, _ number: UInt8, _ identity: [UInt8], hasCounters: Bool = false, states: UInt32 = .max
    ) -> [UInt8] {
        var body: [UInt8] = []
        body.reserveCapacity(8 + SocketIdentity.size)
        body += [family, number, hasCounters ? 2 : 0, 0]
        body.append(native: states)
        body += identity
        return body
    }

    private static func request(_ body: [UInt8], isDump: Bool) -> [UInt8] {
        // Without the temporary arrays of `+`: a client waits.
        var message: [UInt8] = []
        message.reserveCapacity(16 + body.count)
        message.append(native: UInt32(16 + body.count))
        message.append(native: UInt16(20))  // SOCK_DIAG_BY_FAMILY
        message.append(native: UInt16(isDump ? 0x301 : 1))  // NLM_F_REQUEST, and NLM_F_DUMP
        message.append(native: UInt64(1))
        message += body
        return message
    }
}

/// A TCP socket that a look has found before.
package struct KnownSocket: Hashable {
    var family: UInt8
    var identity: SocketIdentity
}

/// Reads a number in the byte order of the machine; `nil` beyond the end.
func nativeNumber<Number: FixedWidthInteger>(_ bytes: ArraySlice<UInt8>, at offset: Int) -> Number? {
    let size = MemoryLayout<Number>.size
    guard offset >= 0, offset <= bytes.count, size <= bytes.count - offset else { return nil }
    let start = bytes.startIndex + offset
    var value: Number = 0
    withUnsafeMutableBytes(of: &value) { $0.copyBytes(from: bytes[start..<start + size]) }
    return value
}

extension Array<UInt8> {
    /// Appends a number in the byte order of the machine.
    fileprivate mutating func append<Number: FixedWidthInteger>(native number: Number) {
        Swift.withUnsafeBytes(of: number) { append(contentsOf: $0) }
    }
}

func nativeBytes<Number: FixedWidthInteger>(_ value: Number) -> [UInt8] {
    withUnsafeBytes(of: value) { Array($0) }
}
