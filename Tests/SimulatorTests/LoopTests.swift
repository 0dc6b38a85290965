import LifecycleSimulator
import LoopPolicy
import Testing

/// The event loop with apps that flood it and clients that call, in virtual time.
@Suite("The simulated event loop")
struct LoopTests {
    @Test("the rules of the loop hold, whatever apps and clients do")
    func rulesHold() {
        for seed in 1...20 as ClosedRange<UInt64> {
            var simulation = LoopSimulation(seed: seed)
            simulation.run()
            for (rule, sentence) in simulation.violations {
                Issue.record("seed \(seed): \(rule.rawValue): \(sentence)")
            }
        }
    }

    @Test("a fault of the loop is found by its rule", arguments: LoopFault.allCases)
    func faults(_ fault: LoopFault) {
        let found = (1...20 as ClosedRange<UInt64>).contains { seed in
            var simulation = LoopSimulation(seed: seed, fault: fault)
            simulation.run()
            return simulation.violations[fault.rule] != nil
        }
        #expect(found)
    }

    @Test("an app whose watch stays in the loop delays neither clients nor deadlines nor the sign of life")
    func survives() {
        for seed in 1...5 as ClosedRange<UInt64> {
            var simulation = LoopSimulation(seed: seed, fault: .leavesWatchArmed)
            simulation.run()
            let others = simulation.violations.filter { $0.key != .sourcesAreDrained }
            #expect(others.isEmpty, "seed \(seed)")
        }
    }
}
