/// The plans of all apps: one moment wakes all that may be woken at it.
package struct TimerBatch: Hashable, Sendable {
    /// What elapses for an app.
    package struct Elapse: Hashable, Sendable {
        package var timer = false
        package var fetch = false
        package var isEmpty: Bool { !timer && !fetch }
    }

    /// A position in each minute, in microseconds, that is the same for all timers of the machine: several daemons, and systemd, would
    /// otherwise wake machines of a data center at the same instant.
    private let position: Int
    private static let minute = 60 * CalendarEvent.second

    /// - Parameter seed: of the machine.
    package init(seed: UInt64) { position = Int(TimerSettings.mix(seed) % UInt64(Self.minute)) }

    /// When to wake, on CLOCK_REALTIME; `nil`: never.
    package func moment(of plans: some Sequence<TimerPlan>) -> Int? {
        var (start, latest) = (Int.max, Int.max)
        for plan in plans {
            for window in [plan.timer, plan.fetch] {
                guard let window else { continue }
                start = min(start, window.start)
                latest = min(latest, window.latest)
            }
        }
        return start == .max ? nil : Self.moment(between: start, and: latest, position)
    }

    /// The latest time from `start` to `latest` that is at the position: of a minute, or else of 10s, 1s or 250ms; `latest` if there is
    /// none. As sd-event coalesces (sd_event_add_time(3)).
    private static func moment(between start: Int, and latest: Int, _ position: Int) -> Int {
        for period in [minute, minute / 6, minute / 60, minute / 240] {
            let moment = latest - ((latest - position) % period + period) % period
            if moment >= start { return moment }
        }
        return latest
    }

    /// What of a plan elapses at a moment. `isFetching`: a fetch of any app is due, so those that soon are come with it.
    package static func elapse(_ plan: TimerPlan, at now: Int, isFetching: Bool) -> Elapse {
        var elapse = Elapse()
        elapse.timer = plan.timer.map { $0.start <= now } ?? false
        elapse.fetch = plan.fetch.map { $0.start <= now || isFetching && plan.earlyFetch <= now } ?? false
        return elapse
    }

    /// Whether a fetch is due.
    package static func isFetching(_ plans: some Sequence<TimerPlan>, at now: Int) -> Bool {
        plans.contains { $0.fetch.map { $0.start <= now } ?? false }
    }
}
