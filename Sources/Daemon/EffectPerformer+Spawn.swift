import Glibc
import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// From the wish to launch to a program that runs, or the sentence that says why not.
extension EffectPerformer {
    /// systemd.exec(5)'s exit statuses for what can fail before there is a process.
    private enum Stage {
        static let runtimeDirectory: Int32 = 233
        static let stateDirectory: Int32 = 238
        static let cacheDirectory: Int32 = 239
        static let user: Int32 = 217
        static let cgroup: Int32 = 219
        static let notifySocket: Int32 = 207
        static let fork: Int32 = 254
    }

    private struct Failure: Error {
        var problem: SpawnProblem
        init(_ status: Int32, _ error: any Error) {
            problem = SpawnProblem(sentence: "\(error)", exitStatus: status)
        }
    }

    func spawn(_ app: AppID, _ id: RunID, _ launch: Launch) {
        // A daemon before this one has come as far as that.
        if runs[id] != nil { return }
        guard let manifest = manifests[app] else {
            let problem = SpawnProblem(sentence: "its manifest is gone", exitStatus: Stage.fork)
            return send(.spawnFailed(id, problem))
        }
        do {
            try start(manifest, id, launch)
        } catch {
            if let run = runs[id] {
                // It may have come as far as to have a process: whose start nobody can watch ends.
                if run.process != nil { self.attempt(app) { try run.enclosure.killAll() } }
                forget(run)
            }
            let problem = (error as? Failure)?.problem ?? Failure(Stage.fork, error).problem
            send(.spawnFailed(id, problem))
        }
    }

    private func start(_ manifest: AppManifest, _ id: RunID, _ launch: Launch) throws {
        let user = try step(Stage.user) { try users.user(of: manifest) }
        try prepareDirectories(manifest, user)
        let inbox = inbox(of: manifest.id)
        try step(Stage.runtimeDirectory) {
            try createDirectories(at: inbox, mode: 0o700, owner: user?.owner)
            // Of a daemon that died, too.
            try emptyInbox(of: manifest.id)
        }
        let enclosure = try step(Stage.cgroup) {
            try containment.create(app: manifest.id.name, run: id.number)
        }
        let channel: AppChannel
        do {
            channel = try makeChannel(id, user)
        } catch {
            remove(enclosure)
            throw error
        }
        let run = AppRun(id: id, manifest: manifest, enclosure: enclosure, channel: channel, owner: user?.owner)
        runs[id] = run
        listen(to: run)
        let environment = LaunchEnvironment(
            manifest: manifest, launch: launch, user: user?.record, notifySocket: channel.path, inbox: inbox,
            lastReceipt: lastReceipt(of: manifest.id), marker: enclosure.environmentMarker,
            inherited: inheritedEnvironment)
        var request = makeRequest(manifest, user, environment.entries(folders: folders), enclosure)
        let output = outputStream(manifest.id)
        request.standardOutput = output
        request.standardError = output
        // Before there is a process, so that none is ever there of which nobody knows.
        keepNote(of: run)
        try watchStart(run, try startProcess(request))
    }

    /// An app can do without.
    private func lastReceipt(of app: AppID) -> String? {
        var path: String?
        attempt(app) { path = try receipts.handOver(to: app) }
        return path
    }

    func listen(to run: AppRun) {
        run.channel.receive = { [weak self, weak run] messages, descriptors, sender in
            guard let self, let run else { return }
            self.together {
                self.received(run, messages, &descriptors, sender)
                // Before anything of it is carried out, which takes longer.
                self.logbook.hasRead()
            }
        }
        run.channel.keep = { [logbook, id = run.id] body in logbook.read(from: id, body) }
        run.channel.complain = { [weak self, app = run.app] sentence in self?.complain(app, sentence) }
    }

    /// What a run says once it is forgotten is noted no more: nobody would take it out again.
    func keepNote(of run: AppRun) {
        guard runs[run.id] === run else { return }
        logbook.note(RunNote.name(run.id), run.note.bytes)
    }

    private func makeChannel(_ id: RunID, _ user: AppUser?) throws -> AppChannel {
        let path = folders.notifySockets + "/\(id)"
        do {
            return try AppChannel(loop: loop, path: path, owner: user?.owner)
        } catch {
            // It may have come as far as to make the socket.
            _ = try? removeFile(at: path)
            throw Failure(Stage.notifySocket, error)
        }
    }

    /// What the app writes is in the journal under its ID, or on our own standard error; `nil`: neither is there.
    private func outputStream(_ app: AppID) -> SharedDescriptor? {
        do {
            if journal.usesJournald, let stream = try JournalStream.open(identifier: app.name) {
                return SharedDescriptor(stream)
            }
            return try ownStandardError()
        } catch {
            complain(app, "its output is dropped: \(error)")
            return nil
        }
    }

    /// Straight, and not by way of the daemon: what an app writes neither waits for it nor ends with it.
    private func ownStandardError() throws -> SharedDescriptor? {
        guard fcntl(2, F_GETFD) >= 0 else { return nil }
        // A terminal's descriptor is a keyboard as well, which is nothing for another user's app.
        if isatty(2) == 1 { return SharedDescriptor(try Descriptor.open("/proc/self/fd/2", O_WRONLY | O_NOCTTY)) }
        let copy = fcntl(2, F_DUPFD_CLOEXEC, 3)
        guard copy >= 0 else { throw SystemError(call: "fcntl F_DUPFD_CLOEXEC", errno: errno) }
        return SharedDescriptor(Descriptor(adopting: copy))
    }

    /// The daemon is protected from the kernel's OOM killer (`OOMScoreAdjust=` of its unit); what it launches is not, unless
    /// its manifest says so. `nil`: as the daemon's own, which only the privileged may lower.
    private static let ordinaryOOMScoreAdjust: Int? = {
        let own = try? readFile(at: "/proc/self/oom_score_adj", limit: 16)
        return own?.first == UInt8(ascii: "-") ? 0 : nil
    }()

    /// The daemon's own limit of descriptors is high; apps get what they would get elsewhere, as systemd has it: 1,024, and
    /// up to half a million for those that ask (select(2) breaks beyond the former).
    private func resourceLimits(_ manifest: AppManifest) -> [ResourceLimit] {
        let given = manifest.limits.map { ResourceLimit(resource: $0.resource, soft: $0.soft, hard: $0.hard) }
        let files: Int32 = 7
        if given.contains(where: { $0.resource == files }) { return given }
        // Where we have fewer ourselves (a container, an administrator's word), so have they.
        let hard = min(524_288, maximumDescriptors())
        return given + [ResourceLimit(resource: files, soft: min(1024, hard), hard: hard)]
    }

    private func step<T>(_ status: Int32, _ body: () throws -> T) throws -> T {
        do { return try body() } catch { throw Failure(status, error) }
    }

    private func makeRequest(
        _ manifest: AppManifest, _ user: AppUser?, _ environment: [String], _ enclosure: Enclosure
    ) -> SpawnRequest {
        var request = SpawnRequest(
            executable: manifest.exec[0], arguments: Array(manifest.exec.dropFirst()), environment: environment)
        request.workingDirectory =
            manifest.workingDirectory == "~" ? user?.record.home ?? "/" : manifest.workingDirectory
        request.credentials = user?.credentials
        request.umask = manifest.umask
        request.resourceLimits = resourceLimits(manifest)
        if manifest.policy.watchdog != nil { request.processIDVariables = ["WATCHDOG_PID"] }
        request.oomScoreAdjust = manifest.oomScoreAdjust ?? Self.ordinaryOOMScoreAdjust
        request.noNewPrivileges = manifest.noNewPrivileges
        request.cgroup = enclosure.cgroupDescriptor
        request.passedDescriptors = stored.passed(to: manifest.id) { complain(manifest.id, $0) }
        return request
    }

    /// L9: they exist, owned by the app's user.
    private func prepareDirectories(_ manifest: AppManifest, _ user: AppUser?) throws {
        let owner = user?.owner
        let wanted: [(Int32, String, [String])] = [
            (Stage.stateDirectory, folders.appState, manifest.stateDirectory),
            (Stage.cacheDirectory, folders.appCache, manifest.cacheDirectory),
            (Stage.runtimeDirectory, folders.appRuntime, manifest.runtimeDirectory),
        ]
        for (status, folder, names) in wanted {
            for name in names {
                try step(status) { try createDirectories(at: folder + "/" + name, mode: 0o755, owner: owner) }
            }
        }
    }

    // MARK: Until the program runs

    private func watchStart(_ run: AppRun, _ starting: consuming StartingProcess) throws {
        let process = starting.process
        let outcome = starting.outcomeDescriptor
        run.starting = consume starting
        noteMainProcess(run, process)
        try run.enclosure.started(process)
        run.execSource = try loop.addDescriptor(outcome, events: .readable, priority: .important) {
            [weak self, weak run] _ in
            guard let self, let run else { return }
            self.execDecided(run)
        }
        send(.spawned(run.id, pid: process.pid))
    }

    func noteMainProcess(_ run: AppRun, _ process: Linux.Process) {
        run.process = process
        run.mainPID = process.pid
        run.startTime = (try? ProcFS().stat(of: process.pid))?.startTime ?? 0
        mainProcesses[process.pid] = run.id
        keepNote(of: run)
        keepDescriptors(of: run)
    }

    private func execDecided(_ run: AppRun) {
        let outcome: ExecOutcome
        do {
            outcome = try run.starting?.outcome() ?? .pending
        } catch {
            // The launch deadline ends what can't be known.
            run.execSource = nil
            return complain(run.app, "\(error)")
        }
        switch outcome {
        case .pending: return
        case .executed:
            endStart(run)
            watchExit(run)
            send(.executed(run.id))
        case .killedBeforeExec:
            // How it ended tells.
            endStart(run)
            watchExit(run)
        case .failed(let failure):
            endStart(run)
            _ = try? run.process?.reap()
            forget(run)
            send(.spawnFailed(run.id, SpawnProblem(sentence: failure.sentence, exitStatus: failure.exitStatus)))
        }
    }

    private func endStart(_ run: AppRun) {
        run.execSource = nil
        run.starting = nil
    }
}
