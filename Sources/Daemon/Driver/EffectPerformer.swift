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
        case .spawn(let app, let run, let launch): launcher.launch(app, run, launch)
        case .notify(let run, let notice): runs[run]?.notify(notice, id)
        case .freeze(let run, let attempt): runs[run]?.freeze(attempt: attempt)
        case .thaw(let run, let attempt): runs[run]?.thaw(attempt: attempt)
        case .continueStopped(let run): runs[run]?.continueStopped()
        case .inspect(let run): runs[run]?.inspect()
        case .measureActivity(let run, let listeners): runs[run]?.measureActivity(listeners: listeners)
        case .watchInput(let run, let attempt, let onlyPeers):
            runs[run]?.watchInput(attempt: attempt, onlyPeers: onlyPeers)
        case .stopWatchingInput(let run): runs[run]?.stopWatchingInput()
        case .measureWork(let run, let kind): runs[run]?.measureWork(kind)
        case .measureProcessor(let run): runs[run]?.measureProcessor()
        case .limitProcessor(let run, let limit): runs[run]?.limitProcessor(limit)
        case .watchGPU(let run, let begins): runs[run]?.watchGPU(begins)
        case .measureSize(let run): context.memory.footprints.measure(run)
        case .reclaim(let run, let attempt, let bytes):
            context.memory.reclaimer.begin(run, attempt: attempt, bytes: bytes)
        case .stopReclaim(let run): context.memory.reclaimer.stop(run)
        case .bringBack(let run): context.memory.reclaimer.bringBack(run)
        case .kill(let run): runs[run]?.kill()
        case .throttle(let run): runs[run]?.setWeights(background: true)
        case .unthrottle(let run): runs[run]?.setWeights(background: false)
        case .runHook(let run, let hook, let number): launcher.run(hook, number: number, of: run)
        case .killHook(let run, let number): runs[run]?.killHook(number)
        case .setOOMClass(let run, let oomClass): runs[run]?.setOOMClass(oomClass)
        case .deliver(let run, let notifications): runs[run]?.deliver(notifications, id)
        case .recordLaunch(let app, let count): attempt(app) { try context.storage.launches.record(app, count) }
        case .writeReceipt(let receipt):
            attempt(receipt.app) {
                try context.storage.receipts.write(receipt) { context.storage.output.lastLines(of: receipt.run) }
            }
            context.storage.output.ended(receipt.run)
            context.relays?.recorded(receipt)
            context.storage.pendingReceipts.update()
        case .dropRestorationState(let app, let what):
            if what == .everything { runs[app]?.isRemovedByUser = true }
            context.storage.stored.drop(what, of: app)
        case .identify(let request, let event): answers.identify(request, event: event)
        case .answer(let request, let answer): answers.answer(request, answer)
        case .warn(let run, let warning): runs[run]?.warn(warning)
        case .report(let report):
            tell(report, id)
            observe(report)
        case .measureMemory:
            context.memory.protection.refresh()
            context.memory.kernelKills.look()
            context.memory.sampler.measure()
        case .watchSockets(let app): context.wakes.sockets.watch(app)
        case .stopWatchingSockets(let app): context.wakes.sockets.stopWatching(app)
        case .rejectConnections(let app): context.wakes.sockets.rejectConnections(app)
        case .scheduleTimers(let app): context.wakes.timers.changed(app)
        case .subscribe(let app, let kinds): context.wakes.systemEvents.subscribe(app, kinds)
        case .removeInstance(let app): context.instances.remove(app)
        case .allowSleep: sleep.allowSleep()
        case .finish: context.loop.exit(0)
        }
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
