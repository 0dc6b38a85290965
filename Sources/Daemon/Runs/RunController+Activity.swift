import LifecycleCore
import Linux
import Manifest
import Systemd

/// What a run does, for the core's decisions: processor time, and whether it listens.
extension RunController {
    /// The processor time of the run since its launch. A run that cannot be measured has used nothing.
    var processorUse: ProcessorUse {
        (try? enclosure.processorUse(mainProcess: process?.pid)) ?? ProcessorUse(used: .zero, waited: .zero)
    }

    /// The same of all its processes, in process-group mode too.
    var wholeProcessorUse: ProcessorUse {
        (try? enclosure.wholeProcessorUse(mainProcess: process?.pid)) ?? ProcessorUse(used: .zero, waited: .zero)
    }

    /// For how long the run got no processor since its launch or its last notice with a deadline (L48).
    var waitedSinceNotice: Duration { max(.zero, processorUse.waited - waitedAtNotice) }

    func measureActivity(listeners: Bool) {
        let use = processorUse
        var activity = RunActivity(cpu: use.used, waited: use.waited)
        activity.isRunnable = process.flatMap { try? ProcFS().stat(of: $0.pid) }?.isRunnable ?? false
        if listeners {
            let search = listenerSearch
            activity.listens = search.listens
            if let pid = search.hidden.first, manifest.policy.readiness == .listening {
                let hidden = HiddenSockets(count: search.hidden.count, pid: pid)
                activity.hiddenSockets = hidden
                warnOfHiddenSockets(hidden)
            }
        }
        send(.deadline(.activityMeasured(activity)))
    }

    /// Once for each run, while it launches.
    private func warnOfHiddenSockets(_ hidden: HiddenSockets) {
        guard !areHiddenSocketsLogged, context.events.isLaunching(id) else { return }
        areHiddenSocketsLogged = true
        logWarning(
            "Type=listening: \(hidden.phrase); if it listens there, the daemon does not see it, and kills it at its launch "
                + "deadline")
    }

    /// Measures the processor time for the limit of L44. Without an outcome nothing is counted until the next measurement.
    func measureProcessor() {
        attempt {
            let use = try enclosure.wholeProcessorUse(mainProcess: process?.pid)
            send(.processor(.measured(used: use.used, waited: use.waited)))
        }
    }

    /// Without a watch nothing is known of its use, and it is not killed for it.
    func watchGPU(_ begins: Bool) {
        gpuWatch = begins ? GPUWatch(self, loop: context.loop, proc: context.background.gpuDescriptors) : nil
    }

    private var listenerSearch: ListenerSearch {
        guard context.wakes.sockets.holdsSockets(app) else {
            return (try? enclosure.searchListeners()) ?? ListenerSearch()
        }
        // It has sockets that listen from its first instruction on.
        var search = ListenerSearch()
        let age = context.loop.now() - created
        search.listens = !context.wakes.sockets.hasWaitingConnection(app) || age >= longestAcceptance
        return search
    }

    /// For so long connections that wait at held sockets say that the app does not accept them yet: half of its launch deadline, so
    /// that steady clients do not delay the launch until then.
    private var longestAcceptance: Duration { manifest.policy.launchDeadline.map { $0 / 2 } ?? .seconds(30) }

    /// Reports that an app of `Type=listening` is ready, however late the daemon looks.
    func reportListener() {
        guard manifest.policy.readiness == .listening, context.events.isLaunching(id), listenerSearch.listens
        else { return }
        measureActivity(listeners: true)
    }
}
