import Control
import LifecycleCore
import Linux
import LoopPolicy
import Posix
import Systemd

/// The connections of the processes of one run (`GREENROOM_BUS_ADDRESS`): their socket, the events that are sent to the app, and
/// the calls that it makes.
///
/// It decides nothing about the lifecycle: a notice of the core goes over the connections if one of them handles its kind,
/// otherwise as a signal (`RunController.notify`). Everything that a client needs to continue after the death of the daemon is
/// recorded before it is sent (`EventQueue`, `ConnectionRecords`).
final class ConnectionTransport {
    /// A connection that takes part.
    struct Participant {
        let peer: BusPeer
        var kinds: Set<EventKind>
        /// How many events it gets at most.
        var rest = Int.max
    }

    /// The most connections of a run.
    static let maximumConnections = 8
    /// How long after a launch events are kept for an app that has not connected yet.
    static let connectTime = Duration.seconds(60)

    unowned let run: RunController
    /// The socket that processes connect to; `nil`: they cannot.
    var socket: BusListener?
    /// Waits for the first connection.
    var firstConnection: EventSource?
    /// Made for the first connection: most apps have none.
    var server: BusServer?
    private(set) var participants: [Participant] = []
    /// The kinds that the previous daemon's clients handled, until they have connected again.
    private(set) var awaited: Set<EventKind> = []
    private var awaitTimer: Systemd.Timer?
    @OnDemand var record = ConnectionRecord()
    /// Made when it is needed: most apps have no connection.
    private var madeQueue: EventQueue?
    /// The names of open tasks, by the token that the app has chosen.
    var tasks: [String: String] = [:]
    /// Calls of `BeginTask` that wait for the core's decision, oldest first.
    var beginning: [BeginningTask] = []
    /// Made for the first message.
    var limiter: MessageLimiter?
    /// `SetIdle`: what each connection has said since it got its last event.
    private var idle: [ObjectIdentifier: Bool] = [:]

    /// Calls of `BeginMode` that wait for the core's decision.
    var beginningModes: [(mode: BackgroundModes, call: MethodCall)] = []
    /// A library has one for each mode.
    static let mostBeginningModes = 32
    /// Calls of `BeginScene` that wait for the core's decision.
    var beginningScenes: [(scene: SceneID, call: MethodCall)] = []
    static let mostBeginningScenes = 2 * LifecycleCore.maximumScenes

    struct BeginningTask {
        let name: String
        let token: String
        let call: MethodCall
    }

    init(_ run: RunController) { self.run = run }

    var context: DaemonContext { run.context }
    var loop: EventLoop { run.context.loop }
    var folder: String { context.folders.connections + "/\(run.id)" }
    var path: String { folder + "/bus" }
    var address: String { BusAddress.unix(path: path) }

    var queue: EventQueue {
        if let madeQueue { return madeQueue }
        let queue = makeQueue([])
        madeQueue = queue
        return queue
    }

    private func makeQueue(_ events: [AppEvent]) -> EventQueue {
        let (logbook, id) = (context.logbook, run.id)
        return EventQueue(events, lastSerial: record.lastSerial) { serial, event in
            let name = ConnectionRecords.event(id, serial)
            if let event { logbook.persist(event.savedBytes, as: name) } else { logbook.removeRecord(name) }
        }
    }

    /// Whether a connection has ever taken part.
    var hasAttached: Bool { !record.handled.isEmpty || !participants.isEmpty }

    // MARK: Participants

    /// The kinds that all connections handle together, and those that processes for one event each handle.
    var handled: Set<EventKind> { participants.reduce(into: record.kept) { $0.formUnion($1.kinds) } }

    /// A connection takes part from now on.
    /// - Parameters:
    ///   - serial: of the last event that its client has got; 0: none.
    ///   - once: it gets one event, and other connections get the ones after it: until then they wait.
    ///   - reply: sends the answer, with the serial after which events follow. Called before the first of them.
    func attach(
        _ peer: BusPeer, _ kinds: Set<EventKind>, after serial: UInt64, once: Bool = false, _ reply: (UInt64) -> Void
    ) {
        participants.removeAll { $0.peer === peer }
        let due = queue.due(after: min(serial, queue.lastSerial), kinds).prefix(once ? 1 : .max)
        participants.append(Participant(peer: peer, kinds: kinds, rest: once ? 1 - due.count : .max))
        reply((due.first?.serial ?? queue.lastSerial + 1) - 1)
        for event in due {
            // What is sent again costs the daemon as much as a message of the app.
            if event.isSent { countMessage() }
            send(event, to: peer)
        }
        let first = due.filter { !$0.isSent }
        context.logbook.batch { queue.markSent(Set(first.map(\.serial))) }
        for event in first {
            // The app was notified when the event began to wait for the next process.
            guard case .notice(let notice) = event.content, !record.kept.contains(event.kind) else { continue }
            run.notified(notice, delivered: true)
        }
        if once, kinds != record.kept {
            record.kept = kinds
            persist()
        }
        changed()
    }

    /// A process says whether it has something to do. Of several all that say anything have to be idle.
    func setIdle(_ peer: BusPeer, _ isIdle: Bool) {
        idle[ObjectIdentifier(peer)] = isIdle
        run.send(.traffic(.idleHinted(!idle.values.contains(false))))
    }

    /// A connection has ended.
    func detach(_ peer: BusPeer) {
        // What the other processes have said holds; without any the app counts as busy.
        if idle.removeValue(forKey: ObjectIdentifier(peer)) != nil {
            run.send(.traffic(.idleHinted(!idle.isEmpty && !idle.values.contains(false))))
        }
        guard participants.contains(where: { $0.peer === peer }) else { return }
        participants.removeAll { $0.peer === peer }
        changed()
    }

    private func changed() {
        let all = handled.union(awaited)
        guard all != record.handled else { return }
        record.handled = all
        context.events.batch {
            context.logbook.batch {
                persist()
                run.send(.connection(.attached(HandledNotices(all))))
            }
        }
    }

    func persist() {
        guard context.runs.contains(run) else { return }
        record.lastSerial = queue.lastSerial
        context.logbook.persist(record.savedBytes, as: ConnectionRecords.state(run.id))
    }

    // MARK: Events

    /// Takes over a notice of the core.
    /// - Returns: false if it is to be sent as a signal.
    func take(_ notice: Notice, _ effect: EffectID) -> Bool {
        // The previous daemon has recorded it before it died.
        if effect <= record.lastEffect { return true }
        if effect <= run.transport.queue.lastEffect { return false }
        let kind = EventKind(notice)
        if kind.isTransition { closeTransitions() }
        // What comes now shows more than the snapshot that is still waited for.
        if [.takeSnapshot, .takeSceneSnapshot, .withdraw].contains(kind) {
            madeQueue?.remove { $0.content == .notice(notice) }
        }
        guard record.handled.contains(kind) else { return false }
        var event = AppEvent(serial: 0, .notice(notice))
        describe(&event)
        let isSent = add(event, effect)
        if isSent || record.kept.contains(kind) { run.notified(notice, delivered: true) }
        if notice == .willTerminate, !isSent { awaitOver() }
        return true
    }

    /// A transition that began later ends the one before: its answer counts for nothing.
    private func closeTransitions() { madeQueue?.remove { $0.kind == .didEnterBackground } }

    private func describe(_ event: inout AppEvent) {
        guard [.didEnterBackground, .willTerminate, .tasksExpiring, .openURL].contains(event.kind) else { return }
        let view = context.events.view(of: run.app)
        let now = loop.now()
        switch event.kind {
        case .didEnterBackground: event.until = view?.deadline.map { now + $0.remaining }
        case .willTerminate:
            event.until = view?.deadline.map { now + $0.remaining }
            event.reason = view?.terminationReason?.rawValue ?? ""
        case .tasksExpiring:
            let expiring = view?.tasks.filter(\.isExpiring) ?? []
            event.until = expiring.compactMap(\.remaining).min().map { now + $0 }
            event.names = Array(expiring.map(\.name).prefix(AppEvent.maximumNames))
        case .openURL: event.scene = view?.mostActiveScene?.id.name ?? ""
        case .didBecomeActive, .willResignActive, .willEnterForeground, .memoryWarning, .push, .wake, .notification,
            .withdraw, .willSuspend, .didResume, .scene, .didDiscardScenes, .takeSnapshot, .takeSceneSnapshot:
            break
        }
    }

    /// Tells the app of a notification, if it has a connection or may still make one.
    /// - Returns: whether a connection has got it.
    func tell(_ notification: Notification, _ effect: EffectID) -> Bool {
        let event = AppEvent(
            serial: 0,
            .notification(kind: notification.kind, payload: notification.payload, id: notification.id))
        // The previous daemon has recorded it, and not the others of the same effect.
        if queue.events.contains(where: { $0.effect == effect && $0.content == event.content }) { return true }
        let isHandled = record.handled.contains(event.kind)
        let mayConnect = !hasAttached && loop.now() - launch.began < Self.connectTime
        if isHandled || mayConnect { return add(event, effect) }
        // It has made no connection until now: what was kept for one is in its inbox.
        if !hasAttached { queue.remove { !$0.isSent } }
        return false
    }

    /// Tells the app of a wake that is not for a push.
    func tellWake(_ id: UInt64, _ effect: EffectID) {
        guard effect > record.lastEffect, record.handled.contains(.wake),
            let wake = context.events.view(of: run.app)?.wakes.first(where: { $0.id == id }), wake.reason != .push
        else { return }
        var event = AppEvent(serial: 0, .wake(id: id, reason: wake.reason.rawValue))
        event.until = loop.now() + wake.remaining
        add(event, effect)
    }

    /// Records an event, and sends it to the connections that handle it.
    /// - Returns: whether there is one.
    @discardableResult
    private func add(_ content: AppEvent, _ effect: EffectID) -> Bool {
        let receivers = participants.indices.filter {
            participants[$0].rest > 0 && participants[$0].kinds.contains(content.kind)
        }
        var content = content
        content.effect = effect
        content.isSent = !receivers.isEmpty
        var (event, lost): (AppEvent, [EventKind]) = (content, [])
        context.logbook.batch {
            (event, lost) = queue.add(content)
            switch content.content {
            // There is one for an effect.
            case .notice, .wake: record.lastEffect = max(record.lastEffect, effect)
            // `endEffect` follows the last.
            case .notification: break
            }
            persist()
        }
        // An app that has no connection reads its inbox, which has a limit of its own.
        if let first = lost.first, hasAttached {
            run.socket.warn(
                "\(EventQueue.capacity) events wait for its connection, or 1 MB of them; the oldest, \(first.rawValue), was dropped"
            )
        }
        for index in receivers {
            if participants[index].rest < .max { participants[index].rest -= 1 }
            if event.kind != .willSuspend { idle[ObjectIdentifier(participants[index].peer)] = nil }
            send(event, to: participants[index].peer)
        }
        return !receivers.isEmpty
    }

    /// All events of this effect are recorded.
    func endEffect(_ effect: EffectID) {
        guard effect > record.lastEffect else { return }
        record.lastEffect = effect
        persist()
    }

    private func send(_ event: AppEvent, to peer: BusPeer) {
        try? peer.emitSignal(
            path: SelfInterface.path, interface: SelfInterface.name, member: SelfInterface.eventSignal,
            [.uint64(event.serial), .string(event.kind.rawValue), .dictionary(event.details(at: loop.now()))])
    }

    // MARK: Recovery

    /// Whether notices wait that the previous daemon's clients have not got.
    var hasWaitingNotices: Bool { madeQueue?.events.contains { !$0.isSent && $0.kind.isAnswered } ?? false }

    /// Takes over what the previous daemon recorded. Its clients connect again.
    func restore(_ recovered: ConnectionRecords.Recovered) {
        record = recovered.state
        madeQueue = makeQueue(recovered.events)
        tasks = recovered.tasks
        awaited = record.handled
    }

    /// From now on clients that connect are served, and those of the previous daemon are waited for.
    func beginServing() {
        firstConnection?.isEnabled = true
        if !run.isFrozen { awaitClients() }
    }

    /// The processes run again: from now on they can connect.
    func thawed() { awaitClients() }

    /// Notices of clients that do not connect again meanwhile go as signals.
    private func awaitClients() {
        guard !awaited.isEmpty else { return }
        awaitTimer = try? loop.makeTimer(kind: .appTimer) { [weak self] _ in self?.awaitOver() }
        awaitTimer?.arm(at: loop.now() + LifecycleCore.reconnectTime)
    }

    /// Clients that have not connected by now get signals, as far as the manifest names any. Those of a frozen process cannot
    /// have connected: they have the time after the thaw.
    private func awaitOver() {
        awaitTimer = nil
        guard !awaited.isEmpty, !run.isFrozen else { return }
        awaited = []
        changed()
        let kinds = handled
        var waiting: [AppEvent] = []
        context.logbook.batch {
            queue.remove { event in
                guard case .notice = event.content, !event.isSent, !kinds.contains(event.kind) else { return false }
                waiting.append(event)
                return true
            }
        }
        for event in waiting {
            if case .notice(let notice) = event.content, !notice.isForConnections {
                run.transport.send(notice, event.effect)
            }
        }
    }
}
