import LifecycleCore
import Testing

/// Each wake has a time and a completion of its own.
@Suite("Wakes of their own")
struct OwnWakeTests {
    private func harness(_ policy: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        Harness("photos", "mail") {
            $0.backgroundModes = [.push, .fetch]
            policy(&$0)
        }
    }

    private func complete(_ harness: Harness, _ id: UInt64? = nil) {
        harness.handle(.run(harness.run("photos"), .wake(.completed(.newData, id: id))))
    }

    private func numbers(_ harness: Harness) -> [UInt64] { harness.delivered("photos").map(\.id) }

    /// The numbers that requests got.
    private func identified(_ harness: Harness) -> [RequestID: UInt64] {
        var all: [RequestID: UInt64] = [:]
        for case .identify(let request, let event) in harness.effects { all[request] = event }
        return all
    }

    /// The wakes whose time has begun.
    private func begun(_ harness: Harness) -> [UInt64] {
        harness.reports().compactMap { report in
            if case .deadlineStarted(id("photos"), .wake, .seconds(30), let wake) = report { wake } else { nil }
        }
    }

    @Test("reports of deadlines and completions name the wake (L26)")
    func reports() {
        let harness = harness()
        harness.suspend("photos")
        for _ in 0..<3 { harness.push("photos") }
        #expect(begun(harness) == [1, 2, 3])
        harness.advance(.seconds(12))
        complete(harness, 2)
        #expect(harness.reports().contains(.wakeCompleted(id("photos"), .newData, wake: 2)))
        #expect(harness.reports().contains(.deadlineMet(id("photos"), .wake, used: .seconds(12), wake: 2)))
        harness.advance(.seconds(18))
        #expect(harness.reports().contains(.deadlineMissed(id("photos"), .wake, wake: 1)))
        #expect(harness.reports().contains(.deadlineCancelled(id("photos"), .wake, wake: 3)))
    }

    @Test("a wake that is completed before it begins is reported with its number; without a request it has none (L26)")
    func reportsOfPending() {
        let harness = harness { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        harness.push("photos")
        complete(harness)
        #expect(harness.reports().last == .wakeCompleted(id("photos"), .newData, wake: 1))
        complete(harness)
        #expect(harness.reports().last == .wakeCompleted(id("photos"), .newData, wake: 1))
        #expect(harness.reports().count { if case .wakeCompleted = $0 { true } else { false } } == 1)
    }

    @Test("three pushes to a suspended app are delivered, each with a number that its requester gets (L31)")
    func queue() {
        let harness = harness()
        harness.suspend("photos")
        harness.behave("photos") { $0.thaws = false }
        let requests = ["one", "two", "one"].map { harness.push("photos", $0) }
        #expect(harness.delivered("photos").map(\.payload) == ["one", "two", "one"])
        #expect(numbers(harness) == [1, 2, 3])
        let identified = identified(harness)
        #expect(requests.map { identified[$0] } == [1, 2, 3])
        #expect(requests.allSatisfy { !harness.isAnswered($0) })
    }

    @Test("pushes during a launch wait in order, between states of which the last one counts (L31)")
    func whileLaunching() {
        let harness = harness { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        harness.push("photos", "one")
        harness.send("photos", "battery", "20")
        harness.push("photos", "two")
        harness.send("photos", "battery", "10")
        harness.send("photos", "x-refresh")
        harness.send("photos", "x-refresh")
        harness.handle(.run(harness.run("photos"), .transition(.ready)))
        let delivered = harness.delivered("photos")
        #expect(delivered.map(\.kind) == ["push", "push", "battery", "x-refresh", "x-refresh"])
        #expect(delivered.map(\.payload) == ["one", "two", "10", "", ""])
        #expect(numbers(harness) == [1, 2, 0, 3, 4])
    }

    @Test("the completion of one wake ends no other; by number or the oldest one (L26)")
    func completions() {
        let harness = harness()
        harness.suspend("photos")
        for _ in 0..<3 { harness.push("photos") }
        complete(harness, 2)
        harness.advance(.seconds(5))
        #expect(harness.state("photos") == .background)
        // The oldest one that is open is 1.
        complete(harness)
        harness.advance(.seconds(5))
        #expect(harness.state("photos") == .background)
        // A second completion of the same wake changes nothing.
        complete(harness, 2)
        harness.advance(.seconds(5))
        #expect(harness.state("photos") == .background)
        complete(harness, 3)
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        #expect(harness.killed() == [])
    }

    @Test("a view shows each open wake with its number, its reason and its time (L26)")
    func view() {
        let harness = harness()
        harness.suspend("photos")
        harness.launch("photos", .background, .timer)
        harness.advance(.seconds(10))
        harness.push("photos")
        let wakes = harness.view("photos").wakes
        #expect(wakes.map(\.id) == [1, 2])
        #expect(wakes.map(\.reason) == [.timer, .push])
        #expect(wakes.map(\.remaining) == [.seconds(20), .seconds(30)])
        #expect(harness.view("photos").awakeReasons == [.wake(.timer), .wake(.push)])
        #expect(harness.view("mail").wakes.isEmpty)
    }

    @Test("each push has 30s of its own: an app that completes only the first one is killed for the second (L26, L30)")
    func ownTime() throws {
        let harness = harness { $0.backgroundTime = .seconds(120) }
        harness.suspend("photos")
        harness.push("photos")
        harness.advance(.seconds(20))
        harness.push("photos")
        harness.advance(.seconds(9))
        complete(harness)
        harness.advance(.milliseconds(20_999))
        #expect(harness.state("photos") == .background)
        harness.advance(.milliseconds(1))
        #expect(try harness.receipt("photos").code == 0x2182_bad4)
    }

    @Test("a wake without completion ends by itself, and leaves a push its time (L26)")
    func timerAndPush() {
        let harness = harness()
        harness.suspend("photos")
        harness.launch("photos", .background, .timer)
        harness.advance(.seconds(20))
        harness.push("photos")
        harness.advance(.seconds(15))
        #expect(harness.state("photos") == .background)
        #expect(harness.view("photos").awakeReasons == [.wake(.push)])
        complete(harness)
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        #expect(harness.killed() == [])
    }

    @Test("a push that comes while the app is thawed for a task has 30s, and the task has them too (L26)")
    func whileThawedForTask() {
        let harness = harness()
        harness.launch("photos", .background)
        harness.task("photos", "first")
        harness.advance(.seconds(20))
        harness.endTask("photos", "first")
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        harness.behave("photos") { $0.thaws = false }
        harness.task("photos", "upload")
        harness.push("photos")
        harness.handle(.run(harness.run("photos"), .suspension(.thawed(attempt: 1))))
        #expect(harness.view("photos").backgroundTimeRemaining == .seconds(30))
        harness.advance(.milliseconds(29_999))
        #expect(harness.killed() == [])
        complete(harness)
        harness.endTask("photos", "upload")
        harness.advance(.seconds(2))
        #expect(harness.killed() == [])
    }

    @Test("a push that launches an app has 30s, however short BackgroundTimeSec= is (L26)")
    func shortBudget() {
        let harness = harness { $0.backgroundTime = .seconds(6) }
        harness.push("photos")
        harness.task("photos", "store")
        harness.advance(.seconds(29))
        #expect(harness.killed() == [])
        complete(harness)
        harness.endTask("photos", "store")
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        // A launch without a wake has its budget.
        harness.launch("mail", .background)
        #expect(harness.view("mail").backgroundTimeRemaining == .seconds(6))
    }

    @Test(
        "a completion without a number is for a wake that has to be completed, not for an older one that has not (L30)")
    func completionOfPush() {
        let harness = harness()
        harness.suspend("photos")
        harness.launch("photos", .background, .timer)
        harness.push("photos")
        complete(harness)
        harness.advance(.seconds(29))
        #expect(harness.state("photos") == .background)
        harness.advance(.seconds(2))
        #expect(harness.state("photos") == .suspended)
        #expect(harness.killed() == [])
    }

    @Test(
        "a wake whose push could not be written needs no completion, and ends by itself (L30)",
        arguments: [Stage.suspended, .notRunning])
    func delayedPush(stage: Stage) {
        let harness = harness { $0.readiness = .notified }
        if stage == .suspended { harness.move("photos", to: .suspended) }
        harness.behave("photos") {
            $0.thaws = false; $0.launching = .executes
        }
        harness.push("photos")
        harness.push("photos")
        let run = harness.run("photos")
        // The first one before its wake begins, the second one after.
        harness.handle(.run(run, .wake(.notificationDelayed(wake: 1))))
        harness.handle(
            stage == .suspended ? .run(run, .suspension(.thawed(attempt: 1))) : .run(run, .transition(.ready)))
        harness.handle(.run(run, .wake(.notificationDelayed(wake: 2))))
        // No wake has this number.
        harness.handle(.run(run, .wake(.notificationDelayed(wake: 9))))
        harness.advance(.seconds(40))
        #expect(harness.killed() == [])
        #expect(harness.reports().contains(.deadlineCancelled(id("photos"), .wake, wake: 1)))
        #expect(harness.reports().contains(.deadlineCancelled(id("photos"), .wake, wake: 2)))
    }

    @Test("a completion without a number is for a push that was written, not for an older one that was not (L30)")
    func completionBesideDelayed() {
        let harness = harness()
        harness.suspend("photos")
        harness.push("photos")
        harness.handle(.run(harness.run("photos"), .wake(.notificationDelayed(wake: 1))))
        harness.push("photos")
        complete(harness)
        #expect(harness.reports().contains(.wakeCompleted(id("photos"), .newData, wake: 2)))
        harness.advance(.seconds(40))
        #expect(harness.killed() == [])
    }

    @Test("a push that is reported as not written after its time was over kills no app (L30)")
    func delayedLate() {
        let harness = harness()
        harness.suspend("photos")
        harness.push("photos")
        harness.behave("photos") { $0.isInspected = false }
        harness.advance(.seconds(31))
        let run = harness.run("photos")
        harness.handle(.run(run, .wake(.notificationDelayed(wake: 1))))
        harness.handle(.run(run, .deadline(.inspected(Inspection(traced: false, cpu: .zero, memory: 0)))))
        harness.advance(.seconds(1))
        #expect(harness.killed() == [])
    }

    @Test("the same holds before the wakes begin (L30)")
    func earlyCompletionOfPush() {
        let harness = harness { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        harness.launch("photos", .background, .timer)
        harness.push("photos")
        complete(harness)
        harness.handle(.run(harness.run("photos"), .transition(.ready)))
        #expect(begun(harness) == [1])
    }

    @Test(
        "a wake that may have been completed before the daemon knew of the launch or the thaw needs no completion (L48)",
        arguments: [Stage.suspended, .notRunning])
    func doubtful(stage: Stage) {
        let harness = harness { $0.readiness = .notified }
        if stage == .suspended { harness.move("photos", to: .suspended) }
        harness.behave("photos") {
            $0.thaws = false; $0.launching = .executes
        }
        harness.push("photos")
        let run = harness.run("photos")
        harness.handle(.run(run, .process(.reattached(messagesKept: false, noticesDelayed: false))))
        harness.handle(
            stage == .suspended ? .run(run, .suspension(.thawed(attempt: 1))) : .run(run, .transition(.ready)))
        #expect(begun(harness) == [1])
        harness.advance(.seconds(40))
        #expect(harness.killed() == [])
        #expect(harness.state("photos") == .suspended)
    }

    @Test("wakes that were completed before the launch or the thaw was reported do not begin (L30)")
    func completedEarly() {
        let harness = harness { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        for _ in 0..<3 { harness.push("photos") }
        complete(harness, 2)
        complete(harness)
        harness.handle(.run(harness.run("photos"), .transition(.ready)))
        #expect(begun(harness) == [3])
        complete(harness, 3)
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
    }

    @Test("64 wakes are open at the same time, and the next one is refused; so are 64K of pushes that wait")
    func bounds() {
        let harness = harness { $0.readiness = .notified }
        harness.suspend("mail")
        let pushes = (0..<64).map { _ in harness.push("mail") }
        #expect(pushes.allSatisfy { harness.answers[$0] == .done(.background) })
        let wake = harness.launch("mail", .background, .timer)
        #expect(harness.answers[wake] == .refused(.tooMany("64 wakes have not ended")))
        harness.handle(.run(harness.run("mail"), .wake(.completed(.noData))))
        let push = harness.push("mail")
        #expect(harness.answers[push] == .done(.background))
        harness.behave("photos") { $0.launching = .executes }
        let long = String(repeating: "a", count: 4096)
        let accepted = (0..<16).map { _ in harness.push("photos", long) }
        let refused = harness.push("photos", "b")
        #expect(accepted.allSatisfy { !harness.isAnswered($0) })
        #expect(harness.answers[refused] == .refused(.tooMany("64 pushes, or 65536 bytes of them, are pending")))
        harness.handle(.run(harness.run("photos"), .transition(.ready)))
        #expect(harness.delivered("photos").count == 16)
    }

    @Test("64 notifications of an app's own kinds without a state wait, and the next one is refused (L31)")
    func ownEvents() {
        let harness = harness()
        harness.suspend("photos")
        let requests = (0..<65).map { _ in harness.send("photos", "x-refresh") }
        #expect(requests.dropLast().allSatisfy { harness.answers[$0] == .done(.suspended) })
        #expect(
            harness.answers[requests[64]] == .refused(.tooMany("64 notifications of its own kinds are pending")))
        harness.activate("photos")
        #expect(harness.delivered("photos").count == 64)
    }

    @Test("a completion with a number that no wake has had causes a warning; any other without a wake is ignored (L30)")
    func unknownWake() {
        let harness = harness()
        harness.launch("photos")
        harness.push("photos")
        let mark = harness.mark
        // The push came in the foreground, where it is no wake.
        complete(harness, 1)
        complete(harness)
        #expect(harness.effects(since: mark) == [])
        complete(harness, 2)
        #expect(harness.effects(since: mark) == [.run(harness.run("photos"), .warn(.unknownWake(id: 2)))])
    }

    @Test("a wake by another app is not hidden by one of a user, nor one of a user by one of another app (L19, L53)")
    func requesters() {
        for usersFirst in [true, false] {
            let harness = harness { $0.backgroundTime = .seconds(120) }
            harness.suspend("photos")
            let own = { harness.request("photos", .push(payload: ""), by: .app(id("mail"))) }
            let users = { harness.push("photos") }
            let pushes = usersFirst ? [users, own] : [own, users]
            for push in pushes { _ = push() }
            let user: UInt64 = usersFirst ? 1 : 2
            // While the user's push is open, the app runs for the user.
            harness.advance(.seconds(10))
            #expect(harness.view("photos").unrequestedTime == .zero)
            let mark = harness.mark
            complete(harness, user)
            harness.advance(.seconds(7))
            #expect(harness.view("photos").unrequestedTime == .seconds(7))
            #expect(harness.effects(since: mark).contains(.run(harness.run("photos"), .processor(.throttle))))
            // A further push by a user ends that.
            harness.push("photos")
            #expect(harness.effects(since: mark).contains(.run(harness.run("photos"), .processor(.unthrottle))))
            harness.advance(.seconds(5))
            #expect(harness.view("photos").unrequestedTime == .seconds(7))
        }
    }

    @Test("after a restart in which messages were lost, a completion is for a wake that began since (L30)")
    func doubtfulLast() {
        let harness = harness()
        harness.suspend("photos")
        harness.push("photos")
        harness.handle(.recovered)
        harness.handle(.run(harness.run("photos"), .process(.reattached(messagesKept: false))))
        harness.advance(.seconds(5))
        harness.push("photos")
        // The first push may have been completed; it ends when its time is over.
        complete(harness)
        harness.advance(.seconds(40))
        #expect(harness.state("photos") == .suspended)
        #expect(harness.killed() == [])
    }

    @Test("each push to an app that is ending is a wake of the next process (L5, L26)")
    func afterEnd() {
        let harness = harness()
        harness.move("photos", to: .ending)
        let run = harness.run("photos")
        for _ in 0..<2 { harness.push("photos") }
        let mark = harness.mark
        harness.finish("photos", .ending, run)
        #expect(numbers(harness) == [1, 2])
        #expect(begun(harness) == [1, 2])
        complete(harness)
        complete(harness)
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        #expect(harness.killed(since: mark) == [])
    }
}
