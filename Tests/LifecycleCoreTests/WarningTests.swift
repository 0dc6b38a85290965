import LifecycleCore
import Testing

@Suite("Memory: warnings")
struct WarningTests {
    /// Whom was told which level, in order.
    private func warned(_ harness: Harness, since mark: Int = 0) -> [String] {
        harness.effects(since: mark).compactMap { effect in
            guard case .notify(let run, .memoryWarning(let level)) = effect else { return nil }
            return "\(harness.kernel.app(of: run)!) \(level)"
        }
    }

    @Test("L36: running apps are warned, the lowest priority first, then the largest; suspended ones are not woken")
    func order() {
        let harness = Harness("small", "large", "high", "low", "suspended") { $0.suspendDelay = .seconds(60) }
        harness.register("suspended") { $0.suspendDelay = .seconds(1) }
        harness.register("high") { $0.jetsamPriority = 5 }
        harness.register("low") { $0.jetsamPriority = -5 }
        harness.suspend("suspended")
        harness.behave("large") { $0.memory = 50 * mebibyte }
        for app in ["high", "small", "large", "low"] { harness.launch(app, app == "high" ? .foreground : .background) }
        harness.happens(.memoryMeasured(harness.kernel.reading))
        harness.simulate(.warning)
        #expect(warned(harness) == ["low warning", "large warning", "small warning", "high warning"])
        #expect(harness.state("suspended") == .suspended)
    }

    @Test("L36: at most one warning of each level in 25 s")
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

    @Test("L36: while a level lasts the warning is repeated, each 25 s")
    func repeated() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.kernel.others = 16 * gibibyte - 1200 * mebibyte
        harness.advance(.seconds(80))
        #expect(harness.core.memory.level == .warning)
        #expect((3...4).contains(warned(harness).count))
    }

    @Test("L36, L31: a suspended app hears of the last warning when it runs again")
    func heardLater() {
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

    @Test("L35: warned before anybody is killed")
    func warnedFirst() {
        let harness = Harness("photos", "mail")
        harness.suspend("mail")
        harness.launch("photos")
        harness.simulate(.critical)
        let warning = harness.effects.firstIndex { if case .notify(_, .memoryWarning) = $0 { true } else { false } }!
        let kill = harness.effects.firstIndex { if case .kill = $0 { true } else { false } }!
        #expect(warning < kill)
    }

    @Test(
        "who is ending, launching or waking is not warned",
        arguments: [Stage.launching, .waking, .terminating, .ending, .suspending])
    func notWarned(stage: Stage) {
        let harness = Harness("photos")
        harness.bring("photos", into: stage)
        harness.simulate(.warning)
        #expect(warned(harness) == [])
    }
}
