import Control
import LifecycleCore
import Linux
import Manifest
import Reports
import Systemd

/// Makes the records that bus clients read, and reloads the manifests.
final class ControlService {
    let loop: EventLoop
    let clock = WallClock()
    /// When the program was started, in microseconds of CLOCK_REALTIME and of CLOCK_MONOTONIC.
    let start: (realtime: UInt64, monotonic: UInt64)
    private var stateTimestamps = StateTimestamps()
    var inputTimestamps = StateTimestamps()
    var awakeTimestamps = AwakeTimestamps()
    var throttleTimestamps = StateTimestamps()
    let receipts: ReceiptStore
    let driver: CoreDriver
    let context: DaemonContext
    let library: ManifestLibrary
    let containment: Containment
    private unowned let daemon: any DaemonControl
    private(set) lazy var reloader = Reloader(self)
    private(set) lazy var statusList = StatusList(self)
    /// `MetricsListen=`, for greenroom-exporter; empty: off.
    var metricsListen: String { library.configuration.metricsListen?.description ?? "" }
    /// Called with the apps that errors in their manifests disable now or no longer, or with another error.
    var onDisabledChange: (([AppID]) -> Void)?
    /// Called when the configuration was read.
    var onConfiguration: ((ManagerConfiguration) -> Void)?
    /// Calls that wait until all apps are recovered and all manifests are read; `nil`: they are.
    private var held: [() -> Void]? = []

    init(driver: CoreDriver, context: DaemonContext, daemon: any DaemonControl) {
        loop = context.loop
        start = (clock.now().microseconds, UInt64(EventLoop.now() / .microseconds(1)))
        self.driver = driver
        self.context = context
        receipts = context.storage.receipts
        library = context.library
        containment = context.containment
        self.daemon = daemon
        library.isRunning = { [unowned driver] id in
            driver.core.state(of: id).map { $0 != .notRunning } ?? false
        }
        context.wakes.sockets.hasRun = { [unowned driver] in driver.core.run(of: $0) != nil }
        context.wakes.sockets.onChange = { [weak self] in self?.registerAgain($0) }
    }

    // MARK: The start

    /// The most calls that wait for the end of the recovery.
    static let maximumHeld = 1024

    /// Handles a call once all apps are recovered: what a client asks for before would be taken for a request of the
    /// previous daemon's clients.
    func whenStarted(_ call: MethodCall, _ body: @escaping () -> Void) {
        guard let held else { return body() }
        guard held.count < Self.maximumHeld else {
            return call.fail(ControlNames.Failure.tooMany.error("greenroomd is starting; try again later."))
        }
        self.held?.append(body)
    }

    /// All apps are recovered and all manifests are read.
    func started() {
        let calls = held ?? []
        held = nil
        for call in calls { call() }
    }

    /// Executes the installed program in place of this one. Returns only by throwing.
    func reexec() throws { try daemon.reexec() }

    func view(of id: AppID) -> AppView? { driver.core.view(of: id, at: driver.now) }

    // MARK: Records

    /// The IDs of all apps, also of those that an error in their manifest disables: not sorted, and possibly twice.
    var appNames: [String] { driver.core.unsortedAppIDs.map(\.name) + library.broken.keys.map(\.name) }

    /// Whether an app is an object: also if an error in its manifest disables it, and while a reload corrects that.
    func hasObject(_ id: AppID) -> Bool {
        driver.core.state(of: id) != nil || library.broken[id] != nil || library.manifests[id] != nil
    }

    /// The IDs of all objects, each once, not sorted.
    var objectNames: [String] {
        driver.core.unsortedAppIDs.map(\.name)
            + library.broken.keys.filter { driver.core.state(of: $0) == nil }.map(\.name)
    }

    /// `nil` if there is no such app. An app that an error in its manifest disables has a status with that error.
    /// - Parameter scan: a complete search of /proc (process-group mode); `nil`: the app is searched for.
    func appStatus(_ name: String, in scan: ProcessScan? = nil) -> AppStatus? {
        guard let id = AppID(name) else { return nil }
        var status = AppStatus()
        status.id = name
        status.name = context.manifests[id]?.name ?? name
        status.state = AppState.notRunning.rawValue
        status.role = context.manifests[id]?.value.policy.role.rawValue
        status.template = id.template.map { $0 + "@" }
        if library.transient[id] != nil { status.isTransient = true }
        status.error = library.broken[id]
        status.files = library.files[id]?.paths(of: id, in: context.folders) ?? []
        if library.needsReload(id) { status.needsReload = true }
        status.outputFile = outputFile(of: id)
        status.sockets = context.wakes.sockets.status(of: id).map(SocketStatus.init)
        // What it says is to be true: another process may have continued a suspended app.
        if let run = driver.core.run(of: id) { context.runs[run]?.checkFrozen(in: scan) }
        status.timers = context.wakes.timers.status(of: id)
        guard let view = view(of: id) else { return status.error == nil ? nil : status }
        status.state = view.state.rawValue
        status.pid = view.pid
        status.since = since(view)
        setMemory(&status, view, in: scan)
        status.tasks = view.tasks.map(TaskStatus.init)
        status.modes = BackgroundModes.named.filter { view.modes.contains($0.mode) }.map(\.name)
        status.scenes = scenes(id, view)
        if !view.wakes.isEmpty { status.wakes = view.wakes.map(WakeStatus.init) }
        setWakefulness(&status, view)
        status.deadline = view.deadline.map(DeadlineStatus.init)
        status.foreground = view.isForeground
        status.launches = UInt64(view.launches)
        status.interruptions = UInt64(view.interruptions)
        status.backgroundTimeRemaining = view.backgroundTimeRemaining
        status.launchPostponed = view.launchPostponed
        status.relaunchIn = view.relaunchesIn
        status.launchWaiting = view.launchWaiting
        status.connectionsWaiting = view.connectionsWaiting
        status.unloadsIn = view.unloadsIn
        status.memoryAwaitedBytes = view.memoryAwaited
        status.backgroundTimeLastHour = view.unrequestedTime
        status.backgroundTimePerHour = view.unrequestedTimeLimit
        let run = view.run.flatMap { context.runs[$0] }
        // A change of the manifest takes effect at the next launch.
        let manifest = run?.manifest ?? context.manifests[id]?.value
        status.readOnlyProgram = manifest?.readOnlyProgram == true ? true : nil
        status.programDigest = manifest?.programDigest
        status.statusText = run?.reports.statusText
        status.suspendProblem = run?.reports.suspendProblem
        status.lastWarning = run?.reports.lastWarning
        status.floods = run.flatMap { $0.socket.share.floods > 0 ? UInt64($0.socket.share.floods) : nil }
        status.lastReceipt = receipts.last(of: id)
        status.setSaved()
        status.client = run?.relay?.record.client.map(ClientStatus.init)
        return status
    }

    /// Of a run that has one; otherwise as the manifest says.
    private func outputFile(of id: AppID) -> String? {
        if let run = driver.core.run(of: id), context.storage.output.start(of: run) != nil {
            return context.storage.output.path(of: id)
        }
        guard let manifest = context.manifests[id]?.value else { return nil }
        func file(_ target: OutputTarget) -> String? {
            switch target {
            case .journal: context.storage.output.isInJournal ? nil : context.storage.output.path(of: id)
            case .inherit, .null: nil
            case .file(let path), .append(let path): path
            }
        }
        return file(manifest.standardOutput) ?? file(manifest.standardError)
    }

    private func since(_ view: AppView) -> Timestamp {
        stateTimestamps.timestamp(of: view.id, since: view.since, now: (driver.now, clock.now()))
    }

    /// Fixes the time of a change of state, and removes that of an app that no longer exists.
    func recordTime(of report: Report) {
        switch report {
        case .stateChanged(let id, from: _, to: _, reason: _):
            if let view = view(of: id) { _ = since(view) }
        case .ended(let receipt):
            if view(of: receipt.app) == nil { removeTimestamps(receipt.app) }
        case .deadlineStarted, .deadlineExtended, .deadlineCredited, .deadlineMet, .deadlineCancelled, .deadlineMissed,
            .deadlineDeferred,
            .taskBegan, .taskEnded, .taskRefused, .modeBegan, .modeEnded, .sceneChanged, .tasksExpiring,
            .taskProgressed,
            .taskExpires,
            .freezeTakesLong,
            .killTakesLong, .stoppedItself,
            .wakeCompleted, .relaunchScheduled, .unrequestedTimeUsedUp, .memoryAwaited,
            .memoryLevelChanged, .inputArrived, .inputNotWatched, .wokenTooOften, .locksHeld, .processorUseHigh,
            .processorThrottled, .processorThrottleEnded, .connectionsRejected, .wouldSuspend, .wouldResume,
            .hookFailed, .hookKilled, .suspensionRefused, .memoryReclaimed:
            break
        }
    }

    func removeTimestamps(_ id: AppID) {
        stateTimestamps.remove(id)
        inputTimestamps.remove(id)
        awakeTimestamps.remove(id)
        throttleTimestamps.remove(id)
    }

    func memoryStatus() -> MemoryStatus {
        var status = MemoryStatus(driver.core.memoryView, context.memory.watch.read())
        status.containment = containment.mode.summary
        return status
    }

    func logWarning(_ sentence: String) {
        context.journal.logWarning(sentence)
    }

    // MARK: Errors

    /// - Parameters:
    ///   - app: the app that the request is about; empty if there is none.
    ///   - attempt: what was refused, for the sentence: "launch 'web'".
    func error(_ refusal: Refusal, about app: String, _ attempt: String) -> BusError {
        let (failure, cause): (ControlNames.Failure, String) =
            switch refusal {
            case .unknownApp: (.unknownApp, "the app no longer exists")
            case .notRunning: (.notRunning, "it is not running")
            case .running:
                (.running, "it is already running, and variables are passed at launch only; use launch without them")
            case .opensNoURLs:
                (
                    .opensNoURLs,
                    "it is running and takes URLs only at its launch: it has no connection to GREENROOM_BUS_ADDRESS that "
                        + "handles openURL"
                )
            case .ending: (.ending, "it is terminating")
            case .notInForeground: (.notInForeground, "it is not in the foreground")
            case .notInterrupted: (.notInterrupted, whyNotInterrupted(app))
            case .modeNotDeclared(let mode):
                (.modeNotDeclared, "its manifest does not declare BackgroundModes=\(mode)")
            case .noTask(let name): (.notOpen, "no task '\(name)' is open")
            case .noScene(let scene):
                (
                    .noScene,
                    "it has no scene '\(scene)', and no connection to GREENROOM_BUS_ADDRESS that handles 'scene' to create one"
                )
            case .noSuchScene(let scene): (.noScene, "it has no scene '\(scene)'")
            case .lastScene: (.lastScene, "it is the only one; use 'terminate' to end the app")
            case .launchPostponed(let time):
                (
                    .launchPostponed,
                    "it ended early several times; until \(time.timeSpan) from now only a user can launch it"
                )
            case .backgroundTimeUsedUp(let time):
                (
                    .backgroundTimeUsedUp,
                    "its background time for this hour is used up; until \(time.timeSpan) from now only a user can wake it"
                )
            case .requesterNotInForeground:
                (
                    .requesterNotInForeground,
                    "the request comes from an app that is not in the foreground; only a user, or an app in the foreground, "
                        + "can bring an app to the foreground"
                )
            case .shuttingDown: (.shuttingDown, "greenroomd is shutting down")
            case .tooMany(let bound): (.tooMany, bound)
            }
        return failure.error("Cannot \(attempt): \(cause).")
    }

    /// A suspended app is named as such: "resume" is taken for the end of a suspension.
    private func whyNotInterrupted(_ app: String) -> String {
        guard let id = AppID(app), driver.core.state(of: id) == .suspended else { return "it is not interrupted" }
        return "it is suspended, not interrupted; use 'activate'"
    }

    // MARK: Manifests

    /// The policy of an app has changed, because of its sockets.
    private func registerAgain(_ id: AppID) {
        // An instance that the core does not know any more is about to be removed.
        guard let manifest = context.manifests[id], driver.core.state(of: id) != nil else { return }
        context.instances.register(manifest.value, binding: false)
    }

    /// The manifest of an app was removed, or has an error now.
    func remove(_ id: AppID) {
        context.wakes.remove(id)
        driver.send(.configuration(.unregistered(id)))
        removeTimestamps(id)
    }

    /// `3 apps, 1 disabled by an error in its manifest`.
    var summary: String {
        let count = library.manifests.count
        let manifests = library.broken.count == 1 ? "its manifest" : "their manifests"
        let broken = library.broken.isEmpty ? "" : ", \(library.broken.count) disabled by an error in \(manifests)"
        return "\(count) app\(count == 1 ? "" : "s")" + broken
    }
}

extension WakeStatus {
    fileprivate init(_ wake: AppView.Wake) {
        self.init()
        wakeID = wake.id > 0 ? wake.id : nil
        reason = wake.reason.rawValue
        remaining = wake.remaining
    }
}

extension SocketStatus {
    fileprivate init(_ socket: HeldSocket, _ problem: String?) {
        self.init()
        type = socket.kind.rawValue
        address = "\(socket.address)"
        self.problem = problem
    }
}

extension AppStatus {
    fileprivate mutating func setSaved() {
        switch AppState(rawValue: state) {
        case .suspended: savedBytes = swappedBytes
        case .notRunning where lastReceipt?.endedForMemory == true: savedBytes = lastReceipt?.memoryBytes
        case .notRunning, .launching, .inactive, .active, .background, .terminating, nil: break
        }
    }
}

extension ClientStatus {
    fileprivate init(_ record: RunClientRecord) {
        self.init(pid: record.pid, name: record.name, program: record.program)
    }
}

extension TaskStatus {
    fileprivate init(_ task: AppView.Task) {
        self.init()
        name = task.name
        remaining = task.remaining
        age = task.age
        owner = task.owner
        setProgress(task.progress)
        if task.isContinued { isContinued = true }
        if task.isCancelled { isCancelled = true }
    }
}

extension DeadlineStatus {
    fileprivate init(_ deadline: AppView.Deadline) {
        self.init()
        what = deadline.what.rawValue
        remaining = deadline.remaining
    }
}
