import Testing

@testable import LifecycleCore

/// `UnloadAfterSec=`.
@Suite("Unloading")
struct UnloadTests {
    private static func suspended(_ policy: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        let harness = Harness("web") {
            $0.unloadAfter = .seconds(600)
            $0.relaunch = .always
            policy(&$0)
        }
        harness.suspend("web")
        return harness
    }

    @Test("an app that takes part is killed while suspended, and is not relaunched (L46)")
    func killed() throws {
        let harness = Self.suspended()
        #expect(harness.view("web").unloadsIn == .seconds(600))
        harness.advance(.milliseconds(599_999))
        #expect(harness.state("web") == .suspended)
        let mark = harness.mark
        harness.advance(.milliseconds(1))
        #expect(harness.changes("web", since: mark) == ["terminating: unloaded", "notRunning: ended"])
        #expect(harness.notices("web", since: mark).isEmpty)
        let receipt = try harness.receipt("web")
        #expect(receipt.explanation == "Killed while suspended: it was idle for UnloadAfterSec=.")
        #expect(receipt.namespace == .exit && receipt.failure == nil && receipt.mayReturn && receipt.isForMemory)
        harness.advance(.seconds(1000))
        #expect(harness.state("web") == .notRunning && harness.view("web").launchPostponed == nil)
    }

    @Test("an app that takes no part is thawed, notified and has its terminate deadline (L46)")
    func notified() throws {
        let harness = Self.suspended { $0.terminateSuspended = .notify }
        let mark = harness.mark
        harness.advance(.seconds(600))
        #expect(
            harness.changes("web", since: mark) == [
                "background: unloaded", "terminating: unloaded", "notRunning: ended",
            ])
        #expect(harness.notices("web", since: mark) == [.willTerminate])
        #expect(
            try harness.receipt("web").explanation
                == "Terminated after it was idle for UnloadAfterSec=: exited with status 0.")
        harness.advance(.seconds(1000))
        #expect(harness.launches("web").count == 1)
    }

    @Test("one that ignores the notice is killed at its deadline, and not relaunched (L46)")
    func ignoring() throws {
        let harness = Self.suspended { $0.terminateSuspended = .notify }
        harness.behave("web") { $0.terminating = .ignores }
        harness.advance(.seconds(606))
        #expect(try harness.receipt("web").code == Receipt.Code.missedDeadline)
        harness.advance(.seconds(1000))
        #expect(harness.launches("web").count == 1)
        let other = Self.suspended { $0.terminateSuspended = .notify }
        other.behave("web") { $0.terminating = .cannotBeNotified }
        other.advance(.seconds(600))
        #expect(try other.receipt("web").explanation.contains("UnloadAfterSec="))
    }

    @Test("each suspension has the whole time")
    func anew() {
        let harness = Self.suspended()
        harness.advance(.seconds(500))
        harness.task("web", "sync")
        harness.endTask("web", "sync")
        harness.advance(.seconds(1))
        #expect(harness.view("web").unloadsIn == .seconds(600))
        harness.advance(.seconds(599))
        #expect(harness.state("web") == .suspended)
        harness.advance(.seconds(1))
        #expect(harness.state("web") == .notRunning)
    }

    @Test(
        "a worker that runs for a moment now and then is unloaded as if it slept through (L46, L51)",
        arguments: [false, true])
    func moments(works: Bool) {
        let harness = TrafficTests.worker { $0.unloadAfter = .seconds(60) }
        harness.launch("web")
        harness.behave("web") { $0.work?.tick = .milliseconds(500) }
        harness.advance(.seconds(10))
        #expect(harness.state("web") == .suspended)
        // The pulse comes 21 s after that. What it gives the worker to do ends the sleep.
        harness.advance(.seconds(20))
        harness.behave("web") { $0.work?.unread = works ? 1 : 0 }
        harness.advance(.seconds(5))
        harness.behave("web") { $0.work?.unread = 0 }
        harness.advance(.milliseconds(34_999))
        #expect(harness.state("web") == .suspended)
        harness.advance(.milliseconds(1))
        #expect(harness.state("web") == (works ? .suspended : .notRunning))
    }

    @Test("a worker with timers that follow each other within 2s is unloaded as if it slept through (L46, L51)")
    func timersInTurn() {
        let harness = TrafficTests.worker { $0.unloadAfter = .seconds(60) }
        harness.launch("web")
        harness.behave("web") { $0.work?.due = harness.now + .seconds(20) }
        harness.advance(.seconds(15))
        #expect(harness.state("web") == .suspended)
        harness.behave("web") { $0.work?.due = harness.now + .milliseconds(5600) }
        harness.advance(.milliseconds(5100))
        // The first one is served, and the second one is waited for.
        #expect(harness.state("web") == .background)
        #expect(harness.view("web").awake.map(\.reason) == [.work(.timerSoon)])
        harness.behave("web") { $0.work?.due = nil }
        harness.advance(.seconds(1))
        #expect(harness.state("web") == .suspended)
        harness.advance(.milliseconds(48_899))
        #expect(harness.state("web") == .suspended)
        harness.advance(.milliseconds(1))
        #expect(harness.state("web") == .notRunning)
    }

    @Test("a worker that was unloaded does not come back, and is launched by the next connection (L29, L49)")
    func worker() {
        let harness = Harness("web") {
            $0.role = .worker
            $0.unloadAfter = .seconds(60)
            $0.holdsSockets = true
        }
        harness.connect("web")
        harness.advance(.seconds(71))
        #expect(harness.state("web") == .notRunning)
        harness.advance(.seconds(1000))
        #expect(harness.launches("web").count == 1)
        harness.connect("web")
        #expect(harness.state("web") == .background)
    }

    @Test("an app that the kernel kills for memory while it is unloaded does not come back")
    func outOfMemory() {
        for notifies in [true, false] {
            let harness = Self.suspended { $0.terminateSuspended = notifies ? .notify : .kill }
            harness.behave("web") {
                $0.dies = false
                $0.terminating = .ignores
            }
            harness.advance(.seconds(600))
            let run = harness.run("web")
            harness.handle(.run(run, .memory(.outOfMemory(.machine))))
            harness.handle(.run(run, .process(.exited(.unknown, cpu: .zero, memory: 0))))
            harness.handle(.run(run, .process(.emptied)))
            harness.advance(.seconds(1000))
            #expect(harness.launches("web").count == 1)
        }
    }

    @Test(
        "an unloading whose processes end before the exit status is known is no end by itself, and not followed by a relaunch"
    )
    func emptiedFirst() {
        let harness = Self.suspended { $0.terminateSuspended = .notify }
        harness.behave("web") { $0.terminating = .ignores }
        harness.advance(.seconds(600))
        let run = harness.run("web")
        harness.handle(.run(run, .process(.emptied)))
        harness.handle(.run(run, .process(.exited(.signaled(15, coreDumped: false), cpu: .zero, memory: 0))))
        harness.advance(.seconds(1000))
        #expect(harness.launches("web").count == 1)
    }

    // MARK: What comes meanwhile

    @Test("a request or a task during the thaw ends the unloading", arguments: 0..<5)
    func duringThaw(number: Int) {
        let harness = Self.suspended {
            $0.terminateSuspended = .notify
            $0.backgroundModes = .push
        }
        harness.behave("web") { $0.thaws = false }
        harness.advance(.seconds(600))
        #expect(harness.view("web").awakeReasons.contains(.waking))
        switch number {
        case 0: harness.activate("web")
        case 1: harness.push("web")
        case 2: harness.task("web", "sync")
        case 3: harness.background("web")
        default: harness.launch("web", .background)
        }
        harness.handle(.run(harness.run("web"), .suspension(.thawed(attempt: 1))))
        #expect(harness.state("web") == (number == 0 ? .active : .background))
        #expect(harness.receipts.isEmpty)
    }

    @Test("a request to terminate during the thaw is one: it is answered, and the receipt says so (L46)")
    func terminateDuringThaw() throws {
        let harness = Self.suspended { $0.terminateSuspended = .notify }
        harness.behave("web") { $0.thaws = false }
        harness.advance(.seconds(600))
        let request = harness.terminate("web")
        harness.handle(.run(harness.run("web"), .suspension(.thawed(attempt: 1))))
        #expect(try harness.receipt("web").explanation == "Terminated on request: exited with status 0.")
        #expect(harness.isAnswered(request))
    }

    @Test("a request or a connection during the end launches the app after it", arguments: 0..<4)
    func duringEnd(number: Int) {
        let harness = Self.suspended {
            $0.terminateSuspended = .notify
            $0.backgroundModes = .push
            $0.holdsSockets = true
            $0.relaunch = .no
        }
        harness.behave("web") { $0.terminating = .ignores }
        harness.advance(.seconds(600))
        #expect(harness.state("web") == .terminating)
        switch number {
        case 0: harness.activate("web")
        case 1: harness.push("web")
        case 2: harness.launch("web", .background)
        default: harness.connect("web")
        }
        harness.exit("web")
        #expect(harness.launches("web").count == 2)
        #expect(harness.state("web") == (number == 0 ? .active : .background))
    }

    @Test("an app for which input or a foreground slot waits is not unloaded (L15, L50, L53)")
    func waitingInput() {
        let harness = Self.suspended {
            $0.wakesOnTraffic = true
            $0.wakeThreshold = .init(bytes: 64, time: .seconds(500))
        }
        harness.advance(.seconds(400))
        let input = Input(kind: .stream, pid: 1, descriptor: 5, bytes: 3)
        harness.handle(.run(harness.run("web"), .traffic(.inputArrived(attempt: 1, input))))
        #expect(harness.view("web").unloadsIn == nil)
        harness.advance(.seconds(499))
        #expect(harness.state("web") == .suspended)
        harness.advance(.seconds(1))
        #expect(harness.state("web") == .background)

        let away = Self.suspended()
        away.handle(.absence(.sleepRequested))
        away.activate("web")
        away.advance(.seconds(700))
        #expect(away.state("web") == .suspended)
        away.handle(.absence(.awoke))
        #expect(away.state("web") == .active)
    }

    @Test("a worker is looked at once more before it is unloaded (L51)")
    func workerLook() {
        let harness = Harness("web") {
            $0.role = .worker
            $0.unloadAfter = .milliseconds(1)
        }
        harness.launch("web")
        harness.behave("web") { $0.work = nil }
        harness.isSlow = true
        harness.advance(.seconds(9))
        harness.isSlow = false
        harness.behave("web") { $0.work = RunWork(cpu: .zero) }
        harness.advance(.seconds(60))
        #expect(harness.state("web") == .notRunning)
    }

    // MARK: Configuration, shutdown, recovery

    @Test("a manifest that is read again changes the time")
    func reload() {
        let harness = Self.suspended()
        harness.advance(.seconds(300))
        harness.register("web") { $0.unloadAfter = nil }
        #expect(harness.view("web").unloadsIn == nil)
        harness.advance(.seconds(3000))
        #expect(harness.state("web") == .suspended)
        harness.register("web") { $0.unloadAfter = .seconds(60) }
        #expect(harness.view("web").unloadsIn == .zero)
        harness.advance(.zero)
        #expect(harness.state("web") == .notRunning)
    }

    @Test("an app with ExitsOnSuspend= is ended as before (L20)")
    func exitsOnSuspend() throws {
        let harness = Harness("web") {
            $0.unloadAfter = .seconds(60)
            $0.exitsOnSuspend = true
        }
        harness.launch("web", .background)
        harness.advance(.seconds(1))
        #expect(try harness.receipt("web").explanation.contains("ExitsOnSuspend="))
    }

    @Test("nothing is unloaded in a shutdown, and the time is due again if the next daemon cancels that (L46)")
    func shutdown() {
        let harness = Self.suspended { $0.terminateSuspended = .notify }
        harness.behave("web") { $0.thaws = false }
        harness.advance(.seconds(590))
        harness.handle(.shutdownRequested(immediately: false))
        harness.advance(.seconds(4))
        #expect(!harness.changes("web").contains { $0.contains("unloaded") })
        // A shutdown that has not come to this app yet.
        let other = Self.suspended()
        other.behave("web") { $0.dies = false }
        other.delay(.seconds(1000))
        other.handle(.shutdownRequested(immediately: false))
        #expect(!other.changes("web").contains { $0.contains("unloaded") })
    }

    @Test("a daemon that follows a crash unloads what is due, and continues an unloading")
    func recovered() throws {
        let harness = Self.suspended { $0.terminateSuspended = .notify }
        harness.behave("web") { $0.thaws = false }
        harness.advance(.seconds(600))
        let core = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(core.difference(from: harness.core) == nil)
        harness.handle(.recovered)
        harness.behave("web") { $0.thaws = true }
        harness.handle(.run(harness.run("web"), .process(.reattached(messagesKept: true))))
        #expect(try harness.receipt("web").explanation.contains("UnloadAfterSec="))
    }
}
