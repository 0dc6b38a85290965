import LifecycleCore

/// Checks that the home app is in the foreground, or on the way there, if no other app of its seat is (L49).
struct HomeChecker {
    private var isLocked = false
    private var isSleeping = false
    /// An app was in the foreground, and no user has sent the home app away since.
    private var isWanted = false
    /// By app: whether a request asks it to end, and it was not in the foreground since.
    private var isEndAsked: [Bool]

    init(apps: Int) { isEndAsked = Array(repeating: false, count: apps) }

    mutating func record(_ event: Event, of app: Int?, _ model: CoreModel) {
        switch event {
        case .absence(.locked): isLocked = true
        case .absence(.unlocked): isLocked = false
        case .absence(.sleepRequested): isSleeping = true
        // A new daemon assumes that the machine is awake.
        case .absence(.awoke), .recovered: isSleeping = false
        case .requested(_, _, .background, by: _), .requested(_, _, .terminate, by: _),
            .requested(_, _, .remove, by: _), .requested(_, _, .launch(.background, _, _, _), by: _),
            .requested(_, _, .scene(_, .background), by: _):
            guard let app else { return }
            isEndAsked[app] = true
            if app == Self.home(model) { isWanted = false }
        default: break
        }
    }

    mutating func record(_ effect: Effect, of app: Int?, _ model: CoreModel) {
        switch effect {
        case .spawn(_, _, let launch):
            guard launch.state == .foreground else { return }
            appeared(app, model)
        case .report(.stateChanged(_, _, .active, _)): appeared(app, model)
        default: break
        }
    }

    private mutating func appeared(_ app: Int?, _ model: CoreModel) {
        guard let app else { return }
        isEndAsked[app] = false
        if Self.home(model).map({ Self.areOnOneSeat($0, app, model) }) ?? true { isWanted = true }
    }

    private static func areOnOneSeat(_ one: Int, _ other: Int, _ model: CoreModel) -> Bool {
        model.apps[one].policy.seat == model.apps[other].policy.seat
    }

    /// The first one by its ID.
    static func home(_ model: CoreModel) -> Int? {
        model.apps.indices.filter { model.apps[$0].policy.role == .home && model.apps[$0].isRegistered }
            .min { model.apps[$0].id < model.apps[$1].id }
    }

    func verify<Core: DecidingCore>(
        _ model: CoreModel, _ core: Core, at now: Microseconds, _ findings: inout Findings
    ) {
        guard isWanted, !isLocked, !isSleeping, !model.isShuttingDown, let home = Self.home(model) else { return }
        let instant = Instant(now)
        guard let view = core.view(of: model.apps[home].id, at: instant), !view.isForeground else { return }
        let isEmpty = model.apps.indices.allSatisfy { index in
            let app = model.apps[index]
            // An app that ends and is launched into the foreground again has its slot meanwhile.
            return !Self.areOnOneSeat(index, home, model) || app.phase == .unknown
                || core.view(of: app.id, at: instant)?.isForeground != true
        }
        guard isEmpty else { return }
        switch model.apps[home].phase {
        case .terminating, .ending: return
        case .unknown, .notRunning:
            findings.check(
                view.memoryAwaited != nil || view.relaunchesIn != nil, .homeIsInFront,
                "\(view.id) is the home app and no app is in the foreground, but it is not launched")
        case .launching, .foreground, .entering, .running, .suspending, .suspended, .waking, .past:
            findings.check(
                isEndAsked[home], .homeIsInFront,
                "\(view.id) is the home app and no app is in the foreground, but it is \(view.state)")
        }
    }
}
