import LifecycleCore
import Testing

/// Who is killed for memory, and in which order (L38). The budget makes the choice: each victim brings all together
/// below it, or the next has to go too.
@Suite("Memory: who goes first")
struct JetsamTests {
    /// Lowers the budget until nobody is left, and says in which order they went.
    private func order(_ house: House) -> [String] {
        let mark = house.mark
        while house.core.memory.apps > 0 {
            let apps = house.core.memory.apps
            house.configure { $0.budget = apps - 1 }
            if house.core.memory.apps == apps { break }
        }
        return house.killed(since: mark)
    }

    private func size(_ house: House, _ name: String, _ mebibytes: UInt64) {
        house.behave(name) { $0.memory = mebibytes * mebibyte }
    }

    /// Lets the core hear of the sizes of what runs.
    private func measure(_ house: House) { house.happens(.memoryMeasured(house.kernel.reading)) }

    @Test("L38: suspended before background before inactive before active, whatever their sizes")
    func classes() {
        let house = House("active", "inactive", "background", "suspended") { $0.suspendDelay = .seconds(60) }
        house.register("suspended") { $0.suspendDelay = .seconds(1) }
        house.configure { $0.foregroundLimit = 2 }
        size(house, "suspended", 1)
        size(house, "background", 2)
        size(house, "inactive", 3)
        size(house, "active", 4)
        house.suspend("suspended")
        house.launch("background", .background)
        house.launch("active")
        house.launch("inactive")
        house.request("inactive", .interrupt)
        measure(house)
        #expect(order(house) == ["suspended", "background", "inactive", "active"])
    }

    @Test("L38: inside a class the largest goes first")
    func largest() {
        let house = House("small", "large", "middle")
        size(house, "small", 5)
        size(house, "large", 50)
        size(house, "middle", 20)
        for app in ["small", "large", "middle"] { house.suspend(app) }
        #expect(order(house) == ["large", "middle", "small"])
    }

    @Test("L38: a lower priority goes before a larger app, and a class before a priority")
    func priority() {
        let house = House("high", "low", "running")
        house.register("high") { $0.jetsamPriority = 10 }
        house.register("low") { $0.jetsamPriority = -10 }
        house.register("running") {
            $0.jetsamPriority = -1000; $0.suspendDelay = .seconds(60)
        }
        size(house, "high", 50)
        size(house, "low", 5)
        size(house, "running", 5)
        house.suspend("high")
        house.suspend("low")
        house.launch("running", .background)
        measure(house)
        #expect(order(house) == ["low", "high", "running"])
    }

    @Test("L38: inside a priority, who is over its own soft limit goes before a larger app")
    func softLimit() {
        let house = House("large", "over", "within")
        house.register("over") { $0.suspendedMemoryHigh = 4 * mebibyte }
        house.register("within") { $0.suspendedMemoryHigh = 100 * mebibyte }
        size(house, "large", 50)
        size(house, "over", 5)
        size(house, "within", 60)
        for app in ["large", "over", "within"] { house.suspend(app) }
        #expect(order(house) == ["over", "within", "large"])
    }

    @Test("L41: the soft limit of a running app is another than that of a suspended one")
    func softLimitsByState() {
        let house = House("a", "b") { $0.suspendDelay = .seconds(60) }
        house.register("a") { $0.memoryHigh = 4 * mebibyte }
        house.register("b") { $0.suspendedMemoryHigh = 4 * mebibyte }
        size(house, "a", 5)
        size(house, "b", 50)
        house.launch("a", .background)
        house.launch("b", .background)
        measure(house)
        #expect(order(house) == ["a", "b"])
    }

    @Test("L38: JetsamOrder=lru: who has been in its state for longest goes first")
    func lru() {
        let house = House("first", "second", "third")
        house.configure { $0.jetsamOrder = .lru }
        size(house, "first", 5)
        size(house, "second", 50)
        size(house, "third", 20)
        for app in ["first", "second", "third"] { house.suspend(app) }
        house.activate("first")
        house.suspend("first")
        #expect(order(house) == ["second", "third", "first"])
    }

    @Test("L38: of equals the one that was registered first goes first")
    func equals() {
        let house = House("b", "a", "c")
        for app in ["c", "a", "b"] { house.suspend(app) }
        #expect(order(house) == ["b", "a", "c"])
    }

    @Test("L38: a change of the manifest changes the order at once")
    func policyChange() {
        let house = House("a", "b")
        house.suspend("a")
        house.suspend("b")
        house.register("a") { $0.jetsamPriority = 5 }
        #expect(order(house) == ["b", "a"])
    }

    @Test(
        "an app on its way to the foreground counts with the inactive ones; one that was told to terminate with the background",
        arguments: [
            Stage.launching, .waking, .entering, .terminating,
        ])
    func onTheWay(stage: Stage) {
        let house = House("photos", "mail") { $0.suspendDelay = .seconds(60) }
        house.register("photos") {
            $0.suspendDelay = .seconds(1); $0.launchDeadline = nil
        }
        house.bring("photos", into: stage)
        house.behave("photos") {
            $0.memory = mebibyte; $0.dies = true
        }
        if stage == .waking || stage == .entering { house.activate("photos") }
        house.launch("mail", .background)
        size(house, "mail", 1)
        size(house, "photos", 50)
        measure(house)
        let first = order(house).first
        #expect(first == (stage == .terminating ? "photos" : "mail"))
    }

    // MARK: The budget

    @Test("over their budget the first is killed at once, and no more than it takes")
    func budget() throws {
        let house = House("photos", "mail", "music")
        house.configure { $0.budget = 60 * mebibyte }
        for app in ["photos", "mail", "music"] { size(house, app, 25) }
        house.suspend("photos")
        house.suspend("mail")
        #expect(house.killed() == [])
        house.suspend("music")
        #expect(house.killed() == ["photos"])
        #expect(house.core.memory.apps == 50 * mebibyte)
        #expect(
            try house.receipt("photos").explanation
                == "killed to give memory back: all apps together were over their budget")
        #expect(house.state("mail") == .suspended)
    }

    @Test("an app that grows over the budget while it runs is found by measuring")
    func growth() {
        let house = House("photos", "mail")
        house.configure { $0.budget = 100 * mebibyte }
        house.suspend("mail")
        house.launch("photos")
        house.advance(.seconds(1))
        size(house, "photos", 95)
        house.advance(.seconds(10))
        #expect(house.killed() == ["mail"])
        #expect(house.state("photos") == .active)
        size(house, "photos", 101)
        house.advance(.seconds(10))
        #expect(house.killed() == ["mail", "photos"])
    }

    @Test("the level is warning above nine tenths of the budget, and down to 85 % while it lasts; critical above it")
    func budgetLevels() {
        let house = House("photos") { $0.suspendDelay = .seconds(60) }
        house.configure { $0.budget = 1000 * mebibyte }
        house.launch("photos")
        let levels: [(UInt64, MemoryLevel)] = [
            (900, .normal), (901, .warning), (851, .warning), (850, .normal), (900, .normal), (1000, .warning),
        ]
        for (size, level) in levels {
            self.size(house, "photos", size)
            measure(house)
            #expect(house.core.memory.level == level, "\(size)")
        }
        size(house, "photos", 1001)
        measure(house)
        #expect(house.reports().contains(.memoryLevelChanged(.critical, .budget)))
        #expect(house.killed() == ["photos"])
    }

    // MARK: One at a time (L39)

    @Test("L39: while a victim is not gone no other is chosen, and after it only after a fresh measure")
    func oneAtATime() {
        let house = House("photos", "mail", "music")
        for app in ["photos", "mail", "music"] {
            size(house, app, 25)
            house.behave(app) { $0.dies = false }
            house.suspend(app)
        }
        house.kernel.measures = false
        house.configure { $0.budget = 30 * mebibyte }
        #expect(house.killed() == ["photos"])
        measure(house)
        house.configure { $0.budget = 29 * mebibyte }
        #expect(house.killed() == ["photos"])
        let mark = house.mark
        house.exit("photos", .signaled(9, coreDumped: false))
        #expect(house.killed(since: mark) == [])
        #expect(house.effects(since: mark).contains(.measureMemory))
        // Whatever else is a reason to look at it: the measure is awaited.
        house.configure { $0.budget = 28 * mebibyte }
        #expect(house.killed(since: mark) == [])
        measure(house)
        #expect(house.killed(since: mark) == ["mail"])
    }

    @Test("L39: a measure that was asked for before the victim was gone does not count")
    func staleMeasure() {
        let house = House("photos", "mail")
        for app in ["photos", "mail"] {
            house.behave(app) { $0.dies = false }
            house.suspend(app)
        }
        house.kernel.others = 15 * gibibyte + 900 * mebibyte
        house.kernel.measures = false
        house.happens(.pressureStalled(.critical))
        measure(house)
        #expect(house.killed() == ["photos"])
        // A check is under way when the victim goes.
        house.happens(.pressureStalled(.critical))
        let old = house.kernel.reading
        house.exit("photos", .signaled(9, coreDumped: false))
        house.happens(.memoryMeasured(old))
        #expect(house.killed() == ["photos"])
        #expect(house.effects.last == .measureMemory)
        // Enough came back.
        house.kernel.others = 2 * gibibyte
        measure(house)
        #expect(house.killed() == ["photos"])
        house.advance(.seconds(3))
        #expect(house.core.memory.level == .normal)
    }

    @Test("L39: an app that ends by itself is waited for as well: its memory is on its way already")
    func ownEndIsWaitedFor() {
        let house = House("photos", "mail")
        house.launch("mail")
        house.behave("mail") { $0.dies = false }
        house.suspend("photos")
        house.happens(.run(house.run("mail"), .exited(.exited(0), cpu: .zero, memory: 0)))
        let killed = house.killed()
        house.configure { $0.budget = 15 * mebibyte }
        #expect(house.killed() == killed)
        house.happens(.run(house.run("mail"), .emptied))
        #expect(house.killed() == killed)
        #expect(house.state("photos") == .suspended)
    }

    @Test("L40: a suspended app is killed without a word, also under pressure that leaves time")
    func withoutAWord() {
        let house = House("photos")
        house.suspend("photos")
        let mark = house.mark
        house.simulate(.critical)
        #expect(house.told("photos", since: mark) == [])
        #expect(house.killed() == ["photos"])
    }

    @Test("an app that jetsam took has lost nothing that it kept, and can be launched at once")
    func launchedAgain() {
        let house = House("photos")
        house.suspend("photos")
        house.simulate(.critical)
        #expect(house.state("photos") == .notRunning)
        let launch = house.launch("photos", .background, .fetch)
        #expect(house.answers[launch] == .done(.background))
        #expect(!house.effects.contains(.dropRestorationState(id("photos"))))
    }
}
