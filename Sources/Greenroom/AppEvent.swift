import CGreenroom

/// An event in the life of the app.
///
/// `App.events` gives the events to Swift concurrency. A program with a delegate gets each as a call of the method with the same
/// name. A later release may add cases, so a `switch` needs a `default`.
public enum AppEvent: Sendable {
    /// The app is in front and gets input.
    case didBecomeActive(cause: ActivationCause)
    /// The app will stop being active.
    case willResignActive(cause: ResignationCause)
    /// The app returns from the background, and will become active.
    case willEnterForeground
    /// The app has left the foreground, and may be suspended once it has answered: save the state now.
    ///
    /// The answer has to come within `deadline` (`BackgroundDeadlineSec=`, 5s by default), or the app is killed. `nil`: there is
    /// no limit.
    case didEnterBackground(deadline: Duration?)
    /// The app will be ended. After the answer it may be killed at once, after `deadline` it is. `nil`: the deadline is unknown,
    /// because a signal asks the app to end.
    case willTerminate(reason: String, deadline: Duration?)
    /// Memory is short: release what can be made again.
    case didReceiveMemoryWarning(level: MemoryLevel)
    /// The background time ends while these tasks are open. After `remaining` the app is killed if one of them still is.
    ///
    /// `App.withBackgroundTask(named:_:)` is cancelled by itself then.
    case tasksWillExpire(names: [String], remaining: Duration)
    /// The app is to open a URL. It has one of the schemes of `URLSchemes=` in the manifest.
    case open(url: String)
    /// A push. Complete it, at the latest 30s after its arrival.
    case didReceivePush(Wake)
    /// The app was woken for another reason than a push, for example to fetch. Complete the wake, as that of a push.
    case didWake(Wake)
    /// Something changed while the app was away, or now: for example the kind `locale` with the payload `de_DE`.
    case didReceiveNotification(kind: String, payload: String)
    /// The app will be suspended at once. The code that handles this event may be cut short by that.
    case willSuspend
    /// The app was suspended for a time. `changed` has the kinds of notifications that follow.
    case didResume(after: Duration, changed: [String])
    /// One of the scenes of the app has changed.
    case scene(String, SceneNotice)
    /// A picture of the app is wanted, which is shown while the app is not: call `App.saveSnapshot(_:type:)`.
    ///
    /// It comes when the app has answered `didEnterBackground`, and after a wake that has led to new data. The app has 500ms.
    case takeSnapshot
    /// A picture of a scene is wanted: call `App.save(_:scene:)`.
    ///
    /// It comes when the scene has entered the background, and after a wake that has led to new data for the one that was in front
    /// last.
    case takeSceneSnapshot(String)
    /// A user has closed these scenes, now or while the app did not run: they do not come back. One that was connected was
    /// disconnected before (`SceneNotice.didDisconnect`).
    case didDiscardScenes([String])
    /// The app will be suspended: take back what it advertises, such as a service on the network, a lease or a name on a bus.
    ///
    /// The suspension waits for the answer, `BackgroundDeadlineSec=` (5s) at most. `didResume` follows when the app runs again, also if
    /// it is not suspended after all: advertise again.
    case withdraw

    /// Kinds of events, for `App.handledEvents`.
    public struct Kinds: OptionSet, Sendable, Hashable {
        /// One bit for each kind.
        public let rawValue: UInt32

        /// Makes a set from its bits.
        public init(rawValue: UInt32) { self.rawValue = rawValue }

        /// The C library numbers the kinds from 1.
        private init(_ kind: greenroom_kind) { self.init(rawValue: 1 << kind.rawValue) }

        func contains(_ kind: greenroom_kind) -> Bool { contains(Kinds(kind)) }

        /// All kinds that this release knows.
        public static let all: Kinds = [
            .didBecomeActive, .willResignActive, .willEnterForeground, .didEnterBackground, .willTerminate,
            .didReceiveMemoryWarning, .tasksWillExpire, .open, .didReceivePush, .didWake, .didReceiveNotification,
            .willSuspend, .didResume, .scene, .takeSnapshot, .takeSceneSnapshot, .didDiscardScenes,
            .withdraw,
        ]
        /// `AppEvent.didBecomeActive(cause:)`.
        public static let didBecomeActive = Kinds(GREENROOM_DID_BECOME_ACTIVE)
        /// `AppEvent.willResignActive(cause:)`.
        public static let willResignActive = Kinds(GREENROOM_WILL_RESIGN_ACTIVE)
        /// `AppEvent.willEnterForeground`.
        public static let willEnterForeground = Kinds(GREENROOM_WILL_ENTER_FOREGROUND)
        /// `AppEvent.didEnterBackground(deadline:)`. An app that handles it has to answer it in time.
        public static let didEnterBackground = Kinds(GREENROOM_DID_ENTER_BACKGROUND)
        /// `AppEvent.willTerminate(reason:deadline:)`.
        public static let willTerminate = Kinds(GREENROOM_WILL_TERMINATE)
        /// `AppEvent.didReceiveMemoryWarning(level:)`.
        public static let didReceiveMemoryWarning = Kinds(GREENROOM_MEMORY_WARNING)
        /// `AppEvent.tasksWillExpire(names:remaining:)`. Background tasks are cancelled with or without it.
        public static let tasksWillExpire = Kinds(GREENROOM_TASKS_EXPIRING)
        /// `AppEvent.open(url:)`. Without it greenroomd refuses URLs for the app.
        public static let open = Kinds(GREENROOM_OPEN_URL)
        /// `AppEvent.didReceivePush(_:)`. Without it the app reads pushes from its inbox (`Launch.inbox`).
        public static let didReceivePush = Kinds(GREENROOM_PUSH)
        /// `AppEvent.didWake(_:)`.
        public static let didWake = Kinds(GREENROOM_WAKE)
        /// `AppEvent.didReceiveNotification(kind:payload:)`. Without it the app reads notifications from its inbox.
        public static let didReceiveNotification = Kinds(GREENROOM_NOTIFICATION)
        /// `AppEvent.willSuspend`.
        public static let willSuspend = Kinds(GREENROOM_WILL_SUSPEND)
        /// `AppEvent.didResume(after:changed:)`.
        public static let didResume = Kinds(GREENROOM_DID_RESUME)
        /// `AppEvent.scene(_:_:)`. Without it greenroomd refuses requests for scenes that the app does not have.
        public static let scene = Kinds(GREENROOM_SCENE)
        /// `AppEvent.takeSnapshot`. Without it no snapshot is asked for.
        public static let takeSnapshot = Kinds(GREENROOM_TAKE_SNAPSHOT)
        /// `AppEvent.takeSceneSnapshot(_:)`. Without it no snapshot of a scene is asked for.
        public static let takeSceneSnapshot = Kinds(GREENROOM_TAKE_SCENE_SNAPSHOT)
        /// `AppEvent.didDiscardScenes(_:)`.
        public static let didDiscardScenes = Kinds(GREENROOM_DID_DISCARD_SCENES)
        /// `AppEvent.withdraw`. Without it the app is suspended with what it advertises.
        public static let withdraw = Kinds(GREENROOM_WITHDRAW)
    }
}

/// Why an app becomes active.
public enum ActivationCause: String, Sendable {
    /// It was launched.
    case launch
    /// It returns from the background.
    case `return`
    /// An interruption has ended, for example a call. A game stays paused until the user continues it.
    case interruptionEnded
}

/// Why an app stops being active.
public enum ResignationCause: String, Sendable {
    /// An interruption begins. The app stays in front, and keeps what it has.
    case interruption
    /// The app goes to the background.
    case background
}

/// How short memory is.
public enum MemoryLevel: String, Sendable {
    /// Caches should be emptied.
    case warning
    /// Apps are about to be killed.
    case critical
}

/// What the work after a push or a fetch has led to.
public enum WakeResult: Sendable {
    /// There is new data.
    case newData
    /// There is none.
    case noData
    /// It is unknown whether there is.
    case failed
    /// The work continues, and `Wake.complete(_:)` is called when it is done.
    case later
}
