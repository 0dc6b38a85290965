import LifecycleCore
import LifecycleSimulator
import Testing

@Suite("Checkers")
struct MutantTests {
    @Test("a core that is broken is found out by the checker that is there for it", arguments: Breakage.all)
    func brokenCoreIsFoundOut(breakage: Breakage) {
        var found: [Rule] = []
        for seed in 1...40 as ClosedRange<UInt64> {
            var number = -1
            var simulation = Simulation(SimulationOptions(seed: seed, events: 1500)) { firstRun, firstReceipt in
                number += 1
                return breakage.makes(LifecycleCore(firstRun: firstRun, firstReceipt: firstReceipt), number)
            }
            if let finding = simulation.run().finding {
                found.append(finding.rule)
                if finding.rule == breakage.rule { return }
            }
        }
        Issue.record("\(breakage.rule) has not noticed; noticed were \(found)")
    }

    @Test("there is a broken core for every rule")
    func everyRuleHasABreakage() {
        let missing = Set(Rule.allCases).subtracting(Breakage.all.map(\.rule))
        #expect(missing.isEmpty)
    }

    @Test("the core as it is breaks no rule where a broken one does")
    func wholeCoreIsNotFoundOut() {
        for seed in 1...4 as ClosedRange<UInt64> {
            let result = simulate(SimulationOptions(seed: seed, events: 1500))
            #expect(result.finding == nil, "seed \(seed), event \(result.events): \(result.finding?.sentence ?? "")")
        }
    }
}
