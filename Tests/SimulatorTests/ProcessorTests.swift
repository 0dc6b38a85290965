import LifecycleCore
import LifecycleSimulator
import Testing

@Suite("Simulated processor time")
struct ProcessorTests {
    private final class Seen {
        var names: Set<String> = []

        func record(_ effect: Effect) {
            switch effect {
            case .run(_, .processor(.measure)): names.insert("look")
            case .run(_, .processor(.limit(.some))): names.insert("limit")
            case .run(_, .processor(.limit(nil))): names.insert("end of a limit")
            case .report(.processorUseHigh): names.insert("warning")
            case .report(.processorThrottled): names.insert("throttled")
            case .report(.processorThrottleEnded): names.insert("throttled no more")
            case .writeReceipt(let receipt): if receipt.code == 0xc51b_ad01 { names.insert("killed") }
            default: break
            }
        }
    }

    @Test("the seeds reach all that the core does for processor time in the background (L44)")
    func everythingIsReached() {
        let expected: Set<String> = [
            "look", "limit", "end of a limit", "warning", "throttled", "throttled no more", "killed",
        ]
        let seen = Seen()
        // These reach it soon.
        for seed in 100...300 as ClosedRange<UInt64> where !seen.names.isSuperset(of: expected) {
            var simulation = Simulation(SimulationOptions(seed: seed, events: 5500), hasTwin: false) { run, receipt in
                Mutant(core: LifecycleCore(firstRun: run, firstReceipt: receipt)) { mutant, event, now in
                    let effects = mutant.core.handle(event, at: now)
                    for effect in effects { seen.record(effect) }
                    return effects
                }
            }
            let result = simulation.run()
            #expect(result.finding == nil, "seed \(seed): \(result.finding?.sentence ?? "")")
        }
        #expect(expected.subtracting(seen.names).isEmpty)
    }
}
