import LifecycleCore
import Testing

@Suite("Suspension")
struct SuspensionTests {
    @Test(
        "L26: an app that answered by stopping itself is continued for what wakes it",
        arguments: ["running", "entering", "suspended"])
    func continuedForWake(phase: String) {
        let house = House("photos") { $0.backgroundModes = .push }
        house.behave("photos") { $0.entering = phase == "entering" ? .isSilent : .stops }
        house.launch("photos")
        house.background("photos")
        let run = house.run("photos")
        if phase == "suspended" { house.advance(.seconds(1)) }
        #expect(!house.effects.contains(.continueStopped(run)))
        house.push("photos")
        if phase == "entering" {
            #expect(!house.effects.contains(.continueStopped(run)))
            house.happens(.run(run, .stopped))
        }
        #expect(house.effects.contains(.continueStopped(run)))
        #expect(house.state("photos") == .background)
        house.happens(.run(run, .wakeCompleted(.newData)))
        house.advance(.seconds(1))
        #expect(house.state("photos") == .suspended)
    }

    @Test("an app that answered by stopping itself stays stopped after a freeze that timed out")
    func staysStopped() {
        let house = House("photos")
        house.behave("photos") {
            $0.entering = .stops; $0.freezes = false
        }
        house.launch("photos")
        house.background("photos")
        house.advance(.seconds(3))
        #expect(house.reports().contains(.freezeTimedOut(id("photos"))))
        #expect(!house.effects.contains(.continueStopped(house.run("photos"))))
        house.behave("photos") { $0.freezes = true }
        house.advance(.seconds(1))
        #expect(house.state("photos") == .suspended)
        house.activate("photos")
        #expect(house.effects.contains(.continueStopped(house.run("photos"))))
    }

    @Test("L1: suspended is said only when the whole group reads frozen; the thaw comes before the news of it")
    func suspendedMeansFrozen() {
        let house = House("photos")
        house.behave("photos") {
            $0.freezes = false; $0.thaws = false
        }
        house.launch("photos", .background)
        house.advance(.seconds(1))
        let run = house.run("photos")
        #expect(house.effects.last == .freeze(run, attempt: 1))
        #expect(house.state("photos") == .background)
        house.happens(.run(run, .frozen(attempt: 1, memory: 5 * mebibyte)))
        #expect(house.state("photos") == .suspended)
        #expect(house.view("photos").memory == 5 * mebibyte)
        let mark = house.mark
        house.activate("photos")
        #expect(house.state("photos") == .background)
        let thaw = house.effects(since: mark).firstIndex(of: .thaw(run, attempt: 1))!
        let change = house.effects(since: mark).firstIndex {
            if case .report(.stateChanged) = $0 { true } else { false }
        }!
        #expect(thaw < change)
    }

    @Test("law 8: with all apps suspended, no timer is armed")
    func nothingRuns() {
        let house = House("photos", "mail", "music")
        for app in ["photos", "mail"] { house.suspend(app) }
        #expect(house.core.nextDeadline == nil)
        house.launch("music")
        #expect(house.core.nextDeadline != nil)
        house.terminate("music")
        #expect(house.core.nextDeadline == nil)
    }

    // MARK: Freezes that fail, and outcomes that come late

    @Test("a freeze that does not come about in 2 s is given up, and tried again after 1 s, doubling up to 60 s")
    func freezeTimesOut() {
        let house = House("photos") { $0.backgroundTime = nil }
        house.behave("photos") { $0.freezes = false }
        house.launch("photos", .background)
        house.advance(.seconds(400))
        var times: [Duration] = []
        var last: Instant?
        for entry in house.log {
            if case .freeze = entry.effect, let last { times.append(entry.at - last) }
            if case .thaw = entry.effect { last = entry.at }
        }
        #expect(Array(times.prefix(8)) == [1, 2, 4, 8, 16, 32, 60, 60].map { Duration.seconds($0) })
        #expect(!house.changes("photos").contains { $0.hasPrefix("suspended") })
        house.behave("photos") { $0.freezes = true }
        house.advance(.seconds(60))
        #expect(house.state("photos") == .suspended)
    }

    @Test("a freeze or thaw of an earlier attempt is known for what it is", arguments: [false, true])
    func staleOutcomes(isThaw: Bool) {
        let house = House("photos")
        house.behave("photos") { $0.freezes = false }
        house.launch("photos", .background)
        let run = house.run("photos")
        house.advance(.seconds(1))
        // Called off, and asked for again.
        house.task("photos", "a")
        house.endTask("photos", "a")
        house.advance(.seconds(1))
        #expect(house.effects.contains(.freeze(run, attempt: 2)))
        if isThaw {
            house.happens(.run(run, .frozen(attempt: 2, memory: mebibyte)))
            house.behave("photos") { $0.thaws = false }
            house.activate("photos")
            house.happens(.run(run, .thawed(attempt: 1)))
            #expect(house.state("photos") == .background)
            house.happens(.run(run, .thawed(attempt: 2)))
            #expect(house.state("photos") == .active)
        } else {
            house.happens(.run(run, .frozen(attempt: 1, memory: mebibyte)))
            #expect(house.state("photos") == .background)
            house.happens(.run(run, .frozen(attempt: 2, memory: mebibyte)))
            #expect(house.state("photos") == .suspended)
        }
    }

    @Test("frozen that comes after the freeze was called off does not suspend the app")
    func frozenTooLate() {
        let house = House("photos")
        house.behave("photos") {
            $0.freezes = false; $0.thaws = false
        }
        house.launch("photos", .background)
        let run = house.run("photos")
        house.advance(.seconds(1))
        house.activate("photos")
        house.happens(.run(run, .frozen(attempt: 1, memory: mebibyte)))
        #expect(house.state("photos") == .background)
        house.happens(.run(run, .thawed(attempt: 1)))
        #expect(house.state("photos") == .active)
    }

    @Test("an app that does not run again 5 s after the thaw is killed")
    func resumeDeadline() throws {
        let house = House("photos")
        house.bring("photos", into: .suspended)
        house.behave("photos") { $0.thaws = false }
        house.activate("photos")
        #expect(house.view("photos").deadline?.what == .resume)
        house.advance(.seconds(5))
        let receipt = try house.receipt("photos")
        #expect(receipt.code == 0x8bad_f00d)
        #expect(receipt.explanation.hasPrefix("did not run again after the thaw within 5 s"))
    }

    @Test("a kill races a wake: nothing is told to the app after it")
    func killRacesWake() throws {
        let house = House("photos")
        house.bring("photos", into: .suspended)
        house.behave("photos") {
            $0.thaws = false; $0.dies = false
        }
        let run = house.run("photos")
        let activate = house.activate("photos")
        house.remove("photos")
        house.happens(.run(run, .thawed(attempt: 1)))
        #expect(house.answers[activate] == .superseded(by: .terminating))
        #expect(house.state("photos") == .terminating)
        #expect(!house.told("photos").contains(.willEnterForeground))

        // The other way about: killed while suspended, woken before it is gone.
        let other = House("photos")
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
        let house = House("photos")
        house.bring("photos", into: .waking)
        let run = house.run("photos")
        let activate = house.activate("photos")
        let terminate = house.terminate("photos")
        let background = house.background("photos")
        let last = house.activate("photos")
        #expect(house.answers[activate] == .superseded(by: .terminating))
        #expect(house.answers[terminate] == .superseded(by: .background))
        #expect(house.answers[background] == .superseded(by: .active))
        house.happens(.run(run, .thawed(attempt: 1)))
        #expect(house.answers[last] == .done(.active))
    }

    // MARK: Wakes

    @Test("L26: a wake has 30 s of its own, and they are not the budget's")
    func wakeTime() {
        let house = House("photos")
        house.launch("photos", .background)
        house.task("photos", "upload")
        house.advance(.seconds(24))
        house.endTask("photos", "upload")
        house.advance(.seconds(1))
        house.launch("photos", .background, .socket)
        #expect(house.view("photos").backgroundTimeRemaining == .seconds(30))
        house.task("photos", "serve")
        house.advance(.milliseconds(29_999))
        #expect(house.state("photos") == .background)
        house.advance(.milliseconds(1))
        #expect(house.killed() == ["photos"])
    }

    @Test("L26: a wake of an app that runs in the background has 30 s of its own too: no task ends it before")
    func wakeOfRunning() throws {
        let house = House("photos") { $0.backgroundModes = .push }
        house.launch("photos", .background)
        house.task("photos", "upload")
        house.advance(.seconds(29))
        house.push("photos")
        house.advance(.seconds(10))
        // What was begun at the end of the wake is not refused, and what it is killed for is the push.
        house.task("photos", "store")
        #expect(house.view("photos").tasks.map(\.name) == ["upload", "store"])
        house.advance(.milliseconds(19_999))
        #expect(house.killed() == [])
        #expect(house.told("photos").count { $0 == .tasksExpiring } == 2)
        house.advance(.milliseconds(1))
        #expect(house.killed() == ["photos"])
    }

    @Test("L26: each push has its time: what is begun after a second one is not refused for the first one's clock")
    func secondWake() {
        let house = House("photos") { $0.backgroundModes = .push }
        house.suspend("photos")
        house.push("photos")
        house.advance(.seconds(29))
        house.push("photos")
        house.advance(.seconds(2))
        house.task("photos", "fetch")
        #expect(house.view("photos").tasks.map(\.name) == ["fetch"])
    }

    @Test("L26: of a longer budget a wake takes nothing")
    func longBudget() {
        let house = House("photos") { $0.backgroundTime = .seconds(600) }
        house.launch("photos", .background)
        house.task("photos", "upload")
        house.advance(.seconds(60))
        house.launch("photos", .background, .socket)
        #expect(house.view("photos").backgroundTimeRemaining == .seconds(540))
    }

    @Test(
        "L26: a wake for a socket, timer, accessory or location need not be completed: its time is simply over",
        arguments: [
            LaunchReason.socket, .timer, .accessory, .location,
        ])
    func wakeIsOver(reason: LaunchReason) {
        let house = House("photos")
        house.bring("photos", into: .suspended)
        house.launch("photos", .background, reason)
        house.advance(.milliseconds(29_999))
        #expect(house.state("photos") == .background)
        house.advance(.milliseconds(2))
        house.advance(.seconds(1))
        #expect(house.state("photos") == .suspended)
        #expect(house.killed() == [])
    }

    @Test(
        "a launch or wake for the user's sake has no time of its own", arguments: [LaunchReason.user, .url, .relaunch])
    func userWake(reason: LaunchReason) {
        let house = House("photos")
        house.launch("photos", .background, reason)
        house.advance(.seconds(1))
        #expect(house.state("photos") == .suspended)
        let request = house.launch("photos", .background, reason)
        #expect(house.answers[request] == .done(.suspended))
    }

    @Test(
        "L30: a push or fetch that is not completed in 30 s is an error, 0x2182bad4",
        arguments: [LaunchReason.push, .fetch])
    func notCompleted(reason: LaunchReason) throws {
        for stage in [Stage.notRunning, .suspended, .running] {
            let house = House("photos") {
                $0.backgroundModes = [.push, .fetch]; $0.backgroundTime = .seconds(60)
            }
            if stage != .notRunning { house.bring("photos", into: stage) }
            house.launch("photos", .background, reason)
            house.advance(.milliseconds(29_999))
            #expect(house.state("photos") == .background)
            house.advance(.milliseconds(1))
            let receipt = try house.receipt("photos")
            #expect(receipt.code == 0x2182_bad4)
            #expect(
                receipt.explanation.hasPrefix("the \(reason.rawValue) it was woken for was not completed within 30 s"))
        }
    }

    @Test("L30: completed, whatever came of it, the app is suspended again", arguments: WakeResult.allCases)
    func completed(result: WakeResult) {
        let house = House("photos") { $0.backgroundModes = .push }
        house.bring("photos", into: .suspended)
        let request = house.push("photos", "hello")
        #expect(house.answers[request] == .done(.background))
        #expect(house.delivered("photos").map(\.payload) == ["hello"])
        house.advance(.seconds(12))
        house.happens(.run(house.run("photos"), .wakeCompleted(result)))
        #expect(house.reports().contains(.wakeCompleted(id("photos"), result)))
        #expect(house.reports().contains(.deadlineMet(id("photos"), .wake, used: .seconds(12))))
        house.advance(.seconds(1))
        #expect(house.state("photos") == .suspended)
        // Said again it means nothing.
        let mark = house.mark
        house.happens(.run(house.run("photos"), .wakeCompleted(result)))
        #expect(house.effects(since: mark) == [])
    }

    @Test("L30: completed while the app is looked into is in time")
    func completedInTime() {
        let house = House("photos") {
            $0.backgroundModes = .push; $0.backgroundTime = .seconds(60)
        }
        house.bring("photos", into: .suspended)
        house.behave("photos") { $0.isInspected = false }
        house.push("photos")
        house.advance(.seconds(30))
        let run = house.run("photos")
        house.happens(.run(run, .wakeCompleted(.newData)))
        house.happens(.run(run, .inspected(Inspection(traced: false, cpu: .zero, memory: 0))))
        #expect(house.killed() == [])
    }

    @Test("L28: a push needs the mode in the manifest")
    func modeNotDeclared() {
        let house = House("photos")
        let request = house.push("photos")
        #expect(house.answers[request] == .refused(.modeNotDeclared("push")))
        #expect(house.state("photos") == .notRunning)
    }

    @Test("L26: a wake is over when the user comes, and need not be completed then")
    func userComes() {
        let house = House("photos") { $0.backgroundModes = .push }
        house.bring("photos", into: .suspended)
        house.push("photos")
        house.activate("photos")
        house.advance(.seconds(100))
        #expect(house.state("photos") == .active)
        #expect(house.killed() == [])
    }

    @Test("L3: a background wake is told nothing but the event, and the app is suspended again")
    func wakeTellsNothing() {
        let house = House("photos") { $0.backgroundModes = .push }
        house.bring("photos", into: .suspended)
        let mark = house.mark
        house.push("photos")
        house.happens(.run(house.run("photos"), .wakeCompleted(.noData)))
        house.advance(.seconds(1))
        #expect(house.told("photos", since: mark) == [])
        #expect(house.changes("photos", since: mark) == ["background: woken", "suspended: idle"])
    }

    @Test("L21: a task of a suspended app, heard of late, wakes it with what is left of its budget")
    func taskWakes() {
        let house = House("photos")
        house.bring("photos", into: .suspended)
        house.task("photos", "upload")
        #expect(house.changes("photos").last == "background: task began")
        #expect(house.view("photos").backgroundTimeRemaining == .seconds(29))
    }

    @Test(
        "L30: a wake that is completed before it is known that the app runs again, or is ready, is completed",
        arguments: [
            Stage.suspended, .notRunning,
        ])
    func completedEarly(stage: Stage) {
        let house = House("photos") {
            $0.backgroundModes = .push; $0.readiness = .notified
        }
        if stage == .suspended { house.bring("photos", into: .suspended) }
        house.behave("photos") {
            $0.thaws = false; $0.launching = .executes
        }
        house.push("photos")
        let run = house.run("photos")
        house.happens(.run(run, .wakeCompleted(.newData)))
        #expect(house.reports().last == .wakeCompleted(id("photos"), .newData))
        house.happens(stage == .suspended ? .run(run, .thawed(attempt: 1)) : .run(run, .ready))
        house.advance(.seconds(1))
        #expect(house.state("photos") == .suspended)
        // A second word for it means nothing.
        let mark = house.mark
        house.happens(.run(run, .wakeCompleted(.newData)))
        #expect(house.effects(since: mark) == [])
    }
}
