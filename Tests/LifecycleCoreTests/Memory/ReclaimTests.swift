import LifecycleCore
import Testing

@Suite("What suspended apps have is pushed out to swap (L37)")
struct ReclaimTests {
    /// `photos` has 100 MiB, on a machine of 16 GiB with 1 GiB of swap.
    private func machine(available: UInt64 = 4 * gibibyte, _ policy: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        let harness = Harness("photos", policy: policy)
        harness.behave("photos") {
            $0.memory = 100 * mebibyte
            $0.reclaimed = 90 * mebibyte
        }
        harness.kernel.others = harness.kernel.total - available
        (harness.kernel.swapTotal, harness.kernel.swapFree) = (gibibyte, gibibyte)
        harness.handle(.memory(.pressureStalled(.normal)))
        return harness
    }

    private func reclaims(_ harness: Harness) -> [UInt64] {
        harness.effects.compactMap {
            if case .run(_, .memory(.reclaim(attempt: _, let bytes))) = $0 { bytes } else { nil }
        }
    }

    @Test("an app is pushed out 10s after its suspension, and again after the next one (L37)")
    func afterSuspension() {
        let harness = machine { $0.reclaim = .yes }
        harness.suspend("photos")
        harness.advance(.milliseconds(9_900))
        #expect(reclaims(harness).isEmpty)
        harness.advance(.seconds(1))
        #expect(reclaims(harness) == [100 * mebibyte])
        #expect(harness.reports().contains(.memoryReclaimed(id("photos"), 90 * mebibyte)))
        harness.advance(.seconds(600))
        #expect(reclaims(harness).count == 1)
        harness.activate("photos")
        harness.suspend("photos")
        harness.advance(.seconds(20))
        #expect(reclaims(harness).count == 2)
    }

    @Test(
        "ReclaimOnSuspend=auto: where less than half of the memory is available; no: only while memory is short (L37)",
        arguments: [
            (AppPolicy.Reclaim.automatic, 9 * gibibyte, 0), (.automatic, 7 * gibibyte, 1), (.yes, 9 * gibibyte, 1),
            (.no, 7 * gibibyte, 0), (.no, 500 * mebibyte, 1),
        ])
    func policies(reclaim: AppPolicy.Reclaim, available: UInt64, expected: Int) {
        let harness = machine(available: available) { $0.reclaim = reclaim }
        harness.suspend("photos")
        harness.advance(.seconds(60))
        #expect(reclaims(harness).count == expected)
    }

    @Test(
        "nothing is pushed out where there is no space: no swap, or a fifth of it is free; and nothing of a small app (L37)"
    )
    func noSpace() {
        let machines: [(total: UInt64, free: UInt64, size: UInt64)] = [
            (0, 0, 100), (1000, 200, 100), (1000, 210, 100), (1000, 1000, 15), (1000, 216, 100), (1000, 1000, 16),
        ]
        for (total, free, size) in machines {
            let harness = machine { $0.reclaim = .yes }
            (harness.kernel.swapTotal, harness.kernel.swapFree) = (total * mebibyte, free * mebibyte)
            harness.behave("photos") { $0.memory = size * mebibyte }
            harness.suspend("photos")
            harness.handle(.memory(.pressureStalled(.normal)))
            harness.activate("photos")
            harness.suspend("photos")
            harness.advance(.seconds(20))
            let space = min(size, free - min(free, total / 5))
            #expect(reclaims(harness) == (space < 16 ? [] : [space * mebibyte]), "\(total) \(free) \(size)")
        }
    }

    @Test(
        "while memory is short, the apps are pushed out one after the other, those first that would be killed first (L37)"
    )
    func pressure() {
        let harness = machine(available: 8 * gibibyte) { $0.reclaim = .no }
        for (name, size) in [("mail", 300), ("maps", 200), ("clock", 10)] as [(String, UInt64)] {
            harness.register(name) { $0.reclaim = .no }
            harness.behave(name) {
                $0.memory = size * mebibyte
                $0.reclaimed = nil
            }
            harness.suspend(name)
        }
        harness.suspend("photos")
        // Together they have 610 MiB. Time passes, so that nothing is filled fast.
        harness.advance(.seconds(10_000))
        harness.kernel.others = harness.kernel.total - 610 * mebibyte - 700 * mebibyte
        (harness.kernel.swapTotal, harness.kernel.swapFree) = (gibibyte, 50 * mebibyte)
        harness.handle(.memory(.pressureStalled(.normal)))
        #expect(reclaims(harness).isEmpty)
        harness.advance(.seconds(10_000))
        (harness.kernel.swapTotal, harness.kernel.swapFree) = (gibibyte, gibibyte)
        harness.kernel.others = harness.kernel.total - 610 * mebibyte - 450 * mebibyte
        harness.handle(.memory(.pressureStalled(.normal)))
        harness.advance(.seconds(1))
        #expect(reclaims(harness) == [300 * mebibyte])
        harness.handle(.run(harness.run("mail"), .memory(.reclaimed(attempt: 1, bytes: 280 * mebibyte))))
        #expect(reclaims(harness) == [300 * mebibyte, 200 * mebibyte])
        harness.handle(.run(harness.run("maps"), .memory(.reclaimed(attempt: 1, bytes: 0))))
        harness.advance(.seconds(60))
        #expect(reclaims(harness) == [300 * mebibyte, 200 * mebibyte, 100 * mebibyte])
        #expect(harness.receipts.isEmpty)
    }

    @Test("Budget= counts what is swapped, so that nothing is pushed out for it (L37, L39)")
    func budget() {
        let harness = machine(available: 12 * gibibyte)
        harness.configure { $0.budget = 105 * mebibyte }
        harness.suspend("photos")
        harness.advance(.seconds(60))
        #expect(reclaims(harness).isEmpty)
    }

    @Test("it ends before the app runs again, or is killed (L37)", arguments: [true, false])
    func stops(isKilled: Bool) {
        let harness = machine { $0.reclaim = .yes }
        harness.behave("photos") { $0.reclaimed = nil }
        harness.suspend("photos")
        harness.advance(.seconds(20))
        let mark = harness.mark
        let run = harness.run("photos")
        if isKilled { harness.request("photos", .remove) } else { harness.activate("photos") }
        let expected: Effect = isKilled ? .run(run, .kill) : .run(run, .suspension(.thaw(attempt: 1)))
        let effects = harness.effects(since: mark).filter { $0 == .run(run, .memory(.stopReclaim)) || $0 == expected }
        #expect(effects == [.run(run, .memory(.stopReclaim)), expected])
        harness.handle(.run(run, .memory(.reclaimed(attempt: 1, bytes: mebibyte))))
        #expect(!harness.reports().contains(.memoryReclaimed(id("photos"), mebibyte)))
    }

    @Test("apps that are due meanwhile follow when it has ended (L37)")
    func turn() {
        let harness = machine { $0.reclaim = .yes }
        harness.register("mail") { $0.reclaim = .yes }
        harness.behave("photos") { $0.reclaimed = nil }
        harness.behave("mail") { $0.memory = 50 * mebibyte }
        harness.suspend("photos")
        harness.advance(.seconds(5))
        harness.suspend("mail")
        harness.advance(.seconds(60))
        #expect(reclaims(harness) == [100 * mebibyte])
        harness.handle(.run(harness.run("photos"), .memory(.reclaimed(attempt: 1, bytes: 90 * mebibyte))))
        harness.advance(.zero)
        #expect(reclaims(harness) == [100 * mebibyte, 50 * mebibyte])
    }

    @Test("a daemon that follows a crash pushes other apps out (L37)")
    func recovery() {
        let harness = machine { $0.reclaim = .yes }
        harness.register("mail") { $0.reclaim = .yes }
        harness.behave("mail") { $0.memory = 50 * mebibyte }
        harness.behave("photos") { $0.reclaimed = nil }
        harness.suspend("photos")
        harness.advance(.seconds(20))
        harness.handle(.recovered)
        harness.suspend("mail")
        harness.advance(.seconds(20))
        #expect(reclaims(harness) == [100 * mebibyte, 50 * mebibyte])
    }

    private func brought(_ harness: Harness, since mark: Int = 0) -> Int {
        harness.effects(since: mark).count { if case .run(_, .memory(.bringBack)) = $0 { true } else { false } }
    }

    @Test(
        "the pages of the last wake are read after the thaw of an app, where there is swap and memory is not critical (L37)",
        arguments: [
            (MemoryLevel.normal, gibibyte, 100, 1), (.warning, gibibyte, 100, 1), (.critical, gibibyte, 100, 0),
            (.normal, 0, 100, 0), (.normal, gibibyte, 15, 0),
        ])
    func bringBack(level: MemoryLevel, swap: UInt64, size: UInt64, expected: Int) {
        let harness = machine { $0.reclaim = .yes }
        (harness.kernel.swapTotal, harness.kernel.swapFree) = (swap, swap)
        harness.handle(.memory(.pressureStalled(.normal)))
        harness.behave("photos") { $0.memory = size * mebibyte }
        // A critical level costs the largest app its life.
        harness.register("mail") { $0.reclaim = .no }
        harness.behave("mail") { $0.memory = 300 * mebibyte }
        harness.suspend("mail")
        harness.suspend("photos")
        harness.advance(.seconds(20))
        harness.simulate(level)
        let mark = harness.mark
        harness.activate("photos")
        let run = harness.run("photos")
        let effects = harness.effects(since: mark).filter {
            $0 == .run(run, .suspension(.thaw(attempt: 1))) || $0 == .run(run, .memory(.bringBack))
        }
        let isRead: [Effect] = expected == 0 ? [] : [.run(run, .memory(.bringBack))]
        #expect(effects == [.run(run, .suspension(.thaw(attempt: 1)))] + isRead)
    }

    @Test("pages are not read for the end of an app (L37)")
    func bringBackForEnd() {
        let harness = machine { $0.reclaim = .yes }
        harness.suspend("photos")
        harness.request("photos", .terminate)
        #expect(brought(harness) == 0)
    }

    @Test("a moment for a timer does not push it out again, nor are the pages of the last wake read for it (L37, L51)")
    func moment() {
        let harness = machine {
            $0.role = .worker
            $0.reclaim = .yes
        }
        harness.behave("photos") {
            $0.work = RunWork(cpu: .zero)
            $0.work?.tick = .milliseconds(500)
        }
        harness.launch("photos", .background)
        harness.advance(.seconds(600))
        #expect(harness.effects.count { if case .run(_, .suspension(.thaw)) = $0 { true } else { false } } > 2)
        #expect(reclaims(harness).count == 1)
        #expect(brought(harness) == 0)
        harness.activate("photos")
        #expect(brought(harness) == 1)
    }
}
