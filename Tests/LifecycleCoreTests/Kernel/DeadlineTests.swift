import Testing

@testable import LifecycleCore

@Suite("Deadlines")
struct DeadlineTests {
    @Test("a met deadline is not reported as cancelled when the app is terminated later")
    func metOnce() {
        let harness = Harness("photos") { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        harness.launch("photos")
        harness.terminate("photos")
        harness.handle(.run(harness.run("photos"), .transition(.ready)))
        let launch = harness.reports().filter { report in
            switch report {
            case .deadlineMet(_, .launch, _, _), .deadlineCancelled(_, .launch, _), .deadlineMissed(_, .launch, _): true
            default: false
            }
        }
        #expect(launch == [.deadlineMet(id("photos"), .launch, used: .zero)])

        harness.behave("photos") { $0 = .init(entering: .isSilent, thaws: false) }
        harness.launch("photos")
        harness.background("photos")
        harness.terminate("photos")
        harness.handle(.run(harness.run("photos"), .transition(.backgroundEntered)))

        harness.behave("photos") { $0 = .init(thaws: false) }
        harness.suspend("photos")
        harness.activate("photos")
        harness.terminate("photos")
        harness.handle(.run(harness.run("photos"), .suspension(.thawed(attempt: 1))))
        #expect(!harness.reports().contains(.deadlineCancelled(id("photos"), .background)))
        #expect(!harness.reports().contains(.deadlineCancelled(id("photos"), .thaw)))
        #expect(harness.state("photos") == .notRunning)
    }

    /// Starts a deadline of a kind. Returns its length.
    private func count(_ kind: DeadlineKind) -> (Harness, Duration) {
        let harness = Harness("photos") { policy in
            policy.backgroundModes = .push
            if kind == .wake { policy.backgroundTime = .seconds(60) }
            if kind == .watchdog { policy.watchdog = .seconds(10) }
        }
        switch kind {
        case .launch: harness.move("photos", to: .launching)
        case .background: harness.move("photos", to: .entering)
        case .terminate: harness.move("photos", to: .terminating)
        case .thaw:
            harness.move("photos", to: .suspended)
            harness.behave("photos") { $0.thaws = false }
            harness.activate("photos")
        case .backgroundTime:
            harness.move("photos", to: .running)
            harness.task("photos", "a")
        case .wake:
            harness.move("photos", to: .running)
            harness.push("photos")
        case .watchdog: harness.move("photos", to: .active)
        }
        let times: [DeadlineKind: Int] = [.backgroundTime: 30, .wake: 30, .watchdog: 10]
        return (harness, .seconds(times[kind] ?? 5))
    }

    @Test(
        "an app whose deadline has passed is inspected: with a debugger attached the deadline starts again, otherwise it is missed (L48)",
        arguments: DeadlineKind.allCases)
    func debugger(kind: DeadlineKind) throws {
        let (harness, time) = count(kind)
        harness.behave("photos") { $0.isTraced = true }
        for round in 1...3 {
            harness.advance(time)
            let wake: UInt64 = kind == .wake ? 1 : 0
            let deferral = Report.deadlineDeferred(id("photos"), kind, .debuggerAttached, wake: wake)
            #expect(harness.reports().count { $0 == deferral } == round)
            #expect(harness.view("photos").deadline == .init(what: kind, remaining: time))
        }
        harness.behave("photos") { $0.isTraced = false }
        harness.advance(time - .milliseconds(1))
        #expect(harness.killed() == [])
        harness.advance(.milliseconds(1))
        #expect(harness.reports().contains(.deadlineMissed(id("photos"), kind, wake: kind == .wake ? 1 : 0)))
        let receipt = try harness.receipt("photos")
        #expect(receipt.namespace == .watchdog)
        #expect(receipt.deadline?.what == kind)
        #expect(receipt.deadline?.wall == time)
    }

    @Test("an app that misses a deadline is killed before that is reported", arguments: DeadlineKind.allCases)
    func killedFirst(kind: DeadlineKind) throws {
        let (harness, time) = count(kind)
        harness.advance(time)
        let kill = try #require(harness.effects.firstIndex { if case .run(_, .kill) = $0 { true } else { false } })
        let report = try #require(
            harness.effects.firstIndex { if case .report(.deadlineMissed) = $0 { true } else { false } })
        #expect(kill < report)
    }

    @Test("a debugger keeps a deadline from ending for an hour, and not in a shutdown (L48)")
    func debuggerIsBounded() {
        let (harness, _) = count(.launch)
        harness.behave("photos") { $0.isTraced = true }
        harness.advance(.seconds(3600))
        #expect(harness.killed() == [])
        harness.advance(.seconds(5))
        #expect(harness.killed() == ["photos"])

        let (other, _) = count(.background)
        other.behave("photos") {
            $0.isTraced = true; $0.terminating = .ignores
        }
        other.advance(.seconds(10))
        other.handle(.shutdownRequested(immediately: false))
        other.advance(.seconds(5))
        #expect(other.killed() == ["photos"])
        #expect(other.effects.contains(.finish))
    }

    @Test(
        "a deadline counts from the notice, if the daemon did not run when that was to be sent (L48)",
        arguments: [DeadlineKind.background, .terminate])
    func delayedNotice(kind: DeadlineKind) {
        let (harness, time) = count(kind)
        let notice: Notice = kind == .background ? .didEnterBackground : .willTerminate
        let notified = Event.run(harness.run("photos"), .transition(.notified(notice, delivered: true, cpu: .zero)))
        // A notice may wait for the one before it.
        harness.delay(.seconds(1))
        harness.handle(notified)
        #expect(harness.view("photos").deadline == .init(what: kind, remaining: time - .seconds(1)))
        harness.delay(.milliseconds(1))
        harness.handle(notified)
        #expect(harness.view("photos").deadline == .init(what: kind, remaining: time))
        #expect(harness.reports().contains(.deadlineDeferred(id("photos"), kind, .noticeDelayed)))

        harness.behave("photos") { $0.isInspected = false }
        harness.delay(.seconds(20))
        harness.handle(.deadlineReached)
        harness.handle(notified)
        harness.handle(
            .run(harness.run("photos"), .deadline(.inspected(Inspection(traced: false, cpu: .zero, memory: 0)))))
        #expect(harness.killed() == [])
    }

    @Test(
        "an app is inspected once for a deadline, however long the inspection takes", arguments: DeadlineKind.allCases)
    func inspectedOnce(kind: DeadlineKind) {
        let (harness, time) = count(kind)
        harness.behave("photos") { $0.isInspected = false }
        harness.advance(time + .seconds(20))
        let inspections = harness.effects.filter { if case .run(_, .deadline(.inspect)) = $0 { true } else { false } }
        #expect(inspections.count == 1)
        #expect(harness.killed() == [])
        harness.handle(
            .run(harness.run("photos"), .deadline(.inspected(Inspection(traced: false, cpu: .zero, memory: 0)))))
        #expect(harness.killed() == ["photos"])
    }

    @Test("an exit that races a deadline is the app's own unless SIGKILL ended it", arguments: DeadlineKind.allCases)
    func exitRaces(kind: DeadlineKind) throws {
        for moment in ["just before", "at the same instant", "during the inspection", "after the kill"] {
            let (harness, time) = count(kind)
            harness.behave("photos") {
                $0.dies = false; $0.isInspected = moment == "after the kill"
            }
            harness.advance(time - .milliseconds(1))
            switch moment {
            case "just before": break
            case "at the same instant": harness.delay(.milliseconds(1))
            default: harness.advance(.milliseconds(1))
            }
            #expect(harness.killed() == (moment == "after the kill" ? ["photos"] : []))
            let run = harness.run("photos")
            harness.exit("photos", .exited(0))
            harness.handle(.run(run, .deadline(.inspected(Inspection(traced: false, cpu: .zero, memory: 0)))))
            harness.advance(.seconds(1))
            let receipt = try harness.receipt("photos")
            #expect(receipt.namespace == .exit, "\(kind), \(moment)")
            #expect(receipt.exit == .exited(0))
            #expect(harness.state("photos") == .notRunning)
        }
    }

    @Test(
        "the inspection of an app that has answered changes nothing",
        arguments: [
            DeadlineKind.launch, .background, .thaw,
        ])
    func answeredMeanwhile(kind: DeadlineKind) {
        let (harness, time) = count(kind)
        harness.behave("photos") { $0.isInspected = false }
        harness.advance(time)
        let run = harness.run("photos")
        let stages: [DeadlineKind: Stage] = [.launch: .launching, .background: .entering, .thaw: .waking]
        harness.finish("photos", stages[kind]!, run)
        harness.handle(.run(run, .deadline(.inspected(Inspection(traced: false, cpu: .zero, memory: 0)))))
        #expect(harness.killed() == [])
        #expect([.active, .background].contains(harness.state("photos")))
    }

    @Test("an inspection updates the size of an app, except while it is suspended")
    func sizeIsKept() {
        let harness = Harness("photos")
        harness.move("photos", to: .active)
        let run = harness.run("photos")
        harness.handle(.run(run, .deadline(.inspected(Inspection(traced: false, cpu: .zero, memory: 77)))))
        #expect(harness.view("photos").memory == 77)
        harness.suspend("photos")
        harness.handle(.run(run, .deadline(.inspected(Inspection(traced: false, cpu: .zero, memory: 88)))))
        #expect(harness.view("photos").memory == 10 * mebibyte)
    }

    @Test("a view shows the nearest open deadline")
    func nearestIsShown() {
        let harness = Harness("photos")
        harness.move("photos", to: .entering)
        harness.task("photos", "a")
        #expect(harness.view("photos").deadline == .init(what: .background, remaining: .seconds(5)))
        harness.handle(.run(harness.run("photos"), .transition(.backgroundEntered)))
        harness.advance(.seconds(4))
        #expect(harness.view("photos").deadline == .init(what: .backgroundTime, remaining: .seconds(26)))
        harness.endTask("photos", "a")
        #expect(harness.view("photos").deadline == nil)
    }
}
