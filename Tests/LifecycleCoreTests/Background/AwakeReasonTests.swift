import Testing

@testable import LifecycleCore

@Suite("Reasons to be awake")
struct AwakeReasonTests {
    private func reasons(_ harness: Harness) -> [AwakeReason] { harness.view("photos").awakeReasons }

    @Test("each stage has its reason to be awake", arguments: Stage.allCases)
    func stages(stage: Stage) {
        let harness = Harness("photos")
        harness.move("photos", to: stage)
        let expected: [AwakeReason] =
            switch stage {
            case .notRunning, .suspended, .ending: []
            case .launching: [.launching]
            case .active, .inactive: [.foreground]
            case .entering: [.enteringBackground]
            case .running: [.suspendDelay]
            case .suspending: [.suspending]
            // The task for which the app was woken.
            case .waking: [.waking, .task(name: "upload")]
            case .terminating: [.terminating]
            }
        #expect(reasons(harness) == expected)
        #expect((harness.view("photos").state == .suspended) == (stage == .suspended))
    }

    @Test("tasks are reasons in the background, oldest first, and none in the foreground")
    func tasks() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.task("photos", "upload")
        #expect(reasons(harness) == [.foreground])
        harness.behave("photos") { $0.entering = .isSilent }
        harness.background("photos")
        harness.task("photos", "backup")
        #expect(reasons(harness) == [.enteringBackground, .task(name: "upload"), .task(name: "backup")])
        harness.handle(.run(harness.run("photos"), .transition(.backgroundEntered)))
        #expect(reasons(harness) == [.task(name: "upload"), .task(name: "backup")])
        harness.endTask("photos", "upload")
        #expect(reasons(harness) == [.task(name: "backup")])
        harness.endTask("photos", "backup")
        #expect(reasons(harness) == [.suspendDelay])
        harness.advance(.seconds(1))
        #expect(reasons(harness) == [])
    }

    @Test("a wake is a reason until it is completed")
    func wake() {
        let harness = Harness("photos") { $0.backgroundModes = .push }
        harness.suspend("photos")
        harness.behave("photos") { $0.thaws = false }
        harness.push("photos")
        #expect(reasons(harness) == [.waking])
        harness.handle(.run(harness.run("photos"), .suspension(.thawed(attempt: 1))))
        #expect(reasons(harness) == [.wake(.push)])
        harness.task("photos", "upload")
        #expect(reasons(harness) == [.wake(.push), .task(name: "upload")])
        harness.handle(.run(harness.run("photos"), .wake(.completed(.newData))))
        #expect(reasons(harness) == [.task(name: "upload")])
    }

    // MARK: Since when

    private static func since(_ core: LifecycleCore, _ app: String, _ reason: AwakeReason, at now: Instant) -> Duration?
    {
        core.view(of: id(app), at: now)?.awake.first { $0.reason == reason }?.since.map { now - $0 }
    }

    /// For how long the app has been awake for the reason, as this core says it and one that has read what it saved.
    private func awake(_ harness: Harness, _ app: String, _ reason: AwakeReason) throws -> Duration? {
        let time = Self.since(harness.core, app, reason, at: harness.now)
        let saved = try SavedCore(reading: harness.core.saved.bytes)
        #expect(Self.since(LifecycleCore(recovering: saved), app, reason, at: harness.now) == time)
        return time
    }

    @Test(
        "a reason has the time at which it began, which passes to the next daemon: states, tasks, wakes, the start-up")
    func since() throws {
        let harness = Harness("photos") { $0.backgroundModes = .push }
        harness.launch("photos")
        harness.advance(.seconds(3))
        #expect(try awake(harness, "photos", .foreground) == .seconds(3))
        harness.task("photos", "upload")
        harness.advance(.seconds(2))
        harness.background("photos")
        harness.push("photos")
        harness.advance(.seconds(4))
        #expect(try awake(harness, "photos", .task(name: "upload")) == .seconds(6))
        #expect(try awake(harness, "photos", .wake(.push)) == .seconds(4))
        harness.push("photos")
        harness.advance(.seconds(1))
        // That of the oldest of several.
        #expect(try awake(harness, "photos", .wake(.push)) == .seconds(5))
        harness.handle(.run(harness.run("photos"), .wake(.completed(.noData))))
        #expect(try awake(harness, "photos", .wake(.push)) == .seconds(1))
        harness.handle(.run(harness.run("photos"), .wake(.completed(.noData))))
        harness.endTask("photos", "upload")
        harness.advance(.milliseconds(500))
        #expect(try awake(harness, "photos", .suspendDelay) == .milliseconds(500))

        harness.register("server") { $0.startUpTime = .seconds(90) }
        harness.behave("server") { $0.entering = .cannotBeNotified }
        harness.launch("server", .background)
        harness.advance(.seconds(2))
        #expect(try awake(harness, "server", .startUp) == .seconds(2))
    }

    @Test("woken too often, not watchable and a file lock have the time at which they began, too (L43, L50)")
    func sinceTraffic() throws {
        let harness = TrafficTests.worker()
        harness.behave("web") {
            $0.watch = InputWatch(unwatched: [.init(what: "socket", problem: .notPermitted, count: 1)])
        }
        harness.launch("web")
        harness.advance(.seconds(70))
        // It was suspended after IdleSec=, and thawed at once.
        #expect(try awake(harness, "web", .notWatchable) == .seconds(60))

        let often = TrafficTests.worker { $0.idleTime = .seconds(1) }
        TrafficTests.rest(often)
        for _ in 0..<3 {
            let attempt = often.core.freezeAttempt(ofSuspended: often.run("web")) ?? 0
            often.handle(.run(often.run("web"), .traffic(.inputArrived(attempt: attempt, TrafficTests.request))))
            often.advance(.milliseconds(1500))
        }
        #expect(often.state("web") == .background)
        #expect(try awake(often, "web", .wokenTooOften) == .milliseconds(1500))

        let locked = WorkerTests.withLocks(Harness("web"))
        locked.launch("web", .background)
        locked.advance(.seconds(31))
        // From the first attempt to suspend it, SuspendDelaySec= after the launch.
        #expect(try awake(locked, "web", .fileLock("/srv/web/db")) == .seconds(30))
    }
}
