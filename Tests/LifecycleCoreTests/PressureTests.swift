import LifecycleCore
import Testing

@Suite("Memory: pressure")
struct PressureTests {
    /// A trigger at once and one every 2 s, as PSI gives them.
    private func stall(_ house: House, _ level: MemoryLevel, for time: Duration) {
        let end = house.now + time
        while house.now < end {
            house.happens(.pressureStalled(level))
            house.advance(min(.seconds(2), end - house.now))
        }
    }

    @Test("L40: an app that is being frozen is taken without a word, also where there is time")
    func takenWhileFreezing() throws {
        let house = House("photos") { $0.suspendDelay = .milliseconds(4500) }
        house.kernel.others = 13 * gibibyte
        house.behave("photos") { $0.freezes = false }
        house.launch("photos", .background)
        stall(house, .warning, for: .seconds(5))
        #expect(house.effects.contains(.freeze(house.run("photos"), attempt: 1)))
        house.happens(.pressureStalled(.warning))
        #expect(house.told("photos") == [.didEnterBackground, .memoryWarning(.warning)])
        #expect(try house.receipt("photos").namespace == .jetsam)
    }

    @Test("L40: at level warning an app that runs in the background is told, and has its five seconds")
    func endsByItself() throws {
        let house = House("photos") { $0.suspendDelay = .seconds(60) }
        house.kernel.others = 13 * gibibyte
        house.launch("photos", .background)
        stall(house, .warning, for: .seconds(6))
        #expect(house.killed() == [])
        #expect(house.told("photos").last == .memoryWarning(.warning))
        house.happens(.pressureStalled(.warning))
        #expect(house.told("photos").last == .willTerminate)
        let receipt = try house.receipt("photos")
        #expect(receipt.namespace == .jetsam)
        #expect(receipt.exit == .exited(0))
        #expect(receipt.explanation.hasPrefix("terminated to give memory back"))
    }

    @Test(
        "a stall at level critical takes a victim at once; another only after a measure, and not within the second after the last was gone"
    )
    func critical() {
        let house = House("photos", "mail", "music")
        for app in ["photos", "mail", "music"] { house.suspend(app) }
        house.kernel.others = 13 * gibibyte
        house.happens(.pressureStalled(.critical))
        #expect(house.killed() == ["photos"])
        house.advance(.milliseconds(999))
        house.happens(.pressureStalled(.critical))
        #expect(house.killed() == ["photos"])
        house.advance(.milliseconds(1))
        house.happens(.pressureStalled(.critical))
        #expect(house.killed() == ["photos", "mail"])
        #expect(
            house.receipts.first?.explanation == "killed to give memory back: the machine stalled for want of memory")
    }

    @Test("a stall while more than a quarter of the memory is available takes nobody: it is not for want of memory")
    func plentyAvailable() {
        let house = House("photos")
        house.suspend("photos")
        house.kernel.others = 11 * gibibyte
        stall(house, .critical, for: .seconds(20))
        #expect(house.killed() == [])
        #expect(house.core.memory.level == .normal)
        #expect(house.state("photos") == .suspended)
        house.kernel.others = 13 * gibibyte
        house.happens(.pressureStalled(.critical))
        #expect(house.killed() == ["photos"])
    }

    @Test("a stall at level warning takes nobody for 5 s, then a suspended app, then lets 5 s pass again")
    func warningHasPatience() {
        let house = House("photos", "mail")
        house.suspend("photos")
        house.suspend("mail")
        house.kernel.others = 13 * gibibyte
        stall(house, .warning, for: .seconds(5))
        #expect(house.core.memory.level == .warning)
        #expect(house.killed() == [])
        house.happens(.pressureStalled(.warning))
        #expect(house.killed() == ["photos"])
        stall(house, .warning, for: .seconds(5))
        #expect(house.killed() == ["photos"])
        house.happens(.pressureStalled(.warning))
        #expect(house.killed() == ["photos", "mail"])
    }

    @Test("stalls with a break between them begin anew")
    func patienceBeginsAnew() {
        let house = House("photos")
        house.suspend("photos")
        house.kernel.others = 13 * gibibyte
        house.happens(.pressureStalled(.warning))
        house.advance(.seconds(4))
        #expect(house.core.memory.level == .normal)
        house.happens(.pressureStalled(.warning))
        house.advance(.seconds(2))
        house.happens(.pressureStalled(.warning))
        #expect(house.killed() == [])
    }

    @Test("at level warning no app in the foreground is taken")
    func warningSparesTheForeground() {
        let house = House("photos")
        house.launch("photos")
        house.kernel.others = 13 * gibibyte
        stall(house, .warning, for: .seconds(30))
        #expect(house.state("photos") == .active)
        house.happens(.pressureStalled(.critical))
        #expect(house.killed() == ["photos"])
    }

    @Test("while an app that was told to terminate ends, no other is taken at level warning")
    func waitsForTheTerminating() {
        let house = House("photos", "mail") {
            $0.suspendDelay = .seconds(100); $0.terminateDeadline = .seconds(20)
        }
        house.behave("photos") {
            $0.terminating = .ignores; $0.memory = 50 * mebibyte
        }
        house.launch("photos", .background)
        house.launch("mail", .background)
        house.kernel.others = 13 * gibibyte
        stall(house, .warning, for: .seconds(14))
        #expect(house.state("photos") == .terminating)
        #expect(house.state("mail") == .background)
        house.happens(.pressureStalled(.critical))
        #expect(house.killed() == ["photos"])
    }

    // MARK: MemAvailable

    @Test(
        "MemAvailable below 10 % is a warning, below 5 % critical: then one after the other is taken until it is enough"
    )
    func available() {
        let house = House("photos", "mail", "music")
        house.configure {
            $0.warningAvailable = .bytes(2 * gibibyte); $0.criticalAvailable = .bytes(gibibyte)
        }
        for app in ["photos", "mail"] {
            house.behave(app) { $0.memory = gibibyte }
            house.suspend(app)
        }
        house.behave("music") { $0.memory = gibibyte }
        house.launch("music")
        house.kernel.others = 11 * gibibyte + 512 * mebibyte
        house.advance(.seconds(10))
        #expect(house.core.memory.level == .warning)
        #expect(house.core.memory.cause == .available)
        #expect(house.killed() == [])
        house.kernel.others = 13 * gibibyte + 512 * mebibyte
        house.advance(.seconds(10))
        #expect(house.killed() == ["photos", "mail"])
        #expect(house.state("music") == .active)
        #expect(house.core.memory.level == .warning)
        house.kernel.others = 2 * gibibyte
        house.advance(.seconds(10))
        #expect(house.core.memory.level == .normal)
    }

    @Test("a warning by MemAvailable is over only a tenth above the threshold, so that it does not flicker")
    func availableHysteresis() {
        let house = House("photos")
        house.configure { $0.warningAvailable = .bytes(1000 * mebibyte) }
        let levels: [(UInt64, MemoryLevel)] = [
            (1000, .normal), (999, .warning), (1050, .warning), (1099, .warning), (1100, .normal), (1050, .normal),
        ]
        for (available, level) in levels {
            house.happens(.memoryMeasured(.init(total: 16 * gibibyte, available: available * mebibyte, sizes: [])))
            #expect(house.core.memory.level == level, "\(available)")
        }
    }

    @Test("thresholds in per cent are of all memory; those beyond it do no harm")
    func amounts() {
        #expect(MemoryAmount.percent(10).bytes(of: 5000) == 500)
        #expect(MemoryAmount.percent(-3).bytes(of: 5000) == 0)
        #expect(MemoryAmount.percent(300).bytes(of: 5000) == 5000)
        let house = House("photos")
        house.configure { $0.warningAvailable = .bytes(.max) }
        house.suspend("photos")
        for _ in 0..<3 { house.happens(.memoryMeasured(house.kernel.reading)) }
        #expect(house.core.memory.level == .warning)
    }

    // MARK: Simulated levels

    @Test("a simulated warning warns, and takes nobody; normal ends it")
    func simulatedWarning() {
        let house = House("photos", "mail")
        house.suspend("mail")
        house.launch("photos")
        let request = house.simulate(.warning)
        #expect(house.answers[request] == .simulated(victim: nil))
        #expect(house.told("photos").last == .memoryWarning(.warning))
        #expect(house.core.memory.level == .warning)
        #expect(house.core.memory.cause == .simulated)
        house.advance(.seconds(100))
        #expect(house.killed() == [])
        house.simulate(.normal)
        #expect(house.core.memory.level == .normal)
        #expect(house.state("mail") == .suspended)
    }

    @Test("a simulated critical level takes one victim that nobody looks at, and no more by itself")
    func simulatedCritical() {
        let house = House("photos", "mail", "music")
        house.suspend("mail")
        house.suspend("music")
        house.launch("photos")
        let request = house.simulate(.critical)
        #expect(house.answers[request] == .simulated(victim: id("mail")))
        house.advance(.seconds(100))
        #expect(house.killed() == ["mail"])
        let again = house.simulate(.critical)
        #expect(house.answers[again] == .simulated(victim: id("music")))
        let none = house.simulate(.critical)
        #expect(house.answers[none] == .simulated(victim: nil))
        #expect(house.state("photos") == .active)
    }

    @Test("that a level is over is reported with what had brought it about")
    func levelIsOver() {
        let house = House("photos")
        house.simulate(.warning)
        house.simulate(.critical)
        house.simulate(.normal)
        let levels = house.reports().filter { if case .memoryLevelChanged = $0 { true } else { false } }
        #expect(
            levels == [
                .memoryLevelChanged(.warning, .simulated), .memoryLevelChanged(.critical, .simulated),
                .memoryLevelChanged(.normal, .simulated),
            ])
    }
}
