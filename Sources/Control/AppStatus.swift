/// One app, as `Status`, `List` and `greenroomctl status` show it.
package struct AppStatus: Record {
    /// The app's ID: the name of its manifest.
    package var id = ""
    /// The name for people.
    package var name = ""
    /// `notRunning`, `launching`, `inactive`, `active`, `background`, `suspended` or `terminating`.
    package var state = ""
    /// `app`, `worker` or `home` (L49); `nil`: the manifest has an error.
    package var role: String?
    /// The main process; absent where there is none.
    package var pid: Int32?
    /// When the app entered its state; absent for an app that an error in its manifest disables and that is not
    /// running.
    package var since: Timestamp?
    /// What ending the app gives back.
    package var memoryBytes: UInt64 = 0
    /// What of it is in RAM, and mapped pages of files. Absent where it was not measured.
    package var residentBytes: UInt64?
    /// What of it is in swap. Absent where it was not measured.
    package var swappedBytes: UInt64?
    /// RAM that the app does not take: what of a suspended app is in swap, and what an app that was ended for memory or after
    /// `UnloadAfterSec=` had, until it is launched. Absent for other apps, and where it was not measured.
    package var savedBytes: UInt64?
    /// What the app has stored in memory for its next launch (`FDSTORE=1`), whether it runs or not. Absent if that is nothing.
    package var storedBytes: UInt64?
    package var tasks: [TaskStatus] = []
    /// The background modes that it is in, by name (L28).
    package var modes: [String] = []
    /// The scenes of the app, the one activated last at the end; empty: it does not run, or has the scene `main` alone,
    /// without a snapshot (L34).
    package var scenes: [SceneStatus] = []
    /// The wakes that are open, oldest first; absent where there is none.
    package var wakes: [WakeStatus]?
    /// Why the app is awake (L51); empty where it is not.
    package var awake: [AwakeStatus] = []
    /// Until the app is suspended unless it works, while it is idle (L51).
    package var suspendsIn: Duration?
    /// How often input woke the process (L50); absent where there is none.
    package var trafficWakes: UInt64?
    /// What woke it last.
    package var lastInput: InputStatus?
    /// What is watched, while the app is suspended (L50).
    package var watch: WatchStatus?
    /// The sockets that the daemon holds for the app, in the order of the manifest (L29); empty where there are none.
    package var sockets: [SocketStatus] = []
    /// The timers of the app, and its fetches (L30); empty where it has none.
    package var timers: [TimerStatus] = []
    /// For how long connections to them have waited for a launch that is postponed (L11); absent where none waits.
    package var connectionsWaiting: Duration?
    /// Until a suspended app is ended to give its memory back (`UnloadAfterSec=`); absent where it is not.
    package var unloadsIn: Duration?
    /// A wake that waits for background time, while the app is suspended (L53).
    package var deferredWake: DeferredWakeStatus?
    /// The file locks that the app holds while it is suspended (L43).
    package var heldLocks: LockStatus?
    /// Its threads wait in ticks, which pass unnoticed while the app is suspended: the shortest (L51).
    package var shortestWait: Duration?
    /// Until its next timer is due, which thaws a suspended worker (L51); absent where it has none.
    package var timerIn: Duration?
    /// Until a suspended worker with ticks runs for a moment.
    package var pulseIn: Duration?
    /// Why the app gets less of the processor (L44); absent where it gets what it needs.
    package var throttle: ThrottleStatus?
    /// The nearest deadline of the app.
    package var deadline: DeadlineStatus?
    /// Whether the app is in the foreground, or on its way there.
    package var foreground = false
    /// How often the app was launched.
    package var launches: UInt64 = 0
    /// Open interruptions (L13).
    package var interruptions: UInt64 = 0
    /// What is left of the background time (L24); absent where it is infinite.
    package var backgroundTimeRemaining: Duration?
    /// Until the app may be launched again without the user (L11).
    package var launchPostponed: Duration?
    /// Until the daemon launches the app again by itself (L11).
    package var relaunchIn: Duration?
    /// For how long the app's launch has waited for others (L52).
    package var launchWaiting: Duration?
    /// After it was ended for memory: how many bytes the app waits for to be launched again.
    package var memoryAwaitedBytes: UInt64?
    /// The background time in the last hour that no user asked for (L53).
    package var backgroundTimeLastHour: Duration?
    /// The limit of that time; absent where it is infinite.
    package var backgroundTimePerHour: Duration?
    /// The text that the app set with `STATUS=`.
    package var statusText: String?
    /// Why the app cannot be suspended; absent where nothing is known to prevent it.
    package var suspendProblem: String?
    /// Why nothing but a request wakes the suspended app, and the settings that change that; absent where something does.
    package var wakeProblem: String?
    /// The last warning about a notify message of the app; absent if there was none since the daemon started.
    package var lastWarning: String?
    /// How often the process began to use more than a fifth of the daemon's time, so that its messages, connections and input waited;
    /// absent where it did not. Counted since the daemon started.
    package var floods: UInt64?
    package var lastReceipt: ReceiptRecord?
    /// The file that the output of the app goes to; absent if it goes elsewhere (`StandardOutput=`, L56).
    package var outputFile: String?
    /// The address at which a push server accepts messages for it (L30), for root and the user of the app. Absent where it has none.
    package var pushEndpoint: String?
    /// The error in the manifest that disables the app.
    package var error: String?
    /// The manifest and its drop-ins, as the daemon has read them: paths, in their order.
    package var files: [String] = []
    /// The app cannot write in the folder of its program (L10). Absent where it may.
    package var readOnlyProgram: Bool?
    /// The digest of the only file that is executed as its program. Absent where any is.
    package var programDigest: String?
    /// The template that the app is an instance of, such as `worker@`; absent for other apps.
    package var template: String?
    /// Whether the app is an instance without a file of its own, which a request has created. Absent where it is not.
    package var isTransient: Bool?
    /// The process that started the command of `greenroomctl run` (L54); absent for other apps.
    package var client: ClientStatus?
    /// Whether one of these files, or the list of them, has changed since. Absent where it has not.
    package var needsReload: Bool?

    package init() {}

    package static let fields: [RecordField<AppStatus>] = [
        .required("id", \.id), .required("name", \.name), .required("state", \.state), .optional("role", \.role),
        .process("pid", \.pid),
        .optional("since", \.since), .required("memoryBytes", \.memoryBytes),
        .optional("residentBytes", \.residentBytes), .optional("swappedBytes", \.swappedBytes),
        .optional("savedBytes", \.savedBytes), .optional("storedBytes", \.storedBytes),
        .required("tasks", \.tasks), .list("modes", \.modes), .list("scenes", \.scenes),
        .optional("wakes", \.wakes), .list("awake", \.awake),
        .optional("suspendsInSeconds", \.suspendsIn), .optional("trafficWakes", \.trafficWakes),
        .optional("lastInput", \.lastInput), .optional("watch", \.watch), .list("sockets", \.sockets),
        .list("timers", \.timers), .optional("pushEndpoint", \.pushEndpoint),
        .optional("connectionsWaitingSeconds", \.connectionsWaiting), .optional("unloadsInSeconds", \.unloadsIn),
        .optional("deferredWake", \.deferredWake), .optional("heldLocks", \.heldLocks),
        .optional("shortestWaitSeconds", \.shortestWait), .optional("timerInSeconds", \.timerIn),
        .optional("pulseInSeconds", \.pulseIn), .optional("throttle", \.throttle),
        .optional("deadline", \.deadline), .required("foreground", \.foreground), .required("launches", \.launches),
        .required("interruptions", \.interruptions),
        .optional("backgroundTimeRemainingSeconds", \.backgroundTimeRemaining),
        .optional("launchPostponedSeconds", \.launchPostponed), .optional("relaunchInSeconds", \.relaunchIn),
        .optional("launchWaitingSeconds", \.launchWaiting), .optional("memoryAwaitedBytes", \.memoryAwaitedBytes),
        .optional("backgroundTimeLastHourSeconds", \.backgroundTimeLastHour),
        .optional("backgroundTimePerHourSeconds", \.backgroundTimePerHour), .optional("statusText", \.statusText),
        .optional("suspendProblem", \.suspendProblem), .optional("wakeProblem", \.wakeProblem),
        .optional("lastWarning", \.lastWarning),
        .optional("floods", \.floods),
        .optional("lastReceipt", \.lastReceipt), .optional("outputFile", \.outputFile), .optional("error", \.error),
        .list("files", \.files), .optional("readOnlyProgram", \.readOnlyProgram),
        .optional("programDigest", \.programDigest),
        .optional("template", \.template), .optional("transient", \.isTransient),
        .optional("client", \.client),
        .optional("needsReload", \.needsReload),
    ]
}

/// A scene of an app (L34).
package struct SceneStatus: Record {
    package var id = ""
    /// `window`, `external` or `panel`.
    package var role = ""
    /// `unattached`, `background`, `foregroundInactive` or `foregroundActive`.
    package var state = ""
    /// Whether it may be shown (L55).
    package var isVisible = false
    /// Whether keys and touches are for it.
    package var receivesInput = false
    /// How the device is held, while the scene is visible; absent: it is not, or that is not known.
    package var orientation: String?
    /// How notices of its app are to be shown: `banner`, `alert` or `none`.
    package var noticeStyle = ""
    /// When its snapshot was taken; absent: it has none, or it is hidden.
    package var snapshotTime: Timestamp?

    package init() {}

    package init(id: String, role: String, state: String) {
        self.id = id
        self.role = role
        self.state = state
    }

    package static let fields: [RecordField<SceneStatus>] = [
        .required("id", \.id), .required("role", \.role), .required("state", \.state),
        .required("visible", \.isVisible), .required("receivesInput", \.receivesInput),
        .optional("orientation", \.orientation), .required("noticeStyle", \.noticeStyle),
        .optional("snapshotTime", \.snapshotTime),
    ]
}

/// The process that started a command of `greenroomctl run`, as it was then: it may have ended since (L54).
package struct ClientStatus: Record, Hashable {
    package var pid: Int32?
    /// `comm`.
    package var name = ""
    /// The name of its program's file, without the folder. Absent where the daemon could not read it.
    package var program: String?

    package init() {}

    package init(pid: Int32, name: String, program: String?) {
        self.pid = pid
        self.name = name
        self.program = program
    }

    package static let fields: [RecordField<ClientStatus>] = [
        .process("pid", \.pid), .required("name", \.name), .optional("program", \.program),
    ]

    /// `claude (node)`. The kernel cuts `comm` after 15 bytes, and the name of a program often has its version, so a program whose name
    /// begins with it stands alone: `python3.11`.
    package var label: String {
        guard let program, !program.isEmpty else { return name }
        return program.hasPrefix(name) ? program : "\(name) (\(program))"
    }
}

/// A socket that the daemon holds for an app (L29).
package struct SocketStatus: Record {
    /// `stream`, `datagram` or `sequentialPacket`.
    package var type = ""
    /// As the manifest writes it: `8080`, `127.0.0.1:80`, `/run/app.sock`, `@name`.
    package var address = ""
    /// Why the socket could not be created; absent where it is held.
    package var problem: String?

    package init() {}

    package init(type: String, address: String, problem: String? = nil) {
        self.type = type
        self.address = address
        self.problem = problem
    }

    package static let fields: [RecordField<SocketStatus>] = [
        .required("type", \.type), .required("address", \.address), .optional("problem", \.problem),
    ]
}

/// When the timers of an app elapse (L30).
package struct TimerStatus: Record {
    /// `timer` or `fetch`: the launch reason.
    package var kind = ""
    /// The next time; absent where there is none. It may be later by `AccuracySec=`.
    package var next: Timestamp?
    /// The last time; absent where it is not known.
    package var last: Timestamp?

    package init() {}

    package static let fields: [RecordField<TimerStatus>] = [
        .required("kind", \.kind), .optional("next", \.next), .optional("last", \.last),
    ]
}

/// An open background task (L21).
package struct TaskStatus: Record {
    package var name = ""
    /// Until the task expires; absent where that is never (L24).
    package var remaining: Duration?
    /// How long the task has been open. Absent in a `LifecycleEvent`.
    package var age: Duration?
    /// The process that began the task. Absent in a `LifecycleEvent`.
    package var owner: Int32?
    /// What the app has reported of its progress; absent: nothing. `total` is 0 if the app does not know it.
    package var done: UInt64?
    package var total: UInt64?
    package var title: String?
    /// Whether it runs in the background for as long as it advances (L21); absent: no.
    package var isContinued: Bool?
    /// Whether a user has cancelled it; absent: no.
    package var isCancelled: Bool?

    package init() {}

    package static let fields: [RecordField<TaskStatus>] = [
        .required("name", \.name), .optional("remainingSeconds", \.remaining), .optional("ageSeconds", \.age),
        .process("owner", \.owner), .optional("done", \.done), .optional("total", \.total), .optional("title", \.title),
        .optional("continued", \.isContinued), .optional("cancelled", \.isCancelled),
    ]

    /// `40% of 'Exporting video'`, `12 done of 'Exporting video'`; without a title `40%`; empty: it has reported nothing.
    package var progressText: String {
        guard let done, let total else { return "" }
        let share = total == 0 ? "\(done) done" : "\(Int(min(100, Double(done) * 100 / Double(total))))%"
        return title.map { "\(share) of '\($0)'" } ?? share
    }
}

/// An open wake (L26).
package struct WakeStatus: Record {
    /// The number that `X_GREENROOM_WAKE_ID=` names. Absent for a wake that began before an upgrade of the daemon.
    package var wakeID: UInt64?
    /// `push`, `fetch`, `socket`, `timer`, `accessory` or `location`.
    package var reason = ""
    /// Until its time is over.
    package var remaining = Duration.zero

    package init() {}

    package static let fields: [RecordField<WakeStatus>] = [
        .optional("wakeId", \.wakeID), .required("reason", \.reason), .required("remainingSeconds", \.remaining),
    ]
}

/// A deadline: of a running app, of a `LifecycleEvent`, or the one that counted when an app ended.
package struct DeadlineStatus: Record {
    /// `launch`, `background`, `terminate`, `backgroundTime`, `wake`, `watchdog` or `resume`.
    package var what = ""
    /// The time left.
    package var remaining: Duration?
    /// The whole time that the app has.
    package var allowed: Duration?
    /// How much an extension adds (L25).
    package var extended: Duration?
    /// The time that passed since the start of the deadline.
    package var wall: Duration?
    /// The processor time that the app used meanwhile; absent where it was not measured.
    package var cpu: Duration?

    package init() {}

    package static let fields: [RecordField<DeadlineStatus>] = [
        .required("what", \.what), .optional("remainingSeconds", \.remaining), .optional("allowedSeconds", \.allowed),
        .optional("extendedSeconds", \.extended), .optional("wallSeconds", \.wall), .optional("cpuSeconds", \.cpu),
    ]
}
