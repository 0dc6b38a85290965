import Testing

@testable import LifecycleCore

/// Snapshots are asked for, and the suspension waits for them for a bounded time (L18).
@Suite("snapshots")
struct SnapshotTests {
    /// An app in the foreground, whose suspension is not delayed by anything else.
    private func harness(
        handling handled: HandledNotices = [.didEnterBackground, .takeSnapshot],
        _ policy: (inout AppPolicy) -> Void = { _ in }
    ) -> Harness {
        let harness = Harness("photos", "mail") {
            $0.suspendDelay = .milliseconds(100)
            $0.backgroundModes = [.push]
            policy(&$0)
        }
        harness.behave("photos") { $0.entering = .isSilent }
        harness.launch("photos")
        harness.handle(.run(harness.run("photos"), .connection(.attached(handled))))
        return harness
    }

    private func answer(_ harness: Harness, _ event: RunEvent = .transition(.backgroundEntered)) {
        harness.handle(.run(harness.run("photos"), event))
    }

    private func requests(_ harness: Harness, since mark: Int = 0) -> Int {
        harness.notices("photos", since: mark).count { $0 == .takeSnapshot }
    }

    @Test("an app that handles it is asked after its answer, and suspended when it has taken the snapshot (L18)")
    func taken() {
        let harness = harness()
        harness.background("photos")
        #expect(requests(harness) == 0)
        answer(harness)
        #expect(requests(harness) == 1)
        harness.advance(.milliseconds(300))
        #expect(harness.state("photos") == .background)
        answer(harness, .connection(.snapshotTaken))
        harness.advance(.zero)
        #expect(harness.state("photos") == .suspended)
    }

    @Test("one that is quick is suspended after SuspendDelaySec=, as without a snapshot (L18)")
    func quick() {
        let harness = harness()
        harness.background("photos")
        answer(harness)
        answer(harness, .connection(.snapshotTaken))
        harness.advance(.milliseconds(99))
        #expect(harness.state("photos") == .background)
        harness.advance(.milliseconds(1))
        #expect(harness.state("photos") == .suspended)
    }

    @Test("one that never answers is suspended 500ms after the question, and a late answer changes nothing (L18)")
    func silent() throws {
        let harness = harness()
        harness.background("photos")
        answer(harness)
        // A daemon that is replaced meanwhile waits as long.
        let recovered = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(recovered.difference(from: harness.core) == nil)
        harness.advance(.milliseconds(499))
        #expect(harness.state("photos") == .background)
        harness.advance(.milliseconds(1))
        #expect(harness.state("photos") == .suspended)
        answer(harness, .connection(.snapshotTaken))
        #expect(harness.state("photos") == .suspended)
    }

    @Test("a request that arrives while the snapshot is taken is carried out at once (L18)")
    func request() {
        let harness = harness()
        harness.background("photos")
        answer(harness)
        harness.activate("photos")
        #expect(harness.state("photos") == .active)
        let mark = harness.mark
        harness.background("photos")
        answer(harness)
        #expect(requests(harness, since: mark) == 1)
        harness.terminate("photos")
        #expect(harness.state("photos") != .background)
    }

    @Test(
        "after a wake a snapshot is taken anew if there is new data (L18, L30)",
        arguments: [(WakeResult.newData, 1), (.noData, 0), (.failed, 0)])
    func wake(_ result: WakeResult, _ count: Int) {
        let harness = harness()
        harness.background("photos")
        answer(harness)
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        let mark = harness.mark
        harness.push("photos")
        #expect(harness.state("photos") == .background)
        answer(harness, .wake(.completed(result)))
        #expect(requests(harness, since: mark) == count)
        harness.advance(.milliseconds(count == 0 ? 100 : 500))
        #expect(harness.state("photos") == .suspended)
    }

    @Test("while one is under way no other is asked for (L18)")
    func once() {
        let harness = harness()
        harness.background("photos")
        answer(harness)
        for _ in 0..<3 {
            harness.push("photos")
            answer(harness, .wake(.completed(.newData)))
        }
        #expect(requests(harness) == 1)
    }

    @Test("a worker, an app that hides its snapshot and one that handles none are not asked (L18)")
    func notAsked() {
        let hidden = harness { $0.hidesSnapshot = true }
        let other = harness(handling: .didEnterBackground)
        for harness in [hidden, other] {
            harness.background("photos")
            answer(harness)
            harness.advance(.milliseconds(100))
            #expect(requests(harness) == 0 && harness.state("photos") == .suspended)
        }
        let worker = Harness("photos") { ($0.role, $0.readiness) = (.worker, .notified) }
        worker.behave("photos") { ($0.launching, $0.entering) = (.executes, .isSilent) }
        worker.launch("photos", .background)
        worker.handle(.run(worker.run("photos"), .connection(.attached([.didEnterBackground, .takeSnapshot]))))
        worker.handle(.run(worker.run("photos"), .transition(.ready)))
        answer(worker)
        #expect(worker.state("photos") == .background && requests(worker) == 0)
    }

    @Test("while the user is away the snapshot of an app with protected data is withheld (L15, L18)")
    func withheld() {
        let harness = harness { $0.usesProtectedData = true }
        harness.register("mail") { $0.usesProtectedData = false }
        #expect(harness.core.snapshotRules(of: id("photos"))?.isWithheld == false)
        harness.handle(.absence(.locked))
        #expect(harness.core.snapshotRules(of: id("photos"))?.isWithheld == true)
        #expect(harness.core.snapshotRules(of: id("mail"))?.isWithheld == false)
        harness.handle(.absence(.unlocked))
        let rules = harness.core.snapshotRules(of: id("photos"))
        #expect(rules == SnapshotRules(isHidden: false, isWithheld: false, isGivenByApp: true))
    }
}
