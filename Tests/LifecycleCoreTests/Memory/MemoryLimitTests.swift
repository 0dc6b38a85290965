import LifecycleCore
import Testing

/// Swap, the tightest limit below the machine's memory, and the limits of apps (L35, L41).
@Suite("Memory: swap and limits")
struct MemoryLimitTests {
    private func look(_ harness: Harness) { harness.handle(.memory(.measured(harness.kernel.reading))) }

    // MARK: Swap

    @Test("while a tenth of the swap space is free and little is read again, each threshold is the next lower one")
    func swap() {
        let harness = Harness(suspended: [("a", 200), ("b", 200)])
        harness.kernel.others = 16 * gibibyte - 700 * mebibyte
        harness.kernel.swapTotal = 8 * gibibyte
        harness.kernel.swapFree = gibibyte
        // 300 MiB are available.
        look(harness)
        #expect(harness.core.memory.level == .warning)
        #expect(harness.killed() == [])
        harness.kernel.others -= 300 * mebibyte
        look(harness)
        #expect(harness.core.memory.level == .normal)
        harness.kernel.others += 300 * mebibyte
        harness.kernel.swapFree = 800 * mebibyte
        look(harness)
        #expect(harness.killed().count == 2)
    }

    @Test("free swap does not help where as much as is available is read again in a second (thrashing)")
    func thrashing() {
        let harness = Harness(suspended: [("a", 300)])
        harness.kernel.others = 16 * gibibyte - 700 * mebibyte
        harness.kernel.swapTotal = 8 * gibibyte
        harness.kernel.swapFree = 4 * gibibyte
        look(harness)
        harness.delay(.seconds(1))
        harness.kernel.refaulted = 500 * mebibyte
        look(harness)
        #expect(harness.killed() == [])
        harness.delay(.seconds(1))
        harness.kernel.refaulted += 512 * mebibyte
        look(harness)
        #expect(harness.killed() == ["a"])
    }

    @Test("without pressure stall information apps are killed below the lower threshold, however much swap is free")
    func swapIsTooSlow() {
        let harness = Harness(suspended: [("a", 300)])
        harness.kernel.others = 16 * gibibyte - 400 * mebibyte
        harness.kernel.swapTotal = 8 * gibibyte
        harness.kernel.swapFree = 8 * gibibyte
        look(harness)
        #expect(harness.killed() == ["a"])
    }

    /// Hardly anything is available, and all of the swap space is free.
    private func swapping(_ sizes: [(String, UInt64)]) -> Harness {
        let harness = Harness(suspended: sizes)
        harness.kernel.others = 16 * gibibyte - sizes.reduce(0) { $0 + $1.1 } * mebibyte - 100 * mebibyte
        harness.kernel.swapTotal = 8 * gibibyte
        harness.kernel.swapFree = 8 * gibibyte
        harness.kernel.stalls = MemoryReading.Stalls(some: .zero, full: .zero)
        return harness
    }

    @Test("suspended apps are pushed out before one is killed for available memory (L35)")
    func pushedOutFirst() {
        let harness = swapping([("a", 300), ("b", 200)])
        for name in ["a", "b"] { harness.behave(name) { $0.reclaimed = nil } }
        look(harness)
        #expect(harness.core.memory.level == .critical)
        harness.handle(.run(harness.run("a"), .memory(.reclaimed(attempt: 1, bytes: 0))))
        harness.advance(.seconds(5))
        #expect(harness.effects.count { if case .run(_, .memory(.reclaim)) = $0 { true } else { false } } == 2)
        #expect(harness.killed() == [])
        // It has gained nothing.
        harness.handle(.run(harness.run("b"), .memory(.reclaimed(attempt: 1, bytes: 0))))
        #expect(harness.killed() == ["a"])
    }

    @Test("suspended apps are pushed out for available memory also while the budget is exceeded (L35, L37)")
    func pushedOutBesideBudget() {
        let harness = swapping([("a", 300)])
        harness.behave("a") { $0.reclaimed = nil }
        harness.register("front")
        harness.behave("front") { $0.memory = 500 * mebibyte }
        harness.launch("front")
        harness.kernel.others -= 500 * mebibyte
        harness.configure { $0.budget = 400 * mebibyte }
        look(harness)
        #expect(harness.core.memory.cause == .budget)
        #expect(harness.effects.contains { if case .run(_, .memory(.reclaim)) = $0 { true } else { false } })
    }

    @Test("while swap has space, an app is killed once available memory was critical for 1s at each reading (L35)")
    func momentsWithoutMemory() {
        // It is too small to be pushed out.
        let harness = swapping([("a", 10)])
        look(harness)
        harness.delay(.milliseconds(900))
        look(harness)
        harness.kernel.others -= 200 * mebibyte
        look(harness)
        harness.kernel.others += 200 * mebibyte
        harness.delay(.milliseconds(100))
        look(harness)
        harness.delay(.milliseconds(999))
        look(harness)
        #expect(harness.killed() == [])
        harness.advance(.milliseconds(1))
        #expect(harness.killed() == ["a"])
    }

    @Test("once a fifth of the swap space is free, available memory alone decides (L35)")
    func lastFifth() {
        let harness = swapping([("a", 300)])
        harness.behave("a") { $0.reclaimed = nil }
        harness.kernel.swapFree = 8 * gibibyte / 5
        look(harness)
        #expect(harness.killed() == ["a"])
    }

    @Test(
        "while swap has space, a stall kills only where all tasks stall for 700ms of a second (L35)",
        arguments: [(699, []), (700, ["a"])])
    func stalls(milliseconds: Int, killed: [String]) {
        // It is too small to be pushed out.
        let harness = swapping([("a", 10)])
        harness.kernel.others -= 200 * mebibyte
        for stall in [0, 0, milliseconds] {
            harness.delay(.seconds(1))
            harness.kernel.stalls?.full += .milliseconds(stall)
            harness.kernel.stalls?.some += .milliseconds(stall)
            harness.handle(.memory(.pressureStalled(.critical)))
        }
        #expect(harness.core.memory.level == .critical)
        #expect(harness.killed() == killed)
    }

    // MARK: The tightest limit

    @Test("the tightest limit counts like the machine's memory: its thresholds, its level and its victims")
    func limit() throws {
        let harness = Harness(suspended: [("a", 80), ("b", 70)])
        var limit = MemoryReading.Limit(group: "/system.slice/apps", total: gibibyte, available: 200 * mebibyte)
        harness.kernel.limit = limit
        look(harness)
        #expect(harness.core.memory.level == .normal)
        limit.available = 120 * mebibyte
        harness.kernel.limit = limit
        look(harness)
        #expect(harness.core.memory.level == .warning)
        #expect(harness.core.memory.cause == .limit)
        harness.delay(.seconds(1000))
        limit.available = 10 * mebibyte
        harness.kernel.limit = limit
        harness.kernel.measures = false
        look(harness)
        #expect(harness.killed() == ["a"])
        #expect(
            try harness.receipt("a").explanation
                == "Killed while suspended to free memory: the memory that a limit leaves to the apps was short.")
    }

    @Test("a kill by the kernel below the limit is critical, and evidence for a kill where memory is scarce")
    func kernelKills() throws {
        let harness = Harness(suspended: [("a", 80), ("b", 70)])
        harness.kernel.limit = MemoryReading.Limit(group: "/apps", total: gibibyte, available: 100 * mebibyte, kills: 4)
        look(harness)
        #expect(harness.core.memory.level == .warning)
        #expect(harness.killed() == [])
        harness.kernel.limit?.kills = 5
        look(harness)
        #expect(harness.reports().contains(.memoryLevelChanged(.critical, .pressure)))
        #expect(harness.killed() == ["a"])
        // Another limit has another count.
        harness.delay(.seconds(10))
        harness.kernel.limit = MemoryReading.Limit(
            group: "/other", total: gibibyte, available: 100 * mebibyte, kills: 9)
        look(harness)
        #expect(harness.killed() == ["a"])
    }

    // MARK: Limits of apps (L41)

    @Test("an app that is measured over MemoryMax= is killed, in the foreground too (L41)")
    func memoryMax() throws {
        let harness = Harness("photos")
        harness.register("photos") { $0.memoryMax = 100 * mebibyte }
        harness.behave("photos") { $0.memory = 100 * mebibyte }
        harness.launch("photos")
        harness.advance(.seconds(20))
        #expect(harness.killed() == [])
        harness.behave("photos") { $0.memory = 100 * mebibyte + 600 * 1024 }
        harness.advance(.seconds(20))
        #expect(harness.killed() == ["photos"])
        let receipt = try harness.receipt("photos")
        #expect(receipt.namespace == .jetsam)
        #expect(receipt.code == Receipt.Code.perProcessLimit)
        #expect(receipt.failure == .failed)
        #expect(receipt.explanation == "Killed: exceeded MemoryMax= (100M) with 100.5M of memory.")
        #expect(harness.core.memory.level == .normal)
    }

    @Test("an app that stays over SuspendedMemoryMax= for a second is killed; the exact size counts (L41)")
    func suspendedMemoryMax() throws {
        let harness = Harness("photos", "mail", "music") { $0.suspendedMemoryMax = 100 * mebibyte }
        for app in ["photos", "mail"] { harness.behave(app) { $0.memory = 300 * mebibyte } }
        // An app that runs has another limit.
        harness.launch("music")
        harness.suspend("mail")
        // Its processes share most of it.
        harness.handle(.run(harness.run("mail"), .suspension(.footprintMeasured(attempt: 1, memory: 90 * mebibyte))))
        harness.suspend("photos")
        harness.advance(.milliseconds(999))
        #expect(harness.killed() == [])
        harness.advance(.milliseconds(1))
        #expect(harness.killed() == ["photos"])
        let receipt = try harness.receipt("photos")
        #expect(receipt.code == Receipt.Code.perProcessLimit)
        #expect(receipt.state == .suspended)
        #expect(
            receipt.explanation == "Killed while suspended: exceeded SuspendedMemoryMax= (100M) with 300M of memory.")
        harness.advance(.seconds(60))
        #expect(harness.state("mail") == .suspended)
    }

    @Test("an app that is killed over its limit is relaunched like one that failed (L11, L41)")
    func relaunch() {
        let harness = Harness("photos") {
            $0.memoryMax = mebibyte; $0.relaunch = .onFailure
        }
        harness.launch("photos", .background)
        harness.advance(.milliseconds(500))
        #expect(harness.killed() == ["photos"])
        #expect(harness.reports().contains { if case .relaunchScheduled = $0 { true } else { false } })
    }

    @Test("soft and hard limits of an app, limits of memory and credits are saved")
    func saved() throws {
        let harness = Harness(suspended: [("a", 200), ("b", 300)])
        harness.register("c") {
            $0.memoryMax = 3; $0.suspendedMemoryMax = 4
        }
        harness.behave("b") { $0.dies = false }
        harness.kernel.others = 15 * gibibyte + 300 * mebibyte
        harness.kernel.limit = MemoryReading.Limit(group: "/apps", total: 9 * gibibyte, available: gibibyte, kills: 1)
        (harness.kernel.swapTotal, harness.kernel.swapFree, harness.kernel.refaulted) = (50, 2, 7)
        harness.kernel.stalls = MemoryReading.Stalls(some: .seconds(3), full: .seconds(2))
        look(harness)
        #expect(harness.killed() == ["b"])
        let core = harness.core
        let recovered = LifecycleCore(recovering: try SavedCore(reading: core.saved.bytes))
        #expect(recovered.difference(from: core) == nil)
    }
}
