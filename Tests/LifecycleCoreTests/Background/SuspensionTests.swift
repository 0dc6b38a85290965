import LifecycleCore
import Testing

@Suite("Suspension")
struct SuspensionTests {
    @Test(
        "an app that answered by stopping itself is continued for a wake (L26)",
        arguments: ["running", "entering", "suspended"])
    func continuedForWake(phase: String) {
        let harness = Harness("photos") { $0.backgroundModes = .push }
        harness.behave("photos") { $0.entering = phase == "entering" ? .isSilent : .stops }
        harness.launch("photos")
        harness.background("photos")
        let run = harness.run("photos")
        if phase == "suspended" { harness.advance(.seconds(1)) }
        #expect(!harness.effects.contains(.run(run, .continueStopped)))
        harness.push("photos")
        if phase == "entering" {
            #expect(!harness.effects.contains(.run(run, .continueStopped)))
            harness.handle(.run(run, .process(.stopped)))
        }
        #expect(harness.effects.contains(.run(run, .continueStopped)))
        #expect(harness.state("photos") == .background)
        harness.handle(.run(run, .wake(.completed(.newData))))
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
    }

    @Test("an app that answered by stopping itself stays stopped until its freeze, however long that takes")
    func staysStopped() {
        let harness = Harness("photos")
        harness.behave("photos") {
            $0.entering = .stops; $0.freezes = false
        }
        harness.launch("photos")
        harness.background("photos")
        harness.advance(.seconds(3))
        #expect(harness.reports().contains(.freezeTakesLong(id("photos"))))
        harness.handle(.run(harness.run("photos"), .suspension(.frozen(attempt: 1, memory: 0))))
        #expect(!harness.effects.contains(.run(harness.run("photos"), .continueStopped)))
        #expect(harness.state("photos") == .suspended)
        harness.activate("photos")
        #expect(harness.effects.contains(.run(harness.run("photos"), .continueStopped)))
    }

    @Test(
        "an app is reported suspended only when its whole cgroup is frozen, and thawed before another state is reported (L1)"
    )
    func suspendedMeansFrozen() {
        let harness = Harness("photos")
        harness.behave("photos") {
            $0.freezes = false; $0.thaws = false
        }
        harness.launch("photos", .background)
        harness.advance(.seconds(1))
        let run = harness.run("photos")
        #expect(harness.effects.last == .run(run, .suspension(.freeze(attempt: 1))))
        #expect(harness.state("photos") == .background)
        harness.handle(.run(run, .suspension(.frozen(attempt: 1, memory: 5 * mebibyte))))
        #expect(harness.state("photos") == .suspended)
        #expect(harness.view("photos").memory == 5 * mebibyte)
        let mark = harness.mark
        harness.activate("photos")
        #expect(harness.state("photos") == .background)
        let thaw = harness.effects(since: mark).firstIndex(of: .run(run, .suspension(.thaw(attempt: 1))))!
        let change = harness.effects(since: mark).firstIndex {
            if case .report(.stateChanged) = $0 { true } else { false }
        }!
        #expect(thaw < change)
    }

    @Test("no timer is armed while all apps are suspended (law 9)")
    func nothingRuns() {
        let harness = Harness("photos", "mail", "music")
        for app in ["photos", "mail"] { harness.suspend(app) }
        #expect(harness.core.nextDeadline == nil)
        harness.launch("music")
        #expect(harness.core.nextDeadline != nil)
        harness.terminate("music")
        #expect(harness.core.nextDeadline == nil)
    }

    // MARK: Freezes that fail, and outcomes that come late

    @Test("an app with a process that does not freeze is in the background, and its other processes stay frozen (L1)")
    func freezeTakesLong() {
        let harness = Harness("photos") { $0.backgroundTime = nil }
        harness.behave("photos") { $0.freezes = false }
        harness.launch("photos", .background)
        harness.advance(.milliseconds(2999))
        #expect(!harness.reports().contains(.freezeTakesLong(id("photos"))))
        harness.advance(.seconds(3600))
        let run = harness.run("photos")
        #expect(harness.reports().filter { $0 == .freezeTakesLong(id("photos")) }.count == 1)
        #expect(!harness.effects.contains { if case .run(_, .suspension(.thaw)) = $0 { true } else { false } })
        #expect(harness.state("photos") == .background)
        #expect(harness.view("photos").awakeReasons == [.suspending])
        harness.handle(.run(run, .suspension(.frozen(attempt: 1, memory: mebibyte))))
        #expect(harness.state("photos") == .suspended)
    }

    @Test("a task that begins while the freeze takes long thaws the app (L1, L21)")
    func taskDuringFreeze() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.freezes = false }
        harness.launch("photos", .background)
        harness.advance(.seconds(4))
        harness.task("photos", "upload")
        #expect(harness.effects.contains(.run(harness.run("photos"), .suspension(.thaw(attempt: 1)))))
        #expect(harness.view("photos").awakeReasons == [.task(name: "upload")])
    }

    @Test("the late outcome of an earlier freeze or thaw is ignored", arguments: [false, true])
    func staleOutcomes(isThaw: Bool) {
        let harness = Harness("photos")
        harness.behave("photos") { $0.freezes = false }
        harness.launch("photos", .background)
        let run = harness.run("photos")
        harness.advance(.seconds(1))
        // The freeze is cancelled and requested again.
        harness.task("photos", "a")
        harness.endTask("photos", "a")
        harness.advance(.seconds(1))
        #expect(harness.effects.contains(.run(run, .suspension(.freeze(attempt: 2)))))
        if isThaw {
            harness.handle(.run(run, .suspension(.frozen(attempt: 2, memory: mebibyte))))
            harness.behave("photos") { $0.thaws = false }
            harness.activate("photos")
            harness.handle(.run(run, .suspension(.thawed(attempt: 1))))
            #expect(harness.state("photos") == .background)
            harness.handle(.run(run, .suspension(.thawed(attempt: 2))))
            #expect(harness.state("photos") == .active)
        } else {
            harness.handle(.run(run, .suspension(.frozen(attempt: 1, memory: mebibyte))))
            #expect(harness.state("photos") == .background)
            harness.handle(.run(run, .suspension(.frozen(attempt: 2, memory: mebibyte))))
            #expect(harness.state("photos") == .suspended)
        }
    }

    @Test("`frozen` after the freeze was cancelled does not suspend the app")
    func frozenTooLate() {
        let harness = Harness("photos")
        harness.behave("photos") {
            $0.freezes = false; $0.thaws = false
        }
        harness.launch("photos", .background)
        let run = harness.run("photos")
        harness.advance(.seconds(1))
        harness.activate("photos")
        harness.handle(.run(run, .suspension(.frozen(attempt: 1, memory: mebibyte))))
        #expect(harness.state("photos") == .background)
        harness.handle(.run(run, .suspension(.thawed(attempt: 1))))
        #expect(harness.state("photos") == .active)
    }

    @Test("an app that does not run 5s after the thaw is killed")
    func resumeDeadline() throws {
        let harness = Harness("photos")
        harness.move("photos", to: .suspended)
        harness.behave("photos") { $0.thaws = false }
        harness.activate("photos")
        #expect(harness.view("photos").deadline?.what == .thaw)
        harness.advance(.seconds(5))
        let receipt = try harness.receipt("photos")
        #expect(receipt.code == 0x8bad_f00d)
        #expect(receipt.explanation.hasPrefix("Killed: did not run again within 5s of its thaw"))
    }

    @Test("no notice is sent after a kill that races a wake")
    func killRacesWake() throws {
        let harness = Harness("photos")
        harness.move("photos", to: .suspended)
        harness.behave("photos") {
            $0.thaws = false; $0.dies = false
        }
        let run = harness.run("photos")
        let activate = harness.activate("photos")
        harness.remove("photos")
        harness.handle(.run(run, .suspension(.thawed(attempt: 1))))
        #expect(harness.answers[activate] == .superseded(by: .terminating))
        #expect(harness.state("photos") == .terminating)
        #expect(!harness.notices("photos").contains(.willEnterForeground))

        // The reverse order: killed while suspended, woken before its end.
        let other = Harness("photos")
        other.move("photos", to: .suspended)
        other.behave("photos") { $0.dies = false }
        other.terminate("photos")
        let mark = other.mark
        let push = other.launch("photos", .background, .fetch)
        let again = other.activate("photos")
        #expect(!other.isAnswered(push))
        #expect(!other.effects(since: mark).contains(.run(other.run("photos"), .suspension(.thaw(attempt: 1)))))
        other.exit("photos", .signaled(9, coreDumped: false))
        #expect(other.answers[again] == .done(.active) && other.answers[push] == .done(.active))
    }

    @Test("requests while an app wakes wait for the thaw, and the latest wins (L5)")
    func requestsWhileWaking() {
        let harness = Harness("photos")
        harness.move("photos", to: .waking)
        let run = harness.run("photos")
        let activate = harness.activate("photos")
        let terminate = harness.terminate("photos")
        let background = harness.background("photos")
        let last = harness.activate("photos")
        #expect(harness.answers[activate] == .superseded(by: .terminating))
        #expect(harness.answers[terminate] == .superseded(by: .background))
        #expect(harness.answers[background] == .superseded(by: .active))
        harness.handle(.run(run, .suspension(.thawed(attempt: 1))))
        #expect(harness.answers[last] == .done(.active))
    }

    // MARK: Wakes

    @Test("a wake has 30s of its own, which do not use the budget (L26)")
    func wakeTime() {
        let harness = Harness("photos")
        harness.launch("photos", .background)
        harness.task("photos", "upload")
        harness.advance(.seconds(24))
        harness.endTask("photos", "upload")
        harness.advance(.seconds(1))
        harness.launch("photos", .background, .socket)
        #expect(harness.view("photos").backgroundTimeRemaining == .seconds(30))
        harness.task("photos", "serve")
        harness.advance(.milliseconds(29_999))
        #expect(harness.state("photos") == .background)
        harness.advance(.milliseconds(1))
        #expect(harness.killed() == ["photos"])
    }

    @Test("a wake of a running background app has 30s of its own too, and the budget does not end it earlier (L26)")
    func wakeOfRunning() throws {
        let harness = Harness("photos") { $0.backgroundModes = .push }
        harness.launch("photos", .background)
        harness.task("photos", "upload")
        harness.advance(.seconds(29))
        harness.push("photos")
        harness.advance(.seconds(10))
        // A task at the end of the wake is not refused, and the app is killed for the push.
        harness.task("photos", "store")
        #expect(harness.view("photos").tasks.map(\.name) == ["upload", "store"])
        harness.advance(.milliseconds(19_999))
        #expect(harness.killed() == [])
        #expect(harness.notices("photos").count { $0 == .tasksExpiring } == 2)
        harness.advance(.milliseconds(1))
        #expect(harness.killed() == ["photos"])
    }

    @Test("each push has its own 30s: a task after a second push is not refused (L26)")
    func secondWake() {
        let harness = Harness("photos") { $0.backgroundModes = .push }
        harness.suspend("photos")
        harness.push("photos")
        harness.advance(.seconds(29))
        harness.push("photos")
        harness.handle(.run(harness.run("photos"), .wake(.completed(.newData))))
        harness.advance(.seconds(2))
        harness.task("photos", "fetch")
        #expect(harness.view("photos").tasks.map(\.name) == ["fetch"])
    }

    @Test("a wake does not shorten a longer budget (L26)")
    func longBudget() {
        let harness = Harness("photos") { $0.backgroundTime = .seconds(600) }
        harness.launch("photos", .background)
        harness.task("photos", "upload")
        harness.advance(.seconds(60))
        harness.launch("photos", .background, .socket)
        #expect(harness.view("photos").backgroundTimeRemaining == .seconds(540))
    }

    @Test(
        "a wake for a socket, timer, accessory or location ends after 30s without completion (L26)",
        arguments: [
            LaunchReason.socket, .timer, .accessory, .location,
        ])
    func wakeIsOver(reason: LaunchReason) {
        let harness = Harness("photos")
        harness.move("photos", to: .suspended)
        harness.launch("photos", .background, reason)
        harness.advance(.milliseconds(29_999))
        #expect(harness.state("photos") == .background)
        harness.advance(.milliseconds(2))
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        #expect(harness.killed() == [])
    }

    @Test(
        "a launch or wake by the user has no wake time", arguments: [LaunchReason.user, .url, .relaunch])
    func userWake(reason: LaunchReason) {
        let harness = Harness("photos")
        harness.launch("photos", .background, reason)
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        let request = harness.launch("photos", .background, reason)
        #expect(harness.answers[request] == .done(.suspended))
    }

    @Test(
        "an app that does not complete a push or fetch in 30s is killed with 0x2182bad4 (L30)",
        arguments: [LaunchReason.push, .fetch])
    func notCompleted(reason: LaunchReason) throws {
        for stage in [Stage.notRunning, .suspended, .running] {
            let harness = Harness("photos") {
                $0.backgroundModes = [.push, .fetch]; $0.backgroundTime = .seconds(60)
            }
            if stage != .notRunning { harness.move("photos", to: stage) }
            harness.launch("photos", .background, reason)
            harness.advance(.milliseconds(29_999))
            #expect(harness.state("photos") == .background)
            harness.advance(.milliseconds(1))
            let receipt = try harness.receipt("photos")
            #expect(receipt.code == 0x2182_bad4)
            #expect(
                receipt.explanation.hasPrefix(
                    "Killed: did not complete the \(reason.rawValue) that it was woken for within 30s"))
        }
    }

    @Test("an app that completes its wake with any result is suspended again (L30)", arguments: WakeResult.allCases)
    func completed(result: WakeResult) {
        let harness = Harness("photos") { $0.backgroundModes = .push }
        harness.move("photos", to: .suspended)
        let request = harness.push("photos", "hello")
        #expect(harness.answers[request] == .done(.background))
        #expect(harness.delivered("photos").map(\.payload) == ["hello"])
        harness.advance(.seconds(12))
        harness.handle(.run(harness.run("photos"), .wake(.completed(result))))
        #expect(harness.reports().contains(.wakeCompleted(id("photos"), result, wake: 1)))
        #expect(harness.reports().contains(.deadlineMet(id("photos"), .wake, used: .seconds(12), wake: 1)))
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        // A second completion is ignored.
        let mark = harness.mark
        harness.handle(.run(harness.run("photos"), .wake(.completed(result))))
        #expect(harness.effects(since: mark) == [])
    }

    @Test("a completion during the inspection is in time (L30)")
    func completedInTime() {
        let harness = Harness("photos") {
            $0.backgroundModes = .push; $0.backgroundTime = .seconds(60)
        }
        harness.move("photos", to: .suspended)
        harness.behave("photos") { $0.isInspected = false }
        harness.push("photos")
        harness.advance(.seconds(30))
        let run = harness.run("photos")
        harness.handle(.run(run, .wake(.completed(.newData))))
        harness.handle(.run(run, .deadline(.inspected(Inspection(traced: false, cpu: .zero, memory: 0)))))
        #expect(harness.killed() == [])
    }

    @Test("a push needs the mode in the manifest (L28)")
    func modeNotDeclared() {
        let harness = Harness("photos")
        let request = harness.push("photos")
        #expect(harness.answers[request] == .refused(.modeNotDeclared("push")))
        #expect(harness.state("photos") == .notRunning)
    }

    @Test("a wake ends when the user activates the app, and needs no completion then (L26)")
    func userComes() {
        let harness = Harness("photos") { $0.backgroundModes = .push }
        harness.move("photos", to: .suspended)
        harness.push("photos")
        harness.activate("photos")
        harness.advance(.seconds(100))
        #expect(harness.state("photos") == .active)
        #expect(harness.killed() == [])
    }

    @Test("an app that is woken in the background gets only the event and is suspended again (L3)")
    func wakeSendsNoNotice() {
        let harness = Harness("photos") { $0.backgroundModes = .push }
        harness.move("photos", to: .suspended)
        let mark = harness.mark
        harness.push("photos")
        harness.handle(.run(harness.run("photos"), .wake(.completed(.noData))))
        harness.advance(.seconds(1))
        #expect(harness.notices("photos", since: mark) == [])
        #expect(harness.changes("photos", since: mark) == ["background: woken", "suspended: idle"])
    }

    @Test("a late task of a suspended app wakes it with the rest of its budget (L21)")
    func taskWakes() {
        let harness = Harness("photos")
        harness.move("photos", to: .suspended)
        harness.task("photos", "upload")
        #expect(harness.changes("photos").last == "background: taskBegan")
        #expect(harness.view("photos").backgroundTimeRemaining == .seconds(29))
    }

    @Test(
        "a wake that is completed before the thaw or READY=1 is reported counts as completed (L30)",
        arguments: [
            Stage.suspended, .notRunning,
        ])
    func completedEarly(stage: Stage) {
        let harness = Harness("photos") {
            $0.backgroundModes = .push; $0.readiness = .notified
        }
        if stage == .suspended { harness.move("photos", to: .suspended) }
        harness.behave("photos") {
            $0.thaws = false; $0.launching = .executes
        }
        harness.push("photos")
        let run = harness.run("photos")
        harness.handle(.run(run, .wake(.completed(.newData))))
        #expect(harness.reports().last == .wakeCompleted(id("photos"), .newData, wake: 1))
        harness.handle(
            stage == .suspended ? .run(run, .suspension(.thawed(attempt: 1))) : .run(run, .transition(.ready)))
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        // A second completion is ignored.
        let mark = harness.mark
        harness.handle(.run(run, .wake(.completed(.newData))))
        #expect(harness.effects(since: mark) == [])
    }
}
