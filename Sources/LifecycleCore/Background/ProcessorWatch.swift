/// What a run has had of the processors in the background, as far as it was measured (L44). It is measured some times in each
/// `BackgroundCPUSec=` while it is awake in the background. While it is suspended the time passes, and it uses nothing. In the
/// foreground all begins anew.
struct ProcessorWatch: Hashable, Sendable {
    /// The total since the launch.
    struct Sample: Hashable, Sendable {
        /// When it was asked for: it was measured then, or later.
        var at: Instant
        var used: Duration
        /// For how long it was ready to run and got no processor.
        var waited: Duration
    }

    /// It has used more than its limit, and gets less of the processor.
    struct Throttle: Hashable, Sendable {
        var since: Instant
        /// Why.
        var use: BackgroundUse
    }

    /// The time between two samples.
    struct Window {
        var used: Duration
        var waited: Duration
        /// At least the time in which it used that, so that no app is found to use more than it does.
        var time: Duration
    }

    /// How often a run is measured in each `BackgroundCPUSec=`. Use above the limit that lasts for that time is found after at
    /// most two sixths more.
    static let looks = 6
    static let shortestInterval = Duration.milliseconds(100)
    /// More than there are in one period: a manifest may change its length.
    static let maximumSamples = 16

    /// The oldest first.
    var samples: [Sample] = []
    /// When the next measurement is due; `nil`: nothing is counted. It stays while the run is suspended, so that short stays in
    /// the background count together.
    var nextAt: Instant?
    /// A measurement was asked for then, and has not arrived.
    @Rare var askedAt: Instant? = nil
    /// That it uses half of the limit was reported.
    var isWarned = false
    @Rare var throttle: Throttle? = nil

    static func interval(_ period: Duration) -> Duration { max(shortestInterval, period / looks) }

    /// The totals never decrease. In process-group mode the time of an orphan that has ended is missing: until the others have used
    /// as much again, nothing is counted.
    mutating func record(_ sample: Sample) {
        var sample = sample
        if let last = samples.last {
            sample.used = max(sample.used, last.used)
            sample.waited = max(sample.waited, last.waited)
        }
        samples.append(sample)
    }

    /// The shortest time up to `now` that is not shorter than `period`; if no such time was measured, the longest. Older samples
    /// are removed.
    mutating func window(_ period: Duration, at now: Instant) -> Window? {
        if let first = samples.lastIndex(where: { now - $0.at >= period }) { samples.removeSubrange(..<first) }
        if samples.count > Self.maximumSamples { samples.removeFirst(samples.count - Self.maximumSamples) }
        guard let first = samples.first, let last = samples.last else { return nil }
        return Window(used: last.used - first.used, waited: last.waited - first.waited, time: now - first.at)
    }
}
