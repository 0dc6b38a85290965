/// The waits that the looks at one run have found, and what follows from them (L51). A program may be frozen while each of its
/// threads waits for something that is watched: its next act can only come from there, and then it is thawed.
///
/// Times are those of CLOCK_MONOTONIC.
package struct WaitHistory: Sendable {
    /// A shorter wait is not kept as a timer: it is work, or a tick.
    package static let shortestTimer = Duration.seconds(5)
    /// A wait until a time begins a little later than its caller computed it.
    private static let leastTimer = shortestTimer - precision
    /// A short wait that is repeated for so many `IdleSec=` is a tick, and for so long: one wait of less than 5 s must not be taken for a
    /// repetition.
    package static let looksToLearn = 6
    package static let shortestLearning = Duration.seconds(10)
    /// A program that waits for less paces its work: it transcodes at the speed of the medium, for example. What programs wait for when they
    /// have nothing to do is longer (a JVM: 50 ms).
    static let shortestTick = Duration.milliseconds(30)
    /// A short wait that was not seen by so many looks has ended.
    static let longestGap: UInt64 = 3
    /// Two readings of the same due time differ by less.
    static let precision = Duration.milliseconds(100)
    /// The most ticks and timers that are kept.
    static let mostTicks = 256
    static let mostTimers = 64

    private struct Site: Hashable {
        var thread: Int
        var call: Int
    }
    private struct Repetition {
        var since: Duration
        /// `IdleSec=` at the look that has found it: `since` may be that much before the wait. A reload that makes `IdleSec=` shorter must
        /// not make one wait a tick.
        var idleTime: Duration
        /// The number of the look that has seen it last.
        var seen: UInt64
    }

    /// The waits at the last look, by thread.
    private var last: [Int: Wait] = [:]
    /// The last waits of threads that ran when they were looked at last: a freeze and a thaw make each thread run before it waits on.
    private var interrupted: [Int: Wait] = [:]
    /// The longest tick of each site.
    private var ticks: [Site: Duration] = [:]
    /// Short waits that may become ticks.
    private var repetitions: [Site: Repetition] = [:]
    /// When timers are due. One that was seen once is kept until then, even if its thread waits for shorter times meanwhile: an event
    /// loop with a timer of 30 s and one of 100 ms shows the shorter one.
    private var timers: [Duration] = []
    /// When the run was looked at last, or was thawed.
    private var lastLook: Duration?
    private var looks: UInt64 = 0

    package init() {}

    /// The run was thawed, or its first look is due: from now on its waits are new.
    package mutating func begin(at now: Duration) {
        lastLook = now
        repetitions = [:]
    }

    /// Judges a look.
    /// - Parameters:
    ///   - threads: all of the run.
    ///   - idleTime: `IdleSec=`.
    ///   - isFrozen: the freeze has set anew what says when the waits began.
    package mutating func judge(
        _ threads: [ThreadSighting], at now: Duration, idleTime: Duration, isFrozen: Bool = false
    ) -> WaitVerdict {
        let waits = resolve(threads, now, isFrozen: isFrozen)
        interrupted = waitsOfRunning(threads, waits)
        keepTimers(of: waits, now)
        var verdict = WaitVerdict()
        for sighting in threads where verdict.work == nil {
            let work: ThreadWork? =
                switch sighting.activity {
                case .running: .running
                case .uninterruptible: .uninterruptible
                case .unwatched: .unwatched
                case .unreadable: .unreadable
                case .restarted: waits[sighting.thread] == nil ? .unreadable : nil
                case .waiting, .stopped: nil
                }
            guard let work else { continue }
            (verdict.work, verdict.thread) = (work, sighting.thread)
            if case .unwatched(let call) = sighting.activity { verdict.call = call }
        }
        looks += 1
        repetitions = repetitions.filter { looks - $0.value.seen <= Self.longestGap }
        for sighting in threads {
            guard let wait = waits[sighting.thread], let length = wait.length else { continue }
            guard isShort(wait, now) else {
                // A tick that ends together with a timer.
                if isSeenAgain(wait, length, of: sighting.thread) { verdict.hasShortWait = true }
                continue
            }
            verdict.hasShortWait = true
            if length < Self.leastTimer, isTick(wait, length, of: sighting.thread, now, idleTime) {
                let tick = max(length, Self.shortestTick)
                verdict.tick = min(verdict.tick ?? tick, tick)
            } else if verdict.work == nil {
                (verdict.work, verdict.thread) = (.shortWait, sighting.thread)
                (verdict.call, verdict.length) = (wait.call, length)
            }
        }
        verdict.due = timers.min()
        last = waits
        lastLook = now
        return verdict
    }

    /// The waits of the last look that have a timeout.
    package var timedWaits: [(thread: Int, wait: Wait)] {
        last.compactMap { thread, wait in wait.due == nil ? nil : (thread, wait) }
    }

    /// Whether an earlier look has seen the wait that this thread continues.
    package func knows(_ thread: Int, _ arguments: [UInt64]) -> Bool {
        (last[thread] ?? interrupted[thread])?.arguments == arguments
    }

    package var hasTicks: Bool { !ticks.isEmpty }

    /// The threads that have waited in ticks.
    package var tickingThreads: [Int] { ticks.keys.map(\.thread) }

    // MARK: Waits

    /// What each thread waits for. A wait that was seen before is due when it was due then: the clock that says when it began drifts,
    /// and starts anew at a freeze.
    private func resolve(_ threads: [ThreadSighting], _ now: Duration, isFrozen: Bool) -> [Int: Wait] {
        var waits: [Int: Wait] = [:]
        for sighting in threads {
            let before = last[sighting.thread]
            switch sighting.activity {
            case .waiting(let wait):
                if let before, isSame(before, wait, now, isFrozen: isFrozen) {
                    waits[sighting.thread] = before
                } else {
                    waits[sighting.thread] = wait.hasBeginning ? wait : begunSinceLastLook(wait, now)
                }
            case .restarted(let arguments, let wait):
                if let before = before ?? interrupted[sighting.thread], before.arguments == arguments {
                    waits[sighting.thread] = before
                } else {
                    waits[sighting.thread] = wait
                }
            case .running, .uninterruptible, .stopped, .unwatched, .unreadable: break
            }
        }
        return waits
    }

    private func waitsOfRunning(_ threads: [ThreadSighting], _ waits: [Int: Wait]) -> [Int: Wait] {
        var found: [Int: Wait] = [:]
        for sighting in threads where waits[sighting.thread] == nil {
            if let before = last[sighting.thread] ?? interrupted[sighting.thread] { found[sighting.thread] = before }
        }
        return found
    }

    /// The earliest beginning: a thaw that is too early has no effect.
    private func begunSinceLastLook(_ wait: Wait, _ now: Duration) -> Wait {
        guard let length = wait.length, let lastLook, !wait.isUntilTime else { return wait }
        var begun = wait
        // It is not over yet.
        begun.due = max(lastLook + length, now + Self.precision)
        return begun
    }

    private func isSame(_ before: Wait, _ wait: Wait, _ now: Duration, isFrozen: Bool) -> Bool {
        guard before.call == wait.call, before.arguments == wait.arguments else { return false }
        if isFrozen { return wait.keepsRest || before.length == wait.length }
        if wait.isTimer { return before.due.map { isNear($0, wait.due ?? .zero) } ?? (wait.due == nil) }
        // What would be over by now is another wait.
        if !wait.hasBeginning {
            guard let due = before.due, due > now else { return false }
            return wait.isUntilTime ? isNear(due, wait.due ?? .zero) : before.length == wait.length
        }
        return before.stamp == wait.stamp && before.length == wait.length
    }

    // MARK: Timers

    private mutating func keepTimers(of waits: [Int: Wait], _ now: Duration) {
        timers.removeAll { $0 <= now }
        let dues = waits.values.compactMap { wait -> Duration? in
            guard let length = wait.length, length >= Self.leastTimer, let due = wait.due, due > now else { return nil }
            return due
        }
        // In order: which of two near ones is kept must not depend on the hash seed of the process.
        for due in dues.sorted() where !isTimer(due) { timers.append(due) }
        if timers.count > Self.mostTimers {
            timers.sort()
            timers.removeLast(timers.count - Self.mostTimers)
        }
    }

    private func isTimer(_ due: Duration) -> Bool {
        timers.contains { isNear(due, $0) }
    }

    private func isNear(_ one: Duration, _ other: Duration) -> Bool {
        one - other < Self.precision && other - one < Self.precision
    }

    // MARK: Ticks

    /// What is left of a timer is no short wait. What is over is about to run.
    private func isShort(_ wait: Wait, _ now: Duration) -> Bool {
        guard let length = wait.length, let due = wait.due else { return false }
        return length < Self.leastTimer ? !isTimer(due) : due <= now
    }

    /// Whether short waits of this thread in this call were seen before: one that is due together with a timer continues them.
    private mutating func isSeenAgain(_ wait: Wait, _ length: Duration, of thread: Int) -> Bool {
        guard length < Self.leastTimer else { return false }
        let site = Site(thread: thread, call: wait.call)
        repetitions[site]?.seen = looks
        return repetitions[site] != nil || ticks[site] != nil
    }

    /// Whether waits like this one, of the same thread in the same call and no longer, have followed each other for long enough.
    private mutating func isTick(
        _ wait: Wait, _ length: Duration, of thread: Int, _ now: Duration, _ idleTime: Duration
    ) -> Bool {
        let site = Site(thread: thread, call: wait.call)
        // Of a wait until a time only what is left is known well: the clock that says when it began drifts, and a freeze sets it anew.
        // Earlier looks have seen how long it is.
        guard length >= Self.shortestTick || wait.isUntilTime && ticks[site] != nil else { return false }
        // How long a wait until a time is, is known with the precision of its beginning.
        if let longest = ticks[site], length <= longest * 5 / 4 + Self.precision { return true }
        // It has begun since the look before, or the thaw.
        let begun = Repetition(since: max(lastLook ?? now, now - idleTime), idleTime: idleTime, seen: looks)
        var repetition = repetitions[site] ?? begun
        // What was seen in the looks of a longer `IdleSec=` does not count for a shorter one.
        if idleTime < repetition.idleTime { repetition = begun }
        guard repetitions[site] != nil || repetitions.count < Self.mostTicks else { return false }
        repetition.seen = looks
        repetitions[site] = repetition
        guard now - repetition.since >= max(idleTime * Self.looksToLearn, Self.shortestLearning),
            ticks[site] != nil || ticks.count < Self.mostTicks
        else {
            return false
        }
        ticks[site] = max(ticks[site] ?? .zero, length)
        return true
    }
}
