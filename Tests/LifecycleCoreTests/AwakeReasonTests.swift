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
        harness.handle(.run(harness.run("photos"), .backgroundEntered))
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
        harness.handle(.run(harness.run("photos"), .thawed(attempt: 1)))
        #expect(reasons(harness) == [.wake(.push)])
        harness.task("photos", "upload")
        #expect(reasons(harness) == [.wake(.push), .task(name: "upload")])
        harness.handle(.run(harness.run("photos"), .wakeCompleted(.newData)))
        #expect(reasons(harness) == [.task(name: "upload")])
    }
}
