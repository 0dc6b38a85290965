import LifecycleCore
import LifecycleSimulator

extension MutantCase {
    /// Faults in what becomes of apps that use the processor in the background (L44).
    static let processor: [MutantCase] = [
        .policies("allows half of the processor time", .processorUseIsBounded) { $0.backgroundCPULimit /= 2 },
        .policies("throttles apps that are to be killed", .processorUseIsBounded) { policy in
            if policy.backgroundCPUAction == .kill { policy.backgroundCPU = .throttle }
        },
        .policies("allows twice the processor time", .processorUseIsBounded) { $0.backgroundCPULimit *= 2 },
        .events("does not see what an app uses of the processor", .processorUseIsBounded) { event in
            if case .run(_, .processor(.measured)) = event { nil } else { event }
        },
        .without("does not end the limit of an app that is throttled no more", .foregroundRuns) {
            if case .run(_, .processor(.limit(nil))) = $0 { true } else { false }
        },
    ]
}
