import LifecycleCore
import Testing

/// When, and how many (L35, L38, L39): by the machine's memory, with 16 GiB. The thresholds are 1 GiB, 512 MiB and, for the
/// foreground, 128 MiB.
@Suite("Memory: victims")
struct VictimTests {
    private func leave(_ harness: Harness, _ mebibytes: UInt64) { harness.leave(mebibytes: mebibytes) }

    private func measure(_ harness: Harness) { harness.handle(.memory(.measured(harness.kernel.reading))) }

    // MARK: How many

    @Test("the shortest prefix of the order that covers the deficit is killed at once (L39)")
    func prefix() {
        let harness = Harness(suspended: [("a", 200), ("b", 190), ("c", 180), ("d", 170), ("e", 160)])
        for app in ["a", "b", "c", "d", "e"] { harness.behave(app) { $0.dies = false } }
        // 412 MiB are missing, and some that are filled until the next look.
        leave(harness, 100)
        #expect(harness.killed() == ["a", "b", "c"])
        #expect(
            harness.receipts.isEmpty && harness.core.memory.level == .critical
                && harness.core.memory.cause == .available)
        // What they give back is on its way.
        measure(harness)
        harness.advance(.milliseconds(99))
        #expect(harness.killed() == ["a", "b", "c"])
    }

    @Test("each victim's receipt names the apps that were left at its turn (L45)")
    func candidates() throws {
        let harness = Harness(suspended: [("a", 300), ("b", 200), ("c", 100)])
        leave(harness, 100)
        #expect(harness.killed() == ["a", "b"])
        #expect(try harness.receipt("a").candidates.map(\.app.name) == ["a", "b", "c"])
        #expect(try harness.receipt("b").candidates.map(\.app.name) == ["b", "c"])
        #expect(
            try harness.receipt("a").explanation
                == "Killed while suspended to free memory: the machine was low on available memory.")
    }

    @Test("what is filled until the next look belongs to the deficit (L39)")
    func fillRate() {
        let harness = Harness(suspended: [("a", 200), ("b", 190), ("c", 180)])
        leave(harness, 900)
        // 500 MiB in 100 ms: 12 are missing now, and 409 more at the next look, at 4 GiB/s at most.
        harness.delay(.milliseconds(100))
        leave(harness, 500)
        #expect(harness.killed() == ["a", "b", "c"])
        let slow = Harness(suspended: [("a", 200), ("b", 190), ("c", 180)])
        leave(slow, 900)
        slow.delay(.seconds(100))
        leave(slow, 500)
        #expect(slow.killed() == ["a"])
    }

    @Test(
        "nothing is killed for what may be filled while a quarter is available; memory is measured sooner (L35)",
        arguments: [true, false])
    func plenty(isStillFilled: Bool) {
        let harness = Harness(suspended: [("a", 100), ("b", 90), ("c", 80)])
        harness.kernel.total = gibibyte
        leave(harness, 510)
        harness.delay(.milliseconds(100))
        // 250 MiB in 100 ms: as much at the next look would leave 10, and 16 are what apps in the foreground need.
        leave(harness, 260)
        #expect(harness.killed() == [])
        #expect(harness.core.nextDeadline == harness.now + .milliseconds(25))
        harness.delay(.milliseconds(25))
        leave(harness, isStillFilled ? 200 : 260)
        #expect(harness.killed() == (isStillFilled ? ["a"] : []))
        harness.delay(.milliseconds(25))
        measure(harness)
        #expect(harness.killed() == (isStillFilled ? ["a"] : []))
        // A rate that is over is believed no longer than 50 ms.
        #expect(isStillFilled || harness.core.nextDeadline == nil)
    }

    @Test(
        "a newcomer that fills 2 GiB/s beside 8 suspended apps of 300 MiB never runs out of memory before they are used up"
    )
    func newcomer() {
        let harness = Harness("new") { $0.launchDeadline = nil }
        harness.kernel.total = 4 * gibibyte
        harness.kernel.others = 600 * mebibyte
        let apps = (0..<8).map { "app\($0)" }
        for app in apps {
            harness.register(app)
            harness.behave(app) { $0.memory = 300 * mebibyte }
            harness.suspend(app)
        }
        harness.behave("new") { $0.memory = 10 * mebibyte }
        harness.launch("new")
        var least = UInt64.max
        for _ in 0..<((8 * 300 + 800) / 20) {
            harness.behave("new") { $0.memory += 20 * mebibyte }
            harness.advance(.milliseconds(10))
            if apps.contains(where: { harness.state($0) == .suspended }) {
                least = min(least, harness.kernel.reading.available)
            }
        }
        #expect(least > 0)
        #expect(harness.state("new") == .active)
        #expect(Set(harness.killed()).isSuperset(of: apps.prefix(6)))
    }

    @Test("one event kills at most 16 apps; the others follow")
    func bounded() {
        let harness = Harness(suspended: (0..<40).map { ("app\($0)", 10) })
        for number in 0..<40 { harness.behave("app\(number)") { $0.dies = false } }
        leave(harness, 200)
        #expect(harness.killed().count == 16)
        harness.advance(.milliseconds(2))
        #expect(harness.killed().count == 32)
    }

    // MARK: When

    @Test(
        "thresholds: shares of all memory within bounds, smaller ones of small machines, and what is configured as it is"
    )
    func thresholds() {
        var policy = ManagerPolicy()
        let table: [(UInt64, UInt64, UInt64, UInt64)] = [
            (256, 32, 16, 4), (1024, 128, 64, 16), (4096, 409, 204, 51), (16384, 1024, 512, 128),
            (524_288, 1024, 512, 128),
        ]
        for (total, warning, critical, foreground) in table {
            let found = policy.thresholds(of: total * mebibyte)
            #expect(found.warning >> 20 == warning && found.critical >> 20 == critical, "\(total)")
            #expect(found.foreground >> 20 == foreground, "\(total)")
        }
        policy.warningAvailable = .percent(50)
        policy.criticalAvailable = .bytes(3)
        #expect(
            policy.thresholds(of: 1000 * gibibyte)
                == MemoryThresholds(warning: 500 * gibibyte, critical: 3, foreground: 0))
    }

    @Test("apps are warned no later than they are killed, whichever of the thresholds are set (L35)")
    func order() {
        let table: [(MemoryAmount?, MemoryAmount?, UInt64, UInt64)] = [
            (nil, .percent(5), 1638, 1638), (.bytes(100 * mebibyte), nil, 100, 100),
            (.percent(10), .percent(20), 6553, 6553), (.percent(20), .percent(10), 6553, 3276),
        ]
        for (warning, critical, isWarning, isCritical) in table {
            var policy = ManagerPolicy()
            (policy.warningAvailable, policy.criticalAvailable) = (warning, critical)
            let found = policy.thresholds(of: 32 * gibibyte)
            #expect(found.warning >> 20 == isWarning && found.critical >> 20 == isCritical)
        }
    }

    @Test("running apps have a second to answer the warning before an app is killed (L35)")
    func warnedFirst() {
        let harness = Harness(suspended: [("a", 300), ("b", 200)])
        harness.register("front")
        harness.launch("front")
        harness.advance(.seconds(1000))
        leave(harness, 400)
        #expect(harness.notices("front").last == .memoryWarning(.critical))
        harness.advance(.milliseconds(999))
        #expect(harness.killed() == [])
        harness.advance(.milliseconds(101))
        #expect(harness.killed() == ["a"])
    }

    @Test("a look within the second in which running apps may answer the warning kills no app (L35)")
    func lookWithinSecond() {
        let harness = Harness(suspended: [("a", 300)])
        harness.register("front")
        harness.launch("front")
        harness.advance(.seconds(1000))
        leave(harness, 400)
        harness.advance(.milliseconds(900))
        harness.handle(.memory(.pressureStalled(.warning)))
        #expect(harness.killed() == [])
        harness.advance(.milliseconds(200))
        #expect(harness.killed() == ["a"])
    }

    @Test("running apps have a second in each shortage, also if they were warned in the one before (L35)")
    func warnedInEachShortage() {
        let harness = Harness(suspended: [("a", 300)])
        harness.register("front")
        harness.launch("front")
        harness.advance(.seconds(1000))
        leave(harness, 400)
        leave(harness, 9000)
        harness.advance(.seconds(60))
        #expect(harness.core.memory.level == .normal)
        leave(harness, 400)
        #expect(harness.killed() == [])
        harness.advance(.milliseconds(1100))
        #expect(harness.killed() == ["a"])
    }

    @Test("running apps that free memory after the warning save the others (L35)")
    func warningHelps() {
        let harness = Harness(suspended: [("a", 300)])
        harness.register("front")
        harness.behave("front") { $0.memory = 500 * mebibyte }
        harness.launch("front")
        harness.advance(.seconds(1000))
        leave(harness, 400)
        harness.behave("front") { $0.memory = 100 * mebibyte }
        harness.advance(.seconds(10))
        #expect(harness.killed() == [])
    }

    @Test("memory that is filled too fast leaves no time to wait for warned apps, and the receipt says so (L35)")
    func noTime() throws {
        let harness = Harness(suspended: [("a", 300), ("b", 300)])
        harness.register("front")
        harness.launch("front")
        harness.advance(.seconds(1000))
        leave(harness, 800)
        harness.delay(.milliseconds(100))
        leave(harness, 480)
        #expect(harness.killed() == ["a", "b"])
        #expect(
            try harness.receipt("a").explanation
                == "Killed while suspended to free memory: the machine was low on available memory; it was filled too fast "
                + "to wait for warned apps.")
    }

    // MARK: The foreground

    @Test(
        "an app in the foreground is not killed as long as more than a quarter of the critical threshold is available")
    func foregroundThreshold() {
        let harness = Harness(suspended: [("a", 100)])
        harness.register("front")
        harness.launch("front")
        harness.advance(.seconds(1000))
        leave(harness, 150)
        harness.advance(.seconds(60))
        #expect(harness.killed() == ["a"])
        #expect(harness.core.memory.level == .critical)
        #expect(harness.state("front") == .active)
    }

    @Test("an active app is killed at the second look, if tasks have stalled since the first (L38)")
    func activeAtSecondLook() throws {
        let harness = Harness("front")
        harness.launch("front")
        harness.advance(.seconds(1000))
        harness.kernel.stalls = MemoryReading.Stalls(some: .seconds(5), full: .seconds(1))
        leave(harness, 50)
        harness.advance(.milliseconds(900))
        #expect(harness.killed() == [])
        harness.kernel.stalls = MemoryReading.Stalls(some: .milliseconds(5100), full: .seconds(1))
        harness.advance(.milliseconds(100))
        #expect(harness.killed() == ["front"])
        #expect(try harness.receipt("front").state == .active)
    }

    @Test("an active app is not killed within a second of the first look, whatever stalls meanwhile (L38)")
    func activeBeforeSecondLook() {
        let harness = Harness("front")
        harness.launch("front")
        harness.advance(.seconds(1000))
        leave(harness, 50)
        harness.advance(.milliseconds(900))
        harness.handle(.memory(.pressureStalled(.critical)))
        #expect(harness.killed() == [])
        harness.advance(.milliseconds(100))
        #expect(harness.killed() == ["front"])
    }

    @Test("an active app is not killed at the first look of a shortage, if one before has ended (L38)")
    func firstLookOfNextShortage() {
        let harness = Harness("front")
        harness.launch("front")
        harness.advance(.seconds(1000))
        leave(harness, 50)
        leave(harness, 4000)
        harness.advance(.seconds(60))
        leave(harness, 50)
        harness.advance(.milliseconds(900))
        #expect(harness.killed() == [])
        harness.advance(.milliseconds(200))
        #expect(harness.killed() == ["front"])
    }

    @Test("an active app is not killed while no task stalls, or for one event (L38)")
    func activeWithoutStalls() {
        let harness = Harness("front")
        harness.launch("front")
        harness.advance(.seconds(1000))
        harness.kernel.stalls = MemoryReading.Stalls(some: .seconds(5), full: .seconds(1))
        leave(harness, 50)
        harness.advance(.seconds(60))
        #expect(harness.killed() == [])
        // A trigger is evidence as well.
        harness.handle(.memory(.pressureStalled(.warning)))
        harness.advance(.seconds(1))
        #expect(harness.killed() == ["front"])
    }

    @Test("the two looks are one after the other: a victim in between begins them again (L38)")
    func looksAreConsecutive() {
        let harness = Harness("front", "next") { $0.suspendDelay = .seconds(60) }
        harness.launch("front")
        harness.advance(.seconds(1000))
        leave(harness, 50)
        harness.advance(.milliseconds(900))
        harness.background("front")
        harness.advance(.milliseconds(200))
        #expect(harness.killed() == ["front"])
        harness.launch("next")
        harness.advance(.milliseconds(900))
        #expect(harness.killed() == ["front"])
        harness.advance(.milliseconds(300))
        #expect(harness.killed() == ["front", "next"])
    }

    @Test("an active app is not killed while another app still gives back memory (L38)")
    func activeAfterOthers() {
        let harness = Harness(suspended: [("a", 100)])
        harness.behave("a") { $0.dies = false }
        harness.register("front")
        harness.launch("front")
        harness.advance(.seconds(1000))
        leave(harness, 20)
        #expect(harness.killed() == ["a"])
        harness.advance(.milliseconds(99))
        harness.exit("a", .signaled(9, coreDumped: false))
        harness.kernel.others -= 10 * gibibyte
        harness.advance(.seconds(60))
        #expect(harness.killed() == ["a"])
    }
}
