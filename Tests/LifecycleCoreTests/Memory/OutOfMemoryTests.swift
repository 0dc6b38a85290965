import LifecycleCore
import Testing

import enum LifecycleCore.ExitStatus

@Suite("The kernel's OOM killer")
struct OutOfMemoryTests {
    /// The classes of an app since a mark.
    private func classes(_ harness: Harness, _ app: String, since mark: Int = 0) -> [OOMClass] {
        let run = harness.run(app)
        return harness.effects(since: mark).compactMap {
            if case .run(run, .memory(.setOOMClass(let oomClass))) = $0 { oomClass } else { nil }
        }
    }

    @Test("an app's rank for the kernel's OOM killer follows its state (L38)")
    func states() {
        let harness = Harness("photos")
        harness.launch("photos")
        #expect(classes(harness, "photos") == [.inactive, .active])
        var mark = harness.mark
        harness.request("photos", .interrupt)
        harness.request("photos", .endInterruption)
        #expect(classes(harness, "photos", since: mark) == [.inactive, .active])
        mark = harness.mark
        harness.background("photos")
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        #expect(classes(harness, "photos", since: mark) == [.background, .suspended])
        mark = harness.mark
        harness.activate("photos")
        #expect(classes(harness, "photos", since: mark) == [.inactive, .active])
    }

    @Test("an app that another one displaces ranks before it for the kernel (L38)")
    func displaced() {
        let harness = Harness("photos", "mail")
        harness.behave("photos") { $0.entering = .isSilent }
        harness.launch("photos")
        let mark = harness.mark
        harness.launch("mail")
        #expect(classes(harness, "photos", since: mark) == [.background])
        #expect(classes(harness, "mail") == [.inactive, .active])
    }

    @Test("the next daemon sets the rank of a run that it has found again (L38)")
    func recovered() {
        let harness = Harness("photos")
        harness.suspend("photos")
        let run = harness.run("photos")
        var core = LifecycleCore(recovering: harness.core.saved)
        #expect(core.difference(from: harness.core) == nil)
        _ = core.handle(.recovered, at: harness.now)
        #expect(
            core.handle(.run(run, .process(.reattached(messagesKept: true))), at: harness.now).contains(
                .run(run, .memory(.setOOMClass(.suspended)))))
    }

    @Test(
        "the receipt of an app that the kernel killed for memory says so (L41, L45)",
        arguments: [
            (
                OutOfMemory.limit, "Killed by the kernel: exceeded its own memory limit (MemoryMax=).",
                Receipt.Failure.failed
            ),
            (.machine, "Killed by the kernel because memory was short.", nil),
        ] as [(OutOfMemory, String, Receipt.Failure?)])
    func receipt(cause: OutOfMemory, explanation: String, failure: Receipt.Failure?) throws {
        for status in [ExitStatus.signaled(9, coreDumped: false), .unknown] {
            let harness = Harness("photos")
            harness.suspend("photos")
            harness.handle(.run(harness.run("photos"), .memory(.outOfMemory(cause))))
            harness.exit("photos", status)
            let receipt = try harness.receipt("photos")
            #expect(receipt.namespace == .jetsam)
            #expect(receipt.code == (cause == .limit ? 7 : 1))
            #expect(receipt.explanation == explanation)
            #expect(receipt.failure == failure)
            #expect(receipt.state == .suspended)
        }
    }

    @Test("what the daemon killed for another cause, and what exits by itself, is not attributed to the kernel (L45)")
    func otherCause() throws {
        let harness = Harness("photos", "mail")
        harness.behave("photos") { $0.dies = false }
        harness.launch("photos")
        harness.remove("photos")
        harness.handle(.run(harness.run("photos"), .memory(.outOfMemory(.machine))))
        harness.exit("photos", .signaled(9, coreDumped: false))
        #expect(try harness.receipt("photos").namespace == .user)
        harness.launch("mail")
        harness.handle(.run(harness.run("mail"), .memory(.outOfMemory(.machine))))
        harness.exit("mail", .exited(1))
        #expect(try harness.receipt("mail").explanation == "Exited with status 1.")
    }

    @Test("the restoration state is not blamed for deaths while launching by the kernel's OOM killer (L11)")
    func restorationState() {
        let harness = Harness("photos") { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        for _ in 0..<3 {
            harness.launch("photos")
            harness.handle(.run(harness.run("photos"), .memory(.outOfMemory(.machine))))
            harness.exit("photos", .signaled(9, coreDumped: false))
        }
        #expect(!harness.effects.contains { if case .dropRestorationState = $0 { true } else { false } })
    }
}
