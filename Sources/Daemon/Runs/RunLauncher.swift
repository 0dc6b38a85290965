import Glibc
import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// Launches apps: prepares the run (user, folders, group, notify socket, environment), then starts it.
final class RunLauncher {
    /// Exit statuses of systemd.exec(5) for what can fail before there is a process.
    enum Stage {
        /// systemd has none: it fails before it creates a process.
        static let environment: Int32 = 1
        static let sockets: Int32 = 202
        static let notifySocket: Int32 = 207
        static let user: Int32 = 217
        static let cgroup: Int32 = 219
        /// As of a program that cannot be executed.
        static let digest: Int32 = 203
        static let runtimeDirectory: Int32 = 233
        static let stateDirectory: Int32 = 238
        static let cacheDirectory: Int32 = 239
        static let fork: Int32 = 254
    }

    struct Failure: Error {
        var problem: SpawnProblem
        init(_ status: Int32, _ error: any Error) {
            problem = SpawnProblem(sentence: "\(error)", exitStatus: status)
        }
    }

    let context: DaemonContext
    /// The part of the environment of a user's daemon that its apps inherit, as `NAME=value`.
    let inheritedEnvironment: [String]

    init(context: DaemonContext, inheritedEnvironment: [String]) {
        self.context = context
        self.inheritedEnvironment = inheritedEnvironment
        context.launcher = self
    }

    /// Launches an app. `spawned` follows, or `spawnFailed` with a sentence that says why.
    func launch(_ app: AppID, _ id: RunID, _ launch: Launch) {
        // The previous daemon created the run, and died before it recorded that.
        if context.runs[id] != nil { return }
        do {
            try start(app, id, launch)
        } catch {
            let failure = error as? Failure ?? Failure(Stage.fork, error)
            context.events.send(.run(id, .process(.spawnFailed(failure.problem))))
        }
    }

    private func start(_ app: AppID, _ id: RunID, _ launch: Launch) throws {
        guard let shared = context.manifests[app] else { throw Problem("its manifest was removed") }
        let manifest = shared.value
        if manifest.policy.isAttached { return try attach(app, id, shared) }
        let sockets = try step(Stage.sockets) { try context.wakes.sockets.passed(to: app) }
        let user = try step(Stage.user) { try context.users.user(of: manifest) }
        let files = try step(Stage.environment) { try environmentFiles(manifest) }
        try prepareDirectories(manifest, user)
        let inbox = Inbox(of: app, in: context.storage.inboxes, owner: user?.owner)
        try step(Stage.runtimeDirectory) { try context.storage.inboxes.create(inbox) }
        let enclosure = try step(Stage.cgroup) {
            try context.containment.create(app: app.name, run: id.number)
        }
        limitMemory(of: enclosure, manifest)
        let socket: NotifySocket
        do {
            socket = try makeSocket(id, user)
        } catch {
            context.groups.remove(enclosure)
            throw error
        }
        let run = RunController(
            id: id, manifest: shared, enclosure: enclosure, socket: socket, owner: user?.owner, inbox: inbox,
            context: context)
        context.runs.insert(run)
        do {
            try run.connections.begin(launch)
        } catch {
            run.remove()
            throw Failure(Stage.notifySocket, error)
        }
        let environment = LaunchEnvironment(
            manifest: manifest, files: files, launch: launch, user: user?.record, notifySocket: socket.path,
            busAddress: run.connections.address, inbox: inbox.path,
            lastReceipt: lastReceipt(of: app), marker: enclosure.environmentMarker, inherited: inheritedEnvironment,
            pressureFile: enclosure.pressureFile(for: user?.owner),
            orientation: context.wakes.systemEvents.orientation)
        let entries = environment.entries(folders: context.folders)
        var request = makeRequest(manifest, manifest.command(entries), user, entries, enclosure)
        if manifest.policy.watchdog != nil { request.processIDVariables = ["WATCHDOG_PID"] }
        request.passedDescriptors = sockets + context.storage.stored.passed(to: app)
        setOutput(of: &request, manifest, id, launch.reason, user?.owner)
        request.programDigest = try step(Stage.digest) { try digest(manifest) }
        do {
            try run.start(request)
        } catch {
            run.abandonStart()
            throw error
        }
    }

    func step<T>(_ status: Int32, _ body: () throws -> T) throws -> T {
        do { return try body() } catch { throw Failure(status, error) }
    }

    // MARK: Preparation

    /// Creates the directories that the manifest names, owned by the app's user (L9).
    private func prepareDirectories(_ manifest: AppManifest, _ user: AppUser?) throws {
        let owner = user?.owner
        let folders = context.folders
        let all: [(Int32, String, [String])] = [
            (Stage.stateDirectory, folders.appState, manifest.stateDirectory),
            (Stage.cacheDirectory, folders.appCache, manifest.cacheDirectory),
            (Stage.runtimeDirectory, folders.appRuntime, manifest.runtimeDirectory),
        ]
        for (status, folder, names) in all {
            for name in names {
                try step(status) { try createDirectories(at: folder + "/" + name, mode: 0o755, owner: owner) }
            }
        }
    }

    func environmentFiles(_ manifest: AppManifest) throws -> [String] {
        var entries: [String] = []
        for file in manifest.environmentFiles {
            guard let bytes = try readFileIfPresent(at: file.path, limit: EnvironmentFile.maximumSize) else {
                if file.isOptional { continue }
                throw Problem("the environment file \(file.path.printable()) does not exist")
            }
            entries += EnvironmentFile.entries(bytes)
        }
        return entries
    }

    func makeSocket(_ id: RunID, _ user: AppUser?) throws -> NotifySocket {
        do {
            return try NotifySocket(id, in: context.notifySockets, owner: user?.owner)
        } catch {
            // The socket may be bound already.
            _ = try? removeFile(at: context.notifySockets.path(of: id))
            throw Failure(Stage.notifySocket, error)
        }
    }

    /// The path of the app's last receipt. Without it the app is launched nevertheless.
    private func lastReceipt(of app: AppID) -> String? {
        do {
            return try context.storage.receipts.writeLastReceipt(for: app)
        } catch {
            context.journal.logWarning("\(error)", app: app)
            return nil
        }
    }

    // MARK: The request

    func makeRequest(
        _ manifest: AppManifest, _ command: [String], _ user: AppUser?, _ environment: [String], _ enclosure: Enclosure
    ) -> SpawnRequest {
        var request = SpawnRequest(
            executable: command[0], arguments: Array(command.dropFirst()), environment: environment)
        request.workingDirectory =
            manifest.workingDirectory == "~" ? user?.record.home ?? "/" : manifest.workingDirectory
        request.credentials = user?.credentials
        request.umask = manifest.umask
        request.resourceLimits = resourceLimits(manifest)
        request.oomScoreAdjust = manifest.oomScoreAdjust ?? OOMClass.defaultBase
        request.noNewPrivileges = manifest.noNewPrivileges
        request.readOnlyProgram = manifest.readOnlyProgram ? manifest.exec.first : nil
        request.ignoresSIGPIPE = manifest.ignoresSIGPIPE
        request.cgroup = enclosure.cgroupDescriptor
        return request
    }

    private func digest(_ manifest: AppManifest) throws -> FileDigest? {
        guard let text = manifest.programDigest else { return nil }
        guard let digest = FileDigest(text) else { throw Problem("ProgramDigest=\(text) is no digest") }
        return digest
    }

    /// Without its limits the app is launched nevertheless.
    func limitMemory(of enclosure: Enclosure, _ manifest: AppManifest) {
        do {
            try enclosure.limitMemory(of: manifest)
        } catch {
            context.journal.logWarning("its memory limits are not set: \(error)", app: manifest.id)
        }
    }

    /// The resource limits of an app. The daemon's own limit of open files is high. Apps get systemd's defaults: a soft
    /// limit of 1,024, which select(2) needs, and a hard limit of 524,288.
    private func resourceLimits(_ manifest: AppManifest) -> [ResourceLimit] {
        let given = manifest.limits.map { ResourceLimit(resource: $0.resource, soft: $0.soft, hard: $0.hard) }
        let openFiles: Int32 = 7  // RLIMIT_NOFILE
        if given.contains(where: { $0.resource == openFiles }) { return given }
        // An unprivileged daemon cannot raise its own hard limit for its apps.
        let hard = min(524_288, maximumDescriptors())
        return given + [ResourceLimit(resource: openFiles, soft: min(1024, hard), hard: hard)]
    }
}
