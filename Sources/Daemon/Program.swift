import Control
import Glibc
import LifecycleCore
import Linux
import Manifest
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
    try? writeAll(Array("greenroomd: \(sentence)\n".utf8), to: 2)
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
    private var signals: [EventSource] = []
    private var wasAskedToStop = false

    init(_ options: DaemonOptions) throws {
        self.options = options
        let folders = options.folders
        umask(0o022)
        signal(SIGPIPE, SIG_IGN)
        raiseDescriptorLimit()
        let loop = try EventLoop()
        self.loop = loop
        journal = Journal(level: options.logLevel)
        lock = try Program.prepare(folders)
        containment = try Program.contain(options, journal)
        let (receipts, launches) = try Program.openState(folders)
        let firstRun = UInt64(loop.now().microseconds)
        shell = try Shell(loop: loop, core: LifecycleCore(firstRun: firstRun, firstReceipt: receipts.nextID))
        let memory = MemoryWatch(loop: loop) { [journal] in journal.log(.notice, MessageID.complaint, $0) }
        performer = EffectPerformer(
            loop: loop, folders: folders, containment: containment, journal: journal, receipts: receipts,
            launches: launches, memory: memory,
            inheritedEnvironment: options.mode == .user ? LaunchEnvironment.passedOn(ownEnvironment()) : [],
            send: { [unowned shell] in shell.send($0) })
        house = House(
            loop: loop, shell: shell, performer: performer, receipts: receipts,
            library: ManifestLibrary(folders: folders), containment: containment)
        bus = ControlBus(house: house, shell: shell)
        shell.perform = { [unowned performer] in performer.perform($0) }
        performer.answer = { [unowned bus] in bus.answer($0, $1) }
        performer.publish = { [unowned bus] in bus.publish($0, $1) }
    }

    /// The folders, and the lock that keeps a second daemon out of them.
    private static func prepare(_ folders: Folders) throws -> LockFile {
        if let reason = reasonToDistrust(folder: folders.runtime) {
            throw Problem(
                "the runtime folder \(folders.runtime) is not safe: \(reason); give this one a folder of its own")
        }
        do {
            try createDirectories(at: folders.runtime)
        } catch {
            throw Problem("the runtime folder cannot be made: \(error)")
        }
        switch try LockFile.acquire(at: folders.lock) {
        case .acquired(let lock):
            try createDirectories(at: folders.notifySockets, mode: 0o711)
            try createDirectories(at: folders.inboxes, mode: 0o711)
            return lock
        case .held(let pid):
            let who = pid.map { "pid \($0)" } ?? "another one"
            throw Problem("a greenroomd (\(who)) runs on \(folders.runtime) already; give this one another --runtime")
        }
    }

    private static func openState(_ folders: Folders) throws -> (ReceiptStore, LaunchStore) {
        do {
            return (try ReceiptStore(folders: folders, clock: WallClock()), try LaunchStore(folders: folders))
        } catch {
            throw Problem("the state folder \(folders.state) cannot be used: \(error); give this one another --state")
        }
    }

    private static func contain(_ options: DaemonOptions, _ journal: Journal) throws -> Containment {
        let name = groupName(options.folders)
        let mode = ContainmentMode.detect(preferredRoot: options.cgroup, name: name)
        let containment = try Containment(mode: mode, name: name)
        do {
            let dying = try containment.cleanUpLeftovers()
            if dying > 0 {
                journal.log(.notice, MessageID.complaint, "killed \(dying) apps that an earlier daemon had left")
            }
        } catch {
            journal.log(.warning, MessageID.complaint, "leftovers of an earlier daemon: \(error)")
        }
        return containment
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
        house.apply(changes)
        try bus.listen(
            at: options.folders.busSocket, busAddress: options.busAddress,
            authoriser: Authoriser(isForUser: options.mode == .user))
        let apps = "\(house.library.manifests.count) app\(house.library.manifests.count == 1 ? "" : "s")"
        journal.log(
            .notice, MessageID.started,
            "greenroomd \(ControlNames.version) is ready: \(apps), \(containment.mode.summary), "
                + "bus \(options.folders.busSocket), \(journal.whereTo)")
        try ServiceManager.notify(.ready, .status(apps))
        _ = try loop.setWatchdog(true)
        shell.send(.started)
        try bus.joinBus(options, journal)
        let status = try loop.run()
        leave()
        return status
    }

    private func listenToSignals() throws {
        for number in [SIGTERM, SIGINT] {
            signals.append(try loop.addSignal(number) { [unowned self] _ in self.stop() })
        }
        signals.append(try loop.addSignal(SIGHUP) { [unowned self] _ in self.reload() })
        signals.append(try loop.addSignal(SIGCHLD) { [unowned self] _ in self.performer.childrenChanged() })
    }

    /// The service manager is told, so that `systemctl reload` of a unit with `Type=notify-reload` knows when it is over.
    private func reload() {
        _ = try? ServiceManager.notify(.reloading)
        _ = house.reload()
        _ = try? ServiceManager.notify(.ready)
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
        for path in [options.folders.notifySockets] { _ = try? removeFile(at: path, folder: true) }
        do {
            if try containment.removeRoot() == .busy {
                journal.log(.warning, MessageID.complaint, "something still lives in \(containment.mode.summary)")
            }
        } catch {
            journal.log(.warning, MessageID.complaint, "\(error)")
        }
    }
}

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
