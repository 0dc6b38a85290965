import Glibc
import LifecycleCore
import Linux
import Manifest
import Posix
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

/// Prints a line to standard error, after the program's name.
package func printError(_ sentence: String) {
    try? writeAll(Array("greenroomd: \(sentence)\n".utf8), to: SharedDescriptor.standardError.descriptor)
}

/// The daemon: creates all its parts, connects them and runs the event loop.
final class Program {
    let options: DaemonOptions
    let journal: Journal
    let lock: LockFile
    let descriptors: RecoveredDescriptors
    let driver: CoreDriver
    let context: DaemonContext
    private var recovered: RecoveredState?
    private(set) lazy var service = ControlService(driver: driver, context: context, daemon: self)
    private(set) lazy var bus = ControlBus(service: service, driver: driver, answers: answers)
    private let answers = AnswerTable()
    private var signals: [EventSource] = []
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
        prepareProcess()
        let folders = options.folders
        let loop = try EventLoop()
        let journal = Journal(level: options.logLevel)
        self.journal = journal
        descriptors = try Startup.takeDescriptors()
        lock = try Startup.prepare(folders, descriptors)
        let (receipts, launches) = try Startup.openStores(folders)
        if let problem = receipts.problem { journal.logWarning(problem) }
        // After the folders: if these cannot be used, no group must remain.
        let name = Startup.groupName(folders)
        let containment = try Containment(
            mode: ContainmentMode.detect(preferredRoot: options.cgroup, name: name), name: name)
        recovered = Startup.readState(folders, journal, receipts)
        let orphans = OrphanedApps(containment: containment, journal: journal, receipts: receipts)
        let core = Startup.core(&recovered, orphans, receipts, loop)
        let logbook = Logbook(path: folders.logbook, journal: journal)
        if let recovered { logbook.resumeLog(recovered) } else { logbook.create(core, records: [:]) }
        driver = try CoreDriver(loop: loop, core: core, logbook: logbook)
        context = DaemonContext(
            loop: loop, folders: folders, containment: containment, journal: journal, receipts: receipts,
            launches: launches, logbook: logbook, library: ManifestLibrary(folders: folders),
            store: DescriptorStore(environment: ownVariable, journal: journal), events: driver)
        let launcher = RunLauncher(
            context: context,
            inheritedEnvironment: options.mode == .user ? LaunchEnvironment.passedOn(ownEnvironment()) : [])
        let observers: [any LifecycleObserver] = [JournalObserver(journal: journal), BusObserver(bus: bus)]
        let performer = EffectPerformer(
            context: context, launcher: launcher, answers: answers, observers: observers, sleep: bus)
        driver.connect(performer: performer, observers: observers)
    }

    /// - Returns: the exit status.
    func run() throws -> Int32 {
        try watchSignals()
        let changes = readManifests()
        let count = recoverApps()
        context.manifestsChanged()
        killUnknownProcesses()
        service.apply(changes)
        try bus.listen(
            at: options.folders.busSocket, descriptors.take(RecoveredDescriptors.controlSocket),
            busAddress: options.busAddress, authoriser: Authoriser(isForUser: options.mode == .user))
        let inhibitor = descriptors.take(RecoveredDescriptors.inhibitor)
        descriptors.removeUnused(from: context.store)
        logStart(recovered: count)
        // If the service manager cannot be notified, the daemon still serves its apps.
        do {
            _ = try ServiceManager.notify(.ready)
            _ = try context.loop.setWatchdog(true)
        } catch {
            journal.logWarning("\(error)")
        }
        if !context.logbook.hasRecord(Self.startedRecord) {
            driver.send(.started)
            context.logbook.persist([], as: Self.startedRecord)
        }
        try bus.joinBus(options, inhibitor, journal)
        let status = try context.loop.run()
        end()
        return status
    }

    /// Recorded when apps with `LaunchAtStart=` were launched: that happens once after a boot or a stop.
    private static let startedRecord = "started"

    private func readManifests() -> ManifestLibrary.Changes {
        let changes = context.library.read()
        for line in changes.errors { journal.log(.error, MessageID.manifest, line) }
        for line in changes.warnings { journal.log(.warning, MessageID.manifest, line) }
        return changes
    }

    /// - Returns: how many apps were recovered; `nil` if there was nothing to recover from.
    private func recoverApps() -> Int? {
        // The previous daemon may have died at the end of a stop, or before it had read the archive.
        defer { context.stored.restoreArchive(StateArchive(folder: options.folders.restoration, journal: journal)) }
        guard let recovered else {
            context.stored.restore([:], descriptors)
            return nil
        }
        self.recovered = nil
        for warning in recovered.warnings { journal.logWarning(warning) }
        let count = Recovery(recovered, driver: driver, context: context, descriptors: descriptors).run()
        context.logbook.endRecovery()
        return count
    }

    /// Kills processes in groups that belong to no run, and removes the groups.
    private func killUnknownProcesses() {
        do {
            for group in try context.containment.orphanedEnclosures() where context.runs[RunID(group.run)] == nil {
                if try group.isPopulated() {
                    journal.logWarning("killed processes of \(group.app) whose run had ended")
                    try group.killAll()
                }
                context.groups.remove(group)
            }
        } catch {
            journal.logWarning("groups of the previous greenroomd: \(error)")
        }
    }

    private func logStart(recovered count: Int?) {
        journal.log(
            .notice, MessageID.started,
            "greenroomd \(Logbook.writer) is ready: \(service.summary), \(context.containment.mode.summary), "
                + "bus \(options.folders.busSocket), \(journal.destination)")
        guard let count else { return }
        journal.log(
            .notice, MessageID.recovered,
            "recovered \(count) running app\(count == 1 ? "" : "s") from the previous instance")
    }

    // MARK: Signals

    private func watchSignals() throws {
        let loop = context.loop
        signals = [
            try loop.addSignal(SIGINT) { [unowned self] _ in self.shutDown() },
            try loop.addSignal(SIGTERM) { [unowned self] _ in self.shutDownOrRestart() },
            try loop.addSignal(SIGHUP) { [unowned self] _ in self.reload() },
            try loop.addSignal(SIGCHLD) { [unowned self] _ in self.context.runs.childrenChanged() },
        ]
    }

    /// Reads the manifests and the configuration again, and notifies the service manager before and after
    /// (`Type=notify-reload`).
    private func reload() {
        _ = try? ServiceManager.notify(.reloading)
        _ = service.reload()
        _ = try? ServiceManager.notify(.ready)
    }

    func setStop(_ stop: Stop) { self.stop = stop }
}
