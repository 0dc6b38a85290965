import Glibc
import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// Notify messages of the app as events.
extension RunController: NotifySocketDelegate {
    /// A process that has ended cannot be checked. With `NotifyAccess=all` its message is read: a script sends its messages with
    /// short-lived processes (`systemd-notify`), and the daemon may read them later.
    func reasonToIgnore(sender: Int32) -> String? {
        switch manifest.effectiveNotifyAccess {
        case .none: return "NotifyAccess=none"
        case .main, .exec: return sender == mainPID ? nil : "it is not the main process (NotifyAccess=main)"
        case .all:
            // The main process may have been reaped already.
            if sender > 0, sender == mainPID { return nil }
            if (try? enclosure.contains(sender)) ?? false { return nil }
            return sender > 0 && (try? ProcFS().stat(of: sender)) == .some(nil)
                ? nil : "it is not a process of this app"
        }
    }

    /// Bytes of `RunReports.lastWarning`: a sentence, with the longest name of a task.
    private static let maximumWarning = 512

    func warned(_ sentence: String) { reports.lastWarning = sentence.printable(upTo: Self.maximumWarning) }

    func received(_ messages: [NotifyMessage], _ descriptors: inout ReceivedDescriptors, from sender: Int32) {
        context.events.batch {
            for message in messages { received(message, &descriptors, from: sender) }
            // The contents of the datagram are recorded. The core may handle them later.
            context.logbook.endReading()
        }
    }

    private func received(_ message: NotifyMessage, _ descriptors: inout ReceivedDescriptors, from sender: Int32) {
        switch message {
        case .ready: send(.transition(.ready))
        case .status(let text):
            reports.statusText = text
            persistRecord()
        case .stopping: send(.transition(.stopping))
        case .errno(let number):
            reports.errno = number
            persistRecord()
        case .mainPID(let pid): changeMainProcess(to: pid)
        case .watchdog: send(.watchdog(.heartbeat))
        case .watchdogTrigger: send(.watchdog(.triggered))
        case .watchdogTime(let time): send(.watchdog(.timeChanged(to: time)))
        case .idle(let isIdle): send(.traffic(.idleHinted(isIdle)))
        case .extendTimeout(let time): send(.deadline(.extended(by: time)))
        case .background: send(.transition(.backgroundEntered))
        case .beginTask(let task): send(.task(.began(name: task, owner: sender)))
        case .endTask(let task): send(.task(.ended(name: task)))
        case .taskProgress(let task, let done, let total, let title): progressed(task, done, total, title)
        case .beginMode(let name): if let mode = mode(name, "X_GREENROOM_BEGIN_MODE") { send(.mode(.began(mode))) }
        case .endMode(let name): if let mode = mode(name, "X_GREENROOM_END_MODE") { send(.mode(.ended(mode))) }
        case .beginScene(let name, let role): beginScene(name, role)
        case .endScene(let name): if let scene = scene(name, "X_GREENROOM_END_SCENE") { send(.scene(.ended(scene))) }
        case .wakeDone(let result, let id): send(.wake(.completed(WakeResult(result), id: id)))
        // Closing its descriptor, together with the datagram, is the answer.
        case .barrier: break
        case .storeDescriptors(let name, let type): store(&descriptors, name, type)
        case .removeDescriptors(let name): context.storage.stored.remove(name, of: app)
        }
    }

    /// The mode with this name; `nil`, after a warning, if there is none.
    private func mode(_ name: String, _ key: String) -> BackgroundModes? {
        if let mode = BackgroundModes(named: name) { return mode }
        socket.warn("\(key)=\(name): expected one of \(BackgroundModes.assertableNames.joined(separator: ", "))")
        return nil
    }

    private func progressed(_ task: String, _ done: UInt64, _ total: UInt64, _ title: String) {
        guard let progress = TaskProgress(done: done, total: total, title: title) else {
            return socket.warn("X_GREENROOM_TASK_PROGRESS=\(done)/\(total) \(task): expected \(TaskProgress.rule)")
        }
        send(.task(.progressed(name: task, progress)))
    }

    private func beginScene(_ name: String, _ word: String?) {
        guard let scene = scene(name, "X_GREENROOM_BEGIN_SCENE") else { return }
        guard let role = SceneRole(rawValue: word ?? SceneRole.window.rawValue) else {
            return socket.warn(
                "X_GREENROOM_SCENE_ROLE=\((word ?? "").printable(upTo: 32)): expected one of \(SceneRole.words)")
        }
        guard mayBegin(role) else {
            return socket.warn("X_GREENROOM_SCENE_ROLE=\(role.rawValue): \(Self.whyRoleRefused)")
        }
        send(.scene(.began(scene, role)))
    }

    private func scene(_ name: String, _ key: String) -> SceneID? {
        if let scene = SceneID(name) { return scene }
        socket.warn("\(key)=\(name): expected \(SceneID.rule)")
        return nil
    }

    /// Logs what the core found.
    func warn(_ warning: AppWarning) {
        switch warning {
        case .modeRefused(let mode):
            socket.warn("X_GREENROOM_BEGIN_MODE=\(mode.name): \(mode.whyRefused)")
            connections.modeRefused(mode)
        case .modeUnused(let mode):
            logWarning("the mode \(mode.name) does not keep it awake: no program was located for some time (GeoClue)")
        case .sceneRefused(let scene):
            socket.warn("X_GREENROOM_BEGIN_SCENE=\(scene): \(Self.whySceneRefused)")
            connections.sceneRefused(scene)
        case .sceneNotOpen(let scene):
            socket.warn("X_GREENROOM_END_SCENE=\(scene): the app has no such scene, or no other")
        case .taskNotOpen(let name): socket.warn("X_GREENROOM_END_TASK=\(name): no task of this name is open")
        case .progressNotOpen(let name):
            socket.warn("X_GREENROOM_TASK_PROGRESS=: no task '\(name)' is open")
        case .unknownWake(let id): socket.warn("X_GREENROOM_WAKE_ID=\(id): the app had no wake with this number")
        case .onlyRequestsWake: logWarning("it is suspended, and \(manifest.policy.whyOnlyRequestsWake)")
        }
    }

    private func store(_ descriptors: inout ReceivedDescriptors, _ name: String, _ type: String?) {
        if isRemovedByUser { return }
        guard descriptors.count > 0 else {
            return socket.warn("FDSTORE=1 had no effect: the message contained no descriptor")
        }
        // Each one would replace the one before.
        if StoredDescriptors.kind(of: name) != nil { descriptors.keepLast() }
        let check = DescriptorCheck()
        // Reading a line of the table of mounts takes as long as copying some lines of a file.
        defer { socket.charge(bytes: 4 * check.bytesRead) }
        while let descriptor = descriptors.takeFirst() {
            switch context.storage.stored.add(descriptor, name, type, of: app, closer: socket.closer, check: check) {
            case .stored(let written, let problem):
                socket.charge(bytes: written)
                if let event = StoredDescriptors.eventOfSnapshot(name) { send(event) }
                if let problem { socket.warn(problem) }
            case .refused(let reason): socket.warn(reason)
            }
        }
    }

    /// `MAINPID=`: changes the main process to another process of the run's group.
    private func changeMainProcess(to pid: Int32) {
        guard pid != process?.pid else { return }
        guard process != nil || forking != nil else {
            return socket.warn("MAINPID=\(pid) comes after the end of the main process; the run ends")
        }
        guard (try? enclosure.contains(pid)) ?? false else {
            return socket.warn("MAINPID=\(pid) is not a process of this app; the main process stays the same")
        }
        setMainProcess(toMember: pid)
    }

    /// Makes another process of the group the main process.
    func setMainProcess(toMember pid: Int32) {
        do {
            // Checked again after the open: the pid may have been given to another process meanwhile.
            guard let process = try Linux.Process.open(pid), try enclosure.contains(pid) else { return }
            if let old = self.process?.pid { context.runs.removeMainProcess(old) }
            // Before the old descriptor is closed: a copy in systemd's store would keep it in epoll(7). And it leaves
            // the store before the new one is stored, because both have the same name.
            context.ends.endWatch(of: id)
            context.store.remove(RecoveredDescriptors.process(id))
            isAdopted = (try? ProcFS().stat(of: pid))?.parent != getpid()
            setMainProcess(process)
            try enclosure.started(process)
            watchExit()
            send(.process(.mainProcessChanged(pid: pid)))
            // The old process may have ended and be a zombie.
            context.runs.reapOrphans()
        } catch {
            socket.warn("cannot watch the main process \(pid): \(error)")
        }
    }
}

extension RunController {
    /// Whether the app may begin scenes of this role.
    func mayBegin(_ role: SceneRole) -> Bool { role == .window || manifest.sceneRoles.contains(role) }

    static let whyRoleRefused = "the manifest of the app does not declare the role (SceneRoles=)"
    static let whySceneRefused =
        "an app has at most \(LifecycleCore.maximumScenes) scenes, and one with Role=worker has none"
}

extension SceneRole {
    static var words: String { allCases.map(\.rawValue).joined(separator: ", ") }
}

extension BackgroundModes {
    /// Why an app cannot begin this mode.
    var whyRefused: String {
        Self.assertable.contains(self)
            ? "its manifest does not declare BackgroundModes=\(name), or the app is about to end"
            : "the daemon begins this mode with a wake; an app can begin \(Self.assertableNames.joined(separator: ", "))"
    }
}

extension WakeResult {
    init(_ result: NotifyMessage.WakeResult) {
        switch result {
        case .newData: self = .newData
        case .noData: self = .noData
        case .failed: self = .failed
        }
    }
}
