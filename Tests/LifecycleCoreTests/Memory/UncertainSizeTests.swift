import LifecycleCore
import Testing

/// Sizes that are estimated too large: no app is killed by one while available memory is not critical (L39, L41). The machine has
/// 16 GiB, and much is available.
@Suite("Memory: uncertain sizes")
struct UncertainSizeTests {
    /// An app whose size is estimated, and is `exact` in truth. `nil`: the exact size is still being measured.
    private func estimate(_ harness: Harness, _ app: String, _ mebibytes: UInt64, exact: UInt64?) {
        harness.behave(app) {
            $0.memory = mebibytes * mebibyte
            $0.uncertainty = (mebibytes - mebibytes / 8) * mebibyte
            $0.exact = exact.map { $0 * mebibyte }
        }
    }

    private func measure(_ harness: Harness) { harness.handle(.memory(.measured(harness.kernel.reading))) }

    private func requests(_ harness: Harness, since mark: Int = 0) -> Int {
        harness.effects(since: mark).count { if case .run(_, .memory(.measureSize)) = $0 { true } else { false } }
    }

    private func answer(_ harness: Harness, _ app: String, _ mebibytes: UInt64) {
        let estimate = harness.kernel.behaviours[id(app)]?.memory ?? 0
        harness.handle(.run(harness.run(app), .memory(.sizeMeasured(bytes: mebibytes * mebibyte, estimate: estimate))))
    }

    @Test("an app whose estimate exceeds the budget lives if its exact size does not, and no warning is sent (L39)")
    func preforking() {
        let harness = Harness("notes", "server")
        harness.configure { $0.budget = 600 * mebibyte }
        harness.behave("notes") { $0.memory = 60 * mebibyte }
        harness.suspend("notes")
        estimate(harness, "server", 1124, exact: 150)
        harness.launch("server")
        harness.advance(.seconds(600))
        #expect(harness.killed() == [])
        #expect(harness.core.memory.level == .normal)
        #expect(harness.core.memory.apps == 210 * mebibyte)
        #expect(!harness.notices("server").contains(.memoryWarning(.critical)))
    }

    @Test("while the exact size is being measured no app is killed, and it is asked for once (L39)")
    func awaited() {
        let harness = Harness("notes", "server")
        harness.configure { $0.budget = 600 * mebibyte }
        harness.suspend("notes")
        estimate(harness, "server", 1124, exact: nil)
        harness.launch("server")
        harness.advance(.seconds(60))
        #expect(harness.killed() == [])
        #expect(requests(harness) == 1)
        answer(harness, "server", 700)
        harness.advance(.seconds(20))
        #expect(harness.killed() == ["server"])
    }

    @Test("the exact size is kept: it is measured again only when the estimate has grown, and once a minute (L39)")
    func kept() {
        let harness = Harness("server")
        harness.configure { $0.budget = 600 * mebibyte }
        estimate(harness, "server", 1000, exact: 150)
        harness.launch("server")
        harness.advance(.seconds(1))
        let mark = harness.mark
        for _ in 0..<20 { measure(harness) }
        #expect(requests(harness, since: mark) == 0)
        // The app may have 150 MiB more: that does not matter either.
        estimate(harness, "server", 1150, exact: 150)
        measure(harness)
        #expect(requests(harness, since: mark) == 0)
        #expect(harness.core.memory.apps == 300 * mebibyte)
        estimate(harness, "server", 1450, exact: 210)
        measure(harness)
        #expect(requests(harness, since: mark) == 1)
        #expect(harness.core.memory.apps == 210 * mebibyte)
        harness.advance(.seconds(180))
        #expect((3...5).contains(requests(harness, since: mark)))
        #expect(harness.killed() == [])
    }

    @Test("pages that cease to be shared make an app larger without any change of the estimate: it is killed (L39)")
    func written() {
        let harness = Harness("server")
        harness.configure { $0.budget = 600 * mebibyte }
        estimate(harness, "server", 1124, exact: 150)
        harness.launch("server")
        harness.advance(.seconds(10))
        estimate(harness, "server", 1124, exact: 1000)
        harness.advance(.seconds(100))
        #expect(harness.killed() == ["server"])
    }

    @Test("the exact sizes of the next victims come first, and the one that is largest then is killed (L38, L39)")
    func finalists() {
        let harness = Harness("shared", "large", "last")
        estimate(harness, "shared", 400, exact: nil)
        harness.suspend("shared")
        harness.behave("large") { $0.memory = 200 * mebibyte }
        harness.suspend("large")
        harness.behave("last") { $0.memory = 220 * mebibyte }
        harness.suspend("last")
        harness.configure { $0.budget = 400 * mebibyte }
        #expect(harness.killed() == [])
        answer(harness, "shared", 60)
        #expect(harness.killed() == ["last"])
        harness.advance(.seconds(60))
        #expect(harness.killed() == ["last"])
    }

    @Test("where available memory is critical the estimates decide (L39)")
    func critical() {
        let harness = Harness("shared", "large")
        estimate(harness, "shared", 400, exact: nil)
        harness.suspend("shared")
        harness.behave("large") { $0.memory = 200 * mebibyte }
        harness.suspend("large")
        harness.advance(.seconds(10_000))
        harness.leave(mebibytes: 200)
        #expect(harness.killed() == ["shared"])
    }

    @Test("a stall kills no app before the exact size of the first candidate is known, and then one (L39)")
    func stall() {
        let harness = Harness("shared", "large")
        estimate(harness, "shared", 400, exact: nil)
        harness.suspend("shared")
        harness.behave("large") { $0.memory = 200 * mebibyte }
        harness.suspend("large")
        harness.advance(.seconds(10_000))
        harness.leave(mebibytes: 900)
        harness.handle(.memory(.pressureStalled(.critical)))
        #expect(harness.killed() == [])
        #expect(requests(harness) == 1)
        answer(harness, "shared", 50)
        #expect(harness.killed() == ["large"])
    }

    @Test("an app is killed for MemoryMax= only if its exact size exceeds it (L41)", arguments: [false, true])
    func limit(isOver: Bool) throws {
        let harness = Harness("server") { $0.memoryMax = 300 * mebibyte }
        estimate(harness, "server", 1124, exact: isOver ? 310 : 290)
        harness.launch("server")
        harness.advance(.seconds(30))
        #expect(harness.killed() == (isOver ? ["server"] : []))
        if isOver {
            #expect(
                try harness.receipt("server").explanation == "Killed: exceeded MemoryMax= (300M) with 310M of memory.")
        }
    }

    @Test(
        "a suspended app is killed for SuspendedMemoryMax= only if its exact size exceeds it (L41)",
        arguments: [false, true])
    func suspendedLimit(isOver: Bool) {
        let harness = Harness("server") { $0.suspendedMemoryMax = 300 * mebibyte }
        estimate(harness, "server", 1124, exact: nil)
        harness.suspend("server")
        harness.advance(.seconds(30))
        #expect(harness.killed() == [])
        #expect(requests(harness) == 1)
        answer(harness, "server", isOver ? 310 : 290)
        harness.advance(.seconds(2))
        #expect(harness.killed() == (isOver ? ["server"] : []))
    }

    @Test("a new daemon asks again for the exact size that the one before waited for")
    func recovery() {
        let harness = Harness("server")
        harness.configure { $0.budget = 600 * mebibyte }
        estimate(harness, "server", 1124, exact: nil)
        harness.launch("server")
        harness.advance(.seconds(1))
        #expect(requests(harness) == 1)
        harness.handle(.recovered)
        let mark = harness.mark
        harness.handle(.run(harness.run("server"), .process(.reattached(messagesKept: true, noticesDelayed: false))))
        #expect(requests(harness, since: mark) == 1)
    }
}
