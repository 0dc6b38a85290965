import Testing

@testable import LifecycleCore

@Suite("Deadlines")
struct DeadlineTests {
    @Test("a deadline that was met is not reported as cancelled when the app is then terminated")
    func metOnce() {
        let house = House("photos") { $0.readiness = .notified }
        house.behave("photos") { $0.launching = .executes }
        house.launch("photos")
        house.terminate("photos")
        house.happens(.run(house.run("photos"), .ready))
        let launch = house.reports().filter { report in
            switch report {
            case .deadlineMet(_, .launch, _), .deadlineCancelled(_, .launch), .deadlineMissed(_, .launch): true
            default: false
            }
        }
        #expect(launch == [.deadlineMet(id("photos"), .launch, used: .zero)])

        house.behave("photos") { $0 = .init(entering: .isSilent, thaws: false) }
        house.launch("photos")
        house.background("photos")
        house.terminate("photos")
        house.happens(.run(house.run("photos"), .backgroundEntered))

        house.behave("photos") { $0 = .init(thaws: false) }
        house.suspend("photos")
        house.activate("photos")
        house.terminate("photos")
        house.happens(.run(house.run("photos"), .thawed(attempt: 1)))
        #expect(!house.reports().contains(.deadlineCancelled(id("photos"), .background)))
        #expect(!house.reports().contains(.deadlineCancelled(id("photos"), .resume)))
        #expect(house.state("photos") == .notRunning)
    }

    /// Brings an app to within a deadline of each kind, and says how long it is.
    private func count(_ kind: DeadlineKind) -> (House, Duration) {
        let house = House("photos") { policy in
            policy.backgroundModes = .push
            if kind == .wake { policy.backgroundTime = .seconds(60) }
            if kind == .watchdog { policy.watchdog = .seconds(10) }
        }
        switch kind {
        case .launch: house.bring("photos", into: .launching)
        case .background: house.bring("photos", into: .entering)
        case .terminate: house.bring("photos", into: .terminating)
        case .resume:
            house.bring("photos", into: .suspended)
            house.behave("photos") { $0.thaws = false }
            house.activate("photos")
        case .backgroundTime:
            house.bring("photos", into: .running)
            house.task("photos", "a")
        case .wake:
            house.bring("photos", into: .running)
            house.push("photos")
        case .watchdog: house.bring("photos", into: .active)
        }
        let times: [DeadlineKind: Int] = [.backgroundTime: 30, .wake: 30, .watchdog: 10]
        return (house, .seconds(times[kind] ?? 5))
    }

    @Test(
        "L48: each deadline is looked into when it has passed; with a debugger attached it starts anew, in full, else it is missed",
        arguments: DeadlineKind.allCases)
    func debugger(kind: DeadlineKind) throws {
        let (house, time) = count(kind)
        house.behave("photos") { $0.isTraced = true }
        for round in 1...3 {
            house.advance(time)
            let deferred = house.reports().filter { $0 == .deadlineDeferred(id("photos"), kind) }
            #expect(deferred.count == round)
            #expect(house.view("photos").deadline == .init(what: kind, remaining: time))
        }
        house.behave("photos") { $0.isTraced = false }
        house.advance(time - .milliseconds(1))
        #expect(house.killed() == [])
        house.advance(.milliseconds(1))
        #expect(house.reports().contains(.deadlineMissed(id("photos"), kind)))
        let receipt = try house.receipt("photos")
        #expect(receipt.namespace == .watchdog)
        #expect(receipt.deadline?.what == kind)
        #expect(receipt.deadline?.wall == time)
    }

    @Test("a deadline is looked into once, however long that takes", arguments: DeadlineKind.allCases)
    func inspectedOnce(kind: DeadlineKind) {
        let (house, time) = count(kind)
        house.behave("photos") { $0.isInspected = false }
        house.advance(time + .seconds(20))
        let inspections = house.effects.filter { if case .inspect = $0 { true } else { false } }
        #expect(inspections.count == 1)
        #expect(house.killed() == [])
        house.happens(.run(house.run("photos"), .inspected(Inspection(traced: false, cpu: .zero, memory: 0))))
        #expect(house.killed() == ["photos"])
    }

    @Test("an exit races each deadline: it is the app's own until SIGKILL has hit", arguments: DeadlineKind.allCases)
    func exitRaces(kind: DeadlineKind) throws {
        for moment in ["just before", "at the same instant", "while it is looked into", "after the kill"] {
            let (house, time) = count(kind)
            house.behave("photos") {
                $0.dies = false; $0.isInspected = moment == "after the kill"
            }
            house.advance(time - .milliseconds(1))
            switch moment {
            case "just before": break
            case "at the same instant": house.delay(.milliseconds(1))
            default: house.advance(.milliseconds(1))
            }
            #expect(house.killed() == (moment == "after the kill" ? ["photos"] : []))
            let run = house.run("photos")
            house.exit("photos", .exited(0))
            house.happens(.run(run, .inspected(Inspection(traced: false, cpu: .zero, memory: 0))))
            house.advance(.seconds(1))
            let receipt = try house.receipt("photos")
            #expect(receipt.namespace == .exit, "\(kind), \(moment)")
            #expect(receipt.exit == .exited(0))
            #expect(house.state("photos") == .notRunning)
        }
    }

    @Test(
        "what was found in an app that answered meanwhile is of no interest",
        arguments: [
            DeadlineKind.launch, .background, .resume,
        ])
    func answeredMeanwhile(kind: DeadlineKind) {
        let (house, time) = count(kind)
        house.behave("photos") { $0.isInspected = false }
        house.advance(time)
        let run = house.run("photos")
        let stages: [DeadlineKind: Stage] = [.launch: .launching, .background: .entering, .resume: .waking]
        house.finish("photos", stages[kind]!, run)
        house.happens(.run(run, .inspected(Inspection(traced: false, cpu: .zero, memory: 0))))
        #expect(house.killed() == [])
        #expect([.active, .background].contains(house.state("photos")))
    }

    @Test("a size that is looked up with a deadline is kept, but for a suspended app, whose size is known")
    func sizeIsKept() {
        let house = House("photos")
        house.bring("photos", into: .active)
        let run = house.run("photos")
        house.happens(.run(run, .inspected(Inspection(traced: false, cpu: .zero, memory: 77))))
        #expect(house.view("photos").memory == 77)
        house.suspend("photos")
        house.happens(.run(run, .inspected(Inspection(traced: false, cpu: .zero, memory: 88))))
        #expect(house.view("photos").memory == 10 * mebibyte)
    }

    @Test("the nearest of the deadlines that count is shown")
    func nearestIsShown() {
        let house = House("photos")
        house.bring("photos", into: .entering)
        house.task("photos", "a")
        #expect(house.view("photos").deadline == .init(what: .background, remaining: .seconds(5)))
        house.happens(.run(house.run("photos"), .backgroundEntered))
        house.advance(.seconds(4))
        #expect(house.view("photos").deadline == .init(what: .backgroundTime, remaining: .seconds(26)))
        house.endTask("photos", "a")
        #expect(house.view("photos").deadline == nil)
    }
}
