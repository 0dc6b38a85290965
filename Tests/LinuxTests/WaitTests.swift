import Testing

@testable import Linux

@Suite("In which calls threads wait")
struct WaitTests {
    private func activity(_ text: String) -> ThreadActivity? { ThreadActivity(parsing: Array(text.utf8)) }

    private func call(_ arguments: [UInt64]) -> ParkedCall {
        ParkedCall(number: 0, arguments: arguments, stackPointer: 0)
    }

    /// A process whose memory contains at the address 16 these numbers, at 08:20 of each clock.
    private func makeReader(_ numbers: Int64...) -> TimeoutReader {
        let bytes = numbers.flatMap { nativeBytes($0) }
        return TimeoutReader(
            memory: { address, count in address == 16 && bytes.count >= count ? Array(bytes.prefix(count)) : nil },
            clock: { $0 == 1 || $0 == 0 ? .seconds(30_000) : nil })
    }

    @Test("a thread runs, sleeps outside of calls, or is parked in one")
    func parse() {
        #expect(activity("running\n") == .running)
        #expect(activity("-1 0x7ffd0 0x7f01\n") == .outside)
        #expect(
            activity("7 0x1 0x2 0x3 0x4 0x5 0xffffffffffffffff 0x7ffd0 0x7f01\n")
                == .parked(ParkedCall(number: 7, arguments: [1, 2, 3, 4, 5, .max], stackPointer: 0x7ffd0)))
        for text in ["", "\n", "x", "7", "7 0x1 0x2", "7 1 2 3 4 5 6 7 8", "99999999999999999999 0x1", "7 0x1 0xg"] {
            #expect(activity(text) == nil)
        }
    }

    @Test("a timeout is in a register, or in memory")
    func timeouts() {
        let reader = makeReader(20, 500_000)
        func timeout(_ kind: WaitingCall, _ arguments: UInt64...) -> WaitTimeout {
            reader.timeout(of: call(arguments), kind)
        }
        #expect(timeout(.milliseconds(2), 0, 0, 1500) == .relative(.milliseconds(1500)))
        #expect(timeout(.milliseconds(2), 0, 0, 0xffff_ffff) == .none)
        #expect(timeout(.timespec(1), 0, 16) == .relative(.seconds(20) + .microseconds(500)))
        #expect(timeout(.timeval(0), 16) == .relative(.seconds(20) + .milliseconds(500)))
        #expect(timeout(.timespec(0), 0) == .none)
        #expect(timeout(.timespec(0), 8) == .unknown)
        #expect(timeout(.timespec(5)) == .none)
        #expect(timeout(.clockNanosleep, 0, 0, 16) == .relative(.seconds(20) + .microseconds(500)))
        #expect(timeout(.futex, 0, 128, 0, 16) == .relative(.seconds(20) + .microseconds(500)))
        #expect(timeout(.futex, 0, 129, 0, 16) == .none)
        #expect(timeout(.untimed) == .none)
        #expect(timeout(.restart) == .restarted)
    }

    @Test("of a wait until a time the rest counts")
    func deadlines() {
        func timeout(_ seconds: Int64, _ kind: WaitingCall, _ arguments: UInt64...) -> WaitTimeout {
            makeReader(seconds, 0).timeout(of: call(arguments), kind)
        }
        #expect(timeout(30_007, .clockNanosleep, 1, 1, 16) == .remaining(.seconds(7)))
        #expect(timeout(29_000, .clockNanosleep, 1, 1, 16) == .remaining(.zero))
        #expect(timeout(30_007, .clockNanosleep, 3, 1, 16) == .unknown)
        #expect(timeout(30_005, .futex, 0, 137, 0, 16) == .remaining(.seconds(5)))
        #expect(timeout(30_005, .deadline(0, clock: 1), 16, 1) == .remaining(.seconds(5)))
        #expect(timeout(30_005, .deadline(0, clock: nil), 16) == .remaining(.seconds(5)))
        // Without end, as good as.
        #expect(timeout(.max, .futex, 0, 137, 0, 16) == .none)
        #expect(timeout(-1, .futex, 0, 137, 0, 16) == .unknown)
    }

    @Test("a timeout that is none is not known")
    func hostile() {
        for numbers in [[-1, 0], [0, -1], [0, 1_000_000_000]] as [[Int64]] {
            let reader = makeReader(numbers[0], numbers[1])
            #expect(reader.timeout(of: call([16]), .timespec(0)) == .unknown)
        }
        #expect(makeReader(0, 1_000_000).timeout(of: call([16]), .timeval(0)) == .unknown)
        #expect(makeReader(.max, 0).timeout(of: call([16]), .timespec(0)) == .none)
    }

    @Test("a wait of io_uring has its timeout in a structure")
    func ring() {
        let reader = TimeoutReader(
            memory: { address, count in
                let numbers: [Int64] = address == 8 ? [0, 0, 16] : [3, 0]
                return Array(numbers.flatMap { nativeBytes($0) }.prefix(count))
            }, clock: { _ in nil })
        #expect(reader.timeout(of: call([3, 0, 1, 8 | 1, 8]), .ring) == .relative(.seconds(3)))
        #expect(reader.timeout(of: call([3, 0, 1, 1, 8]), .ring) == .none)
        #expect(reader.timeout(of: call([3, 0, 1, 8 | 64, 8]), .ring) == .unknown)
    }

    // MARK: Habits

    private func thread(_ timeout: WaitTimeout, stack: UInt64 = 1, _ number: Int32 = 9) -> ParkedThread {
        ParkedThread(thread: number, call: 7, stackPointer: stack, timeout: timeout)
    }

    private func learn(_ habits: inout WaitHabits, _ threads: [ParkedThread], at second: Int, clients: Bool = false) {
        habits.learn(
            threads, isQuiet: true, hasClients: clients, at: .seconds(second), after: .seconds(60))
    }

    @Test("a wait that two quiet looks in a row have seen is usual")
    func usual() {
        var habits = WaitHabits()
        let idle = thread(.relative(.seconds(30)))
        #expect(habits.isUnusual(idle))
        learn(&habits, [idle], at: 0)
        #expect(habits.isUnusual(idle))
        learn(&habits, [idle], at: 10)
        #expect(!habits.isUnusual(idle))
        #expect(!habits.isUnusual(thread(.relative(.seconds(26)), stack: 5, 77)))
        #expect(habits.isUnusual(thread(.relative(.seconds(10)))))
        #expect(habits.isUnusual(thread(.relative(.seconds(40)))))
        for short in [WaitTimeout.none, .restarted, .relative(.seconds(1)), .relative(.seconds(61))] {
            #expect(!habits.isUnusual(thread(short)))
        }
    }

    @Test("nothing is learned from a look that found work")
    func busy() {
        var habits = WaitHabits()
        let wait = thread(.relative(.seconds(30)))
        learn(&habits, [wait], at: 0)
        habits.learn([wait], isQuiet: false, hasClients: false, at: .seconds(10), after: .seconds(60))
        learn(&habits, [wait], at: 20)
        #expect(habits.isUnusual(wait))
    }

    @Test("while a client is connected a wait may be its request, until RequestSec is over")
    func clients() {
        var habits = WaitHabits()
        let wait = thread(.relative(.seconds(30)))
        for second in stride(from: 0, to: 60, by: 10) {
            learn(&habits, [wait], at: second, clients: true)
            #expect(habits.isUnusual(wait))
        }
        learn(&habits, [wait], at: 60, clients: true)
        #expect(!habits.isUnusual(wait))
    }

    @Test("a wait until a time is usual if its rest is no longer than it was at rest in the same frame")
    func rests() {
        var habits = WaitHabits()
        learn(&habits, [thread(.remaining(.seconds(28)))], at: 0)
        learn(&habits, [thread(.remaining(.seconds(18)))], at: 10)
        #expect(!habits.isUnusual(thread(.remaining(.seconds(30)))))
        #expect(habits.isUnusual(thread(.remaining(.seconds(40)))))
        #expect(habits.isUnusual(thread(.remaining(.seconds(5)), stack: 2)))
    }

    @Test("a call that the kernel restarts after a freeze is the one that was seen before")
    func restarted() {
        var habits = WaitHabits()
        let wait = thread(.relative(.seconds(30)))
        for (seen, resolved) in [
            (wait, wait), (thread(.restarted), wait), (thread(.restarted), wait),
            (thread(.restarted, stack: 3), thread(.restarted, stack: 3)),
        ] {
            let result = habits.resolve([seen])
            #expect(result == [resolved])
        }
    }

    @Test(
        "a timeout that cannot be read is usual where two quiet looks have found it, or is the one that was read last")
    func unknown() {
        var habits = WaitHabits()
        let idle = thread(.unknown)
        learn(&habits, [idle], at: 0)
        #expect(habits.isUnusual(idle))
        learn(&habits, [idle], at: 10)
        #expect(!habits.isUnusual(idle))
        #expect(habits.isUnusual(thread(.unknown, stack: 2)))
        #expect(habits.isUnusual(thread(.unknown, 10)))
        let wait = thread(.relative(.seconds(30)))
        _ = habits.resolve([wait])
        let resolved = habits.resolve([idle])
        #expect(resolved == [wait])
        let elsewhere = habits.resolve([thread(.unknown, stack: 2)])
        #expect(elsewhere == [thread(.unknown, stack: 2)])
    }

    @Test("what is learned is bounded")
    func bounded() {
        var habits = WaitHabits()
        for index in 0..<1000 {
            let waits = [
                thread(.relative(.milliseconds(1100 + index * 50))),
                thread(.remaining(.seconds(5)), stack: UInt64(index), 10),
            ]
            learn(&habits, waits, at: 20 * index)
            learn(&habits, waits, at: 20 * index + 10)
        }
        // A habit of the last site cannot be kept.
        #expect(habits.isUnusual(thread(.remaining(.seconds(5)), stack: 999, 10)))
        #expect(!habits.isUnusual(thread(.remaining(.seconds(5)), stack: 0, 10)))
    }
}
