import LifecycleCore
import Testing

@Suite("End of a run")
struct EndingTests {
    static let noProgram = SpawnProblem(sentence: "/nowhere: no such file or directory", exitStatus: 203)

    @Test(
        "an app that is removed while it terminates, and ends by SIGTERM before SIGKILL, was terminated on request (L45)"
    )
    func removedWhileTerminating() throws {
        let harness = Harness("photos")
        harness.move("photos", to: .terminating)
        harness.behave("photos") { $0.dies = false }
        harness.remove("photos")
        let run = harness.run("photos")
        harness.handle(.run(run, .process(.exited(.signaled(15, coreDumped: false), cpu: .zero, memory: 0))))
        harness.handle(.run(run, .process(.emptied)))
        #expect(try harness.receipt("photos").explanation == "Terminated on request: ended by SIGTERM.")
    }

    @Test("a failed launch has a receipt with systemd's exit status and kills no process")
    func spawnFails() throws {
        let harness = Harness("photos")
        harness.behave("photos") { $0.launching = .fails(Self.noProgram) }
        let request = harness.launch("photos")
        let receipt = try harness.receipt("photos")
        #expect(receipt.namespace == .exit)
        #expect(receipt.exit == .exited(203))
        #expect(receipt.pid == nil)
        #expect(receipt.state == .launching)
        #expect(receipt.explanation == "Could not be launched: /nowhere: no such file or directory.")
        #expect(harness.answers[request] == .ended(receipt))
        #expect(harness.killed() == [])
        #expect(harness.state("photos") == .notRunning)
    }

    @Test("the receipt of a launch that fails after the process was created names its pid")
    func spawnFailsLate() throws {
        let harness = Harness("photos")
        harness.behave("photos") { $0.launching = .spawns }
        harness.launch("photos")
        harness.handle(.run(harness.run("photos"), .process(.spawnFailed(Self.noProgram))))
        #expect(try harness.receipt("photos").pid == 101)
        #expect(harness.state("photos") == .notRunning)
    }

    @Test("a launch that fails while the app is being killed has a receipt and sends no second SIGKILL")
    func spawnFailsWhileEnding() throws {
        let harness = Harness("photos")
        harness.behave("photos") {
            $0.launching = .hangs; $0.dies = false; $0.terminating = .ignores
        }
        harness.launch("photos")
        harness.remove("photos")
        harness.handle(.run(harness.run("photos"), .process(.spawnFailed(Self.noProgram))))
        #expect(harness.state("photos") == .notRunning)
        #expect(harness.receipts.last?.explanation == "Could not be launched: /nowhere: no such file or directory.")

        harness.launch("photos")
        let run = harness.run("photos")
        harness.handle(.run(run, .transition(.stopping)))
        #expect(harness.state("photos") == .terminating)
        let mark = harness.mark
        harness.handle(.run(run, .process(.spawnFailed(Self.noProgram))))
        #expect(harness.killed(since: mark) == [])
        #expect(harness.state("photos") == .notRunning)
        #expect(harness.receipts.last?.explanation == "Could not be launched: /nowhere: no such file or directory.")
    }

    @Test("a failed launch ends the run in any phase")
    func spawnFailsAfterReady() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.launching = .hangs }
        harness.launch("photos")
        let run = harness.run("photos")
        harness.handle(.run(run, .transition(.ready)))
        #expect(harness.state("photos") == .active)
        harness.handle(.run(run, .process(.spawnFailed(Self.noProgram))))
        #expect(harness.state("photos") == .notRunning)
        #expect(harness.receipts.count == 1)
    }

    @Test(
        "an app that cannot be notified of its end is killed immediately and not blamed (L46)",
        arguments: [
            "request", "shutdown", "jetsam",
        ])
    func cannotBeNotified(why: String) throws {
        let harness = Harness("photos") { $0.terminateDeadline = nil }
        harness.behave("photos") { $0.terminating = .cannotBeNotified }
        if why == "request" {
            harness.launch("photos")
            let request = harness.terminate("photos")
            #expect(harness.answers[request] == .ended(try harness.receipt("photos")))
        } else if why == "shutdown" {
            harness.behave("photos") { $0.launching = .hangs }
            harness.launch("photos")
            harness.handle(.shutdownRequested(immediately: false))
            #expect(harness.core.isFinished)
        } else {
            harness.behave("photos") { $0.launching = .hangs }
            harness.kernel.others = 15 * gibibyte + 200 * mebibyte
            harness.launch("photos", .background)
            for _ in 0...3 {
                harness.handle(.memory(.pressureStalled(.warning)))
                harness.delay(.seconds(2))
            }
        }
        let receipt = try harness.receipt("photos")
        #expect(receipt.namespace == (why == "jetsam" ? .jetsam : .exit))
        #expect(receipt.deadline == nil)
        #expect(harness.state("photos") == .notRunning)
    }

    @Test("an app that announced its own end gets no willTerminate and is not killed")
    func selfInitiatedEnd() {
        let harness = Harness("photos")
        harness.launch("photos")
        let run = harness.run("photos")
        harness.handle(.run(run, .transition(.stopping)))
        harness.handle(.run(run, .transition(.notified(.willTerminate, delivered: false, cpu: .zero))))
        #expect(harness.killed() == [])
        #expect(harness.notices("photos").last == .didBecomeActive(.launch))
    }

    // MARK: L45, L47

    @Test(
        "a crash in each stage has one receipt, and the run is over once its cgroup is killed and empty (L45, L47)",
        arguments: Stage.withProcess)
    func crash(stage: Stage) throws {
        let harness = Harness("photos")
        harness.move("photos", to: stage)
        harness.behave("photos") { $0.dies = false }
        let run = harness.run("photos")
        let pid = harness.view("photos").pid
        let before = harness.killed()
        harness.handle(
            .run(run, .process(.exited(.signaled(11, coreDumped: true), cpu: .seconds(2), memory: 3 * mebibyte))))
        let receipt = try harness.receipt("photos")
        // SIGKILL was sent before and is not sent again.
        #expect(harness.killed() == ["photos"])
        #expect(before == (stage == .ending ? ["photos"] : []))
        #expect(harness.state("photos") == .terminating)
        #expect(receipt.pid == pid)
        #expect(receipt.run == run)
        let states: [Stage: AppState] = [.terminating: .active, .ending: .active]
        #expect(receipt.state == states[stage] ?? stage.state)
        #expect(receipt.namespace == .signal)
        #expect(receipt.code == 2)
        #expect(receipt.explanation == "Crashed with SIGSEGV (core dumped).")
        #expect(receipt.exit == .signaled(11, coreDumped: true))
        #expect(receipt.cpu == .seconds(2))
        // The kernel's peak counts only if the size was never measured. A frozen app was measured.
        let isMeasured = [.suspending, .suspended, .waking].contains(stage)
        #expect(receipt.memory == (isMeasured ? 10 : 3) * mebibyte)
        #expect(harness.view("photos").lastReceipt == receipt.id)
        #expect(harness.reports().contains(.ended(receipt)))
        harness.handle(.run(run, .process(.emptied)))
        #expect(harness.state("photos") == .notRunning)
        #expect(harness.view("photos").memory == 0)
        #expect(harness.core.app(of: run) == nil)
        #expect(harness.receipts.count == 1)
    }

    @Test(
        "a cgroup that is empty before the exit status is known has its receipt with the exit status (L47)",
        arguments: Stage.withProcess)
    func emptiedFirst(stage: Stage) throws {
        let harness = Harness("photos")
        harness.move("photos", to: stage)
        let run = harness.run("photos")
        harness.behave("photos") { $0.dies = false }
        let killed = harness.killed()
        harness.handle(.run(run, .process(.emptied)))
        #expect(harness.state("photos") == .terminating)
        #expect(harness.receipts == [])
        harness.handle(.run(run, .process(.exited(.exited(1), cpu: .zero, memory: 0))))
        let receipt = try harness.receipt("photos")
        #expect(receipt.state == ([.terminating, .ending].contains(stage) ? .active : stage.state))
        #expect(harness.killed() == killed)
        #expect(harness.state("photos") == .notRunning)
    }

    @Test(
        "an app without processes gets no SIGKILL while its exit status is missing, and the receipt says so (L45, L47)")
    func exitStatusIsLate() throws {
        let harness = Harness("photos")
        harness.launch("photos")
        let run = harness.run("photos")
        harness.handle(.run(run, .process(.emptied)))
        harness.advance(.seconds(30))
        #expect(harness.killed() == [])
        #expect(!harness.reports().contains(.killTakesLong(id("photos"))))
        harness.handle(.run(run, .process(.exited(.signaled(9, coreDumped: false), cpu: .zero, memory: 0))))
        #expect(try harness.receipt("photos").explanation == "Killed by SIGKILL, which greenroomd did not send.")
        #expect(harness.state("photos") == .notRunning)
    }

    @Test("a repeated end, or an end of a run that is over, is ignored")
    func twice() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.behave("photos") { $0.dies = false }
        let run = harness.run("photos")
        harness.handle(.run(run, .process(.exited(.exited(0), cpu: .zero, memory: 0))))
        harness.handle(.run(run, .process(.exited(.exited(1), cpu: .zero, memory: 0))))
        #expect(harness.receipts.map(\.exit) == [.exited(0)])
        harness.handle(.run(run, .process(.emptied)))
        let mark = harness.mark
        harness.handle(.run(run, .process(.emptied)))
        harness.handle(.run(run, .process(.exited(.exited(1), cpu: .zero, memory: 0))))
        harness.handle(.run(run, .transition(.ready)))
        harness.handle(.run(run, .task(.began(name: "a", owner: 1))))
        harness.handle(.run(run, .deadline(.inspected(Inspection(traced: false, cpu: .zero, memory: 5)))))
        #expect(harness.effects(since: mark) == [])
        #expect(harness.state("photos") == .notRunning)
    }

    @Test("a request that waits for an app is answered with the receipt when the app ends (L45)")
    func waitersAreAnswered() throws {
        let harness = Harness("photos") { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        let launch = harness.launch("photos")
        harness.crash("photos")
        #expect(harness.answers[launch] == .ended(try harness.receipt("photos")))
    }

    @Test("receipts are numbered from the given first number (L45)")
    func numbers() {
        var core = LifecycleCore(firstRun: 7, firstReceipt: 40)
        _ = core.handle(.configuration(.registered(id("photos"), AppPolicy(), launches: 0)), at: .origin)
        let launch = Request.launch(.foreground, reason: .user, url: nil)
        _ = core.handle(.requested(RequestID(1), id("photos"), launch), at: .origin)
        let effects = core.handle(
            .run(RunID(7), .process(.exited(.exited(0), cpu: .zero, memory: 0))), at: .origin + .seconds(2))
        let receipts = effects.compactMap { if case .writeReceipt(let receipt) = $0 { receipt } else { nil } }
        #expect(receipts.map(\.id) == [40])
        #expect(receipts.map(\.wall) == [.seconds(2)])
    }

    @Test("the receipt contains the deadline that was open at the end, with the time used (L45)")
    func countedDeadline() throws {
        let harness = Harness("photos")
        harness.move("photos", to: .entering)
        harness.advance(.seconds(2))
        harness.crash("photos")
        let receipt = try harness.receipt("photos")
        #expect(
            receipt.deadline
                == .init(what: .background, allowed: .seconds(5), wall: .seconds(2), cpu: .milliseconds(250)))
    }

    @Test("SIGKILL is attributed to the daemon if and only if the daemon sent one")
    func senderOfSIGKILL() throws {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.exit("photos", .signaled(9, coreDumped: false))
        #expect(try harness.receipt("photos").explanation == "Killed by SIGKILL, which greenroomd did not send.")

        let other = Harness("photos")
        other.move("photos", to: .ending)
        other.exit("photos", .signaled(9, coreDumped: false))
        #expect(try other.receipt("photos").code == 0xdead_fa11)
    }

    @Test("an exit that comes before a sent SIGKILL is the app's own")
    func exitWins() throws {
        let harness = Harness("photos")
        harness.move("photos", to: .ending)
        harness.exit("photos", .exited(4))
        let receipt = try harness.receipt("photos")
        #expect(receipt.namespace == .exit)
        #expect(receipt.explanation == "Exited with status 4.")
    }

    @Test(
        "processes that survive SIGKILL are reported after 5s and then at longer intervals, and SIGKILL is sent again each time (L47)"
    )
    func killTakesLong() {
        let harness = Harness("photos")
        harness.move("photos", to: .ending)
        harness.advance(.seconds(600))
        var times: [Instant] = []
        for entry in harness.log { if case .report(.killTakesLong) = entry.effect { times.append(entry.at) } }
        let start = times[0] + .seconds(-5)
        #expect(Array(times.map { $0 - start }.prefix(6)) == [5, 10, 20, 40, 80, 140].map { Duration.seconds($0) })
        #expect(harness.killed().count == times.count + 1)
        harness.exit("photos", .signaled(9, coreDumped: false))
        #expect(harness.state("photos") == .notRunning)
        #expect(harness.core.nextDeadline == nil)
    }

    // MARK: L40, L42, L46

    @Test(
        "a running app gets willTerminate, and its whole cgroup gets SIGKILL after 5s (L46)",
        arguments: [
            Stage.active, .inactive, .running,
        ])
    func terminate(stage: Stage) throws {
        let harness = Harness("photos")
        harness.move("photos", to: stage)
        harness.behave("photos") { $0.terminating = .ignores }
        let request = harness.terminate("photos")
        #expect(harness.notices("photos").last == .willTerminate)
        #expect(harness.state("photos") == .terminating)
        harness.advance(.milliseconds(4999))
        #expect(harness.killed() == [])
        harness.advance(.milliseconds(1))
        let receipt = try harness.receipt("photos")
        #expect(receipt.namespace == .watchdog)
        #expect(receipt.code == 0x8bad_f00d)
        #expect(receipt.state == stage.state)
        #expect(
            receipt.explanation.hasPrefix(
                "Killed: exceeded its terminate deadline (5s) after the notice to terminate (requested)"))
        #expect(harness.answers[request] == .ended(receipt))
    }

    @Test("an end within the terminate deadline is no fault, by exit or by SIGTERM (L46)", arguments: [false, true])
    func terminateInTime(bySignal: Bool) throws {
        let harness = Harness("photos")
        harness.behave("photos") { $0.terminating = bySignal ? .diesOfSignal : .exits(0) }
        harness.launch("photos")
        harness.terminate("photos")
        let receipt = try harness.receipt("photos")
        #expect(receipt.namespace == .exit)
        #expect(receipt.code == 0)
        #expect(
            receipt.explanation == "Terminated on request: "
                + (bySignal ? "ended by SIGTERM." : "exited with status 0."))
    }

    @Test("a program that stopped itself is continued for willTerminate")
    func terminateStopped() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.entering = .stops }
        harness.launch("photos")
        harness.task("photos", "upload")
        harness.background("photos")
        let run = harness.run("photos")
        let mark = harness.mark
        harness.terminate("photos")
        let effects = harness.effects(since: mark)
        #expect(effects.contains(.run(run, .processor(.unthrottle))))
        #expect(
            effects.firstIndex(of: .run(run, .notify(.willTerminate)))! < effects.firstIndex(
                of: .run(run, .continueStopped))!)
    }

    @Test("a suspended app is killed without notice (L40)", arguments: [Stage.suspending, .suspended])
    func suspendedWithoutNotice(stage: Stage) throws {
        let harness = Harness("photos")
        harness.move("photos", to: stage)
        harness.terminate("photos")
        #expect(!harness.notices("photos").contains(.willTerminate))
        let receipt = try harness.receipt("photos")
        #expect(receipt.namespace == .exit)
        let how = stage == .suspended ? "while suspended" : "without notice"
        #expect(receipt.explanation == "Killed \(how): terminated on request.")
        #expect(receipt.state == stage.state)
    }

    @Test(
        "an app that the user removes is killed immediately in every stage, and what it stored is dropped (L42)",
        arguments: Stage.allCases)
    func remove(stage: Stage) throws {
        let harness = Harness("photos")
        harness.move("photos", to: stage)
        harness.behave("photos") { $0.dies = true }
        let mark = harness.mark
        let request = harness.remove("photos")
        #expect(harness.effects(since: mark).contains(.dropRestorationState(id("photos"), .everything)))
        #expect(!harness.notices("photos", since: mark).contains(.willTerminate))
        if stage == .notRunning {
            #expect(harness.answers[request] == .done(.notRunning))
        } else if stage == .ending {
            // SIGKILL was sent before, and is repeated if processes survive it.
            harness.advance(.seconds(5))
            #expect(harness.answers[request] == .ended(try harness.receipt("photos")))
        } else {
            let receipt = try harness.receipt("photos")
            #expect(harness.answers[request] == .ended(receipt))
            #expect(receipt.namespace == .user)
            #expect(receipt.code == 0xdead_fa11)
            #expect(receipt.explanation == "Killed: removed by the user.")
        }
    }

    @Test("the restoration state is kept after any other end (L42)")
    func stateKept() {
        let harness = Harness("photos", "mail")
        harness.suspend("photos")
        harness.simulate(.critical)
        harness.launch("mail")
        harness.terminate("mail")
        harness.launch("mail")
        harness.crash("mail")
        #expect(harness.killed().contains("photos"))
        let dropped = harness.effects.contains { if case .dropRestorationState = $0 { true } else { false } }
        #expect(!dropped)
    }

    @Test(
        "an app that announces its end (STOPPING=1) has the terminate deadline",
        arguments: [
            Stage.launching, .active, .inactive, .entering, .running, .waking,
        ])
    func stopping(stage: Stage) throws {
        let harness = Harness("photos")
        harness.move("photos", to: stage)
        let mark = harness.mark
        harness.handle(.run(harness.run("photos"), .transition(.stopping)))
        #expect(harness.state("photos") == .terminating)
        #expect(harness.notices("photos", since: mark) == [])
        harness.advance(.milliseconds(4999))
        #expect(harness.killed() == [])
        harness.exit("photos")
        let receipt = try harness.receipt("photos")
        #expect(receipt.explanation == "Ended as the app had announced (STOPPING=1): exited with status 0.")
        #expect(receipt.state == stage.state)
    }

    @Test("an app in the background that announces its end stays throttled (L19)")
    func stoppingInBackground() {
        let harness = Harness("photos")
        harness.move("photos", to: .running)
        harness.handle(.run(harness.run("photos"), .transition(.stopping)))
        #expect(!harness.effects.contains(.run(harness.run("photos"), .processor(.unthrottle))))
    }

    @Test("another main process has not stopped itself")
    func stoppedMainProcess() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.entering = .isSilent }
        harness.launch("photos")
        harness.handle(.run(harness.run("photos"), .process(.stopped)))
        harness.handle(.run(harness.run("photos"), .process(.mainProcessChanged(pid: 8))))
        harness.background("photos")
        // Otherwise the stop of the old process would be the answer.
        #expect(harness.view("photos").deadline?.what == .background)
    }

    @Test(
        "STOPPING=1 of an app that is not awake is ignored",
        arguments: [
            Stage.suspending, .suspended, .terminating, .ending,
        ])
    func stoppingElsewhere(stage: Stage) {
        let harness = Harness("photos")
        harness.move("photos", to: stage)
        let mark = harness.mark
        harness.handle(.run(harness.run("photos"), .transition(.stopping)))
        #expect(harness.effects(since: mark) == [])
    }
}
