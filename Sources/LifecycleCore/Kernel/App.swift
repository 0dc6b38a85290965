/// What the core knows of one app.
struct App: Hashable, Sendable {
    var id: AppID
    @Boxed var policy: AppPolicy
    /// There is a manifest.
    var isRegistered = true
    /// There is neither a manifest nor a process any more: the index is free.
    var isRemoved = false
    /// Its timer, rank and waiters may have changed in this event. Always `false` between events.
    var isTouched = false
    var life = ProcessLife.notRunning(NotRunning())
    /// When the state that users see was entered.
    var since: Instant
    var launches: Int
    var lastReceipt: UInt64?
    var notifications = NotificationQueue()
    var wakes = PendingWakes()
    var urls = URLQueue()
    var waiters: [Waiter] = []
    /// Early ends in a row (L11).
    var earlyEnds = 0
    /// Deaths while launching in a row of programs that were executed: after two the restoration state is dropped (L11).
    var launchDeaths = 0
    /// Before this instant only a user launches it (L11).
    var postponedUntil: Instant?
    /// Background time that no user asked for (L53).
    var unrequestedTime = UnrequestedTime()
    /// The footprint of the last run that jetsam ended, in bytes: what its return needs.
    var lastFootprint: UInt64 = 0
    /// How many times in a row jetsam ended it soon after its return.
    var returnFailures = 0
    /// The run that began when it last came back after jetsam.
    var returnedRun: RunID?
    /// Jetsam ended the last run, and the app comes back when there is space.
    var isTaken = false
    /// For `JetsamOrder=balanced` (L38).
    var credit = JetsamCredit()
    /// It would be suspended (L58); `nil`: it is, or it would not.
    @Rare var drySleep: DrySleep? = nil
    /// The scenes that a process of the app had which has ended, or that was not connected since; the one activated last at the end (L34).
    /// Never `main`, with which every process begins.
    @Rare var keptScenes: [Scene]? = nil
    var hasKeptScenes: Bool { @inline(__always) get { _keptScenes.isPresent } }
    /// The scenes that a user has closed, of which the app has not been notified; the last one at the end (L34).
    @Rare var discardedScenes: [SceneID]? = nil
    var hasDiscardedScenes: Bool { _discardedScenes.isPresent }
    /// L29.
    var sockets = SocketState()
    /// What its timers have done (L30); `nil`: it has none.
    @Rare var timers: TimerState? = nil
    /// What the sources of the machine are watched for (L33). It follows from the policy and the phase.
    var subscribed: NotificationKinds = []
    /// A transient instance that was created for a request which has not come yet.
    var awaitsRequest = false
    /// A transient instance that a user removed (L42): it goes at its end, although the daemon holds sockets for it.
    var isToRemove = false

    init(id: AppID, policy: AppPolicy, since: Instant, launches: Int) {
        self.id = id
        _policy = Boxed(wrappedValue: policy)
        self.since = since
        self.launches = launches
    }

    /// Keeps one copy of a policy that both have.
    mutating func sharePolicy(with other: App) { _policy.share(with: other._policy) }

    /// L12. Without a copy of the policy: it is read at each event.
    var seat: String? { @inline(__always) get { _policy.seat } }
    var phase: Phase { @inline(__always) get { life.phase } }
    var hasTimers: Bool { @inline(__always) get { _timers.isPresent } }
    var isInDrySleep: Bool { @inline(__always) get { _drySleep.isPresent } }
    /// The state that users see.
    var state: AppState { @inline(__always) get { life.state } }

    /// Takes the life out, so that the run in it is changed in place, without the app's reference to it. It must be put
    /// back.
    mutating func takeLife() -> ProcessLife {
        var taken = ProcessLife.notRunning(NotRunning())
        swap(&taken, &life)
        return taken
    }

    /// The storage of the run, which no other value shares. Traps if the app has no process.
    mutating func ownRunStorage() -> RunStorage {
        switch takeLife() {
        case .running(var running):
            defer { life = .running(running) }
            return running.ownStorage()
        case .ending(var ending):
            defer { life = .ending(ending) }
            return ending.ownStorage()
        case .notRunning: preconditionFailure("\(id) has no run")
        }
    }

    /// The storage of the run, to read some of its parts without a copy of all; `nil`: the app has no process.
    var sharedRunStorage: RunStorage? {
        @inline(__always) get {
            switch life {
            case .notRunning: nil
            case .running(let running): running.sharedStorage
            case .ending(let ending): ending.sharedStorage
            }
        }
    }

    /// The run, if the app has a process.
    var run: Run? {
        switch life {
        case .notRunning: nil
        case .running(let running): running.run
        case .ending(let ending): ending.run
        }
    }

    /// What the run does, if it is not ending.
    var execution: Execution? {
        @inline(__always) get {
            switch life {
            case .running(let running): running.execution
            case .notRunning, .ending: nil
            }
        }
    }

    /// How the run ends, if it is ending.
    var ending: Ending? {
        switch life {
        case .ending(let ending): ending
        case .notRunning, .running: nil
        }
    }

    /// What follows the end that is under way: the launch that was requested, and the state to relaunch it into.
    var afterEnd: (next: Launch?, relaunch: LaunchState?) {
        switch life {
        case .ending(let ending): (ending.next, ending.relaunch)
        case .notRunning, .running: (nil, nil)
        }
    }

    /// The deadline of the transition that is under way, or of the next heartbeat.
    var transitionDeadline: Deadline? {
        @inline(__always) get { execution?.deadline }
        set {
            guard case .running = life, case .running(var running) = takeLife() else { return }
            running.execution.deadline = newValue
            life = .running(running)
        }
    }
}

/// A client that waits until its request is carried out.
struct Waiter: Hashable, Sendable {
    enum Goal: CaseIterable, Hashable, Sendable {
        case foreground, background, ended
        /// That the app runs, wherever: it is woken for something.
        case awake
    }
    var request: RequestID
    var goal: Goal
    /// The client waits for what comes after the end that is under way.
    var isAfterEnd = false
}
