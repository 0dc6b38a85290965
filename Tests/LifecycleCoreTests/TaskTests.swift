import Testing

@testable import LifecycleCore

@Suite("Background tasks")
struct TaskTests {
    @Test("L23: tasks that end while their app is looked into, at the end of the budget, save it")
    func endsJustInTime() {
        let house = House("photos")
        house.behave("photos") { $0.isInspected = false }
        house.launch("photos")
        house.task("photos", "upload")
        house.task("photos", "sync")
        house.background("photos")
        let run = house.run("photos")
        house.advance(.seconds(30))
        #expect(house.effects.contains(.inspect(run)))
        house.endTask("photos", "upload")
        house.endTask("photos", "sync")
        house.happens(.run(run, .inspected(Inspection(traced: false, cpu: .zero, memory: 0))))
        #expect(house.killed() == [])
        // The budget is used up: suspended at once, and no task is taken any more.
        house.advance(.zero)
        #expect(house.state("photos") == .suspended)
        house.task("photos", "more")
        #expect(house.reports().last == .taskRefused(id("photos"), name: "more"))
    }

    @Test("L23: one task of two that ends at the end of the budget does not save the app")
    func oneOfTwoEnds() throws {
        let house = House("photos")
        house.behave("photos") { $0.isInspected = false }
        house.launch("photos")
        house.task("photos", "upload")
        house.task("photos", "sync")
        house.background("photos")
        house.advance(.seconds(30))
        house.endTask("photos", "upload")
        house.happens(.run(house.run("photos"), .inspected(Inspection(traced: false, cpu: .seconds(3), memory: 0))))
        let receipt = try house.receipt("photos")
        #expect(receipt.code == 0x2182_bad2)
        #expect(receipt.explanation.contains("“sync”"))
        #expect(!receipt.explanation.contains("upload"))
    }

    @Test("L25: EXTEND_TIMEOUT_USEC= while entering opens a task, which is over in the foreground")
    func extensionEndsInForeground() {
        let house = House("photos")
        house.behave("photos") { $0.entering = .isSilent }
        house.launch("photos")
        house.background("photos")
        let run = house.run("photos")
        house.happens(.run(run, .timeoutExtended(by: .seconds(8))))
        #expect(house.view("photos").tasks.map(\.name) == ["EXTEND_TIMEOUT_USEC"])
        #expect(house.view("photos").tasks.map(\.remaining) == [.seconds(8)])
        house.happens(.run(run, .backgroundEntered))
        house.activate("photos")
        #expect(house.view("photos").tasks.isEmpty)
        #expect(house.reports().contains(.taskEnded(id("photos"), name: "EXTEND_TIMEOUT_USEC")))
    }

    // MARK: The budget

    @Test(
        "L21: the clock of a task begun in the foreground starts when the app enters the background; in the foreground it is infinite (L24)"
    )
    func clockStartsInBackground() throws {
        let house = House("photos")
        house.launch("photos")
        house.task("photos", "upload")
        house.advance(.seconds(100))
        #expect(house.view("photos").tasks == [.init(name: "upload", age: .seconds(100), remaining: nil, owner: 7)])
        #expect(house.view("photos").backgroundTimeRemaining == nil)
        house.background("photos")
        #expect(house.view("photos").backgroundTimeRemaining == .seconds(30))
        house.advance(.milliseconds(29_999))
        #expect(house.state("photos") == .background)
        #expect(house.view("photos").tasks.first?.remaining == .milliseconds(1))
        house.advance(.milliseconds(1))
        #expect(try house.receipt("photos").code == 0x2182_bad2)
    }

    @Test("L21: the budget belongs to the app: more tasks buy no more time")
    func moreTasksBuyNoMoreTime() throws {
        let house = House("photos")
        house.launch("photos", .background)
        for second in 0..<29 {
            house.task("photos", "task \(second)")
            if second > 0 { house.endTask("photos", "task \(second - 1)") }
            house.advance(.seconds(1))
        }
        #expect(house.view("photos").backgroundTimeRemaining == .seconds(1))
        house.advance(.seconds(1))
        let receipt = try house.receipt("photos")
        #expect(receipt.code == 0x2182_bad2)
        #expect(receipt.deadline?.wall == .seconds(30))
    }

    @Test("L21: the clock stands still while the app is suspended, and goes on for a task of the same stay")
    func clockStandsStill() {
        let house = House("photos")
        house.launch("photos", .background)
        house.task("photos", "upload")
        house.advance(.seconds(10))
        house.endTask("photos", "upload")
        house.advance(.seconds(1))
        #expect(house.state("photos") == .suspended)
        house.advance(.seconds(500))
        #expect(house.view("photos").backgroundTimeRemaining == .seconds(19))
        // Begun before the freeze, heard of after it.
        house.task("photos", "more")
        #expect(house.state("photos") == .background)
        house.advance(.milliseconds(18_999))
        #expect(house.state("photos") == .background)
        house.advance(.milliseconds(1))
        #expect(house.killed() == ["photos"])
    }

    @Test("L26: the budget is whole again after the foreground")
    func wholeAgain() {
        let house = House("photos")
        house.launch("photos")
        house.task("photos", "upload")
        house.background("photos")
        house.advance(.seconds(29))
        house.activate("photos")
        #expect(house.view("photos").backgroundTimeRemaining == nil)
        house.background("photos")
        #expect(house.view("photos").backgroundTimeRemaining == .seconds(30))
        house.advance(.seconds(29))
        #expect(house.state("photos") == .background)
    }

    @Test("L23: with the budget over and no task open the app is suspended at once; what begins then gains nothing")
    func overWithoutTask() {
        let house = House("photos") {
            $0.backgroundTime = .seconds(3); $0.suspendDelay = .seconds(10)
        }
        house.launch("photos", .background)
        house.advance(.seconds(3))
        #expect(house.state("photos") == .suspended)
        #expect(house.view("photos").backgroundTimeRemaining == .zero)
        house.task("photos", "late")
        #expect(house.state("photos") == .suspended)
        #expect(house.reports().last == .taskRefused(id("photos"), name: "late"))
        // In the foreground it is as if nothing had been.
        house.activate("photos")
        #expect(house.view("photos").backgroundTimeRemaining == nil)
        house.task("photos", "new")
        #expect(house.view("photos").tasks.map(\.name) == ["new"])
    }

    @Test("L23: the receipt names the leaked tasks, three of them at most")
    func leakedNames() throws {
        let house = House("photos")
        house.behave("photos") { $0.cpu = .milliseconds(20) }
        house.launch("photos", .background)
        for name in ["a", "b", "c", "d", "e"] { house.task("photos", name) }
        house.advance(.seconds(30))
        let receipt = try house.receipt("photos")
        #expect(
            receipt.explanation
                == "its background time of 30 s was used up with the tasks “a”, “b”, “c” and 2 more open; "
                + "it used 0 s of processor time")
        #expect(receipt.namespace == .watchdog)
    }

    @Test("L22: 5 s before the end the open tasks' handlers are called, once; with none open nobody is")
    func expirationNotice() {
        let house = House("photos")
        house.launch("photos", .background)
        house.task("photos", "a")
        house.task("photos", "b")
        house.advance(.milliseconds(24_999))
        #expect(!house.told("photos").contains(.tasksExpiring))
        house.advance(.milliseconds(1))
        #expect(house.told("photos").last == .tasksExpiring)
        #expect(house.reports().contains(.tasksExpiring(id("photos"), names: ["a", "b"])))
        house.endTask("photos", "a")
        house.task("photos", "c")
        house.advance(.seconds(4))
        #expect(house.told("photos").filter { $0 == .tasksExpiring }.count == 1)
        house.endTask("photos", "b")
        house.endTask("photos", "c")
        house.advance(.seconds(1))
        #expect(house.state("photos") == .suspended)

        let quiet = House("photos") { $0.suspendDelay = .seconds(28) }
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
        let house = House("photos")
        house.launch("photos", .background)
        house.task("photos", "upload")
        house.advance(.seconds(24))
        house.endTask("photos", "upload")
        house.advance(.seconds(1))
        #expect(house.state("photos") == .suspended)
        #expect(house.view("photos").backgroundTimeRemaining == .seconds(5))
        house.task("photos", "late")
        #expect(house.state("photos") == .suspended)
        #expect(house.reports().last == .taskRefused(id("photos"), name: "late"))
    }

    @Test("L21: with BackgroundTimeSec=infinity a task may stay open for ever")
    func infiniteBudget() {
        let house = House("photos") { $0.backgroundTime = nil }
        house.launch("photos", .background)
        house.task("photos", "serve")
        house.advance(.seconds(100_000))
        #expect(house.state("photos") == .background)
        #expect(house.view("photos").tasks.first?.remaining == nil)
        house.endTask("photos", "serve")
        house.advance(.seconds(1))
        #expect(house.state("photos") == .suspended)
    }

    @Test(
        "L21: a task in the middle of suspending or waking keeps the app awake", arguments: [Stage.suspending, .waking])
    func keepsAwake(stage: Stage) {
        let house = House("photos")
        house.bring("photos", into: stage)
        let run = house.run("photos")
        house.task("photos", "a")
        #expect(house.effects.contains(.thaw(run, attempt: 1)))
        house.finish("photos", stage, run)
        house.advance(.seconds(10))
        #expect(house.state("photos") == .background)
        house.endTask("photos", "a")
        house.endTask("photos", "upload")
        house.advance(.seconds(1))
        #expect(house.state("photos") == .suspended)
    }

    @Test("L21: a task of an app that ends is refused", arguments: [Stage.terminating, .ending])
    func refusedAtTheEnd(stage: Stage) {
        let house = House("photos")
        house.bring("photos", into: stage)
        house.task("photos", "a")
        #expect(house.reports().last == .taskRefused(id("photos"), name: "a"))
        #expect(house.view("photos").tasks.isEmpty)
    }

    @Test("of several tasks with one name the oldest ends first; the end of one that is not there means nothing")
    func sameName() {
        let house = House("photos")
        house.launch("photos", .background)
        house.task("photos", "sync")
        house.advance(.seconds(2))
        house.task("photos", "sync")
        house.endTask("photos", "sync")
        #expect(house.view("photos").tasks.map(\.age) == [.zero])
        let mark = house.mark
        house.endTask("photos", "other")
        #expect(house.effects(since: mark) == [])
        house.endTask("photos", "sync")
        house.endTask("photos", "sync")
        house.advance(.seconds(1))
        #expect(house.state("photos") == .suspended)
    }

    @Test("L27: a task is found by its name, age and owner")
    func found() {
        let house = House("photos")
        house.launch("photos", .background)
        house.task("photos", "a", owner: 41)
        house.advance(.seconds(4))
        house.task("photos", "b", owner: 42)
        house.advance(.seconds(2))
        #expect(
            house.view("photos").tasks == [
                .init(name: "a", age: .seconds(6), remaining: .seconds(24), owner: 41),
                .init(name: "b", age: .seconds(2), remaining: .seconds(24), owner: 42),
            ])
    }

    @Test("L27: a thousand tasks may be open; with one more the app is killed, 0xbada5e47")
    func tooMany() throws {
        let house = House("photos")
        house.launch("photos")
        for number in 0..<1000 { house.task("photos", "\(number)") }
        #expect(house.state("photos") == .active)
        house.task("photos", "one more")
        let receipt = try house.receipt("photos")
        #expect(receipt.namespace == .lifecycle)
        #expect(receipt.code == 0xbada_5e47)
        #expect(receipt.explanation == "had 1001 background tasks open; 1000 are allowed")
        #expect(house.changes("photos").contains("terminating: too many tasks"))
    }
}
