package import LifecycleCore

/// How long apps slept in a recorded span, what woke them, and how much memory lay idle meanwhile: what `savings` shows.
package struct SleepAccount {
    package struct App: Equatable, Sendable {
        /// How long it had a process.
        package var running = Duration.zero
        package var asleep = Duration.zero
        /// How often it was suspended.
        package var sleeps = 0
        /// What ended its sleep, and how often: a kind of input, or the reason of the change of state.
        package var wakes: [String: Int] = [:]
        /// Its footprint while it slept, in bytes times seconds.
        package var idleMemory = 0.0
        /// How often it was ended to free memory: by jetsam, or after `UnloadAfterSec=`.
        package var ends = 0
        /// What it would have slept with `Suspend=dry-run` (L58); `nil`: it was not so.
        package var dryRun: DryRun?

        package init() {}
    }

    /// When an app would have been suspended.
    package struct DryRun: Equatable, Sendable {
        package var asleep = Duration.zero
        package var sleeps = 0
        package var wakes: [String: Int] = [:]
        package var idleMemory = 0.0
        /// Processor time that it used meanwhile.
        package var processorTime = Duration.zero
        /// In how many of the sleeps input came that would not have woken it.
        package var missedInputs = 0

        package init() {}
    }

    private struct Progress {
        var state: AppState
        var since: Instant
        /// The footprint in bytes, while it sleeps.
        var footprint: UInt64 = 0
        /// While it would sleep (L58): what it has done by the last look, and when that was.
        var dry: (result: DryRunResult, at: Instant)?
    }

    package private(set) var apps: [AppID: App] = [:]
    /// The recorded time, without gaps.
    package private(set) var span = Duration.zero
    private var progress: [AppID: Progress] = [:]
    private var began: Instant?
    private var last = Instant.origin

    package init() {}

    package mutating func take(_ step: Player.Step) {
        switch step {
        case .began(let core, let at, clock: _):
            close()
            began = at
            last = at
            for id in core.appIDs {
                guard let view = core.view(of: id, at: at), view.state != .notRunning else { continue }
                progress[id] = Progress(state: view.state, since: at, footprint: view.memory)
                look(at: id, core, at)
            }
        case .event: break
        case .handled(let logged, let effects, let core):
            last = max(last, logged.at)
            for case .report(let report) in effects { take(report, effects, core, logged.at) }
            if case .run(let run, .traffic(.workMeasured)) = logged.event, let app = core.app(of: run),
                progress[app]?.dry != nil
            {
                look(at: app, core, logged.at)
            }
        }
    }

    private mutating func take(_ report: Report, _ effects: [Effect], _ core: LifecycleCore, _ now: Instant) {
        switch report {
        case .stateChanged(let app, let from, let to, let reason):
            changed(app, from, to, Self.cause(of: app, reason, effects), core, now)
        case .wouldSuspend(let app):
            look(at: app, core, now)
            progress[app]?.footprint = core.view(of: app, at: now)?.memory ?? 0
        case .wouldResume(let app, let result): countDryRun(app, result, isOver: true)
        default: break
        }
    }

    /// What an app that would sleep has done until now.
    private mutating func look(at app: AppID, _ core: LifecycleCore, _ now: Instant) {
        guard let result = core.view(of: app, at: now)?.dryRun else { return }
        progress[app]?.dry = (result, now)
    }

    private mutating func countDryRun(_ app: AppID, _ result: DryRunResult, isOver: Bool) {
        var account = apps[app, default: App()].dryRun ?? DryRun()
        account.asleep += result.slept
        account.sleeps += 1
        if isOver { account.wakes[result.reason.rawValue, default: 0] += 1 }
        if result.moments > 0 { account.wakes[StateReason.timer.rawValue, default: 0] += result.moments }
        account.idleMemory += Double(progress[app]?.footprint ?? 0) * (result.slept / .seconds(1))
        account.processorTime += result.used
        if result.hasMissedInput { account.missedInputs += 1 }
        apps[app, default: App()].dryRun = account
        progress[app]?.dry = nil
    }

    /// Counts what lasts at the end.
    package mutating func finish() { close() }

    private mutating func close() {
        for (app, step) in progress {
            guard let dry = step.dry else { continue }
            var result = dry.result
            result.slept += last - dry.at
            countDryRun(app, result, isOver: false)
        }
        for app in progress.keys { count(app, last) }
        progress = [:]
        if let began { span += last - began }
        began = nil
    }

    private mutating func changed(
        _ app: AppID, _ from: AppState, _ to: AppState, _ cause: String, _ core: LifecycleCore, _ now: Instant
    ) {
        count(app, now)
        if to == .suspended { apps[app, default: App()].sleeps += 1 }
        if to == .terminating || to == .notRunning {
            if from == .suspended, cause == StateReason.jetsam.rawValue || cause == StateReason.unloaded.rawValue {
                apps[app, default: App()].ends += 1
            }
        } else if from == .suspended {
            apps[app, default: App()].wakes[cause, default: 0] += 1
        }
        let dry = progress[app]?.dry
        progress[app] =
            to == .notRunning
            ? nil
            : Progress(
                state: to, since: now, footprint: core.view(of: app, at: now)?.memory ?? 0, dry: dry)
    }

    /// Counts the time since the last change of state.
    private mutating func count(_ app: AppID, _ now: Instant) {
        guard let step = progress[app] else { return }
        let time = now - step.since
        apps[app, default: App()].running += time
        if step.state == .suspended {
            apps[app, default: App()].asleep += time
            apps[app, default: App()].idleMemory += Double(step.footprint) * (time / .seconds(1))
        }
        progress[app]?.since = now
    }

    /// The kind of the input that has woken it, or the reason.
    private static func cause(of app: AppID, _ reason: StateReason, _ effects: [Effect]) -> String {
        if reason == .woken {
            for case .report(.inputArrived(app, let input)) in effects { return input.kind.rawValue }
        }
        return reason.rawValue
    }
}
