import LifecycleCore

/// The table of `greenroom-sim memory`: each order on each workload.
package struct MemoryTable {
    package private(set) var lines: [String] = []

    package init() {
        add("workload", ["order", "launches", "kills", "by kernel", "in vain", "short"])
        for workload in MemoryScenario.workloads + [.newcomer] {
            for order in MemoryOrder.allCases {
                add(workload.name, order, Self.play(workload, order))
            }
        }
        for order in MemoryOrder.allCases { add("random", order, Self.playRandom(order)) }
    }

    /// The sums of 100 random machines.
    private static func playRandom(_ order: MemoryOrder) -> MemoryOutcome {
        var sum = MemoryOutcome()
        for seed in 1...100 as ClosedRange<UInt64> {
            let outcome = play(MemoryScenario(seed: seed), order)
            sum.launches += outcome.launches
            sum.kills += outcome.kills
            sum.kernelKills += outcome.kernelKills
            sum.bytesInVain += outcome.bytesInVain
            sum.shortTime += outcome.shortTime
        }
        return sum
    }

    private mutating func add(_ name: String, _ order: MemoryOrder, _ outcome: MemoryOutcome) {
        add(
            name,
            [
                order.rawValue, "\(outcome.launches)", "\(outcome.kills)", "\(outcome.kernelKills)",
                "\(outcome.bytesInVain >> 20) MiB", "\(outcome.shortTime / .millisecond) ms",
            ])
    }

    package static func play(_ scenario: MemoryScenario, _ order: MemoryOrder) -> MemoryOutcome {
        var simulation = MemorySimulation(scenario, order: order, core: LifecycleCore())
        return simulation.run()
    }

    private mutating func add(_ name: String, _ columns: [String]) {
        func padded(_ text: String, _ width: Int) -> String {
            String(repeating: " ", count: max(0, width - text.utf8.count)) + text
        }
        let first = name + String(repeating: " ", count: max(0, 10 - name.utf8.count))
        lines.append(first + columns.map { padded($0, 12) }.joined())
    }
}
