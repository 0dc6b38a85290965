import Testing

@testable import LifecycleCore

/// Tests break the state of the core, which no event can do.
@Suite("Invariants")
struct InvariantTests {
    private let app = AppID("photos")!

    private func core(_ policy: AppPolicy = AppPolicy()) -> LifecycleCore {
        var core = LifecycleCore()
        core.continueAfterBrokenInvariants()
        _ = core.handle(.configuration(.registered(app, policy, launches: 0)), at: .origin)
        return core
    }

    /// With an app that is active, or in the background.
    private func running(_ state: LaunchState) -> LifecycleCore {
        var core = core()
        let launch = Request.launch(state, reason: .user, url: nil)
        _ = core.handle(.requested(RequestID(1), app, launch), at: .origin)
        for event in [RunEvent.process(.spawned(pid: 7)), .process(.executed), .transition(.backgroundEntered)] {
            _ = core.handle(.run(RunID(1), event), at: .origin)
        }
        #expect(core.brokenInvariants.isEmpty)
        return core
    }

    @Test("a broken invariant is kept once, with its location, and the core continues")
    func isKept() {
        var core = core()
        core.visibleCount = 1
        for _ in 0..<3 { _ = core.handle(.absence(.locked), at: .origin) }
        #expect(core.brokenInvariants.map(\.sentence) == ["the counts of apps are wrong"])
        #expect(core.brokenInvariants[0].location.contains("LifecycleCore+Invariants.swift:"))
        #expect(core.brokenInvariants[0].app == nil)
    }

    @Test("invariants are no part of the value of a core")
    func isNoState() {
        var broken = core()
        broken.visibleCount = 1
        _ = broken.handle(.absence(.unlocked), at: .origin)
        broken.visibleCount = 0
        #expect(broken == core())
    }

    @Test("a notice that does not belong to the state of the app is found (L3)")
    func notices() {
        var core = running(.foreground)
        core.notify(0, .didBecomeActive(.return))
        #expect(core.brokenInvariants.count == 1)
        core = running(.background)
        core.notify(0, .willResignActive(.background))
        #expect(core.brokenInvariants.first?.app == app)
    }

    @Test("an app that is active and interrupted is found (L13)")
    func interruptions() {
        var core = running(.foreground)
        core[run: 0].interruptions = 1
        _ = core.handle(.run(RunID(1), .process(.continued)), at: .origin)
        #expect(core.brokenInvariants.map(\.sentence) == ["active and interrupted, or neither"])
    }

    @Test("an app in the foreground without a slot is found (L12)")
    func slots() {
        var core = running(.foreground)
        core.foregroundSlots = []
        _ = core.handle(.run(RunID(1), .process(.continued)), at: .origin)
        #expect(core.brokenInvariants.map(\.sentence) == ["an app is in the foreground without a slot"])
    }

    @Test("an app that is idle with an assertion is found (L18)")
    func assertions() {
        var core = running(.background)
        _ = core[run: 0].assertions.beginTask(
            Assertion(kind: .task(name: "upload"), owner: .process(7), began: .origin), limit: 1000)
        _ = core.handle(.run(RunID(1), .process(.continued)), at: .origin)
        #expect(core.brokenInvariants.map(\.sentence) == ["idle with an assertion, or awake without one"])
    }

    @Test("orders and timers that are not up to date are found")
    func derived() {
        var core = running(.background)
        core.timers.set(0, to: nil)
        core.jetsam.set(0, to: nil)
        core.awakeCount = 0
        core.verifyAll()
        #expect(
            core.brokenInvariants.map(\.sentence) == [
                "the timer of an app is not up to date", "the location of an app in the kill order is not up to date",
                "the counts of apps are not up to date",
            ])
    }
}
