/// Decides which source of the loop is served now, and which one waits. It knows no descriptor and no clock: the event loop and the
/// simulator of the loop use the same value.
package struct LoopPolicy: Hashable, Sendable {
    /// How much time a level may use in a round. Together the levels can delay a source by some 100 ms: a deadline of an app is
    /// not affected, since it is urgent, and `list` waits only for other clients.
    package static let budget = Duration.milliseconds(20)

    /// What happens to a source that is ready.
    package enum Verdict: Hashable, Sendable {
        case serve
        /// Its level has used its budget: it waits for the end of the round.
        case waitForRound
        /// Its app has used its share: it waits until this time.
        case pause(until: Duration)
    }

    /// The time that each level has used in this round.
    private var used = [Duration](repeating: .zero, count: LoopLevel.allCases.count)
    /// Whether a round is to be ended: a level has used its budget.
    package private(set) var awaitsRound = false

    package init() {}

    /// - Parameters:
    ///   - share: of the app that can make the source ready; `nil`: no app can.
    ///   - now: any clock that does not go back.
    package func verdict(on kind: SourceKind, _ share: LoopShare?, at now: Duration) -> Verdict {
        if let share, let end = share.pauseEnd(at: now) { return .pause(until: end) }
        let level = kind.level
        guard level != .urgent, level != .rounds, used[level.rawValue] >= Self.budget else { return .serve }
        return .waitForRound
    }

    /// A source was served for this time.
    package mutating func served(_ kind: SourceKind, for time: Duration) {
        let level = kind.level
        used[level.rawValue] += time
        if level != .urgent, level != .rounds, used[level.rawValue] >= Self.budget { awaitsRound = true }
    }

    /// Everything that was pending was served, or has used its budget.
    package mutating func endRound() {
        for index in used.indices { used[index] = .zero }
        awaitsRound = false
    }
}

/// What one app may use of the loop's time: a fifth of a processor, and `burst` at once (a leaky bucket). An app that floods the
/// daemon waits; other apps and all clients are served.
package struct LoopShare: Hashable, Sendable {
    /// 1,000 messages over a connection, the most in a second, take some 50 ms.
    package static let burst = Duration.milliseconds(100)
    /// The part of a processor that an app may use without end.
    private static let part = 5
    /// How long an app waits. Meanwhile it gets back a fifth of that.
    package static let pause = Duration.milliseconds(50)
    /// Pauses that follow each other this closely are one flood.
    private static let calm = Duration.seconds(1)

    private var used = Duration.zero
    private var last = Duration.zero
    private var pausedUntil = Duration.zero
    /// How often the app began to flood the daemon.
    package private(set) var floods = 0

    package init() {}

    /// When the app is served again; `nil`: now.
    func pauseEnd(at now: Duration) -> Duration? { now < pausedUntil ? pausedUntil : nil }

    /// A source of the app was served.
    /// - Returns: whether the app has to wait from now on, for the first time since it was calm.
    package mutating func served(from start: Duration, to now: Duration) -> Bool {
        used = max(.zero, used - (start - min(start, last)) / Self.part) + (now - start)
        last = now
        guard used >= Self.burst, now >= pausedUntil else { return false }
        let isFlood = floods == 0 || now - pausedUntil >= Self.calm
        pausedUntil = now + Self.pause
        if isFlood { floods += 1 }
        return isFlood
    }
}

/// Finds a source that is dispatched again and again although nothing comes of it: it would keep the loop busy without end.
package struct ProgressCounter: Hashable, Sendable {
    /// So many turns without progress within `window` are a fault. A source that is woken in vain now and then is none.
    package static let limit = 200
    package static let window = Duration.seconds(10)

    private var count: UInt16 = 0
    private var start = Duration.zero

    package init() {}

    /// A turn is over.
    /// - Returns: whether the source is to be switched off.
    package mutating func ended(hasProgress: Bool, at now: Duration) -> Bool {
        if hasProgress {
            count = 0
            return false
        }
        if count == 0 || now - start >= Self.window { (count, start) = (0, now) }
        count += 1
        return count >= Self.limit
    }
}

/// When the service manager is notified that the daemon works (`WATCHDOG=1`, sd_watchdog_enabled(3)): after each round through all
/// levels that was completed in time. A daemon that is stuck, or that serves one source for ever, completes none.
package struct Heartbeat: Hashable, Sendable {
    /// A round that takes longer is no sign of life.
    package static let longestRound = Duration.seconds(5)
    /// From one beginning to the next: a third of the service manager's limit.
    package let interval: Duration
    private var began: Duration?

    /// - Parameter limit: `WatchdogSec=` of the service manager.
    package init(limit: Duration) { interval = limit / 3 }

    /// A round begins.
    package mutating func begin(at now: Duration) { if began == nil { began = now } }

    /// A round is over.
    /// - Returns: whether the sign is sent, and when the next round begins; `nil`: none was awaited.
    package mutating func roundEnded(at now: Duration) -> (isAlive: Bool, next: Duration)? {
        guard let start = began else { return nil }
        began = nil
        let isAlive = now - start <= Self.longestRound
        return (isAlive, isAlive ? start + interval : now)
    }
}

/// How long the daemon may leave its processor to others, after it has thawed an app: a twentieth of the time, and `burst` at once (a
/// leaky bucket). On a machine whose processors are all at work a yield takes a time slice of each program that waits.
package struct YieldBudget: Hashable, Sendable {
    /// An app that is thawed, and its client, are at work for some 100 µs each.
    package static let burst = Duration.milliseconds(2)
    /// The part of the time that may be left to others without end.
    private static let part = 20
    /// More is not counted: a machine that is paused during a yield has used no processor.
    private static let most = Duration.seconds(1)

    private var used = Duration.zero
    private var last = Duration.zero

    package init() {}

    /// Whether the processor may be left to others now.
    package mutating func allows(at now: Duration) -> Bool {
        used = max(.zero, used - (now - last) / Self.part)
        last = now
        return used < Self.burst
    }

    /// The processor was left to others for this time.
    package mutating func yielded(for time: Duration) { used = min(used + time, Self.most) }
}
