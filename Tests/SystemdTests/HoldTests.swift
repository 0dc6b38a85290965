import Glibc
import Posix
import Systemd
import TestKit
import Testing

/// A server whose connections are handed over to another one, as before execve(2).
@Suite("Handing a server over")
struct HoldTests {
    /// The bytes that a client without a library receives.
    private final class Reader {
        let client: SharedDescriptor
        private(set) var bytes: [UInt8] = []

        init(_ client: SharedDescriptor) { self.client = client }

        /// Reads what has arrived.
        /// - Returns: how many bytes there are now.
        func read() -> Int {
            var buffer = [UInt8](repeating: 0, count: 1024)
            while case let count = recv(client.raw, &buffer, buffer.count, Int32(MSG_DONTWAIT)), count > 0 {
                bytes += buffer.prefix(count)
            }
            return bytes.count
        }

        func send(_ bytes: some Collection<UInt8>) {
            let bytes = Array(bytes)
            #expect(Glibc.send(client.raw, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
        }
    }

    /// Holds a server until nothing is read.
    private func holdServer(_ stage: Stage, limit: Duration = testTimeout) throws -> BusHold {
        var isDone = false
        let hold = try BusHold(stage.server, limit: limit) { isDone = true }
        #expect(try stage.loop.serve { isDone })
        return hold
    }

    /// What the next program knows of the connections, in their order. `nil`: one cannot be handed over.
    private func handOver(_ server: BusServer) throws -> [ResumedClient?] {
        try server.peers.map { peer in
            let handshake = peer.handshakeForHandover.map(BusResumption.handshake)
            guard let resumption = peer.canBeHandedOver ? BusResumption.established : handshake else { return nil }
            return ResumedClient(
                socket: try peer.socketForHandover(), number: peer.number, connected: peer.connected, resumption)
        }
    }

    @Test("a client is answered by the next server, whatever part of its handshake it had sent", arguments: 0...7)
    func handshake(step: Int) throws {
        let stage = try Stage()
        let reader = Reader(try stage.bareClient())
        let whole = BareBus.handshake
        let count = [0, 1, 2, 5, 16, 22, whole.count - 1, whole.count][step]
        reader.send(whole.prefix(count))
        #expect(try stage.loop.serve { stage.server.peers.first?.handshakeForHandover?.count == count })
        let hold = try holdServer(stage)
        let clients = try handOver(stage.server).compactMap { $0 }
        #expect(clients.map(\.resumption) == [.handshake(Array(whole.prefix(count)))])
        // The rest arrives while no program runs.
        reader.send(whole.dropFirst(count) + BareBus.pingCall())
        let next = try Stage()
        var isResumed = false
        next.server.resume(clients) {
            Issue.record("\($0)")
        } completion: {
            isResumed = true
        }
        // The answer begins after those to the handshake: its second byte is METHOD_RETURN.
        let answer = BareBus.handshakeAnswer
        #expect(try next.loop.serve { reader.read() >= answer + 16 })
        #expect(try next.loop.serve { isResumed })
        #expect(next.server.peers.first?.number == clients.first?.number)
        #expect(reader.bytes.count > answer + 1 && reader.bytes[answer] == 0x6c && reader.bytes[answer + 1] == 2)
        // Each line of the handshake was answered once.
        #expect(reader.bytes.prefix(6) == ArraySlice("DATA\r\n".utf8))
        #expect(next.gone == [])
        withExtendedLifetime(hold) {}
    }

    @Test("no message is begun any more, and one of which a part has arrived is read to its end")
    func message() throws {
        let stage = try Stage()
        let (first, second) = (Reader(try stage.bareClient()), Reader(try stage.bareClient()))
        for reader in [first, second] {
            reader.send(BareBus.handshake + BareBus.pingCall())
            #expect(try stage.loop.serve { reader.read() > BareBus.handshakeAnswer + 16 })
        }
        #expect(try stage.loop.serve { stage.server.peers.allSatisfy(\.canBeHandedOver) })
        let before = (first.bytes.count, second.bytes.count)
        let call = BareBus.pingCall(serial: 2)
        first.send(call.prefix(50))
        #expect(try stage.loop.serve { stage.server.peers[0].isReading })
        var isDone = false
        let hold = try BusHold(stage.server, limit: testTimeout) { isDone = true }
        second.send(call)
        // A later message arrives together with the rest.
        first.send(call.dropFirst(50) + BareBus.pingCall(serial: 3))
        #expect(try stage.loop.serve { isDone })
        #expect(first.read() > before.0)
        #expect(second.read() == before.1)
        let clients = try handOver(stage.server)
        #expect(clients.map { $0?.resumption } == [BusResumption.established, .established])
        let answered = first.bytes.count
        let next = try Stage()
        next.server.resume(clients.compactMap { $0 }) {
            Issue.record("\($0)")
        } completion: {
        }
        #expect(try next.loop.serve { first.read() > answered && second.read() > before.1 })
        withExtendedLifetime(hold) {}
    }

    @Test("a message that does not end delays the handover for a limited time only")
    func unfinished() throws {
        let stage = try Stage()
        let readers = [Reader(try stage.bareClient()), Reader(try stage.bareClient())]
        for reader in readers {
            reader.send(BareBus.handshake + BareBus.pingCall())
            #expect(try stage.loop.serve { reader.read() > BareBus.handshakeAnswer + 16 })
        }
        readers[0].send(BareBus.pingCall(serial: 2).prefix(50))
        #expect(try stage.loop.serve { stage.server.peers[0].isReading })
        let hold = try holdServer(stage, limit: .milliseconds(100))
        #expect(stage.server.peers[0].isReading)
        #expect(try handOver(stage.server).map { $0 == nil } == [true, false])
        // The next program could not be executed.
        hold.end()
        let before = readers[0].bytes.count
        readers[0].send(BareBus.pingCall(serial: 2).dropFirst(50))
        #expect(try stage.loop.serve { readers[0].read() > before })
        #expect(try stage.ask(try stage.client(), "Who").get().count == 2)
    }

    @Test("a connection that ends while it reads a message does not delay the handover")
    func ended() throws {
        let stage = try Stage()
        var reader: Reader? = Reader(try stage.bareClient())
        reader?.send(BareBus.handshake + BareBus.pingCall().prefix(50))
        #expect(try stage.loop.serve { stage.server.peers.first?.isReading == true && stage.server.peers[0].isReady })
        var isDone = false
        let hold = try BusHold(stage.server, limit: testTimeout) { isDone = true }
        reader = nil
        #expect(try stage.loop.serve { isDone })
        #expect(stage.server.peers.isEmpty || stage.server.peers.allSatisfy(\.isGone))
        withExtendedLifetime(hold) {}
    }

    @Test("connections are resumed in their order, in several turns, and others are accepted afterwards")
    func order() throws {
        raiseDescriptorLimit()
        let stage = try Stage()
        var readers: [Reader] = []
        for count in 1...60 {
            readers.append(Reader(try stage.bareClient()))
            #expect(try stage.loop.serve { stage.server.peers.count == count })
        }
        let hold = try holdServer(stage)
        let clients = try handOver(stage.server).compactMap { $0 }
        #expect(clients.count == 60)
        let next = try Stage()
        let late = Reader(try next.bareClient())
        let before = next.loop.controlWork.pieces
        var isResumed = false
        next.server.resume(clients) {
            Issue.record("\($0)")
        } completion: {
            isResumed = true
        }
        #expect(next.server.peers.isEmpty)
        #expect(try next.loop.serve { isResumed })
        #expect(next.server.peers.map(\.number) == clients.map(\.number))
        #expect(next.loop.controlWork.pieces >= before + 60)
        #expect(try next.loop.serve { next.server.peers.count == 61 })
        #expect(next.server.peers.last?.number == 61)
        for reader in readers + [late] {
            reader.send(BareBus.handshake + BareBus.pingCall())
            #expect(try next.loop.serve { reader.read() > BareBus.handshakeAnswer + 16 })
        }
        withExtendedLifetime(hold) {}
    }

    @Test("the time at which a connection began is of CLOCK_BOOTTIME, as the start times of processes")
    func connected() throws {
        let before = EventLoop.bootTime()
        let stage = try Stage()
        let client = try stage.client()
        #expect(try stage.loop.serve { !stage.server.peers.isEmpty })
        let connected = try #require(stage.server.peers.first?.connected)
        #expect((before...EventLoop.bootTime()).contains(connected))
        withExtendedLifetime(client) {}
    }
}
