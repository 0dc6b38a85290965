/// The background time of an app in the last hour that no user asked for (L53).
///
/// The time is summed up by the minute. A minute counts until all of it is more than an hour ago, so no period of an hour
/// contains more than what is counted at its end. The account belongs to the app, not to a run: the end of a run changes
/// nothing. There are at most `maximumMinutes` entries.
struct UnrequestedTime: Hashable, Sendable {
    /// A minute in which time was used, counted from the origin of the clock.
    struct Minute: Hashable, Sendable {
        var number: Int
        var used: Duration

        // Not `.seconds(60) * number`: these generic functions are slow, and this is done at each event of an app.
        var start: Instant { Self.start(number) }
        var end: Instant { Self.start(number + 1) }

        private static func start(_ number: Int) -> Instant {
            Instant(sinceOrigin: Duration(secondsComponent: 60 * Int64(number), attosecondsComponent: 0))
        }

        static func number(at now: Instant) -> Int { Int(now.sinceOrigin.components.seconds / 60) }
    }

    static let window = Duration.seconds(3600)
    /// The minutes of an hour, and the one that has begun.
    static let maximumMinutes = 61

    /// The minutes that still count, the oldest first.
    private(set) var minutes: [Minute] = []
    /// Since when time that is not in `minutes` yet is used; `nil`: the app uses none now.
    private(set) var since: Instant?
    /// It was reported that the time is used up.
    var isReported = false

    init() {}

    /// As it was saved.
    init(minutes: [Minute], since: Instant?, isReported: Bool) {
        self.minutes = minutes
        self.since = since
        self.isReported = isReported
    }

    /// Begins to count, or stops.
    mutating func setCounting(_ isCounting: Bool, at now: Instant) {
        guard isCounting != (since != nil) else { return }
        record(until: now)
        since = isCounting ? now : nil
    }

    /// The time used in the hour before `now`.
    func used(at now: Instant) -> Duration {
        // Asked for at each event of the app: without a copy, and without a division.
        let oldest = Instant(sinceOrigin: now.sinceOrigin - Self.window)
        var sum = since.map { now - max($0, oldest) } ?? .zero
        guard let first = minutes.firstIndex(where: { $0.end > oldest }) else { return sum }
        for position in first..<minutes.count { sum += minutes[position].used }
        return sum
    }

    /// When less than `limit` is used, if the app uses no more until then. `now`, if that is so already.
    func available(from now: Instant, limit: Duration) -> Instant {
        let recorded = recorded(until: now)
        var left = recorded.sum
        if left < limit { return now }
        for minute in recorded.minutes {
            left -= minute.used
            if left < limit { return minute.end + Self.window }
        }
        return now + Self.window
    }

    private var sum: Duration { minutes.reduce(.zero) { $0 + $1.used } }

    private func recorded(until now: Instant) -> UnrequestedTime {
        var copy = self
        copy.record(until: now)
        return copy
    }

    private mutating func record(until now: Instant) {
        let oldest = Instant(sinceOrigin: now.sinceOrigin - Self.window)
        minutes.removeAll { $0.end <= oldest }
        guard let since else { return }
        var start = max(since, oldest)
        while start < now {
            let number = Minute.number(at: start)
            let end = min(now, Minute(number: number, used: .zero).end)
            if let last = minutes.indices.last, minutes[last].number >= number {
                minutes[last].used = min(.seconds(60), minutes[last].used + (end - start))
            } else {
                minutes.append(Minute(number: number, used: end - start))
            }
            start = end
        }
        self.since = now
    }
}
