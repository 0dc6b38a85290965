import LifecycleCore
import Testing

@Suite("Memory: pressure")
struct PressureTests {
    /// Below the warning threshold (1 GiB of 16), above the critical one (512 MiB).
    private let scarce = 15 * gibibyte + 200 * mebibyte

    /// Reports a stall immediately and then every 2s, as PSI triggers do.
    private func stall(_ harness: Harness, _ level: MemoryLevel, for time: Duration) {
        let end = harness.now + time
        while harness.now < end {
            harness.handle(.memory(.pressureStalled(level)))
            harness.advance(min(.seconds(2), end - harness.now))
        }
    }

    @Test("an app that is being frozen is killed without notice, also at level warning (L40)")
    func takenWhileFreezing() throws {
        let harness = Harness("photos") { $0.suspendDelay = .milliseconds(4500) }
        harness.kernel.others = scarce
        harness.behave("photos") { $0.freezes = false }
        harness.launch("photos", .background)
        stall(harness, .warning, for: .seconds(5))
        #expect(harness.effects.contains(.run(harness.run("photos"), .suspension(.freeze(attempt: 1)))))
        harness.handle(.memory(.pressureStalled(.warning)))
        #expect(harness.notices("photos") == [.didEnterBackground, .memoryWarning(.warning)])
        #expect(try harness.receipt("photos").namespace == .jetsam)
    }

    @Test("at level warning a running background app gets willTerminate and its deadline of 5s (L40)")
    func endsByItself() throws {
        let harness = Harness("photos") { $0.suspendDelay = .seconds(60) }
        harness.kernel.others = scarce
        harness.launch("photos", .background)
        stall(harness, .warning, for: .seconds(6))
        #expect(harness.killed() == [])
        #expect(harness.notices("photos").last == .memoryWarning(.warning))
        harness.handle(.memory(.pressureStalled(.warning)))
        #expect(harness.notices("photos").last == .willTerminate)
        let receipt = try harness.receipt("photos")
        #expect(receipt.namespace == .jetsam)
        #expect(receipt.exit == .exited(0))
        #expect(receipt.explanation.hasPrefix("Terminated to free memory"))
    }

    @Test("a critical stall kills a suspended app if memory is scarce, and another not within 1s of its end")
    func critical() {
        let harness = Harness("photos", "mail", "music")
        for app in ["photos", "mail", "music"] { harness.suspend(app) }
        harness.advance(.seconds(1000))
        harness.kernel.others = scarce
        harness.handle(.memory(.pressureStalled(.critical)))
        #expect(harness.killed() == ["photos"])
        harness.advance(.milliseconds(999))
        harness.handle(.memory(.pressureStalled(.critical)))
        #expect(harness.killed() == ["photos"])
        harness.advance(.milliseconds(1))
        harness.handle(.memory(.pressureStalled(.critical)))
        #expect(harness.killed() == ["photos", "mail"])
        #expect(
            harness.receipts.first?.explanation
                == "Killed while suspended to free memory: the machine stalled because memory was short.")
    }

    @Test("a trigger only makes the daemon look: nothing is decided before the measurement (L39)")
    func triggerMeasures() {
        let harness = Harness("photos")
        harness.suspend("photos")
        harness.advance(.seconds(1000))
        harness.kernel.others = scarce
        harness.kernel.measures = false
        let mark = harness.mark
        harness.handle(.memory(.pressureStalled(.critical)))
        #expect(harness.effects(since: mark) == [.measureMemory])
        #expect(harness.core.memory.level == .normal)
    }

    @Test("with 24% available one trigger kills no app, whatever its state (L39)")
    func oneTrigger() {
        let harness = Harness("photos", "mail")
        harness.suspend("mail")
        harness.launch("photos")
        harness.kernel.others = 12 * gibibyte + 180 * mebibyte
        harness.handle(.memory(.pressureStalled(.critical)))
        #expect(harness.core.memory.level == .critical)
        stall(harness, .critical, for: .seconds(20))
        #expect(harness.killed() == [])
        #expect(harness.state("photos") == .active)
    }

    @Test("stalls kill an app with memory available where what was evicted is read again all the time (thrashing)")
    func thrashing() {
        let harness = Harness("photos")
        harness.suspend("photos")
        harness.kernel.others = 13 * gibibyte
        harness.handle(.memory(.pressureStalled(.critical)))
        harness.advance(.seconds(1))
        // 100 % of what is available in a second.
        harness.kernel.refaulted = harness.kernel.reading.available - 1
        harness.handle(.memory(.pressureStalled(.critical)))
        #expect(harness.killed() == [])
        harness.advance(.seconds(1))
        harness.kernel.refaulted *= 3
        harness.handle(.memory(.pressureStalled(.critical)))
        #expect(harness.killed() == ["photos"])
    }

    @Test("one critical stall followed by warnings is no longer critical after 3s")
    func criticalEnds() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.kernel.others = 13 * gibibyte
        harness.handle(.memory(.pressureStalled(.critical)))
        #expect(harness.core.memory.level == .critical)
        stall(harness, .warning, for: .seconds(4))
        #expect(harness.core.memory.level == .warning)
        #expect(harness.core.memory.cause == .pressure)
        stall(harness, .warning, for: .seconds(30))
        #expect(harness.core.memory.level == .warning)
        harness.advance(.seconds(4))
        #expect(harness.core.memory.level == .normal)
    }

    @Test("an app that is terminated for memory cannot extend its deadline (L25, L40)")
    func noExtension() throws {
        let harness = Harness("photos") { $0.suspendDelay = .seconds(60) }
        harness.behave("photos") { $0.terminating = .ignores }
        harness.kernel.others = scarce
        harness.launch("photos", .background)
        stall(harness, .warning, for: .seconds(6))
        harness.handle(.memory(.pressureStalled(.warning)))
        #expect(harness.state("photos") == .terminating)
        harness.handle(.run(harness.run("photos"), .deadline(.extended(by: .seconds(60)))))
        harness.advance(.seconds(5))
        #expect(try harness.receipt("photos").namespace == .watchdog)
        #expect(!harness.reports().contains { if case .deadlineExtended = $0 { true } else { false } })
    }

    @Test("a stall while more than 25% of the memory is available kills no app")
    func plentyAvailable() {
        let harness = Harness("photos")
        harness.suspend("photos")
        harness.kernel.others = 11 * gibibyte
        stall(harness, .critical, for: .seconds(20))
        #expect(harness.killed() == [])
        #expect(harness.core.memory.level == .normal)
        #expect(harness.state("photos") == .suspended)
        harness.kernel.others = scarce
        harness.handle(.memory(.pressureStalled(.critical)))
        #expect(harness.killed() == ["photos"])
    }

    @Test("stalls at level warning kill a suspended app after 5s, and another after 5s more")
    func warningWaits() {
        let harness = Harness("photos", "mail")
        harness.suspend("photos")
        harness.suspend("mail")
        harness.advance(.seconds(1000))
        harness.kernel.others = scarce
        stall(harness, .warning, for: .seconds(5))
        #expect(harness.core.memory.level == .warning)
        #expect(harness.killed() == [])
        harness.handle(.memory(.pressureStalled(.warning)))
        #expect(harness.killed() == ["photos"])
        stall(harness, .warning, for: .seconds(5))
        #expect(harness.killed() == ["photos"])
        harness.handle(.memory(.pressureStalled(.warning)))
        #expect(harness.killed() == ["photos", "mail"])
    }

    @Test("the 5s restart when stalls pause")
    func waitRestarts() {
        let harness = Harness("photos")
        harness.suspend("photos")
        harness.advance(.seconds(1000))
        harness.kernel.others = 13 * gibibyte
        harness.handle(.memory(.pressureStalled(.warning)))
        harness.advance(.seconds(4))
        #expect(harness.core.memory.level == .normal)
        harness.kernel.others = scarce
        harness.handle(.memory(.pressureStalled(.warning)))
        harness.advance(.seconds(2))
        harness.handle(.memory(.pressureStalled(.warning)))
        #expect(harness.killed() == [])
    }

    @Test("stalls kill no app in the foreground as long as more than the foreground's threshold is available")
    func stallsKeepForeground() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.kernel.others = scarce
        stall(harness, .warning, for: .seconds(30))
        stall(harness, .critical, for: .seconds(30))
        #expect(harness.state("photos") == .active)
    }

    @Test("at level warning no other app is terminated while one is terminating; at level critical it is killed")
    func waitsForTerminating() {
        let harness = Harness("photos", "mail") {
            $0.suspendDelay = .seconds(100); $0.terminateDeadline = .seconds(20)
        }
        harness.behave("photos") {
            $0.terminating = .ignores; $0.memory = 50 * mebibyte
        }
        harness.launch("photos", .background)
        harness.launch("mail", .background)
        harness.kernel.others = scarce
        stall(harness, .warning, for: .seconds(14))
        #expect(harness.state("photos") == .terminating)
        #expect(harness.state("mail") == .background)
        harness.handle(.memory(.pressureStalled(.critical)))
        #expect(harness.killed() == ["photos"])
    }

    // MARK: MemAvailable

    @Test(
        "MemAvailable below one threshold is a warning, below the other it is critical: then apps are killed until it suffices"
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

    @Test("a warning by MemAvailable ends 10% above its threshold (hysteresis)")
    func availableHysteresis() {
        let harness = Harness("photos")
        harness.configure { $0.warningAvailable = .bytes(1000 * mebibyte) }
        let levels: [(UInt64, MemoryLevel)] = [
            (1000, .normal), (999, .warning), (1050, .warning), (1099, .warning), (1100, .normal), (1050, .normal),
        ]
        for (available, level) in levels {
            harness.handle(.memory(.measured(.init(total: 16 * gibibyte, available: available * mebibyte, sizes: []))))
            #expect(harness.core.memory.level == level, "\(available)")
        }
    }

    @Test("thresholds in percent are of all memory, and values above 100% have no effect")
    func amounts() {
        #expect(MemoryAmount.percent(10).bytes(of: 5000) == 500)
        #expect(MemoryAmount.percent(-3).bytes(of: 5000) == 0)
        #expect(MemoryAmount.percent(300).bytes(of: 5000) == 5000)
        let harness = Harness("photos")
        harness.configure { $0.warningAvailable = .bytes(.max) }
        harness.suspend("photos")
        for _ in 0..<3 { harness.handle(.memory(.measured(harness.kernel.reading))) }
        #expect(harness.core.memory.level == .warning)
    }

    // MARK: Simulated levels

    @Test("a simulated warning warns apps and kills none, and a simulated normal level ends it")
    func simulatedWarning() {
        let harness = Harness("photos", "mail")
        harness.suspend("mail")
        harness.launch("photos")
        let request = harness.simulate(.warning)
        #expect(harness.answers[request] == .simulated(victim: nil))
        #expect(harness.notices("photos").last == .memoryWarning(.warning))
        #expect(harness.core.memory.level == .warning)
        #expect(harness.core.memory.cause == .simulated)
        harness.advance(.seconds(100))
        #expect(harness.killed() == [])
        harness.simulate(.normal)
        #expect(harness.core.memory.level == .normal)
        #expect(harness.state("mail") == .suspended)
    }

    @Test("a simulated critical level kills one app that is not in the foreground, and no second one")
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

    @Test("the end of a level is reported with the cause of the level")
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
