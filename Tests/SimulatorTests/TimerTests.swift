import LifecycleSimulator
import TestKit
import Testing

/// Timers and fetch over steps of the clock, sleep, deaths of the daemon and reboots, in virtual time (L30).
@Suite("Simulated timers")
struct TimerTests {
    @Test("no time is lost or doubled, and a moment wakes an app once (L30)")
    func rulesHold() {
        var (elapsed, fetched) = (0, 0)
        let seeds: UInt64 = isTestingAll ? 60 : 6
        for seed in 1...seeds {
            var simulation = TimerSimulation(seed: seed)
            simulation.run()
            for (rule, sentence) in simulation.violations {
                Issue.record("seed \(seed): \(rule.rawValue): \(sentence)")
            }
            elapsed += simulation.elapsed
            fetched += simulation.fetched
        }
        #expect(elapsed > 150 * Int(seeds) && fetched > 15 * Int(seeds), "\(elapsed), \(fetched)")
    }

    @Test("a mistake of the daemon is found by its rule", arguments: TimerFault.allCases)
    func faults(_ fault: TimerFault) {
        let found = (1...60 as ClosedRange<UInt64>).contains { seed in
            var simulation = TimerSimulation(seed: seed, fault: fault)
            simulation.run()
            return simulation.violations[fault.rule] != nil
        }
        #expect(found)
    }
}
