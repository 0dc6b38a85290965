import LifecycleCore
import TestKit
import Testing

@testable import LifecycleSimulator

/// Tests on simulated memory: machines that fill, reclaim and swap.
@Suite("Memory of simulated machines")
struct MemoryTests {
    private static func play(_ scenario: MemoryScenario, _ change: (LifecycleCore) -> Mutant) -> MemoryOutcome {
        var simulation = MemorySimulation(scenario, order: .largest, core: change(LifecycleCore()))
        return simulation.run()
    }

    @Test("the rules of memory hold on random machines")
    func rulesHold() {
        for seed in 1...(isTestingAll ? 16 : 4) as ClosedRange<UInt64> {
            let order = MemoryOrder.allCases[Int(seed % 4)]
            for scenario in [MemoryScenario(seed: seed), MemoryScenario(budgetSeed: seed)] {
                for (rule, violation) in MemoryTable.play(scenario, order).violations
                where !MemoryRule.notYetKept.contains(rule) {
                    Issue.record("seed \(seed): \(rule.rawValue): \(violation.first)")
                }
            }
        }
    }

    /// Until readings were made at the end of a step, one could count a step more than programs had time for. The core
    /// freed memory for it, and the last victim was not necessary.
    @Test(
        "a seed that found a victim that was not necessary finds none (L39)",
        arguments: [7_001_502, 50_000_549, 1_629_279_105_525] as [UInt64])
    func savedSeed(seed: UInt64) {
        let order = MemoryOrder.allCases[Int(seed % 4)]
        let violations = MemoryTable.play(MemoryScenario(seed: seed), order).violations
        #expect(violations[.lastVictimWasNecessary] == nil)
    }

    /// Programs that had filled memory fast had stopped meanwhile, and the rate of the last 100 ms was still believed.
    @Test("a seed that found a kill while a quarter of the memory was available finds none (L35)")
    func plenty() {
        let seed: UInt64 = 1_706_097_220_327
        let violations = MemoryTable.play(MemoryScenario(seed: seed), .oracle).violations
        #expect(violations[.noKillsInPlenty] == nil)
    }

    private final class Readings {
        var all: [(at: Microseconds, available: UInt64)] = []
    }

    @Test("between two readings memory is filled no faster than programs fill it")
    func readingsShowTheRate() {
        var scenario = MemoryScenario.newcomer
        // No whole number of steps: each reading is asked for at another time of a step.
        scenario.measureTime = 1_337
        let readings = Readings()
        let core = Mutant(core: LifecycleCore()) { mutant, event, now in
            if case .memory(.measured(let reading)) = event {
                readings.all.append((now.microseconds, reading.available))
            }
            return mutant.core.handle(event, at: now)
        }
        var simulation = MemorySimulation(scenario, order: .largest, core: core)
        _ = simulation.run()
        // The newcomer is the last app, and the only one that allocates from then on.
        let rate = UInt64(scenario.apps[8].rate)
        var falls = 0
        for (before, after) in zip(readings.all, readings.all.dropFirst())
        where before.at >= 100 * .second && after.available < before.available {
            falls += 1
            let most = rate * UInt64(after.at - before.at) / UInt64(Microseconds.millisecond)
            #expect(before.available - after.available <= most, "from \(before.at) to \(after.at) µs")
        }
        #expect(falls > 3)
    }

    @Test("a new app that allocates 2 GiB/s beside 8 suspended apps of 300 MiB stays in the foreground (L38)")
    func newcomer() {
        for order in MemoryOrder.allCases {
            let outcome = MemoryTable.play(.newcomer, order)
            #expect(outcome.foreground.map(\.name) == ["newcomer"])
            #expect(outcome.violations[.foregroundOutlivesSuspended] == nil)
            #expect(outcome.kills + outcome.kernelKills < 8, "not all suspended apps need to end")
        }
    }

    @Test(
        "three large apps in turn on a full machine: largest launches one at each switch, lru and the oracle none (L38)"
    )
    func rotation() throws {
        let rotation = try #require(MemoryScenario.workloads.first { $0.name == "rotation" })
        let launches = MemoryOrder.allCases.map { MemoryTable.play(rotation, $0).launches }
        let (largest, lru, balanced, oracle) = (launches[0], launches[1], launches[2], launches[3])
        #expect(largest == 60)
        #expect(lru == 3)
        #expect(oracle == 3)
        #expect(balanced < 20)
    }

    @Test("apps that are used once do not displace those in use: balanced launches each app of the scan once (L38)")
    func scan() throws {
        let scan = try #require(MemoryScenario.workloads.first { $0.name == "scan" })
        #expect(MemoryTable.play(scan, .balanced).launches == 64)
    }

    @Test("the same scenario has the same outcome")
    func deterministic() {
        for order in [MemoryOrder.largest, .balanced] {
            let outcomes = (0..<2).map { _ in MemoryTable.play(MemoryScenario(seed: 11), order) }
            #expect(outcomes[0].events == outcomes[1].events)
            #expect(outcomes[0].shortTime == outcomes[1].shortTime)
            #expect(outcomes[0].bytesInVain == outcomes[1].bytesInVain)
        }
    }

    /// A fault of the core, and the rule of memory that must find it.
    struct Fault: Sendable, CustomTestStringConvertible {
        let name: String
        let rule: MemoryRule
        /// Whether machines with a budget find it.
        var needsBudget = false
        let handling: @Sendable (inout Mutant, Event, Instant) -> [Effect]
        var testDescription: String { name }

        /// A core that reads another amount of available memory.
        static func reading(
            _ name: String, _ rule: MemoryRule,
            _ change: @escaping @Sendable (inout MemoryReading, LifecycleCore) -> Void
        ) -> Fault {
            Fault(name: name, rule: rule) { mutant, event, now in
                guard case .memory(.measured(var reading)) = event else { return mutant.core.handle(event, at: now) }
                change(&reading, mutant.core)
                return mutant.core.handle(.memory(.measured(reading)), at: now)
            }
        }
    }

    static let faults: [Fault] = [
        .reading("assumes that all memory is available", .memoryRecovers) { reading, _ in
            reading.available = reading.total
        },
        .reading("assumes that enough memory is available", .kernelDoesNotKill) { reading, _ in
            reading.available = reading.total
        },
        .reading("reads a tenth of what is available", .noKillsInPlenty) { reading, _ in reading.available /= 10 },
        .reading("reads a third of what is available", .killsNeedScarcity) { reading, _ in reading.available /= 3 },
        .reading("does not see that memory is available again", .levelReturns) { reading, core in
            if core.memory.level > .normal { reading.available = min(reading.available, reading.total / 16) }
        },
        Fault(name: "assumes that killed apps are gone immediately", rule: .lastVictimWasNecessary) {
            mutant, event, now in
            var effects = mutant.core.handle(event, at: now)
            for case .run(let run, .kill) in effects {
                let ends: [ProcessEvent] = [.exited(.signaled(9, coreDumped: false), cpu: .zero, memory: 0), .emptied]
                for end in ends { effects += mutant.core.handle(.run(run, .process(end)), at: now) }
            }
            return effects
        },
        Fault(name: "kills the app in the foreground", rule: .foregroundOutlivesSuspended) { mutant, event, now in
            let front = mutant.core.appIDs.first { mutant.core.state(of: $0) == .active }
            let run = front.flatMap { mutant.core.run(of: $0) }
            let effects = mutant.core.handle(event, at: now)
            guard case .memory(.measured) = event, let front, let run else { return effects }
            return effects.map { effect in
                switch effect {
                case .run(_, .kill): .run(run, .kill)
                case .report(.stateChanged(_, .suspended, .terminating, .jetsam)):
                    .report(.stateChanged(front, from: .active, to: .terminating, reason: .jetsam))
                default: effect
                }
            }
        },
        Fault(name: "takes estimates for exact", rule: .estimatesDoNotKill, needsBudget: true) { mutant, event, now in
            switch event {
            case .memory(.measured(var reading)):
                for index in reading.sizes.indices { reading.sizes[index].uncertainty = 0 }
                return mutant.core.handle(.memory(.measured(reading)), at: now)
            case .run(let run, .suspension(.frozen(let attempt, let memory, _))):
                return mutant.core.handle(.run(run, .suspension(.frozen(attempt: attempt, memory: memory))), at: now)
            default: return mutant.core.handle(event, at: now)
            }
        },
        Fault(name: "counts victims as if they were used again", rule: .victimsAreAwaited, needsBudget: true) {
            mutant, event, now in
            var event = event
            if case .memory(.measured(var reading)) = event, let budget = mutant.budget, !reading.sizes.isEmpty,
                mutant.core.runIDs.contains(where: mutant.killed.contains)
            {
                reading.sizes[0] = MemoryReading.Size(run: reading.sizes[0].run, bytes: budget * 9 / 10)
                event = .memory(.measured(reading))
            }
            if case .configuration(.configured(let policy)) = event { mutant.budget = policy.budget }
            let effects = mutant.core.handle(event, at: now)
            for case .run(let run, .kill) in effects { mutant.killed.append(run) }
            return effects
        },
        Fault(name: "sees no app exceed the budget alone", rule: .othersOutliveExcess, needsBudget: true) {
            mutant, event, now in
            if case .configuration(.configured(let policy)) = event { mutant.budget = policy.budget }
            guard case .memory(.measured(var reading)) = event, let budget = mutant.budget else {
                return mutant.core.handle(event, at: now)
            }
            for index in reading.sizes.indices where reading.sizes[index].bytes > budget {
                reading.sizes[index] = MemoryReading.Size(run: reading.sizes[index].run, bytes: budget)
            }
            return mutant.core.handle(.memory(.measured(reading)), at: now)
        },
        Fault(name: "reads no budget", rule: .budgetIsKept, needsBudget: true) { mutant, event, now in
            guard case .configuration(.configured(var policy)) = event else {
                return mutant.core.handle(event, at: now)
            }
            policy.budget = nil
            return mutant.core.handle(.configuration(.configured(policy)), at: now)
        },
        Fault(name: "relaunches no app", rule: .wantedAppsReturn) { mutant, event, now in
            guard case .configuration(.registered(let id, var policy, let launches)) = event else {
                return mutant.core.handle(event, at: now)
            }
            policy.relaunch = .no
            return mutant.core.handle(.configuration(.registered(id, policy, launches: launches)), at: now)
        },
    ]

    @Test(
        "a mutant of the core is found by the rule of memory that it violates",
        .enabled(if: isTestingAll, "make test-all plays the mutants"), arguments: faults)
    func mutantIsFound(fault: Fault) {
        var found: Set<MemoryRule> = []
        for seed in 1...200 as ClosedRange<UInt64> {
            let scenario = fault.needsBudget ? MemoryScenario(budgetSeed: seed) : MemoryScenario(seed: seed)
            let outcome = Self.play(scenario) { Mutant(core: $0, handling: fault.handling) }
            found.formUnion(outcome.violations.keys)
            if found.contains(fault.rule) { return }
        }
        Issue.record("\(fault.rule) did not find the mutant; found were \(found)")
    }

    @Test("each rule of memory has a mutant")
    func everyRuleHasAMutant() {
        #expect(Set(MemoryRule.allCases) == Set(Self.faults.map(\.rule)))
    }
}
