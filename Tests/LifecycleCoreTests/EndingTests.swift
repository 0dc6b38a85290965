import LifecycleCore
import Testing

@Suite("Ends")
struct EndingTests {
    static let noProgram = SpawnProblem(sentence: "/nowhere: no such file or directory", exitStatus: 203)

    @Test("a launch that fails is a receipt with systemd's exit status, and no process is killed for it")
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

    @Test("a launch that fails after the process came to be names its pid")
    func spawnFailsLate() throws {
        let harness = Harness("photos")
        harness.behave("photos") { $0.launching = .spawns }
        harness.launch("photos")
        harness.happens(.run(harness.run("photos"), .spawnFailed(Self.noProgram)))
        #expect(try harness.receipt("photos").pid == 101)
        #expect(harness.state("photos") == .notRunning)
    }

    @Test("a launch that fails while the app is ended says so, and sends no further kill")
    func spawnFailsWhileEnding() throws {
        let harness = Harness("photos")
        harness.behave("photos") {
            $0.launching = .hangs; $0.dies = false; $0.terminating = .ignores
        }
        harness.launch("photos")
        harness.remove("photos")
        harness.happens(.run(harness.run("photos"), .spawnFailed(Self.noProgram)))
        #expect(harness.state("photos") == .notRunning)
        #expect(harness.receipts.last?.explanation == "Could not be launched: /nowhere: no such file or directory.")

        harness.launch("photos")
        let run = harness.run("photos")
        harness.happens(.run(run, .stopping))
        #expect(harness.state("photos") == .terminating)
        let mark = harness.mark
        harness.happens(.run(run, .spawnFailed(Self.noProgram)))
        #expect(harness.killed(since: mark) == [])
        #expect(harness.state("photos") == .notRunning)
        #expect(harness.receipts.last?.explanation == "Could not be launched: /nowhere: no such file or directory.")
    }

    @Test("a failed launch ends the run whatever the app was taken to be")
    func spawnFailsAfterReady() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.launching = .hangs }
        harness.launch("photos")
        let run = harness.run("photos")
        harness.happens(.run(run, .ready))
        #expect(harness.state("photos") == .active)
        harness.happens(.run(run, .spawnFailed(Self.noProgram)))
        #expect(harness.state("photos") == .notRunning)
        #expect(harness.receipts.count == 1)
    }

    @Test(
        "L46: an app that can't be told to terminate is killed at once, and not blamed for it",
        arguments: [
            "request", "shutdown", "jetsam",
        ])
    func cannotBeTold(why: String) throws {
        let harness = Harness("photos") { $0.terminateDeadline = nil }
        harness.behave("photos") { $0.terminating = .cannotBeTold }
        if why == "request" {
            harness.launch("photos")
            let request = harness.terminate("photos")
            #expect(harness.answers[request] == .ended(try harness.receipt("photos")))
        } else if why == "shutdown" {
            harness.behave("photos") { $0.launching = .hangs }
            harness.launch("photos")
            harness.happens(.shutdownRequested(immediately: false))
            #expect(harness.core.isFinished)
        } else {
            harness.behave("photos") { $0.launching = .hangs }
            harness.kernel.others = 13 * gibibyte
            harness.launch("photos", .background)
            for _ in 0...3 {
                harness.happens(.pressureStalled(.warning))
                harness.delay(.seconds(2))
            }
        }
        let receipt = try harness.receipt("photos")
        #expect(receipt.namespace == (why == "jetsam" ? .jetsam : .exit))
        #expect(receipt.deadline == nil)
        #expect(harness.state("photos") == .notRunning)
    }

    @Test("an app that announced its own end is not killed, as it need not be told")
    func ownEndIsNotTold() {
        let harness = Harness("photos")
        harness.launch("photos")
        let run = harness.run("photos")
        harness.happens(.run(run, .stopping))
        harness.happens(.run(run, .notified(.willTerminate, delivered: false, cpu: .zero)))
        #expect(harness.killed() == [])
        #expect(harness.told("photos").last == .didBecomeActive)
    }

    // MARK: L45, L47

    @Test(
        "L45, L47: a crash in each stage has one receipt, the rest of the group is killed, and all is over once it is empty",
        arguments: Stage.withProcess)
    func crash(stage: Stage) throws {
        let harness = Harness("photos")
        harness.bring("photos", into: stage)
        harness.behave("photos") { $0.dies = false }
        let run = harness.run("photos")
        let pid = harness.view("photos").pid
        let before = harness.killed()
        harness.happens(.run(run, .exited(.signaled(11, coreDumped: true), cpu: .seconds(2), memory: 3 * mebibyte)))
        let receipt = try harness.receipt("photos")
        // Killed already, it is not killed again.
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
        // The kernel's peak is for those whose size nobody knows: who was frozen was measured.
        let isMeasured = [.suspending, .suspended, .waking].contains(stage)
        #expect(receipt.memory == (isMeasured ? 10 : 3) * mebibyte)
        #expect(harness.view("photos").lastReceipt == receipt.id)
        #expect(harness.reports().contains(.ended(receipt)))
        harness.happens(.run(run, .emptied))
        #expect(harness.state("photos") == .notRunning)
        #expect(harness.view("photos").memory == 0)
        #expect(harness.core.app(of: run) == nil)
        #expect(harness.receipts.count == 1)
    }

    @Test(
        "L47: all gone before it is known how the main process ended: the receipt comes with that",
        arguments: Stage.withProcess)
    func emptiedFirst(stage: Stage) throws {
        let harness = Harness("photos")
        harness.bring("photos", into: stage)
        let run = harness.run("photos")
        harness.behave("photos") { $0.dies = false }
        let killed = harness.killed()
        harness.happens(.run(run, .emptied))
        #expect(harness.state("photos") == .terminating)
        #expect(harness.receipts == [])
        harness.happens(.run(run, .exited(.exited(1), cpu: .zero, memory: 0)))
        let receipt = try harness.receipt("photos")
        #expect(receipt.state == ([.terminating, .ending].contains(stage) ? .active : stage.state))
        #expect(harness.killed() == killed)
        #expect(harness.state("photos") == .notRunning)
    }

    @Test("an end that is said twice, or comes for a run that is over, changes nothing")
    func twice() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.behave("photos") { $0.dies = false }
        let run = harness.run("photos")
        harness.happens(.run(run, .exited(.exited(0), cpu: .zero, memory: 0)))
        harness.happens(.run(run, .exited(.exited(1), cpu: .zero, memory: 0)))
        #expect(harness.receipts.map(\.exit) == [.exited(0)])
        harness.happens(.run(run, .emptied))
        let mark = harness.mark
        harness.happens(.run(run, .emptied))
        harness.happens(.run(run, .exited(.exited(1), cpu: .zero, memory: 0)))
        harness.happens(.run(run, .ready))
        harness.happens(.run(run, .taskBegan(name: "a", owner: 1)))
        harness.happens(.run(run, .inspected(Inspection(traced: false, cpu: .zero, memory: 5))))
        #expect(harness.effects(since: mark) == [])
        #expect(harness.state("photos") == .notRunning)
    }

    @Test("L45: who waits for an app that ends hears how it ended")
    func waitersHear() throws {
        let harness = Harness("photos") { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        let launch = harness.launch("photos")
        harness.crash("photos")
        #expect(harness.answers[launch] == .ended(try harness.receipt("photos")))
    }

    @Test("L45: receipts are numbered from the first that was given")
    func numbers() {
        var core = LifecycleCore(firstRun: 7, firstReceipt: 40)
        _ = core.handle(.registered(id("photos"), AppPolicy(), launches: 0), at: .origin)
        let launch = Request.launch(.foreground, reason: .user, url: nil)
        _ = core.handle(.requested(RequestID(1), id("photos"), launch), at: .origin)
        let effects = core.handle(.run(RunID(7), .exited(.exited(0), cpu: .zero, memory: 0)), at: .origin + .seconds(2))
        let receipts = effects.compactMap { if case .writeReceipt(let receipt) = $0 { receipt } else { nil } }
        #expect(receipts.map(\.id) == [40])
        #expect(receipts.map(\.wall) == [.seconds(2)])
    }

    @Test("L45: a deadline that counted at the end is in the receipt, with what was used of it")
    func countedDeadline() throws {
        let harness = Harness("photos")
        harness.bring("photos", into: .entering)
        harness.advance(.seconds(2))
        harness.crash("photos")
        let receipt = try harness.receipt("photos")
        #expect(
            receipt.deadline
                == .init(what: .background, allowed: .seconds(5), wall: .seconds(2), cpu: .milliseconds(250)))
    }

    @Test("SIGKILL that nobody here sent is not ours; one that was sent is, even if it was another's that hit")
    func whoseKill() throws {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.exit("photos", .signaled(9, coreDumped: false))
        #expect(try harness.receipt("photos").explanation == "Killed by SIGKILL, which greenroomd did not send.")

        let other = Harness("photos")
        other.bring("photos", into: .ending)
        other.exit("photos", .signaled(9, coreDumped: false))
        #expect(try other.receipt("photos").code == 0xdead_fa11)
    }

    @Test("an exit of its own wins over a kill that was on its way")
    func exitWins() throws {
        let harness = Harness("photos")
        harness.bring("photos", into: .ending)
        harness.exit("photos", .exited(4))
        let receipt = try harness.receipt("photos")
        #expect(receipt.namespace == .exit)
        #expect(receipt.explanation == "Exited with status 4.")
    }

    @Test(
        "L47: something that can't be killed is complained of after 5 s, then ever more rarely, and killed again each time"
    )
    func killTakesLong() {
        let harness = Harness("photos")
        harness.bring("photos", into: .ending)
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
        "L46: will-terminate for an app that runs: told, 5 s, then SIGKILL to all of it",
        arguments: [
            Stage.active, .inactive, .running,
        ])
    func terminate(stage: Stage) throws {
        let harness = Harness("photos")
        harness.bring("photos", into: stage)
        harness.behave("photos") { $0.terminating = .ignores }
        let request = harness.terminate("photos")
        #expect(harness.told("photos").last == .willTerminate)
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

    @Test("L46: an end within the 5 s is no fault, by exit or by SIGTERM", arguments: [false, true])
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

    @Test("a program that had stopped itself is continued, so that it can hear that it is to end")
    func terminateStopped() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.entering = .stops }
        harness.launch("photos")
        harness.background("photos")
        let run = harness.run("photos")
        let mark = harness.mark
        harness.terminate("photos")
        let effects = harness.effects(since: mark)
        #expect(effects.contains(.unthrottle(run)))
        #expect(effects.firstIndex(of: .notify(run, .willTerminate))! < effects.firstIndex(of: .continueStopped(run))!)
    }

    @Test("L40: a suspended app is ended without a word", arguments: [Stage.suspending, .suspended])
    func suspendedUnheard(stage: Stage) throws {
        let harness = Harness("photos")
        harness.bring("photos", into: stage)
        harness.terminate("photos")
        #expect(!harness.told("photos").contains(.willTerminate))
        let receipt = try harness.receipt("photos")
        #expect(receipt.namespace == .exit)
        let how = stage == .suspended ? "while suspended" : "without notice"
        #expect(receipt.explanation == "Killed \(how): terminated on request.")
        #expect(receipt.state == stage.state)
    }

    @Test(
        "L42: an app that the user removed is killed at once, everywhere, and its restoration state is dropped",
        arguments: Stage.allCases)
    func remove(stage: Stage) throws {
        let harness = Harness("photos")
        harness.bring("photos", into: stage)
        harness.behave("photos") { $0.dies = true }
        let mark = harness.mark
        let request = harness.remove("photos")
        #expect(harness.effects(since: mark).contains(.dropRestorationState(id("photos"))))
        #expect(!harness.told("photos", since: mark).contains(.willTerminate))
        if stage == .notRunning {
            #expect(harness.answers[request] == .done(.notRunning))
        } else if stage == .ending {
            // SIGKILL had been sent, and goes again if it takes long.
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

    @Test("L42: the restoration state of an app that ended otherwise is kept")
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
        "STOPPING=1: an app that ends itself has as long as if it had been told to",
        arguments: [
            Stage.launching, .active, .inactive, .entering, .running,
        ])
    func stopping(stage: Stage) throws {
        let harness = Harness("photos")
        harness.bring("photos", into: stage)
        let mark = harness.mark
        harness.happens(.run(harness.run("photos"), .stopping))
        #expect(harness.state("photos") == .terminating)
        #expect(harness.told("photos", since: mark) == [])
        harness.advance(.milliseconds(4999))
        #expect(harness.killed() == [])
        harness.exit("photos")
        let receipt = try harness.receipt("photos")
        #expect(receipt.explanation == "Ended as the app had announced (STOPPING=1): exited with status 0.")
        #expect(receipt.state == stage.state)
    }

    @Test(
        "STOPPING=1 from an app that does not run means nothing",
        arguments: [
            Stage.suspending, .suspended, .waking, .terminating, .ending,
        ])
    func stoppingElsewhere(stage: Stage) {
        let harness = Harness("photos")
        harness.bring("photos", into: stage)
        let mark = harness.mark
        harness.happens(.run(harness.run("photos"), .stopping))
        #expect(harness.effects(since: mark) == [])
    }
}
