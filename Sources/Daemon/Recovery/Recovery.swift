import LifecycleCore
import Linux
import Manifest
import Systemd

/// Takes the apps of a daemon that is gone into hand again: their groups by name, their processes by pidfd (of a number
/// whose start time is the one that was noted), their notify sockets by path or as they were handed over.
final class Recovery {
    private let recovered: RecoveredState
    private let shell: Shell
    private let performer: EffectPerformer
    private let containment: Containment
    private let handed: HandedDescriptors
    /// Runs of which nothing is lost that they said.
    private var heard: Set<RunID> = []
    private(set) var adopted = 0

    init(
        _ recovered: RecoveredState, shell: Shell, performer: EffectPerformer, containment: Containment,
        handed: HandedDescriptors
    ) {
        self.recovered = recovered
        self.shell = shell
        self.performer = performer
        self.containment = containment
        self.handed = handed
    }

    /// All of it, before anything else happens in the house.
    func run() {
        // An event that nobody has decided on may begin a run as well; its note says so.
        let known = Set(shell.core.runIDs)
        let noted = recovered.notes.keys.compactMap(Self.run(ofNote:)).filter { !known.contains($0) }
        for id in noted { performer.logbook.note(RunNote.name(id), nil) }
        for id in shell.core.runIDs { adopt(id) }
        performer.stored.restore(recovered.notes, handed)
        var late = resume()
        for id in shell.core.runIDs where performer.runs[id].map(performer.tellWaiting) ?? false { late.insert(id) }
        shell.send(.recovered)
        for id in shell.core.runIDs where performer.runs[id] != nil {
            shell.send(.run(id, .reattached(messagesKept: heard.contains(id), noticesDelayed: late.contains(id))))
        }
        for id in shell.core.runIDs { lookAfter(id) }
    }

    /// Carries out what the dead daemon had not.
    /// - Returns: the runs that are told of something only now.
    private func resume() -> Set<RunID> {
        var told: Set<RunID> = []
        let perform = shell.perform
        shell.perform = { effect in
            if case .spawn(_, let run, _) = effect { told.insert(run) }
            if case .notify(let run, _) = effect { told.insert(run) }
            perform(effect)
        }
        defer { shell.perform = perform }
        shell.resume(recovered)
        return told
    }

    static func run(ofNote name: String) -> RunID? {
        name.hasPrefix("run/") ? UInt64(name.dropFirst(4)).map(RunID.init) : nil
    }

    // MARK: In hand again

    private func adopt(_ id: RunID) {
        guard let bytes = recovered.notes[RunNote.name(id)], let app = shell.core.app(of: id) else { return }
        do {
            let note = try RunNote(reading: bytes)
            guard let enclosure = try containment.reopen(app: app.name, run: id.number, environmentMarker: note.marker)
            else { return }
            if note.pid == nil, try !wasBorn(enclosure) {
                _ = try enclosure.remove()
                return
            }
            try adopt(id, app, note, enclosure)
        } catch {
            performer.logWarning(app, "\(error)")
        }
    }

    /// Of a process that was about to be made: whether there ever was one. A group in which nothing has run yet has used no
    /// processor time.
    private func wasBorn(_ enclosure: Enclosure) throws -> Bool {
        if try enclosure.isPopulated() { return true }
        return try enclosure.cpuTime() > .zero
    }

    private func adopt(_ id: RunID, _ app: AppID, _ note: RunNote, _ enclosure: Enclosure) throws {
        let socket = handed.take(HandedDescriptors.notifySocket(id))
        if socket != nil, recovered.reading != id { heard.insert(id) }
        let wasHanded = socket != nil && handed.has(HandedDescriptors.process(id))
        let channel = try AppChannel(
            loop: performer.loop, path: performer.folders.notifySockets + "/\(id)", owner: note.owner, adopting: socket)
        let manifest = performer.manifests[app] ?? AppManifest(id: app)
        let run = AppRun(id: id, manifest: manifest, enclosure: enclosure, channel: channel, owner: note.owner)
        run.statusText = note.statusText
        run.errno = note.errno
        run.notices = note.notices
        run.hasNotedNotices = !note.notices.isEmpty
        run.mainPID = note.pid
        run.startTime = note.startTime
        run.isFrozen = shell.core.isSuspended(id)
        performer.listen(to: run)
        performer.runs[id] = run
        if let process = try mainProcess(id, note, enclosure) {
            run.process = process
            run.mainPID = process.pid
            run.startTime = try ProcFS().stat(of: process.pid)?.startTime ?? note.startTime
            try enclosure.started(process)
            performer.mainProcesses[process.pid] = id
            performer.findSent(run)
        }
        performer.keepNote(of: run)
        // What the store had not, or lost.
        if !wasHanded { performer.keepDescriptors(of: run) }
        adopted += 1
    }

    private func mainProcess(_ id: RunID, _ note: RunNote, _ enclosure: Enclosure) throws -> Linux.Process? {
        guard let pid = note.pid else { return try firstProcess(enclosure) }
        if let descriptor = handed.take(HandedDescriptors.process(id)) {
            return Linux.Process(pid: pid, pidfd: descriptor)
        }
        guard let process = try Linux.Process.open(pid), let stat = try ProcFS().stat(of: pid),
            stat.startTime == note.startTime
        else { return nil }
        return process
    }

    /// Between its birth and the note of it: the first process leads a session of its own, or is about to.
    private func firstProcess(_ enclosure: Enclosure) throws -> Linux.Process? {
        let stats = try enclosure.pids().compactMap { try ProcFS().stat(of: $0) }
        guard let first = stats.min(by: { ($0.startTime, $0.pid) < ($1.startTime, $1.pid) }) else { return nil }
        return try Linux.Process.open(first.pid)
    }

    // MARK: What came about meanwhile

    /// Asks the kernel what the dead daemon was about to be told.
    private func lookAfter(_ id: RunID) {
        guard let run = performer.runs[id] else {
            // Nothing of it is left, not even its group; unless it was never begun, and is now.
            shell.send(.run(id, .exited(.unknown, cpu: .zero, memory: 0)))
            return shell.send(.run(id, .emptied))
        }
        if let pid = run.mainPID, shell.core.pid(of: id) == nil { shell.send(.run(id, .spawned(pid: pid))) }
        // What it said before it ended, or before its time is over, still counts.
        run.channel.drain()
        guard run.process != nil else {
            if run.starting == nil, !shell.core.hasExited(id) {
                shell.send(.run(id, .exited(.unknown, cpu: run.cpu, memory: 0)))
            }
            return performer.watchEmpty(run)
        }
        if run.starting == nil { performer.watchAdopted(run) }
    }
}
