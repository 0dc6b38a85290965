import Glibc
import Posix
import Systemd
import TestKit
import Testing

@Suite("Hostile peers", .serialized)
struct HostilePeerTests {
    /// Whether the other end closes a connection within 10s. A child that another test starts keeps the other end open until
    /// it executes its program.
    private func isClosed(_ descriptor: SharedDescriptor) -> Bool {
        var polled = pollfd(fd: descriptor.raw, events: Int16(POLLIN), revents: 0)
        guard poll(&polled, 1, 10_000) == 1 else { return false }
        var byte: UInt8 = 0
        return recv(descriptor.raw, &byte, 1, Int32(MSG_DONTWAIT)) == 0 || errno == ECONNRESET
    }

    @Test("a peer that does not finish the handshake in time is disconnected; other peers stay")
    func silent() throws {
        var limits = BusServer.Limits()
        limits.handshake = .seconds(3)
        let stage = try Stage(limits: limits)
        let client = try stage.client()
        #expect(try stage.ask(client, "Who").get().count == 2)
        let silent = try stage.bareClient()
        #expect(try stage.loop.serve { stage.gone.count == 1 })
        #expect(stage.gone.first?.hasPrefix("it did not finish the handshake within") == true)
        #expect(isClosed(silent))
        #expect(try stage.ask(client, "Who").get().count == 2)
        #expect(stage.server.peers.count == 1)
    }

    @Test("no timer is left of a client that has finished the handshake, or has left before")
    func finished() throws {
        let stage = try Stage()
        let client = try stage.client()
        #expect(try stage.ask(client, "Who").get().count == 2)
        #expect(!stage.server.awaitsHandshake)
        let silent = try stage.bareClient()
        #expect(try stage.loop.serve { stage.server.awaitsHandshake })
        shutdown(silent.raw, Int32(SHUT_RDWR))
        #expect(try stage.loop.serve { stage.gone.count == 1 })
        #expect(!stage.server.awaitsHandshake)
        #expect(try stage.ask(client, "Who").get().count == 2)
    }

    @Test(
        "a peer that sends no D-Bus handshake is disconnected",
        arguments: ["\0GET / HTTP/1.1\r\n\r\n", "garbage", "\0\0\0\0\r\n"])
    func garbage(text: String) throws {
        var limits = BusServer.Limits()
        limits.handshake = .seconds(3)
        let stage = try Stage(limits: limits)
        let bare = try stage.bareClient()
        #expect(send(bare.raw, text, text.utf8.count, Int32(MSG_NOSIGNAL)) == text.utf8.count)
        // At once, or at the handshake timeout if the bytes could still become a handshake.
        #expect(try stage.loop.serve { stage.gone.count + stage.warnings.count == 1 })
        #expect(stage.server.peers.isEmpty)
        #expect(try stage.ask(try stage.client(), "Who").get().count == 2)
    }

    @Test("bytes after the handshake that are not a D-Bus message end that connection only")
    func garbageLater() throws {
        let stage = try Stage()
        let bare = try stage.bareClient()
        let hello = "\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n" + String(repeating: "\u{7f}", count: 256)
        #expect(send(bare.raw, hello, hello.utf8.count, Int32(MSG_NOSIGNAL)) == hello.utf8.count)
        #expect(try stage.loop.serve { stage.gone.count == 1 })
        #expect(try stage.ask(try stage.client(), "Who").get().count == 2)
    }

    @Test("a call that arrives in one piece with the handshake is answered")
    func impatient() throws {
        let stage = try Stage()
        let bare = try stage.bareClient()
        let bytes = Array("\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n".utf8) + Stage.pingCall()
        #expect(send(bare.raw, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
        var received: [UInt8] = []
        let source = try stage.loop.addDescriptor(bare, events: .readable) { _ in
            var buffer = [UInt8](repeating: 0, count: 1024)
            let count = recv(bare.raw, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            received += buffer.prefix(max(0, count))
        }
        // "OK", 32 digits and a line end, then the answer: its second byte is METHOD_RETURN.
        #expect(try stage.loop.serve { received.count >= 6 + 37 + 16 })
        #expect(received.count > 44 && received[43] == 0x6c && received[44] == 2)
        source.cancel()
    }

    @Test("a peer that sends a message larger than the limit is disconnected before the message is complete")
    func endless() throws {
        var limits = BusServer.Limits()
        limits.peer.incomingBytes = 1 << 20
        let stage = try Stage(limits: limits)
        let client = try stage.client()
        let bare = try stage.bareClient()
        // The header of a call with a body of 100 MiB, and repeated parts of that body.
        var bytes = Array("\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n".utf8)
        bytes += [0x6c, 1, 0, 1, 0, 0, 0x40, 6, 1, 0, 0, 0, 0, 0, 0, 0]
        bytes += [UInt8](repeating: 0, count: 4096)
        var sent = 0
        let source = try stage.loop.addDescriptor(bare, events: .writable) { _ in
            let count = send(bare.raw, bytes, bytes.count, Int32(MSG_NOSIGNAL | MSG_DONTWAIT))
            if sent == 0 { bytes = [UInt8](repeating: 0, count: 65_536) }
            sent += max(0, count)
        }
        #expect(try stage.loop.serve { !stage.gone.isEmpty })
        source.cancel()
        #expect(stage.gone == ["it sends a message of more than 1048576 bytes"])
        #expect(sent >= 1 << 20)
        #expect(try stage.ask(client, "Who").get().count == 2)
    }

    @Test("connections beyond the limit are refused until one ends")
    func crowd() throws {
        var limits = BusServer.Limits()
        limits.peers = 3
        let stage = try Stage(limits: limits)
        let clients = try (0..<3).map { _ in try stage.client() }
        #expect(try stage.loop.serve { stage.server.peers.count == 3 })
        let refused = try stage.bareClient()
        #expect(try stage.loop.serve { !stage.warnings.isEmpty })
        #expect(isClosed(refused))
        #expect(stage.warnings.first?.contains("3 connections are open") == true)
        clients[0].close()
        #expect(try stage.loop.serve { stage.server.peers.count == 2 })
        #expect(try stage.ask(try stage.client(), "Who").get().count == 2)
        withExtendedLifetime(clients) {}
    }

    @Test("a client that is refused repeatedly causes at most five warnings a second")
    func persistent() throws {
        var limits = BusServer.Limits()
        limits.peers = 0
        let stage = try Stage(limits: limits)
        for _ in 0..<100 {
            let refused = try stage.bareClient()
            while !isClosedNow(refused) { _ = try stage.loop.runOnce(timeout: .milliseconds(10)) }
        }
        // Five a second; a slow machine may need several seconds.
        #expect((5...50).contains(stage.warnings.count))
    }

    private func isClosedNow(_ descriptor: SharedDescriptor) -> Bool {
        var byte: UInt8 = 0
        return recv(descriptor.raw, &byte, 1, Int32(MSG_DONTWAIT)) == 0 || errno == ECONNRESET
    }

    @Test(
        "a peer whose descriptor belongs to no message is disconnected; the loop's thread closes neither descriptor nor socket"
    )
    func descriptors() throws {
        // A process that another test forks meanwhile would have the same sockets.
        try inOwnProcess {
            let (loop, peer, far, closer) = try acceptedPeer()
            var reason: String?
            peer.onGone = { reason = $0 }
            let hello = "\0AUTH EXTERNAL\r\nDATA\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\n"
            #expect(send(far.raw, hello, hello.utf8.count, Int32(MSG_NOSIGNAL)) == hello.utf8.count)
            #expect(try loop.serve { peer.isReady })
            var answer = [UInt8](repeating: 0, count: 200)
            let length = recv(far.raw, &answer, answer.count, Int32(MSG_DONTWAIT))
            let text = String(decoding: answer.prefix(max(0, length)), as: UTF8.self)
            // Without consent, clients end their connection instead of sending a descriptor.
            #expect(text.hasSuffix("\r\nAGREE_UNIX_FD\r\n"), "\(text)")
            let (writer, reader) = try #require(lingeringConnection())
            #expect(sendDescriptor(writer, on: far.raw))
            close(writer)
            #expect(try loop.serve { reason != nil })
            #expect(reason == "it sent a descriptor, which is not accepted here")
            #expect(isClosed(far))
            // close(2) of the TCP socket blocks until its reader is gone; the loop has continued.
            #expect(closer.pending > 0)
            close(reader)
            try waitUntilClosed(by: closer)
        }
    }

    @Test(
        "a call with a descriptor gets an error, and its connection stays; the loop's thread does not close the descriptor",
        arguments: [0, 3])
    func callWithDescriptor(pings: Int) throws {
        // A process that another test forks meanwhile would have the same sockets.
        try inOwnProcess {
            let (loop, peer, far, closer) = try acceptedPeer()
            var reason: String?
            peer.onGone = { reason = $0 }
            #expect(send(far.raw, BareBus.handshake, BareBus.handshake.count, Int32(MSG_NOSIGNAL)) > 0)
            #expect(try loop.serve { peer.isReady })
            var answers: [UInt8] = []
            let source = try loop.addDescriptor(far, events: .readable) { _ in
                var buffer = [UInt8](repeating: 0, count: 1024)
                let count = recv(far.raw, &buffer, buffer.count, Int32(MSG_DONTWAIT))
                answers += buffer.prefix(max(0, count))
            }
            // With calls before it in the same bytes, and one after it.
            let before = Array((0..<pings).map { _ in BareBus.pingCall(wantsReply: false) }.joined())
            let (writer, reader) = try #require(lingeringConnection())
            #expect(sendDescriptor(writer, on: far.raw, with: before + BareBus.pingCall(serial: 2, descriptors: 1)))
            close(writer)
            let error = Array("org.freedesktop.DBus.Error.NotSupported".utf8)
            #expect(try loop.serve { answers.firstRange(of: error) != nil || reason != nil })
            #expect(reason == nil)
            // close(2) of the TCP socket blocks until its reader is gone; the loop has continued.
            #expect(closer.pending > 0)
            let length = answers.count
            let ping = BareBus.pingCall(serial: 3)
            #expect(send(far.raw, ping, ping.count, Int32(MSG_NOSIGNAL)) == ping.count)
            #expect(try loop.serve { answers.count > length || reason != nil })
            #expect(reason == nil && peer.isReady)
            source.cancel()
            close(reader)
            try waitUntilClosed(by: closer)
        }
    }

    /// A peer of a server, and the client's end of its connection.
    private func acceptedPeer() throws -> (EventLoop, BusPeer, SharedDescriptor, DescriptorCloser) {
        let loop = try EventLoop()
        let (near, far) = try socketPair()
        let closer = DescriptorCloser()
        let peer = try BusPeer(
            loop: loop, descriptor: near.descriptor.duplicate(), role: .server(names: [Exhibit.name]), closer: closer)
        return (loop, peer, far, closer)
    }

    private func sendDescriptor(_ descriptor: Int32, on socket: Int32, with bytes: [UInt8] = [0x6c]) -> Bool {
        sendMessage(bytes, with: [descriptor], on: socket) == bytes.count
    }

    @Test("a peer that does not read its signals is disconnected, and other peers receive all of them")
    func doesNotRead() throws {
        var limits = BusServer.Limits()
        limits.peer.queuedMessages = 50
        let stage = try Stage(limits: limits)
        let client = try stage.client()
        var delivered = 0
        client.onSignal = { _ in delivered += 1 }
        let blocked = try stage.bareClient()
        let hello = "\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n"
        #expect(send(blocked.raw, hello, hello.utf8.count, Int32(MSG_NOSIGNAL)) == hello.utf8.count)
        #expect(try stage.loop.serve { stage.server.peers.count == 2 && stage.server.peers.allSatisfy(\.isReady) })
        let text = Variant.string(String(repeating: "x", count: 1000))
        var sent = 0
        while stage.gone.isEmpty, sent < 10_000 {
            sent += 1
            try stage.server.emitSignal(
                path: Exhibit.path, interface: Exhibit.manager, member: "Changed", [text, .uint32(UInt32(sent))])
            #expect(try stage.loop.serve { delivered == sent })
        }
        #expect(stage.gone.first?.hasPrefix("it does not read") == true)
        #expect(stage.server.peers.count == 1)
        #expect(try stage.ask(client, "Who").get().count == 2)
    }

    @Test(
        "a peer that reads is not disconnected while hundreds of apps' sources come before it, and receives all signals"
    )
    func readsLater() throws {
        var limits = BusServer.Limits()
        limits.peer.queuedMessages = 200
        let stage = try Stage(limits: limits)
        let reader = try stage.bareClient()
        try reader.descriptor.setNonBlocking(true)
        let hello = "\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n"
        #expect(send(reader.raw, hello, hello.utf8.count, Int32(MSG_NOSIGNAL)) == hello.utf8.count)
        #expect(try stage.loop.serve { stage.server.peers.first?.isReady == true })
        var received = 0
        func read() {
            var buffer = [UInt8](repeating: 0, count: 1 << 16)
            while case let count = recv(reader.raw, &buffer, buffer.count, 0), count > 0 { received += count }
        }
        let text = Variant.string(String(repeating: "x", count: 4000))
        let pipe = try TestPipe()
        pipe.write("x")
        var served = 0
        var isCongested = false
        var sources: [EventSource] = []
        for _ in 0..<300 {
            let copy = SharedDescriptor(try pipe.reading.descriptor.duplicate())
            var source: EventSource?
            source = try stage.loop.addDescriptor(copy, events: .readable) { _ in
                source?.isEnabled = false
                served += 1
                for _ in 0..<2 {
                    try? stage.server.emitSignal(
                        path: Exhibit.path, interface: Exhibit.manager, member: "Changed", [text, .uint32(1)])
                }
                // The peer begins to read when the kernel's buffer is full and messages wait.
                isCongested = isCongested || served == 60
                if isCongested { read() }
            }
            if let source { sources.append(source) }
        }
        #expect(
            try stage.loop.serve {
                if served == 300 { read() }
                return served == 300 && received >= 600 * 4000 || !stage.gone.isEmpty
            })
        #expect(served == 300)
        #expect(stage.gone == [])
        #expect(received >= 600 * 4000)
        for source in sources { source.cancel() }
    }

    @Test("a peer that calls without reading the answers is disconnected")
    func greedy() throws {
        var limits = BusServer.Limits()
        limits.peer.queuedMessages = 50
        let stage = try Stage(limits: limits)
        let asker = try stage.client()
        // Its own loop runs for the handshake only, so that it writes and never reads.
        let peerLoop = try EventLoop()
        let blocked = try BusPeer(loop: peerLoop, descriptor: UnixSocket.connect(to: stage.path), role: .client)
        #expect(
            try stage.loop.serve {
                _ = try? peerLoop.runOnce(timeout: .zero)
                return blocked.isReady
            })
        let large = Variant.variant(.string(String(repeating: "x", count: 10_000)))
        for _ in 0..<1000 where stage.gone.isEmpty {
            try blocked.call(
                path: Exhibit.path, interface: Exhibit.manager, member: "Echo", [large], timeout: nil
            ) { _ in }
            while try stage.loop.runOnce(timeout: .zero) {}
        }
        #expect(try stage.loop.serve { !stage.gone.isEmpty })
        #expect(stage.gone.first?.hasPrefix("it does not read") == true)
        #expect(try stage.ask(asker, "Who").get().count == 2)
    }

    @Test("a message with too many values, too deep nesting or too much text is refused with a reason")
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
