import Testing

@testable import LifecycleCore

/// Tests of `JetsamOrder=balanced` (L38). The size of 64 MiB that is added to each app keeps small apps nearly equal.
@Suite("Memory: the balanced jetsam order")
struct BalancedJetsamTests {
    private static func harness(_ apps: [(name: String, size: UInt64)]) -> Harness {
        let harness = Harness()
        harness.configure { $0.jetsamOrder = .balanced }
        for app in apps {
            harness.register(app.name)
            harness.behave(app.name) { $0.memory = app.size * mebibyte }
        }
        return harness
    }

    private static func use(_ harness: Harness, _ name: String) {
        harness.activate(name)
        harness.advance(.seconds(1))
        harness.background(name)
        harness.advance(.seconds(2))
    }

    /// The order in which jetsam would kill the apps, without a kill.
    private static func order(_ harness: Harness) -> [String] {
        harness.core.jetsam.smallest(100).map { harness.core.apps[$0].id.name }
    }

    /// Kills the first app of the order.
    private static func killOne(_ harness: Harness) {
        harness.configure { $0.budget = harness.core.memory.apps - 1 }
        harness.configure { $0.budget = nil }
    }

    @Test("with JetsamOrder=balanced the larger of two apps with as many uses is killed first (L38)")
    func size() {
        let harness = Self.harness([("small", 5), ("large", 500), ("middle", 200)])
        for app in ["large", "small", "middle"] { Self.use(harness, app) }
        #expect(Self.order(harness) == ["large", "middle", "small"])
    }

    @Test("with JetsamOrder=balanced an app that is used more often is killed after a smaller one (L38)")
    func uses() {
        let harness = Self.harness([("small", 100), ("large", 500)])
        for _ in 0..<8 { Self.use(harness, "large") }
        Self.use(harness, "small")
        #expect(Self.order(harness) == ["small", "large"])
    }

    @Test("with JetsamOrder=balanced the order of the classes, priorities and soft limits stays (L38)")
    func classes() {
        let harness = Self.harness([("often", 10), ("prior", 500), ("over", 10), ("front", 900)])
        harness.register("often") { $0.jetsamPriority = -1 }
        harness.register("prior") { $0.jetsamPriority = 1 }
        harness.register("over") {
            $0.jetsamPriority = -1
            $0.suspendedMemoryHigh = mebibyte
        }
        for app in ["often", "often", "often", "over", "prior"] { Self.use(harness, app) }
        harness.activate("front")
        #expect(Self.order(harness) == ["over", "often", "prior", "front"])
    }

    @Test("with JetsamOrder=balanced apps that are not used age with each app that is killed (L38)")
    func ages() {
        let harness = Self.harness([("small", 50), ("large", 800), ("other", 800)])
        for app in ["small", "large", "other"] { Self.use(harness, app) }
        #expect(Self.order(harness).last == "small")
        var kills = 0
        while Self.order(harness).first != "small", kills < 100 {
            Self.killOne(harness)
            kills += 1
            for app in ["large", "other"] { Self.use(harness, app) }
        }
        #expect(kills > 1)
        #expect(kills < 10)
    }

    @Test("with JetsamOrder=balanced the order does not change while nothing happens (L38)")
    func time() {
        let harness = Self.harness([("small", 50), ("large", 800), ("other", 300)])
        for app in ["small", "large", "other"] { Self.use(harness, app) }
        let before = Self.order(harness)
        harness.advance(.seconds(100_000))
        harness.register("small")
        #expect(Self.order(harness) == before)
    }

    @Test("a launch halves the uses that were counted, and at most 32 count")
    func usesAreBounded() throws {
        let harness = Self.harness([("app", 50)])
        for _ in 0..<40 { Self.use(harness, "app") }
        #expect(harness.core.apps[0].credit.uses == 32)
        harness.exit("app")
        Self.use(harness, "app")
        #expect(harness.core.apps[0].credit.uses == 18, "half of 32, a launch and a stay in the foreground")
    }

    @Test("with JetsamOrder=largest or lru no uses are counted or saved")
    func otherOrders() {
        for order in [ManagerPolicy.JetsamOrder.largest, .lru] {
            let harness = Self.harness([("app", 50)])
            harness.configure { $0.jetsamOrder = order }
            Self.use(harness, "app")
            Self.killOne(harness)
            Self.use(harness, "app")
            #expect(harness.core.apps[0].credit == JetsamCredit())
        }
    }

    @Test("credits survive the daemon, and so does the level of the last app that was killed")
    func recovery() throws {
        let harness = Self.harness([("small", 50), ("large", 800), ("other", 300)])
        for app in ["small", "large", "other"] { Self.use(harness, app) }
        Self.killOne(harness)
        Self.use(harness, "other")
        harness.unregister("large")
        harness.register("new")
        harness.launch("new")
        let recovered = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(recovered.difference(from: harness.core) == nil)
        #expect(recovered.jetsamLevel == harness.core.jetsamLevel)
        #expect(recovered.jetsamLevel > 0)
    }

    @Test("a credit never overflows, whatever was saved")
    func overflow() {
        var credit = JetsamCredit(uses: JetsamCredit.maximumUses, level: .max - 1)
        #expect(credit.credit(of: 0) == .max)
        credit.level = 0
        #expect(credit.credit(of: .max) == 0)
        #expect(credit.credit(of: 1 << 34) > 0)
    }

    /// Three apps of 800 MiB in turn beside twenty of 50 MiB that are not used again, with room for two of the large ones and
    /// all others. Returns in which of the 60 switches the app was launched.
    private static func rotation(_ order: ManagerPolicy.JetsamOrder) -> [Int] {
        let small = (0..<20).map { "small\($0)" }
        let large = (0..<3).map { "large\($0)" }
        let harness = harness(small.map { ($0, 50) } + large.map { ($0, 800) })
        harness.configure {
            $0.jetsamOrder = order
            $0.budget = 2650 * mebibyte
        }
        for app in small { use(harness, app) }
        var launches: [Int] = []
        for turn in 0..<60 {
            let mark = harness.mark
            use(harness, large[turn % 3])
            if harness.effects(since: mark).contains(where: { if case .spawn = $0 { true } else { false } }) {
                launches.append(turn)
            }
        }
        return launches
    }

    @Test("three large apps in turn beside small ones that are not used: with balanced the small ones are killed (L38)")
    func rotation() {
        #expect(Self.rotation(.lru) == [0, 1, 2])
        #expect(Self.rotation(.largest).count == 41)
        let launches = Self.rotation(.balanced)
        #expect((4..<20).contains(launches.count), "the large ones first, and then the small ones: \(launches)")
        #expect(launches.allSatisfy { $0 < 30 }, "\(launches)")
    }
}
