import Glibc
import LoopPolicy
import Posix
import TestKit
import Testing

@testable import Systemd

/// Work is counted in pieces and in turns of the loop, with a clock that only the work advances.
@Suite("Work in pieces")
struct WorkQueueTests {
    /// A loop on whose clock time passes only when a test says so.
    private final class Clock {
        var time = Duration.zero
        func pass(_ time: Duration) { self.time += time }
    }

    private func makeLoop(_ clock: Clock) throws -> EventLoop {
        let loop = try EventLoop()
        loop.clock = { clock.time }
        return loop
    }

    @Test("a turn does the pieces that fit in 1ms, and leaves the rest to the next turns, in order")
    func slices() throws {
        let clock = Clock()
        let loop = try makeLoop(clock)
        var done: [Int] = []
        var isCompleted = false
        loop.work.add(each: 0..<10) {
            done.append($0)
            clock.pass(.microseconds(300))
        } completion: {
            isCompleted = true
        }
        #expect(done.isEmpty)
        var counts: [Int] = []
        while !isCompleted {
            let before = done.count
            #expect(try loop.runOnce(timeout: .zero))
            counts.append(done.count - before)
        }
        #expect(counts == [4, 4, 2])
        #expect(done == Array(0..<10))
        #expect(loop.work.isEmpty)
        #expect(try !loop.runOnce(timeout: .zero))
    }

    @Test("while an event waits to be served, a turn leaves the rest of its work after 100µs")
    func slicesWhileAwaited() throws {
        let clock = Clock()
        let loop = try makeLoop(clock)
        var done: [Int] = []
        let pipe = try TestPipe()
        var servedAfter: Int?
        let source = try loop.addDescriptor(pipe.reading, events: .readable) { _ in
            servedAfter = done.count
            _ = pipe.read()
        }
        loop.work.add(each: 0..<10) {
            // The event comes during the work.
            if $0 == 1 { pipe.write("x") }
            done.append($0)
            clock.pass(.microseconds(60))
        }
        #expect(try loop.runOnce(timeout: .zero))
        #expect(done == [0, 1])
        #expect(try loop.runOnce(timeout: .zero))
        #expect(servedAfter == 2)
        #expect(try loop.runOnce(timeout: .zero))
        #expect(done == Array(0..<10))
        withExtendedLifetime(source) {}
    }

    @Test("a piece that takes longer than a turn is the only one of its turn")
    func longPiece() throws {
        let clock = Clock()
        let loop = try makeLoop(clock)
        var done = 0
        loop.work.add(each: 0..<3) { _ in
            done += 1
            clock.pass(.milliseconds(5))
        }
        for expected in 1...3 {
            #expect(try loop.runOnce(timeout: .zero))
            #expect(done == expected)
        }
        #expect(loop.longestTurn.duration == .milliseconds(5))
        #expect(loop.longestTurn.source.contains("WorkQueueTests"), "\(loop.longestTurn)")
    }

    @Test("a job that a piece adds is done in the same turn if there is time, and no turn follows for it")
    func nested() throws {
        let loop = try makeLoop(Clock())
        var done: [String] = []
        loop.work.add {
            loop.work.add {
                done.append("second")
                return false
            }
            done.append("first")
            return false
        }
        #expect(try loop.runOnce(timeout: .zero))
        #expect(done == ["first", "second"])
        #expect(try !loop.runOnce(timeout: .zero))
    }

    @Test("a piece of a job with 200,000 pieces takes no more stack than the first")
    func manyPieces() throws {
        let loop = try makeLoop(Clock())
        var addresses: Set<UInt> = []
        loop.work.add(each: 0..<200_000) { _ in
            withUnsafeTemporaryAllocation(byteCount: 16, alignment: 16) {
                _ = addresses.insert(UInt(bitPattern: $0.baseAddress))
            }
        }
        while !loop.work.isEmpty { #expect(try loop.runOnce(timeout: .zero)) }
        #expect(loop.work.pieces == 200_001)
        #expect(addresses.count == 1)
    }

    @Test("two jobs take turns piece by piece")
    func jobs() throws {
        let loop = try makeLoop(Clock())
        var done: [String] = []
        loop.work.add(each: ["a", "b", "c"]) { done.append($0) }
        loop.work.add(each: ["1", "2"]) { done.append($0) }
        #expect(try loop.runOnce(timeout: .zero))
        #expect(done == ["a", "1", "b", "2", "c"])
    }

    @Test(
        "while work waits, a source of a client or an app is served in the next turn, and one of its own level within three"
    )
    func sources() throws {
        let clock = Clock()
        let loop = try makeLoop(clock)
        var isOver = false
        loop.work.add {
            clock.pass(.milliseconds(1))
            return !isOver
        }
        for _ in 0..<5 { #expect(try loop.runOnce(timeout: .zero)) }
        for (level, limit) in [(LoopLevel.control, 1), (.apps, 1), (.work, 3)] {
            let pipe = try TestPipe()
            var isReached = false
            let source = try loop.addDescriptor(pipe.reading, events: .readable, level: level) { _ in
                isReached = true
            }
            pipe.write("x")
            var turns = 0
            while !isReached, turns < 10 {
                #expect(try loop.runOnce(timeout: testTimeout))
                turns += 1
            }
            #expect(turns <= limit, "\(level)")
            source.cancel()
        }
        isOver = true
    }

    @Test("calls for a later turn that take longer than 1ms are made in several turns, in order")
    func callLater() throws {
        let clock = Clock()
        let loop = try makeLoop(clock)
        var made: [Int] = []
        for number in 0..<5 {
            loop.callLater {
                made.append(number)
                clock.pass(.microseconds(600))
                if number == 0 { loop.callLater { made.append(9) } }
            }
        }
        var turns = 0
        while made.count < 6, turns < 20 {
            #expect(try loop.runOnce(timeout: .zero))
            turns += 1
        }
        #expect(made == [0, 1, 2, 3, 4, 9])
        #expect(turns == 3)
    }

    @Test("a turn of more than 10ms is reported with the file of its source")
    func longTurns() throws {
        let clock = Clock()
        let loop = try makeLoop(clock)
        var reported: [Duration] = []
        loop.onLongTurn = { reported.append($0.duration) }
        for milliseconds in [3, 12, 11] {
            loop.work.add {
                clock.pass(.milliseconds(milliseconds)); return false
            }
        }
        for _ in 0..<3 { #expect(try loop.runOnce(timeout: .zero)) }
        #expect(reported == [.milliseconds(12), .milliseconds(11)])
        #expect(loop.longestTurn.duration == .milliseconds(12))
    }
}
