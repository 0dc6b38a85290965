import Testing

@testable import LifecycleCore

/// Wakes that no request asks for: input on a socket, or a timer.
@Suite("Wakes without a request")
struct WakeTests {
    static let reasons = [LaunchReason.socket, .timer]

    /// Wakes the app of a harness in a copy of its core.
    private func wake(
        _ harness: Harness, _ reason: LaunchReason
    ) throws -> (core: LifecycleCore, outcome: LifecycleCore.WakeOutcome, effects: [Effect]) {
        var core = harness.core
        let index = try #require(core.indices[id("photos")])
        while core.effects.popLast() != nil {}
        core.touch(index)
        let outcome = core.wakeOrLaunch(index, Launch(state: .background, reason: reason), nil, harness.now)
        return (core, outcome, core.effects)
    }

    @Test("a suspended app is woken, and its wake ends by itself after 30s", arguments: reasons)
    func suspended(reason: LaunchReason) throws {
        // Without a budget only the wake keeps the app awake.
        let harness = Harness("photos") { $0.backgroundTime = nil }
        harness.suspend("photos")
        let run = harness.run("photos")
        var (core, outcome, effects) = try wake(harness, reason)
        guard case .coming = outcome else {
            Issue.record("\(outcome)")
            return
        }
        #expect(
            effects.prefix(2) == [.run(run, .traffic(.stopWatchingInput)), .run(run, .suspension(.thaw(attempt: 1)))])
        #expect(!effects.contains { if case .answer = $0 { true } else { false } })
        #expect(core.requests.numbers == [])
        let start = harness.now
        _ = core.handle(.run(run, .suspension(.thawed(attempt: 1))), at: start)
        #expect(core.view(of: id("photos"), at: start)?.awakeReasons == [.wake(reason)])
        #expect(core.state(of: id("photos")) == .background)
        // It is not over before its time.
        let before = core.handle(.deadlineReached, at: start + .milliseconds(29_999))
        #expect(core.view(of: id("photos"), at: start)?.awakeReasons == [.wake(reason)])
        let after = core.handle(.deadlineReached, at: start + .seconds(30))
        #expect(core.view(of: id("photos"), at: start)?.awakeReasons == [.suspendDelay])
        let suspension = core.handle(.deadlineReached, at: start + .seconds(31))
        #expect(suspension.contains(.run(run, .suspension(.freeze(attempt: 2)))))
        #expect(after.contains(.report(.deadlineCancelled(id("photos"), .wake, wake: 1))))
        #expect(!(before + after + suspension).contains { if case .run(_, .kill) = $0 { true } else { false } })
        #expect(!(before + after + suspension).contains { if case .answer = $0 { true } else { false } })
    }

    @Test("an app that is not running is launched into the background", arguments: reasons)
    func notRunning(reason: LaunchReason) throws {
        let harness = Harness("photos")
        let (core, outcome, effects) = try wake(harness, reason)
        guard case .coming = outcome else {
            Issue.record("\(outcome)")
            return
        }
        let spawned = effects.compactMap { if case .spawn(_, _, let launch) = $0 { launch } else { nil } }
        #expect(spawned.map(\.reason) == [reason] && spawned.map(\.state) == [.background])
        #expect(core.requests.numbers == [])
    }

    @Test("a running app needs no launch, and an ending app is launched after its end (L5)", arguments: reasons)
    func otherStages(reason: LaunchReason) throws {
        for stage in [Stage.active, .running] {
            let harness = Harness("photos")
            harness.move("photos", to: stage)
            let (_, outcome, effects) = try wake(harness, reason)
            guard case .awake = outcome else {
                Issue.record("\(stage): \(outcome)")
                return
            }
            #expect(!effects.contains { if case .spawn = $0 { true } else { false } })
        }
        for stage in [Stage.terminating, .ending] {
            let harness = Harness("photos")
            harness.move("photos", to: stage)
            let (_, outcome, effects) = try wake(harness, reason)
            guard case .coming = outcome else {
                Issue.record("\(stage): \(outcome)")
                return
            }
            #expect(effects == [])
        }
    }
}
