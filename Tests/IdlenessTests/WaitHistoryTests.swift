import Idleness
import Testing

@Suite("What the waits of threads say (L51)")
struct WaitHistoryTests {
    /// The looks at one program.
    private struct Program {
        var history = WaitHistory()
        var now = Duration.seconds(1000)

        init() { history.begin(at: now) }

        /// `IdleSec=`
        var idleTime = Duration.seconds(2)

        mutating func look(
            after pause: Duration = .seconds(2), isFrozen: Bool = false, _ activities: ThreadActivity...
        ) -> WaitVerdict {
            now += pause
            let threads = activities.enumerated().map { ThreadSighting(thread: $0.offset + 1, activity: $0.element) }
            return history.judge(threads, at: now, idleTime: idleTime, isFrozen: isFrozen)
        }

        /// A wait that has just begun.
        func wait(_ length: Duration?, call: Int = 7, ago: Duration = .zero, stamp: UInt64? = nil) -> ThreadActivity {
            .waiting(
                Wait(
                    call: call, arguments: [1], length: length, due: length.map { now - ago + $0 },
                    stamp: stamp ?? UInt64(now.components.seconds)))
        }
    }

    @Test("a program whose threads wait without end may be frozen at once, and has no timer")
    func endless() {
        var program = Program()
        let verdict = program.look(program.wait(nil), .stopped)
        #expect(verdict == WaitVerdict())
    }

    @Test(
        "what runs, waits for a device, is in a call that is not watched, or cannot be read is work",
        arguments: [
            (ThreadActivity.running, ThreadWork.running), (.uninterruptible, .uninterruptible),
            (.unwatched(call: 1), .unwatched), (.unreadable, .unreadable), (.restarted(arguments: [9]), .unreadable),
        ])
    func work(activity: ThreadActivity, work: ThreadWork) {
        var program = Program()
        let verdict = program.look(program.wait(nil), activity)
        #expect(verdict.work == work)
        #expect(verdict.thread == 2)
    }

    @Test("a wait whose beginning the kernel does not say is the one that was seen, or has begun since the last look")
    func unknownBeginning() {
        var known = Program()
        let start = known.now
        let first = known.look(known.wait(.seconds(1000), ago: .seconds(-2)))
        #expect(first.work == nil && first.due == start + .seconds(1002))
        // The same one, to which the kernel gives no beginning any more.
        for _ in 0..<3 {
            let later = known.look(known.wait(.seconds(1000), ago: .seconds(5000), stamp: 0))
            #expect(later.work == nil && later.due == first.due)
        }
        var unknown = Program()
        let due = unknown.now + .seconds(1000)
        let verdict = unknown.look(unknown.wait(.seconds(1000), stamp: 0))
        #expect(verdict.work == nil && verdict.due == due)
        #expect(unknown.look(unknown.wait(.seconds(1000), stamp: 0)).due == due)
        // One that is over by now is another one.
        let next = unknown.look(after: .seconds(2000), unknown.wait(.seconds(1000), stamp: 0))
        #expect(next.work == nil && next.due == unknown.now + .milliseconds(100))
    }

    @Test("a wait of 5 s or more is a timer, which stays due while its thread waits for shorter times")
    func timers() {
        var program = Program()
        let due = program.now + .seconds(32)
        #expect(program.look(program.wait(.seconds(30), ago: .seconds(-2))).due == due)
        let shorter = program.look(program.wait(.seconds(1)))
        #expect(shorter.due == due)
        #expect(shorter.work == .shortWait)
    }

    @Test("what is left of a timer is no short wait")
    func restOfTimer() {
        var program = Program()
        _ = program.look(program.wait(.seconds(6)))
        // The program was woken by input and computes what is left.
        let verdict = program.look(program.wait(.seconds(4)))
        #expect(verdict.work == nil)
        #expect(verdict.due != nil)
    }

    @Test("one short wait that was seen before a reload made IdleSec= shorter is no tick")
    func shorterIdleTime() {
        var program = Program()
        program.idleTime = .seconds(10)
        #expect(program.look(after: .seconds(10), program.wait(.seconds(3))).work == .shortWait)
        program.idleTime = .seconds(1)
        #expect(program.look(after: .seconds(1), program.wait(.seconds(3), ago: .seconds(1))).work == .shortWait)
    }

    @Test("a program that waits for less than 30 ms again and again paces its work: that is no tick")
    func pace() {
        var program = Program()
        var last: WaitVerdict?
        for look in 1...20 { last = program.look(program.wait(.milliseconds(10), stamp: UInt64(look))) }
        #expect(last?.work == .shortWait && last?.tick == nil)
    }

    @Test(
        "what is left of a tick that waits until a time is a tick, however short; a shorter wait for so long paces work"
    )
    func restOfTick() {
        var program = Program()
        func until(_ left: Duration, call: Int = 7) -> ThreadActivity {
            guard case .waiting(var wait) = program.wait(left, call: call, stamp: 99) else { return .stopped }
            wait.isUntilTime = true
            return .waiting(wait)
        }
        for look in 1...7 { _ = program.look(program.wait(.milliseconds(50), stamp: UInt64(look))) }
        let left = until(.milliseconds(3))
        for isFrozen in [true, false] { #expect(program.look(isFrozen: isFrozen, left).work == nil) }
        let other = until(.milliseconds(3), call: 35)
        #expect(program.look(isFrozen: true, other).work == .shortWait)
        #expect(program.look(program.wait(.milliseconds(3))).work == .shortWait)
    }

    @Test("a tick whose beginning is known with less precision is the same one")
    func precision() {
        var program = Program()
        for look in 1...7 { _ = program.look(program.wait(.milliseconds(34), stamp: UInt64(look))) }
        program.history.begin(at: program.now)
        #expect(program.look(program.wait(.milliseconds(72), stamp: 8)).work == nil)
        #expect(program.look(program.wait(.milliseconds(300), stamp: 9)).work == .shortWait)
    }

    @Test("short waits that end together with a timer now and then are ticks nevertheless")
    func ticksWithTimer() {
        var program = Program()
        let start = program.now
        var last: WaitVerdict?
        // A thread waits for each second and another one for each sixth, and there are ten looks in a second.
        for look in 0..<200 {
            let seconds = look / 10
            func wait(until due: Int, length: Int) -> ThreadActivity {
                .waiting(
                    Wait(
                        call: length, arguments: [1], length: .seconds(length), due: start + .seconds(due),
                        stamp: UInt64(due)))
            }
            last = program.look(
                after: .milliseconds(look == 0 ? 50 : 100), wait(until: (seconds / 6 + 1) * 6, length: 6),
                wait(until: seconds + 1, length: 1))
            if look > 0 { #expect(last?.hasShortWait == true, "\(look)") }
        }
        #expect(last?.work == nil)
        #expect(last?.tick == .seconds(1))
    }

    @Test("short waits that follow each other for six IdleSec= are ticks, once in a run")
    func ticks() {
        var program = Program()
        for look in 1...5 { #expect(program.look(program.wait(.milliseconds(500))).work == .shortWait, "\(look)") }
        let learned = program.look(program.wait(.milliseconds(500)))
        #expect(learned.work == nil)
        #expect(learned.tick == .milliseconds(500))
        program.history.begin(at: program.now + .seconds(60))
        #expect(program.look(after: .seconds(62), program.wait(.milliseconds(500))).work == nil)
        // A longer wait of the same thread is another one.
        #expect(program.look(program.wait(.seconds(2))).work == .shortWait)
        #expect(program.look(program.wait(.milliseconds(500), call: 35)).work == .shortWait)
    }

    @Test("what was not seen for some looks begins anew")
    func gap() {
        var program = Program()
        for _ in 1...5 { _ = program.look(program.wait(.milliseconds(500))) }
        for _ in 1...4 { _ = program.look(program.wait(nil)) }
        #expect(program.look(program.wait(.milliseconds(500))).work == .shortWait)
    }

    @Test("a freeze resets the clock that says when a wait began, and not when it is due")
    func freeze() {
        var program = Program()
        let due = program.look(program.wait(.seconds(30), stamp: 1)).due
        #expect(program.look(isFrozen: true, program.wait(.seconds(30), stamp: 2)).due == due)
        #expect(program.look(after: .seconds(5), .restarted(arguments: [1])).due == due)
        #expect(program.look(after: .seconds(1), .restarted(arguments: [1])).due == due)
    }

    @Test("a wait that continues after a thaw is known, also if its thread was seen between the two")
    func restartedAfterRunning() {
        var program = Program()
        let due = program.look(program.wait(.seconds(3600))).due
        #expect(program.look(.running).work == .running)
        #expect(program.look(.uninterruptible).work == .uninterruptible)
        let verdict = program.look(.restarted(arguments: [1]))
        #expect(verdict.work == nil && verdict.due == due)
        // In another call now.
        #expect(program.look(.running).work == .running)
        #expect(program.look(.restarted(arguments: [2])).work == .unreadable)
    }

    @Test("a wait that no look has seen before it was interrupted is known if it shows when it is due")
    func continued() {
        var program = Program()
        guard case .waiting(var wait) = program.wait(.seconds(3600)) else {
            Issue.record("it does not wait")
            return
        }
        wait.isUntilTime = true
        let verdict = program.look(.restarted(arguments: wait.arguments, wait: wait))
        #expect(verdict.work == nil && verdict.due == wait.due)
        // What earlier looks have seen is more exact.
        var later = wait
        later.due = wait.due.map { $0 + .seconds(9) }
        #expect(program.look(.restarted(arguments: wait.arguments, wait: later)).due == wait.due)
    }

    @Test("a wait that is over and has not ended is work")
    func overdue() {
        var program = Program()
        let activity = program.wait(.seconds(30), stamp: 1)
        _ = program.look(activity)
        #expect(program.look(after: .seconds(40), activity).work == .shortWait)
    }
}
