import LifecycleCore
import Testing

@Suite("Ends of suspended apps")
struct SuspendedEndTests {
    /// A suspended app that takes no part: it cannot be notified that it is in the background.
    private func harness(_ change: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        let harness = Harness("redis", policy: change)
        harness.behave("redis") { $0.entering = .cannotBeNotified }
        harness.suspend("redis")
        return harness
    }

    @Test("a suspended app that takes no part is thawed, notified and given its deadline (L46)")
    func thawed() throws {
        let harness = harness()
        harness.behave("redis") { $0.terminating = .ignores }
        let mark = harness.mark
        let request = harness.terminate("redis")
        let run = harness.run("redis")
        let effects = harness.effects(since: mark)
        let thaw = try #require(effects.firstIndex(of: .run(run, .suspension(.thaw(attempt: 1)))))
        #expect(thaw < effects.firstIndex(of: .run(run, .notify(.willTerminate)))!)
        #expect(harness.killed() == [])
        #expect(harness.changes("redis", since: mark) == ["background: requested", "terminating: requested"])
        harness.advance(.milliseconds(4999))
        harness.exit("redis")
        let receipt = try harness.receipt("redis")
        #expect(receipt.explanation == "Terminated on request: exited with status 0.")
        #expect(harness.answers[request] == .ended(receipt))
    }

    @Test(
        "TerminateSuspended= decides for an app that takes part and for one that does not (L46)",
        arguments: AppPolicy.TerminateSuspended.allCases, [false, true])
    func policies(policy: AppPolicy.TerminateSuspended, takesPart: Bool) throws {
        let harness = Harness("redis") { $0.terminateSuspended = policy }
        if !takesPart { harness.behave("redis") { $0.entering = .cannotBeNotified } }
        harness.suspend("redis")
        harness.terminate("redis")
        let isNotified = policy == .notify || (policy == .auto && !takesPart)
        #expect(harness.notices("redis").contains(.willTerminate) == isNotified)
        #expect(
            try harness.receipt("redis").explanation
                == (isNotified
                    ? "Terminated on request: exited with status 0." : "Killed while suspended: terminated on request.")
        )
    }

    @Test("an app takes part as well if it says on its own that it is in the background (L46)")
    func answers() {
        let harness = Harness("redis")
        harness.behave("redis") { $0.entering = .cannotBeNotified }
        harness.launch("redis", .background)
        harness.handle(.run(harness.run("redis"), .transition(.backgroundEntered)))
        harness.advance(.seconds(1))
        harness.terminate("redis")
        #expect(!harness.notices("redis").contains(.willTerminate))
        #expect(harness.killed() == ["redis"])
    }

    @Test("jetsam and a removal never thaw a suspended app for its end (L40, L42)", arguments: ["jetsam", "remove"])
    func neverNotified(why: String) {
        let harness = harness { $0.terminateSuspended = .notify }
        let mark = harness.mark
        if why == "jetsam" { harness.simulate(.critical) } else { harness.remove("redis") }
        #expect(harness.killed() == ["redis"])
        #expect(
            !harness.effects(since: mark).contains { if case .run(_, .suspension(.thaw)) = $0 { true } else { false } })
    }

    @Test("an activation takes back the end of an app that is being thawed for it (L5)")
    func takenBack() {
        let harness = harness()
        harness.behave("redis") { $0.thaws = false }
        let end = harness.terminate("redis")
        let activate = harness.activate("redis")
        #expect(harness.answers[end] == .superseded(by: .active))
        harness.handle(.run(harness.run("redis"), .suspension(.thawed(attempt: 1))))
        #expect(harness.answers[activate] == .done(.active))
        #expect(!harness.notices("redis").contains(.willTerminate))
    }

    // MARK: Shutdown

    private static let names = (0..<20).map { "app\($0)" }

    /// Twenty suspended apps that take no part, the first one suspended first, and one that takes part.
    private func crowd(_ terminating: Kernel.Behaviour.Terminating) -> Harness {
        let harness = Harness("friend") { $0.terminateDeadline = nil }
        harness.suspend("friend")
        for name in Self.names {
            harness.register(name) { $0.terminateDeadline = nil }
            harness.behave(name) {
                $0.entering = .cannotBeNotified
                $0.terminating = terminating
            }
            harness.suspend(name)
        }
        return harness
    }

    private func thawed(_ harness: Harness, since mark: Int) -> [String] {
        harness.effects(since: mark).compactMap {
            if case .run(let run, .suspension(.thaw(attempt: _))) = $0 {
                harness.kernel.app(of: run)?.name
            } else {
                nil
            }
        }
    }

    @Test("an orderly shutdown notifies suspended apps that take no part, the most recently used first (L46)")
    func shutdown() {
        let harness = crowd(.exits(0))
        let mark = harness.mark
        harness.handle(.shutdownRequested(immediately: false))
        #expect(harness.core.isFinished)
        #expect(thawed(harness, since: mark) == Self.names.reversed())
        #expect(!harness.notices("friend").contains(.willTerminate))
        #expect(Self.names.allSatisfy { harness.notices($0).last == .willTerminate })
        #expect(harness.receipts.count == 21)
        #expect(harness.core.nextDeadline == nil)
    }

    @Test("a shutdown thaws eight suspended apps at once, and the next when one has ended (L46)")
    func window() {
        let harness = crowd(.ignores)
        let mark = harness.mark
        harness.handle(.shutdownRequested(immediately: false))
        #expect(thawed(harness, since: mark) == Array(Self.names.reversed().prefix(8)))
        harness.exit("app15")
        harness.exit("app19")
        #expect(thawed(harness, since: mark) == Array(Self.names.reversed().prefix(10)))
    }

    @Test("a shutdown has 60s for all apps together, then the rest is killed, with receipts (L46)")
    func budget() throws {
        let harness = crowd(.ignores)
        harness.handle(.shutdownRequested(immediately: false))
        harness.advance(.milliseconds(59_999))
        #expect(harness.killed() == ["friend"])
        // 16 of the 20, and the others 1 ms later.
        harness.advance(.milliseconds(2))
        #expect(harness.core.isFinished)
        #expect(harness.killed().count == 21)
        #expect(try harness.receipt("app0").explanation == "Killed while suspended: greenroomd shuts down.")
        #expect(try harness.receipt("app19").explanation == "Killed: greenroomd shuts down.")
        #expect(harness.core.nextDeadline == nil)
    }

    @Test("an immediate shutdown kills suspended apps that an orderly one has not notified yet")
    func immediately() {
        let harness = crowd(.ignores)
        harness.handle(.shutdownRequested(immediately: false))
        harness.handle(.shutdownRequested(immediately: true))
        harness.advance(.milliseconds(1))
        #expect(harness.core.isFinished)
        #expect(harness.killed().count == 21)
    }

    @Test("a shutdown in progress is saved as it is, and the next daemon ends it")
    func saved() throws {
        let harness = crowd(.ignores)
        harness.handle(.shutdownRequested(immediately: false))
        var core = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(core.difference(from: harness.core) == nil)
        #expect(core.nextDeadline == harness.core.nextDeadline)
        _ = core.handle(.recovered, at: harness.now)
        #expect(!core.isShuttingDown)
    }
}
