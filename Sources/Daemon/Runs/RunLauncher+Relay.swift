import LifecycleCore
import Linux
import Manifest
import Posix
import Reports
import Systemd

/// Commands of `greenroomctl run` (L54): the relay has created the process, which waits until it is in its group.
extension RunLauncher {
    func attach(_ app: AppID, _ id: RunID, _ manifest: SharedManifest) throws {
        guard let relay = context.relays?.take(app) else {
            throw Failure(Stage.fork, Problem("only 'greenroomctl run' starts it"))
        }
        do {
            try attach(relay, app, id, manifest)
        } catch {
            relay.refuse("\((error as? Failure)?.problem.sentence ?? "\(error)")")
            throw error
        }
    }

    private func attach(_ relay: Relay, _ app: AppID, _ id: RunID, _ manifest: SharedManifest) throws {
        guard let process = relay.process, relay.hasChild else {
            throw Failure(Stage.fork, Problem("its process has ended"))
        }
        let inbox = Inbox(of: app, in: context.inboxes, owner: nil)
        try step(Stage.runtimeDirectory) { try context.inboxes.create(inbox) }
        let enclosure = try step(Stage.cgroup) { try context.containment.create(app: app.name, run: id.number) }
        limitMemory(of: enclosure, manifest.value)
        let socket: NotifySocket
        do {
            socket = try makeSocket(id, nil)
        } catch {
            context.groups.remove(enclosure)
            throw error
        }
        let run = RunController(
            id: id, manifest: manifest, enclosure: enclosure, socket: socket, owner: nil, inbox: inbox,
            context: context)
        context.runs.insert(run)
        do {
            try run.attach(process, relay)
        } catch {
            run.remove()
            throw Failure(Stage.cgroup, error)
        }
    }
}

extension RunController {
    /// Moves the process of a command into the group, and lets it execute its program.
    fileprivate func attach(_ process: Linux.Process, _ relay: Relay) throws {
        self.relay = RelayLink(
            RelayRecord(pid: relay.peer.pid, startTime: relay.startTime, hasTerminal: relay.hasTerminal), relay,
            of: self)
        isAdopted = true
        // Recorded before the group has a process, so the next daemon knows of it.
        persistRecord()
        guard try enclosure.take(process), let controls = try enclosure.openControls() else {
            throw Problem("its process cannot be moved into a control group")
        }
        setMainProcess(process)
        try enclosure.started(process)
        guard relay.send("M\(id)", controls) else { throw Problem("its relay does not read") }
        applyOOMClass()
        watchExit()
        send(.spawned(pid: process.pid))
        // The program that it executes from now on is the caller's business: what cannot be executed ends with status 126 or 127.
        send(.executed)
    }

    func logInfo(_ sentence: String) { context.journal.log(.info, MessageID.instance, app: app, sentence) }
}
