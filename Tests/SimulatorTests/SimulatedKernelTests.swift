import LifecycleCore
import LifecycleSimulator
import Testing

@Suite("Simulated kernel")
struct SimulatedKernelTests {
    /// How often each run was reported to end, in each way.
    private final class Ends {
        struct Count: Equatable {
            var failed = 0
            var exited = 0
            var emptied = 0
        }
        var counts: [RunID: Count] = [:]

        func record(_ event: Event) {
            switch event {
            case .run(let run, .process(.spawnFailed)): counts[run, default: Count()].failed += 1
            case .run(let run, .process(.exited)): counts[run, default: Count()].exited += 1
            case .run(let run, .process(.emptied)): counts[run, default: Count()].emptied += 1
            default: break
            }
        }

        func record(_ effects: [Effect]) {
            for case .spawn(_, let run, _) in effects { counts[run, default: Count()] = Count() }
        }
    }

    // A recovered core gets logged events again; these seeds have no crashes.
    @Test("each run exits once and becomes empty once, unless its spawn fails", arguments: [1, 3, 5, 7, 9, 11, 13, 15])
    func runsEndOnce(seed: UInt64) {
        let ends = Ends()
        var simulation = Simulation(SimulationOptions(seed: seed, events: 2000), hasTwin: false) { run, receipt in
            Mutant(core: LifecycleCore(firstRun: run, firstReceipt: receipt)) { mutant, event, now in
                ends.record(event)
                let effects = mutant.core.handle(event, at: now)
                ends.record(effects)
                return effects
            }
        }
        let result = simulation.run()
        #expect(result.finding == nil)
        #expect(ends.counts.count > 10)
        for (run, count) in ends.counts {
            #expect(
                count == .init(failed: 1) || count == .init(exited: 1, emptied: 1), "run \(run): \(count)")
        }
    }
}
