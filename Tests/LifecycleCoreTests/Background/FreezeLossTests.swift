import LifecycleCore
import Testing

/// Process-group mode: any process of the same user can send SIGCONT.
@Suite("Suspended apps that other processes continue")
struct FreezeLossTests {
    private func suspendedHarness() -> Harness {
        let harness = Harness("photos") { $0.backgroundModes = .push }
        harness.suspend("photos")
        return harness
    }

    @Test("a suspended app that another process continues is in the background until it is frozen again (L1)")
    func isFrozenAgain() {
        let harness = suspendedHarness()
        harness.behave("photos") { $0.freezes = false }
        let (mark, run) = (harness.mark, harness.run("photos"))
        harness.handle(.run(run, .suspension(.freezeLost(attempt: 1))))
        #expect(harness.state("photos") == .background)
        #expect(harness.effects(since: mark).contains(.run(run, .suspension(.freeze(attempt: 2)))))
        harness.handle(.run(run, .suspension(.frozen(attempt: 2, memory: mebibyte))))
        #expect(harness.state("photos") == .suspended)
        #expect(harness.changes("photos", since: mark) == ["background: continued", "suspended: idle"])
        #expect(harness.core.nextDeadline == nil)
    }

    @Test("a late report of an earlier freeze, or of an app that is not suspended, changes nothing")
    func late() {
        let harness = suspendedHarness()
        let run = harness.run("photos")
        harness.handle(.run(run, .suspension(.freezeLost(attempt: 0))))
        #expect(harness.state("photos") == .suspended)
        harness.activate("photos")
        harness.handle(.run(run, .suspension(.freezeLost(attempt: 1))))
        #expect(harness.state("photos") == .active)
    }

    @Test("an app that another process continues has no more background time for it (L21)")
    func budget() {
        let harness = suspendedHarness()
        let left = harness.view("photos").backgroundTimeRemaining
        harness.behave("photos") { $0.freezes = false }
        harness.handle(.run(harness.run("photos"), .suspension(.freezeLost(attempt: 1))))
        harness.advance(.seconds(1))
        #expect(harness.view("photos").backgroundTimeRemaining == left)
        harness.behave("photos") { $0.freezes = true }
        harness.push("photos")
        #expect(harness.delivered("photos").map(\.kind) == ["push"])
        #expect(harness.state("photos") == .background)
    }
}
