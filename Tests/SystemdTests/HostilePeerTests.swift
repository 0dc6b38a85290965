import Glibc
import Systemd
import Testing

@Suite("Hostile peers", .serialized)
struct HostilePeerTests {
    /// Whether the other end has closed a connection.
    /// Waits for it: a child that another test is just starting has the other end open until it executes its program.
    private func isClosed(_ descriptor: Int32) -> Bool {
        var polled = pollfd(fd: descriptor, events: Int16(POLLIN), revents: 0)
        guard poll(&polled, 1, 10_000) == 1 else { return false }
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT)) == 0 || errno == ECONNRESET
    }

    @Test("a peer that connects and says nothing is dropped; one that speaks stays")
    func silent() throws {
        var limits = BusServer.Limits()
        limits.handshake = .milliseconds(500)
        let stage = try Stage(limits: limits)
        let client = try stage.client()
        #expect(try stage.ask(client, "Who").get().count == 2)
        let silent = try stage.stranger()
        defer { close(silent) }
        #expect(try stage.loop.serve { stage.gone.count == 1 })
        #expect(stage.gone.first?.hasPrefix("it said nothing for") == true)
        #expect(isClosed(silent))
        #expect(try stage.ask(client, "Who").get().count == 2)
        #expect(stage.server.peers.count == 1)
    }

    @Test("a peer that sends garbage is dropped", arguments: ["\0GET / HTTP/1.1\r\n\r\n", "garbage", "\0\0\0\0\r\n"])
    func garbage(text: String) throws {
        var limits = BusServer.Limits()
        limits.handshake = .milliseconds(500)
        let stage = try Stage(limits: limits)
        let stranger = try stage.stranger()
        defer { close(stranger) }
        #expect(send(stranger, text, text.utf8.count, Int32(MSG_NOSIGNAL)) == text.utf8.count)
        // At once, or where it could still become a handshake, when the time for that is over.
        #expect(try stage.loop.serve { stage.gone.count + stage.complaints.count == 1 })
        #expect(stage.server.peers.isEmpty)
        #expect(try stage.ask(try stage.client(), "Who").get().count == 2)
    }

    @Test("garbage after a good handshake ends that connection alone")
    func garbageLater() throws {
        let stage = try Stage()
        let stranger = try stage.stranger()
        defer { close(stranger) }
        let hello = "\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n" + String(repeating: "\u{7f}", count: 256)
        #expect(send(stranger, hello, hello.utf8.count, Int32(MSG_NOSIGNAL)) == hello.utf8.count)
        #expect(try stage.loop.serve { stage.gone.count == 1 })
        #expect(try stage.ask(try stage.client(), "Who").get().count == 2)
    }

    @Test("a call that comes in one piece with the handshake is answered")
    func impatient() throws {
        let stage = try Stage()
        let stranger = try stage.stranger()
        defer { close(stranger) }
        // A call of org.freedesktop.DBus.Peer.Ping of "/", little endian, serial 1 (D-Bus specification, "Message Format").
        var bytes = Array("\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n".utf8)
        bytes += [0x6c, 1, 0, 1, 0, 0, 0, 0, 1, 0, 0, 0, 69, 0, 0, 0]
        bytes += [1, 1, 0x6f, 0, 1, 0, 0, 0, 0x2f, 0, 0, 0, 0, 0, 0, 0]
        bytes += [2, 1, 0x73, 0, 25, 0, 0, 0] + Array("org.freedesktop.DBus.Peer\0".utf8) + [0, 0, 0, 0, 0, 0]
        bytes += [3, 1, 0x73, 0, 4, 0, 0, 0] + Array("Ping\0".utf8) + [0, 0, 0]
        #expect(send(stranger, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
        var received: [UInt8] = []
        let source = try stage.loop.addDescriptor(stranger, events: .readable) { _ in
            var buffer = [UInt8](repeating: 0, count: 1024)
            let count = recv(stranger, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            received += buffer.prefix(max(0, count))
        }
        // "OK", 32 digits and a line end, then the answer: its second byte says METHOD_RETURN.
        #expect(try stage.loop.serve { received.count >= 6 + 37 + 16 })
        #expect(received.count > 44 && received[43] == 0x6c && received[44] == 2)
        source.cancel()
    }

    @Test("a message that is larger than we take is not collected")
    func endless() throws {
        var limits = BusServer.Limits()
        limits.peer.incomingBytes = 1 << 20
        let stage = try Stage(limits: limits)
        let client = try stage.client()
        let stranger = try stage.stranger()
        defer { close(stranger) }
        // The head of a call with a body of 100 MiB, of which more and more comes.
        var bytes = Array("\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n".utf8)
        bytes += [0x6c, 1, 0, 1, 0, 0, 0x40, 6, 1, 0, 0, 0, 0, 0, 0, 0]
        bytes += [UInt8](repeating: 0, count: 4096)
        var sent = 0
        let source = try stage.loop.addDescriptor(stranger, events: .writable) { _ in
            let count = send(stranger, bytes, bytes.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            if sent == 0 { bytes = [UInt8](repeating: 0, count: 65_536) }
            sent += max(0, count)
        }
        #expect(try stage.loop.serve { !stage.gone.isEmpty })
        source.cancel()
        #expect(stage.gone == ["it sends a message of more than 1048576 bytes"])
        #expect(sent >= 1 << 20)
        #expect(try stage.ask(client, "Who").get().count == 2)
    }

    @Test("connections beyond the limit are refused, and there is room again when one goes")
    func crowd() throws {
        var limits = BusServer.Limits()
        limits.peers = 3
        let stage = try Stage(limits: limits)
        let clients = try (0..<3).map { _ in try stage.client() }
        #expect(try stage.loop.serve { stage.server.peers.count == 3 })
        let refused = try stage.stranger()
        defer { close(refused) }
        #expect(try stage.loop.serve { !stage.complaints.isEmpty })
        #expect(isClosed(refused))
        #expect(stage.complaints.first?.contains("there are 3 already") == true)
        clients[0].close()
        #expect(try stage.loop.serve { stage.server.peers.count == 2 })
        #expect(try stage.ask(try stage.client(), "Who").get().count == 2)
        withExtendedLifetime(clients) {}
    }

    @Test("whoever is refused again and again does not fill the log")
    func persistent() throws {
        var limits = BusServer.Limits()
        limits.peers = 0
        let stage = try Stage(limits: limits)
        for _ in 0..<100 {
            let refused = try stage.stranger()
            defer { close(refused) }
            while !isClosedNow(refused) { _ = try stage.loop.runOnce(timeout: .milliseconds(10)) }
        }
        // Five a second; on a slow machine this may be several.
        #expect((5...50).contains(stage.complaints.count))
    }

    private func isClosedNow(_ descriptor: Int32) -> Bool {
        var byte: UInt8 = 0
        return recv(descriptor, &byte, 1, Int32(MSG_DONTWAIT)) == 0 || errno == ECONNRESET
    }

    @Test("a descriptor from a stranger ends that connection; neither is closed here")
    func descriptors() throws {
        let loop = try EventLoop()
        var closed: [Int32] = []
        let closer = StrangersCloser(close: { descriptor, _ in closed.append(descriptor) }, pending: { _ in 0 })
        var ends: [Int32] = [-1, -1]
        #expect(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
        defer { close(ends[0]) }
        let peer = try BusPeer(
            loop: loop, descriptor: ends[1], role: .server(names: [Exhibit.name]), closer: closer)
        var reason: String?
        peer.onGone = { reason = $0 }
        let hello = "\0AUTH EXTERNAL\r\nDATA\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n"
        #expect(send(ends[0], hello, hello.utf8.count, Int32(MSG_NOSIGNAL)) == hello.utf8.count)
        #expect(try loop.serve { peer.isReady })
        var answer = [UInt8](repeating: 0, count: 200)
        let length = recv(ends[0], &answer, answer.count, Int32(MSG_DONTWAIT))
        let text = String(decoding: answer.prefix(max(0, length)), as: UTF8.self)
        // Not AGREE_UNIX_FD.
        #expect(text.hasSuffix("\r\nERROR\r\n"), "\(text)")
        #expect(sendDescriptor(ends[0], on: ends[0]))
        #expect(try loop.serve { reason != nil })
        #expect(reason == "it sent a descriptor, which nobody here takes")
        #expect(closed.count == 2 && closed.contains(ends[1]))
        #expect(closed.allSatisfy { fcntl($0, F_GETFD) >= 0 })
        #expect(isClosed(ends[0]))
        for descriptor in closed { close(descriptor) }
    }

    private func sendDescriptor(_ descriptor: Int32, on socket: Int32) -> Bool {
        var byte: UInt8 = 0x6c
        // A cmsghdr (length, SOL_SOCKET, SCM_RIGHTS), and a descriptor, padded (cmsg(3)).
        var control: [Int32] = [20, 0, SOL_SOCKET, 1, descriptor, 0]
        return withUnsafeMutableBytes(of: &byte) { byte in
            control.withUnsafeMutableBytes { control in
                var part = iovec(iov_base: byte.baseAddress, iov_len: 1)
                return withUnsafeMutablePointer(to: &part) { part in
                    var message = msghdr()
                    message.msg_iov = part
                    message.msg_iovlen = 1
                    message.msg_control = control.baseAddress
                    message.msg_controllen = 20
                    return sendmsg(socket, &message, Int32(MSG_NOSIGNAL)) == 1
                }
            }
        }
    }

    @Test("a peer that does not read its signals is dropped, and the others get them all")
    func deaf() throws {
        var limits = BusServer.Limits()
        limits.peer.queuedMessages = 50
        let stage = try Stage(limits: limits)
        let client = try stage.client()
        var heard = 0
        client.onSignal = { _ in heard += 1 }
        let deaf = try stage.stranger()
        defer { close(deaf) }
        let hello = "\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n"
        #expect(send(deaf, hello, hello.utf8.count, Int32(MSG_NOSIGNAL)) == hello.utf8.count)
        #expect(try stage.loop.serve { stage.server.peers.count == 2 && stage.server.peers.allSatisfy(\.isReady) })
        let text = Variant.string(String(repeating: "x", count: 1000))
        var sent = 0
        while stage.gone.isEmpty, sent < 10_000 {
            sent += 1
            try stage.server.emitSignal(
                path: Exhibit.path, interface: Exhibit.manager, member: "Changed", [text, .uint32(UInt32(sent))])
            #expect(try stage.loop.serve { heard == sent })
        }
        #expect(stage.gone.first?.hasPrefix("it does not read") == true)
        #expect(stage.server.peers.count == 1)
        #expect(try stage.ask(client, "Who").get().count == 2)
    }

    @Test("a peer that asks and asks without reading is dropped")
    func greedy() throws {
        var limits = BusServer.Limits()
        limits.peer.queuedMessages = 50
        let stage = try Stage(limits: limits)
        let asker = try stage.client()
        // Its own loop runs for the handshake only, so that it writes and never reads.
        let deafLoop = try EventLoop()
        let deaf = try BusPeer(loop: deafLoop, descriptor: try UnixSocket.connect(to: stage.path), role: .client)
        #expect(
            try stage.loop.serve {
                _ = try? deafLoop.runOnce(timeout: .zero)
                return deaf.isReady
            })
        let large = Variant.variant(.string(String(repeating: "x", count: 10_000)))
        for _ in 0..<1000 where stage.gone.isEmpty {
            try deaf.call(
                path: Exhibit.path, interface: Exhibit.manager, member: "Echo", [large], timeout: nil
            ) { _ in }
            while try stage.loop.runOnce(timeout: .zero) {}
        }
        #expect(try stage.loop.serve { !stage.gone.isEmpty })
        #expect(stage.gone.first?.hasPrefix("it does not read") == true)
        #expect(try stage.ask(asker, "Who").get().count == 2)
    }

    @Test("values nested too deep, or too many of them, are refused with a reason")
    func limits() throws {
        let stage = try Stage()
        let client = try stage.client()
        var deep = Variant.int32(0)
        for _ in 0..<40 { deep = .variant(deep) }
        guard case .failure(let tooDeep) = try stage.ask(client, "Echo", [deep]) else { throw BusTests.Missing() }
        #expect(tooDeep.name == "org.freedesktop.DBus.Error.LimitsExceeded")
        #expect(tooDeep.message.contains("nested deeper than 32"))
        let many = Variant.variant(.array("b", Array(repeating: .bool(true), count: 100_000)))
        guard case .failure(let tooMany) = try stage.ask(client, "Echo", [many]) else { throw BusTests.Missing() }
        #expect(tooMany.message.contains("more than 100000 values"))
        let long = Variant.variant(.string(String(repeating: "x", count: 5 << 20)))
        guard case .failure(let tooLong) = try stage.ask(client, "Echo", [long]) else { throw BusTests.Missing() }
        #expect(tooLong.message.contains("bytes of text"))
        #expect(try stage.ask(client, "Who").get().count == 2)
    }
}
