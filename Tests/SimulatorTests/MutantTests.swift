import LifecycleCore
import LifecycleSimulator
import TestKit
import Testing

@Suite("Mutants")
struct MutantTests {
    @Test(
        "a mutant of the core is found by the rule that it violates",
        .enabled(if: isTestingAll, "make test-all plays the mutants"), arguments: MutantCase.all)
    func mutantIsFound(mutantCase: MutantCase) {
        var found: [Rule] = []
        for seed in 1...600 as ClosedRange<UInt64> {
            var number = -1
            var simulation = Simulation(SimulationOptions(seed: seed, events: 1500)) { firstRun, firstReceipt in
                number += 1
                return mutantCase.makes(LifecycleCore(firstRun: firstRun, firstReceipt: firstReceipt), number)
            }
            if let finding = simulation.run().finding {
                found.append(finding.rule)
                if finding.rule == mutantCase.rule { return }
            }
        }
        Issue.record("\(mutantCase.rule) did not find the mutant; found were \(found)")
    }

    @Test("each rule has a mutant")
    func everyRuleHasAMutant() {
        let missing = Set(Rule.allCases).subtracting(MutantCase.all.map(\.rule))
        #expect(missing.isEmpty)
    }

    @Test("the real core violates no rule in the seeds of the mutants")
    func unchangedCoreBreaksNoRule() {
        for seed in 1...4 as ClosedRange<UInt64> {
            let result = simulate(SimulationOptions(seed: seed, events: 1500))
            #expect(result.finding == nil, "seed \(seed), event \(result.events): \(result.finding?.sentence ?? "")")
        }
    }
}
