import Testing

@testable import LifecycleCore

@Suite("Background tasks")
struct TaskTests {
    @Test("an app whose tasks end during the inspection at the end of the budget is not killed (L23)")
    func endsJustInTime() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.isInspected = false }
        harness.launch("photos")
        harness.task("photos", "upload")
        harness.task("photos", "sync")
        harness.background("photos")
        let run = harness.run("photos")
        harness.advance(.seconds(30))
        #expect(harness.effects.contains(.run(run, .deadline(.inspect))))
        harness.endTask("photos", "upload")
        harness.endTask("photos", "sync")
        harness.handle(.run(run, .deadline(.inspected(Inspection(traced: false, cpu: .zero, memory: 0)))))
        #expect(harness.killed() == [])
        // The budget is used up: the app is suspended immediately, and tasks are refused.
        harness.advance(.zero)
        #expect(harness.state("photos") == .suspended)
        harness.task("photos", "more")
        #expect(harness.reports().last == .taskRefused(id("photos"), name: "more"))
    }

    @Test("an app of which one of two tasks ends at the end of the budget is killed (L23)")
    func oneOfTwoEnds() throws {
        let harness = Harness("photos")
        harness.behave("photos") { $0.isInspected = false }
        harness.launch("photos")
        harness.task("photos", "upload")
        harness.task("photos", "sync")
        harness.background("photos")
        harness.advance(.seconds(30))
        harness.endTask("photos", "upload")
        harness.handle(
            .run(harness.run("photos"), .deadline(.inspected(Inspection(traced: false, cpu: .seconds(3), memory: 0)))))
        let receipt = try harness.receipt("photos")
        #expect(receipt.code == 0x2182_bad2)
        #expect(receipt.explanation.contains("'sync'"))
        #expect(!receipt.explanation.contains("upload"))
    }

    @Test("the task that EXTEND_TIMEOUT_USEC= begins while entering the background ends in the foreground (L25)")
    func extensionEndsInForeground() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.entering = .isSilent }
        harness.launch("photos")
        harness.background("photos")
        let run = harness.run("photos")
        harness.handle(.run(run, .deadline(.extended(by: .seconds(8)))))
        #expect(harness.view("photos").tasks.map(\.name) == ["EXTEND_TIMEOUT_USEC"])
        #expect(harness.view("photos").tasks.map(\.remaining) == [.seconds(8)])
        harness.handle(.run(run, .transition(.backgroundEntered)))
        harness.activate("photos")
        #expect(harness.view("photos").tasks.isEmpty)
        #expect(harness.reports().contains(.taskEnded(id("photos"), name: "EXTEND_TIMEOUT_USEC")))
    }

    // MARK: The budget

    @Test(
        "the budget of a task that began in the foreground starts in the background, and is infinite before (L21, L24)"
    )
    func clockStartsInBackground() throws {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.task("photos", "upload")
        harness.advance(.seconds(100))
        #expect(harness.view("photos").tasks == [.init(name: "upload", age: .seconds(100), remaining: nil, owner: 7)])
        #expect(harness.view("photos").backgroundTimeRemaining == nil)
        harness.background("photos")
        #expect(harness.view("photos").backgroundTimeRemaining == .seconds(30))
        harness.advance(.milliseconds(29_999))
        #expect(harness.state("photos") == .background)
        #expect(harness.view("photos").tasks.first?.remaining == .milliseconds(1))
        harness.advance(.milliseconds(1))
        #expect(try harness.receipt("photos").code == 0x2182_bad2)
    }

    @Test("more tasks do not extend the background budget (L21)")
    func moreTasksBuyNoMoreTime() throws {
        let harness = Harness("photos")
        harness.launch("photos", .background)
        for second in 0..<29 {
            harness.task("photos", "task \(second)")
            if second > 0 { harness.endTask("photos", "task \(second - 1)") }
            harness.advance(.seconds(1))
        }
        #expect(harness.view("photos").backgroundTimeRemaining == .seconds(1))
        harness.advance(.seconds(1))
        let receipt = try harness.receipt("photos")
        #expect(receipt.code == 0x2182_bad2)
        #expect(receipt.deadline?.wall == .seconds(30))
    }

    @Test("the budget is paused while the app is suspended and continues for a task of the same stay (L21)")
    func clockStandsStill() {
        let harness = Harness("photos")
        harness.launch("photos", .background)
        harness.task("photos", "upload")
        harness.advance(.seconds(10))
        harness.endTask("photos", "upload")
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        harness.advance(.seconds(500))
        #expect(harness.view("photos").backgroundTimeRemaining == .seconds(19))
        // The task began before the freeze; its message arrives after it.
        harness.task("photos", "more")
        #expect(harness.state("photos") == .background)
        harness.advance(.milliseconds(18_999))
        #expect(harness.state("photos") == .background)
        harness.advance(.milliseconds(1))
        #expect(harness.killed() == ["photos"])
    }

    @Test("the budget is reset in the foreground (L26)")
    func budgetIsReset() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.task("photos", "upload")
        harness.background("photos")
        harness.advance(.seconds(29))
        harness.activate("photos")
        #expect(harness.view("photos").backgroundTimeRemaining == nil)
        harness.background("photos")
        #expect(harness.view("photos").backgroundTimeRemaining == .seconds(30))
        harness.advance(.seconds(29))
        #expect(harness.state("photos") == .background)
    }

    @Test("an app without tasks is suspended immediately at the end of its budget, and a later task gets no time (L23)")
    func overWithoutTask() {
        let harness = Harness("photos") {
            $0.backgroundTime = .seconds(3); $0.suspendDelay = .seconds(10)
        }
        harness.launch("photos", .background)
        harness.advance(.seconds(3))
        #expect(harness.state("photos") == .suspended)
        #expect(harness.view("photos").backgroundTimeRemaining == .zero)
        harness.task("photos", "late")
        #expect(harness.state("photos") == .suspended)
        #expect(harness.reports().last == .taskRefused(id("photos"), name: "late"))
        // The foreground resets the budget.
        harness.activate("photos")
        #expect(harness.view("photos").backgroundTimeRemaining == nil)
        harness.task("photos", "new")
        #expect(harness.view("photos").tasks.map(\.name) == ["new"])
    }

    @Test("the receipt names at most three of the leaked tasks (L23)")
    func leakedNames() throws {
        let harness = Harness("photos")
        harness.behave("photos") { $0.cpu = .milliseconds(20) }
        harness.launch("photos", .background)
        for name in ["a", "b", "c", "d", "e"] { harness.task("photos", name) }
        harness.advance(.seconds(30))
        let receipt = try harness.receipt("photos")
        #expect(
            receipt.explanation
                == "Killed: used up its background time (30s) with the tasks 'a', 'b', 'c' and 2 more open; "
                + "it used 0s of CPU time.")
        #expect(receipt.namespace == .watchdog)
    }

    @Test("tasksExpiring is sent once, 5s before the end of the budget, and only with an open task (L22)")
    func expirationNotice() {
        let harness = Harness("photos")
        harness.launch("photos", .background)
        harness.task("photos", "a")
        harness.task("photos", "b")
        harness.advance(.milliseconds(24_999))
        #expect(!harness.notices("photos").contains(.tasksExpiring))
        harness.advance(.milliseconds(1))
        #expect(harness.notices("photos").last == .tasksExpiring)
        #expect(harness.reports().contains(.tasksExpiring(id("photos"), names: ["a", "b"])))
        harness.endTask("photos", "a")
        harness.advance(.seconds(4))
        #expect(harness.notices("photos").filter { $0 == .tasksExpiring }.count == 1)
        harness.endTask("photos", "b")
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)

        let quiet = Harness("photos") { $0.suspendDelay = .seconds(28) }
        quiet.launch("photos", .background)
        quiet.advance(.seconds(27))
        #expect(!quiet.notices("photos").contains(.tasksExpiring))
        // The first task after that time gets the notice immediately and no additional time.
        quiet.task("photos", "late")
        quiet.advance(.zero)
        #expect(quiet.notices("photos").last == .tasksExpiring)
        quiet.advance(.seconds(3))
        #expect(quiet.killed() == ["photos"])
    }

    @Test("a task that begins after the expiration notice kills no app that was not notified of it (L22)")
    func tasksAfterNotice() {
        let harness = Harness("photos") { $0.suspendDelay = .seconds(3) }
        harness.launch("photos", .background)
        harness.task("photos", "upload")
        harness.advance(.seconds(25))
        // As one that saves what the expiring one has done.
        harness.task("photos", "save")
        #expect(harness.notices("photos").filter { $0 == .tasksExpiring }.count == 2)
        #expect(harness.reports().last == .tasksExpiring(id("photos"), names: ["upload", "save"]))
        harness.endTask("photos", "upload")
        harness.endTask("photos", "save")
        // It tries again, and would be killed at 30s.
        harness.advance(.seconds(1))
        harness.task("photos", "upload")
        #expect(harness.reports().last == .taskRefused(id("photos"), name: "upload"))
        harness.advance(.seconds(2))
        #expect(harness.state("photos") == .suspended)
        #expect(harness.killed() == [])
    }

    @Test(
        "an app whose expiration notice comes late, as the daemon did not run, has the whole time of the notice (L22, L48)"
    )
    func delayedExpirationNotice() throws {
        let harness = Harness("photos")
        harness.launch("photos", .background)
        harness.task("photos", "upload")
        harness.delay(.seconds(60))
        harness.handle(.deadlineReached)
        #expect(harness.notices("photos").last == .tasksExpiring)
        #expect(harness.reports().contains(.deadlineDeferred(id("photos"), .backgroundTime, .noticeDelayed)))
        harness.advance(.milliseconds(4999))
        #expect(harness.killed() == [])
        harness.advance(.milliseconds(1))
        #expect(harness.killed() == ["photos"])
    }

    @Test("a late task with less than the notice time left does not wake a suspended app (L22)")
    func tooLateToWake() {
        let harness = Harness("photos")
        harness.launch("photos", .background)
        harness.task("photos", "upload")
        harness.advance(.seconds(24))
        harness.endTask("photos", "upload")
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        #expect(harness.view("photos").backgroundTimeRemaining == .seconds(5))
        harness.task("photos", "late")
        #expect(harness.state("photos") == .suspended)
        #expect(harness.reports().last == .taskRefused(id("photos"), name: "late"))
    }

    @Test("with BackgroundTimeSec=infinity a task may stay open for ever (L21)")
    func infiniteBudget() {
        let harness = Harness("photos") { $0.backgroundTime = nil }
        harness.launch("photos", .background)
        harness.task("photos", "serve")
        harness.advance(.seconds(100_000))
        #expect(harness.state("photos") == .background)
        #expect(harness.view("photos").tasks.first?.remaining == nil)
        harness.endTask("photos", "serve")
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
    }

    @Test(
        "a task that begins while the app is being suspended or woken keeps it awake (L21)",
        arguments: [Stage.suspending, .waking])
    func keepsAwake(stage: Stage) {
        let harness = Harness("photos")
        harness.move("photos", to: stage)
        let run = harness.run("photos")
        harness.task("photos", "a")
        #expect(harness.effects.contains(.run(run, .suspension(.thaw(attempt: 1)))))
        harness.finish("photos", stage, run)
        harness.advance(.seconds(10))
        #expect(harness.state("photos") == .background)
        harness.endTask("photos", "a")
        harness.endTask("photos", "upload")
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
    }

    @Test("a task of an ending app is refused (L21)", arguments: [Stage.terminating, .ending])
    func refusedAtTheEnd(stage: Stage) {
        let harness = Harness("photos")
        harness.move("photos", to: stage)
        harness.task("photos", "a")
        #expect(harness.reports().last == .taskRefused(id("photos"), name: "a"))
        #expect(harness.view("photos").tasks.isEmpty)
    }

    @Test("of several tasks with one name the oldest ends first, and the end of an unknown task only causes a warning")
    func sameName() {
        let harness = Harness("photos")
        harness.launch("photos", .background)
        harness.task("photos", "sync")
        harness.advance(.seconds(2))
        harness.task("photos", "sync")
        harness.endTask("photos", "sync")
        #expect(harness.view("photos").tasks.map(\.age) == [.zero])
        let mark = harness.mark
        harness.endTask("photos", "other")
        #expect(harness.effects(since: mark) == [.run(harness.run("photos"), .warn(.taskNotOpen(name: "other")))])
        harness.endTask("photos", "sync")
        harness.endTask("photos", "sync")
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
    }

    @Test("a view shows the name, age and owner of each task (L27)")
    func found() {
        let harness = Harness("photos")
        harness.launch("photos", .background)
        harness.task("photos", "a", owner: 41)
        harness.advance(.seconds(4))
        harness.task("photos", "b", owner: 42)
        harness.advance(.seconds(2))
        #expect(
            harness.view("photos").tasks == [
                .init(name: "a", age: .seconds(6), remaining: .seconds(24), owner: 41),
                .init(name: "b", age: .seconds(2), remaining: .seconds(24), owner: 42),
            ])
    }

    @Test("an app with more than 1000 open tasks is killed with 0xbada5e47 (L27)")
    func tooMany() throws {
        let harness = Harness("photos")
        harness.launch("photos")
        for number in 0..<1000 { harness.task("photos", "\(number)") }
        #expect(harness.state("photos") == .active)
        harness.task("photos", "one more")
        let receipt = try harness.receipt("photos")
        #expect(receipt.namespace == .lifecycle)
        #expect(receipt.code == 0xbada_5e47)
        #expect(receipt.explanation == "Killed: had 1001 background tasks open; the limit is 1000.")
        #expect(harness.changes("photos").contains("terminating: tooManyTasks"))
    }
}
