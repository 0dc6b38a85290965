import LifecycleCore
import Linux
import Manifest
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
        guard let manifest = manifests[app] else {
            let problem = SpawnProblem(sentence: "its manifest is gone", exitStatus: Stage.fork)
            return send(.spawnFailed(id, problem))
        }
        do {
            try start(manifest, id, launch)
        } catch {
            if let run = runs.removeValue(forKey: id) { discard(run) }
            let problem = (error as? Failure)?.problem ?? Failure(Stage.fork, error).problem
            send(.spawnFailed(id, problem))
        }
    }

    private func start(_ manifest: AppManifest, _ id: RunID, _ launch: Launch) throws {
        let user = try step(Stage.user) { try resolveUser(manifest) }
        try prepareDirectories(manifest, user)
        let inbox = folders.inboxes + "/" + manifest.id.name
        try step(Stage.runtimeDirectory) {
            try makeDirectory(inbox, mode: 0o700, owner: user.map { ($0.uid, $0.gid) })
        }
        let enclosure = try step(Stage.cgroup) {
            try Enclosure.create(mode: containment, app: manifest.id.name, run: id.number)
        }
        let channel = try step(Stage.notifySocket) {
            try AppChannel(
                loop: loop, path: folders.notifySockets + "/\(id)", run: id, owner: user.map { ($0.uid, $0.gid) })
        }
        let run = AppRun(id: id, manifest: manifest, enclosure: enclosure, channel: channel)
        runs[id] = run
        channel.receive = { [weak self, weak run] message, descriptors, sender in
            guard let self, let run else { return }
            self.received(run, message, descriptors, sender)
        }
        channel.complain = { [weak self] sentence in self?.complain(manifest.id, sentence) }
        let environment = LaunchEnvironment(
            manifest: manifest, launch: launch, user: user, notifySocket: channel.path, inbox: inbox,
            lastReceipt: receipts.lastPath(of: manifest.id), marker: enclosure.marker, inherited: inheritedEnvironment)
        let request = makeRequest(manifest, user, environment.entries(folders: folders), enclosure)
        let starting = try startProcess(request)
        watchStart(run, starting)
    }

    private func step<T>(_ status: Int32, _ body: () throws -> T) throws -> T {
        do { return try body() } catch { throw Failure(status, error) }
    }

    private func makeRequest(
        _ manifest: AppManifest, _ user: UserRecord?, _ environment: [String], _ enclosure: Enclosure
    ) -> SpawnRequest {
        var request = SpawnRequest(executable: manifest.exec[0], arguments: manifest.exec, environment: environment)
        request.workingDirectory = manifest.workingDirectory == "~" ? user?.home ?? "/" : manifest.workingDirectory
        request.credentials = user.map { ($0.uid, $0.gid, $0.groups) }
        request.umask = manifest.umask
        request.resourceLimits = manifest.limits.map { ($0.resource, $0.soft, $0.hard) }
        request.oomScoreAdjust = manifest.oomScoreAdjust
        request.noNewPrivileges = manifest.noNewPrivileges
        request.cgroup = enclosure.cgroupDescriptor
        request.passedDescriptors = stored.passed(to: manifest.id)
        return request
    }

    /// `nil`: the daemon's own user.
    private func resolveUser(_ manifest: AppManifest) throws -> UserRecord? {
        guard manifest.user != nil || manifest.group != nil || !manifest.supplementaryGroups.isEmpty else { return nil }
        return try UserRecord.resolve(
            user: manifest.user, group: manifest.group, supplementary: manifest.supplementaryGroups)
    }

    /// L9: they exist, owned by the app's user.
    private func prepareDirectories(_ manifest: AppManifest, _ user: UserRecord?) throws {
        let owner = user.map { ($0.uid, $0.gid) }
        let wanted: [(Int32, String, [String])] = [
            (Stage.stateDirectory, folders.appState, manifest.stateDirectory),
            (Stage.cacheDirectory, folders.appCache, manifest.cacheDirectory),
            (Stage.runtimeDirectory, folders.appRuntime, manifest.runtimeDirectory),
        ]
        for (status, folder, names) in wanted {
            for name in names {
                try step(status) { try makeDirectory(folder + "/" + name, mode: 0o755, owner: owner) }
            }
        }
    }

    // MARK: Until the program runs

    private func watchStart(_ run: AppRun, _ starting: consuming StartingProcess) {
        let pid = starting.pid
        let outcome = starting.outcomeDescriptor
        run.starting = consume starting
        mainProcesses[pid] = run.id
        send(.spawned(run.id, pid: pid))
        run.execSource = loop.addDescriptor(outcome, events: .readable) { [weak self, weak run] _ in
            guard let self, let run else { return }
            self.execDecided(run)
        }
    }

    private func execDecided(_ run: AppRun) {
        guard let starting = run.starting.take() else { return }
        let pid = starting.pid
        run.execSource = nil
        switch starting.finish() {
        case .executed(let process), .killedBeforeExec(let process):
            // Killed before exec: its end tells.
            let executed = process.didExecute
            run.process = process
            watchExit(run)
            if executed { send(.executed(run.id)) }
        case .failed(let failure):
            mainProcesses[pid] = nil
            runs[run.id] = nil
            discard(run)
            send(.spawnFailed(run.id, SpawnProblem(sentence: failure.sentence, exitStatus: failure.exitStatus)))
        }
    }
}
