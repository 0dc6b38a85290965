package import Control
package import LifecycleCore
package import Systemd

/// One log entry about a report of the core: a sentence, its journal fields, and the event that bus clients receive.
package struct LogEntry: Hashable, Sendable {
    package var priority: LogLevel
    package var messageID: String
    package var app: AppID?
    /// One line; begins with the app's ID.
    package var message: String
    /// What happened, with the keys of the control interface. The time is set when the event is sent.
    package var event: LifecycleEvent

    /// Journal fields beside `MESSAGE_ID=` and `GREENROOM_APP=`.
    package var fields: [(name: String, value: String)] {
        let single: [(String, String?)] = [
            ("GREENROOM_STATE", event.state), ("GREENROOM_PREVIOUS_STATE", event.previousState),
            ("GREENROOM_REASON", event.reason), ("GREENROOM_DEADLINE", event.deadline?.what),
            ("GREENROOM_HOOK", event.hook), ("GREENROOM_RESULT", event.result),
            ("GREENROOM_WAKE", event.wake.map { String($0) }),
            ("GREENROOM_MEMORY_LEVEL", event.level), ("GREENROOM_MODE", event.mode),
            ("GREENROOM_SCENE", event.scene), ("GREENROOM_SCENE_STATE", event.sceneState),
            ("GREENROOM_NAMESPACE", event.namespace), ("GREENROOM_CODE", event.code),
            ("GREENROOM_RECEIPT", event.receipt.map { String($0) }),
        ]
        let all = single + inputFields + exitFields
        return all.compactMap { name, value in value.map { (name, $0) } }
            + event.tasks.map { ("GREENROOM_TASK", $0.name) }
    }

    /// The input that woke the app, or the file of a lock.
    private var inputFields: [(String, String?)] {
        if let file = event.file { return [("GREENROOM_FILE", file)] }
        guard let input = event.input else { return [] }
        return [
            ("GREENROOM_PEER", input.peer), ("GREENROOM_BYTES", String(input.bytes)),
            ("GREENROOM_DESCRIPTOR", String(input.descriptor)), ("GREENROOM_PID", input.pid.map { String($0) }),
        ]
    }

    /// How the main process ended, in the fields of systemd (systemd.exec(5)).
    private var exitFields: [(String, String?)] {
        if let status = event.exitStatus { return [("EXIT_CODE", "exited"), ("EXIT_STATUS", String(status))] }
        guard let signal = event.signal else { return [] }
        let code = event.coreDumped == true ? "dumped" : "killed"
        return [("EXIT_CODE", code), ("EXIT_STATUS", shortSignalName(signal))]
    }

    package static func == (a: LogEntry, b: LogEntry) -> Bool {
        a.messageID == b.messageID && a.message == b.message && a.app == b.app
    }

    package func hash(into hasher: inout Hasher) {
        hasher.combine(messageID)
        hasher.combine(message)
    }
}

extension LogEntry {
    /// The entry of a report. States, codes and names are spelled as in the command line's output.
    package init(_ report: Report) {
        switch report {
        case .stateChanged(let app, let from, let to, let reason):
            self.init(stateOf: app, from: from, to: to, reason)
        case .deadlineStarted(let app, let what, let time, let wake):
            self.init(.debug, .deadlineStarted, app, what, wake: wake, "started: \(time.timeSpan)") {
                $0.allowed = time
            }
        case .deadlineExtended(let app, let what, let time):
            self.init(.info, .deadlineExtended, app, what, "extended by \(time.timeSpan)") { $0.extended = time }
        case .deadlineCredited(let app, let what, let time): self.init(creditOf: app, what, time)
        case .deadlineMet(let app, let what, let used, let wake):
            self.init(.debug, .deadlineMet, app, what, wake: wake, "met after \(used.timeSpan)") { $0.wall = used }
        case .deadlineCancelled(let app, let what, let wake):
            self.init(.debug, .deadlineCancelled, app, what, wake: wake, "cancelled")
        case .deadlineMissed(let app, let what, let wake):
            self.init(.warning, .deadlineMissed, app, what, wake: wake, "missed")
        case .deadlineDeferred(let app, let what, let cause, let wake):
            self.init(.notice, .deadlineDeferred, app, what, wake: wake, "starts again: \(cause.sentence)")
        case .taskBegan(let app, let name):
            self.init(.info, .taskBegan, app, [name], "background task began: '\(name)'")
        case .taskEnded(let app, let name, let isCancelled): self.init(endOf: name, app, isCancelled: isCancelled)
        case .taskProgressed(let app, let name, let progress): self.init(progressOf: name, app, progress)
        case .taskExpires(let app, let name, let cause): self.init(expiryOf: name, app, cause)
        case .taskRefused(let app, let name): self.init(refusalOf: name, app)
        case .modeBegan(let app, let mode):
            self.init(.info, .modeBegan, app, "mode '\(mode.name)' began") { $0.mode = mode.name }
        case .modeEnded(let app, let mode):
            self.init(.info, .modeEnded, app, "mode '\(mode.name)' ended") { $0.mode = mode.name }
        case .sceneChanged(let app, let scene, _, let state): self.init(sceneOf: app, scene, state)
        case .tasksExpiring(let app, let names):
            self.init(
                .notice, .tasksExpiring, app, names, "background time expires soon; open tasks: \(Self.list(names))")
        case .freezeTakesLong(let app):
            self.init(
                .warning, .freezeTakesLong, app,
                "not frozen after 2s: a process is in uninterruptible sleep, or left the group; the other processes are frozen"
            )
        case .killTakesLong(let app):
            self.init(.warning, .killTakesLong, app, "processes survive SIGKILL; waiting for the kernel to end them")
        case .stoppedItself(let app, let state):
            self.init(.notice, .stoppedItself, app, "main process stopped (\(state.rawValue))") {
                $0.state = state.rawValue
            }
        case .wakeCompleted(let app, let result, let wake): self.init(completionOf: wake, of: app, result)
        case .relaunchScheduled(let app, let time, let ends): self.init(relaunchOf: app, time, earlyEnds: ends)
        case .unrequestedTimeUsedUp(let app, let limit): self.init(timeUsedUpBy: app, limit)
        case .memoryAwaited(let app, let bytes): self.init(memoryAwaitedBy: app, bytes)
        case .memoryLevelChanged(let level, let cause): self.init(level, cause)
        case .inputArrived(let app, let input): self.init(wakeOf: app, by: InputStatus(input))
        case .inputNotWatched(let app, let watch): self.init(watchOf: app, watch)
        case .wokenTooOften(let app, let time): self.init(wokenTooOften: app, time)
        case .locksHeld(let app, let locks, let isSuspended): self.init(locksOf: app, locks, isSuspended: isSuspended)
        case .processorUseHigh(let app, let use): self.init(useOf: app, use)
        case .processorThrottled(let app, let use): self.init(throttleOf: app, use)
        case .processorThrottleEnded(let app):
            self.init(.notice, .cpuThrottleEnded, app, "gets as much of the processor as before")
        case .connectionsRejected(let app, let time): self.init(rejectedBy: app, after: time)
        case .wouldSuspend(let app):
            self.init(.info, .wouldSuspend, app, "would be suspended now (Suspend=dry-run)")
        case .wouldResume(let app, let result): self.init(dryRunOf: app, result)
        case .hookFailed(let app, let kind, let outcome): self.init(failureOf: kind, of: app, outcome)
        case .hookKilled(let app, let kind, let time): self.init(killOf: kind, of: app, after: time)
        case .suspensionRefused(let app): self.init(refusalOf: app)
        case .memoryReclaimed(let app, let bytes): self.init(reclaimOf: app, bytes)
        case .ended(let receipt): self.init(receipt)
        }
    }

    // MARK: Kinds of entries

    private init(creditOf app: AppID, _ what: DeadlineKind, _ time: Duration) {
        self.init(
            .notice, .deadlineExtended, app, what,
            "extended by \(time.timeSpan), in which the app was ready to run and got no processor"
        ) { $0.extended = time }
    }

    private init(rejectedBy app: AppID, after time: Duration) {
        self.init(
            .warning, .connectionsRejected, app,
            "reset the connections that waited for a launch: it ended early several times and is not launched for now "
                + "(waited \(time.timeSpan))")
    }

    private init(sceneOf app: AppID, _ scene: SceneID, _ state: SceneState) {
        self.init(.info, .sceneChanged, app, "scene '\(scene)' is \(state.name)") {
            ($0.scene, $0.sceneState) = (scene.name, state.name)
        }
    }

    private init(completionOf wake: UInt64, of app: AppID, _ result: WakeResult) {
        self.init(.info, .wakeCompleted, app, "wake\(Self.number(wake)) completed: \(result.rawValue)") {
            $0.result = result.rawValue
            $0.wake = wake == 0 ? nil : wake
        }
    }

    private init(killOf kind: HookKind, of app: AppID, after time: Duration) {
        self.init(.warning, .hookKilled, app, "killed \(kind.rawValue)=: not over after \(time.timeSpan)") {
            $0.hook = kind.rawValue
        }
    }

    private init(refusalOf app: AppID) {
        self.init(
            .info, .suspensionRefused, app,
            "not suspended: ExecBeforeSuspend= exited with status 75; it is run once more before the next attempt"
        ) { $0.hook = HookKind.beforeSuspend.rawValue }
    }

    private init(failureOf kind: HookKind, of app: AppID, _ outcome: HookOutcome) {
        self.init(.warning, .hookFailed, app, "\(kind.rawValue)= failed: \(outcome.sentence)") {
            $0.hook = kind.rawValue
            switch outcome {
            case .ended(.exited(let status)): $0.exitStatus = status
            case .ended(.signaled(let number, let coreDumped)): ($0.signal, $0.coreDumped) = (number, coreDumped)
            case .ended(.unknown), .ended(.lost), .notStarted: break
            }
        }
    }

    private init(stateOf app: AppID, from: AppState, to: AppState, _ reason: StateReason) {
        // A worker with a schedule runs for a moment each time.
        let level: LogLevel = reason == .timer ? .debug : to.isNotable ? .notice : .info
        self.init(
            level, .stateChanged, app,
            "state changed: \(from.rawValue) → \(to.rawValue) (\(reason.rawValue))"
        ) {
            $0.state = to.rawValue
            $0.previousState = from.rawValue
            $0.reason = reason.rawValue
        }
    }

    /// - Parameter what: what happened to the deadline.
    private init(
        _ priority: LogLevel, _ kind: LifecycleEvent.Kind, _ app: AppID, _ deadline: DeadlineKind, wake: UInt64 = 0,
        _ what: String, _ set: (inout DeadlineStatus) -> Void = { _ in }
    ) {
        var status = DeadlineStatus()
        status.what = deadline.rawValue
        set(&status)
        self.init(priority, kind, app, "deadline for \(deadline.inWords)\(Self.number(wake)) \(what)") {
            $0.deadline = status
            $0.wake = wake == 0 ? nil : wake
        }
    }

    /// - Parameter wake: 0: it has no number.
    private static func number(_ wake: UInt64) -> String { wake == 0 ? "" : " \(wake)" }

    private init(refusalOf task: String, _ app: AppID) {
        self.init(
            .notice, .taskRefused, app, [task],
            "background task refused: '\(task)': no background time is left, or the app is about to end")
    }

    private init(endOf task: String, _ app: AppID, isCancelled: Bool) {
        let cause = isCancelled ? " (cancelled)" : ""
        self.init(.info, .taskEnded, app, [task], "background task ended: '\(task)'\(cause)")
        if isCancelled { event.reason = TaskExpiry.cancelled.rawValue }
    }

    private init(progressOf task: String, _ app: AppID, _ progress: TaskProgress) {
        self.init(
            .info, .taskProgress, app, [], "background task '\(task)': \(TaskStatus(task, progress).progressText)")
        event.tasks = [TaskStatus(task, progress)]
    }

    private init(expiryOf task: String, _ app: AppID, _ cause: TaskExpiry) {
        let sentence =
            switch cause {
            case .stalled: "made no progress (TaskProgressSec=): the background time limits it now"
            case .limit:
                "made no progress for longest of too many (ContinuedTasks=): the background time limits it now"
            case .cancelled: "was cancelled by a user"
            }
        self.init(.notice, .tasksExpiring, app, [task], "background task '\(task)' \(sentence)")
        event.reason = cause.rawValue
    }

    /// How many tasks an entry names: an app may have a thousand.
    private static let namedTasks = 3

    private init(
        _ priority: LogLevel, _ kind: LifecycleEvent.Kind, _ app: AppID, _ tasks: [String], _ message: String
    ) {
        self.init(priority, kind, app, message) {
            $0.tasks = tasks.prefix(Self.namedTasks).map(TaskStatus.init(named:))
        }
    }

    private static func list(_ names: [String]) -> String {
        let named = names.prefix(namedTasks).map { "'\($0)'" }.joined(separator: ", ")
        return named + (names.count > namedTasks ? " and \(names.count - namedTasks) more" : "")
    }

    private init(relaunchOf app: AppID, _ time: Duration, earlyEnds: Int) {
        let times = earlyEnds > 1 ? " (ended early \(earlyEnds) times in a row)" : ""
        let message = time == .zero ? "relaunching" : "relaunching in \(time.timeSpan)\(times)"
        self.init(.notice, .relaunchScheduled, app, message) {
            $0.relaunch = time
            $0.earlyEnds = UInt64(max(0, earlyEnds))
        }
    }

    private init(_ level: MemoryLevel, _ cause: MemoryCause) {
        self.init(
            level == .normal ? .notice : .warning, .memoryLevelChanged, nil,
            "Memory level changed: \(level.name)\(level == .normal ? "" : " (\(cause.rawValue))")"
        ) {
            $0.level = level.name
            $0.reason = cause.rawValue
        }
    }

    private init(wakeOf app: AppID, by input: InputStatus) {
        // An app with a schedule is woken by its own timer each time.
        let level: LogLevel = input.kind == InputKind.timer.rawValue ? .debug : .info
        self.init(level, .inputArrived, app, "woken by \(input.phrase)") { $0.input = input }
    }

    private init(watchOf app: AppID, _ watch: InputWatch) {
        let status = WatchStatus(watch)
        let phrases = status.unwatched.map(\.phrase)
        // A descriptor that no daemon can watch is a property of the program.
        let isExpected = watch.unwatched.allSatisfy { $0.problem == .notSupported }
        self.init(
            isExpected ? .notice : .warning, .inputNotWatched, app,
            "\(phrases.joined(separator: "; ")); input there does not wake the app"
        ) { $0.watch = status }
    }

    private init(wokenTooOften app: AppID, _ time: Duration) {
        self.init(
            .notice, .wokenTooOften, app,
            "woken within 1s of each of its last suspensions; it stays awake for \(time.timeSpan)"
        ) { $0.staysAwake = time }
    }

    private init(locksOf app: AppID, _ locks: FileLocks, isSuspended: Bool) {
        let more = locks.count > 1 ? " and \(locks.count - 1) more" : ""
        let held =
            locks.isResource
            ? "it holds \(locks.file)\(more) (Releases=)"
            : "it holds a \(locks.isShared ? "shared " : "")lock on \(locks.file)\(more)"
        let consequence =
            locks.isShared
            ? "programs that want to write there may have to wait until the app runs again"
            : "programs that need it wait until the app runs again"
        self.init(
            isSuspended ? .warning : .notice, .locksHeld, app,
            isSuspended
                ? "suspended although \(held); \(consequence)"
                : "not suspended yet: \(held)"
        ) {
            $0.file = locks.file
            $0.locks = UInt64(max(0, locks.count))
        }
    }

    private init(timeUsedUpBy app: AppID, _ limit: Duration) {
        self.init(
            .warning, .backgroundTimeUsedUp, app,
            "used up its background time (\(limit.timeSpan) in an hour): tasks and wakes by apps are refused, and "
                + "relaunches wait, until there is time again")
    }

    private init(memoryAwaitedBy app: AppID, _ bytes: UInt64) {
        self.init(
            .notice, .memoryAwaited, app,
            "waits for \(formattedSize(bytes)) of memory: it was ended for memory and is relaunched when there is space"
        ) { $0.memory = bytes }
    }

    private init(reclaimOf app: AppID, _ bytes: UInt64) {
        self.init(.info, .memoryReclaimed, app, "pushed \(formattedSize(bytes)) of it out to swap") {
            $0.memory = bytes
        }
    }

    private init(useOf app: AppID, _ use: BackgroundUse) {
        self.init(
            .warning, .cpuUseHigh, app,
            "used \(use.amount) in the background; on average over BackgroundCPUSec= the limit is \(use.limitText)"
        ) {
            $0.cpu = use.used
            $0.within = use.within
        }
    }

    private init(throttleOf app: AppID, _ use: BackgroundUse) {
        self.init(
            .warning, .cpuThrottled, app,
            "throttled: used \(use.amount) in the background; the limit is \(use.limitText)"
        ) {
            $0.cpu = use.used
            $0.within = use.within
        }
    }

    private init(dryRunOf app: AppID, _ result: DryRunResult) {
        let timers = result.moments == 1 ? "1 timer was" : "\(result.moments) timers were"
        let message =
            "would have been suspended for \(result.slept.timeSpan) until now (\(result.reason.rawValue)); it used "
            + "\(result.used.timeSpan) of processor time meanwhile" + (result.moments > 0 ? ", and \(timers) due" : "")
            + (result.hasMissedInput ? "; input came that would not have woken it (Traffic=no)" : "")
        self.init(.info, .wouldResume, app, message) {
            $0.reason = result.reason.rawValue
            $0.cpu = result.used
            $0.within = result.slept
        }
    }

    private init(_ receipt: Receipt) {
        self.init(
            receipt.priority, .ended, receipt.app, "\(receipt.explanation) (\(receipt.reference))"
        ) {
            $0.state = receipt.state.rawValue
            $0.namespace = receipt.namespace.rawValue
            $0.code = receipt.codeText
            $0.receipt = receipt.id
            switch receipt.exit {
            case .exited(let status): $0.exitStatus = status
            case .signaled(let number, let coreDumped):
                $0.signal = number
                $0.coreDumped = coreDumped
            case .unknown, .lost: break
            }
        }
    }

    private init(
        _ priority: LogLevel, _ kind: LifecycleEvent.Kind, _ app: AppID?, _ message: String,
        _ set: (inout LifecycleEvent) -> Void = { _ in }
    ) {
        let line = app.map { "\($0): \(message)" } ?? message
        var event = LifecycleEvent(kind, app: app?.name)
        event.message = line
        event.priority = priority.rawValue
        set(&event)
        self.init(priority: priority, messageID: MessageID.of(kind), app: app, message: line, event: event)
    }
}

extension TaskStatus {
    fileprivate init(named name: String) {
        self.init()
        self.name = name
    }

    /// A task with its progress.
    package init(_ name: String, _ progress: TaskProgress?) {
        self.init(named: name)
        setProgress(progress)
    }

    /// - Parameter progress: `nil`: the app has reported nothing.
    package mutating func setProgress(_ progress: TaskProgress?) {
        guard let progress else { return }
        (done, total) = (progress.done, progress.total)
        if !progress.title.isEmpty { title = progress.title }
    }
}

extension HookOutcome {
    fileprivate var sentence: String {
        switch self {
        case .ended(.exited(let status)): "exited with status \(status)"
        case .ended(.signaled(let number, _)): "ended by SIG\(shortSignalName(number))"
        case .ended(.unknown), .ended(.lost): "ended"
        case .notStarted(let sentence): sentence
        }
    }
}

extension DeferralCause {
    fileprivate var sentence: String {
        switch self {
        case .debuggerAttached: "a debugger is attached"
        case .daemonRestarted: "the daemon was restarted"
        case .noticeDelayed: "the notice was sent late"
        }
    }
}

extension AppState {
    /// Whether a user waits for the state; the others lead to one of these.
    fileprivate var isNotable: Bool {
        switch self {
        case .notRunning, .active, .background, .suspended: true
        case .launching, .inactive, .terminating: false
        }
    }
}

extension DeadlineKind {
    fileprivate var inWords: String { self == .backgroundTime ? "background time" : rawValue }
}

extension MemoryLevel {
    package var name: String {
        switch self {
        case .normal: "normal"
        case .warning: "warning"
        case .critical: "critical"
        }
    }

    package init?(name: String) {
        guard let level = Self.allCases.first(where: { $0.name == name }) else { return nil }
        self = level
    }
}

extension Receipt {
    /// Failures are warnings, and what a developer must repair is an error.
    fileprivate var priority: LogLevel {
        switch failure {
        case .crashed, .notLaunched: .error
        case .failed: .warning
        case nil: namespace == .jetsam || remaining != nil ? .warning : .notice
        }
    }

    /// The code as the table of codes in docs/RULES.md spells it: small ones in decimal, the others in hexadecimal.
    package var codeText: String {
        isSmall ? String(code) : "0x" + String(code, radix: 16)
    }

    /// Where to read more: `receipt 12`, or `0x8badf00d, receipt 12`. Codes 0, 1 and 2 only repeat the namespace, and
    /// read like an exit status.
    fileprivate var reference: String {
        (isSmall ? "" : codeText + ", ") + "receipt \(id)"
    }

    private var isSmall: Bool { code < 0x1_0000 }
}
