import Control
import LoopPolicy
import Metrics
import Posix
import Systemd

/// The connection to the daemon: its events, and its answers about all apps. It is made again when it is lost.
final class DaemonLink {
    private let loop: EventLoop
    private let socket: String
    private var peer: BusPeer?
    private var retryTimer: Timer?
    private var retryDelay = shortestRetry
    /// The number of the last event.
    private var serial: UInt64?
    /// Why there is no connection, so that each reason is said once.
    private var problem: String?
    /// What the questions that are under way have found; `nil`: none are.
    private var query: Query?
    private var queries = 0

    /// Gets each event.
    var onEvent: (LifecycleEvent) -> Void = { _ in }
    /// Events were missed.
    var onGap: () -> Void = {}
    /// Gets `MetricsListen=`, when connected, with each answer, and when it changes.
    var onMetricsListen: (String) -> Void = { _ in }
    /// The first attempt to connect has succeeded or failed. Called once.
    var onFirstAttempt: (() -> Void)?

    /// The daemon keeps the events of its first 15s for clients that connect again.
    private static let shortestRetry = Duration.milliseconds(100)
    private static let longestRetry = Duration.seconds(5)
    /// A scraper waits for 10s (`scrape_timeout` of Prometheus).
    private static let callTimeout = Duration.seconds(8)

    init(loop: EventLoop, socket: String) throws {
        self.loop = loop
        self.socket = socket
        retryTimer = try loop.makeTimer(kind: .timer) { [weak self] _ in self?.connect() }
    }

    // MARK: The connection

    func connect() {
        guard peer == nil else { return }
        do {
            var limits = BusLimits()
            // The answer about 10,000 apps.
            limits.incomingBytes = 128 << 20
            let made = try BusPeer(
                loop: loop, descriptor: try UnixSocket.connect(to: socket, timeout: .seconds(1)), role: .client,
                limits: limits)
            peer = made
            made.onSignal = { [weak self] in self?.receive($0) }
            made.onGone = { [weak self] reason in self?.lost(reason) }
            try askForMissedEvents(made)
        } catch {
            lost("\(error)")
        }
    }

    private func lost(_ reason: String) {
        if problem != reason { printError("no connection to greenroomd at \(socket): \(reason)") }
        problem = reason
        peer?.close()
        peer = nil
        retryTimer?.arm(at: loop.now() + retryDelay)
        retryDelay = min(retryDelay * 2, Self.longestRetry)
        finish(nil)
        firstAttemptEnded()
    }

    private func firstAttemptEnded() {
        onFirstAttempt?()
        onFirstAttempt = nil
    }

    /// The first call: signals follow its answer.
    private func askForMissedEvents(_ peer: BusPeer) throws(BusError) {
        try peer.call(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: "RecentEvents",
            [.uint64(serial ?? .max)], timeout: Self.callTimeout, limits: .ofAnswers
        ) { [weak self, weak peer] result in
            guard let self, let peer, self.peer === peer else { return }
            do {
                let events = try RecentEvents(variant: try result.get().first ?? .dictionary([]))
                self.connected(events)
                try self.askForProperties(peer) {
                    self.onMetricsListen($0.text("MetricsListen"))
                    self.firstAttemptEnded()
                }
            } catch {
                self.lost("\(error)")
            }
        }
    }

    private func connected(_ missed: RecentEvents) {
        if problem != nil { printError("connected to greenroomd at \(socket)") }
        problem = nil
        retryDelay = Self.shortestRetry
        if serial != nil, !missed.isComplete { onGap() }
        if serial != nil { for event in missed.events { onEvent(event) } }
        serial = missed.serial
    }

    private func receive(_ signal: BusSignal) {
        if signal.member == "PropertiesChanged", signal.path == ControlNames.managerPath,
            let values = signal.arguments.dropFirst().first?.dictionaryValue,
            let address = values.first(where: { $0.0 == "MetricsListen" })?.1.unwrapped.stringValue
        {
            return onMetricsListen(address)
        }
        guard LifecycleEvent.isEvent(signal), let value = signal.arguments.first,
            let event = try? LifecycleEvent(variant: value)
        else { return }
        // It was in the answer to `RecentEvents`.
        if let serial, let number = event.serial, number <= serial { return }
        if let number = event.serial { serial = number }
        onEvent(event)
    }

    // MARK: Questions

    private struct Query {
        /// Answers to earlier questions, which have failed, are late.
        let number: Int
        var snapshot = Snapshot()
        let start: Duration
        /// The answers that are missing.
        var waiting = 3
        let reply: (Snapshot?) -> Void
    }

    /// Asks for all apps, memory and the loop, once at a time. `reply` is called once: with `nil` if the daemon does not answer.
    func ask(_ reply: @escaping (Snapshot?) -> Void) {
        if peer == nil { connect() }
        guard let peer, query == nil else { return reply(nil) }
        queries += 1
        query = Query(number: queries, start: loop.now(), reply: reply)
        do throws(BusError) {
            try call(peer, "List") { snapshot, answer in
                // Nothing but what the metrics need is kept of 10,000 apps.
                for value in answer.arrayValue ?? [] {
                    if let status = try? AppStatus(variant: value) { snapshot.apps.append(Snapshot.App(status)) }
                }
            }
            try call(peer, "Pressure") { snapshot, answer in
                if let memory = try? MemoryStatus(variant: answer) { snapshot.memory = memory }
            }
            try askForProperties(peer, answering: queries) { [weak self] properties in self?.take(properties) }
        } catch {
            finish(nil)
        }
    }

    private func call(
        _ peer: BusPeer, _ member: String, _ read: @escaping (inout Snapshot, Variant) -> Void
    ) throws(BusError) {
        let number = queries
        try peer.call(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: member,
            timeout: Self.callTimeout, limits: .ofAnswers
        ) { [weak self] result in
            guard let self, query?.number == number else { return }
            guard let answer = try? result.get().first, var snapshot = query?.snapshot else { return finish(nil) }
            read(&snapshot, answer)
            query?.snapshot = snapshot
            answered()
        }
    }

    /// - Parameter number: of the question that the answer is a part of; `nil`: of none.
    private func askForProperties(
        _ peer: BusPeer, answering number: Int? = nil, _ reply: @escaping (Properties) -> Void
    ) throws(BusError) {
        try peer.call(
            path: ControlNames.managerPath, interface: "org.freedesktop.DBus.Properties", member: "GetAll",
            [.string(ControlNames.managerInterface)], timeout: Self.callTimeout
        ) { [weak self] result in
            guard let self, number == nil || query?.number == number else { return }
            guard let values = try? result.get().first?.dictionaryValue else {
                if number != nil { finish(nil) }
                return
            }
            reply(Properties(values: values))
        }
    }

    private func take(_ properties: Properties) {
        query?.snapshot.loopTurns = properties.number("LoopTurns")
        query?.snapshot.longestTurn = properties.number("LongestTurnUSec")
        onMetricsListen(properties.text("MetricsListen"))
        answered()
    }

    private func answered() {
        query?.waiting -= 1
        guard let query, query.waiting == 0 else { return }
        var snapshot = query.snapshot
        snapshot.queryTime = loop.now() - query.start
        finish(snapshot)
    }

    private func finish(_ snapshot: Snapshot?) {
        let reply = query?.reply
        query = nil
        reply?(snapshot)
    }
}

/// The properties of the manager.
private struct Properties {
    let values: [(String, Variant)]

    func number(_ name: String) -> UInt64? { values.first { $0.0 == name }?.1.unwrapped.uintValue }
    func text(_ name: String) -> String { values.first { $0.0 == name }?.1.unwrapped.stringValue ?? "" }
}
