import LifecycleCore
import Testing

/// Tests of the jetsam order (L38). A lowered budget makes jetsam choose: each victim brings the sum below the budget,
/// or the next app is killed too.
@Suite("Memory: jetsam order")
struct JetsamTests {
    /// Lowers the budget until no app is left. Returns the victims in order. Running apps have a second to answer a warning,
    /// and 5s if there is no other app.
    private func order(_ harness: Harness) -> [String] {
        let mark = harness.mark
        while harness.core.memory.apps > 0 {
            let apps = harness.core.memory.apps
            harness.configure { $0.budget = apps - 1 }
            harness.advance(.seconds(8))
            if harness.core.memory.apps == apps { break }
        }
        return harness.killed(since: mark)
    }

    private func size(_ harness: Harness, _ name: String, _ mebibytes: UInt64) {
        harness.behave(name) { $0.memory = mebibytes * mebibyte }
    }

    /// Reports the sizes of the running apps to the core.
    private func measure(_ harness: Harness) { harness.handle(.memory(.measured(harness.kernel.reading))) }

    @Test("suspended apps are killed before background, inactive and active ones, whatever their sizes (L38)")
    func classes() {
        let harness = Harness("active", "inactive", "background", "suspended") { $0.suspendDelay = .seconds(60) }
        harness.register("suspended") { $0.suspendDelay = .seconds(1) }
        harness.configure { $0.foregroundLimit = 2 }
        size(harness, "suspended", 1)
        size(harness, "background", 2)
        size(harness, "inactive", 3)
        size(harness, "active", 4)
        harness.suspend("suspended")
        harness.launch("background", .background)
        harness.launch("active")
        harness.launch("inactive")
        harness.request("inactive", .interrupt)
        measure(harness)
        #expect(order(harness) == ["suspended", "background", "inactive", "active"])
    }

    @Test("the largest app of a class is killed first (L38)")
    func largest() {
        let harness = Harness("small", "large", "middle")
        size(harness, "small", 5)
        size(harness, "large", 50)
        size(harness, "middle", 20)
        for app in ["small", "large", "middle"] { harness.suspend(app) }
        #expect(order(harness) == ["large", "middle", "small"])
    }

    @Test("the class counts before the priority, and the priority before the size (L38)")
    func priority() {
        let harness = Harness("high", "low", "running")
        harness.register("high") { $0.jetsamPriority = 10 }
        harness.register("low") { $0.jetsamPriority = -10 }
        harness.register("running") {
            $0.jetsamPriority = -1000; $0.suspendDelay = .seconds(60)
        }
        size(harness, "high", 50)
        size(harness, "low", 5)
        size(harness, "running", 5)
        harness.suspend("high")
        harness.suspend("low")
        harness.launch("running", .background)
        measure(harness)
        #expect(order(harness) == ["low", "high", "running"])
    }

    @Test("an app over its soft limit is killed before a larger one of the same priority (L38)")
    func softLimit() {
        let harness = Harness("large", "over", "within")
        harness.register("over") { $0.suspendedMemoryHigh = 4 * mebibyte }
        harness.register("within") { $0.suspendedMemoryHigh = 100 * mebibyte }
        size(harness, "large", 50)
        size(harness, "over", 5)
        size(harness, "within", 60)
        for app in ["large", "over", "within"] { harness.suspend(app) }
        #expect(order(harness) == ["over", "within", "large"])
    }

    @Test("running and suspended apps have separate soft limits (L41)")
    func softLimitsByState() {
        let harness = Harness("a", "b") { $0.suspendDelay = .seconds(60) }
        harness.register("a") { $0.memoryHigh = 4 * mebibyte }
        harness.register("b") { $0.suspendedMemoryHigh = 4 * mebibyte }
        size(harness, "a", 5)
        size(harness, "b", 50)
        harness.launch("a", .background)
        harness.launch("b", .background)
        measure(harness)
        #expect(order(harness) == ["a", "b"])
    }

    @Test("with JetsamOrder=lru the app that entered its state first is killed first (L38)")
    func lru() {
        let harness = Harness("first", "second", "third")
        harness.configure { $0.jetsamOrder = .lru }
        size(harness, "first", 5)
        size(harness, "second", 50)
        size(harness, "third", 20)
        for app in ["first", "second", "third"] { harness.suspend(app) }
        harness.activate("first")
        harness.suspend("first")
        #expect(order(harness) == ["second", "third", "first"])
    }

    @Test("of equal apps the one that was registered first is killed first (L38)")
    func equals() {
        let harness = Harness("b", "a", "c")
        for app in ["c", "a", "b"] { harness.suspend(app) }
        #expect(order(harness) == ["b", "a", "c"])
    }

    @Test("a changed manifest changes the order immediately (L38)")
    func policyChange() {
        let harness = Harness("a", "b")
        harness.suspend("a")
        harness.suspend("b")
        harness.register("a") { $0.jetsamPriority = 5 }
        #expect(order(harness) == ["b", "a"])
    }

    @Test(
        "an app on its way to the foreground counts as inactive, one that is terminating as background",
        arguments: [
            Stage.launching, .waking, .entering, .terminating,
        ])
    func onTheWay(stage: Stage) {
        let harness = Harness("photos", "mail") { $0.suspendDelay = .seconds(60) }
        harness.register("photos") {
            $0.suspendDelay = .seconds(1); $0.launchDeadline = nil
        }
        harness.move("photos", to: stage)
        harness.behave("photos") {
            $0.memory = mebibyte; $0.dies = true
        }
        if stage == .waking || stage == .entering { harness.activate("photos") }
        harness.launch("mail", .background)
        size(harness, "mail", 1)
        size(harness, "photos", 50)
        measure(harness)
        let first = order(harness).first
        #expect(first == (stage == .terminating ? "photos" : "mail"))
    }

    // MARK: The budget

    @Test("when the apps exceed their budget, jetsam kills immediately, and no more apps than necessary")
    func budget() throws {
        let harness = Harness("photos", "mail", "music")
        harness.configure { $0.budget = 60 * mebibyte }
        for app in ["photos", "mail", "music"] { size(harness, app, 25) }
        harness.suspend("photos")
        harness.suspend("mail")
        #expect(harness.killed() == [])
        harness.suspend("music")
        #expect(harness.killed() == ["photos"])
        #expect(harness.core.memory.apps == 50 * mebibyte)
        #expect(
            try harness.receipt("photos").explanation
                == "Killed while suspended to free memory: all apps together exceeded Budget=.")
        #expect(harness.state("mail") == .suspended)
    }

    @Test("measurements find an app that grows over the budget while it runs")
    func growth() {
        let harness = Harness("photos", "mail")
        harness.configure { $0.budget = 100 * mebibyte }
        harness.suspend("mail")
        harness.launch("photos")
        harness.advance(.seconds(1))
        size(harness, "photos", 95)
        harness.advance(.seconds(10))
        #expect(harness.killed() == ["mail"])
        #expect(harness.state("photos") == .active)
        size(harness, "photos", 101)
        harness.advance(.seconds(10))
        #expect(harness.killed() == ["mail", "photos"])
    }

    @Test("the level is warning above 90% of the budget until the use falls below 85%, and critical above the budget")
    func budgetLevels() {
        let harness = Harness("photos") { $0.suspendDelay = .seconds(60) }
        harness.configure { $0.budget = 1000 * mebibyte }
        harness.launch("photos")
        let levels: [(UInt64, MemoryLevel)] = [
            (900, .normal), (901, .warning), (851, .warning), (850, .normal), (900, .normal), (1000, .warning),
        ]
        for (size, level) in levels {
            self.size(harness, "photos", size)
            measure(harness)
            #expect(harness.core.memory.level == level, "\(size)")
        }
        size(harness, "photos", 1001)
        measure(harness)
        #expect(harness.reports().contains(.memoryLevelChanged(.critical, .budget)))
        harness.advance(.seconds(7))
        #expect(harness.killed() == ["photos"])
    }

    // MARK: What is on its way (L39)

    @Test("what a victim gives back counts until a measurement that began after its end (L39)")
    func staleMeasure() {
        let harness = Harness("photos", "mail")
        for app in ["photos", "mail"] {
            size(harness, app, 500)
            harness.behave(app) { $0.dies = false }
            harness.suspend(app)
        }
        harness.advance(.seconds(1000))
        harness.kernel.others = 15 * gibibyte
        harness.kernel.measures = false
        harness.handle(.memory(.pressureStalled(.critical)))
        #expect(harness.killed() == [])
        measure(harness)
        #expect(harness.killed() == ["photos"])
        // A measurement is in progress when the victim ends.
        harness.handle(.memory(.pressureStalled(.critical)))
        let old = harness.kernel.reading
        harness.exit("photos", .signaled(9, coreDumped: false))
        harness.handle(.memory(.measured(old)))
        #expect(harness.killed() == ["photos"])
        #expect(harness.effects.last == .measureMemory)
        // The victim freed enough memory.
        harness.kernel.others = 2 * gibibyte
        measure(harness)
        #expect(harness.killed() == ["photos"])
        harness.advance(.seconds(3))
        #expect(harness.core.memory.level == .normal)
    }

    @Test("jetsam waits for an app that ends by itself, because it frees memory too (L39)")
    func selfInitiatedEndIsAwaited() {
        let harness = Harness("photos", "mail")
        harness.launch("mail")
        harness.behave("mail") { $0.dies = false }
        harness.suspend("photos")
        harness.handle(.run(harness.run("mail"), .process(.exited(.exited(0), cpu: .zero, memory: 0))))
        let killed = harness.killed()
        harness.configure { $0.budget = 15 * mebibyte }
        #expect(harness.killed() == killed)
        harness.handle(.run(harness.run("mail"), .process(.emptied)))
        #expect(harness.killed() == killed)
        #expect(harness.state("photos") == .suspended)
    }

    @Test("a suspended app is killed without notice, also at level warning (L40)")
    func withoutNotice() {
        let harness = Harness("photos")
        harness.suspend("photos")
        let mark = harness.mark
        harness.simulate(.critical)
        #expect(harness.notices("photos", since: mark) == [])
        #expect(harness.killed() == ["photos"])
    }

    @Test("an app that jetsam killed keeps its restoration state and can be launched immediately")
    func relaunchAfterJetsam() {
        let harness = Harness("photos")
        harness.suspend("photos")
        harness.simulate(.critical)
        #expect(harness.state("photos") == .notRunning)
        let launch = harness.launch("photos", .background, .fetch)
        #expect(harness.answers[launch] == .done(.background))
        #expect(!harness.effects.contains(.dropRestorationState(id("photos"))))
    }
}
