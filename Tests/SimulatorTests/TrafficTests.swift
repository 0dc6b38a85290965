import LifecycleCore
import LifecycleSimulator
import TestKit
import Testing

@Suite("Simulated traffic", .enabled(if: isTestingAll, "make test-all plays hundreds of seeds"))
struct TrafficTests {
    /// What the core asked for and reported, in some seeds.
    private final class Seen {
        var names: Set<String> = []

        func record(_ effect: Effect) {
            switch effect {
            case .run(_, .traffic(.watchInput(_, onlyPeers: true))): names.insert("watch for peers")
            case .run(_, .traffic(.watchInput(_, onlyPeers: false))): names.insert("watch for input")
            case .run(_, .traffic(.stopWatchingInput)): names.insert("end of a watch")
            case .run(_, .traffic(.measureWork(.first))): names.insert("first look")
            case .run(_, .traffic(.measureWork(.full))): names.insert("next look")
            case .run(_, .traffic(.measureWork(.brief))): names.insert("processor time in a moment")
            case .run(_, .traffic(.measureWork(.moment))): names.insert("look in a moment")
            case .report(.stateChanged(_, _, _, .timer)): names.insert("timer")
            case .report(.inputArrived): names.insert("input")
            case .report(.inputNotWatched): names.insert("not watched")
            case .report(.wokenTooOften): names.insert("woken too often")
            case .report(.locksHeld(_, _, isSuspended: false)): names.insert("locks held")
            case .report(.locksHeld(_, _, isSuspended: true)): names.insert("suspended with locks")
            case .writeReceipt(let receipt): if receipt.code == 0xdead_10cc { names.insert("killed for locks") }
            default: break
            }
        }
    }

    // Servers lock a file at the start of the phase without faults in one of seven seeds, so that locks outlast the minute for
    // which they may keep an app awake.
    @Test("the seeds reach all that the core does for traffic, idleness and file locks")
    func everythingIsReached() {
        let expected: Set<String> = [
            "watch for peers", "watch for input", "end of a watch", "first look", "next look", "input", "not watched",
            "look in a moment", "timer", "woken too often", "locks held", "suspended with locks", "killed for locks",
        ]
        let seen = Seen()
        var coverage = Coverage()
        for seed in 1...200 as ClosedRange<UInt64> where !seen.names.isSuperset(of: expected) {
            var simulation = Simulation(SimulationOptions(seed: seed, events: 5500), hasTwin: false) { run, receipt in
                Mutant(core: LifecycleCore(firstRun: run, firstReceipt: receipt)) { mutant, event, now in
                    let effects = mutant.core.handle(event, at: now)
                    for effect in effects { seen.record(effect) }
                    return effects
                }
            }
            let result = simulation.run()
            #expect(result.finding == nil, "seed \(seed): \(result.finding?.sentence ?? "")")
            coverage.add(result.coverage)
        }
        #expect(expected.subtracting(seen.names).isEmpty)
        #expect(coverage[.inputWatched, .suspended] > 0)
        #expect(coverage[.inputArrived, .suspended] > 0)
        #expect(coverage[.workMeasured, .running] > 0)
        #expect(coverage[.locksFound, .suspending] > 0)
    }

    @Test("input that arrives while there is no daemon wakes the app afterwards")
    func inputWaitsForADaemon() {
        var wasReported = false
        for seed in 1...200 as ClosedRange<UInt64> where !wasReported {
            var isNew: Set<RunID> = []
            var simulation = Simulation(SimulationOptions(seed: seed, events: 3000), hasTwin: false) { run, receipt in
                Mutant(core: LifecycleCore(firstRun: run, firstReceipt: receipt)) { mutant, event, now in
                    let effects = mutant.core.handle(event, at: now)
                    guard case .run(let run, let what) = event else { return effects }
                    switch what {
                    case .process(.reattached): isNew.insert(run)
                    case .suspension(.frozen): isNew.remove(run)
                    case .traffic(.inputArrived):
                        let wakes = effects.contains {
                            if case .run(_, .suspension(.thaw)) = $0 { true } else { false }
                        }
                        if wakes, isNew.contains(run) { wasReported = true }
                    default: break
                    }
                    return effects
                }
            }
            _ = simulation.run()
        }
        #expect(wasReported)
    }

    /// What the simulation does and the core reports in seeds with more traffic.
    @Test("the seeds reach many descriptors, other manifests, and daemons that may not watch")
    func moreIsReached() {
        let expected: [Fault] = [.inputBurst, .reloaded, .watchFails, .pesters]
        var faults = FaultCounts()
        for seed in stride(from: UInt64(6), through: 400, by: 7) {
            if expected.allSatisfy({ faults[$0] > 0 }) { break }
            let result = simulate(SimulationOptions(seed: seed, events: 3000))
            #expect(result.finding == nil, "seed \(seed): \(result.finding?.sentence ?? "")")
            faults.add(result.faults)
        }
        for fault in expected { #expect(faults[fault] > 0, "\(fault)") }
    }
}
