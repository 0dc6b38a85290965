import Glibc
import LifecycleCore
import Linux
import LoopPolicy
import Manifest
import Posix
import Reports
import Systemd

/// Runs the daemon until it is stopped.
/// - Returns: its exit status.
package func runDaemon(_ options: DaemonOptions) -> Int32 {
    do {
        return try Program(options).run()
    } catch {
        printError("\(error)")
        return 1
    }
}

/// Prints a line to standard error, after the program's name. Control characters, of arguments for example, are escaped.
package func printError(_ sentence: String) {
    try? writeAll(Array("greenroomd: \(sentence.escaped())\n".utf8), to: SharedDescriptor.standardError.descriptor)
}

/// The daemon: creates all its parts, connects them and runs the event loop.
final class Program {
    let options: DaemonOptions
    let journal: Journal
    var lock: LockFile
    let groupLock: GroupLock?
    var folderGuard: FolderGuard?
    let descriptors: RecoveredDescriptors
    let driver: CoreDriver
    let context: DaemonContext
    var recovered: RecoveredState?
    /// Why the start failed.
    var failure: (any Error)?
    private(set) lazy var service = ControlService(driver: driver, context: context, daemon: self)
    private(set) lazy var bus = ControlBus(
        service: service, driver: driver, answers: answers, isReexecuted: descriptors.isReexecuted)
    private(set) lazy var relays = RelayServer(service: service, answers: answers)
    private let answers = AnswerTable()
    private var signals: [EventSource] = []
    private let heapTrim: HeapTrim
    private(set) var stop = Stop.none

    /// How the daemon ends.
    enum Stop {
        /// It runs.
        case none
        /// All apps are terminated, then the daemon exits.
        case shutdown
        /// The next daemon takes over the apps.
        case restart
    }

    init(_ options: DaemonOptions) throws {
        self.options = options
        let memory = OwnMemory()
        try prepareProcess(memory)
        let folders = options.folders
        let loop = try EventLoop()
        try loop.openAppDescriptors()
        heapTrim = HeapTrim(memory, loop)
        let journal = Journal(level: options.logLevel)
        journal.subjectField = "GREENROOM_APP"
        self.journal = journal
        if let problem = options.cgroup.flatMap({ ContainmentMode.problem(ofGivenRoot: $0) }) {
            throw Problem("--cgroup: \(problem)")
        }
        if options.hasGivenConfig, !exists(at: folders.config) {
            journal.logWarning(
                "--config: \(folders.config) does not exist: no manifests and no configuration are read from it")
        }
        descriptors = try Startup.takeDescriptors()
        lock = try Startup.prepare(folders, descriptors)
        let (receipts, launches) = try Startup.openStores(folders)
        if let problem = receipts.problem { journal.logWarning(problem) }
        // After the folders: if these cannot be used, no group must remain.
        let name = Startup.groupName(folders)
        let containment = try Containment(
            mode: ContainmentMode.detect(preferredRoot: options.cgroup, name: name), name: name)
        groupLock = try Startup.lockGroups(containment, descriptors)
        // Before the first descriptor of an app arrives, and after this process has moved into its own group.
        prepareStarts()
        recovered = Startup.readState(folders, journal, receipts, containment)
        let orphans = OrphanedApps(containment: containment, journal: journal, receipts: receipts)
        let core = Startup.core(&recovered, orphans, receipts, loop)
        let recording = Recording(folder: folders.recording, limit: ManagerConfiguration().traceSize, journal: journal)
        let logbook = Logbook(path: folders.logbook, journal: journal, recording: recording)
        if let recovered { logbook.resumeLog(recovered) } else { logbook.create(core, records: [:]) }
        driver = try CoreDriver(loop: loop, core: core, logbook: logbook)
        context = try DaemonContext(
            loop: loop, folders: folders, containment: containment, journal: journal, receipts: receipts,
            launches: launches, logbook: logbook, library: ManifestLibrary(folders: folders),
            store: DescriptorStore(environment: ownVariable, journal: journal), events: driver)
        let launcher = RunLauncher(
            context: context,
            inheritedEnvironment: options.mode == .user ? LaunchEnvironment.passedOn(ownEnvironment()) : [])
        let observers: [any LifecycleObserver] = [
            JournalObserver(journal: journal), BusObserver(bus: bus), InstanceObserver(service: service),
        ]
        context.instances.onRemoved = { app in for observer in observers { observer.observeRemoval(of: app) } }
        let performer = EffectPerformer(
            context: context, launcher: launcher, answers: answers, observers: observers, sleep: bus)
        driver.connect(performer: performer, observers: observers)
        context.background.accessories.show = { [unowned self] app, run, isOpen in
            self.bus.modeReports.show(isOpen ? .accessory : [], of: app, run, by: .accessories)
        }
        context.wakes.devices.wakes.wake = { [unowned self] app in wake(app, .accessory, "for a device") }
        context.wakes.locations.wakes.wake = { [unowned self] app in wake(app, .location, "at another location") }
    }

    /// Requests that an app is woken, or launched into the background. A refusal is logged.
    private func wake(_ app: AppID, _ reason: LaunchReason, _ purpose: String) {
        let request = answers.expect { [service] answer in
            guard case .refused(let refusal) = answer else { return }
            service.logWarning(service.error(refusal, about: app.name, "wake '\(app.name)' \(purpose)").message)
        }
        driver.send(.requested(request, app, .launch(.background, reason: reason, url: nil)))
    }

    /// - Returns: the exit status.
    func run() throws -> Int32 {
        context.loop.onLongTurn = { [journal] turn in
            journal.log(
                .debug, MessageID.warning,
                "a turn of the event loop took \(turn.duration.timeSpan), \(turn.processorTime.timeSpan) of them on a "
                    + "processor (\(turn.source))")
        }
        context.loop.onSwitchedOff = { [journal, unowned loop = context.loop] kind, file in
            journal.logWarning(
                "an event source of kind \(kind) is ready again and again without effect; it is switched off "
                    + "(\(file); so far: \(loop.switchedOff))")
        }
        try watchSignals()
        // The service manager measures the time since the last daemon's sign of life, if this one replaced it by reexec.
        do {
            if let limit = try ServiceManager.watchdogLimit() {
                try context.loop.startHeartbeat(limit: limit) { _ = try? ServiceManager.notify(.watchdog) }
            }
        } catch {
            journal.logWarning("\(error)")
        }
        try start()
        let status = try context.loop.run()
        if let failure { throw failure }
        end()
        return status
    }

    /// Recorded when apps with `LaunchAtStart=` were launched: that happens once after a boot or a stop.
    static let startedRecord = "started"

    // MARK: Signals

    private func watchSignals() throws {
        let loop = context.loop
        // Blocked and pending until the start is over: a stop or a reload in the middle of it would find half of the apps.
        defer { for signal in signals { signal.isEnabled = false } }
        signals = [
            try loop.addSignal(SIGINT, kind: .stopSignal) { [unowned self] _ in self.shutDown() },
            try loop.addSignal(SIGTERM, kind: .stopSignal) { [unowned self] _ in self.shutDownOrRestart() },
            try loop.addSignal(SIGHUP, kind: .stopSignal) { [unowned self] _ in self.reload() },
            try loop.addSignal(SIGCHLD, kind: .childSignal) { [unowned self] _ in self.context.runs.childrenChanged() },
        ]
    }

    /// The start is over.
    func enableSignals() { for signal in signals { signal.isEnabled = true } }

    /// Reads the manifests and the configuration again, and notifies the service manager before and after
    /// (`Type=notify-reload`).
    private func reload() {
        _ = try? ServiceManager.notify(.reloading)
        service.reloader.reload { _ in _ = try? ServiceManager.notify(.ready) }
    }

    func setStop(_ stop: Stop) {
        self.stop = stop
        context.wakes.timers.stop()
    }
}
