import LifecycleCore
import Linux
import Systemd

/// Lets the machine sleep or power off once all apps have entered the background (L15).
protocol SleepControl: AnyObject {
    func allowSleep()
}

/// Performs each effect of the core: a run's effects by its controller, all others by the part of the daemon that is
/// responsible for them.
final class EffectPerformer: EffectPerforming {
    private let context: DaemonContext
    private let launcher: RunLauncher
    private let answers: AnswerTable
    private let observers: [any LifecycleObserver]
    private let sleep: any SleepControl
    private var runs: RunTable { context.runs }

    init(
        context: DaemonContext, launcher: RunLauncher, answers: AnswerTable, observers: [any LifecycleObserver],
        sleep: any SleepControl
    ) {
        self.context = context
        self.launcher = launcher
        self.answers = answers
        self.observers = observers
        self.sleep = sleep
    }

    /// Performs an effect. Effects of a run that is over are ignored: its end has already been sent to the core.
    func perform(_ effect: Effect, _ id: EffectID) {
        switch effect {
        case .run(let run, .hook(.run(let hook, let number))): launcher.run(hook, number: number, of: run)
        case .run(let run, .memory(let effect)): perform(effect, run)
        case .run(let run, let effect): runs[run]?.perform(effect, id)
        case .spawn(let app, let run, let launch): launcher.launch(app, run, launch)
        case .recordLaunch(let app, let count): attempt(app) { try context.storage.launches.record(app, count) }
        case .writeReceipt(let receipt): write(receipt)
        case .dropRestorationState(let app, let what):
            if what == .everything { runs[app]?.isRemovedByUser = true }
            context.storage.stored.drop(what, of: app)
        case .removeInstance(let app): context.instances.remove(app)
        case .identify(let request, let event): answers.identify(request, event: event)
        case .answer(let request, let answer): answers.answer(request, answer)
        case .report(let report):
            tell(report, id)
            observe(report)
        case .sockets(let app, .watch): context.wakes.sockets.watch(app)
        case .sockets(let app, .stopWatching): context.wakes.sockets.stopWatching(app)
        case .sockets(let app, .reject): context.wakes.sockets.rejectConnections(app)
        case .scheduleTimers(let app): context.wakes.timers.changed(app)
        case .subscribe(let app, let kinds): context.wakes.systemEvents.subscribe(app, kinds)
        case .measureMemory: context.memory.sampler.measure()
        case .allowSleep: sleep.allowSleep()
        case .finish: context.loop.exit(0)
        }
    }

    private func perform(_ effect: RunMemoryEffect, _ run: RunID) {
        switch effect {
        case .setOOMClass(let oomClass): runs[run]?.setOOMClass(oomClass)
        case .measureSize: context.memory.footprints.measure(run)
        case .reclaim(let attempt, let bytes): context.memory.reclaimer.begin(run, attempt: attempt, bytes: bytes)
        case .stopReclaim: context.memory.reclaimer.stop(run)
        case .bringBack: context.memory.reclaimer.bringBack(run)
        }
    }

    private func write(_ receipt: Receipt) {
        attempt(receipt.app) {
            try context.storage.receipts.write(receipt) { context.storage.output.lastLines(of: receipt.run) }
        }
        context.storage.output.ended(receipt.run)
        context.relays?.recorded(receipt)
        context.storage.pendingReceipts.update()
    }

    /// Passes on what an app's own connections report of this.
    private func tell(_ report: Report, _ id: EffectID) {
        switch report {
        case .taskBegan(let app, let name): runs[app]?.connections.taskDecided(name, isRefused: false)
        case .taskRefused(let app, let name): runs[app]?.connections.taskDecided(name, isRefused: true)
        case .modeBegan(let app, let mode): runs[app]?.connections.modeBegan(mode)
        case .sceneChanged(let app, let scene, _, _): runs[app]?.connections.sceneChanged(scene)
        case .deadlineStarted(let app, .wake, _, let wake): runs[app]?.connections.tellWake(wake, id)
        default: break
        }
    }

    private func observe(_ report: Report) {
        if case .stateChanged(let app, from: _, to: .notRunning, reason: _) = report {
            context.wakes.sockets.ended(app)
        }
        let now = Instant(sinceOrigin: context.loop.now())
        for observer in observers { observer.observe(report, at: now) }
    }

    /// Logs a failure of the system and continues: the app's lifecycle does not depend on it.
    private func attempt(_ app: AppID, _ body: () throws -> Void) {
        do { try body() } catch { context.journal.logWarning("\(error)", app: app) }
    }
}
