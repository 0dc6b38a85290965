import LifecycleCore
import Testing

import enum LifecycleCore.ExitStatus

@Suite("Launch")
struct LaunchTests {
    /// An app of `Type=notify` that has been executed, and says nothing yet.
    private func launching(policy: (inout AppPolicy) -> Void = { _ in }) -> House {
        let house = House("photos") { value in
            value.readiness = .notified
            policy(&value)
        }
        house.behave("photos") { $0.launching = .executes }
        house.launch("photos")
        return house
    }

    @Test("L3: a foreground launch is told in order: exec, ready, didBecomeActive")
    func foregroundOrder() {
        let house = House("photos")
        let request = house.launch("photos")
        #expect(house.told("photos") == [.didBecomeActive])
        #expect(house.changes("photos") == ["launching: launched", "inactive: ready", "active: ready"])
        #expect(house.answers[request] == .done(.active))
    }

    @Test("L3: a background launch is told didEnterBackground, and then suspended")
    func backgroundOrder() {
        let house = House("photos")
        let request = house.launch("photos", .background)
        #expect(house.told("photos") == [.didEnterBackground])
        #expect(house.answers[request] == .done(.background))
        house.advance(.seconds(1))
        #expect(
            house.changes("photos") == ["launching: launched", "background: ready", "suspended: idle"])
        #expect(house.told("photos") == [.didEnterBackground])
    }

    @Test("L4: finishing launching happens once a process")
    func readyOnce() {
        let house = launching()
        let run = house.run("photos")
        house.happens(.run(run, .ready))
        let mark = house.mark
        house.happens(.run(run, .ready))
        house.background("photos")
        house.happens(.run(run, .ready))
        house.advance(.seconds(1))
        house.activate("photos")
        house.happens(.run(run, .ready))
        #expect(house.launches("photos").count == 1)
        #expect(!house.changes("photos", since: mark).contains { $0.hasSuffix("ready") })
    }

    @Test("a program of Type=simple is ready when it is executed, one of Type=notify when it says so")
    func readiness() {
        let house = House("simple")
        house.behave("simple") { $0.launching = .spawns }
        house.launch("simple")
        #expect(house.state("simple") == .launching)
        house.happens(.run(house.run("simple"), .executed))
        #expect(house.state("simple") == .active)

        let other = launching()
        #expect(other.state("photos") == .launching)
        other.happens(.run(other.run("photos"), .ready))
        #expect(other.state("photos") == .active)
    }

    @Test("L6: an app learns why it is launched and into which state", arguments: LaunchReason.allCases)
    func reason(_ reason: LaunchReason) {
        let house = House("photos")
        house.launch("photos", .background, reason)
        #expect(house.launches("photos").map(\.reason) == [reason])
        #expect(house.launches("photos").map(\.state) == [.background])
    }

    @Test("L6: a URL launch carries its URL")
    func url() {
        let house = House("photos")
        house.request("photos", .launch(.foreground, reason: .url, url: "photos://album/1"))
        #expect(house.launches("photos").map(\.url) == ["photos://album/1"])
    }

    @Test("L8: a URL for an app that runs is refused rather than lost; for one that ends it waits for the next process")
    func urlOfRunning() {
        for stage in Stage.withProcess {
            let house = House("photos")
            house.bring("photos", into: stage)
            house.behave("photos") { $0.launching = .becomesReady }
            let state = house.state("photos")
            let mark = house.mark
            let request = house.request("photos", .launch(.foreground, reason: .url, url: "photos://album/1"))
            if state == .terminating {
                house.exit("photos", .signaled(9, coreDumped: false))
                #expect(house.launches("photos").last?.url == "photos://album/1", "\(stage)")
            } else {
                #expect(house.effects(since: mark) == [.answer(request, .refused(.running))], "\(stage)")
                #expect(house.state("photos") == state)
            }
        }
    }

    @Test("L9: the first launch is told so, and launches are counted as programs are executed")
    func firstLaunch() {
        let house = House("photos")
        house.register("mail", launches: 3)
        house.launch("photos")
        house.terminate("photos")
        house.launch("photos")
        house.launch("mail")
        #expect(house.launches("photos").map(\.isFirst) == [true, false])
        #expect(house.launches("mail").map(\.isFirst) == [false])
        #expect(house.view("photos").launches == 2)
        let counts = house.effects.compactMap {
            if case .recordLaunch(let app, let count) = $0 { (app.name, count) } else { nil }
        }
        #expect(counts.map(\.0) == ["photos", "photos", "mail"])
        #expect(counts.map(\.1) == [1, 2, 4])
    }

    @Test("L9: a launch in which no program was executed is no launch, whether or not there was a process")
    func failedIsStillFirst() {
        let house = House("photos")
        house.behave("photos") { $0.launching = .spawns }
        house.launch("photos")
        house.happens(.run(house.run("photos"), .spawnFailed(SpawnProblem(sentence: "no", exitStatus: 203))))
        #expect(house.view("photos").launches == 0)
        house.behave("photos") { $0.launching = .fails(SpawnProblem(sentence: "no", exitStatus: 203)) }
        house.launch("photos")
        #expect(house.view("photos").launches == 0)
        house.launch("photos")
        #expect(house.launches("photos").map(\.isFirst) == [true, true, true])
    }

    @Test("runs are numbered from the first that was given, and never twice")
    func runNumbers() {
        let house = House("photos", "mail", firstRun: 41)
        house.launch("photos")
        #expect(house.run("photos") == RunID(41))
        house.terminate("photos")
        house.launch("mail")
        house.launch("photos")
        #expect(house.run("mail") == RunID(42))
        #expect(house.run("photos") == RunID(43))
    }

    // MARK: L7

    @Test("L7: who is not ready 5 s after the process was created is killed, 0x8badf00d")
    func deadline() throws {
        let house = launching()
        house.behave("photos") { $0.cpu = .milliseconds(310) }
        house.advance(.milliseconds(4999))
        #expect(house.state("photos") == .launching)
        house.advance(.milliseconds(1))
        let receipt = try house.receipt("photos")
        #expect(receipt.namespace == .watchdog)
        #expect(receipt.code == 0x8bad_f00d)
        #expect(receipt.state == .launching)
        #expect(
            receipt.deadline == .init(what: .launch, allowed: .seconds(5), wall: .seconds(5), cpu: .milliseconds(310)))
        #expect(receipt.explanation == "did not finish launching within 5 s; it used 0.31 s of processor time")
        #expect(house.killed() == ["photos"])
    }

    @Test("L7: the deadline counts from the wish to spawn, not from exec")
    func deadlineFromSpawn() {
        let house = House("photos")
        house.behave("photos") { $0.launching = .hangs }
        house.launch("photos")
        house.advance(.seconds(4))
        house.happens(.run(house.run("photos"), .spawned(pid: 5)))
        house.advance(.seconds(1))
        #expect(house.killed() == ["photos"])
    }

    @Test(
        "L7: ready just before, at the very instant, or while the app is looked into is in time", arguments: [0, 1, 2])
    func readyInTime(how: Int) {
        let house = launching()
        house.behave("photos") { $0.isInspected = false }
        let run = house.run("photos")
        if how == 0 { house.advance(.milliseconds(4999)) }
        if how == 1 { house.delay(.seconds(5)) }
        if how == 2 { house.advance(.seconds(5)) }
        house.happens(.run(run, .ready))
        if how == 2 { house.happens(.run(run, .inspected(Inspection(traced: false, cpu: .zero, memory: 0)))) }
        house.advance(.zero)
        #expect(house.state("photos") == .active)
        #expect(house.killed() == [])
        #expect(!house.reports().contains(.deadlineMissed(id("photos"), .launch)))
    }

    @Test("L7: ready after the kill was sent changes nothing")
    func readyTooLate() {
        let house = launching()
        house.behave("photos") { $0.dies = false }
        house.advance(.seconds(5))
        let run = house.run("photos")
        house.happens(.run(run, .ready))
        #expect(house.state("photos") == .terminating)
        #expect(house.told("photos") == [])
    }

    @Test("L7: with LaunchDeadlineSec=infinity nothing counts")
    func noDeadline() {
        let house = launching { $0.launchDeadline = nil }
        house.advance(.seconds(10_000))
        #expect(house.state("photos") == .launching)
    }

    @Test("a policy that changes in flight changes no deadline that counts already")
    func deadlineInFlight() {
        let house = launching()
        house.register("photos") { $0.launchDeadline = .seconds(60) }
        house.advance(.seconds(5))
        #expect(house.killed() == ["photos"])
    }

    // MARK: L5

    @Test("L5: an activation in the middle of a background launch waits for ready")
    func activateWhileLaunching() {
        let house = House("photos") { $0.readiness = .notified }
        house.behave("photos") { $0.launching = .executes }
        let launch = house.launch("photos", .background)
        let activate = house.activate("photos")
        #expect(house.answers[launch] == .superseded(by: .active))
        house.happens(.run(house.run("photos"), .ready))
        #expect(house.told("photos") == [.didBecomeActive])
        #expect(house.answers[activate] == .done(.active))
    }

    @Test("L5: of wishes in the middle of a launch the latest wins, and each other is answered")
    func latestWishWins() {
        let house = launching()
        let background = house.background("photos")
        let terminate = house.terminate("photos")
        let activate = house.activate("photos")
        let last = house.background("photos")
        #expect(house.answers[background] == .superseded(by: .terminating))
        #expect(house.answers[terminate] == .superseded(by: .active))
        #expect(house.answers[activate] == .superseded(by: .background))
        #expect(house.answers[last] == nil)
        house.happens(.run(house.run("photos"), .ready))
        #expect(house.answers[last] == .done(.background))
        #expect(house.told("photos") == [.didEnterBackground])
    }

    @Test("L5: a request to end in the middle of a launch waits for ready; its deadline still counts")
    func terminateWhileLaunching() throws {
        let house = launching()
        let request = house.terminate("photos")
        house.advance(.milliseconds(4999))
        #expect(house.told("photos") == [])
        house.advance(.milliseconds(1))
        #expect(try house.receipt("photos").code == 0x8bad_f00d)
        #expect(house.answers[request] == .ended(try house.receipt("photos")))

        let other = launching()
        other.terminate("photos")
        other.happens(.run(other.run("photos"), .ready))
        #expect(other.told("photos") == [.willTerminate])
        #expect(try other.receipt("photos").explanation == "terminated on request: exited with status 0")
    }
}
