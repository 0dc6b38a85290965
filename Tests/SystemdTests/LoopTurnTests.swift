import Glibc
import LoopPolicy
import Posix
import Systemd
import TestKit
import Testing

/// A peer that always has many calls waiting in its socket, on a thread of its own.
private final class Flood {
    private let socket: SharedDescriptor
    private var thread = pthread_t()

    init(_ path: String) throws {
        socket = SharedDescriptor(try UnixSocket.connect(to: path))
        let result = pthread_create(
            &thread, nil,
            { argument in
                let socket = Unmanaged<SharedDescriptor>.fromOpaque(argument!).takeRetainedValue()
                let call = Stage.pingCall(wantsReply: false)
                let calls = (0..<16).flatMap { _ in call }
                var bytes = Array("\0AUTH EXTERNAL\r\nDATA\r\nBEGIN\r\n".utf8) + calls
                // Blocks while the socket's buffer is full.
                while send(socket.raw, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count { bytes = calls }
                return nil
            }, Unmanaged.passRetained(socket).toOpaque())
        try #require(result == 0)
    }

    deinit {
        shutdown(socket.raw, Int32(SHUT_RDWR))
        pthread_join(thread, nil)
    }
}

/// Delays are counted in turns of the loop, not in time: each turn serves one source.
@Suite("Turns of the loop", .serialized)
struct LoopTurnTests {
    /// Returns the number of turns until `condition` holds; fails after 1,000.
    private func turns(_ loop: EventLoop, until condition: () -> Bool) throws -> Int {
        var turns = 0
        while !condition() {
            try #require(turns < 1000, "the source is not reached")
            _ = try loop.runOnce(timeout: testTimeout)
            turns += 1
        }
        return turns
    }

    private func floodedStage() throws -> (Stage, Flood) {
        let stage = try Stage()
        let flood = try Flood(stage.path)
        #expect(try stage.loop.serve { stage.server.peers.first?.isReady == true })
        // The calls that arrived with the handshake are handled by now; the flood continues.
        for _ in 0..<100 { #expect(try stage.loop.runOnce(timeout: testTimeout)) }
        return (stage, flood)
    }

    @Test("a peer that floods the loop with calls delays a source of an app by no more than its level's budget")
    func app() throws {
        let (stage, flood) = try floodedStage()
        // Each turn takes 100 µs and more by this clock.
        var time = Duration.zero
        stage.loop.clock = {
            time += .microseconds(100)
            return time
        }
        let pipe = try TestPipe()
        var isReached = false
        let source = try stage.loop.addDescriptor(pipe.reading, events: .readable) { _ in isReached = true }
        pipe.write("x")
        #expect(try turns(stage.loop) { isReached } <= Int(LoopPolicy.budget / .microseconds(100)) + 3)
        source.cancel()
        #expect(stage.server.peers.count == 1)
        withExtendedLifetime(flood) {}
    }

    @Test("a peer that floods the loop with calls does not delay another peer, or a new one, by more than a few turns")
    func peer() throws {
        let (stage, flood) = try floodedStage()
        let client = try stage.client()
        #expect(try turns(stage.loop) { client.isReady } <= 60)
        var answer: Result<[Variant], BusError>?
        try client.call(path: Exhibit.path, interface: Exhibit.manager, member: "Who", timeout: nil) { answer = $0 }
        #expect(try turns(stage.loop) { answer != nil } <= 40)
        #expect(try answer?.get().count == 2)
        #expect(stage.server.peers.count == 2)
        withExtendedLifetime(flood) {}
    }

    @Test("an answer that grows in many pieces of work does not delay another peer by more than a few turns")
    func longAnswer() throws {
        let stage = try Stage()
        var time = Duration.zero
        stage.loop.clock = { time }
        stage.exhibit.onLong = { [loop = stage.loop] call in
            let reply = call.beginArrayReply()
            loop.controlWork.add(each: 0..<500) {
                reply.append(.string("\($0)"))
                time += .milliseconds(1)
            } completion: {
                reply.send()
            }
        }
        let (asker, other) = (try stage.client(), try stage.client())
        #expect(try stage.loop.serve { asker.isReady && other.isReady })
        var long: Result<[Variant], BusError>?
        try asker.call(path: Exhibit.path, interface: Exhibit.manager, member: "Long", timeout: nil) { long = $0 }
        _ = try turns(stage.loop) { !stage.loop.controlWork.isEmpty }
        for _ in 0..<5 {
            var answer: Result<[Variant], BusError>?
            try other.call(path: Exhibit.path, interface: Exhibit.manager, member: "Who", timeout: nil) { answer = $0 }
            #expect(try turns(stage.loop) { answer != nil } <= 40)
        }
        #expect(long == nil && stage.loop.controlWork.pieces < 500)
        #expect(try stage.loop.serve { long != nil })
        guard case .array("s", let texts)? = try long?.get().first else { throw BusTests.Missing() }
        #expect(texts.count == 500 && texts.last?.stringValue == "499")
    }

    @Test("a signal that arrives in every turn does not keep a source of a lower priority from being served")
    func signal() throws {
        let loop = try EventLoop()
        var signals = 0
        let flood = try loop.addSignal(SIGUSR2, kind: .childSignal) { _ in
            signals += 1
            pthread_kill(pthread_self(), SIGUSR2)
        }
        pthread_kill(pthread_self(), SIGUSR2)
        let pipe = try TestPipe()
        var isReached = false
        let source = try loop.addDescriptor(pipe.reading, events: .readable, level: .work) { _ in isReached = true }
        pipe.write("x")
        #expect(try turns(loop) { isReached } <= 52)
        // The rest is served later.
        let before = signals
        #expect(try loop.serve { signals > before })
        flood.cancel()
        source.cancel()
        var (all, pending) = (sigset_t(), siginfo_t())
        sigemptyset(&all)
        sigaddset(&all, SIGUSR2)
        var time = timespec()
        _ = sigtimedwait(&all, &pending, &time)
    }

    @Test("a call that schedules itself again does not delay a source of the same priority by more than two turns")
    func deferredCall() throws {
        let loop = try EventLoop()
        var call: DeferredCall?
        call = DeferredCall(loop: loop, kind: .later) { call?.schedule() }
        call?.schedule()
        for _ in 0..<10 { #expect(try loop.runOnce(timeout: .zero)) }
        let pipe = try TestPipe()
        var isReached = false
        let source = try loop.addDescriptor(pipe.reading, events: .readable) { _ in isReached = true }
        pipe.write("x")
        #expect(try turns(loop) { isReached } <= 3)
        source.cancel()
        call?.cancel()
        call = nil
    }

    @Test("a callLater that calls itself again does not delay a source of the same priority by more than two turns")
    func callLater() throws {
        let loop = try EventLoop()
        var isEnded = false
        func again() { if !isEnded { loop.callLater(again) } }
        again()
        for _ in 0..<10 { #expect(try loop.runOnce(timeout: .zero)) }
        let pipe = try TestPipe()
        var isReached = false
        let source = try loop.addDescriptor(pipe.reading, events: .readable) { _ in isReached = true }
        pipe.write("x")
        #expect(try turns(loop) { isReached } <= 3)
        isEnded = true
        source.cancel()
    }
}
