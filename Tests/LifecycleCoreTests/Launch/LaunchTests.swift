import LifecycleCore
import Testing

import enum LifecycleCore.ExitStatus

@Suite("Launch")
struct LaunchTests {
    /// A harness with an app of `Type=notify` that is executed and not ready yet.
    private func launching(policy: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        let harness = Harness("photos") { value in
            value.readiness = .notified
            policy(&value)
        }
        harness.behave("photos") { $0.launching = .executes }
        harness.launch("photos")
        return harness
    }

    @Test("a foreground launch is exec, ready, didBecomeActive, in this order (L3)")
    func foregroundOrder() {
        let harness = Harness("photos")
        let request = harness.launch("photos")
        #expect(harness.notices("photos") == [.didBecomeActive(.launch)])
        #expect(harness.changes("photos") == ["launching: launched", "inactive: ready", "active: ready"])
        #expect(harness.answers[request] == .done(.active))
    }

    @Test("an app launched into the background gets didEnterBackground and is then suspended (L3)")
    func backgroundOrder() {
        let harness = Harness("photos")
        let request = harness.launch("photos", .background)
        #expect(harness.notices("photos") == [.didEnterBackground])
        #expect(harness.answers[request] == .done(.background))
        harness.advance(.seconds(1))
        #expect(
            harness.changes("photos") == ["launching: launched", "background: ready", "suspended: idle"])
        #expect(harness.notices("photos") == [.didEnterBackground])
    }

    @Test("a process finishes launching once (L4)")
    func readyOnce() {
        let harness = launching()
        let run = harness.run("photos")
        harness.handle(.run(run, .transition(.ready)))
        let mark = harness.mark
        harness.handle(.run(run, .transition(.ready)))
        harness.background("photos")
        harness.handle(.run(run, .transition(.ready)))
        harness.advance(.seconds(1))
        harness.activate("photos")
        harness.handle(.run(run, .transition(.ready)))
        #expect(harness.launches("photos").count == 1)
        #expect(!harness.changes("photos", since: mark).contains { $0.hasSuffix("ready") })
    }

    @Test("a program of Type=simple is ready when it is executed, one of Type=notify when it sends READY=1")
    func readiness() {
        let harness = Harness("simple")
        harness.behave("simple") { $0.launching = .spawns }
        harness.launch("simple")
        #expect(harness.state("simple") == .launching)
        harness.handle(.run(harness.run("simple"), .process(.executed)))
        #expect(harness.state("simple") == .active)

        let other = launching()
        #expect(other.state("photos") == .launching)
        other.handle(.run(other.run("photos"), .transition(.ready)))
        #expect(other.state("photos") == .active)
    }

    @Test("a manifest that changes during a launch does not change what the program is waited for")
    func readinessChanges() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.launching = .spawns }
        harness.launch("photos")
        harness.register("photos") { $0.readiness = .notified }
        harness.handle(.run(harness.run("photos"), .process(.executed)))
        #expect(harness.state("photos") == .active)

        let other = launching()
        other.register("photos") { $0.readiness = .executed }
        other.handle(.run(other.run("photos"), .process(.executed)))
        #expect(other.state("photos") == .launching)
    }

    @Test("a launch carries its reason and state (L6)", arguments: LaunchReason.allCases)
    func reason(_ reason: LaunchReason) {
        let harness = Harness("photos")
        harness.launch("photos", .background, reason)
        #expect(harness.launches("photos").map(\.reason) == [reason])
        #expect(harness.launches("photos").map(\.state) == [.background])
    }

    @Test("a URL launch carries its URL (L6)")
    func url() {
        let harness = Harness("photos")
        harness.request("photos", .launch(.foreground, reason: .url, url: "photos://album/1"))
        #expect(harness.launches("photos").map(\.url) == ["photos://album/1"])
    }

    @Test(
        "a URL for a running app without a connection is refused, one for an ending app is delivered to the next process (L8)"
    )
    func urlOfRunning() {
        for stage in Stage.withProcess {
            let harness = Harness("photos")
            harness.move("photos", to: stage)
            harness.behave("photos") { $0.launching = .becomesReady }
            let state = harness.state("photos")
            // Whether it handles URLs is known when it is ready.
            if state == .launching { continue }
            let mark = harness.mark
            let request = harness.request("photos", .launch(.foreground, reason: .url, url: "photos://album/1"))
            if state == .terminating {
                harness.exit("photos", .signaled(9, coreDumped: false))
                #expect(harness.launches("photos").last?.url == "photos://album/1", "\(stage)")
            } else {
                #expect(harness.effects(since: mark) == [.answer(request, .refused(.opensNoURLs))], "\(stage)")
                #expect(harness.state("photos") == state)
            }
        }
    }

    @Test("the first launch is marked, and launches are counted when programs are executed (L9)")
    func firstLaunch() {
        let harness = Harness("photos")
        harness.register("mail", launches: 3)
        harness.launch("photos")
        harness.terminate("photos")
        harness.launch("photos")
        harness.launch("mail")
        #expect(harness.launches("photos").map(\.isFirst) == [true, false])
        #expect(harness.launches("mail").map(\.isFirst) == [false])
        #expect(harness.view("photos").launches == 2)
        let counts = harness.effects.compactMap {
            if case .recordLaunch(let app, let count) = $0 { (app.name, count) } else { nil }
        }
        #expect(counts.map(\.0) == ["photos", "photos", "mail"])
        #expect(counts.map(\.1) == [1, 2, 4])
    }

    @Test("a launch without an executed program is not counted, with or without a process (L9)")
    func failedIsStillFirst() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.launching = .spawns }
        harness.launch("photos")
        harness.handle(
            .run(harness.run("photos"), .process(.spawnFailed(SpawnProblem(sentence: "no", exitStatus: 203)))))
        #expect(harness.view("photos").launches == 0)
        harness.behave("photos") { $0.launching = .fails(SpawnProblem(sentence: "no", exitStatus: 203)) }
        harness.launch("photos")
        #expect(harness.view("photos").launches == 0)
        harness.launch("photos")
        #expect(harness.launches("photos").map(\.isFirst) == [true, true, true])
    }

    @Test("runs are numbered from the given first number, and no number is reused")
    func runNumbers() {
        let harness = Harness("photos", "mail", firstRun: 41)
        harness.launch("photos")
        #expect(harness.run("photos") == RunID(41))
        harness.terminate("photos")
        harness.launch("mail")
        harness.launch("photos")
        #expect(harness.run("mail") == RunID(42))
        #expect(harness.run("photos") == RunID(43))
    }

    // MARK: L7

    @Test("an app that misses its launch deadline is killed with 0x8badf00d (L7)")
    func deadline() throws {
        let harness = launching()
        harness.behave("photos") { $0.cpu = .milliseconds(310) }
        harness.advance(.milliseconds(4999))
        #expect(harness.state("photos") == .launching)
        harness.advance(.milliseconds(1))
        let receipt = try harness.receipt("photos")
        #expect(receipt.namespace == .watchdog)
        #expect(receipt.code == 0x8bad_f00d)
        #expect(receipt.state == .launching)
        let use = try #require(receipt.deadline)
        #expect(use.what == .launch && use.allowed == .seconds(5) && use.wall == .seconds(5))
        #expect(use.cpu == .milliseconds(310))
        #expect(
            receipt.explanation
                == "Killed: exceeded its launch deadline (5s); it sent no READY=1 (Type=notify): set Type=exec or Type=listening if it "
                + "never does; it used 310ms of CPU time.")
        #expect(harness.killed() == ["photos"])
    }

    @Test("the launch deadline starts with the request to spawn, not with exec (L7)")
    func deadlineFromSpawn() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.launching = .hangs }
        harness.launch("photos")
        harness.advance(.seconds(4))
        harness.handle(.run(harness.run("photos"), .process(.spawned(pid: 5))))
        harness.advance(.seconds(1))
        #expect(harness.killed() == ["photos"])
    }

    @Test(
        "READY=1 just before the deadline, at its instant or during the inspection is in time (L7)",
        arguments: [0, 1, 2])
    func readyInTime(how: Int) {
        let harness = launching()
        harness.behave("photos") { $0.isInspected = false }
        let run = harness.run("photos")
        if how == 0 { harness.advance(.milliseconds(4999)) }
        if how == 1 { harness.delay(.seconds(5)) }
        if how == 2 { harness.advance(.seconds(5)) }
        harness.handle(.run(run, .transition(.ready)))
        if how == 2 {
            harness.handle(.run(run, .deadline(.inspected(Inspection(traced: false, cpu: .zero, memory: 0)))))
        }
        harness.advance(.zero)
        #expect(harness.state("photos") == .active)
        #expect(harness.killed() == [])
        #expect(!harness.reports().contains(.deadlineMissed(id("photos"), .launch)))
    }

    @Test("READY=1 after SIGKILL was sent is ignored (L7)")
    func readyTooLate() {
        let harness = launching()
        harness.behave("photos") { $0.dies = false }
        harness.advance(.seconds(5))
        let run = harness.run("photos")
        harness.handle(.run(run, .transition(.ready)))
        #expect(harness.state("photos") == .terminating)
        #expect(harness.notices("photos") == [])
    }

    @Test("with LaunchDeadlineSec=infinity there is no launch deadline (L7)")
    func noDeadline() {
        let harness = launching { $0.launchDeadline = nil }
        harness.advance(.seconds(10_000))
        #expect(harness.state("photos") == .launching)
    }

    @Test("a changed manifest does not change an open deadline")
    func deadlineInFlight() {
        let harness = launching()
        harness.register("photos") { $0.launchDeadline = .seconds(60) }
        harness.advance(.seconds(5))
        #expect(harness.killed() == ["photos"])
    }

    // MARK: L5

    @Test("an activation during a background launch waits until the app is ready (L5)")
    func activateWhileLaunching() {
        let harness = Harness("photos") { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        let launch = harness.launch("photos", .background)
        let activate = harness.activate("photos")
        #expect(harness.answers[launch] == .superseded(by: .active))
        harness.handle(.run(harness.run("photos"), .transition(.ready)))
        #expect(harness.notices("photos") == [.didBecomeActive(.launch)])
        #expect(harness.answers[activate] == .done(.active))
    }

    @Test("the latest request during a launch wins, and the others are answered (L5)")
    func latestRequestWins() {
        let harness = launching()
        let background = harness.background("photos")
        let terminate = harness.terminate("photos")
        let activate = harness.activate("photos")
        let last = harness.background("photos")
        #expect(harness.answers[background] == .superseded(by: .terminating))
        #expect(harness.answers[terminate] == .superseded(by: .active))
        #expect(harness.answers[activate] == .superseded(by: .background))
        #expect(harness.answers[last] == nil)
        harness.handle(.run(harness.run("photos"), .transition(.ready)))
        #expect(harness.answers[last] == .done(.background))
        #expect(harness.notices("photos") == [.didEnterBackground])
    }

    @Test("a terminate request during a launch waits until the app is ready, and the launch deadline stays (L5)")
    func terminateWhileLaunching() throws {
        let harness = launching()
        let request = harness.terminate("photos")
        harness.advance(.milliseconds(4999))
        #expect(harness.notices("photos") == [])
        harness.advance(.milliseconds(1))
        #expect(try harness.receipt("photos").code == 0x8bad_f00d)
        #expect(harness.answers[request] == .ended(try harness.receipt("photos")))

        let other = launching()
        other.terminate("photos")
        other.handle(.run(other.run("photos"), .transition(.ready)))
        #expect(other.notices("photos") == [.willTerminate])
        #expect(try other.receipt("photos").explanation == "Terminated on request: exited with status 0.")
    }
}
