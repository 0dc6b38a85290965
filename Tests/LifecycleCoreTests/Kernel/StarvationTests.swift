import LifecycleCore
import Testing

@Suite("Time without a processor")
struct StarvationTests {
    /// Starts a deadline of an app that does not answer. All are 5s.
    private func begin(_ kind: DeadlineKind) -> Harness {
        let harness = Harness("photos") { policy in
            policy.backgroundModes = .push
            policy.backgroundTime = kind == .wake ? .seconds(60) : .seconds(30)
            policy.watchdog = kind == .watchdog ? .seconds(5) : nil
            if kind == .launch { policy.readiness = .notified }
        }
        harness.behave("photos") {
            if kind == .launch { $0.launching = .executes }
            if kind == .background { $0.entering = .isSilent }
            if kind == .terminate { $0.terminating = .ignores }
        }
        harness.launch("photos")
        switch kind {
        case .launch, .watchdog: break
        case .background: harness.background("photos")
        case .terminate: harness.terminate("photos")
        case .backgroundTime:
            harness.background("photos")
            harness.task("photos", "upload")
        case .wake:
            harness.background("photos")
            harness.push("photos")
        case .thaw: preconditionFailure("a thaw waits for no processor")
        }
        return harness
    }

    private func credits(_ harness: Harness, _ kind: DeadlineKind) -> [Duration] {
        harness.reports().compactMap { report in
            if case .deadlineCredited(id("photos"), kind, let time) = report { time } else { nil }
        }
    }

    @Test(
        "time in which an app got no processor is added to its deadline (L48)",
        arguments: [DeadlineKind.launch, .background, .terminate])
    func credited(kind: DeadlineKind) throws {
        let harness = begin(kind)
        harness.behave("photos") { $0.waited = .seconds(3) }
        harness.advance(.seconds(5))
        #expect(credits(harness, kind) == [.seconds(3)])
        #expect(harness.view("photos").deadline?.remaining == .seconds(3))
        harness.behave("photos") { $0.waited = .seconds(4) }
        harness.advance(.seconds(3))
        #expect(credits(harness, kind) == [.seconds(3), .seconds(1)])
        #expect(harness.receipts.isEmpty)
        harness.advance(.seconds(1))
        let receipt = try harness.receipt("photos")
        #expect(receipt.code == Receipt.Code.missedDeadline)
        #expect(receipt.explanation.contains("(5s and 4s without a processor)"))
        #expect(receipt.deadline?.wall == .seconds(9))
        #expect(receipt.deadline?.credited == .seconds(4))
    }

    @Test(
        "at most 20s without a processor are added to a deadline (L48)",
        arguments: [DeadlineKind.launch, .background, .terminate])
    func bounded(kind: DeadlineKind) throws {
        let harness = begin(kind)
        for _ in 0..<30 {
            harness.behave("photos") { $0.waited += .seconds(1) }
            harness.advance(.seconds(1))
        }
        #expect(credits(harness, kind).reduce(.zero, +) == .seconds(20))
        #expect(try harness.receipt("photos").deadline?.wall == .seconds(25))
    }

    @Test("an app that answers in the time that was added is in time (L48)")
    func answers() {
        let harness = begin(.launch)
        harness.behave("photos") { $0.waited = .seconds(4) }
        harness.advance(.seconds(8))
        harness.handle(.run(harness.run("photos"), .transition(.ready)))
        #expect(harness.state("photos") == .active)
    }

    @Test("an app cannot have waited for longer than its deadline counts (L48)")
    func waitedBefore() {
        let harness = begin(.background)
        // The daemon could not measure when the notice was sent.
        harness.behave("photos") { $0.waited = .seconds(1000) }
        harness.advance(.seconds(5))
        #expect(credits(harness, .background) == [.seconds(5)])
    }

    @Test(
        "time without a processor does not count for tasks, wakes and heartbeats (L48)",
        arguments: [DeadlineKind.backgroundTime, .wake, .watchdog])
    func notCredited(kind: DeadlineKind) throws {
        let harness = begin(kind)
        harness.behave("photos") { $0.waited = .seconds(4) }
        harness.advance(.seconds(31))
        #expect(credits(harness, kind).isEmpty)
        #expect(harness.receipts.count == 1)
    }

    @Test("a deadline that is extended keeps the time that was added (L25, L48)")
    func extended() {
        let harness = begin(.launch)
        harness.behave("photos") { $0.waited = .seconds(3) }
        harness.advance(.seconds(5))
        harness.handle(.run(harness.run("photos"), .deadline(.extended(by: .seconds(100)))))
        // ExtendedDeadlineMaxSec=60s, and 3s.
        #expect(harness.view("photos").deadline?.remaining == .seconds(58))
    }
}
