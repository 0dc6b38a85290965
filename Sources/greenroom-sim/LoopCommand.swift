import LifecycleSimulator

/// `greenroom-sim loop`: the event loop of the daemon with apps that flood it.
enum LoopCommand {
    /// - Returns: whether all rules hold; `nil`: an argument is invalid.
    static func run(_ words: ArraySlice<String>) -> Bool? {
        var rest = words
        var (seed, seeds): (UInt64, UInt64) = (1, 100)
        while let word = rest.popFirst() {
            guard let number = rest.popFirst().flatMap({ UInt64($0) }), number > 0 else { return nil }
            switch word {
            case "--seed": seed = number
            case "--seeds": seeds = number
            default: return nil
            }
        }
        var found: [LoopRule: (count: Int, seed: UInt64, first: String)] = [:]
        var turns = 0
        for seed in seed..<(seed &+ seeds) {
            var simulation = LoopSimulation(seed: seed)
            simulation.run()
            turns += simulation.turns
            for (rule, sentence) in simulation.violations {
                let earlier = found[rule]
                found[rule] = ((earlier?.count ?? 0) + 1, earlier?.seed ?? seed, earlier?.first ?? sentence)
            }
        }
        for rule in LoopRule.allCases {
            guard let violation = found[rule] else { continue }
            print("Rule violated in \(violation.count) seeds: \(rule.rawValue).")
            print("  seed \(violation.seed), \(violation.first)")
        }
        print("loop: \(seeds) seeds, \(turns) turns: \(found.isEmpty ? "all rules hold" : "violations").")
        return found.isEmpty
    }
}
