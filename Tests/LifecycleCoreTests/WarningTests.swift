import LifecycleCore
import Testing

@Suite("Memory: warnings")
struct WarningTests {
    /// Whom was told which level, in order.
    private func warned(_ house: House, since mark: Int = 0) -> [String] {
        house.effects(since: mark).compactMap { effect in
            guard case .notify(let run, .memoryWarning(let level)) = effect else { return nil }
            return "\(house.kernel.app(of: run)!) \(level)"
        }
    }

    @Test("L36: running apps are warned, the lowest priority first, then the largest; suspended ones are not woken")
    func order() {
        let house = House("small", "large", "high", "low", "suspended") { $0.suspendDelay = .seconds(60) }
        house.register("suspended") { $0.suspendDelay = .seconds(1) }
        house.register("high") { $0.jetsamPriority = 5 }
        house.register("low") { $0.jetsamPriority = -5 }
        house.suspend("suspended")
        house.behave("large") { $0.memory = 50 * mebibyte }
        for app in ["high", "small", "large", "low"] { house.launch(app, app == "high" ? .foreground : .background) }
        house.happens(.memoryMeasured(house.kernel.reading))
        house.simulate(.warning)
        #expect(warned(house) == ["low warning", "large warning", "small warning", "high warning"])
        #expect(house.state("suspended") == .suspended)
    }

    @Test("L36: at most one warning of each level in 25 s")
    func rate() {
        let house = House("photos")
        house.launch("photos")
        house.simulate(.warning)
        house.simulate(.critical)
        house.simulate(.normal)
        house.simulate(.warning)
        house.simulate(.critical)
        #expect(warned(house) == ["photos warning", "photos critical"])
        let mark = house.mark
        house.simulate(.normal)
        house.advance(.milliseconds(24_999))
        house.simulate(.warning)
        house.simulate(.critical)
        #expect(warned(house, since: mark) == [])
        house.simulate(.normal)
        house.advance(.milliseconds(1))
        house.simulate(.critical)
        house.simulate(.warning)
        #expect(warned(house, since: mark) == ["photos critical", "photos warning"])
    }

    @Test("L36: while a level lasts the warning is repeated, each 25 s")
    func repeated() {
        let house = House("photos")
        house.launch("photos")
        house.kernel.others = 16 * gibibyte - 1200 * mebibyte
        house.advance(.seconds(80))
        #expect(house.core.memory.level == .warning)
        #expect((3...4).contains(warned(house).count))
    }

    @Test("L36, L31: a suspended app hears of the last warning when it runs again")
    func heardLater() {
        let house = House("photos", "mail")
        house.suspend("photos")
        house.launch("mail")
        let mark = house.mark
        house.simulate(.warning)
        house.simulate(.normal)
        house.activate("photos")
        #expect(house.delivered("photos", since: mark).map { "\($0.kind) \($0.payload)" } == ["memory warning"])
        #expect(warned(house, since: mark) == ["mail warning"])
    }

    @Test("L35: warned before anybody is killed")
    func warnedFirst() {
        let house = House("photos", "mail")
        house.suspend("mail")
        house.launch("photos")
        house.simulate(.critical)
        let warning = house.effects.firstIndex { if case .notify(_, .memoryWarning) = $0 { true } else { false } }!
        let kill = house.effects.firstIndex { if case .kill = $0 { true } else { false } }!
        #expect(warning < kill)
    }

    @Test(
        "who is ending, launching or waking is not warned",
        arguments: [Stage.launching, .waking, .terminating, .ending, .suspending])
    func notWarned(stage: Stage) {
        let house = House("photos")
        house.bring("photos", into: stage)
        house.simulate(.warning)
        #expect(warned(house) == [])
    }
}
