import LifecycleCore
import Testing

import enum LifecycleCore.ExitStatus

@Suite("Relaunch")
struct RelaunchTests {
    @Test(
        "an app that was asked to end is not relaunched, whatever ends it",
        arguments: [
            "emptied before exited", "crash while launching", "crash while entering the background",
            "crash while waking",
            "missed launch deadline", "STOPPING=1", "while it is being killed", "removed while being killed",
            "exited, with processes left",
        ])
    func askedToEnd(_ how: String) {
        let harness = Harness("photos") {
            $0.relaunch = .always; $0.readiness = .notified
        }
        harness.behave("photos") {
            $0.dies = false; $0.terminating = .ignores
        }
        func launch() { harness.launch("photos"); harness.advance(.seconds(60)) }
        switch how {
        case "emptied before exited":
            launch()
            harness.terminate("photos")
            harness.handle(.run(harness.run("photos"), .process(.emptied)))
            harness.handle(.run(harness.run("photos"), .process(.exited(.exited(0), cpu: .zero, memory: 0))))
        case "crash while launching", "missed launch deadline":
            harness.behave("photos") {
                $0.launching = .executes; $0.dies = true
            }
            harness.launch("photos")
            harness.terminate("photos")
            if how == "crash while launching" { harness.crash("photos") } else { harness.advance(.seconds(5)) }
        case "crash while entering the background":
            harness.behave("photos") { $0.entering = .isSilent }
            launch()
            harness.background("photos")
            harness.terminate("photos")
            harness.crash("photos")
        case "crash while waking":
            harness.behave("photos") { $0.thaws = false }
            harness.suspend("photos")
            harness.activate("photos")
            harness.terminate("photos")
            harness.crash("photos")
        case "exited, with processes left":
            launch()
            let run = harness.run("photos")
            harness.handle(.run(run, .process(.exited(.exited(1), cpu: .zero, memory: 0))))
            harness.terminate("photos")
            harness.handle(.run(run, .process(.emptied)))
        case "STOPPING=1":
            launch()
            harness.handle(.run(harness.run("photos"), .transition(.stopping)))
            harness.terminate("photos")
            harness.exit("photos")
        default:
            harness.behave("photos") { $0.entering = .isSilent }
            launch()
            harness.background("photos")
            harness.advance(.seconds(5))
            #expect(harness.state("photos") == .terminating)
            if how == "while it is being killed" { harness.terminate("photos") } else { harness.remove("photos") }
            harness.exit("photos", .signaled(9, coreDumped: false))
        }
        harness.advance(.seconds(600))
        #expect(harness.state("photos") == .notRunning)
        #expect(harness.launches("photos").count == 1)
        #expect(harness.unanswered.isEmpty)
    }

    @Test("a removed app is not launched for an earlier request")
    func removedDropsNextLaunch() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.terminating = .ignores }
        harness.launch("photos")
        harness.terminate("photos")
        let activate = harness.activate("photos")
        let remove = harness.remove("photos")
        #expect(harness.answers[activate] == .superseded(by: .terminating))
        #expect(harness.state("photos") == .notRunning)
        #expect(harness.answers[remove] == .ended(harness.receipts[0]))
        #expect(harness.receipts[0].code == 0xdead_fa11)
        harness.advance(.seconds(600))
        #expect(harness.launches("photos").count == 1)
    }

    @Test("a launch request after a terminate request wins")
    func launchAfterTerminateWins() {
        let harness = Harness("photos") {
            $0.relaunch = .no; $0.readiness = .notified
        }
        harness.behave("photos") {
            $0.dies = false; $0.terminating = .ignores
        }
        harness.launch("photos")
        harness.terminate("photos")
        let launch = harness.launch("photos")
        harness.exit("photos")
        #expect(harness.answers[launch] == .done(.active))
        #expect(harness.launches("photos").count == 2)
    }

    @Test("the restoration state is dropped after two deaths while launching, also with launches by the user (L11)")
    func stateDropped() {
        let harness = Harness("photos") { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        harness.launch("photos")
        harness.crash("photos")
        #expect(!harness.effects.contains(.dropRestorationState(id("photos"))))
        harness.launch("photos")
        harness.crash("photos")
        #expect(harness.effects.contains(.dropRestorationState(id("photos"))))
    }

    @Test("programs that cannot be executed do not count as deaths while launching, but postpone the next launch (L11)")
    func failedExecKeepsState() {
        let harness = Harness("photos") {
            $0.readiness = .notified; $0.relaunch = .onFailure
        }
        let problem = SpawnProblem(sentence: "cannot execute /srv/photos: Input/output error", exitStatus: 203)
        harness.behave("photos") { $0.launching = .fails(problem) }
        harness.launch("photos")
        for wait in [10, 20, 40, 80] {
            #expect(waits(harness).last == .seconds(wait))
            harness.advance(.seconds(wait))
        }
        harness.behave("photos") { $0.launching = .executes }
        harness.launch("photos")
        harness.crash("photos")
        #expect(!harness.effects.contains(.dropRestorationState(id("photos"))))
        harness.launch("photos")
        harness.crash("photos")
        #expect(harness.effects.contains(.dropRestorationState(id("photos"))))
    }

    @Test("an app with Relaunch=always is relaunched also if the launch that was to follow its end is postponed (L11)")
    func relaunchAfterRefusal() {
        let harness = Harness("photos") { $0.relaunch = .always }
        harness.behave("photos") {
            $0.dies = false; $0.entering = .isSilent; $0.terminating = .ignores
        }
        harness.launch("photos")
        harness.handle(.run(harness.run("photos"), .transition(.stopping)))
        let wake = harness.launch("photos", .foreground, .push)
        harness.exit("photos")
        #expect(harness.answers[wake] == .refused(.launchPostponed(by: .seconds(10))))
        harness.advance(.seconds(10))
        #expect(harness.launches("photos").count == 2)
    }

    @Test("a successful launch between two deaths while launching keeps the restoration state (L11)")
    func stateKept() {
        let harness = Harness("photos") { $0.readiness = .notified }
        for launching in [Kernel.Behaviour.Launching.executes, .becomesReady, .executes] {
            harness.behave("photos") { $0.launching = launching }
            harness.launch("photos")
            harness.crash("photos")
        }
        #expect(!harness.effects.contains(.dropRestorationState(id("photos"))))
    }

    @Test("a successful run that was terminated by request separates two deaths while launching (L11)")
    func stateKeptAfterTermination() {
        let harness = Harness("photos") { $0.readiness = .notified }
        for isGood in [false, true, false] {
            harness.behave("photos") { $0.launching = isGood ? .becomesReady : .executes }
            harness.launch("photos")
            if isGood { harness.terminate("photos") } else { harness.crash("photos") }
        }
        #expect(!harness.effects.contains(.dropRestorationState(id("photos"))))
        harness.launch("photos")
        harness.crash("photos")
        #expect(harness.effects.contains(.dropRestorationState(id("photos"))))
    }

    /// The delays of all scheduled relaunches.
    private func waits(_ harness: Harness) -> [Duration] {
        harness.reports().compactMap { if case .relaunchScheduled(_, let after, _) = $0 { after } else { nil } }
    }

    @Test("an app that dies while launching is relaunched after 10s, doubling up to 5min (L11)")
    func backoff() {
        let harness = Harness("photos") {
            $0.readiness = .notified; $0.relaunch = .onFailure
        }
        harness.behave("photos") { $0.launching = .executes }
        harness.launch("photos")
        for wait in [10, 20, 40, 80, 160, 300, 300, 300] {
            harness.crash("photos")
            #expect(waits(harness).last == .seconds(wait))
            #expect(harness.view("photos").launchPostponed == .seconds(wait))
            harness.advance(.seconds(wait) - .milliseconds(1))
            #expect(harness.state("photos") == .notRunning)
            harness.advance(.milliseconds(1))
            #expect(harness.state("photos") == .launching)
            #expect(harness.launches("photos").last?.reason == .relaunch)
        }
        #expect(harness.reports().contains(.relaunchScheduled(id("photos"), after: .seconds(40), deaths: 3)))
    }

    @Test("a launch by the user is not postponed and resets the delay (L11)")
    func userResets() {
        let harness = Harness("photos") {
            $0.readiness = .notified; $0.relaunch = .onFailure
        }
        harness.behave("photos") { $0.launching = .executes }
        harness.launch("photos")
        harness.crash("photos")
        harness.advance(.seconds(10))
        harness.crash("photos")
        #expect(harness.view("photos").launchPostponed == .seconds(20))
        harness.launch("photos")
        #expect(harness.state("photos") == .launching)
        #expect(harness.view("photos").launchPostponed == nil)
        harness.crash("photos")
        #expect(waits(harness) == [.seconds(10), .seconds(20), .seconds(10)])
    }

    @Test("the relaunch of an app that was ready but ended within 10s is postponed too (L11)")
    func earlyEnd() {
        let harness = Harness("photos") { $0.relaunch = .onFailure }
        harness.launch("photos")
        harness.advance(.milliseconds(9999))
        harness.crash("photos")
        #expect(waits(harness) == [.seconds(10)])
        harness.advance(.seconds(20))
        #expect(harness.state("photos") == .active)
        harness.crash("photos")
        #expect(waits(harness) == [.seconds(10), .zero])
        #expect(harness.state("photos") == .active)
    }

    @Test("a missed launch deadline is a death while launching (L11)")
    func missedDeadline() {
        let harness = Harness("photos") {
            $0.readiness = .notified; $0.relaunch = .onFailure
        }
        harness.behave("photos") { $0.launching = .executes }
        harness.launch("photos")
        harness.advance(.seconds(5))
        #expect(waits(harness) == [.seconds(10)])
    }

    @Test("a wake is refused while launches are postponed (L11)")
    func wakeHeldBack() {
        let harness = Harness("photos") {
            $0.readiness = .notified; $0.backgroundModes = .push
        }
        harness.behave("photos") { $0.launching = .executes }
        harness.launch("photos")
        harness.crash("photos")
        harness.advance(.seconds(4))
        let push = harness.push("photos")
        #expect(harness.answers[push] == .refused(.launchPostponed(by: .seconds(6))))
        harness.advance(.seconds(6))
        harness.push("photos")
        #expect(harness.state("photos") == .launching)
        #expect(harness.launches("photos").last?.reason == .push)
    }

    @Test(
        "a foreground launch with the reason of a wake is postponed too, also one that waits for an end (L11)",
        arguments: [false, true])
    func wakeInForegroundHeldBack(waits: Bool) {
        let harness = Harness("photos") { $0.readiness = .notified }
        harness.behave("photos") {
            $0.launching = .executes; $0.dies = !waits
        }
        harness.launch("photos")
        var timer = RequestID(0)
        if waits {
            harness.advance(.seconds(5))
            timer = harness.launch("photos", .foreground, .timer)
            harness.handle(
                .run(harness.run("photos"), .process(.exited(.signaled(9, coreDumped: false), cpu: .zero, memory: 0))))
            harness.handle(.run(harness.run("photos"), .process(.emptied)))
        } else {
            harness.crash("photos")
            timer = harness.launch("photos", .foreground, .timer)
        }
        #expect(harness.answers[timer] == .refused(.launchPostponed(by: .seconds(10))))
        #expect(harness.state("photos") == .notRunning)
        #expect(!harness.view("photos").isForeground)
        harness.advance(.seconds(10))
        harness.launch("photos", .foreground, .timer)
        harness.crash("photos")
        // It did not restart the count.
        #expect(harness.view("photos").launchPostponed == .seconds(20))
    }

    @Test(
        "Relaunch= decides which ends are followed by a relaunch",
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
        let harness = Harness("photos") { $0.relaunch = relaunch }
        harness.launch("photos")
        harness.advance(.seconds(60))
        harness.exit("photos", status)
        harness.advance(.seconds(1000))
        #expect(harness.launches("photos").count == (isLaunched ? 2 : 1))
    }

    @Test("with Relaunch=always an app that ends immediately with success is postponed too")
    func alwaysDoesNotSpin() {
        let harness = Harness("photos") { $0.relaunch = .always }
        harness.launch("photos")
        harness.exit("photos")
        #expect(waits(harness) == [.seconds(10)])
    }

    @Test(
        "with Relaunch=always an app that the daemon ended is relaunched only after a fault of the app, and after jetsam",
        arguments: [
            "terminate", "remove", "jetsam", "exits on suspend", "leaked task", "background deadline", "heartbeat",
        ])
    func ends(how: String) {
        let harness = Harness("photos") { $0.relaunch = .always }
        harness.launch("photos")
        harness.advance(.seconds(60))
        switch how {
        case "terminate": harness.terminate("photos")
        case "remove": harness.remove("photos")
        case "jetsam":
            harness.background("photos")
            harness.simulate(.critical)
            harness.simulate(.normal)
        case "exits on suspend":
            harness.register("photos") { $0.exitsOnSuspend = true }
            harness.background("photos")
        case "leaked task":
            harness.task("photos", "a")
            harness.background("photos")
            harness.advance(.seconds(30))
        case "background deadline":
            harness.behave("photos") { $0.entering = .isSilent }
            harness.background("photos")
            harness.advance(.seconds(5))
        default: harness.handle(.run(harness.run("photos"), .watchdog(.triggered)))
        }
        harness.advance(.seconds(1))
        #expect(harness.receipts.count == 1)
        let isOwnFault = ["leaked task", "background deadline", "heartbeat"].contains(how)
        #expect(harness.launches("photos").count == (isOwnFault || how == "jetsam" ? 2 : 1))
        if how == "leaked task" { #expect(harness.launches("photos").last?.state == .background) }
        if how == "heartbeat" { #expect(harness.launches("photos").last?.state == .foreground) }
    }

    @Test("an app that ended in the background is relaunched into the background")
    func comesBackInBackground() {
        let harness = Harness("photos") { $0.relaunch = .onFailure }
        harness.launch("photos")
        harness.background("photos")
        harness.advance(.seconds(60))
        harness.crash("photos")
        #expect(harness.launches("photos").map(\.state) == [.foreground, .background])
    }

    @Test(
        "a scheduled relaunch is cancelled by a request and by the removal of the manifest",
        arguments: ["terminate", "remove", "unregister", "shutdown"])
    func relaunchCancelled(how: String) {
        let harness = Harness("photos") { $0.relaunch = .onFailure }
        harness.launch("photos")
        harness.crash("photos")
        #expect(waits(harness) == [.seconds(10)])
        switch how {
        case "terminate":
            let request = harness.terminate("photos")
            #expect(harness.answers[request] == .done(.notRunning))
        case "remove": harness.remove("photos")
        case "unregister": harness.unregister("photos")
        default: harness.handle(.shutdownRequested(immediately: false))
        }
        #expect(harness.core.nextDeadline == nil)
        harness.advance(.seconds(600))
        #expect(harness.launches("photos").count == 1)
    }

    @Test(
        "an app whose terminate request was superseded is relaunched after a crash",
        arguments: [
            Request.activate, .background, .launch(.background, reason: .user, url: nil),
        ])
    func relaunchReplaced(by request: Request) {
        let harness = Harness("photos") { $0.relaunch = .always }
        harness.launch("photos")
        harness.advance(.seconds(60))
        harness.behave("photos") { $0.entering = .isSilent }
        harness.background("photos")
        harness.terminate("photos")
        harness.request("photos", request)
        harness.crash("photos")
        #expect(harness.launches("photos").count == 2)
    }
}
