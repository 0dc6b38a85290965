import LifecycleCore
import Linux
import Manifest

/// What a run does, for the core's decisions: processor time, and whether it listens.
extension RunController {
    /// The processor time of the run since its launch. A run that cannot be measured has used nothing.
    var processorUse: ProcessorUse {
        (try? enclosure.processorUse(mainProcess: process?.pid)) ?? ProcessorUse(used: .zero, waited: .zero)
    }

    /// For how long the run got no processor since its launch or its last notice with a deadline (L48).
    var waitedSinceNotice: Duration { max(.zero, processorUse.waited - waitedAtNotice) }

    func measureActivity(listeners: Bool) {
        let use = processorUse
        send(
            .activityMeasured(
                RunActivity(cpu: use.used, waited: use.waited, listens: listeners ? listens : nil)))
    }

    /// Measures the processor time for the limit of L44. Without an outcome nothing is counted until the next measurement.
    func measureProcessor() {
        attempt {
            let use = try enclosure.wholeProcessorUse(mainProcess: process?.pid)
            send(.processorMeasured(used: use.used, waited: use.waited))
        }
    }

    private var listens: Bool { (try? enclosure.listens()) ?? false }

    /// Reports that an app of `Type=listening` is ready, however late the daemon looks.
    func reportListener() {
        guard manifest.policy.readiness == .listening, context.events.isLaunching(id), listens else { return }
        measureActivity(listeners: true)
    }
}
