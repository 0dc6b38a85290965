import Control
import Glibc
import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// One app under a daemon of its own, which `certify` takes through its lifecycle.
final class Rehearsal {
    let manifest: AppManifest
    let options: CertifyOptions
    let daemon: CertifyDaemon
    private(set) var client: Client
    /// What the daemon reported of the app since the step began.
    private(set) var events: [LifecycleEvent] = []
    /// Why the app is not suspended, once it was waited for in vain.
    private(set) var awake: String?

    /// The longest wait for what has no deadline of its own: for a suspension, more than `StartupSec=` and `BackgroundTimeSec=`.
    static let longestWait = Duration.seconds(75)
    /// How often a wait looks for Ctrl-C.
    static let slice = Duration.milliseconds(200)

    init(_ manifest: AppManifest, _ options: CertifyOptions, _ daemon: CertifyDaemon, _ client: Client) {
        self.manifest = manifest
        self.options = options
        self.daemon = daemon
        self.client = client
    }

    var id: String { manifest.id.name }
    var isWorker: Bool { manifest.policy.role == .worker }
    /// Whether input wakes it while it is suspended (L50).
    var isWokenByInput: Bool { manifest.traffic ?? isWorker }

    func beginStep() throws(Failure) {
        try readArrived()
        events = []
    }

    // MARK: Requests

    /// A request for a change of the app, and its answer.
    func request(_ member: String, _ more: Variant...) throws(Failure) -> RequestResult {
        let pending = try client.begin(member, [.string(id)] + more)
        let limit = EventLoop.now() + Self.longestWait
        while true {
            try stopIfInterrupted()
            let slice = min(limit, EventLoop.now() + Self.slice)
            if let result = try client.answer(pending, until: slice, as: RequestResult.self) {
                try readArrived()
                return result
            }
            guard EventLoop.now() < limit else { throw Failure("certify: greenroomd did not answer \(member).") }
        }
    }

    func status() throws(Failure) -> AppStatus { try client.call("Status", [.string(id)]) }

    /// Simulates a memory level.
    func simulate(_ level: String) throws(Failure) -> SimulationResult {
        try client.call("SimulatePressure", [.string(level)])
    }

    /// Locks or unlocks the screen, as logind reports it.
    func lock(_ isLocked: Bool) throws(Failure) {
        _ = try client.call("SimulateLock", [.bool(isLocked)], as: RequestResult.self)
    }

    /// Sets when the app is woken, over its manifest, which counts again with an empty text.
    func setWakes(_ settings: String) throws(Failure) {
        let text = settings.isEmpty ? "" : "[Wake]\nAccuracySec=1us\n\(settings)\n"
        try daemon.write("\(id).app.d/zz-certify-wakes.conf", Array(text.utf8))
        _ = try client.call("Reload", as: ReloadResult.self)
    }

    /// What the app finds in its inbox of a kind of state; `nil`: nothing, or it has removed it.
    func inbox(_ kind: String) -> String? {
        let path = "\(daemon.runtime)/inbox/\(id)/\(kind)"
        guard let bytes = try? Posix.readFile(at: path, limit: Notification.maximumPayload + 1) else { return nil }
        let text = String(decoding: bytes, as: UTF8.self)
        return text.hasSuffix("\n") ? String(text.dropLast()) : text
    }

    // MARK: Events

    func readArrived() throws(Failure) {
        while try readEvent(until: EventLoop.now()) {}
    }

    /// - Returns: whether a signal was read.
    private func readEvent(until limit: Duration) throws(Failure) -> Bool {
        do throws(BusError) {
            try client.bus.readArrived()
            guard let signal = try client.bus.nextSignal(until: limit) else { return false }
            guard LifecycleEvent.isEvent(signal), let value = signal.arguments.first else { return true }
            if let event = try? LifecycleEvent(variant: value), event.app == id { events.append(event) }
            return true
        } catch {
            throw Failure("certify: greenroomd ended the connection: \(escaped(error.message))")
        }
    }

    func stopIfInterrupted() throws(Failure) {
        if CertifyInterrupt.isRequested { throw Failure("certify: interrupted", status: 128 + CertifyInterrupt.number) }
    }

    /// Waits for events until a condition holds.
    /// - Returns: whether it does.
    func wait(atMost time: Duration? = nil, _ condition: () throws(Failure) -> Bool) throws(Failure) -> Bool {
        let limit = EventLoop.now() + (time ?? Self.longestWait)
        while true {
            if try condition() { return true }
            try stopIfInterrupted()
            let now = EventLoop.now()
            if now >= limit { return false }
            _ = try readEvent(until: min(limit, now + Self.slice))
        }
    }

    func last(_ kind: LifecycleEvent.Kind, _ condition: (LifecycleEvent) -> Bool = { _ in true }) -> LifecycleEvent? {
        events.last { $0.kind == kind.rawValue && condition($0) }
    }

    /// When the app entered a state in this step, in microseconds of CLOCK_MONOTONIC.
    func entered(_ state: String) -> UInt64? { last(.stateChanged) { $0.state == state }?.monotonic }

    /// The time from one state to another.
    func time(from first: String, to second: String) -> Duration? {
        guard let start = entered(first), let end = entered(second), end >= start else { return nil }
        return .microseconds(Int64(end - start))
    }

    /// The end of the app in this step, as an outcome; `nil`: it runs.
    func unexpectedEnd() throws(Failure) -> CertifyOutcome? {
        guard let end = last(.ended) else { return nil }
        let receipt = try receipt(of: end)
        let explanation = receipt?.explanation ?? end.message
        let output = receipt?.output.suffix(3).map { "“\($0)”" } ?? []
        return .broken(([Self.withoutStop(explanation)] + output).joined(separator: "; "))
    }

    func receipt(of end: LifecycleEvent) throws(Failure) -> ReceiptRecord? {
        try end.receipt.map { (number) throws(Failure) in
            try client.call("Receipt", [.uint64(number)], as: ReceiptRecord.self)
        }
    }

    static func withoutStop(_ sentence: String) -> String {
        sentence.hasSuffix(".") ? String(sentence.dropLast()) : sentence
    }

    // MARK: States

    /// Brings the app into the state that a step begins in.
    /// - Returns: why that cannot be; `nil`: it is.
    func prepare(_ need: CertifyStep.Need) throws(Failure) -> String? {
        if need == .nothing { return nil }
        if try status().state == "notRunning", try !launch() { return "it does not run" }
        switch need {
        case .nothing, .running: return nil
        case .active:
            if isWorker { return "a worker takes no foreground slot" }
            if try status().state != "active" { _ = try request("Activate") }
            return try status().state == "active" ? nil : "it is not active"
        case .suspended:
            let state = try status().state
            if state == "active" || state == "inactive" { _ = try request("Background") }
            return try suspend() ? nil : "it is not suspended" + (awake.map { ": \($0)" } ?? "")
        }
    }

    /// - Returns: whether the app runs.
    func launch() throws(Failure) -> Bool {
        var options = LaunchOptions()
        if isWorker { options.background = true }
        return try request("Launch", options.variant).outcome == RequestResult.Outcome.done.rawValue
    }

    /// Waits until an app in the background is suspended. An app that was waited for in vain is not waited for again.
    /// - Parameter hasBeen: it was suspended before, so it is waited for in any case.
    func suspend(hasBeen: Bool = false) throws(Failure) -> Bool {
        var status = try status()
        let isSuspended = try wait(atMost: awake == nil || hasBeen ? nil : .seconds(2)) { () throws(Failure) in
            status = try self.status()
            return status.state == "suspended" || status.state == "notRunning"
        }
        if isSuspended {
            awake = nil
            return status.state == "suspended"
        }
        let reasons = status.awake.map(\.explanation) + [status.suspendProblem].compactMap { $0 }
        awake =
            reasons.isEmpty ? "it stays in the state \(status.state)" : Self.withoutStop(reasons.joined(separator: " "))
        return false
    }

    // MARK: Whether the app takes part

    /// How the app learns of a change, such as `SIGUSR1`; `nil`: it is not notified.
    func notice(_ signal: Int32?) throws(Failure) -> String? {
        if hasConnection { return "notified on its private bus" }
        guard let signal, let pid = try status().pid else { return nil }
        guard let found = try? ProcFS().status(of: pid), found.catches(signal) else { return nil }
        return "notified by \(signalName(signal))"
    }

    /// Why the app is not notified.
    func silence(_ setting: String, _ signal: Int32?) -> String {
        if let signal { return "it does not catch \(signalName(signal)) (\(setting)=), so nothing is sent" }
        return "it is not notified: no \(setting)=, and no private bus open"
    }

    /// Whether a process of the app is connected to its private bus (`GREENROOM_BUS_ADDRESS`). The sockets of the daemon's end have
    /// the path of the one that they were accepted from.
    var hasConnection: Bool {
        guard let bytes = try? Posix.readFile(at: "/proc/net/unix", limit: 8 << 20) else { return false }
        let prefix = "\(daemon.runtime)/self/"
        return String(decoding: bytes, as: UTF8.self).split(separator: "\n").contains { line in
            let words = line.split(separator: " ", maxSplits: 7, omittingEmptySubsequences: true)
            return words.count == 8 && words[5] == "03" && words[7].hasPrefix(prefix)
        }
    }

    /// Whether it stays connected: a new daemon connects for a moment, too, to see whether the socket is its own.
    func staysConnected() throws(Failure) -> Bool {
        guard hasConnection else { return false }
        return try !wait(atMost: .milliseconds(500)) { () throws(Failure) in !hasConnection }
    }

    // MARK: The daemon

    /// Connects to the daemon that replaces this one.
    func reconnect() throws(Failure) {
        try client.reconnect()
        events = []
    }
}
