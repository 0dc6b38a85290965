import LifecycleCore
import Testing

@Suite("Memory: pressure")
struct PressureTests {
    /// A trigger at once and one every 2 s, as PSI gives them.
    private func stall(_ harness: Harness, _ level: MemoryLevel, for time: Duration) {
        let end = harness.now + time
        while harness.now < end {
            harness.happens(.pressureStalled(level))
            harness.advance(min(.seconds(2), end - harness.now))
        }
    }

    @Test("L40: an app that is being frozen is taken without a word, also where there is time")
    func takenWhileFreezing() throws {
        let harness = Harness("photos") { $0.suspendDelay = .milliseconds(4500) }
        harness.kernel.others = 13 * gibibyte
        harness.behave("photos") { $0.freezes = false }
        harness.launch("photos", .background)
        stall(harness, .warning, for: .seconds(5))
        #expect(harness.effects.contains(.freeze(harness.run("photos"), attempt: 1)))
        harness.happens(.pressureStalled(.warning))
        #expect(harness.told("photos") == [.didEnterBackground, .memoryWarning(.warning)])
        #expect(try harness.receipt("photos").namespace == .jetsam)
    }

    @Test("L40: at level warning an app that runs in the background is told, and has its five seconds")
    func endsByItself() throws {
        let harness = Harness("photos") { $0.suspendDelay = .seconds(60) }
        harness.kernel.others = 13 * gibibyte
        harness.launch("photos", .background)
        stall(harness, .warning, for: .seconds(6))
        #expect(harness.killed() == [])
        #expect(harness.told("photos").last == .memoryWarning(.warning))
        harness.happens(.pressureStalled(.warning))
        #expect(harness.told("photos").last == .willTerminate)
        let receipt = try harness.receipt("photos")
        #expect(receipt.namespace == .jetsam)
        #expect(receipt.exit == .exited(0))
        #expect(receipt.explanation.hasPrefix("Terminated to free memory"))
    }

    @Test(
        "a stall at level critical takes a victim at once; another only after a measure, and not within the second after the last was gone"
    )
    func critical() {
        let harness = Harness("photos", "mail", "music")
        for app in ["photos", "mail", "music"] { harness.suspend(app) }
        harness.kernel.others = 13 * gibibyte
        harness.happens(.pressureStalled(.critical))
        #expect(harness.killed() == ["photos"])
        harness.advance(.milliseconds(999))
        harness.happens(.pressureStalled(.critical))
        #expect(harness.killed() == ["photos"])
        harness.advance(.milliseconds(1))
        harness.happens(.pressureStalled(.critical))
        #expect(harness.killed() == ["photos", "mail"])
        #expect(
            harness.receipts.first?.explanation
                == "Killed while suspended to free memory: the machine stalled because memory was short.")
    }

    @Test("a stall while more than a quarter of the memory is available takes nobody: it is not for want of memory")
    func plentyAvailable() {
        let harness = Harness("photos")
        harness.suspend("photos")
        harness.kernel.others = 11 * gibibyte
        stall(harness, .critical, for: .seconds(20))
        #expect(harness.killed() == [])
        #expect(harness.core.memory.level == .normal)
        #expect(harness.state("photos") == .suspended)
        harness.kernel.others = 13 * gibibyte
        harness.happens(.pressureStalled(.critical))
        #expect(harness.killed() == ["photos"])
    }

    @Test("a stall at level warning takes nobody for 5 s, then a suspended app, then lets 5 s pass again")
    func warningHasPatience() {
        let harness = Harness("photos", "mail")
        harness.suspend("photos")
        harness.suspend("mail")
        harness.kernel.others = 13 * gibibyte
        stall(harness, .warning, for: .seconds(5))
        #expect(harness.core.memory.level == .warning)
        #expect(harness.killed() == [])
        harness.happens(.pressureStalled(.warning))
        #expect(harness.killed() == ["photos"])
        stall(harness, .warning, for: .seconds(5))
        #expect(harness.killed() == ["photos"])
        harness.happens(.pressureStalled(.warning))
        #expect(harness.killed() == ["photos", "mail"])
    }

    @Test("stalls with a break between them begin anew")
    func patienceBeginsAnew() {
        let harness = Harness("photos")
        harness.suspend("photos")
        harness.kernel.others = 13 * gibibyte
        harness.happens(.pressureStalled(.warning))
        harness.advance(.seconds(4))
        #expect(harness.core.memory.level == .normal)
        harness.happens(.pressureStalled(.warning))
        harness.advance(.seconds(2))
        harness.happens(.pressureStalled(.warning))
        #expect(harness.killed() == [])
    }

    @Test("at level warning no app in the foreground is taken")
    func warningSparesTheForeground() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.kernel.others = 13 * gibibyte
        stall(harness, .warning, for: .seconds(30))
        #expect(harness.state("photos") == .active)
        harness.happens(.pressureStalled(.critical))
        #expect(harness.killed() == ["photos"])
    }

    @Test("while an app that was told to terminate ends, no other is taken at level warning")
    func waitsForTheTerminating() {
        let harness = Harness("photos", "mail") {
            $0.suspendDelay = .seconds(100); $0.terminateDeadline = .seconds(20)
        }
        harness.behave("photos") {
            $0.terminating = .ignores; $0.memory = 50 * mebibyte
        }
        harness.launch("photos", .background)
        harness.launch("mail", .background)
        harness.kernel.others = 13 * gibibyte
        stall(harness, .warning, for: .seconds(14))
        #expect(harness.state("photos") == .terminating)
        #expect(harness.state("mail") == .background)
        harness.happens(.pressureStalled(.critical))
        #expect(harness.killed() == ["photos"])
    }

    // MARK: MemAvailable

    @Test(
        "MemAvailable below 10 % is a warning, below 5 % critical: then one after the other is taken until it is enough"
    )
    func available() {
        let harness = Harness("photos", "mail", "music")
        harness.configure {
            $0.warningAvailable = .bytes(2 * gibibyte); $0.criticalAvailable = .bytes(gibibyte)
        }
        for app in ["photos", "mail"] {
            harness.behave(app) { $0.memory = gibibyte }
            harness.suspend(app)
        }
        harness.behave("music") { $0.memory = gibibyte }
        harness.launch("music")
        harness.kernel.others = 11 * gibibyte + 512 * mebibyte
        harness.advance(.seconds(10))
        #expect(harness.core.memory.level == .warning)
        #expect(harness.core.memory.cause == .available)
        #expect(harness.killed() == [])
        harness.kernel.others = 13 * gibibyte + 512 * mebibyte
        harness.advance(.seconds(10))
        #expect(harness.killed() == ["photos", "mail"])
        #expect(harness.state("music") == .active)
        #expect(harness.core.memory.level == .warning)
        harness.kernel.others = 2 * gibibyte
        harness.advance(.seconds(10))
        #expect(harness.core.memory.level == .normal)
    }

    @Test("a warning by MemAvailable is over only a tenth above the threshold, so that it does not flicker")
    func availableHysteresis() {
        let harness = Harness("photos")
        harness.configure { $0.warningAvailable = .bytes(1000 * mebibyte) }
        let levels: [(UInt64, MemoryLevel)] = [
            (1000, .normal), (999, .warning), (1050, .warning), (1099, .warning), (1100, .normal), (1050, .normal),
        ]
        for (available, level) in levels {
            harness.happens(.memoryMeasured(.init(total: 16 * gibibyte, available: available * mebibyte, sizes: [])))
            #expect(harness.core.memory.level == level, "\(available)")
        }
    }

    @Test("thresholds in per cent are of all memory; those beyond it do no harm")
    func amounts() {
        #expect(MemoryAmount.percent(10).bytes(of: 5000) == 500)
        #expect(MemoryAmount.percent(-3).bytes(of: 5000) == 0)
        #expect(MemoryAmount.percent(300).bytes(of: 5000) == 5000)
        let harness = Harness("photos")
        harness.configure { $0.warningAvailable = .bytes(.max) }
        harness.suspend("photos")
        for _ in 0..<3 { harness.happens(.memoryMeasured(harness.kernel.reading)) }
        #expect(harness.core.memory.level == .warning)
    }

    // MARK: Simulated levels

    @Test("a simulated warning warns, and takes nobody; normal ends it")
    func simulatedWarning() {
        let harness = Harness("photos", "mail")
        harness.suspend("mail")
        harness.launch("photos")
        let request = harness.simulate(.warning)
        #expect(harness.answers[request] == .simulated(victim: nil))
        #expect(harness.told("photos").last == .memoryWarning(.warning))
        #expect(harness.core.memory.level == .warning)
        #expect(harness.core.memory.cause == .simulated)
        harness.advance(.seconds(100))
        #expect(harness.killed() == [])
        harness.simulate(.normal)
        #expect(harness.core.memory.level == .normal)
        #expect(harness.state("mail") == .suspended)
    }

    @Test("a simulated critical level takes one victim that nobody looks at, and no more by itself")
    func simulatedCritical() {
        let harness = Harness("photos", "mail", "music")
        harness.suspend("mail")
        harness.suspend("music")
        harness.launch("photos")
        let request = harness.simulate(.critical)
        #expect(harness.answers[request] == .simulated(victim: id("mail")))
        harness.advance(.seconds(100))
        #expect(harness.killed() == ["mail"])
        let again = harness.simulate(.critical)
        #expect(harness.answers[again] == .simulated(victim: id("music")))
        let none = harness.simulate(.critical)
        #expect(harness.answers[none] == .simulated(victim: nil))
        #expect(harness.state("photos") == .active)
    }

    @Test("that a level is over is reported with what had brought it about")
    func levelIsOver() {
        let harness = Harness("photos")
        harness.simulate(.warning)
        harness.simulate(.critical)
        harness.simulate(.normal)
        let levels = harness.reports().filter { if case .memoryLevelChanged = $0 { true } else { false } }
        #expect(
            levels == [
                .memoryLevelChanged(.warning, .simulated), .memoryLevelChanged(.critical, .simulated),
                .memoryLevelChanged(.normal, .simulated),
            ])
    }
}
