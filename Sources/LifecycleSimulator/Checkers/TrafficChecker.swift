import LifecycleCore

/// Checks that input wakes suspended apps, and that it costs little where it does not (L50). The world knows what waits.
struct TrafficChecker {
    private struct App {
        /// When input from outside was first reported in this suspension.
        var reportedAt: Microseconds?
        var input = Waiting()
        var end = Waiting()
    }
    /// What is to wake an app waits.
    fileprivate struct Waiting {
        /// Since when there is some, and how late events were then.
        var since: Microseconds?
        var lateness: Microseconds = 0
    }

    private var apps: [App]
    /// The apps with something that waits.
    private var waiting: [Int] = []
    /// Whether a deadline was due when this event came. What is due for other apps may be carried out with it.
    private var wasDue = false

    /// A descriptor is armed again after 100 ms, duplicates take some milliseconds, and the daemon may have other work.
    private static let longestWait: Microseconds = 500 * .millisecond
    /// The ends of the connections of many apps wake one after the other.
    private static let longestEndWait: Microseconds = 10 * .second + longestWait
    /// The effects of a wake: the watch ends, the thaw, weights, notifications, deadlines, reports.
    private static let mostEffects = 32

    init(apps count: Int) { apps = Array(repeating: App(), count: count) }

    /// - Parameter deadline: the core's next one, before it handles the event.
    mutating func record(
        _ event: Event, of app: Int?, _ model: CoreModel, deadline: Instant?, at now: Microseconds
    ) {
        wasDue = deadline.map { $0 <= Instant(now) } ?? false
        if case .recovered = event { for app in apps.indices { apps[app].reportedAt = nil } }
        guard let app, case .run(let run, .traffic(.inputArrived(let attempt, let input))) = event else { return }
        let known = model.apps[app]
        guard known.run == run, known.phase == .suspended, known.freezeAttempt == attempt, input.isFromOutside else {
            return
        }
        apps[app].reportedAt = apps[app].reportedAt ?? now
    }

    /// Before the effects of an event are performed.
    func verify(_ event: Event, _ effects: [Effect], _ model: CoreModel, _ findings: inout Findings) {
        guard case .run(_, .traffic(.inputArrived)) = event else { return }
        // What a thaw has to tell an app about scenes that were disconnected meanwhile is bounded by their number.
        let count = effects.count { if case .run(_, .notify(.scene)) = $0 { false } else { true } }
        findings.check(count <= Self.mostEffects, .inputCostsLittle, "input causes \(count) effects at once")
        let wakes = effects.contains { if case .run(_, .suspension(.thaw)) = $0 { true } else { false } }
        let app = model.app(of: event)
        if wakes {
            guard let app, case .run(_, .traffic(.inputArrived(_, let input))) = event, !wasDue else { return }
            return findings.check(
                input.isFromOutside || model.apps[app].policy.wakesOnTraffic, .inputCostsLittle,
                "\(model.apps[app].id) has Traffic=no, and is woken by what it has sent to itself")
        }
        // Held sockets of an app that a shutdown has not reached are left at the next event about it.
        if model.isShuttingDown { return }
        let caused = effects.count { !Self.isOfTime($0) && (!wasDue || app != nil && model.app(of: $0) == app) }
        findings.check(caused == 0, .inputCostsLittle, "input that wakes no app causes \(caused) effects")
    }

    /// What any event about the app may show to be over.
    private static func isOfTime(_ effect: Effect) -> Bool {
        if case .report(.unrequestedTimeUsedUp) = effect { true } else { false }
    }

    mutating func record(_ effect: Effect, of app: Int?) {
        guard let app else { return }
        switch effect {
        // Its time begins once more.
        case .run(_, .traffic(.watchInput)), .report(.stateChanged):
            (apps[app].reportedAt, apps[app].end.since) = (nil, nil)
        case .spawn: apps[app] = App()
        default: break
        }
    }

    // MARK: After all effects of an event

    mutating func verify<Core: DecidingCore>(
        _ model: CoreModel, _ world: World, _ core: Core, at now: Microseconds, _ findings: inout Findings
    ) {
        var due: [Int] = []
        for run in world.traffic.waiting where mayBeDue(run, model, world) {
            let app = world.runs[run].app
            let input = isDue(run, model, world, core, now)
            let end = hasEnd(run, model, world)
            apps[app].input.follow(input, world, at: now)
            apps[app].end.follow(end, world, at: now)
            if input || end { due.append(app) }
            let time = apps[app].input.time(world, at: now)
            findings.check(
                time <= Self.longestWait, .inputWakes,
                "\(model.apps[app].id) is suspended, and its input has waited for \(time) µs")
            let endTime = apps[app].end.time(world, at: now)
            findings.check(
                endTime <= Self.longestEndWait, .inputWakes,
                "\(model.apps[app].id) is suspended, and the end of a connection has waited for \(endTime) µs")
        }
        for app in waiting where !due.contains(app) { (apps[app].input, apps[app].end) = (Waiting(), Waiting()) }
        waiting = due
    }

    /// Whether input can wake the app of a run now.
    private func mayBeDue(_ run: Int, _ model: CoreModel, _ world: World) -> Bool {
        let known = model.apps[world.runs[run].app]
        return known.phase == .suspended && known.run == world.runs[run].id && world.runs[run].freezer == .frozen
            && world.runs[run].program == .running && world.sleep == nil && !model.isShuttingDown
    }

    /// Whether a connection of a suspended app has ended, which is to wake it soon.
    private func hasEnd(_ run: Int, _ model: CoreModel, _ world: World) -> Bool {
        model.apps[world.runs[run].app].policy.wakesOnTraffic
            && world.traffic.runs[run].unread.contains { $0.input.isEnd && $0.input.source == .outside }
    }

    /// Whether a suspended app has input that is to wake it now. One that cannot be watched is to be awake anyway, if it wakes on
    /// traffic.
    private func isDue<Core: DecidingCore>(
        _ run: Int, _ model: CoreModel, _ world: World, _ core: Core, _ now: Microseconds
    ) -> Bool {
        let app = world.runs[run].app
        let known = model.apps[app]
        let (policy, unread) = (known.policy, world.traffic.runs[run].unread)
        if policy.wakesOnTraffic {
            let threshold = policy.wakeThreshold
            if let time = threshold.time, let reported = apps[app].reportedAt, now >= reported + time.microseconds {
                return true
            }
            if unread.contains(where: { Self.wakes($0.input, from: threshold.bytes) }) { return true }
        }
        // What the app has sent to itself may be less than its threshold.
        let needsTime = unread.contains {
            // The timers of workers are never deferred (L53): `IdlenessChecker` checks them.
            if policy.role == .worker, $0.input.kind == .timer { return false }
            return policy.wakesOnTraffic
                ? !$0.input.isFromOutside && !$0.input.kind.isFromOutside
                : $0.input.isHalfFull && $0.input.isFromOutside
        }
        guard needsTime, !world.traffic.runs[run].isBlind else { return false }
        guard let limit = policy.backgroundTimePerHour else { return true }
        return core.view(of: known.id, at: Instant(now)).map { $0.unrequestedTime < limit } ?? false
    }

    /// A timer, an event descriptor, and what the app has sent to itself, may be deferred (L53). Without bytes there is space for
    /// output.
    private static func wakes(_ input: Input, from bytes: UInt64) -> Bool {
        if input.isEnd || input.source == .own { return false }
        switch input.kind {
        case .listener, .epoll: return true
        case .stream, .pipe, .terminal: return input.bytes == 0 || input.bytes >= bytes
        case .datagram: return input.bytes >= bytes
        case .timer, .event: return false
        }
    }
}

extension TrafficChecker.Waiting {
    fileprivate mutating func follow(_ waits: Bool, _ world: World, at now: Microseconds) {
        if !waits { since = nil } else if since == nil { (since, lateness) = (now, world.pastLateness) }
    }

    /// How long it has waited while the daemon could have woken the app.
    fileprivate func time(_ world: World, at now: Microseconds) -> Microseconds {
        since.map { now - $0 - (world.lateness - lateness) } ?? 0
    }
}
