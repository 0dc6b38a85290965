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
        let inbox = Inbox(of: app, in: context.storage.inboxes, owner: nil)
        try step(Stage.runtimeDirectory) { try context.storage.inboxes.create(inbox) }
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
            try run.offerGroup(to: relay)
        } catch {
            run.remove()
            throw Failure(Stage.cgroup, error)
        }
    }
}

extension RunController {
    /// Lets the relay create the process in the group. `attach` follows. To move a process takes the kernel some 10 ms, in which the
    /// daemon would serve no other client.
    fileprivate func offerGroup(to relay: Relay) throws {
        let record = RelayRecord(
            pid: relay.peer.pid, startTime: relay.startTime, hasTerminal: relay.hasTerminal, client: relay.client)
        self.relay = RelayLink(record, relay, of: self)
        // Recorded before the group has a process, so the next daemon knows of it.
        persistRecord()
        guard let folder = enclosure.cgroupDescriptor, let members = try enclosure.openControl("cgroup.procs"),
            relay.send("G\(id)", [folder, members])
        else { throw Problem("its relay does not read") }
    }

    /// The process is in the group, and waits: it becomes the main process, and executes its program.
    func attach(_ relay: Relay) throws {
        guard let process = relay.process, relay.hasChild, try enclosure.contains(process.pid) else {
            throw Problem("its process is not in its control group")
        }
        isAdopted = true
        setMainProcess(process)
        try enclosure.started(process)
        guard let freezer = try enclosure.openControl("cgroup.freeze"),
            let killer = try enclosure.openControl("cgroup.kill"), relay.send("M", [freezer, killer])
        else { throw Problem("its relay does not read") }
        applyOOMClass()
        watchExit()
        send(.process(.spawned(pid: process.pid)))
        // The program that it executes from now on is the caller's business: what cannot be executed ends with status 126 or 127.
        send(.process(.executed))
    }

    func logInfo(_ sentence: String) { context.journal.log(.info, MessageID.instance, app: app, sentence) }
}
