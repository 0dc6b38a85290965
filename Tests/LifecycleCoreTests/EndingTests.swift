import LifecycleCore
import Testing

@Suite("Ends")
struct EndingTests {
    static let noProgram = SpawnProblem(sentence: "/nowhere: no such file or directory", exitStatus: 203)

    @Test("a launch that fails is a receipt with systemd's exit status, and no process is killed for it")
    func spawnFails() throws {
        let house = House("photos")
        house.behave("photos") { $0.launching = .fails(Self.noProgram) }
        let request = house.launch("photos")
        let receipt = try house.receipt("photos")
        #expect(receipt.namespace == .exit)
        #expect(receipt.exit == .exited(203))
        #expect(receipt.pid == nil)
        #expect(receipt.state == .launching)
        #expect(receipt.explanation == "could not be launched: /nowhere: no such file or directory")
        #expect(house.answers[request] == .ended(receipt))
        #expect(house.killed() == [])
        #expect(house.state("photos") == .notRunning)
    }

    @Test("a launch that fails after the process came to be names its pid")
    func spawnFailsLate() throws {
        let house = House("photos")
        house.behave("photos") { $0.launching = .spawns }
        house.launch("photos")
        house.happens(.run(house.run("photos"), .spawnFailed(Self.noProgram)))
        #expect(try house.receipt("photos").pid == 101)
        #expect(house.state("photos") == .notRunning)
    }

    @Test("a launch that fails while the app is ended says so, and sends no further kill")
    func spawnFailsWhileEnding() throws {
        let house = House("photos")
        house.behave("photos") {
            $0.launching = .hangs; $0.dies = false; $0.terminating = .ignores
        }
        house.launch("photos")
        house.remove("photos")
        house.happens(.run(house.run("photos"), .spawnFailed(Self.noProgram)))
        #expect(house.state("photos") == .notRunning)
        #expect(house.receipts.last?.explanation == "could not be launched: /nowhere: no such file or directory")

        house.launch("photos")
        let run = house.run("photos")
        house.happens(.run(run, .stopping))
        #expect(house.state("photos") == .terminating)
        let mark = house.mark
        house.happens(.run(run, .spawnFailed(Self.noProgram)))
        #expect(house.killed(since: mark) == [])
        #expect(house.state("photos") == .notRunning)
        #expect(house.receipts.last?.explanation == "could not be launched: /nowhere: no such file or directory")
    }

    @Test("a failed launch ends the run whatever the app was taken to be")
    func spawnFailsAfterReady() {
        let house = House("photos")
        house.behave("photos") { $0.launching = .hangs }
        house.launch("photos")
        let run = house.run("photos")
        house.happens(.run(run, .ready))
        #expect(house.state("photos") == .active)
        house.happens(.run(run, .spawnFailed(Self.noProgram)))
        #expect(house.state("photos") == .notRunning)
        #expect(house.receipts.count == 1)
    }

    @Test(
        "L46: an app that can't be told to terminate is killed at once, and not blamed for it",
        arguments: [
            "request", "shutdown", "jetsam",
        ])
    func cannotBeTold(why: String) throws {
        let house = House("photos") { $0.terminateDeadline = nil }
        house.behave("photos") { $0.terminating = .cannotBeTold }
        if why == "request" {
            house.launch("photos")
            let request = house.terminate("photos")
            #expect(house.answers[request] == .ended(try house.receipt("photos")))
        } else if why == "shutdown" {
            house.behave("photos") { $0.launching = .hangs }
            house.launch("photos")
            house.happens(.shutdownRequested(immediately: false))
            #expect(house.core.isFinished)
        } else {
            house.behave("photos") { $0.launching = .hangs }
            house.kernel.others = 13 * gibibyte
            house.launch("photos", .background)
            for _ in 0...3 {
                house.happens(.pressureStalled(.warning))
                house.delay(.seconds(2))
            }
        }
        let receipt = try house.receipt("photos")
        #expect(receipt.namespace == (why == "jetsam" ? .jetsam : .exit))
        #expect(receipt.deadline == nil)
        #expect(house.state("photos") == .notRunning)
    }

    @Test("an app that announced its own end is not killed, as it need not be told")
    func ownEndIsNotTold() {
        let house = House("photos")
        house.launch("photos")
        let run = house.run("photos")
        house.happens(.run(run, .stopping))
        house.happens(.run(run, .notified(.willTerminate, delivered: false, cpu: .zero)))
        #expect(house.killed() == [])
        #expect(house.told("photos").last == .didBecomeActive)
    }

    // MARK: L45, L47

    @Test(
        "L45, L47: a crash in each stage has one receipt, the rest of the group is killed, and all is over once it is empty",
        arguments: Stage.withProcess)
    func crash(stage: Stage) throws {
        let house = House("photos")
        house.bring("photos", into: stage)
        house.behave("photos") { $0.dies = false }
        let run = house.run("photos")
        let pid = house.view("photos").pid
        let before = house.killed()
        house.happens(.run(run, .exited(.signaled(11, coreDumped: true), cpu: .seconds(2), memory: 3 * mebibyte)))
        let receipt = try house.receipt("photos")
        // Killed already, it is not killed again.
        #expect(house.killed() == ["photos"])
        #expect(before == (stage == .ending ? ["photos"] : []))
        #expect(house.state("photos") == .terminating)
        #expect(receipt.pid == pid)
        #expect(receipt.run == run)
        let states: [Stage: AppState] = [.terminating: .active, .ending: .active]
        #expect(receipt.state == states[stage] ?? stage.state)
        #expect(receipt.namespace == .signal)
        #expect(receipt.code == 2)
        #expect(receipt.explanation == "ended by SIGSEGV (core dumped), which nobody here sent")
        #expect(receipt.exit == .signaled(11, coreDumped: true))
        #expect(receipt.cpu == .seconds(2))
        // The kernel's peak is for those whose size nobody knows: who was frozen was measured.
        let isMeasured = [.suspending, .suspended, .waking].contains(stage)
        #expect(receipt.memory == (isMeasured ? 10 : 3) * mebibyte)
        #expect(house.view("photos").lastReceipt == receipt.id)
        #expect(house.reports().contains(.ended(receipt)))
        house.happens(.run(run, .emptied))
        #expect(house.state("photos") == .notRunning)
        #expect(house.view("photos").memory == 0)
        #expect(house.core.app(of: run) == nil)
        #expect(house.receipts.count == 1)
    }

    @Test(
        "L47: all gone before it is known how the main process ended: the receipt comes with that",
        arguments: Stage.withProcess)
    func emptiedFirst(stage: Stage) throws {
        let house = House("photos")
        house.bring("photos", into: stage)
        let run = house.run("photos")
        house.behave("photos") { $0.dies = false }
        let killed = house.killed()
        house.happens(.run(run, .emptied))
        #expect(house.state("photos") == .terminating)
        #expect(house.receipts == [])
        house.happens(.run(run, .exited(.exited(1), cpu: .zero, memory: 0)))
        let receipt = try house.receipt("photos")
        #expect(receipt.state == ([.terminating, .ending].contains(stage) ? .active : stage.state))
        #expect(house.killed() == killed)
        #expect(house.state("photos") == .notRunning)
    }

    @Test("an end that is said twice, or comes for a run that is over, changes nothing")
    func twice() {
        let house = House("photos")
        house.launch("photos")
        house.behave("photos") { $0.dies = false }
        let run = house.run("photos")
        house.happens(.run(run, .exited(.exited(0), cpu: .zero, memory: 0)))
        house.happens(.run(run, .exited(.exited(1), cpu: .zero, memory: 0)))
        #expect(house.receipts.map(\.exit) == [.exited(0)])
        house.happens(.run(run, .emptied))
        let mark = house.mark
        house.happens(.run(run, .emptied))
        house.happens(.run(run, .exited(.exited(1), cpu: .zero, memory: 0)))
        house.happens(.run(run, .ready))
        house.happens(.run(run, .taskBegan(name: "a", owner: 1)))
        house.happens(.run(run, .inspected(Inspection(traced: false, cpu: .zero, memory: 5))))
        #expect(house.effects(since: mark) == [])
        #expect(house.state("photos") == .notRunning)
    }

    @Test("L45: who waits for an app that ends hears how it ended")
    func waitersHear() throws {
        let house = House("photos") { $0.readiness = .notified }
        house.behave("photos") { $0.launching = .executes }
        let launch = house.launch("photos")
        house.crash("photos")
        #expect(house.answers[launch] == .ended(try house.receipt("photos")))
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
        let house = House("photos")
        house.bring("photos", into: .entering)
        house.advance(.seconds(2))
        house.crash("photos")
        let receipt = try house.receipt("photos")
        #expect(
            receipt.deadline
                == .init(what: .background, allowed: .seconds(5), wall: .seconds(2), cpu: .milliseconds(250)))
    }

    @Test("SIGKILL that nobody here sent is not ours; one that was sent is, even if it was another's that hit")
    func whoseKill() throws {
        let house = House("photos")
        house.launch("photos")
        house.exit("photos", .signaled(9, coreDumped: false))
        #expect(try house.receipt("photos").explanation == "ended by SIGKILL, which nobody here sent")

        let other = House("photos")
        other.bring("photos", into: .ending)
        other.exit("photos", .signaled(9, coreDumped: false))
        #expect(try other.receipt("photos").code == 0xdead_fa11)
    }

    @Test("an exit of its own wins over a kill that was on its way")
    func exitWins() throws {
        let house = House("photos")
        house.bring("photos", into: .ending)
        house.exit("photos", .exited(4))
        let receipt = try house.receipt("photos")
        #expect(receipt.namespace == .exit)
        #expect(receipt.explanation == "exited by itself with status 4")
    }

    @Test(
        "L47: something that can't be killed is complained of after 5 s, then ever more rarely, and killed again each time"
    )
    func killTakesLong() {
        let house = House("photos")
        house.bring("photos", into: .ending)
        house.advance(.seconds(600))
        var times: [Instant] = []
        for entry in house.log { if case .report(.killTakesLong) = entry.effect { times.append(entry.at) } }
        let start = times[0] + .seconds(-5)
        #expect(Array(times.map { $0 - start }.prefix(6)) == [5, 10, 20, 40, 80, 140].map { Duration.seconds($0) })
        #expect(house.killed().count == times.count + 1)
        house.exit("photos", .signaled(9, coreDumped: false))
        #expect(house.state("photos") == .notRunning)
        #expect(house.core.nextDeadline == nil)
    }

    // MARK: L40, L42, L46

    @Test(
        "L46: will-terminate for an app that runs: told, 5 s, then SIGKILL to all of it",
        arguments: [
            Stage.active, .inactive, .running,
        ])
    func terminate(stage: Stage) throws {
        let house = House("photos")
        house.bring("photos", into: stage)
        house.behave("photos") { $0.terminating = .ignores }
        let request = house.terminate("photos")
        #expect(house.told("photos").last == .willTerminate)
        #expect(house.state("photos") == .terminating)
        house.advance(.milliseconds(4999))
        #expect(house.killed() == [])
        house.advance(.milliseconds(1))
        let receipt = try house.receipt("photos")
        #expect(receipt.namespace == .watchdog)
        #expect(receipt.code == 0x8bad_f00d)
        #expect(receipt.state == stage.state)
        #expect(receipt.explanation.hasPrefix("was told to terminate (requested) and did not end within 5 s"))
        #expect(house.answers[request] == .ended(receipt))
    }

    @Test("L46: an end within the 5 s is no fault, by exit or by SIGTERM", arguments: [false, true])
    func terminateInTime(bySignal: Bool) throws {
        let house = House("photos")
        house.behave("photos") { $0.terminating = bySignal ? .diesOfSignal : .exits(0) }
        house.launch("photos")
        house.terminate("photos")
        let receipt = try house.receipt("photos")
        #expect(receipt.namespace == .exit)
        #expect(receipt.code == 0)
        #expect(
            receipt.explanation == "terminated on request: " + (bySignal ? "ended by SIGTERM" : "exited with status 0"))
    }

    @Test("a program that had stopped itself is continued, so that it can hear that it is to end")
    func terminateStopped() {
        let house = House("photos")
        house.behave("photos") { $0.entering = .stops }
        house.launch("photos")
        house.background("photos")
        let run = house.run("photos")
        let mark = house.mark
        house.terminate("photos")
        let effects = house.effects(since: mark)
        #expect(effects.contains(.unthrottle(run)))
        #expect(effects.firstIndex(of: .notify(run, .willTerminate))! < effects.firstIndex(of: .continueStopped(run))!)
    }

    @Test("L40: a suspended app is ended without a word", arguments: [Stage.suspending, .suspended])
    func suspendedUnheard(stage: Stage) throws {
        let house = House("photos")
        house.bring("photos", into: stage)
        house.terminate("photos")
        #expect(!house.told("photos").contains(.willTerminate))
        let receipt = try house.receipt("photos")
        #expect(receipt.namespace == .exit)
        #expect(receipt.explanation == "terminated on request: killed without notice, which it could not have heard")
        #expect(receipt.state == stage.state)
    }

    @Test(
        "L42: an app that the user removed is killed at once, everywhere, and its restoration state is dropped",
        arguments: Stage.allCases)
    func remove(stage: Stage) throws {
        let house = House("photos")
        house.bring("photos", into: stage)
        house.behave("photos") { $0.dies = true }
        let mark = house.mark
        let request = house.remove("photos")
        #expect(house.effects(since: mark).contains(.dropRestorationState(id("photos"))))
        #expect(!house.told("photos", since: mark).contains(.willTerminate))
        if stage == .notRunning {
            #expect(house.answers[request] == .done(.notRunning))
        } else if stage == .ending {
            // SIGKILL had been sent, and goes again if it takes long.
            house.advance(.seconds(5))
            #expect(house.answers[request] == .ended(try house.receipt("photos")))
        } else {
            let receipt = try house.receipt("photos")
            #expect(house.answers[request] == .ended(receipt))
            #expect(receipt.namespace == .user)
            #expect(receipt.code == 0xdead_fa11)
            #expect(receipt.explanation == "removed by the user")
        }
    }

    @Test("L42: the restoration state of an app that ended otherwise is kept")
    func stateKept() {
        let house = House("photos", "mail")
        house.suspend("photos")
        house.simulate(.critical)
        house.launch("mail")
        house.terminate("mail")
        house.launch("mail")
        house.crash("mail")
        #expect(house.killed().contains("photos"))
        let dropped = house.effects.contains { if case .dropRestorationState = $0 { true } else { false } }
        #expect(!dropped)
    }

    @Test(
        "STOPPING=1: an app that ends itself has as long as if it had been told to",
        arguments: [
            Stage.launching, .active, .inactive, .entering, .running,
        ])
    func stopping(stage: Stage) throws {
        let house = House("photos")
        house.bring("photos", into: stage)
        let mark = house.mark
        house.happens(.run(house.run("photos"), .stopping))
        #expect(house.state("photos") == .terminating)
        #expect(house.told("photos", since: mark) == [])
        house.advance(.milliseconds(4999))
        #expect(house.killed() == [])
        house.exit("photos")
        let receipt = try house.receipt("photos")
        #expect(receipt.explanation == "ended as it had announced: exited with status 0")
        #expect(receipt.state == stage.state)
    }

    @Test(
        "STOPPING=1 from an app that does not run means nothing",
        arguments: [
            Stage.suspending, .suspended, .waking, .terminating, .ending,
        ])
    func stoppingElsewhere(stage: Stage) {
        let house = House("photos")
        house.bring("photos", into: stage)
        let mark = house.mark
        house.happens(.run(house.run("photos"), .stopping))
        #expect(house.effects(since: mark) == [])
    }
}
