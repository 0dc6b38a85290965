import Testing

@testable import LifecycleCore

/// An app takes back what it advertises before it is suspended (L43).
@Suite("withdraw")
struct WithdrawTests {
    /// An app in the background that will be suspended after 100ms.
    private func harness(_ policy: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        let harness = Harness("photos") {
            $0.suspendDelay = .milliseconds(100)
            policy(&$0)
        }
        harness.launch("photos")
        harness.handle(.run(harness.run("photos"), .connection(.attached([.withdraw, .willSuspend, .didResume]))))
        harness.background("photos")
        return harness
    }

    private func send(_ harness: Harness, _ event: RunEvent) { harness.handle(.run(harness.run("photos"), event)) }

    @Test("the suspension waits for its answer, and each later one asks anew (L43)")
    func answered() throws {
        let harness = harness()
        var mark = harness.mark
        harness.advance(.milliseconds(100))
        #expect(harness.notices("photos", since: mark) == [.withdraw] && harness.state("photos") == .background)
        let recovered = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(recovered.difference(from: harness.core) == nil)
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .background)
        send(harness, .connection(.withdrawn))
        harness.advance(.zero)
        #expect(harness.state("photos") == .suspended)
        #expect(harness.notices("photos", since: mark) == [.withdraw, .willSuspend])
        mark = harness.mark
        harness.activate("photos")
        harness.background("photos")
        harness.advance(.milliseconds(100))
        #expect(harness.notices("photos", since: mark).last == .withdraw)
    }

    @Test("one that does not answer is suspended after BackgroundDeadlineSec= (L43)")
    func silent() {
        let harness = harness { $0.backgroundDeadline = .seconds(2) }
        harness.advance(.milliseconds(2099))
        #expect(harness.state("photos") == .background)
        harness.advance(.milliseconds(1))
        #expect(harness.state("photos") == .suspended)
    }

    @Test("if the suspension does not come, didResume says so, before anything else (L43)", arguments: [true, false])
    func calledOff(byTask: Bool) {
        let harness = harness()
        harness.advance(.milliseconds(100))
        let mark = harness.mark
        if byTask {
            send(harness, .task(.began(name: "a", owner: 1)))
            #expect(harness.notices("photos", since: mark) == [.didResume(after: .zero, changed: [])])
        } else {
            harness.activate("photos")
            #expect(harness.notices("photos", since: mark).first == .didResume(after: .zero, changed: []))
        }
        send(harness, .connection(.withdrawn))
        #expect(harness.state("photos") == (byTask ? .background : .active))
    }
}
