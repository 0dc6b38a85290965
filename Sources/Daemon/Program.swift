import Control
import Glibc
import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// Builds the house, runs it, and leaves nothing behind.
package func runDaemon(_ options: DaemonOptions) -> Int32 {
    do {
        let program = try Program(options)
        return try program.run()
    } catch {
        complainToTerminal("\(error)")
        return 1
    }
}

package func complainToTerminal(_ sentence: String) {
    try? writeAll(Array("greenroomd: \(sentence)\n".utf8), to: SharedDescriptor.standardError.descriptor)
}

private final class Program {
    let options: DaemonOptions
    let loop: EventLoop
    let journal: Journal
    let lock: LockFile
    let containment: Containment
    let shell: Shell
    let performer: EffectPerformer
    let house: House
    let bus: ControlBus
    let logbook: Logbook
    /// Until it is in hand again: it holds what it was read from.
    private var legacy: Legacy?
    private let handed: HandedDescriptors
    private var signals: [EventSource] = []
    private var wasAskedToStop = false
    private var keepsApps = false

    init(_ options: DaemonOptions) throws {
        self.options = options
        let folders = options.folders
        umask(0o022)
        signal(SIGPIPE, SIG_IGN)
        raiseDescriptorLimit()
        let loop = try EventLoop()
        self.loop = loop
        journal = Journal(level: options.logLevel)
        handed = try Inheritance.takeHanded()
        lock = try Program.prepare(folders, handed)
        let (receipts, launches) = try Program.openState(folders)
        if let problem = receipts.problem { journal.log(.warning, MessageID.complaint, problem) }
        // After the folders: where these cannot be used, no group is to stay behind.
        let name = Program.groupName(folders)
        containment = try Containment(
            mode: ContainmentMode.detect(preferredRoot: options.cgroup, name: name), name: name)
        logbook = Logbook(path: folders.logbook)
        logbook.complain = { [journal] in journal.log(.warning, MessageID.complaint, $0) }
        legacy = Inheritance.read(folders, journal, receipts)
        // Their receipts come before all that the core numbers.
        if legacy == nil { Leftovers(containment: containment, journal: journal, receipts: receipts).end() }
        let core =
            legacy?.core ?? LifecycleCore(firstRun: UInt64(loop.now().microseconds), firstReceipt: receipts.nextID)
        if let legacy { logbook.goOn(legacy) } else { logbook.begin(core, notes: [:]) }
        shell = try Shell(loop: loop, core: core, logbook: logbook)
        let memory = MemoryWatch(loop: loop) { [journal] in journal.log(.notice, MessageID.complaint, $0) }
        performer = EffectPerformer(
            loop: loop, folders: folders, containment: containment, journal: journal, receipts: receipts,
            launches: launches, logbook: logbook, memory: memory,
            inheritedEnvironment: options.mode == .user ? LaunchEnvironment.passedOn(ownEnvironment()) : [],
            store: DescriptorStore(environment: ownVariable), send: { [unowned shell] in shell.send($0) })
        house = House(
            loop: loop, shell: shell, performer: performer, receipts: receipts,
            library: ManifestLibrary(folders: folders), containment: containment)
        bus = ControlBus(house: house, shell: shell)
        shell.perform = { [unowned performer] in performer.perform($0) }
        performer.together = { [unowned shell] in shell.together($0) }
        performer.answer = { [unowned bus] in bus.answer($0, $1) }
        performer.isEntering = { [unowned shell] in shell.core.isEntering($0) }
        house.reexec = { [unowned self] in try self.reexec() }
        performer.publish = { [unowned bus] in bus.publish($0, $1) }
    }

    /// The folders, and the lock that keeps a second daemon out of them.
    private static func prepare(_ folders: Folders, _ handed: HandedDescriptors) throws -> LockFile {
        if let reason = reasonToDistrust(folder: folders.runtime) {
            throw Problem(
                "the runtime folder \(folders.runtime) is not safe: \(reason); give this one a folder of its own")
        }
        do {
            try createDirectories(at: folders.runtime)
        } catch {
            throw Problem("the runtime folder cannot be made: \(error)")
        }
        try createDirectories(at: folders.notifySockets, mode: 0o711)
        try createDirectories(at: folders.inboxes, mode: 0o711)
        try createDirectories(at: folders.lastReceipts, mode: 0o711)
        if let lock = handed.take(HandedDescriptors.lock) { return LockFile(adopting: lock, path: folders.lock) }
        return try acquireLock(folders)
    }

    /// A process that a killed daemon was about to start holds its lock with all its other descriptors until it executes
    /// its program: a moment, unless that hangs.
    private static let lockPatience = Duration.seconds(2)

    private static func acquireLock(_ folders: Folders) throws -> LockFile {
        let limit = EventLoop.now() + lockPatience
        while true {
            switch try LockFile.acquire(at: folders.lock) {
            case .acquired(let lock): return lock
            case .held(let pid):
                let isAlive = try pid.flatMap { try ProcFS().stat(of: $0) }.map { !$0.isZombie } ?? false
                guard !isAlive else {
                    let who = pid.map { "pid \($0)" } ?? "another one"
                    throw Problem(
                        "a greenroomd (\(who)) runs on \(folders.runtime) already; give this one another --runtime")
                }
                // What still holds it is no daemon: another file is another lock.
                if EventLoop.now() >= limit { _ = try removeFile(at: folders.lock) }
                poll(nil, 0, 2)
            }
        }
    }

    private static func openState(_ folders: Folders) throws -> (ReceiptStore, LaunchStore) {
        do {
            return (try ReceiptStore(folders: folders, clock: WallClock()), try LaunchStore(folders: folders))
        } catch {
            throw Problem("the state folder \(folders.state) cannot be used: \(error); give this one another --state")
        }
    }

    /// What is there of apps that nobody knows of any more.
    private func cleanUp() {
        do {
            let known = Set(performer.runs.keys.map(\.number))
            for leftover in try containment.leftovers() where !known.contains(leftover.run) {
                if try leftover.isPopulated() {
                    complain("killed what was left of \(leftover.app), which had ended")
                    try leftover.killAll()
                }
                performer.remove(leftover)
            }
        } catch {
            complain("leftovers of an earlier daemon: \(error)")
        }
    }

    /// Daemons on other runtime folders have groups of other names.
    private static func groupName(_ folders: Folders) -> String {
        if folders.runtime == "/run/greenroom" { return "greenroom" }
        // FNV-1a: the name only has to be the same each time, and another for another folder.
        var hash: UInt64 = 0xcbf2_9ce4_8422_2325
        for byte in folders.runtime.utf8 { hash = (hash ^ UInt64(byte)) &* 0x100_0000_01b3 }
        return "greenroom-" + String(hash, radix: 16)
    }

    func run() throws -> Int32 {
        try listenToSignals()
        let changes = house.library.read()
        for line in changes.errors { journal.log(.error, MessageID.manifest, line) }
        for line in changes.warnings { journal.log(.warning, MessageID.manifest, line) }
        performer.setManifests(house.library.manifests, broken: Set(house.library.broken.keys))
        let adopted = recover()
        performer.forgetStored(broken: Set(house.library.broken.keys))
        cleanUp()
        house.apply(changes)
        try bus.listen(
            at: options.folders.busSocket, handed.take(HandedDescriptors.controlSocket), busAddress: options.busAddress,
            authoriser: Authoriser(isForUser: options.mode == .user))
        let inhibitor = handed.take(HandedDescriptors.inhibitor)
        handed.drop(from: performer.store)
        journal.log(
            .notice, MessageID.started,
            "greenroomd \(ControlNames.version) is ready: \(house.summary), \(containment.mode.summary), "
                + "bus \(options.folders.busSocket), \(journal.whereTo)")
        if let adopted {
            journal.log(.notice, MessageID.recovered, "went on where an earlier daemon was: \(adopted) apps run on")
        }
        // A service manager that is gone is no reason to end.
        do {
            _ = try ServiceManager.notify(.ready)
            _ = try loop.setWatchdog(true)
        } catch {
            journal.log(.warning, MessageID.complaint, "\(error)")
        }
        if !logbook.isNoted(Program.startedNote) {
            shell.send(.started)
            logbook.note(Program.startedNote, [])
        }
        try bus.joinBus(options, inhibitor, journal)
        let status = try loop.run()
        if keepsApps { bus.close(toBeContinued: true) } else { leave() }
        return status
    }

    /// `LaunchAtStart=` is for the first start after a boot or a stop.
    private static let startedNote = "started"

    /// - Returns: how many apps were found again; `nil`: there was nothing to go on with.
    private func recover() -> Int? {
        // Also where the daemon before this one died at its very end, or its very beginning.
        defer {
            performer.stored.unarchive(from: StateArchive(folder: options.folders.restoration), complain: complain)
        }
        guard let legacy else {
            performer.stored.restore([:], handed)
            return nil
        }
        self.legacy = nil
        for remark in legacy.remarks { journal.log(.warning, MessageID.complaint, remark) }
        let recovery = Recovery(
            legacy, shell: shell, performer: performer, containment: containment, handed: handed)
        recovery.run()
        logbook.noteRecovered()
        return recovery.adopted
    }

    private func complain(_ sentence: String) { journal.log(.warning, MessageID.complaint, sentence) }

    private func listenToSignals() throws {
        signals.append(try loop.addSignal(SIGINT) { [unowned self] _ in self.stop() })
        signals.append(
            try loop.addSignal(SIGTERM) { [unowned self] _ in
                if self.isToBeStartedAgain { self.makeRoom() } else { self.stop() }
            })
        signals.append(try loop.addSignal(SIGHUP) { [unowned self] _ in self.reload() })
        signals.append(try loop.addSignal(SIGCHLD) { [unowned self] _ in self.performer.childrenChanged() })
    }

    /// The service manager is told, so that `systemctl reload` of a unit with `Type=notify-reload` knows when it is over.
    private func reload() {
        _ = try? ServiceManager.notify(.reloading)
        _ = house.reload()
        _ = try? ServiceManager.notify(.ready)
    }

    /// Another program takes this one's place in the same process; the apps stay its children.
    private func reexec() throws {
        guard !wasAskedToStop else { throw Problem("greenroomd is about to stop") }
        logbook.close(shell.core)
        try Reexecution.run(
            performer.descriptorsToKeep + bus.socketToKeep + (bus.logind?.inhibitorToKeep ?? [])
                + [(HandedDescriptors.lock, lock.descriptor)])
    }

    /// `systemctl restart` means this program, not the apps. Whom nobody can ask is to stop.
    private var isToBeStartedAgain: Bool {
        guard !wasAskedToStop, performer.store.isThere else { return false }
        let runtime = options.mode == .system ? "/run" : ownVariable("XDG_RUNTIME_DIR") ?? "/run"
        do {
            return try ServiceJob.current(runtime: runtime) == .restart
        } catch {
            journal.log(.warning, MessageID.complaint, "systemd does not say whether this is a restart: \(error)")
            return false
        }
    }

    /// Ends, and leaves everything to the daemon that follows.
    private func makeRoom() {
        journal.log(.notice, MessageID.stopping, "making room for the next greenroomd; every app runs on")
        keepsApps = true
        logbook.close(shell.core)
        _ = try? ServiceManager.notify(.stopping)
        _ = try? ServiceManager.barrier(timeout: .seconds(2))
        loop.exit(0)
    }

    /// Once: every app gets its will-terminate. Twice: at once.
    private func stop() {
        if !wasAskedToStop {
            journal.log(.notice, MessageID.stopping, "stopping: every app is told to terminate")
            _ = try? ServiceManager.notify(.stopping)
        }
        shell.send(.shutdownRequested(immediately: wasAskedToStop))
        wasAskedToStop = true
    }

    /// Nothing of ours stays: no socket, no group. The state folder does.
    private func leave() {
        bus.close()
        if performer.store.isThere { performer.store.forget(HandedDescriptors.controlSocket) }
        performer.stored.archive(in: StateArchive(folder: options.folders.restoration), complain: complain)
        logbook.remove()
        for path in [options.folders.notifySockets] { _ = try? removeFile(at: path, folder: true) }
        _ = try? house.receipts.removeHandedOver()
        do {
            if try containment.removeRoot() == .busy {
                journal.log(.warning, MessageID.complaint, "something still lives in \(containment.mode.summary)")
            }
        } catch {
            journal.log(.warning, MessageID.complaint, "\(error)")
        }
    }
}

func ownVariable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }

/// The hard limit of descriptors.
func maximumDescriptors() -> UInt64 {
    var limit = rlimit()
    return getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 ? UInt64(limit.rlim_max) : 1024
}

/// `NAME=value` each.
private func ownEnvironment() -> [String] {
    var entries: [String] = []
    var next = environ
    while let entry = next.pointee {
        entries.append(String(cString: entry))
        next += 1
    }
    return entries
}

/// A thousand apps need some thousand descriptors of ours; what apps get is set for each (`LimitNOFILE=`).
private func raiseDescriptorLimit() {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}
