import LifecycleCore
import TestKit
import Testing

import enum LifecycleCore.ExitStatus

/// A generator that gives the same numbers for the same seed on every machine (splitmix64).
struct RandomGenerator: RandomNumberGenerator {
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

/// Random events in random order: late, repeated or missing. The invariants hold at any time. Once all apps behave
/// again, they become idle and each request is answered.
@Suite("Random events")
struct RandomEventTests {
    static let apps = ["mail", "music", "photos"]
    private static let scenes = [SceneID.main, SceneID("a")!, SceneID("b")!]
    private static let progress = [1, 2, 3, 4, 90].map { TaskProgress(done: $0, total: 100, title: "Export")! }

    @Test(
        "after random events all apps become idle, and each request is answered once",
        arguments: 0..<(isTestingAll ? 100 : 40))
    func becomesIdle(seed: Int) {
        var random = RandomGenerator(state: UInt64(seed))
        let harness = Harness()
        for app in Self.apps { harness.register(app, policy: { Self.vary(&$0, &random) }) }
        harness.configure { manager in
            manager.foregroundLimit = random.pick([1, 1, 2])
            manager.budget = random.pick([nil, nil, 40 * mebibyte])
            manager.continuedTasks = seed % 3 == 0 ? 1 : 4
            manager.jetsamOrder = random.pick([.largest, .lru])
            if seed % 5 == 3 { manager.jetsamOrder = .balanced }
        }
        harness.isSlow = true
        for step in 0..<200 {
            if step == 150, seed % 10 == 9 { harness.handle(.shutdownRequested(immediately: random.isOne(in: 2))) }
            Self.randomEvent(harness, &random)
        }
        Self.settle(harness)
        #expect(harness.unanswered.isEmpty, "seed \(seed)")
        for app in Self.apps where harness.core.appIDs.contains(id(app)) {
            let state = harness.state(app)!
            let awake = harness.view(app).awake
            #expect(
                [.notRunning, .suspended, .active, .inactive].contains(state)
                    || state == .background && awake.contains { $0.reason == .neverSuspended },
                "\(app) is \(state), seed \(seed): \(awake)")
        }
        harness.handle(.shutdownRequested(immediately: false))
        harness.advance(.seconds(60))
        #expect(harness.core.isFinished, "seed \(seed)")
        #expect(harness.isDeterministic)
    }

    private static func vary(_ policy: inout AppPolicy, _ random: inout RandomGenerator) {
        policy.notifications = NotificationKinds(rawValue: UInt16.random(in: 0..<1 << 12, using: &random))
        policy.readiness = random.pick([.executed, .notified])
        policy.relaunch = random.pick([.no, .onFailure, .always])
        policy.launchAtStart = random.pick([nil, nil, .foreground, .background])
        policy.exitsOnSuspend = random.isOne(in: 6)
        policy.watchdog = random.pick([nil, nil, .seconds(10)])
        policy.backgroundModes = random.pick([[], [.push], [.push, .fetch], [.audio, .processing]])
        policy.backgroundTime = random.pick([.seconds(30), .seconds(30), .seconds(3), nil])
        policy.jetsamPriority = random.pick([0, 0, 5])
        policy.usesProtectedData = random.isOne(in: 3)
        policy.hidesSnapshot = random.isOne(in: 8)
        policy.isEssential = random.isOne(in: 12)
        policy.memoryHigh = random.pick([nil, 15 * mebibyte])
        policy.holdsSockets = random.isOne(in: 2)
        policy.connectionWait = random.pick([nil, .seconds(60), .seconds(5), .milliseconds(1)])
        policy.unloadAfter = random.pick([nil, nil, .seconds(3), .milliseconds(1)])
        policy.isTransient = random.isOne(in: 6)
        policy.role = random.pick([.app, .app, .worker])
        policy.hooks = HookKinds(rawValue: random.pick([0, 0, 3, 4, 12, 15]))
    }

    /// Lets all apps behave, sends no more requests and lets time pass.
    private static func settle(_ harness: Harness) {
        harness.isSlow = false
        harness.kernel.others = 2 * gibibyte
        for app in apps {
            harness.behave(app) { $0 = Kernel.Behaviour() }
            // A program with Relaunch=always, or with a watchdog but no heartbeats, never becomes idle.
            if harness.core.appIDs.contains(id(app)) {
                harness.register(app) { policy in
                    policy.relaunch = .no
                    policy.watchdog = nil
                    policy.backgroundTime = .seconds(30)
                }
            }
        }
        harness.kernel.clients = [:]
        harness.simulate(.normal)
        harness.handle(.absence(.awoke))
        harness.handle(.absence(.unlocked))
        harness.release()
        for run in harness.kernel.processes.keys.sorted() where harness.kernel.processes[run]!.isAlive {
            guard harness.core.app(of: run) != nil else { continue }
            harness.handle(.run(run, .transition(.ready)))
            harness.handle(.run(run, .process(.continued)))
            // A freeze that did not happen while the app behaved badly.
            harness.handle(
                .run(run, .suspension(.frozen(attempt: harness.kernel.processes[run]!.attempt, memory: mebibyte))))
            // With an infinite budget a task can stay open for ever.
            harness.handle(.run(run, .mode(.inhibitorChanged(nil))))
            harness.handle(.run(run, .mode(.shown([]))))
            for mode in [BackgroundModes.audio, .processing] { harness.handle(.run(run, .mode(.ended(mode)))) }
            for task in harness.core.app(of: run).map({ harness.view($0.name).tasks }) ?? [] {
                harness.handle(.run(run, .task(.ended(name: task.name))))
            }
        }
        harness.advance(.seconds(900))
    }

    // MARK: Events

    private static func randomEvent(_ harness: Harness, _ random: inout RandomGenerator) {
        let app = random.pick(apps)
        switch Int.random(in: 0..<20, using: &random) {
        case 0...4: sendRequest(harness, app, &random)
        case 5...9: randomOutcome(harness, &random)
        case 10...12:
            harness.advance(random.pick([.zero, .milliseconds(1), .milliseconds(700), .seconds(2), .seconds(6)]))
        case 13...15: randomAppEvent(harness, app, &random)
        case 16: changeBehaviour(harness, app, &random)
        case 17: if random.isOne(in: 2) { client(harness, app, &random) } else { processEnds(harness, app, &random) }
        case 18: if random.isOne(in: 3) { timer(harness, app, &random) } else { machine(harness, &random) }
        default: configuration(harness, app, &random)
        }
    }

    private static func sendRequest(_ harness: Harness, _ app: String, _ random: inout RandomGenerator) {
        let requests: [Request] = [
            .launch(.foreground, reason: .user, url: nil), .launch(.background, reason: .user, url: nil),
            .launch(.background, reason: .fetch, url: nil, environment: ["A=1"]),
            .launch(.background, reason: .socket, url: nil),
            .open(url: "a:1"), .open(url: "a:2"), .activate, .activate, .background, .interrupt, .endInterruption,
            .terminate, .remove, .push(payload: "p"),
            .scene(random.pick(scenes), .activate), .scene(random.pick(scenes), .background), .cancelTask(name: "a"),
            .send(Notification(kind: "battery", payload: random.pick(["1", "2"]))!),
            .send(Notification(kind: "time", payload: "")!),
        ]
        let requester: Requester = random.pick([.user, .user, .user, .app(id(app)), .app(nil)])
        let request = harness.request(app, random.pick(requests), by: requester)
        if random.isOne(in: 20) { harness.handle(.requestAbandoned(request)) }
    }

    /// Delivers a pending outcome. The outcomes of one run come in order.
    private static func randomOutcome(_ harness: Harness, _ random: inout RandomGenerator) {
        for _ in 0..<Int.random(in: 1...4, using: &random) {
            guard !harness.pending.isEmpty else { return }
            let wanted = Int.random(in: 0..<harness.pending.count, using: &random)
            let run = harness.pending[wanted].run
            let first = harness.pending.firstIndex { $0.run == run }!
            harness.release(random.isOne(in: 10) && harness.pending[wanted].isEnd ? wanted : first)
        }
    }

    private static func randomAppEvent(_ harness: Harness, _ app: String, _ random: inout RandomGenerator) {
        guard let run = harness.core.run(of: id(app)) else { return }
        let events: [Event] = [
            .run(run, .transition(.ready)), .run(run, .transition(.ready)), .run(run, .transition(.backgroundEntered)),
            .run(run, .process(.stopped)),
            .run(run, .process(.continued)),
            .run(run, .task(.began(name: "a", owner: 1))), .run(run, .task(.began(name: "b", owner: 1))),
            .run(run, .task(.ended(name: "a"))),
            .run(run, .task(.progressed(name: random.pick(["a", "b"]), random.pick(progress)))),
            .run(run, .task(.progressed(name: "a", random.pick(progress)))),
            .run(run, .task(.ended(name: "b"))), .run(run, .deadline(.extended(by: .seconds(8)))),
            .run(run, .wake(.completed(.newData))),
            .run(run, .watchdog(.heartbeat)), .run(run, .watchdog(.triggered)), .run(run, .transition(.stopping)),
            .run(run, .watchdog(.timeChanged(to: random.pick([.zero, .seconds(20)])))),
            .run(run, .mode(.began(random.pick([.audio, .processing, .push])))), .run(run, .mode(.ended(.audio))),
            .run(run, .mode(.ended(.processing))),
            .run(run, .mode(.inhibitorChanged(random.pick([nil, nil, "idle, by a: b"])))),
            .run(run, .mode(.shown(random.pick([[], [.audio], [.audio, .call]])))),
            .run(run, .mode(.unused(random.pick([[], [.audio], [.processing]])))),
            .run(run, .connection(.attached([.openURL, .willSuspend, .didResume, .scenes]))),
            .run(run, .scene(.began(random.pick(scenes), random.pick([.window, .window, .panel])))),
            .run(run, .scene(.ended(random.pick(scenes)))),
            .run(run, .connection(.attached([.didEnterBackground, .takeSnapshot]))),
            .run(run, .connection(.snapshotTaken)),
            .run(run, .connection(.attached([.didEnterBackground, .scenes, .takeSceneSnapshot, .didDiscardScenes]))),
            .run(run, .connection(.attached([.didEnterBackground, .withdraw, .didResume]))),
            .run(run, .connection(.withdrawn)),
            .run(run, .scene(.snapshotTaken(random.pick(scenes)))),
            .run(run, .connection(.attached([.didEnterBackground, .openURL]))), .run(run, .connection(.attached([]))),
            .run(run, .transition(.terminationAnswered)), .run(run, .traffic(.idleHinted(true))),
            .run(run, .traffic(.idleHinted(false))),
            .run(run, .process(.mainProcessChanged(pid: 5))),
            .run(run, .hookEnded(number: random.pick([1, 2, 3]), random.pick([.ended(.exited(0)), .refusal]))),
            .run(run, .suspension(.frozen(attempt: 1, memory: mebibyte))), .run(run, .suspension(.thawed(attempt: 1))),
            .run(run, .deadline(.inspected(Inspection(traced: random.isOne(in: 2), cpu: .zero, memory: mebibyte)))),
        ]
        harness.handle(random.pick(events))
    }

    private static func changeBehaviour(_ harness: Harness, _ app: String, _ random: inout RandomGenerator) {
        harness.behave(app) { behaviour in
            behaviour.launching = random.pick([
                .becomesReady, .becomesReady, .executes, .spawns, .fails(SpawnProblem(sentence: "no", exitStatus: 203)),
            ])
            behaviour.entering = random.pick([.answers, .stops, .cannotBeNotified, .isSilent])
            behaviour.terminating = random.pick([.exits(0), .exits(1), .diesOfSignal, .ignores, .cannotBeNotified])
            behaviour.hook = random.pick([nil, .ended(.exited(0)), .ended(.exited(1)), .refusal])
            behaviour.freezes = !random.isOne(in: 4)
            behaviour.thaws = !random.isOne(in: 6)
            behaviour.isTraced = random.isOne(in: 5)
            behaviour.memory = random.pick([1, 10, 20, 60]) * mebibyte
        }
    }

    private static func processEnds(_ harness: Harness, _ app: String, _ random: inout RandomGenerator) {
        guard let run = harness.core.run(of: id(app)), harness.kernel.processes[run]?.isAlive == true else { return }
        // The end of a process is reported after its creation.
        if harness.pending.contains(where: { $0.run == run && $0.isBirth }) { return }
        harness.kernel.processes[run]?.isAlive = false
        let status = random.pick([ExitStatus.exited(0), .exited(1), .signaled(11, coreDumped: true)])
        let ends: [Event] = [
            .run(run, .process(.exited(status, cpu: .zero, memory: 0))), .run(run, .process(.emptied)),
        ]
        for event in random.isOne(in: 3) ? ends.reversed() : ends { harness.handle(event) }
    }

    /// A client comes to a held socket, or leaves. Some reports are late.
    private static func client(_ harness: Harness, _ app: String, _ random: inout RandomGenerator) {
        switch Int.random(in: 0..<4, using: &random) {
        case 0: harness.kernel.clients[id(app)] = nil
        case 1: harness.connect(app, Input(kind: .datagram, pid: 0, descriptor: 4, bytes: 9))
        default: harness.connect(app)
        }
        if random.isOne(in: 4) { harness.handle(.socketsReady(id(app), Harness.connection)) }
        if random.isOne(in: 20) { harness.kernel.clients[id(app)] = nil }
    }

    /// The timers of an app begin, elapse or are rebased, whether it has any or not.
    private static func timer(_ harness: Harness, _ app: String, _ random: inout RandomGenerator) {
        let time = Int(harness.now.sinceOrigin / .microseconds(1))
        let moment = TimerMoment(realtime: time, monotonic: time, boottime: time)
        switch Int.random(in: 0..<6, using: &random) {
        case 0:
            harness.register(app) { $0.hasTimers = true }
            harness.handle(.timer(id(app), .began(moment, last: nil)))
        case 1: harness.handle(.timer(id(app), .rebased(to: time)))
        case 2...3: harness.handle(.timer(id(app), .elapsed(.fetch, moment)))
        default: harness.handle(.timer(id(app), .elapsed(.timer, moment)))
        }
    }

    private static func machine(_ harness: Harness, _ random: inout RandomGenerator) {
        switch Int.random(in: 0..<7, using: &random) {
        case 5...6:
            harness.handle(
                random.pick([
                    .absence(.sleepRequested), .absence(.awoke), .absence(.awoke), .absence(.locked),
                    .absence(.unlocked), .absence(.unlocked),
                ]))
        case 0:
            harness.handle(.memory(.pressureStalled(.warning)))
            let (kind, payload) = (random.pick(Notification.kinds), random.pick(["a", "b", ""]))
            harness.handle(.observed(Notification(kind: kind, payload: payload)!))
        case 1: harness.handle(.memory(.pressureStalled(.critical)))
        case 2: harness.simulate(random.pick(MemoryLevel.allCases))
        default: harness.kernel.others = random.pick([2, 2, 13, 15, 16]) * gibibyte
        }
    }

    private static func configuration(_ harness: Harness, _ app: String, _ random: inout RandomGenerator) {
        switch Int.random(in: 0..<5, using: &random) {
        case 0: harness.unregister(app)
        case 1: harness.register(app, policy: { vary(&$0, &random) })
        case 2: harness.handle(.configuration(.started))
        case 3: harness.configure { $0.foregroundLimit = random.pick([1, 2, 3]) }
        default: harness.register(app)
        }
    }
}

extension Event {
    var isBirth: Bool {
        switch self {
        case .run(_, .process(.spawned)), .run(_, .process(.spawnFailed)): true
        default: false
        }
    }

    /// `exited` and `emptied` can come in either order.
    var isEnd: Bool {
        switch self {
        case .run(_, .process(.exited)), .run(_, .process(.emptied)): true
        default: false
        }
    }
}
