import LifecycleCore
import LifecycleSimulator

extension MutantCase {
    /// Faults in what becomes of apps that use the processor in the background (L44).
    static let processor: [MutantCase] = [
        .policies("allows half of the processor time", .processorUseIsFair) { $0.backgroundCPULimit /= 2 },
        .policies("throttles apps that are to be killed", .processorUseIsFair) { policy in
            if policy.backgroundCPUAction == .kill { policy.backgroundCPU = .throttle }
        },
        .policies("allows twice the processor time", .processorUseIsBounded) { $0.backgroundCPULimit *= 2 },
        .policies("measures processor time too rarely", .processorUseIsBounded) { $0.backgroundCPUTime *= 3 },
        .policies("measures processor time too often", .processorLooksAreRare) { $0.backgroundCPUTime /= 3 },
        .events("does not see what an app uses of the processor", .processorUseIsBounded) { event in
            if case .run(_, .processorMeasured) = event { nil } else { event }
        },
        .without("does not warn of processor time", .processorUseIsBounded) {
            if case .report(.processorUseHigh) = $0 { true } else { false }
        },
        .without("does not end the limit of an app that is throttled no more", .throttlesEnd) {
            if case .limitProcessor(_, nil) = $0 { true } else { false }
        },
        .events("takes an app that needs little for one that waits", .throttlesEnd) { event in
            guard case .run(let run, .processorMeasured(let used, let waited)) = event else { return event }
            return .run(run, .processorMeasured(used: used, waited: waited + used * 1000))
        },
    ]
}
