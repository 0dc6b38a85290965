import Control
import LifecycleCore
import Linux
import Manifest
import Posix
import Reports
import Systemd

/// The methods of org.greenroom.Self1. A refusal is an error with a sentence for the caller, and a warning in the app's log and
/// its status.
extension ConnectionTransport {
    /// The longest token of a task, in bytes.
    private static let maximumToken = 64
    /// The most kinds in the option `handles`.
    private static let maximumKinds = 64
    /// The longest name of a library that is logged, in bytes.
    private static let maximumLibrary = 128

    private func refuse(_ failure: ControlNames.Failure, _ call: MethodCall, _ reason: String) -> BusError {
        run.socket.warn("\(call.member) was refused: \(reason)")
        return failure.error("\(call.member) was refused: \(reason).")
    }

    // MARK: Lifecycle

    func say(_ event: RunEvent, _ call: MethodCall) {
        run.send(event)
        call.reply()
    }

    func attach(_ call: MethodCall) throws(BusError) {
        let options = call.arguments[0]
        let kinds = try kinds(options["handles"], call)
        guard let serial = options["serial"].map({ $0.uintValue }) ?? 0 else {
            throw refuse(
                .invalidArgument, call, "the option serial is a \(options["serial"]?.signature ?? ""); expected a t")
        }
        let once = options["once"]?.boolValue ?? false
        if let library = options["library"]?.stringValue {
            let name = library.printable(upTo: Self.maximumLibrary)
            context.journal.log(
                .debug, MessageID.bus, app: run.app,
                "process \(call.peer.credentials?.pid ?? 0) takes part with \(name), after the event \(serial)")
        }
        attach(call.peer, kinds, after: serial, once: once) { position in call.reply([launchAnswer(position)]) }
    }

    private func kinds(_ option: Variant?, _ call: MethodCall) throws(BusError) -> Set<EventKind> {
        guard let option else { return [] }
        guard case .array("s", let names) = option, names.count <= Self.maximumKinds else {
            throw refuse(
                .invalidArgument, call, "the option handles is not an array of at most \(Self.maximumKinds) strings")
        }
        // A newer library may handle kinds that this version does not send.
        return Set(names.compactMap { $0.stringValue.flatMap(EventKind.init(rawValue:)) })
    }

    /// - Parameter position: the serial after which events follow.
    private func launchAnswer(_ position: UInt64) -> Variant {
        let launch = self.launch
        var all: [(String, Variant)] = [
            ("app", .string(run.app.name)), ("run", .uint64(run.id.number)),
            ("launchState", .string(launch.state)), ("launchReason", .string(launch.reason)),
            ("firstLaunch", .bool(launch.isFirst)),
            ("state", .string(context.events.view(of: run.app)?.state.rawValue ?? "")),
            ("serial", .uint64(position)), ("daemonVersion", .string(ControlNames.version)),
        ]
        if let url = launch.url { all.append(("launchUrl", .string(url))) }
        if let receipt = context.storage.receipts.last(of: run.app) { all.append(("lastReceipt", receipt.variant)) }
        if let summary = context.storage.summaries.last(of: run.app) { all.append(("stateSummary", .string(summary))) }
        return .dictionary(all)
    }

    func answer(_ call: MethodCall) throws(BusError) {
        let (serial, options) = (call.arguments[0].uintValue ?? 0, call.arguments[1])
        guard let event = queue.open(serial) else { throw whyNotOpen(serial, call) }
        let outcome: RunEvent
        if let wake = event.wake {
            guard let name = options["result"]?.stringValue, let result = WakeResult(rawValue: name) else {
                let names = WakeResult.allCases.map(\.rawValue).joined(separator: ", ")
                throw refuse(.invalidArgument, call, "the option result is not one of \(names)")
            }
            outcome = .wake(.completed(result, id: wake))
        } else if event.kind == .willTerminate {
            outcome = .transition(.terminationAnswered)
        } else if event.kind == .withdraw {
            outcome = .connection(.withdrawn)
        } else if event.kind == .takeSnapshot {
            outcome = .connection(.snapshotTaken)
        } else if case .notice(.takeSceneSnapshot(let scene)) = event.content {
            outcome = .scene(.snapshotTaken(scene))
        } else {
            outcome = .transition(.backgroundEntered)
        }
        context.events.batch {
            // One entry of the logbook: the next daemon finds both or neither.
            context.logbook.batch {
                queue.remove { $0.serial == serial }
                run.send(outcome)
            }
        }
        // The file of a push that is handled would be handled again by the next process.
        if event.kind == .push, case .notification(let kind, let payload, let id) = event.content {
            run.removeEventFile(kind: kind, payload: payload, id: id)
        }
        call.reply()
    }

    /// An answer can come late through no fault of the app: another process was first, a library repeats what it sent before a
    /// restart of the daemon, or a later event has displaced this one. That is no warning, which an answer to what never came is.
    private func whyNotOpen(_ serial: UInt64, _ call: MethodCall) -> BusError {
        // The first serial is the launch.
        guard serial > 1, serial <= queue.lastSerial, !queue.events.contains(where: { $0.serial == serial }) else {
            return refuse(.notOpen, call, "no event \(serial) waits for an answer; it needs none, or never came")
        }
        context.journal.log(
            .debug, MessageID.bus, app: run.app,
            "the event \(serial) was answered late: it waits for no answer any more")
        return ControlNames.Failure.notOpen.error(
            "\(call.member) was refused: no event \(serial) waits for an answer; it was answered, or is over.")
    }

    // MARK: Tasks

    var remainingMicroseconds: UInt64 {
        guard let view = context.events.view(of: run.app), !view.isForeground, let left = view.backgroundTimeRemaining
        else { return .max }
        return UInt64(max(0, left.microseconds))
    }

    func beginTask(_ call: MethodCall) throws(BusError) {
        let (name, token) = (call.arguments[0].stringValue ?? "", call.arguments[1].stringValue ?? "")
        guard (1...NotifyDatagram.maximumTaskName).contains(name.utf8.count),
            !name.unicodeScalars.contains(where: \.isControl)
        else {
            throw refuse(
                .invalidArgument, call,
                "the name has not 1 to \(NotifyDatagram.maximumTaskName) bytes without control characters")
        }
        guard (1...Self.maximumToken).contains(token.utf8.count), token.utf8.allSatisfy({ (0x21...0x7e).contains($0) })
        else {
            throw refuse(
                .invalidArgument, call,
                "the token has not 1 to \(Self.maximumToken) printable ASCII characters without spaces")
        }
        // The call is repeated: the first answer was lost with the previous daemon.
        if tasks[token] != nil, !beginning.contains(where: { $0.token == token }) {
            return call.reply([.uint64(remainingMicroseconds)])
        }
        let open = max(tasks.count, context.events.view(of: run.app)?.tasks.count ?? 0)
        guard open < LifecycleCore.maximumTasks, !beginning.contains(where: { $0.token == token }) else {
            throw refuse(.tooMany, call, "\(open) tasks are open, or the call is repeated before its answer")
        }
        let owner = call.peer.credentials?.pid ?? 0
        beginning.append(BeginningTask(name: name, token: token, call: call))
        context.events.batch {
            context.logbook.batch {
                tasks[token] = name
                context.logbook.persist(Array(name.utf8), as: ConnectionRecords.task(run.id, token))
                run.send(.task(.began(name: name, owner: owner)))
            }
        }
    }

    /// The core has decided about a task.
    func taskDecided(_ name: String, isRefused: Bool) {
        guard let index = beginning.firstIndex(where: { $0.name == name }) else { return }
        let task = beginning.remove(at: index)
        guard isRefused else { return task.call.reply([.uint64(remainingMicroseconds)]) }
        removeTask(task.token)
        task.call.fail(
            refuse(
                .backgroundTimeUsedUp, task.call,
                "the app has no background time for the task \(name), or it is ending"))
    }

    func endTask(_ call: MethodCall) throws(BusError) {
        let token = call.arguments[0].stringValue ?? ""
        guard let name = tasks[token], !beginning.contains(where: { $0.token == token }) else {
            throw refuse(.notOpen, call, "no task with the token \(token.printable(upTo: Self.maximumToken)) is open")
        }
        context.events.batch {
            context.logbook.batch {
                removeTask(token)
                run.send(.task(.ended(name: name)))
            }
        }
        call.reply()
    }

    /// By name, which other processes of the app know, too.
    func setTaskProgress(_ call: MethodCall) throws(BusError) {
        let (name, title) = (call.arguments[0].stringValue ?? "", call.arguments[3].stringValue ?? "")
        let (done, total) = (call.arguments[1].uintValue ?? 0, call.arguments[2].uintValue ?? 0)
        guard let progress = TaskProgress(done: done, total: total, title: title) else {
            throw refuse(.invalidArgument, call, "\(done) of \(total) was reported; expected \(TaskProgress.rule)")
        }
        // One that has just begun may not have reached the core.
        guard tasks.values.contains(name) || context.events.isTaskOpen(name, of: run.id) else {
            throw refuse(.notOpen, call, "no task '\(name.printable(upTo: NotifyDatagram.maximumTaskName))' is open")
        }
        run.send(.task(.progressed(name: name, progress)))
        call.reply()
    }

    private func removeTask(_ token: String) {
        tasks[token] = nil
        context.logbook.removeRecord(ConnectionRecords.task(run.id, token))
    }

    // MARK: Modes

    /// A mode is on or off for the app, however often it is begun.
    func beginMode(_ call: MethodCall) throws(BusError) {
        let mode = try mode(of: call)
        if context.events.view(of: run.app)?.modes.contains(mode) ?? false { return call.reply() }
        guard beginningModes.count < Self.mostBeginningModes else {
            throw refuse(.tooMany, call, "\(beginningModes.count) calls wait for their answer")
        }
        beginningModes.append((mode, call))
        run.send(.mode(.began(mode)))
    }

    func endMode(_ call: MethodCall) throws(BusError) {
        run.send(.mode(.ended(try mode(of: call))))
        call.reply()
    }

    private func mode(of call: MethodCall) throws(BusError) -> BackgroundModes {
        let name = call.arguments[0].stringValue ?? ""
        guard let mode = BackgroundModes(named: name) else {
            throw refuse(
                .invalidArgument, call,
                "there is no mode '\(name.printable(upTo: 32))'; an app can begin "
                    + BackgroundModes.assertableNames.joined(separator: ", "))
        }
        return mode
    }

    /// The core has decided about a mode.
    func modeBegan(_ mode: BackgroundModes) {
        for beginning in takeBeginning(mode) { beginning.reply() }
    }

    func modeRefused(_ mode: BackgroundModes) {
        for beginning in takeBeginning(mode) {
            beginning.fail(refuse(.invalidArgument, beginning, "the mode \(mode.name) is refused: \(mode.whyRefused)"))
        }
    }

    private func takeBeginning(_ mode: BackgroundModes) -> [MethodCall] {
        defer { beginningModes.removeAll { $0.mode == mode } }
        return beginningModes.filter { $0.mode == mode }.map(\.call)
    }

    // MARK: Scenes

    func beginScene(_ call: MethodCall) throws(BusError) {
        let (scene, word) = (try scene(of: call), call.arguments[1].stringValue ?? "")
        guard let role = SceneRole(rawValue: word.isEmpty ? SceneRole.window.rawValue : word) else {
            throw refuse(
                .invalidArgument, call, "the role is '\(word.printable(upTo: 32))'; expected \(SceneRole.words)")
        }
        guard run.mayBegin(role) else {
            throw refuse(
                .invalidArgument, call, "the role \(role.rawValue) is refused: \(RunController.whyRoleRefused)")
        }
        // One that is unattached may be one too many.
        let isNew =
            !(context.events.view(of: run.app)?.ownScenes.contains { $0.id == scene && $0.state != .unattached }
            ?? false)
        guard isNew else {
            run.send(.scene(.began(scene, role)))
            return call.reply()
        }
        guard beginningScenes.count < Self.mostBeginningScenes else {
            throw refuse(.tooMany, call, "\(beginningScenes.count) calls wait for their answer")
        }
        beginningScenes.append((scene, call))
        run.send(.scene(.began(scene, role)))
    }

    /// The core has decided about a scene.
    func sceneChanged(_ scene: SceneID) {
        for beginning in takeBeginning(scene) { beginning.reply() }
    }

    func sceneRefused(_ scene: SceneID) {
        for beginning in takeBeginning(scene) {
            beginning.fail(refuse(.tooMany, beginning, RunController.whySceneRefused))
        }
    }

    private func takeBeginning(_ scene: SceneID) -> [MethodCall] {
        defer { beginningScenes.removeAll { $0.scene == scene } }
        return beginningScenes.filter { $0.scene == scene }.map(\.call)
    }

    func endScene(_ call: MethodCall) throws(BusError) {
        run.send(.scene(.ended(try scene(of: call))))
        call.reply()
    }

    private func scene(of call: MethodCall) throws(BusError) -> SceneID {
        let name = call.arguments[0].stringValue ?? ""
        guard let scene = SceneID(name) else {
            throw refuse(
                .invalidArgument, call, "the scene is '\(name.printable(upTo: 32))'; expected \(SceneID.rule)")
        }
        return scene
    }

    // MARK: Status and state

    func setStatus(_ call: MethodCall) {
        run.reports.statusText = (call.arguments[0].stringValue ?? "").printable(upTo: NotifyDatagram.maximumStatus)
        run.persistRecord()
        call.reply()
    }

    func setIdle(_ call: MethodCall) {
        setIdle(call.peer, call.arguments[0].boolValue ?? false)
        call.reply()
    }

    func setStateSummary(_ call: MethodCall) throws(BusError) {
        let text = call.arguments[0].stringValue ?? ""
        guard text.utf8.count <= SummaryStore.maximumBytes else {
            throw refuse(
                .invalidArgument, call,
                "the summary has \(text.utf8.count) bytes; the limit is \(SummaryStore.maximumBytes)")
        }
        do {
            try context.storage.summaries.set(text, of: run.app)
        } catch {
            throw refuse(.failed, call, "it cannot be kept: \(error)")
        }
        call.reply()
    }

    /// Keeps a sealed memfd as the snapshot (L18), of the type before it.
    func saveTypedSnapshot(_ call: MethodCall) throws(BusError) {
        try save(call, StoredDescriptors.snapshot, type(of: call, at: 0))
    }

    /// The same for a scene, which comes first.
    func saveSceneSnapshot(_ call: MethodCall) throws(BusError) {
        try save(call, StoredDescriptors.snapshot(of: sceneOfState(call)), type(of: call, at: 1))
    }

    private func type(of call: MethodCall, at position: Int) throws(BusError) -> String {
        let type = call.arguments[position].stringValue ?? ""
        guard MediaType.isValid(type) else {
            throw refuse(
                .invalidArgument, call,
                "the type '\(type.printable(upTo: MediaType.maximumLength))' is not \(MediaType.expected)")
        }
        return type
    }

    /// The scene that the first argument names (L34).
    private func sceneOfState(_ call: MethodCall) throws(BusError) -> SceneID {
        let name = call.arguments.first?.stringValue ?? ""
        guard let scene = SceneID(name) else {
            throw refuse(
                .invalidArgument, call,
                "the scene '\(name.printable(upTo: SceneID.maximumLength))' is not \(SceneID.rule)")
        }
        return scene
    }

    func saveSceneState(_ call: MethodCall) throws(BusError) {
        try save(call, StoredDescriptors.state(of: sceneOfState(call)))
    }

    func getSceneState(_ call: MethodCall) throws(BusError) {
        try getState(call, StoredDescriptors.state(of: sceneOfState(call)))
    }

    /// Keeps a sealed memfd, the last argument, as a restoration state or a snapshot (L11, L18, L34).
    func save(_ call: MethodCall, _ name: String, _ type: String? = nil) throws(BusError) {
        guard case .descriptor(let shared)? = call.arguments.last else {
            throw refuse(.invalidArgument, call, "it has no descriptor")
        }
        if let reason = StoredDescriptors.reasonToRefuse(contentsOf: shared) {
            throw refuse(.invalidArgument, call, reason)
        }
        let addition: StoredDescriptors.Addition
        do {
            addition = context.storage.stored.add(
                try shared.descriptor.duplicate(), name, type, of: run.app, closer: run.socket.closer)
        } catch {
            throw refuse(.failed, call, "\(error)")
        }
        switch addition {
        case .refused(let reason): throw refuse(.invalidArgument, call, reason)
        case .stored(let written, let problem):
            limiter?.charge(bytes: written)
            if let problem { run.socket.warn(problem) }
            if let event = StoredDescriptors.eventOfSnapshot(name) { run.send(event) }
            call.reply()
        }
    }

    func getState(_ call: MethodCall, _ name: String = StoredDescriptors.state) throws(BusError) {
        guard let state = context.storage.stored.copy(of: name, run.app) else {
            throw ControlNames.Failure.notFound.error(
                name == StoredDescriptors.state
                    ? "The app has no restoration state." : "The scene has no restoration state.")
        }
        call.reply([.descriptor(state)])
    }
}
