import LifecycleCore
import Testing

import enum LifecycleCore.ExitStatus

@Suite("Relaunch")
struct RelaunchTests {
    @Test(
        "an app that somebody asked to end is not launched again, however its end then comes about",
        arguments: [
            "emptied before exited", "crash in the launch", "crash while entering the background", "crash while waking",
            "late in the launch", "on its way out by itself", "while it is being killed", "removed while being killed",
            "ended already, and not all of it gone",
        ])
    func askedToEnd(_ how: String) {
        let house = House("photos") {
            $0.relaunch = .always; $0.readiness = .notified
        }
        house.behave("photos") {
            $0.dies = false; $0.terminating = .ignores
        }
        func launch() { house.launch("photos"); house.advance(.seconds(60)) }
        switch how {
        case "emptied before exited":
            launch()
            house.terminate("photos")
            house.happens(.run(house.run("photos"), .emptied))
            house.happens(.run(house.run("photos"), .exited(.exited(0), cpu: .zero, memory: 0)))
        case "crash in the launch", "late in the launch":
            house.behave("photos") {
                $0.launching = .executes; $0.dies = true
            }
            house.launch("photos")
            house.terminate("photos")
            if how == "crash in the launch" { house.crash("photos") } else { house.advance(.seconds(5)) }
        case "crash while entering the background":
            house.behave("photos") { $0.entering = .isSilent }
            launch()
            house.background("photos")
            house.terminate("photos")
            house.crash("photos")
        case "crash while waking":
            house.behave("photos") { $0.thaws = false }
            house.suspend("photos")
            house.activate("photos")
            house.terminate("photos")
            house.crash("photos")
        case "ended already, and not all of it gone":
            launch()
            let run = house.run("photos")
            house.happens(.run(run, .exited(.exited(1), cpu: .zero, memory: 0)))
            house.terminate("photos")
            house.happens(.run(run, .emptied))
        case "on its way out by itself":
            launch()
            house.happens(.run(house.run("photos"), .stopping))
            house.terminate("photos")
            house.exit("photos")
        default:
            house.behave("photos") { $0.entering = .isSilent }
            launch()
            house.background("photos")
            house.advance(.seconds(5))
            #expect(house.state("photos") == .terminating)
            if how == "while it is being killed" { house.terminate("photos") } else { house.remove("photos") }
            house.exit("photos", .signaled(9, coreDumped: false))
        }
        house.advance(.seconds(600))
        #expect(house.state("photos") == .notRunning)
        #expect(house.launches("photos").count == 1)
        #expect(house.unanswered.isEmpty)
    }

    @Test("an app that is removed is not launched again for a request that came before")
    func removedForgetsNext() {
        let house = House("photos")
        house.behave("photos") { $0.terminating = .ignores }
        house.launch("photos")
        house.terminate("photos")
        let activate = house.activate("photos")
        let remove = house.remove("photos")
        #expect(house.answers[activate] == .superseded(by: .terminating))
        #expect(house.state("photos") == .notRunning)
        #expect(house.answers[remove] == .ended(house.receipts[0]))
        #expect(house.receipts[0].code == 0xdead_fa11)
        house.advance(.seconds(600))
        #expect(house.launches("photos").count == 1)
    }

    @Test("a launch that is asked for after the request to end wins")
    func launchAfterTerminateWins() {
        let house = House("photos") {
            $0.relaunch = .no; $0.readiness = .notified
        }
        house.behave("photos") {
            $0.dies = false; $0.terminating = .ignores
        }
        house.launch("photos")
        house.terminate("photos")
        let launch = house.launch("photos")
        house.exit("photos")
        #expect(house.answers[launch] == .done(.active))
        #expect(house.launches("photos").count == 2)
    }

    @Test("L11: after two deaths in launch the restoration state is dropped, also where the user tries again each time")
    func stateDropped() {
        let house = House("photos") { $0.readiness = .notified }
        house.behave("photos") { $0.launching = .executes }
        house.launch("photos")
        house.crash("photos")
        #expect(!house.effects.contains(.dropRestorationState(id("photos"))))
        house.launch("photos")
        house.crash("photos")
        #expect(house.effects.contains(.dropRestorationState(id("photos"))))
    }

    @Test("L11: a launch that succeeds in between keeps the restoration state")
    func stateKept() {
        let house = House("photos") { $0.readiness = .notified }
        for launching in [Kernel.Behaviour.Launching.executes, .becomesReady, .executes] {
            house.behave("photos") { $0.launching = launching }
            house.launch("photos")
            house.crash("photos")
        }
        #expect(!house.effects.contains(.dropRestorationState(id("photos"))))
    }

    @Test("L11: a good run that somebody ended counts as one: deaths in launch before and after it are not in a row")
    func stateKeptAfterTermination() {
        let house = House("photos") { $0.readiness = .notified }
        for isGood in [false, true, false] {
            house.behave("photos") { $0.launching = isGood ? .becomesReady : .executes }
            house.launch("photos")
            if isGood { house.terminate("photos") } else { house.crash("photos") }
        }
        #expect(!house.effects.contains(.dropRestorationState(id("photos"))))
        house.launch("photos")
        house.crash("photos")
        #expect(house.effects.contains(.dropRestorationState(id("photos"))))
    }

    /// How long each automatic launch had to wait.
    private func waits(_ house: House) -> [Duration] {
        house.reports().compactMap { if case .relaunchScheduled(_, let after, _) = $0 { after } else { nil } }
    }

    @Test("L11: an app that dies in its launch is launched again after 10 s, doubling, up to 5 min")
    func backoff() {
        let house = House("photos") {
            $0.readiness = .notified; $0.relaunch = .onFailure
        }
        house.behave("photos") { $0.launching = .executes }
        house.launch("photos")
        for wait in [10, 20, 40, 80, 160, 300, 300, 300] {
            house.crash("photos")
            #expect(waits(house).last == .seconds(wait))
            #expect(house.view("photos").launchPostponed == .seconds(wait))
            house.advance(.seconds(wait) - .milliseconds(1))
            #expect(house.state("photos") == .notRunning)
            house.advance(.milliseconds(1))
            #expect(house.state("photos") == .launching)
            #expect(house.launches("photos").last?.reason == .relaunch)
        }
        #expect(house.reports().contains(.relaunchScheduled(id("photos"), after: .seconds(40), deaths: 3)))
    }

    @Test("L11: an explicit launch by the user is not held back, and resets what held the others")
    func userResets() {
        let house = House("photos") {
            $0.readiness = .notified; $0.relaunch = .onFailure
        }
        house.behave("photos") { $0.launching = .executes }
        house.launch("photos")
        house.crash("photos")
        house.advance(.seconds(10))
        house.crash("photos")
        #expect(house.view("photos").launchPostponed == .seconds(20))
        house.launch("photos")
        #expect(house.state("photos") == .launching)
        #expect(house.view("photos").launchPostponed == nil)
        house.crash("photos")
        #expect(waits(house) == [.seconds(10), .seconds(20), .seconds(10)])
    }

    @Test("L11: an app that dies within 10 s of its creation is held back too, though it was ready")
    func earlyEnd() {
        let house = House("photos") { $0.relaunch = .onFailure }
        house.launch("photos")
        house.advance(.milliseconds(9999))
        house.crash("photos")
        #expect(waits(house) == [.seconds(10)])
        house.advance(.seconds(20))
        #expect(house.state("photos") == .active)
        house.crash("photos")
        #expect(waits(house) == [.seconds(10), .zero])
        #expect(house.state("photos") == .active)
    }

    @Test("L11: a missed launch deadline is a death in launch")
    func missedDeadline() {
        let house = House("photos") {
            $0.readiness = .notified; $0.relaunch = .onFailure
        }
        house.behave("photos") { $0.launching = .executes }
        house.launch("photos")
        house.advance(.seconds(5))
        #expect(waits(house) == [.seconds(10)])
    }

    @Test("L11: a wake is refused while launches are held back, and tried when they are not")
    func wakeHeldBack() {
        let house = House("photos") {
            $0.readiness = .notified; $0.backgroundModes = .push
        }
        house.behave("photos") { $0.launching = .executes }
        house.launch("photos")
        house.crash("photos")
        house.advance(.seconds(4))
        let push = house.push("photos")
        #expect(house.answers[push] == .refused(.launchPostponed(by: .seconds(6))))
        house.advance(.seconds(6))
        house.push("photos")
        #expect(house.state("photos") == .launching)
        #expect(house.launches("photos").last?.reason == .push)
    }

    @Test(
        "L11: a launch for a wake's reason is held back in the foreground too, also one that waits for an end",
        arguments: [false, true])
    func wakeInForegroundHeldBack(waits: Bool) {
        let house = House("photos") { $0.readiness = .notified }
        house.behave("photos") {
            $0.launching = .executes; $0.dies = !waits
        }
        house.launch("photos")
        var timer = RequestID(0)
        if waits {
            house.advance(.seconds(5))
            timer = house.launch("photos", .foreground, .timer)
            house.happens(.run(house.run("photos"), .exited(.signaled(9, coreDumped: false), cpu: .zero, memory: 0)))
            house.happens(.run(house.run("photos"), .emptied))
        } else {
            house.crash("photos")
            timer = house.launch("photos", .foreground, .timer)
        }
        #expect(house.answers[timer] == .refused(.launchPostponed(by: .seconds(10))))
        #expect(house.state("photos") == .notRunning)
        #expect(!house.view("photos").isForeground)
        house.advance(.seconds(10))
        house.launch("photos", .foreground, .timer)
        house.crash("photos")
        // It did not start the count anew.
        #expect(house.view("photos").launchPostponed == .seconds(20))
    }

    @Test(
        "Relaunch=: what is launched again after which end",
        arguments: [
            (AppPolicy.Relaunch.no, ExitStatus.exited(1), false), (.onFailure, .unknown, false),
            (.always, .unknown, true),
            (.no, .signaled(6, coreDumped: true), false),
            (.onFailure, .exited(0), false), (.onFailure, .exited(1), true),
            (.onFailure, .signaled(15, coreDumped: false), true),
            (.onFailure, .signaled(9, coreDumped: false), true), (.always, .exited(0), true),
            (.always, .exited(1), true),
        ])
    func policies(relaunch: AppPolicy.Relaunch, status: ExitStatus, isLaunched: Bool) {
        let house = House("photos") { $0.relaunch = relaunch }
        house.launch("photos")
        house.advance(.seconds(60))
        house.exit("photos", status)
        house.advance(.seconds(1000))
        #expect(house.launches("photos").count == (isLaunched ? 2 : 1))
    }

    @Test("Relaunch=always does not spin: who ends at once with success is held back as well")
    func alwaysDoesNotSpin() {
        let house = House("photos") { $0.relaunch = .always }
        house.launch("photos")
        house.exit("photos")
        #expect(waits(house) == [.seconds(10)])
    }

    @Test(
        "Relaunch=always: what the core ended is not launched again, but for what the app failed to do",
        arguments: [
            "terminate", "remove", "jetsam", "exits on suspend", "leaked task", "background deadline", "heartbeat",
        ])
    func ends(how: String) {
        let house = House("photos") { $0.relaunch = .always }
        house.launch("photos")
        house.advance(.seconds(60))
        switch how {
        case "terminate": house.terminate("photos")
        case "remove": house.remove("photos")
        case "jetsam":
            house.background("photos")
            house.simulate(.critical)
            house.simulate(.normal)
        case "exits on suspend":
            house.register("photos") { $0.exitsOnSuspend = true }
            house.background("photos")
        case "leaked task":
            house.task("photos", "a")
            house.background("photos")
            house.advance(.seconds(30))
        case "background deadline":
            house.behave("photos") { $0.entering = .isSilent }
            house.background("photos")
            house.advance(.seconds(5))
        default: house.happens(.run(house.run("photos"), .heartbeatGivenUp))
        }
        house.advance(.seconds(1))
        #expect(house.receipts.count == 1)
        let isOwnFault = ["leaked task", "background deadline", "heartbeat"].contains(how)
        #expect(house.launches("photos").count == (isOwnFault ? 2 : 1))
        if how == "leaked task" { #expect(house.launches("photos").last?.state == .background) }
        if how == "heartbeat" { #expect(house.launches("photos").last?.state == .foreground) }
    }

    @Test("an app of which the last one was in the background comes back in the background")
    func comesBackInBackground() {
        let house = House("photos") { $0.relaunch = .onFailure }
        house.launch("photos")
        house.background("photos")
        house.advance(.seconds(60))
        house.crash("photos")
        #expect(house.launches("photos").map(\.state) == [.foreground, .background])
    }

    @Test(
        "a launch that is scheduled can be called off, and goes with the manifest",
        arguments: ["terminate", "remove", "unregister", "shutdown"])
    func calledOff(how: String) {
        let house = House("photos") { $0.relaunch = .onFailure }
        house.launch("photos")
        house.crash("photos")
        #expect(waits(house) == [.seconds(10)])
        switch how {
        case "terminate":
            let request = house.terminate("photos")
            #expect(house.answers[request] == .done(.notRunning))
        case "remove": house.remove("photos")
        case "unregister": house.unregister("photos")
        default: house.happens(.shutdownRequested(immediately: false))
        }
        #expect(house.core.nextDeadline == nil)
        house.advance(.seconds(600))
        #expect(house.launches("photos").count == 1)
    }

    @Test(
        "an app of which the request to end was overtaken by another wish is launched again after a crash",
        arguments: [
            Request.activate, .background, .launch(.background, reason: .user, url: nil),
        ])
    func overtaken(by request: Request) {
        let house = House("photos") { $0.relaunch = .always }
        house.launch("photos")
        house.advance(.seconds(60))
        house.behave("photos") { $0.entering = .isSilent }
        house.background("photos")
        house.terminate("photos")
        house.request("photos", request)
        house.crash("photos")
        #expect(house.launches("photos").count == 2)
    }
}
