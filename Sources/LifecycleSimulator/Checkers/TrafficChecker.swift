import LifecycleCore

/// Checks the watch of suspended apps, and that input wakes them (L50).
struct TrafficChecker {
    private struct App {
        /// Whether the core has asked for a watch and has not ended it; and for which.
        var isWatched = false
        var onlyPeers = false
        /// When input from outside was first reported in this suspension.
        var reportedAt: Microseconds?
        /// Since when there is input that wakes it, and how late events were then.
        var waitsSince: Microseconds?
        var lateness: Microseconds = 0
    }

    private var apps: [App]
    /// The apps with `waitsSince`.
    private var waiting: [Int] = []
    /// What was wrong with a watch in this event. Rules about the thaw or the kill itself come first.
    private var problem: String?
    /// The apps that left suspension in this event.
    private var left: [Int] = []
    /// When the last daemon began.
    private var recoveredAt: Microseconds?
    /// Whether a deadline was due when this event came. What is due for other apps may be carried out with it.
    private var wasDue = false

    /// A descriptor is armed again after 100 ms, duplicates take some milliseconds, and the daemon may have other work.
    private static let longestWait: Microseconds = 500 * .millisecond
    /// What a new daemon did not do again is found by other rules first.
    private static let recoveryTime: Microseconds = 20 * .second
    /// The effects of a wake: the watch ends, the thaw, weights, notifications, deadlines, reports.
    private static let mostEffects = 32

    init(apps count: Int) { apps = Array(repeating: App(), count: count) }

    /// - Parameter deadline: the core's next one, before it handles the event.
    mutating func record(
        _ event: Event, of app: Int?, _ model: CoreModel, deadline: Instant?, at now: Microseconds
    ) {
        problem = nil
        left = []
        wasDue = deadline.map { $0 <= Instant(now) } ?? false
        if case .recovered = event {
            recoveredAt = now
            for app in apps.indices { apps[app].reportedAt = nil }
        }
        guard let app, case .run(let run, let what) = event, model.apps[app].run == run else { return }
        switch what {
        // The duplicates of the daemon before are closed.
        case .reattached: apps[app].isWatched = false
        // Nothing of the run is left.
        case .spawnFailed: apps[app].isWatched = false
        case .inputArrived(let attempt, let input):
            let known = model.apps[app]
            guard known.phase == .suspended, known.freezeAttempt == attempt, input.isFromOutside else { return }
            apps[app].reportedAt = apps[app].reportedAt ?? now
        default: break
        }
    }

    /// Before the effects of an event are performed.
    func verify(_ event: Event, _ effects: [Effect], _ model: CoreModel, _ findings: inout Findings) {
        guard case .run(_, .inputArrived) = event else { return }
        findings.check(
            effects.count <= Self.mostEffects, .turnsAreBounded, "input causes \(effects.count) effects at once")
        let wakes = effects.contains { if case .thaw = $0 { true } else { false } }
        if wakes { return }
        let app = model.app(of: event)
        let caused = effects.count { !wasDue || app != nil && model.app(of: $0) == app }
        findings.check(caused == 0, .burstsAreBounded, "input that wakes no app causes \(caused) effects")
    }

    mutating func record(_ effect: Effect, of app: Int?, _ model: CoreModel) {
        guard let app else { return }
        let id = model.apps[app].id
        switch effect {
        case .watchInput(_, _, let onlyPeers):
            apps[app].isWatched = true
            apps[app].onlyPeers = onlyPeers
            // Its time begins once more.
            apps[app].reportedAt = nil
        case .stopWatchingInput: apps[app].isWatched = false
        case .thaw: if apps[app].isWatched { problem = "\(id) is thawed while its descriptors are watched" }
        case .kill: if apps[app].isWatched { problem = "\(id) is killed while its descriptors are watched" }
        case .spawn:
            if apps[app].isWatched { problem = "the descriptors of a run of \(id) that is over are still watched" }
            apps[app] = App()
        case .report(.stateChanged(_, let from, _, _)):
            apps[app].reportedAt = nil
            if from == .suspended { left.append(app) }
        default: break
        }
    }

    // MARK: After all effects of an event

    mutating func verify(_ model: CoreModel, _ world: World, at now: Microseconds, _ findings: inout Findings) {
        findings.check(problem == nil, .watchesEndFirst, problem ?? "")
        for app in left {
            findings.check(
                !apps[app].isWatched, .watchesEndFirst,
                "\(model.apps[app].id) has left suspension, but is still watched")
        }
        var due: [Int] = []
        for run in world.traffic.waiting where isDue(run, model, world, now) {
            let app = world.runs[run].app
            due.append(app)
            if apps[app].waitsSince == nil {
                apps[app].waitsSince = now
                apps[app].lateness = world.pastLateness
            }
            let time = now - (apps[app].waitsSince ?? now)
            findings.check(
                time <= Self.longestWait + world.lateness - apps[app].lateness, .inputWakes,
                "\(model.apps[app].id) is suspended, and its input has waited for \(time) µs")
        }
        for app in waiting where !due.contains(app) { apps[app].waitsSince = nil }
        waiting = due
    }

    /// Whether a suspended app has input that is to wake it now. One that cannot be watched is to be awake anyway.
    private func isDue(_ run: Int, _ model: CoreModel, _ world: World, _ now: Microseconds) -> Bool {
        let app = world.runs[run].app
        let known = model.apps[app]
        guard known.phase == .suspended, known.run == world.runs[run].id, known.policy.wakesOnTraffic,
            world.runs[run].freezer == .frozen, world.runs[run].program == .running, world.sleep == nil,
            !model.isShuttingDown
        else { return false }
        let threshold = known.policy.wakeThreshold
        if let time = threshold.time, let reported = apps[app].reportedAt, now >= reported + time.microseconds {
            return true
        }
        return world.traffic.runs[run].unread.contains { Self.wakes($0.input, from: threshold.bytes) }
    }

    /// A timer, and what the app has sent to itself, may be deferred (L53). Of an event the kernel tells no size.
    private static func wakes(_ input: Input, from bytes: UInt64) -> Bool {
        if input.isEnd || input.source == .own { return false }
        switch input.kind {
        case .listener: return true
        case .stream, .datagram, .pipe, .terminal: return input.bytes >= bytes
        case .timer, .event, .epoll: return false
        }
    }

    func verify(of app: Int, _ model: CoreModel, at now: Microseconds, _ findings: inout Findings) {
        let known = model.apps[app]
        guard known.state == .suspended, known.phase == .suspended else { return }
        if let recoveredAt, now - recoveredAt < Self.recoveryTime { return }
        findings.check(apps[app].isWatched, .watchesEndFirst, "\(known.id) is suspended, but not watched")
        findings.check(
            apps[app].onlyPeers != known.policy.wakesOnTraffic, .watchesEndFirst,
            "\(known.id) is watched for the wrong input")
    }
}
