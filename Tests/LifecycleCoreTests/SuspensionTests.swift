import LifecycleCore
import Testing

@Suite("Suspension")
struct SuspensionTests {
    @Test(
        "L26: an app that answered by stopping itself is continued for what wakes it",
        arguments: ["running", "entering", "suspended"])
    func continuedForWake(phase: String) {
        let harness = Harness("photos") { $0.backgroundModes = .push }
        harness.behave("photos") { $0.entering = phase == "entering" ? .isSilent : .stops }
        harness.launch("photos")
        harness.background("photos")
        let run = harness.run("photos")
        if phase == "suspended" { harness.advance(.seconds(1)) }
        #expect(!harness.effects.contains(.continueStopped(run)))
        harness.push("photos")
        if phase == "entering" {
            #expect(!harness.effects.contains(.continueStopped(run)))
            harness.happens(.run(run, .stopped))
        }
        #expect(harness.effects.contains(.continueStopped(run)))
        #expect(harness.state("photos") == .background)
        harness.happens(.run(run, .wakeCompleted(.newData)))
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
    }

    @Test("an app that answered by stopping itself stays stopped after a freeze that timed out")
    func staysStopped() {
        let harness = Harness("photos")
        harness.behave("photos") {
            $0.entering = .stops; $0.freezes = false
        }
        harness.launch("photos")
        harness.background("photos")
        harness.advance(.seconds(3))
        #expect(harness.reports().contains(.freezeTimedOut(id("photos"))))
        #expect(!harness.effects.contains(.continueStopped(harness.run("photos"))))
        harness.behave("photos") { $0.freezes = true }
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        harness.activate("photos")
        #expect(harness.effects.contains(.continueStopped(harness.run("photos"))))
    }

    @Test("L1: suspended is said only when the whole group reads frozen; the thaw comes before the news of it")
    func suspendedMeansFrozen() {
        let harness = Harness("photos")
        harness.behave("photos") {
            $0.freezes = false; $0.thaws = false
        }
        harness.launch("photos", .background)
        harness.advance(.seconds(1))
        let run = harness.run("photos")
        #expect(harness.effects.last == .freeze(run, attempt: 1))
        #expect(harness.state("photos") == .background)
        harness.happens(.run(run, .frozen(attempt: 1, memory: 5 * mebibyte)))
        #expect(harness.state("photos") == .suspended)
        #expect(harness.view("photos").memory == 5 * mebibyte)
        let mark = harness.mark
        harness.activate("photos")
        #expect(harness.state("photos") == .background)
        let thaw = harness.effects(since: mark).firstIndex(of: .thaw(run, attempt: 1))!
        let change = harness.effects(since: mark).firstIndex {
            if case .report(.stateChanged) = $0 { true } else { false }
        }!
        #expect(thaw < change)
    }

    @Test("law 8: with all apps suspended, no timer is armed")
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

    @Test("a freeze that does not come about in 2 s is given up, and tried again after 1 s, doubling up to 60 s")
    func freezeTimesOut() {
        let harness = Harness("photos") { $0.backgroundTime = nil }
        harness.behave("photos") { $0.freezes = false }
        harness.launch("photos", .background)
        harness.advance(.seconds(400))
        var times: [Duration] = []
        var last: Instant?
        for entry in harness.log {
            if case .freeze = entry.effect, let last { times.append(entry.at - last) }
            if case .thaw = entry.effect { last = entry.at }
        }
        #expect(Array(times.prefix(8)) == [1, 2, 4, 8, 16, 32, 60, 60].map { Duration.seconds($0) })
        #expect(!harness.changes("photos").contains { $0.hasPrefix("suspended") })
        harness.behave("photos") { $0.freezes = true }
        harness.advance(.seconds(60))
        #expect(harness.state("photos") == .suspended)
    }

    @Test("a freeze or thaw of an earlier attempt is known for what it is", arguments: [false, true])
    func staleOutcomes(isThaw: Bool) {
        let harness = Harness("photos")
        harness.behave("photos") { $0.freezes = false }
        harness.launch("photos", .background)
        let run = harness.run("photos")
        harness.advance(.seconds(1))
        // Called off, and asked for again.
        harness.task("photos", "a")
        harness.endTask("photos", "a")
        harness.advance(.seconds(1))
        #expect(harness.effects.contains(.freeze(run, attempt: 2)))
        if isThaw {
            harness.happens(.run(run, .frozen(attempt: 2, memory: mebibyte)))
            harness.behave("photos") { $0.thaws = false }
            harness.activate("photos")
            harness.happens(.run(run, .thawed(attempt: 1)))
            #expect(harness.state("photos") == .background)
            harness.happens(.run(run, .thawed(attempt: 2)))
            #expect(harness.state("photos") == .active)
        } else {
            harness.happens(.run(run, .frozen(attempt: 1, memory: mebibyte)))
            #expect(harness.state("photos") == .background)
            harness.happens(.run(run, .frozen(attempt: 2, memory: mebibyte)))
            #expect(harness.state("photos") == .suspended)
        }
    }

    @Test("frozen that comes after the freeze was called off does not suspend the app")
    func frozenTooLate() {
        let harness = Harness("photos")
        harness.behave("photos") {
            $0.freezes = false; $0.thaws = false
        }
        harness.launch("photos", .background)
        let run = harness.run("photos")
        harness.advance(.seconds(1))
        harness.activate("photos")
        harness.happens(.run(run, .frozen(attempt: 1, memory: mebibyte)))
        #expect(harness.state("photos") == .background)
        harness.happens(.run(run, .thawed(attempt: 1)))
        #expect(harness.state("photos") == .active)
    }

    @Test("an app that does not run again 5 s after the thaw is killed")
    func resumeDeadline() throws {
        let harness = Harness("photos")
        harness.bring("photos", into: .suspended)
        harness.behave("photos") { $0.thaws = false }
        harness.activate("photos")
        #expect(harness.view("photos").deadline?.what == .thaw)
        harness.advance(.seconds(5))
        let receipt = try harness.receipt("photos")
        #expect(receipt.code == 0x8bad_f00d)
        #expect(receipt.explanation.hasPrefix("Killed: did not run again within 5s of its thaw"))
    }

    @Test("a kill races a wake: nothing is told to the app after it")
    func killRacesWake() throws {
        let harness = Harness("photos")
        harness.bring("photos", into: .suspended)
        harness.behave("photos") {
            $0.thaws = false; $0.dies = false
        }
        let run = harness.run("photos")
        let activate = harness.activate("photos")
        harness.remove("photos")
        harness.happens(.run(run, .thawed(attempt: 1)))
        #expect(harness.answers[activate] == .superseded(by: .terminating))
        #expect(harness.state("photos") == .terminating)
        #expect(!harness.told("photos").contains(.willEnterForeground))

        // The other way about: killed while suspended, woken before it is gone.
        let other = Harness("photos")
        other.bring("photos", into: .suspended)
        other.behave("photos") { $0.dies = false }
        other.terminate("photos")
        let mark = other.mark
        let push = other.launch("photos", .background, .fetch)
        let again = other.activate("photos")
        #expect(other.answers[push] == .refused(.ending))
        #expect(!other.effects(since: mark).contains(.thaw(other.run("photos"), attempt: 1)))
        other.exit("photos", .signaled(9, coreDumped: false))
        #expect(other.answers[again] == .done(.active))
    }

    @Test("L5: wishes while waking wait for the thaw, and the latest wins")
    func wishesWhileWaking() {
        let harness = Harness("photos")
        harness.bring("photos", into: .waking)
        let run = harness.run("photos")
        let activate = harness.activate("photos")
        let terminate = harness.terminate("photos")
        let background = harness.background("photos")
        let last = harness.activate("photos")
        #expect(harness.answers[activate] == .superseded(by: .terminating))
        #expect(harness.answers[terminate] == .superseded(by: .background))
        #expect(harness.answers[background] == .superseded(by: .active))
        harness.happens(.run(run, .thawed(attempt: 1)))
        #expect(harness.answers[last] == .done(.active))
    }

    // MARK: Wakes

    @Test("L26: a wake has 30 s of its own, and they are not the budget's")
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

    @Test("L26: a wake of an app that runs in the background has 30 s of its own too: no task ends it before")
    func wakeOfRunning() throws {
        let harness = Harness("photos") { $0.backgroundModes = .push }
        harness.launch("photos", .background)
        harness.task("photos", "upload")
        harness.advance(.seconds(29))
        harness.push("photos")
        harness.advance(.seconds(10))
        // What was begun at the end of the wake is not refused, and what it is killed for is the push.
        harness.task("photos", "store")
        #expect(harness.view("photos").tasks.map(\.name) == ["upload", "store"])
        harness.advance(.milliseconds(19_999))
        #expect(harness.killed() == [])
        #expect(harness.told("photos").count { $0 == .tasksExpiring } == 2)
        harness.advance(.milliseconds(1))
        #expect(harness.killed() == ["photos"])
    }

    @Test("L26: each push has its time: what is begun after a second one is not refused for the first one's clock")
    func secondWake() {
        let harness = Harness("photos") { $0.backgroundModes = .push }
        harness.suspend("photos")
        harness.push("photos")
        harness.advance(.seconds(29))
        harness.push("photos")
        harness.advance(.seconds(2))
        harness.task("photos", "fetch")
        #expect(harness.view("photos").tasks.map(\.name) == ["fetch"])
    }

    @Test("L26: of a longer budget a wake takes nothing")
    func longBudget() {
        let harness = Harness("photos") { $0.backgroundTime = .seconds(600) }
        harness.launch("photos", .background)
        harness.task("photos", "upload")
        harness.advance(.seconds(60))
        harness.launch("photos", .background, .socket)
        #expect(harness.view("photos").backgroundTimeRemaining == .seconds(540))
    }

    @Test(
        "L26: a wake for a socket, timer, accessory or location need not be completed: its time is simply over",
        arguments: [
            LaunchReason.socket, .timer, .accessory, .location,
        ])
    func wakeIsOver(reason: LaunchReason) {
        let harness = Harness("photos")
        harness.bring("photos", into: .suspended)
        harness.launch("photos", .background, reason)
        harness.advance(.milliseconds(29_999))
        #expect(harness.state("photos") == .background)
        harness.advance(.milliseconds(2))
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        #expect(harness.killed() == [])
    }

    @Test(
        "a launch or wake for the user's sake has no time of its own", arguments: [LaunchReason.user, .url, .relaunch])
    func userWake(reason: LaunchReason) {
        let harness = Harness("photos")
        harness.launch("photos", .background, reason)
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        let request = harness.launch("photos", .background, reason)
        #expect(harness.answers[request] == .done(.suspended))
    }

    @Test(
        "L30: a push or fetch that is not completed in 30 s is an error, 0x2182bad4",
        arguments: [LaunchReason.push, .fetch])
    func notCompleted(reason: LaunchReason) throws {
        for stage in [Stage.notRunning, .suspended, .running] {
            let harness = Harness("photos") {
                $0.backgroundModes = [.push, .fetch]; $0.backgroundTime = .seconds(60)
            }
            if stage != .notRunning { harness.bring("photos", into: stage) }
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

    @Test("L30: completed, whatever came of it, the app is suspended again", arguments: WakeResult.allCases)
    func completed(result: WakeResult) {
        let harness = Harness("photos") { $0.backgroundModes = .push }
        harness.bring("photos", into: .suspended)
        let request = harness.push("photos", "hello")
        #expect(harness.answers[request] == .done(.background))
        #expect(harness.delivered("photos").map(\.payload) == ["hello"])
        harness.advance(.seconds(12))
        harness.happens(.run(harness.run("photos"), .wakeCompleted(result)))
        #expect(harness.reports().contains(.wakeCompleted(id("photos"), result)))
        #expect(harness.reports().contains(.deadlineMet(id("photos"), .wake, used: .seconds(12))))
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        // Said again it means nothing.
        let mark = harness.mark
        harness.happens(.run(harness.run("photos"), .wakeCompleted(result)))
        #expect(harness.effects(since: mark) == [])
    }

    @Test("L30: completed while the app is looked into is in time")
    func completedInTime() {
        let harness = Harness("photos") {
            $0.backgroundModes = .push; $0.backgroundTime = .seconds(60)
        }
        harness.bring("photos", into: .suspended)
        harness.behave("photos") { $0.isInspected = false }
        harness.push("photos")
        harness.advance(.seconds(30))
        let run = harness.run("photos")
        harness.happens(.run(run, .wakeCompleted(.newData)))
        harness.happens(.run(run, .inspected(Inspection(traced: false, cpu: .zero, memory: 0))))
        #expect(harness.killed() == [])
    }

    @Test("L28: a push needs the mode in the manifest")
    func modeNotDeclared() {
        let harness = Harness("photos")
        let request = harness.push("photos")
        #expect(harness.answers[request] == .refused(.modeNotDeclared("push")))
        #expect(harness.state("photos") == .notRunning)
    }

    @Test("L26: a wake is over when the user comes, and need not be completed then")
    func userComes() {
        let harness = Harness("photos") { $0.backgroundModes = .push }
        harness.bring("photos", into: .suspended)
        harness.push("photos")
        harness.activate("photos")
        harness.advance(.seconds(100))
        #expect(harness.state("photos") == .active)
        #expect(harness.killed() == [])
    }

    @Test("L3: a background wake is told nothing but the event, and the app is suspended again")
    func wakeTellsNothing() {
        let harness = Harness("photos") { $0.backgroundModes = .push }
        harness.bring("photos", into: .suspended)
        let mark = harness.mark
        harness.push("photos")
        harness.happens(.run(harness.run("photos"), .wakeCompleted(.noData)))
        harness.advance(.seconds(1))
        #expect(harness.told("photos", since: mark) == [])
        #expect(harness.changes("photos", since: mark) == ["background: woken", "suspended: idle"])
    }

    @Test("L21: a task of a suspended app, heard of late, wakes it with what is left of its budget")
    func taskWakes() {
        let harness = Harness("photos")
        harness.bring("photos", into: .suspended)
        harness.task("photos", "upload")
        #expect(harness.changes("photos").last == "background: taskBegan")
        #expect(harness.view("photos").backgroundTimeRemaining == .seconds(29))
    }

    @Test(
        "L30: a wake that is completed before it is known that the app runs again, or is ready, is completed",
        arguments: [
            Stage.suspended, .notRunning,
        ])
    func completedEarly(stage: Stage) {
        let harness = Harness("photos") {
            $0.backgroundModes = .push; $0.readiness = .notified
        }
        if stage == .suspended { harness.bring("photos", into: .suspended) }
        harness.behave("photos") {
            $0.thaws = false; $0.launching = .executes
        }
        harness.push("photos")
        let run = harness.run("photos")
        harness.happens(.run(run, .wakeCompleted(.newData)))
        #expect(harness.reports().last == .wakeCompleted(id("photos"), .newData))
        harness.happens(stage == .suspended ? .run(run, .thawed(attempt: 1)) : .run(run, .ready))
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        // A second word for it means nothing.
        let mark = harness.mark
        harness.happens(.run(run, .wakeCompleted(.newData)))
        #expect(harness.effects(since: mark) == [])
    }
}
