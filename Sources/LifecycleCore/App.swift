/// What the core knows of one app.
struct App: Hashable, Sendable {
    let id: AppID
    var policy: AppPolicy
    var isRegistered = true
    /// It has neither manifest nor process any more; its place is free.
    var isForgotten = false
    /// Its timer, rank and waiters may have changed in this event. Between events: never.
    var isTouched = false
    var phase = Phase.notRunning(NotRunning())
    /// When the state that users see was entered.
    var since: Instant
    var run: Run?
    var launches: Int
    var lastReceipt: UInt64?
    var notifications = NotificationQueue()
    var waiters: [Waiter] = []
    /// Early ends in a row (L11).
    var earlyEnds = 0
    /// Ends in launch in a row: after two the restoration state is dropped (L11).
    var launchDeaths = 0
    /// It has a place in the foreground, but not before the user is back (L15).
    var isHeldBack = false
    /// Before this, only the user launches it.
    var postponedUntil: Instant?
}

/// Somebody who waits until a request has come about.
struct Waiter: Hashable, Sendable {
    enum Goal: CaseIterable, Hashable, Sendable {
        case foreground, background, ended
        /// That it runs, and no matter where: an app that is woken for something.
        case awake
    }
    var request: RequestID
    var goal: Goal
    /// It waits for what comes after the end that is under way.
    var isAfterEnd = false
}

/// What belongs to one run and goes with it.
struct Run: Hashable, Sendable {
    let id: RunID
    let created: Instant
    var pid: Int32?
    /// Said once, by this daemon or one before it.
    var isExecuted = false
    /// The last known size in bytes.
    var memory: UInt64 = 0
    var tasks: [BackgroundTask] = []
    /// L13: they nest.
    var interruptions = 0
    /// Somebody asked it to end, and nobody for anything else since: it is not launched again by itself.
    var isEndWanted = false
    /// Its main process has stopped itself, and was not continued.
    var isStopped = false
    var isThrottled = false
    /// The background budget while its clock runs.
    var backgroundTime: Deadline?
    /// What is left of the budget while its clock stands (suspended).
    var backgroundTimeLeft: Duration?
    /// The budget is used up: a task begun now gains nothing.
    var isBackgroundTimeOver = false
    var noticeGiven = false
    var wake: Wake?
    /// Counts freezes, so that an outcome that comes late is known for what it is.
    var freezeAttempt = 0
    /// Processor time at the last notice with a deadline.
    var cpuWhenTold: Duration = .zero

    init(id: RunID, created: Instant) {
        self.id = id
        self.created = created
    }

    var hasAssertion: Bool { !tasks.isEmpty || wake != nil }
}

/// L21.
struct BackgroundTask: Hashable, Sendable {
    var name: String
    var began: Instant
    var owner: Int32
    /// Of one that ends by itself: `EXTEND_TIMEOUT_USEC=` while entering the background (L25).
    var end: Instant?
    /// It may have ended while nobody listened.
    var isDoubtful = false

    /// How tasks that `EXTEND_TIMEOUT_USEC=` opened are called.
    static let extensionName = "EXTEND_TIMEOUT_USEC"
}

/// L26: a wake holds the app awake for some time of its own.
struct Wake: Hashable, Sendable {
    var reason: LaunchReason
    var deadline: Deadline
    /// L30: not completing it is an error.
    var mustComplete: Bool
}
