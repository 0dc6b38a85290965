import Control
import LifecycleCore
import Linux
import Manifest
import Posix
import Reports
import Systemd

/// The D-Bus interface of the daemon, on the private socket and on the message bus: passes requests to the core, and sends
/// answers and signals. It contains no rule of the lifecycle.
final class ControlBus {
    let driver: CoreDriver
    let service: ControlService
    private(set) var server: BusServer?
    /// The system's message bus, or the user's; `nil` where there can be none.
    private(set) var messageBus: MessageBus?
    /// The bus of logind: `messageBus` in a system daemon, the system's in a user's daemon.
    var systemBus: MessageBus?
    var logind: Logind?
    private(set) lazy var locations = LocationClaims(loop: service.loop, events: driver)
    private(set) lazy var calls = Calls(driver: driver, answers: answers, modes: modeReports)
    private(set) lazy var protectedDirectory = ProtectedDirectory(
        loop: service.loop, runs: service.context.runs, containment: service.containment,
        journal: service.context.journal, driver: driver)
    private(set) lazy var alerts = Alerts(
        driver: driver, answers: answers, library: service.library, runs: service.context.runs)
    private let answers: AnswerTable
    private let objects = BusObjects()
    lazy var announcer = Announcer(self)
    private(set) lazy var clientInterruptions = ClientInterruptions(driver: driver)
    private(set) lazy var modeReports = ModeReports(
        loop: service.loop, containment: service.containment, driver: driver)
    /// While the program is about to be replaced.
    var replacement: Retry?
    let recent: RecentEventList

    init(service: ControlService, driver: CoreDriver, answers: AnswerTable, isReexecuted: Bool) {
        self.service = service
        self.driver = driver
        self.answers = answers
        recent = RecentEventList(loop: service.loop, isReexecuted: isReexecuted)
        service.onDisabledChange = { [weak self] in self?.announcer.record($0) }
        service.onConfiguration = { [weak self] in
            self?.calls.configure($0)
            self?.alerts.configure()
            self?.protectedDirectory.configure($0)
        }
        service.context.storage.stored.onSnapshotChange = { [weak self] in self?.announcer.record([$0]) }
    }

    /// Serves the private socket, for root and the daemon's user, and the message bus at `busAddress` as soon as it exists.
    ///
    /// - Parameter socket: the listening socket of the previous instance.
    func listen(
        at path: String, _ socket: consuming Descriptor?, busAddress: String?, authoriser: Authoriser
    ) throws {
        objects.add(at: ControlNames.managerPath, [managerInterface()])
        objects.add(
            below: ControlNames.appPrefix,
            contains: { [unowned self] name in AppID(name).map { self.service.hasObject($0) } ?? false },
            list: { [unowned self] in self.service.objectNames }, [appInterface()])
        objects.addObjectManager(at: ControlNames.managerPath)
        objects.authorise = { [authoriser] in authoriser.decide($0, $1, $2) }
        try open(path, socket)
        guard let busAddress else { return }
        let bus = try MessageBus(
            loop: service.loop, address: busAddress, name: ControlNames.busName, objects: objects)
        messageBus = bus
        authoriser.bus = bus
        logChanges(of: bus, service.context.journal)
    }

    private func open(_ path: String, _ socket: consuming Descriptor?) throws {
        let server = try BusServer(
            loop: service.loop, path: path, adopting: socket, mode: 0o600, names: [ControlNames.busName],
            objects: objects, limits: BusServer.Limits(descriptors: maximumDescriptors()))
        let store = service.context.store
        if !server.isAdopted {
            // Removes a stored socket of this name, which no client can reach any more.
            store.remove(RecoveredDescriptors.controlSocket)
            store.store(server.listener, RecoveredDescriptors.controlSocket)
        }
        server.onWarning = { [service] in service.logWarning($0) }
        self.server = server
    }

    /// Whether clients that connect to the private socket's path reach this daemon.
    var isSocketInPlace: Bool { server?.isInPlace ?? true }

    /// Makes the private socket again if its file was removed. Connections of the old one end.
    func listenAgain() throws {
        guard let path = server?.path, !isSocketInPlace else { return }
        try open(path, nil)
    }

    /// The listening socket, for a program that replaces this one by execve(2).
    var socketForReexec: [(name: String, descriptor: SharedDescriptor)] {
        server.map { [(RecoveredDescriptors.controlSocket, $0.listener)] } ?? []
    }

    /// Closes the private socket and leaves the message bus.
    ///
    /// - Parameter isTakenOver: whether the next daemon takes over the socket; until then, connections wait in its backlog.
    func close(isTakenOver: Bool = false) {
        if isTakenOver { server?.leaveInPlace() }
        server = nil
        logind = nil
        systemBus = nil
        messageBus = nil
    }

    // MARK: Requests

    /// Passes a request to the core. The call is answered when the request has been carried out or has failed. A request that
    /// launches an app creates an instance of a template that does not exist yet.
    func request(_ call: MethodCall, _ name: String, _ what: Request) {
        service.whenStarted(call) { [self] in
            guard let id = AppID(name) else { return call.fail(service.unknownApp(name)) }
            let instances = service.context.instances
            if driver.core.state(of: id) != nil || instances.isRegistering(id) { return send(call, id, what) }
            guard what.createsInstances, id.template != nil, service.library.unreadManifest(of: id) == nil else {
                return call.fail(service.unknownApp(name))
            }
            do throws(InstanceProblem) {
                try instances.create(id) { self.send(call, id, what) }
            } catch {
                call.fail(service.error(error, creating: id, call.attempt(on: name)))
            }
        }
    }

    private func send(_ call: MethodCall, _ id: AppID, _ what: Request) {
        if let problem = service.inboxProblem(of: id, what) {
            return call.fail(ControlNames.Failure.failed.error("Cannot \(call.attempt(on: id.name)): \(problem)."))
        }
        let request = awaiting(call, about: id.name)
        if what == .interruptWhileConnected { clientInterruptions.tie(request, to: call) }
        let requester = Requester(of: call, service.containment)
        driver.send(.requested(request, id, what, by: requester))
    }

    func simulate(_ call: MethodCall, _ level: MemoryLevel) {
        service.whenStarted(call) { [self] in
            driver.send(.memory(.pressureSimulated(awaiting(call, about: ""), level)))
        }
    }

    /// What logind reports when screens are locked and unlocked (L15). A screen that is locked must not seem to be unlocked.
    func simulateLock(_ call: MethodCall, isLocked: Bool) {
        guard logind?.isPresent != true else {
            return call.fail(ControlNames.Failure.failed.error("Cannot simulate a lock: logind reports the real ones."))
        }
        if isLocked { protectedDirectory.locked() } else { protectedDirectory.unlocked() }
        call.reply([RequestResult(.done).variant])
    }

    private func awaiting(_ call: MethodCall, about app: String) -> RequestID {
        let request = answers.expect { [unowned self] in self.answer(call, app, $0) }
        call.onPeerGone { [weak self] in
            guard let self, self.answers.withdraw(request) else { return }
            self.driver.send(.requestAbandoned(request))
        }
        return request
    }

    private func answer(_ call: MethodCall, _ app: String, _ answer: Answer) {
        switch answer {
        case .done(let state):
            var result = RequestResult(.done, state: state.rawValue)
            if call.member == "Open" { result.app = app }
            if call.member == "Launch", let id = AppID(app) {
                if service.library.needsReload(id) { result.needsReload = true }
                result.warnings = service.launchWarnings(of: id)
            }
            result.wakeID = answers.answeredEvent
            call.reply([result.variant])
        case .superseded(let goal):
            // The app may not have begun to change into the state that the later request asked for.
            let state = AppID(app).flatMap(driver.core.state(of:)) ?? .notRunning
            var result = RequestResult(.superseded, state: state.rawValue)
            result.explanation = "A later request asked for \(goal.asGoal)."
            call.reply([result.variant])
        case .ended(let receipt):
            var result = RequestResult(.ended, state: AppState.notRunning.rawValue)
            result.explanation = receipt.explanation
            result.lastReceipt = service.receipts.record(of: receipt)
            call.reply([result.variant])
        case .refused(let refusal): call.fail(service.error(refusal, about: app, call.attempt(on: app)))
        case .simulated(let victim):
            var result = SimulationResult()
            result.level = driver.core.memory.level.name
            result.victim = victim?.name
            call.reply([result.variant])
        }
    }

    // MARK: Sources

    /// Lets the sources that concern single apps know of a change.
    func follow(_ report: Report) {
        switch report {
        case .stateChanged(let app, from: _, to: let state, reason: _):
            calls.observe(app)
            locations.changed(app)
            protectedDirectory.changed()
            if state == .background { service.context.background.accessories.enteredBackground(app) }
        case .modeBegan(let app, .location): locations.modeBegan(app)
        case .modeEnded(let app, .location): locations.changed(app)
        default: break
        }
    }

    // MARK: Signals

    /// The peers that receive signals: those of the private socket, and the message bus, which distributes them.
    var audience: [BusPeer] {
        let peers = server?.peers.filter(\.takesSignals) ?? []
        guard let bus = messageBus?.peer, !bus.isCongested else { return peers }
        return peers + [bus]
    }

    /// Sends a report as the signal `LifecycleEvent`.
    func publish(_ report: Report, _ entry: LogEntry) {
        service.recordTime(of: report)
        announcer.record(report)
        let took = service.context.steps.end(report, at: EventLoop.now())
        var audience = self.audience
        // Debugging entries go to the private socket alone: all programs share the message bus.
        if entry.priority == .debug { audience.removeAll { $0 === messageBus?.peer } }
        guard !audience.isEmpty || recent.isRecording else { return recent.skip() }
        var event = entry.event
        event.time = service.clock.now()
        event.monotonic = UInt64(max(0, EventLoop.now().microseconds))
        event.took = took
        recent.add(&event)
        let arguments = [event.variant]
        for peer in audience {
            try? peer.emitSignal(
                path: ControlNames.managerPath, interface: ControlNames.managerInterface,
                member: ControlNames.lifecycleEventSignal, arguments)
        }
    }
}

extension AppState {
    /// The goal of a request, for the sentence "A later request asked for …".
    fileprivate var asGoal: String {
        switch self {
        case .active, .inactive, .launching: "the foreground"
        case .background, .suspended: "the background"
        case .terminating, .notRunning: "its end"
        }
    }
}

extension Request {
    /// Whether it launches an app that is not running.
    fileprivate var createsInstances: Bool {
        switch self {
        case .launch, .activate, .open: true
        case .background, .interrupt, .interruptWhileConnected, .endInterruption, .terminate, .remove, .push, .send,
            .cancelTask, .scene:
            false
        }
    }
}

extension MethodCall {
    /// What the call attempts, for the sentence "Cannot …".
    fileprivate func attempt(on app: String) -> String {
        switch member {
        case "InterruptWhileConnected": "interrupt '\(app)'"
        case "Background": "move '\(app)' to the background"
        case "ActivateScene": "activate the scene of '\(app)'"
        case "BackgroundScene": "move the scene of '\(app)' to the background"
        case "CancelTask": "cancel the task of '\(app)'"
        case "CloseScene": "close the scene of '\(app)'"
        case "Open": "open a URL in '\(app)'"
        case "Push", "ReportPush": "push to '\(app)'"
        case "Send": "send a notification to '\(app)'"
        case "SimulatePressure": "simulate memory pressure"
        default: "\(member.lowercased()) '\(app)'"
        }
    }
}
