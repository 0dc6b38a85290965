import LifecycleCore
import Testing

@Suite("Memory: warnings")
struct WarningTests {
    /// The warned apps with their levels, in order.
    private func warned(_ harness: Harness, since mark: Int = 0) -> [String] {
        harness.effects(since: mark).compactMap { effect in
            guard case .run(let run, .notify(.memoryWarning(let level))) = effect else { return nil }
            return "\(harness.kernel.app(of: run)!) \(level)"
        }
    }

    @Test(
        "running apps are warned, the lowest priority first, then the largest, and suspended apps are not woken (L36)")
    func order() {
        let harness = Harness("small", "large", "high", "low", "suspended") { $0.suspendDelay = .seconds(60) }
        harness.register("suspended") { $0.suspendDelay = .seconds(1) }
        harness.register("high") { $0.jetsamPriority = 5 }
        harness.register("low") { $0.jetsamPriority = -5 }
        harness.suspend("suspended")
        harness.behave("large") { $0.memory = 50 * mebibyte }
        for app in ["high", "small", "large", "low"] { harness.launch(app, app == "high" ? .foreground : .background) }
        harness.handle(.memory(.measured(harness.kernel.reading)))
        harness.simulate(.warning)
        #expect(warned(harness) == ["low warning", "large warning", "small warning", "high warning"])
        #expect(harness.state("suspended") == .suspended)
    }

    @Test("an app gets at most one warning of each level in 25s (L36)")
    func rate() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.simulate(.warning)
        harness.simulate(.critical)
        harness.simulate(.normal)
        harness.simulate(.warning)
        harness.simulate(.critical)
        #expect(warned(harness) == ["photos warning", "photos critical"])
        let mark = harness.mark
        harness.simulate(.normal)
        harness.advance(.milliseconds(24_999))
        harness.simulate(.warning)
        harness.simulate(.critical)
        #expect(warned(harness, since: mark) == [])
        harness.simulate(.normal)
        harness.advance(.milliseconds(1))
        harness.simulate(.critical)
        harness.simulate(.warning)
        #expect(warned(harness, since: mark) == ["photos critical", "photos warning"])
    }

    @Test("a warning is repeated every 25s while its level lasts (L36)")
    func repeated() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.kernel.others = 16 * gibibyte - 800 * mebibyte
        harness.advance(.seconds(80))
        #expect(harness.core.memory.level == .warning)
        #expect((3...4).contains(warned(harness).count))
    }

    @Test("a suspended app receives the last warning when it runs again (L31, L36)")
    func notifiedLater() {
        let harness = Harness("photos", "mail")
        harness.suspend("photos")
        harness.launch("mail")
        let mark = harness.mark
        harness.simulate(.warning)
        harness.simulate(.normal)
        harness.activate("photos")
        #expect(harness.delivered("photos", since: mark).map { "\($0.kind) \($0.payload)" } == ["memory warning"])
        #expect(warned(harness, since: mark) == ["mail warning"])
    }

    @Test("apps are warned before one is killed (L35)")
    func warnedFirst() {
        let harness = Harness("photos", "mail")
        harness.suspend("mail")
        harness.launch("photos")
        harness.simulate(.critical)
        let warning = harness.effects.firstIndex {
            if case .run(_, .notify(.memoryWarning)) = $0 { true } else { false }
        }!
        let kill = harness.effects.firstIndex { if case .run(_, .kill) = $0 { true } else { false } }!
        #expect(warning < kill)
    }

    @Test(
        "an app that is ending, launching or waking is not warned",
        arguments: [Stage.launching, .waking, .terminating, .ending, .suspending])
    func notWarned(stage: Stage) {
        let harness = Harness("photos")
        harness.move("photos", to: stage)
        harness.simulate(.warning)
        #expect(warned(harness) == [])
    }
}
