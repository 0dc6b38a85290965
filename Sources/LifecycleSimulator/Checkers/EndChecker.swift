import LifecycleCore

/// How apps are ended, and when they come back by themselves.
struct EndChecker {
    /// By app: when its last run ended, and the announced relaunch.
    private var ended: [Microseconds]
    private var relaunch: [(deaths: Int, at: Microseconds)?]
    /// By app: it said that it has done what it was last woken for.
    private var hasCompleted: [Bool]
    /// By app: somebody asked it to end, and nobody for anything else since.
    private var isEndWanted: [Bool]
    /// Just asked for, and what had been wanted before: a request that is refused changes nothing.
    private var asked: (request: RequestID, app: Int, wasEndWanted: Bool)?

    init(apps: Int) {
        ended = Array(repeating: 0, count: apps)
        relaunch = Array(repeating: nil, count: apps)
        hasCompleted = Array(repeating: false, count: apps)
        isEndWanted = Array(repeating: false, count: apps)
    }

    mutating func note(_ event: Event, of app: Int?, _ shadow: Shadow, at now: Microseconds) {
        asked = nil
        guard let app else { return }
        switch event {
        case .run(let run, .exited), .run(let run, .spawnFailed): if shadow.apps[app].run == run { ended[app] = now }
        case .requested(let id, _, let request):
            asked = (id, app, isEndWanted[app])
            note(request, of: app)
        case .run(let run, .wakeCompleted):
            guard shadow.apps[app].run == run else { return }
            switch shadow.apps[app].phase {
            case .waking, .running, .entering, .foreground: hasCompleted[app] = true
            // Said before it was frozen, or before it was ready: not of this wake.
            case .unknown, .notRunning, .launching, .suspending, .suspended, .terminating, .ending, .past: break
            }
        default: break
        }
    }

    private mutating func note(_ request: Request, of app: Int) {
        switch request {
        case .terminate, .remove: isEndWanted[app] = true
        case .push, .launch(.background, _, _):
            hasCompleted[app] = false
            isEndWanted[app] = false
        case .activate, .launch(.foreground, _, _), .background: isEndWanted[app] = false
        case .interrupt, .endInterruption, .send: break
        }
    }

    mutating func note(
        _ effect: Effect, of app: Int?, in event: Event, _ shadow: Shadow, at now: Microseconds,
        _ findings: inout Findings
    ) {
        if case .answer(let request, .refused) = effect, let asked, asked.request == request {
            isEndWanted[asked.app] = asked.wasEndWanted
        }
        guard let app else { return }
        let known = shadow.apps[app]
        switch effect {
        case .report(.relaunchScheduled(_, let time, let deaths)):
            relaunch[app] = (deaths, now + time.microseconds)
            findings.check(
                now + time.microseconds - ended[app] >= Self.postponement(deaths), .relaunchesWait,
                "\(known.id) is to be launched \(time) after \(deaths) early ends")
        case .spawn(let id, _, let launch): checkSpawn(app, id, launch, event, now, &findings)
        case .report(.deadlineMissed(let id, .wake)):
            findings.check(
                !hasCompleted[app], .wakesAreCompleted, "\(id) is killed for a wake that it had completed")
        case .kill: checkKill(app, event, shadow, &findings)
        case .notify(_, .willTerminate):
            findings.check(
                known.phase != .suspended && known.phase != .suspending, .endsAreGentle,
                "\(known.id) is told to terminate while it is \(known.phase)")
        default: break
        }
    }

    private mutating func checkSpawn(
        _ app: Int, _ id: AppID, _ launch: Launch, _ event: Event, _ now: Microseconds, _ findings: inout Findings
    ) {
        // Whoever asks for it gets it at once, whatever they call it.
        let isAsked = if case .requested = event { true } else { false }
        if launch.reason == .relaunch, !isAsked, let scheduled = relaunch[app] {
            findings.check(
                now >= scheduled.at, .relaunchesWait,
                "\(id) is launched again \(scheduled.at - now) µs before its time")
        }
        findings.check(
            launch.reason != .relaunch || !isEndWanted[app], .endedStaysEnded,
            "\(id) is launched again, though it was asked to end")
        relaunch[app] = nil
        isEndWanted[app] = false
        hasCompleted[app] = false
    }

    /// L11: 10 s, doubling, up to 5 min.
    private static func postponement(_ deaths: Int) -> Microseconds {
        guard deaths > 0 else { return 0 }
        return min(300 * .second, (10 * .second) << Microseconds(min(deaths - 1, 20)))
    }

    /// Who runs and is asked to end is told so first.
    private func checkKill(_ app: Int, _ event: Event, _ shadow: Shadow, _ findings: inout Findings) {
        let phase = shadow.apps[app].phase
        let isAwake = phase == .foreground || phase == .running || phase == .entering
        switch event {
        case .requested(_, _, .terminate), .shutdownRequested(immediately: false):
            findings.check(
                !isAwake, .endsAreGentle, "\(shadow.apps[app].id) is killed while it is \(phase), and was not told")
        default: break
        }
    }
}
