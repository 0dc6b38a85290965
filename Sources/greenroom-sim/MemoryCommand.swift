import LifecycleSimulator

/// `greenroom-sim memory`: the table of the orders, or random machines with checks.
enum MemoryCommand {
    /// Returns whether all rules hold that the core keeps.
    static func run(_ words: ArraySlice<String>) -> Bool? {
        var rest = words
        var (seed, seeds, isVerbose): (UInt64?, UInt64, Bool) = (nil, 1, false)
        while let word = rest.popFirst() {
            switch word {
            case "--verbose": isVerbose = true
            case "--seed", "--seeds":
                guard let number = rest.popFirst().flatMap({ UInt64($0) }), number > 0 else { return nil }
                if word == "--seed" { seed = number } else { seeds = number }
            default: return nil
            }
        }
        guard let seed else {
            for line in MemoryTable().lines { print(line) }
            return true
        }
        return play(seed..<(seed &+ seeds), isVerbose)
    }

    private static func play(_ seeds: Range<UInt64>, _ isVerbose: Bool) -> Bool {
        var found: [MemoryRule: (count: Int, seed: UInt64, first: String)] = [:]
        var kills = 0
        var events = 0
        for seed in seeds {
            let orders = MemoryOrder.allCases
            let order = orders[Int(seed % UInt64(orders.count))]
            for scenario in [MemoryScenario(seed: seed), MemoryScenario(budgetSeed: seed)] {
                let outcome = MemoryTable.play(scenario, order)
                kills += outcome.kills
                events += outcome.events
                for (rule, violation) in outcome.violations {
                    found[rule] = (
                        (found[rule]?.count ?? 0) + 1, found[rule]?.seed ?? seed, found[rule]?.first ?? violation.first
                    )
                    if isVerbose { print("seed \(seed), \(order.rawValue): \(rule): \(violation.first)") }
                }
            }
        }
        var holds = true
        for rule in MemoryRule.allCases {
            guard let violation = found[rule] else { continue }
            let isKept = !MemoryRule.notYetKept.contains(rule)
            if isKept { holds = false }
            print("\(isKept ? "Rule violated" : "Rule not yet kept") in \(violation.count) seeds: \(rule.rawValue).")
            print("  seed \(violation.seed): \(violation.first)")
        }
        print(
            "memory: \(seeds.count) seeds, \(events) events, \(kills) kills: \(holds ? "all rules hold" : "violations")."
        )
        return holds
    }
}
