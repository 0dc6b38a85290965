import Linux
import LoopPolicy
import Manifest
import Posix
import Systemd
import TestKit
import Testing

@testable import Daemon
@testable import LifecycleCore

extension Effect {
    fileprivate var isSpawn: Bool { if case .spawn = self { true } else { false } }
}

/// Effects are counted in turns of the loop, with a clock that only the effects advance.
@Suite("The driver of the core")
struct CoreDriverTests {
    /// Records the effects. Each takes 400 µs.
    private final class Performer: EffectPerforming {
        var effects: [(effect: Effect, id: EffectID)] = []
        var time = Duration.zero
        /// Called before each effect.
        var onEffect: (Effect) -> Void = { _ in }
        func perform(_ effect: Effect, _ id: EffectID) {
            onEffect(effect)
            effects.append((effect, id))
            time += .microseconds(400)
        }

        var launched: [AppID] {
            effects.compactMap { if case .spawn(let app, _, _) = $0.effect { app } else { nil } }
        }
    }

    private final class Observer: LifecycleObserver {
        var events: [Event] = []
        func observe(_ report: Report, at now: Instant) {}
        func observe(_ event: Event) { events.append(event) }
        var broken: [BrokenInvariant] = []
        func observe(_ broken: BrokenInvariant) { self.broken.append(broken) }
    }

    private final class Stage {
        let folder = makeTemporaryFolder("greenroom-driver")
        let loop: EventLoop
        let logbook: Logbook
        let driver: CoreDriver
        let performer = Performer()
        let observer = Observer()
        let apps: [AppID]

        /// - Parameters:
        ///   - count: how many apps have `LaunchAtStart=`.
        ///   - core: without apps.
        init(_ count: Int, core: LifecycleCore = LifecycleCore()) throws {
            loop = try EventLoop()
            logbook = Logbook(path: folder + "/logbook", journal: .quiet)
            logbook.create(LifecycleCore(), records: [:])
            driver = try CoreDriver(loop: loop, core: core, logbook: logbook)
            driver.connect(performer: performer, observers: [observer])
            apps = (0..<count).compactMap { AppID("app\(100 + $0)") }
            var policy = AppPolicy()
            policy.launchAtStart = .background
            for app in apps { driver.send(.configuration(.registered(app, policy, launches: 0))) }
            observer.events = []
            let performer = performer
            loop.clock = { performer.time }
        }

        deinit { removeTree(folder) }

        /// Sends events, each when the one before is handled and its effects are performed.
        func settle(_ events: Event...) throws {
            for event in events.map(Optional.some) + [nil] {
                while !driver.isIdle { _ = try loop.runOnce(timeout: .zero) }
                if let event { driver.send(event) }
            }
        }

        /// What the next daemon would find if this one died now.
        func recovered() throws -> RecoveredState {
            let copy = folder + "/copy"
            try replaceFile(at: copy, with: readFile(at: folder + "/logbook", limit: 1 << 28))
            return try #require(try Logbook.read(at: copy))
        }

        /// Sends an event in a turn of its own, as a source does. A more urgent one, since the driver continues before all others.
        func sendInTurn(_ event: Event) throws { try inTurn { [driver] in driver.send(event) } }

        func inTurn(_ body: @escaping () -> Void) throws {
            let timer = try loop.makeTimer(level: .urgent) { _ in body() }
            timer.arm(at: .zero)
            _ = try loop.runOnce(timeout: .zero)
        }
    }

    @Test("a broken invariant of the core is reported once, and the events are handled")
    func brokenInvariants() throws {
        var core = LifecycleCore()
        core.continueAfterBrokenInvariants()
        core.visibleCount = 1
        let stage = try Stage(1, core: core)
        try stage.settle(.configuration(.started), .absence(.locked))
        #expect(stage.observer.broken.map(\.sentence) == ["the counts of apps are wrong"])
        #expect(stage.performer.launched == stage.apps)
    }

    @Test("1,000 launches are performed over many turns, a few in each and in order; events that come meanwhile follow")
    func slices() throws {
        let stage = try Stage(1000)
        try stage.sendInTurn(.configuration(.started))
        #expect(stage.performer.effects.count <= 3)
        try stage.sendInTurn(.absence(.locked))
        #expect(stage.observer.events.isEmpty)
        var turns = 0
        while !stage.driver.isIdle, turns < 10_000 {
            let before = stage.performer.effects.count
            _ = try stage.loop.runOnce(timeout: .zero)
            turns += 1
            // Of 400 µs each: the third begins before the millisecond is over.
            #expect(stage.performer.effects.count - before <= 3)
        }
        #expect(stage.performer.launched == stage.apps)
        #expect(stage.observer.events == [.configuration(.started), .absence(.locked)])
        #expect(stage.performer.effects.map(\.id) == stage.performer.effects.map(\.id).sorted())
        #expect(turns >= 1000 / 3)
    }

    @Test("a daemon that dies between two slices leaves the rest of the effects, and the events that came meanwhile")
    func death() throws {
        let stage = try Stage(100)
        try stage.sendInTurn(.configuration(.started))
        try stage.sendInTurn(.absence(.locked))
        for _ in 0..<5 { _ = try stage.loop.runOnce(timeout: .zero) }
        let performed = stage.performer.effects
        #expect(!stage.driver.isIdle && performed.count > 3)
        defer { MappedFile.stopCountingOwnEnd() }
        let recovered = try stage.recovered()
        #expect(recovered.effectsPerformed == performed.count)
        #expect(recovered.events.map(\.event) == [.absence(.locked)])
        // The next daemon performs the rest under the same IDs.
        stage.driver.saveSnapshot()
        let rest = stage.performer.effects.dropFirst(performed.count)
        #expect(recovered.effects == rest.map(\.effect).prefix(recovered.effects.count).map { $0 })
        let ofStart = stage.performer.effects.count { $0.id.event == performed[0].id.event }
        #expect(recovered.effects.count + recovered.effectsPerformed == ofStart)
    }

    private static let connection = Input(kind: .listener, pid: 0, descriptor: 3, bytes: 0)

    @Test(
        "input is recorded, then its watch ends, then the app is thawed: at once, or behind the events that came before (L50)",
        arguments: [false, true], [false, true])
    func wake(isHeld: Bool, isBehindOthers: Bool) throws {
        let stage = try Stage(1)
        let (driver, performer) = (stage.driver, stage.performer)
        let app = try #require(AppID("web"))
        var policy = AppPolicy()
        (policy.role, policy.wakesOnTraffic, policy.launchAtStart) = (.worker, true, .background)
        policy.holdsSockets = true
        try stage.settle(.configuration(.registered(app, policy, launches: 0)), .configuration(.started))
        let runs = performer.effects.compactMap { effect -> (AppID, RunID)? in
            if case .spawn(let app, let run, _) = effect.effect { (app, run) } else { nil }
        }
        let run = try #require(runs.first { $0.0 == app }?.1)
        let other = try #require(runs.first { $0.0 != app }?.1)
        try stage.settle(
            .run(other, .process(.spawned(pid: 8))), .run(other, .process(.executed)),
            .run(other, .transition(.backgroundEntered)))
        let events: [RunEvent] = [
            .process(.spawned(pid: 7)), .process(.executed), .transition(.backgroundEntered),
            .traffic(.idleHinted(true)), .traffic(.workMeasured(RunWork(cpu: .zero))),
            .suspension(.frozen(attempt: 1, memory: 1)), .traffic(.inputWatched(attempt: 1, InputWatch(watched: 1))),
        ]
        for event in events { try stage.settle(.run(run, event)) }
        #expect(driver.view(of: app)?.state == .suspended)
        // Its effects do not fit in a turn.
        if isBehindOthers { try stage.sendInTurn(.run(other, .process(.exited(.exited(0), cpu: .zero, memory: 0)))) }
        #expect(driver.isIdle == !isBehindOthers)

        let wake: [Effect] = [.run(run, .traffic(.stopWatchingInput)), .run(run, .suspension(.thaw(attempt: 1)))]
        defer { MappedFile.stopCountingOwnEnd() }
        performer.onEffect = { effect in
            guard wake.contains(effect) else { return }
            // A daemon that dies now leaves the decision to the next one, and this effect as the next to perform.
            let recovered = try? stage.recovered()
            #expect(recovered?.core == driver.core)
            #expect(recovered?.effects.first == effect)
        }
        let arrived: Event =
            isHeld
            ? .socketsReady(app, Self.connection)
            : .run(run, .traffic(.inputArrived(attempt: 1, Input(kind: .stream, pid: 7, descriptor: 5, bytes: 9))))
        let before = performer.effects.count
        driver.send(arrived)
        if isBehindOthers {
            #expect(performer.effects.count == before)
            #expect(try stage.recovered().events.last?.event == arrived)
        }
        try stage.settle()
        // On a busy machine a deadline is reached meanwhile.
        #expect(stage.observer.events.last { $0 != .deadlineReached } == arrived)
        #expect(performer.effects.dropFirst(before).map(\.effect).filter(wake.contains) == wake)
        #expect(driver.view(of: app)?.state == .background)
    }

    @Test("a snapshot is saved after all events are handled and all effects performed: it contains neither")
    func finish() throws {
        let stage = try Stage(50)
        try stage.sendInTurn(.configuration(.started))
        #expect(!stage.driver.isIdle)
        try stage.sendInTurn(.absence(.locked))
        stage.driver.saveSnapshot()
        #expect(stage.driver.isIdle)
        #expect(stage.performer.launched == stage.apps)
        #expect(stage.observer.events == [.configuration(.started), .absence(.locked)])
        defer { MappedFile.stopCountingOwnEnd() }
        let recovered = try stage.recovered()
        #expect(recovered.core == stage.driver.core)
        #expect(recovered.events.isEmpty && recovered.effects.isEmpty)
        // The turn that is still scheduled finds nothing to do.
        _ = try stage.loop.runOnce(timeout: .zero)
        #expect(stage.performer.launched == stage.apps)
    }

    @Test("events that come faster than the core handles them are handled when they come, beyond a limit")
    func backlog() throws {
        let stage = try Stage(100)
        try stage.sendInTurn(.configuration(.started))
        #expect(stage.performer.launched.count < 100)
        try stage.inTurn { [driver = stage.driver] in
            for _ in 0..<CoreDriver.maximumBacklog { driver.send(.absence(.unlocked)) }
        }
        #expect(stage.observer.events.isEmpty)
        try stage.sendInTurn(.absence(.unlocked))
        #expect(stage.performer.launched == stage.apps)
        #expect(stage.observer.events.count >= 2)
    }

    @Test("the logbook is compacted in pieces; what comes meanwhile is in the old file and in the new one")
    func compaction() throws {
        let stage = try Stage(0)
        defer { MappedFile.stopCountingOwnEnd() }
        for number in 0..<2000 {
            let app = try #require(AppID("app\(number)"))
            stage.driver.send(.configuration(.registered(app, AppPolicy(), launches: 0)))
            stage.logbook.persist([1, 2, 3], as: "run/\(number)")
        }
        while !stage.loop.work.isEmpty { _ = try stage.loop.runOnce(timeout: .zero) }
        while stage.loop.work.isEmpty { stage.driver.send(.configuration(.configured(ManagerPolicy()))) }
        let eventsHandled = try stage.recovered().position?.eventsHandled
        let before = stage.loop.work.pieces
        var meanwhile = 0
        // Each piece takes a turn.
        stage.loop.clock = { [performer = stage.performer] in
            performer.time += .milliseconds(1)
            return performer.time
        }
        while !stage.loop.work.isEmpty {
            _ = try stage.loop.runOnce(timeout: .zero)
            guard meanwhile < 10 else { continue }
            meanwhile += 1
            stage.logbook.persist([UInt8(meanwhile)], as: "run/7")
            stage.logbook.removeRecord("run/\(100 + meanwhile)")
            // Outside of a turn it is handled at once.
            stage.driver.send(
                .configuration(.registered(try #require(AppID("late\(meanwhile)")), AppPolicy(), launches: 0)))
            if meanwhile == 5 {
                // A daemon that dies now leaves the old file.
                let recovered = try stage.recovered()
                #expect(recovered.core == stage.driver.core)
                #expect(recovered.position?.eventsHandled == eventsHandled.map { $0 + 5 })
            }
        }
        let pieces = stage.loop.work.pieces - before
        #expect(pieces >= 2000 / CoreSaving.appsPerStep + 2000 / LogbookCompaction.recordsPerStep)
        let recovered = try stage.recovered()
        #expect(recovered.core == stage.driver.core)
        #expect(recovered.records["run/7"] == [10])
        #expect(recovered.records.count == 1990)
        #expect(recovered.events.isEmpty && recovered.effects.isEmpty)
        #expect(recovered.eventNumber == stage.logbook.eventNumber)
        // Those that came meanwhile.
        #expect(recovered.position?.eventsHandled == 10)
    }
}
