import LifecycleCore
import Testing

import enum LifecycleCore.ExitStatus

@Suite("Processes beside the main process at the end of a run")
struct KillModeTests {
    /// An app with two processes beside its main process.
    private func harness(childrenEnd: Bool, _ killMode: AppPolicy.KillMode = .controlGroup) -> Harness {
        let harness = Harness("photos") { $0.killMode = killMode }
        harness.behave("photos") {
            $0.children = ["sh", "redis-server"]
            $0.childrenEnd = childrenEnd
        }
        harness.launch("photos")
        return harness
    }

    @Test("processes that end within the deadline of their main process are not killed (L46)")
    func childrenEnd() throws {
        let harness = harness(childrenEnd: false)
        let request = harness.terminate("photos")
        #expect(harness.killed() == [])
        #expect(harness.receipts == [])
        #expect(harness.state("photos") == .terminating)
        harness.advance(.seconds(2))
        harness.handle(.run(harness.run("photos"), .process(.emptied)))
        let receipt = try harness.receipt("photos")
        #expect(harness.killed() == [])
        #expect(receipt.explanation == "Terminated on request: exited with status 0.")
        #expect(receipt.remaining == nil)
        #expect(receipt.exit == .exited(0))
        #expect(receipt.namespace == .exit)
        #expect(harness.answers[request] == .ended(receipt))
        #expect(harness.state("photos") == .notRunning)
    }

    @Test("processes that are left at the end of the deadline are killed, and the receipt names them (L45, L46)")
    func childrenIgnore() throws {
        let harness = harness(childrenEnd: false)
        harness.terminate("photos")
        harness.advance(.milliseconds(4999))
        #expect(harness.killed() == [])
        harness.behave("photos") { $0.children = ["redis-server"] }
        harness.advance(.milliseconds(1))
        let receipt = try harness.receipt("photos")
        #expect(harness.killed() == ["photos"])
        #expect(
            receipt.explanation
                == "Terminated on request: exited with status 0; 1 remaining process was killed (redis-server).")
        #expect(receipt.remaining == RemainingProcesses(count: 1, names: ["redis-server"]))
        #expect(receipt.deadline?.what == .terminate)
        #expect(receipt.deadline?.wall == .seconds(5))
        #expect(receipt.namespace == .exit)
        #expect(harness.state("photos") == .notRunning)
    }

    @Test("an extension of the terminate deadline holds for the processes that are left (L25)")
    func extended() {
        let harness = harness(childrenEnd: false)
        harness.terminate("photos")
        harness.handle(.run(harness.run("photos"), .deadline(.extended(by: .seconds(20)))))
        harness.advance(.milliseconds(19_999))
        #expect(harness.killed() == [])
        harness.advance(.milliseconds(1))
        #expect(harness.killed() == ["photos"])
    }

    @Test(
        "with KillMode=mixed or process the others are killed with the end of the main process (L46, L47)",
        arguments: [AppPolicy.KillMode.mixed, .process])
    func otherModes(mode: AppPolicy.KillMode) throws {
        let harness = harness(childrenEnd: false, mode)
        harness.terminate("photos")
        #expect(harness.killed() == ["photos"])
        #expect(
            try harness.receipt("photos").explanation
                == "Terminated on request: exited with status 0; 2 remaining processes were killed (sh, redis-server).")
    }

    @Test("the receipt of an exit without cause names the processes that were left and killed (L45, L47)")
    func ownExit() throws {
        let harness = harness(childrenEnd: false)
        let remaining = RemainingProcesses(count: 7, names: ["a", "b", "c", "d"])
        harness.handle(
            .run(harness.run("photos"), .process(.exited(.exited(0), cpu: .zero, memory: 0, remaining: remaining))))
        #expect(harness.killed() == ["photos"])
        let receipt = try harness.receipt("photos")
        #expect(receipt.explanation == "Exited with status 0; 7 remaining processes were killed (a, b, c).")
    }

    @Test("processes that are killed together with their main process are not called remaining (L45)")
    func killedTogether() throws {
        let harness = harness(childrenEnd: false)
        harness.behave("photos") { $0.dies = false }
        harness.remove("photos")
        let remaining = RemainingProcesses(count: 1, names: ["sh"])
        let exit = RunEvent.process(
            .exited(.signaled(9, coreDumped: false), cpu: .zero, memory: 0, remaining: remaining))
        harness.handle(.run(harness.run("photos"), exit))
        #expect(try harness.receipt("photos").explanation == "Killed: removed by the user.")
    }

    @Test(
        "what cannot wait kills the processes that are left, and the receipt tells how the main process ended (L42)",
        arguments: ["remove", "shutdown"])
    func impatient(why: String) throws {
        let harness = harness(childrenEnd: false)
        harness.terminate("photos")
        if why == "remove" {
            harness.remove("photos")
        } else {
            harness.handle(.shutdownRequested(immediately: false))
            #expect(harness.killed() == [])
            harness.handle(.shutdownRequested(immediately: true))
        }
        #expect(harness.killed() == ["photos"])
        let receipt = try harness.receipt("photos")
        #expect(
            receipt.explanation
                == "Terminated on request: exited with status 0; 2 remaining processes were killed (sh, redis-server).")
        #expect(receipt.deadline?.what == .terminate)
        #expect(harness.state("photos") == .notRunning)
    }

    @Test("a launch during the rest of the deadline follows the end of the last process (L5)")
    func launchFollows() {
        let harness = harness(childrenEnd: false)
        harness.terminate("photos")
        let request = harness.launch("photos")
        #expect(!harness.isAnswered(request))
        harness.handle(.run(harness.run("photos"), .process(.emptied)))
        #expect(harness.answers[request] == .done(.active))
        #expect(harness.launches("photos").count == 2)
    }

    @Test("an app that ends itself (STOPPING=1) did not notify its processes: they are killed with its exit")
    func selfInitiated() {
        let harness = harness(childrenEnd: false)
        harness.handle(.run(harness.run("photos"), .transition(.stopping)))
        let remaining = RemainingProcesses(count: 1, names: ["sh"])
        harness.handle(
            .run(harness.run("photos"), .process(.exited(.exited(0), cpu: .zero, memory: 0, remaining: remaining))))
        #expect(harness.killed() == ["photos"])
    }

    @Test("a daemon that follows a crash waits for the processes that are left, as the dead one did")
    func recovered() throws {
        let harness = harness(childrenEnd: false)
        harness.terminate("photos")
        var core = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(core.difference(from: harness.core) == nil)
        #expect(core.hasExited(harness.run("photos")))
        _ = core.handle(.recovered, at: harness.now)
        let run = harness.run("photos")
        #expect(core.handle(.run(run, .process(.reattached(messagesKept: true))), at: harness.now) == [])
        let effects = core.handle(.run(run, .process(.emptied)), at: harness.now)
        #expect(effects.contains { if case .writeReceipt = $0 { true } else { false } })
    }
}
