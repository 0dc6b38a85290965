import LifecycleCore
import Testing

import enum LifecycleCore.ExitStatus

/// The same numbers from the same seed, everywhere (splitmix64).
struct Dice: RandomNumberGenerator {
    var state: UInt64

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var z = state
        z = (z ^ (z >> 30)) &* 0xbf58_476d_1ce4_e5b9
        z = (z ^ (z >> 27)) &* 0x94d0_49bb_1331_11eb
        return z ^ (z >> 31)
    }

    mutating func isOne(in count: Int) -> Bool { Int.random(in: 0..<count, using: &self) == 0 }
    mutating func pick<T>(_ all: [T]) -> T { all[Int.random(in: 0..<all.count, using: &self)] }
}

/// Anything at any time: what comes late, twice, or never. The books have to add up throughout, and once everybody
/// behaves again, everything comes to rest and every request has its answer.
@Suite("Disorder")
struct DisorderTests {
    static let apps = ["mail", "music", "photos"]

    @Test("after any disorder the harness comes to rest, and each request was answered once", arguments: 0..<100)
    func comesToRest(seed: Int) {
        var dice = Dice(state: UInt64(seed))
        let harness = Harness()
        for app in Self.apps { harness.register(app, policy: { Self.vary(&$0, &dice) }) }
        harness.configure { manager in
            manager.foregroundLimit = dice.pick([1, 1, 2])
            manager.budget = dice.pick([nil, nil, 40 * mebibyte])
            manager.jetsamOrder = dice.pick([.largest, .lru])
        }
        harness.isSlow = true
        for step in 0..<200 {
            if step == 150, seed % 10 == 9 { harness.happens(.shutdownRequested(immediately: dice.isOne(in: 2))) }
            Self.somethingHappens(harness, &dice)
        }
        Self.rest(harness)
        #expect(harness.unanswered.isEmpty, "seed \(seed)")
        for app in Self.apps where harness.core.appIDs.contains(id(app)) {
            let state = harness.state(app)!
            #expect([.notRunning, .suspended, .active, .inactive].contains(state), "\(app) is \(state), seed \(seed)")
        }
        harness.happens(.shutdownRequested(immediately: false))
        harness.advance(.seconds(60))
        #expect(harness.core.isFinished, "seed \(seed)")
        #expect(harness.isDeterministic)
    }

    private static func vary(_ policy: inout AppPolicy, _ dice: inout Dice) {
        policy.readiness = dice.pick([.executed, .notified])
        policy.relaunch = dice.pick([.no, .onFailure, .always])
        policy.launchAtStart = dice.pick([nil, nil, .foreground, .background])
        policy.exitsOnSuspend = dice.isOne(in: 6)
        policy.watchdog = dice.pick([nil, nil, .seconds(10)])
        policy.backgroundModes = dice.pick([[], [.push], [.push, .fetch]])
        policy.backgroundTime = dice.pick([.seconds(30), .seconds(30), .seconds(3), nil])
        policy.jetsamPriority = dice.pick([0, 0, 5])
        policy.usesProtectedData = dice.isOne(in: 3)
        policy.memoryHigh = dice.pick([nil, 15 * mebibyte])
    }

    /// Everybody behaves, nothing more is asked, and the time passes.
    private static func rest(_ harness: Harness) {
        harness.isSlow = false
        harness.kernel.others = 2 * gibibyte
        for app in apps {
            harness.behave(app) { $0 = Kernel.Behaviour() }
            // A program that is always launched again, or watched by a heartbeat that nobody gives, has no rest.
            if harness.core.appIDs.contains(id(app)) {
                harness.register(app) { policy in
                    policy.relaunch = .no
                    policy.watchdog = nil
                    policy.backgroundTime = .seconds(30)
                }
            }
        }
        harness.simulate(.normal)
        harness.happens(.awoke)
        harness.happens(.unlocked)
        harness.release()
        for run in harness.kernel.processes.keys.sorted() where harness.kernel.processes[run]!.isAlive {
            guard harness.core.app(of: run) != nil else { continue }
            harness.happens(.run(run, .ready))
            harness.happens(.run(run, .continued))
            // With an infinite budget a task may stay open for ever.
            for task in harness.core.app(of: run).map({ harness.view($0.name).tasks }) ?? [] {
                harness.happens(.run(run, .taskEnded(name: task.name)))
            }
        }
        harness.advance(.seconds(900))
    }

    // MARK: What can happen

    private static func somethingHappens(_ harness: Harness, _ dice: inout Dice) {
        let app = dice.pick(apps)
        switch Int.random(in: 0..<20, using: &dice) {
        case 0...4: ask(harness, app, &dice)
        case 5...9: anOutcomeComes(harness, &dice)
        case 10...12:
            harness.advance(dice.pick([.zero, .milliseconds(1), .milliseconds(700), .seconds(2), .seconds(6)]))
        case 13...15: appSays(harness, app, &dice)
        case 16: behaveOtherwise(harness, app, &dice)
        case 17: processEnds(harness, app, &dice)
        case 18: machine(harness, &dice)
        default: configuration(harness, app, &dice)
        }
    }

    private static func ask(_ harness: Harness, _ app: String, _ dice: inout Dice) {
        let requests: [Request] = [
            .launch(.foreground, reason: .user, url: nil), .launch(.background, reason: .user, url: nil),
            .launch(.background, reason: .fetch, url: nil), .launch(.background, reason: .socket, url: nil),
            .activate, .activate, .background, .interrupt, .endInterruption, .terminate, .remove, .push(payload: "p"),
            .send(Notification(kind: "battery", payload: dice.pick(["1", "2"]))!),
            .send(Notification(kind: "time", payload: "")!),
        ]
        let request = harness.request(app, dice.pick(requests))
        if dice.isOne(in: 20) { harness.happens(.requestAbandoned(request)) }
    }

    /// In any order between runs, in order for each.
    private static func anOutcomeComes(_ harness: Harness, _ dice: inout Dice) {
        for _ in 0..<Int.random(in: 1...4, using: &dice) {
            guard !harness.pending.isEmpty else { return }
            let wanted = Int.random(in: 0..<harness.pending.count, using: &dice)
            let run = harness.pending[wanted].run
            let first = harness.pending.firstIndex { $0.run == run }!
            harness.release(dice.isOne(in: 10) && harness.pending[wanted].isEnd ? wanted : first)
        }
    }

    private static func appSays(_ harness: Harness, _ app: String, _ dice: inout Dice) {
        guard let run = harness.core.run(of: id(app)) else { return }
        let events: [Event] = [
            .run(run, .ready), .run(run, .ready), .run(run, .backgroundEntered), .run(run, .stopped),
            .run(run, .continued),
            .run(run, .taskBegan(name: "a", owner: 1)), .run(run, .taskBegan(name: "b", owner: 1)),
            .run(run, .taskEnded(name: "a")),
            .run(run, .taskEnded(name: "b")), .run(run, .timeoutExtended(by: .seconds(8))),
            .run(run, .wakeCompleted(.newData)),
            .run(run, .heartbeat), .run(run, .heartbeatGivenUp), .run(run, .stopping),
            .run(run, .mainProcessChanged(pid: 5)),
            .run(run, .frozen(attempt: 1, memory: mebibyte)), .run(run, .thawed(attempt: 1)),
            .run(run, .inspected(Inspection(traced: dice.isOne(in: 2), cpu: .zero, memory: mebibyte))),
        ]
        harness.happens(dice.pick(events))
    }

    private static func behaveOtherwise(_ harness: Harness, _ app: String, _ dice: inout Dice) {
        harness.behave(app) { behaviour in
            behaviour.launching = dice.pick([
                .becomesReady, .becomesReady, .executes, .spawns, .fails(SpawnProblem(sentence: "no", exitStatus: 203)),
            ])
            behaviour.entering = dice.pick([.answers, .stops, .cannotBeTold, .isSilent])
            behaviour.terminating = dice.pick([.exits(0), .exits(1), .diesOfSignal, .ignores, .cannotBeTold])
            behaviour.freezes = !dice.isOne(in: 4)
            behaviour.thaws = !dice.isOne(in: 6)
            behaviour.isTraced = dice.isOne(in: 5)
            behaviour.memory = dice.pick([1, 10, 20, 60]) * mebibyte
        }
    }

    private static func processEnds(_ harness: Harness, _ app: String, _ dice: inout Dice) {
        guard let run = harness.core.run(of: id(app)), harness.kernel.processes[run]?.isAlive == true else { return }
        // Before the core hears of the process, it can't hear of its end.
        if harness.pending.contains(where: { $0.run == run && $0.isBirth }) { return }
        harness.kernel.processes[run]?.isAlive = false
        let status = dice.pick([ExitStatus.exited(0), .exited(1), .signaled(11, coreDumped: true)])
        let ends: [Event] = [.run(run, .exited(status, cpu: .zero, memory: 0)), .run(run, .emptied)]
        for event in dice.isOne(in: 3) ? ends.reversed() : ends { harness.happens(event) }
    }

    private static func machine(_ harness: Harness, _ dice: inout Dice) {
        switch Int.random(in: 0..<7, using: &dice) {
        case 5...6: harness.happens(dice.pick([.sleepRequested, .awoke, .awoke, .locked, .unlocked, .unlocked]))
        case 0: harness.happens(.pressureStalled(.warning))
        case 1: harness.happens(.pressureStalled(.critical))
        case 2: harness.simulate(dice.pick(MemoryLevel.allCases))
        default: harness.kernel.others = dice.pick([2, 2, 13, 15, 16]) * gibibyte
        }
    }

    private static func configuration(_ harness: Harness, _ app: String, _ dice: inout Dice) {
        switch Int.random(in: 0..<5, using: &dice) {
        case 0: harness.unregister(app)
        case 1: harness.register(app, policy: { vary(&$0, &dice) })
        case 2: harness.happens(.started)
        case 3: harness.configure { $0.foregroundLimit = dice.pick([1, 2, 3]) }
        default: harness.register(app)
        }
    }
}

extension Event {
    /// The run that an outcome or a word of an app is about.
    var run: RunID? {
        switch self {
        case .run(let run, _):
            run
        case .registered, .unregistered, .configured, .started, .recovered, .requested, .requestAbandoned,
            .shutdownRequested,
            .sleepRequested, .awoke, .locked, .unlocked, .deadlineReached, .memoryMeasured, .pressureStalled,
            .pressureSimulated:
            nil
        }
    }

    var isBirth: Bool {
        switch self {
        case .run(_, .spawned), .run(_, .spawnFailed): true
        default: false
        }
    }

    /// `exited` and `emptied` come in either order.
    var isEnd: Bool {
        switch self {
        case .run(_, .exited), .run(_, .emptied): true
        default: false
        }
    }
}
