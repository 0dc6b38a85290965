import LifecycleCore
import Testing

import enum LifecycleCore.ExitStatus

@Suite("Launch")
struct LaunchTests {
    /// An app of `Type=notify` that has been executed, and says nothing yet.
    private func launching(policy: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        let harness = Harness("photos") { value in
            value.readiness = .notified
            policy(&value)
        }
        harness.behave("photos") { $0.launching = .executes }
        harness.launch("photos")
        return harness
    }

    @Test("L3: a foreground launch is told in order: exec, ready, didBecomeActive")
    func foregroundOrder() {
        let harness = Harness("photos")
        let request = harness.launch("photos")
        #expect(harness.told("photos") == [.didBecomeActive])
        #expect(harness.changes("photos") == ["launching: launched", "inactive: ready", "active: ready"])
        #expect(harness.answers[request] == .done(.active))
    }

    @Test("L3: a background launch is told didEnterBackground, and then suspended")
    func backgroundOrder() {
        let harness = Harness("photos")
        let request = harness.launch("photos", .background)
        #expect(harness.told("photos") == [.didEnterBackground])
        #expect(harness.answers[request] == .done(.background))
        harness.advance(.seconds(1))
        #expect(
            harness.changes("photos") == ["launching: launched", "background: ready", "suspended: idle"])
        #expect(harness.told("photos") == [.didEnterBackground])
    }

    @Test("L4: finishing launching happens once a process")
    func readyOnce() {
        let harness = launching()
        let run = harness.run("photos")
        harness.happens(.run(run, .ready))
        let mark = harness.mark
        harness.happens(.run(run, .ready))
        harness.background("photos")
        harness.happens(.run(run, .ready))
        harness.advance(.seconds(1))
        harness.activate("photos")
        harness.happens(.run(run, .ready))
        #expect(harness.launches("photos").count == 1)
        #expect(!harness.changes("photos", since: mark).contains { $0.hasSuffix("ready") })
    }

    @Test("a program of Type=simple is ready when it is executed, one of Type=notify when it says so")
    func readiness() {
        let harness = Harness("simple")
        harness.behave("simple") { $0.launching = .spawns }
        harness.launch("simple")
        #expect(harness.state("simple") == .launching)
        harness.happens(.run(harness.run("simple"), .executed))
        #expect(harness.state("simple") == .active)

        let other = launching()
        #expect(other.state("photos") == .launching)
        other.happens(.run(other.run("photos"), .ready))
        #expect(other.state("photos") == .active)
    }

    @Test("L6: an app learns why it is launched and into which state", arguments: LaunchReason.allCases)
    func reason(_ reason: LaunchReason) {
        let harness = Harness("photos")
        harness.launch("photos", .background, reason)
        #expect(harness.launches("photos").map(\.reason) == [reason])
        #expect(harness.launches("photos").map(\.state) == [.background])
    }

    @Test("L6: a URL launch carries its URL")
    func url() {
        let harness = Harness("photos")
        harness.request("photos", .launch(.foreground, reason: .url, url: "photos://album/1"))
        #expect(harness.launches("photos").map(\.url) == ["photos://album/1"])
    }

    @Test("L8: a URL for an app that runs is refused rather than lost; for one that ends it waits for the next process")
    func urlOfRunning() {
        for stage in Stage.withProcess {
            let harness = Harness("photos")
            harness.bring("photos", into: stage)
            harness.behave("photos") { $0.launching = .becomesReady }
            let state = harness.state("photos")
            let mark = harness.mark
            let request = harness.request("photos", .launch(.foreground, reason: .url, url: "photos://album/1"))
            if state == .terminating {
                harness.exit("photos", .signaled(9, coreDumped: false))
                #expect(harness.launches("photos").last?.url == "photos://album/1", "\(stage)")
            } else {
                #expect(harness.effects(since: mark) == [.answer(request, .refused(.running))], "\(stage)")
                #expect(harness.state("photos") == state)
            }
        }
    }

    @Test("L9: the first launch is told so, and launches are counted as programs are executed")
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

    @Test("L9: a launch in which no program was executed is no launch, whether or not there was a process")
    func failedIsStillFirst() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.launching = .spawns }
        harness.launch("photos")
        harness.happens(.run(harness.run("photos"), .spawnFailed(SpawnProblem(sentence: "no", exitStatus: 203))))
        #expect(harness.view("photos").launches == 0)
        harness.behave("photos") { $0.launching = .fails(SpawnProblem(sentence: "no", exitStatus: 203)) }
        harness.launch("photos")
        #expect(harness.view("photos").launches == 0)
        harness.launch("photos")
        #expect(harness.launches("photos").map(\.isFirst) == [true, true, true])
    }

    @Test("runs are numbered from the first that was given, and never twice")
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

    @Test("L7: who is not ready 5 s after the process was created is killed, 0x8badf00d")
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
        #expect(
            receipt.deadline == .init(what: .launch, allowed: .seconds(5), wall: .seconds(5), cpu: .milliseconds(310)))
        #expect(receipt.explanation == "Killed: exceeded its launch deadline (5s); it used 310ms of CPU time.")
        #expect(harness.killed() == ["photos"])
    }

    @Test("L7: the deadline counts from the wish to spawn, not from exec")
    func deadlineFromSpawn() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.launching = .hangs }
        harness.launch("photos")
        harness.advance(.seconds(4))
        harness.happens(.run(harness.run("photos"), .spawned(pid: 5)))
        harness.advance(.seconds(1))
        #expect(harness.killed() == ["photos"])
    }

    @Test(
        "L7: ready just before, at the very instant, or while the app is looked into is in time", arguments: [0, 1, 2])
    func readyInTime(how: Int) {
        let harness = launching()
        harness.behave("photos") { $0.isInspected = false }
        let run = harness.run("photos")
        if how == 0 { harness.advance(.milliseconds(4999)) }
        if how == 1 { harness.delay(.seconds(5)) }
        if how == 2 { harness.advance(.seconds(5)) }
        harness.happens(.run(run, .ready))
        if how == 2 { harness.happens(.run(run, .inspected(Inspection(traced: false, cpu: .zero, memory: 0)))) }
        harness.advance(.zero)
        #expect(harness.state("photos") == .active)
        #expect(harness.killed() == [])
        #expect(!harness.reports().contains(.deadlineMissed(id("photos"), .launch)))
    }

    @Test("L7: ready after the kill was sent changes nothing")
    func readyTooLate() {
        let harness = launching()
        harness.behave("photos") { $0.dies = false }
        harness.advance(.seconds(5))
        let run = harness.run("photos")
        harness.happens(.run(run, .ready))
        #expect(harness.state("photos") == .terminating)
        #expect(harness.told("photos") == [])
    }

    @Test("L7: with LaunchDeadlineSec=infinity nothing counts")
    func noDeadline() {
        let harness = launching { $0.launchDeadline = nil }
        harness.advance(.seconds(10_000))
        #expect(harness.state("photos") == .launching)
    }

    @Test("a policy that changes in flight changes no deadline that counts already")
    func deadlineInFlight() {
        let harness = launching()
        harness.register("photos") { $0.launchDeadline = .seconds(60) }
        harness.advance(.seconds(5))
        #expect(harness.killed() == ["photos"])
    }

    // MARK: L5

    @Test("L5: an activation in the middle of a background launch waits for ready")
    func activateWhileLaunching() {
        let harness = Harness("photos") { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        let launch = harness.launch("photos", .background)
        let activate = harness.activate("photos")
        #expect(harness.answers[launch] == .superseded(by: .active))
        harness.happens(.run(harness.run("photos"), .ready))
        #expect(harness.told("photos") == [.didBecomeActive])
        #expect(harness.answers[activate] == .done(.active))
    }

    @Test("L5: of wishes in the middle of a launch the latest wins, and each other is answered")
    func latestWishWins() {
        let harness = launching()
        let background = harness.background("photos")
        let terminate = harness.terminate("photos")
        let activate = harness.activate("photos")
        let last = harness.background("photos")
        #expect(harness.answers[background] == .superseded(by: .terminating))
        #expect(harness.answers[terminate] == .superseded(by: .active))
        #expect(harness.answers[activate] == .superseded(by: .background))
        #expect(harness.answers[last] == nil)
        harness.happens(.run(harness.run("photos"), .ready))
        #expect(harness.answers[last] == .done(.background))
        #expect(harness.told("photos") == [.didEnterBackground])
    }

    @Test("L5: a request to end in the middle of a launch waits for ready; its deadline still counts")
    func terminateWhileLaunching() throws {
        let harness = launching()
        let request = harness.terminate("photos")
        harness.advance(.milliseconds(4999))
        #expect(harness.told("photos") == [])
        harness.advance(.milliseconds(1))
        #expect(try harness.receipt("photos").code == 0x8bad_f00d)
        #expect(harness.answers[request] == .ended(try harness.receipt("photos")))

        let other = launching()
        other.terminate("photos")
        other.happens(.run(other.run("photos"), .ready))
        #expect(other.told("photos") == [.willTerminate])
        #expect(try other.receipt("photos").explanation == "Terminated on request: exited with status 0.")
    }
}
