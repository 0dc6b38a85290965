import LifecycleCore
import LifecycleSimulator

extension MutantCase {
    /// Faults in what a receipt says about a failure, which decides how its end is logged (L45).
    static let severities: [MutantCase] = [
        changing("takes a crash for an end without a failure", from: .crashed, to: nil),
        changing("takes a missed deadline for an end without a failure", from: .failed, to: nil),
        changing("takes an end without a failure for a crash", from: nil, to: .crashed),
    ]

    private static func changing(
        _ name: String, from failure: Receipt.Failure?, to other: Receipt.Failure?
    ) -> MutantCase {
        .effects(name, .receiptsAreTrue) { effects, _, _ in
            effects.map { effect in
                guard case .writeReceipt(var receipt) = effect, receipt.failure == failure else { return effect }
                receipt.failure = other
                return .writeReceipt(receipt)
            }
        }
    }
}
