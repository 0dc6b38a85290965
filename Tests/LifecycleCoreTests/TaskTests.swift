import Testing

@testable import LifecycleCore

@Suite("Background tasks")
struct TaskTests {
    @Test("L23: tasks that end while their app is looked into, at the end of the budget, save it")
    func endsJustInTime() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.isInspected = false }
        harness.launch("photos")
        harness.task("photos", "upload")
        harness.task("photos", "sync")
        harness.background("photos")
        let run = harness.run("photos")
        harness.advance(.seconds(30))
        #expect(harness.effects.contains(.inspect(run)))
        harness.endTask("photos", "upload")
        harness.endTask("photos", "sync")
        harness.happens(.run(run, .inspected(Inspection(traced: false, cpu: .zero, memory: 0))))
        #expect(harness.killed() == [])
        // The budget is used up: suspended at once, and no task is taken any more.
        harness.advance(.zero)
        #expect(harness.state("photos") == .suspended)
        harness.task("photos", "more")
        #expect(harness.reports().last == .taskRefused(id("photos"), name: "more"))
    }

    @Test("L23: one task of two that ends at the end of the budget does not save the app")
    func oneOfTwoEnds() throws {
        let harness = Harness("photos")
        harness.behave("photos") { $0.isInspected = false }
        harness.launch("photos")
        harness.task("photos", "upload")
        harness.task("photos", "sync")
        harness.background("photos")
        harness.advance(.seconds(30))
        harness.endTask("photos", "upload")
        harness.happens(.run(harness.run("photos"), .inspected(Inspection(traced: false, cpu: .seconds(3), memory: 0))))
        let receipt = try harness.receipt("photos")
        #expect(receipt.code == 0x2182_bad2)
        #expect(receipt.explanation.contains("'sync'"))
        #expect(!receipt.explanation.contains("upload"))
    }

    @Test("L25: EXTEND_TIMEOUT_USEC= while entering opens a task, which is over in the foreground")
    func extensionEndsInForeground() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.entering = .isSilent }
        harness.launch("photos")
        harness.background("photos")
        let run = harness.run("photos")
        harness.happens(.run(run, .timeoutExtended(by: .seconds(8))))
        #expect(harness.view("photos").tasks.map(\.name) == ["EXTEND_TIMEOUT_USEC"])
        #expect(harness.view("photos").tasks.map(\.remaining) == [.seconds(8)])
        harness.happens(.run(run, .backgroundEntered))
        harness.activate("photos")
        #expect(harness.view("photos").tasks.isEmpty)
        #expect(harness.reports().contains(.taskEnded(id("photos"), name: "EXTEND_TIMEOUT_USEC")))
    }

    // MARK: The budget

    @Test(
        "L21: the clock of a task begun in the foreground starts when the app enters the background; in the foreground it is infinite (L24)"
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

    @Test("L21: the budget belongs to the app: more tasks buy no more time")
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

    @Test("L21: the clock stands still while the app is suspended, and goes on for a task of the same stay")
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
        // Begun before the freeze, heard of after it.
        harness.task("photos", "more")
        #expect(harness.state("photos") == .background)
        harness.advance(.milliseconds(18_999))
        #expect(harness.state("photos") == .background)
        harness.advance(.milliseconds(1))
        #expect(harness.killed() == ["photos"])
    }

    @Test("L26: the budget is whole again after the foreground")
    func wholeAgain() {
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

    @Test("L23: with the budget over and no task open the app is suspended at once; what begins then gains nothing")
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
        // In the foreground it is as if nothing had been.
        harness.activate("photos")
        #expect(harness.view("photos").backgroundTimeRemaining == nil)
        harness.task("photos", "new")
        #expect(harness.view("photos").tasks.map(\.name) == ["new"])
    }

    @Test("L23: the receipt names the leaked tasks, three of them at most")
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

    @Test("L22: 5 s before the end the open tasks' handlers are called, once; with none open nobody is")
    func expirationNotice() {
        let harness = Harness("photos")
        harness.launch("photos", .background)
        harness.task("photos", "a")
        harness.task("photos", "b")
        harness.advance(.milliseconds(24_999))
        #expect(!harness.told("photos").contains(.tasksExpiring))
        harness.advance(.milliseconds(1))
        #expect(harness.told("photos").last == .tasksExpiring)
        #expect(harness.reports().contains(.tasksExpiring(id("photos"), names: ["a", "b"])))
        harness.endTask("photos", "a")
        harness.task("photos", "c")
        harness.advance(.seconds(4))
        #expect(harness.told("photos").filter { $0 == .tasksExpiring }.count == 1)
        harness.endTask("photos", "b")
        harness.endTask("photos", "c")
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)

        let quiet = Harness("photos") { $0.suspendDelay = .seconds(28) }
        quiet.launch("photos", .background)
        quiet.advance(.seconds(27))
        #expect(!quiet.told("photos").contains(.tasksExpiring))
        // The first task after that time is warned at once, and gains nothing.
        quiet.task("photos", "late")
        quiet.advance(.zero)
        #expect(quiet.told("photos").last == .tasksExpiring)
        quiet.advance(.seconds(3))
        #expect(quiet.killed() == ["photos"])
    }

    @Test("L22: a task of which is heard with less than that left does not wake a suspended app")
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

    @Test("L21: with BackgroundTimeSec=infinity a task may stay open for ever")
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
        "L21: a task in the middle of suspending or waking keeps the app awake", arguments: [Stage.suspending, .waking])
    func keepsAwake(stage: Stage) {
        let harness = Harness("photos")
        harness.bring("photos", into: stage)
        let run = harness.run("photos")
        harness.task("photos", "a")
        #expect(harness.effects.contains(.thaw(run, attempt: 1)))
        harness.finish("photos", stage, run)
        harness.advance(.seconds(10))
        #expect(harness.state("photos") == .background)
        harness.endTask("photos", "a")
        harness.endTask("photos", "upload")
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
    }

    @Test("L21: a task of an app that ends is refused", arguments: [Stage.terminating, .ending])
    func refusedAtTheEnd(stage: Stage) {
        let harness = Harness("photos")
        harness.bring("photos", into: stage)
        harness.task("photos", "a")
        #expect(harness.reports().last == .taskRefused(id("photos"), name: "a"))
        #expect(harness.view("photos").tasks.isEmpty)
    }

    @Test("of several tasks with one name the oldest ends first; the end of one that is not there means nothing")
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
        #expect(harness.effects(since: mark) == [])
        harness.endTask("photos", "sync")
        harness.endTask("photos", "sync")
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
    }

    @Test("L27: a task is found by its name, age and owner")
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

    @Test("L27: a thousand tasks may be open; with one more the app is killed, 0xbada5e47")
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
