import Glibc
import Posix
import Systemd
import TestKit
import Testing

/// Connections that another program resumes. The loop of the previous one does not run any more, as after execve(2).
@Suite("Resuming a connection")
struct HandoverTests {
    private func ask(_ client: BusPeer, _ loop: EventLoop, _ text: String) throws -> Variant? {
        var answer: Result<[Variant], BusError>?
        try client.call(
            path: Exhibit.path, interface: Exhibit.manager, member: "Echo", [.variant(.string(text))],
            timeout: testTimeout
        ) { answer = $0 }
        #expect(try loop.serve { answer != nil })
        return try answer?.get().first
    }

    @Test("a client's connection is resumed: it gets answers, errors and signals, and notices nothing")
    func client() throws {
        let stage = try Stage()
        let loop = try EventLoop()
        let client = try BusPeer(loop: loop, descriptor: UnixSocket.connect(to: stage.path), role: .client)
        var reason: String?
        var signals: [BusSignal] = []
        client.onGone = { reason = $0 }
        client.onSignal = { signals.append($0) }
        var first: Result<[Variant], BusError>?
        try client.call(
            path: Exhibit.path, interface: Exhibit.manager, member: "Echo", [.variant(.string("first"))],
            timeout: testTimeout
        ) { first = $0 }
        let isAnswered = try stage.loop.serve {
            _ = try? loop.runOnce(timeout: .zero)
            return first != nil
        }
        #expect(isAnswered)
        let previous = try #require(stage.server.peers.first)
        #expect(try stage.loop.serve { previous.canBeHandedOver })
        let socket = try previous.socketForHandover()
        let resumed = try BusPeer(
            loop: loop, descriptor: socket.descriptor.duplicate(), role: .server(names: [Exhibit.name]),
            number: previous.number, objects: stage.exhibit.objects(), resumption: .established)
        #expect(resumed.isReady && resumed.takesSignals)
        for number in 0..<3 {
            #expect(try ask(client, loop, "\(number)") == .variant(.string("\(number)")))
            try resumed.emitSignal(
                path: Exhibit.path, interface: Exhibit.manager, member: "Changed", [.string("mail"), .uint32(7)])
            #expect(try loop.serve { signals.count == number + 1 })
        }
        #expect(try loop.serve { resumed.canBeHandedOver })
        #expect(reason == nil)
    }

    @Test("a server resumes a connection with its number and with the time at which the client connected")
    func age() throws {
        let stage = try Stage()
        let client = try stage.client()
        #expect(try stage.ask(client, "Echo", [.variant(.bool(true))]).get().count == 1)
        let previous = try #require(stage.server.peers.first)
        #expect(try stage.loop.serve { previous.canBeHandedOver })
        let socket = try previous.socketForHandover()
        let next = try Stage()
        try next.server.resume(
            socket.descriptor.duplicate(), number: previous.number, connected: previous.connected)
        let resumed = try #require(next.server.peers.first)
        #expect(resumed.number == previous.number && resumed.connected == previous.connected)
    }

    @Test(
        "a connection to a message bus is resumed with its names: callers notice nothing",
        .enabled(if: PrivateBus.isPossible, PrivateBus.requirement))
    func messageBus() throws {
        let stage = try BusStage(PrivateBus())
        try stage.settle()
        let previous = try #require(stage.messageBus.peer)
        #expect(try stage.loop.serve { previous.canBeHandedOver })
        let socket = try previous.socketForHandover()
        let loop = try EventLoop()
        let exhibit = Exhibit()
        let next = try MessageBus(
            loop: loop, address: stage.bus.address, name: Exhibit.name, objects: exhibit.objects())
        var reasons: [String] = []
        next.onDown = { reasons.append($0) }
        next.resume(try socket.descriptor.duplicate())
        let client = try BusPeer(loop: loop, busAddress: stage.bus.address)
        #expect(try loop.serve { client.isReady && next.nameState == .owned })
        for number in 1...3 {
            var answer: Result<[Variant], BusError>?
            // The caller's credentials are requested from the bus first.
            try client.call(
                Exhibit.name, path: Exhibit.path, interface: Exhibit.manager, member: "Echo",
                [.variant(.int32(Int32(number)))], timeout: testTimeout
            ) { answer = $0 }
            #expect(try loop.serve { answer != nil })
            #expect(try answer?.get() == [.variant(.int32(Int32(number)))])
        }
        #expect(exhibit.calls == 3 && stage.exhibit.calls == 0)
        #expect(try loop.serve { next.peer?.canBeHandedOver ?? false })
        #expect(reasons == [])
    }

    @Test(
        "a connection to a message bus is handed over after the called program has ended, but not after a timeout",
        .enabled(if: PrivateBus.isPossible, PrivateBus.requirement))
    func withoutAnswer() throws {
        let stage = try BusStage(PrivateBus())
        try stage.settle()
        let peer = try #require(stage.messageBus.peer)
        #expect(try stage.loop.serve { peer.canBeHandedOver })
        let other = try BusStage(stage.bus, name: "org.example.Other", loop: stage.loop)
        try other.settle()
        let called = try #require(other.messageBus.peer)
        func call(timeout: Duration?, until isOver: @escaping () -> Bool = { true }) throws -> BusError? {
            var answer: Result<[Variant], BusError>?
            try peer.call(
                "org.example.Other", path: Exhibit.path, interface: Exhibit.manager, member: "Later", timeout: timeout
            ) { answer = $0 }
            #expect(!peer.canBeHandedOver)
            #expect(try stage.loop.serve { isOver() && answer != nil })
            guard case .failure(let error) = answer else { return nil }
            return error
        }
        let ended = try call(timeout: nil) {
            // The bus daemon answers instead of the program.
            if !other.exhibit.waiting.isEmpty { called.close() }
            return called.isGone
        }
        #expect(ended?.name == "org.freedesktop.DBus.Error.NoReply")
        #expect(try stage.loop.serve { peer.canBeHandedOver })
        let silent = try BusStage(stage.bus, name: "org.example.Other", loop: stage.loop)
        try silent.settle()
        let late = try call(timeout: .milliseconds(1))
        #expect(late?.name == "org.freedesktop.DBus.Error.NoReply")
        #expect(!peer.canBeHandedOver)
        #expect(silent.exhibit.calls == 0)
    }

    @Test(
        "a connection to a message bus is handed over after the end of a client is not waited for any more",
        .enabled(if: PrivateBus.isPossible, PrivateBus.requirement))
    func watched() throws {
        let stage = try BusStage(PrivateBus())
        try stage.settle()
        let client = try stage.client()
        try client.call(
            Exhibit.name, path: Exhibit.path, interface: Exhibit.manager, member: "Later", timeout: nil
        ) { _ in }
        #expect(try stage.loop.serve { !stage.exhibit.waiting.isEmpty })
        let call = try #require(stage.exhibit.waiting.first)
        var isGone = false
        let cancel = call.onDisconnect { isGone = true }
        call.reply()
        // The answers of the bus daemon about the client have arrived before this one.
        _ = try stage.ask(client, "Echo", [.variant(.bool(true))])
        let peer = try #require(stage.messageBus.peer)
        #expect(!peer.canBeHandedOver)
        cancel()
        #expect(try stage.loop.serve { peer.canBeHandedOver })
        client.close()
        let another = try stage.client()
        _ = try stage.ask(another, "Echo", [.variant(.bool(true))])
        #expect(!isGone)
    }

    @Test("a connection with a call that waits, or with a part of a message, is not handed over")
    func busy() throws {
        let stage = try Stage()
        let client = try stage.client()
        #expect(try stage.ask(client, "Echo", [.variant(.bool(true))]).get().count == 1)
        let peer = try #require(stage.server.peers.first)
        #expect(try stage.loop.serve { peer.canBeHandedOver })
        var later: Result<[Variant], BusError>?
        try client.call(path: Exhibit.path, interface: Exhibit.manager, member: "Later", timeout: nil) { later = $0 }
        #expect(try stage.loop.serve { !stage.exhibit.waiting.isEmpty })
        #expect(!peer.canBeHandedOver)
        peer.failCalls(BusError("org.example.Error.Replaced", "It was replaced."))
        #expect(peer.canBeHandedOver)
        #expect(try stage.loop.serve { later != nil })
        #expect(throws: BusError("org.example.Error.Replaced", "It was replaced.")) { try later?.get() }
        let bare = try stage.bareClient()
        let part = BareBus.handshake + BareBus.pingCall() + BareBus.pingCall(serial: 2).dropLast(10)
        #expect(send(bare.raw, part, part.count, Int32(MSG_NOSIGNAL)) == part.count)
        var answer: [UInt8] = []
        let source = try stage.loop.addDescriptor(bare, events: .readable) { _ in
            var buffer = [UInt8](repeating: 0, count: 1024)
            let count = recv(bare.raw, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            answer += buffer.prefix(max(0, count))
        }
        #expect(try stage.loop.serve { answer.count >= BareBus.handshakeAnswer + 16 })
        #expect(stage.server.peers.last?.canBeHandedOver == false)
        source.cancel()
    }
}
