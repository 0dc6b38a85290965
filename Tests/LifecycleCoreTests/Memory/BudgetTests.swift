import LifecycleCore
import Testing

/// `Budget=`: victims that end slowly, and apps that exceed it alone (L39).
@Suite("Memory: the budget")
struct BudgetTests {
    private func size(_ harness: Harness, _ app: String, _ mebibytes: UInt64) {
        harness.behave(app) { $0.memory = mebibytes * mebibyte }
    }

    @Test("a victim that takes long to end costs no other app its life, and its receipt names none (L39)")
    func slowVictim() {
        let harness = Harness(suspended: [("photos", 25), ("mail", 25), ("music", 25)])
        harness.behave("photos") { $0.dies = false }
        harness.configure { $0.budget = 60 * mebibyte }
        #expect(harness.killed() == ["photos"])
        harness.advance(.seconds(3600))
        #expect(Set(harness.killed()) == ["photos"])
        harness.exit("photos", .signaled(9, coreDumped: false))
        harness.advance(.seconds(60))
        #expect(Set(harness.killed()) == ["photos"])
        #expect(harness.core.memory.level == .normal)
    }

    @Test("the size of an app that ends, first known from a late inspection, costs no other app its life (L39)")
    func inspectedEnd() {
        let harness = Harness(suspended: [("mail", 25)])
        harness.register("front") { $0.readiness = .notified }
        harness.behave("front") { ($0.memory, $0.dies) = (0, false) }
        harness.configure { $0.budget = 60 * mebibyte }
        harness.launch("front")
        let run = harness.run("front")
        harness.exit("front", .exited(1))
        harness.handle(.run(run, .deadline(.inspected(Inspection(traced: false, cpu: .zero, memory: 50 * mebibyte)))))
        harness.handle(.run(harness.run("mail"), .suspension(.footprintMeasured(attempt: 1, memory: 25 * mebibyte))))
        #expect(!harness.killed().contains("mail"))
    }

    @Test(
        "what apps without a process have stored counts for the budget, and no kill is made for what none can free (L39)"
    )
    func stored() {
        let harness = Harness(suspended: [("photos", 25), ("mail", 25)])
        harness.configure { $0.budget = 60 * mebibyte }
        #expect(harness.killed().isEmpty)
        harness.kernel.stored = 61 * mebibyte
        harness.handle(.memory(.measured(harness.kernel.reading)))
        #expect(harness.killed().isEmpty)
        #expect(harness.core.memory.apps == 111 * mebibyte)
        harness.kernel.stored = 20 * mebibyte
        harness.handle(.memory(.measured(harness.kernel.reading)))
        #expect(harness.killed() == ["photos"])
    }

    @Test("after a victim is gone, memory is measured, and the next app is killed if that was not enough (L39)")
    func growthMeanwhile() {
        let harness = Harness(suspended: [("photos", 30), ("mail", 25)])
        harness.register("front")
        size(harness, "front", 20)
        harness.behave("photos") { $0.dies = false }
        harness.configure { $0.budget = 60 * mebibyte }
        harness.launch("front")
        harness.advance(.seconds(20))
        #expect(Set(harness.killed()) == ["photos"])
        size(harness, "front", 50)
        harness.exit("photos", .signaled(9, coreDumped: false))
        harness.advance(.seconds(20))
        #expect(Set(harness.killed()) == ["photos", "mail"])
        #expect(harness.state("front") == .active)
    }

    @Test("where available memory is critical, a victim that does not end is waited for only until it is due (L39)")
    func critical() throws {
        let harness = Harness(suspended: [("photos", 300), ("mail", 200)])
        harness.behave("photos") { $0.dies = false }
        harness.configure { $0.budget = 400 * mebibyte }
        #expect(harness.killed() == ["photos"])
        harness.leave(mebibytes: 400)
        harness.advance(.milliseconds(200))
        #expect(harness.killed() == ["photos", "mail"])
        #expect(
            try harness.receipt("mail").explanation
                == "Killed while suspended to free memory: the machine was low on available memory; photos, which was killed "
                + "before, had not freed its memory in time.")
    }

    @Test("an app that exceeds the budget alone is warned, has 5s, and is killed; the others live (L36, L39)")
    func alone() throws {
        let harness = Harness(suspended: [("mail", 50), ("music", 60)])
        harness.configure { $0.budget = 500 * mebibyte }
        harness.register("front")
        size(harness, "front", 100)
        harness.launch("front")
        harness.advance(.seconds(100))
        size(harness, "front", 700)
        harness.handle(.memory(.measured(harness.kernel.reading)))
        #expect(harness.notices("front").last == .memoryWarning(.critical))
        harness.advance(.milliseconds(4999))
        #expect(harness.killed() == [])
        harness.advance(.seconds(1))
        #expect(harness.killed() == ["front"])
        let receipt = try harness.receipt("front")
        #expect(receipt.namespace == .jetsam && receipt.code == Receipt.Code.jetsam)
        #expect(receipt.explanation == "Killed: alone it used 700M, more than the budget of all apps (500M).")
        harness.advance(.seconds(60))
        #expect(harness.killed() == ["front"])
    }

    @Test("an app that frees memory after the warning lives (L39)")
    func answers() {
        let harness = Harness(suspended: [("mail", 50)])
        harness.configure { $0.budget = 500 * mebibyte }
        harness.register("front")
        size(harness, "front", 700)
        harness.launch("front")
        harness.advance(.seconds(3))
        size(harness, "front", 400)
        harness.advance(.seconds(60))
        #expect(harness.killed() == [])
        #expect(harness.core.memory.level == .warning)
    }

    @Test("an app that was launched after the last warning is warned of its own excess (L36, L39)")
    func warnedItself() {
        let harness = Harness("first", "second") { $0.suspendDelay = .seconds(600) }
        harness.configure { $0.budget = 500 * mebibyte }
        size(harness, "first", 700)
        harness.launch("first")
        harness.advance(.seconds(2))
        size(harness, "first", 10)
        harness.advance(.seconds(1))
        size(harness, "second", 700)
        harness.launch("second")
        harness.advance(.seconds(12))
        #expect(harness.notices("second").contains(.memoryWarning(.critical)))
        #expect(harness.killed() == ["second"])
    }

    @Test("a suspended app that exceeds the budget alone is killed at once, before those of lower priority (L39, L40)")
    func suspendedAlone() throws {
        let harness = Harness("mail", "large")
        harness.configure { $0.budget = 500 * mebibyte }
        harness.register("large") { $0.jetsamPriority = 10 }
        size(harness, "mail", 50)
        size(harness, "large", 700)
        harness.suspend("mail")
        harness.launch("large", .background)
        harness.advance(.seconds(2))
        #expect(harness.killed() == ["large"])
        #expect(
            try harness.receipt("large").explanation
                == "Killed while suspended: alone it used 700M, more than the budget of all apps (500M).")
        harness.advance(.seconds(60))
        #expect(harness.state("mail") == .suspended)
    }

    @Test("beside an app that exceeds the budget alone, others are killed for what they exceed it by themselves (L39)")
    func others() {
        let harness = Harness(suspended: [("mail", 300), ("music", 290)])
        harness.register("front")
        size(harness, "front", 700)
        harness.launch("front")
        harness.advance(.seconds(10))
        harness.configure { $0.budget = 500 * mebibyte }
        harness.advance(.milliseconds(1500))
        #expect(harness.killed() == ["mail"])
        harness.advance(.seconds(20))
        #expect(harness.killed() == ["mail", "front"])
        #expect(harness.state("music") == .suspended)
    }
}
