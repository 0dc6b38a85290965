import Control
import Glibc
import Systemd

/// The connection to the daemon: the list of apps at an interval, the records of apps that have changed, and requests. It never
/// waits for an answer.
final class DaemonLink {
    /// What has arrived.
    enum Arrival {
        case list([AppStatus])
        case status(AppStatus)
        case memory(MemoryStatus)
        case event(LifecycleEvent)
        case version(String)
        /// A request was answered: a sentence, and whether it is an error.
        case answer(String, isError: Bool)
        /// The connection was lost.
        case lost(String)
    }

    private struct Call {
        let pending: BusConnection.Pending
        let take: (Result<[Variant], BusError>) -> Arrival?
    }

    /// The shortest interval for each app. The record of an app takes the daemon some 60 us and this program 55 us of processor
    /// time, so lists take the daemon at most 3% of a processor: 10,000 apps are asked for every 20s.
    private static let intervalOfApp = Duration.milliseconds(2)
    /// Records of single apps that are asked for between two lists.
    private static let maximumStatuses = 16
    /// Answers of requests that are waited for.
    private static let maximumRequests = 64

    /// Between two attempts to connect.
    private static let pause = Duration.milliseconds(500)

    private let runtime: String
    private let interval: Duration
    private var bus: BusConnection?
    private var calls: [Call] = []
    private var isListPending = false
    /// When the list was asked for.
    private var asked = Duration.zero
    /// When the next list is asked for, or the next connection tried.
    private(set) var next = Duration.zero
    private var changed: Set<String> = []
    private var statuses = 0
    private var requests = 0

    init(runtime: String, interval: Duration) {
        self.runtime = runtime
        self.interval = interval
    }

    var isConnected: Bool { bus != nil }

    /// How long the list has been waited for; `nil`: it is not.
    func waiting(at now: Duration) -> Duration? { isListPending ? now - asked : nil }

    // MARK: Connecting

    func connect() throws(BusError) {
        bus = try BusConnection.connect(toDaemonAt: runtime)
        (calls, changed, isListPending, statuses, requests) = ([], [], false, 0, 0)
        next = EventLoop.now()
        call("Version", [], as: String.self) { .version($0) }
    }

    private func lose(_ error: BusError) -> Arrival {
        // Requests of which the outcome is not known.
        let isRequested = requests > 0
        bus = nil
        (calls, isListPending, requests) = ([], false, 0)
        postpone()
        return .lost(error.message + (isRequested ? "; the request may have been carried out" : ""))
    }

    // MARK: Calls

    private func call<Value: RecordValue>(
        _ member: String, _ arguments: [Variant], as type: Value.Type, _ take: @escaping (Value) -> Arrival
    ) {
        send(member, arguments) { result in
            guard case .success(let answer) = result else { return nil }
            return (try? Value(variant: answer.first ?? .dictionary([]))).map(take)
        }
    }

    private func send(
        _ member: String, _ arguments: [Variant], take: @escaping (Result<[Variant], BusError>) -> Arrival?
    ) {
        guard let bus else { return }
        // After an error the connection is lost, which the next `read` reports.
        let pending = try? bus.callAsync(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: member, arguments)
        if let pending { calls.append(Call(pending: pending, take: take)) }
    }

    /// Asks for what is due: the list, and the records of apps that have changed.
    /// - Parameter isPaused: whether the apps are not shown.
    func refresh(at now: Duration, isPaused: Bool) {
        guard bus != nil, !isPaused else { return }
        if now >= next, !isListPending {
            (isListPending, asked, statuses) = (true, now, 0)
            changed = []
            call("Pressure", [], as: MemoryStatus.self) { .memory($0) }
            send("List", []) { [unowned self] result in take(list: result) }
        }
        while statuses < Self.maximumStatuses, !isListPending, let app = changed.popFirst() {
            statuses += 1
            call("Status", [.string(app)], as: AppStatus.self) { .status($0) }
        }
    }

    private func take(list result: Result<[Variant], BusError>) -> Arrival? {
        let list = (try? result.get()).flatMap { try? [AppStatus](variant: $0.first ?? .array("a{sv}", [])) }
        let now = EventLoop.now()
        isListPending = false
        // If the answer takes long because the machine is busy, the pause does, too.
        next = now + max(interval, Self.intervalOfApp * (list?.count ?? 0), now - asked)
        return list.map { .list($0) }
    }

    /// An app has changed: its record is asked for.
    func refresh(_ app: String) { changed.insert(app) }

    /// No daemon answered: the next connection is tried later.
    func postpone() { next = EventLoop.now() + Self.pause }

    /// Asks for the list at once.
    func refreshSoon() { next = min(next, EventLoop.now()) }

    func request(_ request: Request, _ app: String) -> String? {
        guard bus != nil else { return "greenroomd does not answer" }
        guard requests < Self.maximumRequests else { return "\(requests) requests are not answered yet" }
        requests += 1
        let arguments: [Variant] = [.string(app)] + (request == .terminate ? [.bool(false)] : [])
        send(request.rawValue, arguments) { [unowned self] result in
            requests -= 1
            return Self.answer(result, app)
        }
        return nil
    }

    private static func answer(_ result: Result<[Variant], BusError>, _ app: String) -> Arrival {
        switch result {
        case .failure(let error):
            if error.isOfAccessDenied || error.name == ControlNames.Failure.accessDenied.name {
                return .answer("\(app): access denied: try as root, or join the group greenroom", isError: true)
            }
            return .answer("\(app): \(error.message)", isError: true)
        case .success(let answer):
            guard let result = try? RequestResult(variant: answer.first ?? .dictionary([])) else {
                return .answer("\(app): the answer cannot be read", isError: true)
            }
            let state = result.state.map { $0 == "notRunning" ? "not running" : $0 } ?? result.outcome
            let explanation = result.lastReceipt?.explanation ?? result.explanation
            return .answer("\(app): " + (result.outcome == "done" ? state : explanation ?? state), isError: false)
        }
    }

    // MARK: Reading

    /// Reads all that has arrived.
    func read() -> [Arrival] {
        guard let bus else { return [] }
        var arrivals: [Arrival] = []
        do throws(BusError) {
            try bus.readArrived()
            while let signal = try bus.nextSignal(until: .zero) {
                if let event = Self.event(signal) { arrivals.append(.event(event)) }
            }
        } catch {
            return arrivals + [lose(error)]
        }
        let answered = calls.filter { $0.pending.result != nil }
        calls.removeAll { $0.pending.result != nil }
        for call in answered {
            if let result = call.pending.result, let arrival = call.take(result) { arrivals.append(arrival) }
        }
        return arrivals
    }

    private static func event(_ signal: BusSignal) -> LifecycleEvent? {
        guard LifecycleEvent.isEvent(signal), let value = signal.arguments.first else { return nil }
        // Debug events, of which there are most, change no state.
        return try? LifecycleEvent(variant: value)
    }

    /// Waits until something can be read, or until a time.
    /// - Returns: the events of the other descriptors.
    func wait(or descriptors: [(number: Int32, events: Int16)], until limit: Duration) -> [Int16] {
        if let bus, let found = try? bus.waitForInput(or: descriptors, until: limit) { return found }
        var polled = descriptors.map { pollfd(fd: $0.number, events: $0.events, revents: 0) }
        // The loss of the connection is reported by the next `read`.
        let left = bus == nil ? max(.zero, limit - EventLoop.now()) : .zero
        let found = poll(&polled, nfds_t(polled.count), Int32(min(left / .milliseconds(1) + 1, 60_000)))
        return found > 0 ? polled.map(\.revents) : descriptors.map { _ in 0 }
    }
}
