/// An app that is frozen, and the watch for input that wakes it (L50).
struct Suspended: Hashable, Sendable {
    /// The daemon was asked to watch its descriptors, and not to stop.
    var isWatching = false
    /// A worker is looked at once more when it is frozen: it may have done something after the last look. `nil`: it was, or need not be.
    @Rare var look: WorkLook? = nil
    /// It may have a timer that is due by a signal, at a time that is not known.
    var hasSignalTimers = false
    /// What the daemon watches; `nil`: it has not said yet.
    var watch: InputWatch?
    /// Input that has not woken it: less than `WakeThreshold=`.
    @Rare var input: Input? = nil
    /// When that input wakes it; `nil`: not by itself.
    @Rare var inputDue: Instant? = nil
    /// When a timer of it is due; `nil`: it has none.
    var timerDue: Instant?
    /// When it runs for a moment because it has ticks, which can hide what it waits for; `nil`: it has none.
    @Rare var pulseDue: Instant? = nil
    /// What wakes it once the app has background time again (L53): input of its own, or of a peer that waits.
    @Rare var deferred: DeferredInput? = nil
    /// What is pushed out of it (L37); `nil`: nothing, unless memory gets short.
    @Rare var reclaim: Reclaim? = nil
}

struct DeferredInput: Hashable, Sendable {
    /// `nil`: what an earlier release has recorded.
    var input: Input?
    var due: Instant
}

/// How input has woken a run (L50).
struct Traffic: Defaulted {
    static let standard = Boxed(wrappedValue: Traffic())

    var wakes = 0
    var lastInput: Input?
    var lastInputAt: Instant?
    /// How many of the last wakes in a row came soon after a suspension.
    var quickWakes = 0
    /// It is not suspended before, because it was woken too often.
    var awakeUntil: Instant?
    /// Its descriptors cannot be watched: it is left awake, until its end or until another daemon tries again.
    var isUnwatchable = false
    /// It was suspended while nothing but a request would have woken it.
    var hadNoWaker = false
    /// Since when; `nil`: they can be watched, or an earlier release has recorded it without the time. Saved with the run.
    var unwatchableSince: Instant?
    /// When it may be suspended again, to watch them.
    var watchAgainAt: Instant?
    /// What was reported as not watched.
    var unwatched: [InputWatch.Unwatched] = []
    /// The shortest tick at the last measurement.
    var shortestWait: Duration?
    /// A timer has thawed it: since when it runs for a moment; `nil`: it does not.
    var momentSince: Instant?
    /// Since when it sleeps, apart from the moments in which timers run; `nil`: there was none since it was suspended.
    var sleepSince: Instant?
    /// How long it sleeps until the next pulse; `nil`: `PulseSec=`.
    var pulseTime: Duration?
    /// Which thread does what, for the reason why it is awake.
    var detail: String?
}

/// File locks that keep an app from being suspended (L43).
struct LockHold: Hashable, Sendable {
    var since: Instant
    /// The freeze that found them last.
    var attempt: Int
    /// Not before this instant it is tried again.
    var retryAt: Instant
    var locks: FileLocks
}

/// Looks at what an app in the background has to do (L51).
struct WorkLook: Hashable, Sendable {
    /// When the next one is due.
    var nextAt: Instant
    /// The last measurement; `nil`: none was made.
    var before: RunWork?
    /// When that was, or the first was asked for.
    var measuredAt: Instant
    /// One is to be asked for at the end of this event. Always `false` between events.
    var isDue = false
    /// A measurement was asked for and has not arrived.
    var isAsked = true
    /// Since it was asked for, the app has said that it has nothing to do.
    var isHintedMeanwhile = false
    /// What was asked for last.
    var kind = WorkLookKind.first
    /// Why it is awake, and since when; `nil`: it had nothing to do in the time before the last measurement.
    var reason: WorkReason?
    var since: Instant?

    /// Whether clients were connected at the last measurement.
    var hasClients: Bool { (before?.connections ?? 0) > 0 }
}
