import LifecycleCore
import Testing

import enum LifecycleCore.ExitStatus

/// A test harness in virtual time: the core, a clock, and a simulated kernel whose processes behave well unless a test
/// says otherwise. Each event goes to two cores, which must return the same effects, and each effect is checked by
/// `InvariantChecker`.
final class Harness {
    struct Entry {
        var at: Instant
        var effect: Effect
    }

    private(set) var core: LifecycleCore
    private var twin: LifecycleCore
    private(set) var now = Instant(sinceOrigin: .seconds(1000))
    private(set) var log: [Entry] = []
    private(set) var answers: [RequestID: Answer] = [:]
    private(set) var policies: [AppID: AppPolicy] = [:]
    private(set) var manager = ManagerPolicy()
    var kernel = Kernel()
    private var invariants = InvariantChecker()
    private var queue: [Event] = []
    /// Whether outcomes wait for `release`. Otherwise they are delivered immediately.
    var isSlow = false
    private(set) var pending: [Event] = []
    private var isBusy = false
    private var lastRequest: UInt64 = 0

    /// Creates a harness with apps of the same policy.
    init(_ apps: String..., firstRun: UInt64 = 1, policy: (inout AppPolicy) -> Void = { _ in }) {
        core = LifecycleCore(firstRun: firstRun)
        twin = core
        for app in apps { register(app, policy: policy) }
    }

    /// Creates a harness with suspended apps of these sizes in MiB, the first one suspended first. Much time has passed since, so
    /// that nothing is filled fast.
    convenience init(suspended sizes: [(app: String, mebibytes: UInt64)]) {
        self.init()
        for (app, size) in sizes {
            register(app)
            behave(app) { $0.memory = size * mebibyte }
            suspend(app)
        }
        advance(.seconds(10_000))
    }

    // MARK: Events

    /// Delivers an event and all outcomes that follow at the same instant.
    func handle(_ event: Event) {
        queue.append(event)
        if isBusy { return }
        isBusy = true
        defer { isBusy = false }
        while !queue.isEmpty {
            let event = queue.removeFirst()
            let effects = core.handle(event, at: now)
            let twins = twin.handle(event, at: now)
            if effects != twins { Issue.record("two cores differ after \(event)") }
            for effect in effects {
                log.append(Entry(at: now, effect: effect))
                if case .answer(let request, let answer) = effect { answers[request] = answer }
                let outcomes = kernel.react(to: effect, policies)
                if isSlow { pending += outcomes } else { queue += outcomes }
            }
            if policies.count <= 20 { core.verifyAll() }
            invariants.record(event, effects, core, manager, at: now)
        }
    }

    /// Delivers the outcome at `index` of `pending`, or all in order.
    func release(_ index: Int? = nil) {
        if let index { return handle(pending.remove(at: index)) }
        while !pending.isEmpty { handle(pending.removeFirst()) }
    }

    /// Drops the pending outcomes, as the death of a daemon does.
    func dropPending() { pending = [] }

    /// Lets time pass and delivers `deadlineReached` at each deadline.
    func advance(_ time: Duration) {
        let target = now + time
        var stops = 0
        while let next = core.nextDeadline, next <= target {
            if next > now { stops = 0 } else { stops += 1 }
            guard stops < 100 else {
                Issue.record("the core returns the same deadline again and again")
                break
            }
            now = max(now, next)
            handle(.deadlineReached)
        }
        now = target
    }

    /// Lets time pass without delivering deadlines.
    func delay(_ time: Duration) { now = now + time }

    // MARK: Configuration

    func register(_ name: String, launches: Int = 0, policy: (inout AppPolicy) -> Void = { _ in }) {
        var value = policies[id(name)] ?? AppPolicy()
        policy(&value)
        policies[id(name)] = value
        handle(.configuration(.registered(id(name), value, launches: launches)))
    }

    func unregister(_ name: String) { handle(.configuration(.unregistered(id(name)))) }

    func configure(_ change: (inout ManagerPolicy) -> Void) {
        change(&manager)
        handle(.configuration(.configured(manager)))
    }

    func behave(_ name: String, _ change: (inout Kernel.Behaviour) -> Void) {
        change(&kernel.behaviours[id(name), default: Kernel.Behaviour()])
    }

    // MARK: Requests

    @discardableResult
    func request(_ name: String, _ what: Request, by requester: Requester = .user) -> RequestID {
        lastRequest += 1
        let request = RequestID(lastRequest)
        invariants.recordRequest(request)
        handle(.requested(request, id(name), what, by: requester))
        return request
    }

    @discardableResult
    func launch(_ name: String, _ state: LaunchState = .foreground, _ reason: LaunchReason = .user) -> RequestID {
        request(name, .launch(state, reason: reason, url: nil))
    }

    @discardableResult
    func activate(_ name: String) -> RequestID { request(name, .activate) }

    @discardableResult
    func background(_ name: String) -> RequestID { request(name, .background) }

    @discardableResult
    func terminate(_ name: String) -> RequestID { request(name, .terminate) }

    @discardableResult
    func remove(_ name: String) -> RequestID { request(name, .remove) }

    @discardableResult
    func push(_ name: String, _ payload: String = "hello") -> RequestID { request(name, .push(payload: payload)) }

    @discardableResult
    func send(_ name: String, _ kind: String, _ payload: String = "") -> RequestID {
        request(name, .send(Notification(kind: kind, payload: payload)!))
    }

    @discardableResult
    func simulate(_ level: MemoryLevel) -> RequestID {
        lastRequest += 1
        let request = RequestID(lastRequest)
        invariants.recordRequest(request)
        handle(.memory(.pressureSimulated(request, level)))
        return request
    }

    /// Launches an app if necessary and suspends it.
    func suspend(_ name: String) {
        launch(name, .background)
        if state(name) != .background { background(name) }
        advance(policies[id(name)]!.suspendDelay)
        #expect(state(name) == .suspended)
    }

    // MARK: Apps

    func task(_ name: String, _ task: String, owner: Int32 = 7) {
        handle(.run(run(name), .task(.began(name: task, owner: owner))))
    }

    func endTask(_ name: String, _ task: String) { handle(.run(run(name), .task(.ended(name: task)))) }

    func exit(_ name: String, _ status: ExitStatus = .exited(0)) {
        let run = run(name)
        handle(.run(run, .process(.exited(status, cpu: .milliseconds(250), memory: 0))))
        handle(.run(run, .process(.emptied)))
    }

    /// A client connects to a socket that the daemon holds for an app, and waits.
    func connect(_ name: String, _ input: Input = Harness.connection) {
        for event in kernel.connect(id(name), input) { handle(event) }
    }

    static let connection = Input(kind: .listener, pid: 0, descriptor: 3, bytes: 0, peer: "[::]:80")

    func crash(_ name: String) { exit(name, .signaled(11, coreDumped: false)) }

    // MARK: Results

    func state(_ name: String) -> AppState? { core.state(of: id(name)) }

    func view(_ name: String) -> AppView { core.view(of: id(name), at: now)! }

    /// The run of an app. Traps if it has none.
    func run(_ name: String) -> RunID { core.run(of: id(name))! }

    /// Whether the two cores are equal.
    var isDeterministic: Bool { core == twin }

    var unanswered: Set<RequestID> { invariants.unanswered }

    func isAnswered(_ request: RequestID) -> Bool { answers[request] != nil }

    var effects: [Effect] { log.map(\.effect) }

    /// The current position in the log, for queries of later effects.
    var mark: Int { log.count }

    /// Leaves this much memory to the machine, and lets the daemon look.
    func leave(mebibytes: UInt64) {
        kernel.others = 0
        let apps = kernel.total - kernel.reading.available
        kernel.others = kernel.total - apps - mebibytes * mebibyte
        handle(.memory(.pressureStalled(.warning)))
    }

    func effects(since mark: Int) -> [Effect] { log[mark...].map(\.effect) }

    /// The notices to all runs of an app, in order.
    func notices(_ name: String, since mark: Int = 0) -> [Notice] {
        effects(since: mark).compactMap { effect in
            if case .run(let run, .notify(let notice)) = effect, kernel.app(of: run) == id(name) { notice } else { nil }
        }
    }

    func delivered(_ name: String, since mark: Int = 0) -> [Notification] {
        effects(since: mark).flatMap { effect -> [Notification] in
            guard case .run(let run, .deliver(let all)) = effect, kernel.app(of: run) == id(name) else { return [] }
            return all
        }
    }

    func reports(since mark: Int = 0) -> [Report] {
        effects(since: mark).compactMap { if case .report(let report) = $0 { report } else { nil } }
    }

    /// The states that an app entered, with the reasons.
    func changes(_ name: String, since mark: Int = 0) -> [String] {
        reports(since: mark).compactMap { report in
            guard case .stateChanged(id(name), _, let state, let reason) = report else { return nil }
            return "\(state.rawValue): \(reason.rawValue)"
        }
    }

    var receipts: [Receipt] {
        effects.compactMap { if case .writeReceipt(let receipt) = $0 { receipt } else { nil } }
    }

    /// The receipt of an app. Fails unless there is exactly one.
    func receipt(_ name: String) throws -> Receipt {
        let all = receipts.filter { $0.app == id(name) }
        #expect(all.count == 1)
        return try #require(all.last)
    }

    func launches(_ name: String) -> [Launch] {
        effects.compactMap { if case .spawn(id(name), _, let launch) = $0 { launch } else { nil } }
    }

    /// The apps that got SIGKILL, in order.
    func killed(since mark: Int = 0) -> [String] {
        effects(since: mark).compactMap { effect in
            if case .run(let run, .kill) = effect { kernel.app(of: run)?.name } else { nil }
        }
    }
}

/// The ID of an app. Traps if the name is invalid.
func id(_ name: String) -> AppID { AppID(name)! }

let mebibyte: UInt64 = 1 << 20
let gibibyte: UInt64 = 1 << 30
