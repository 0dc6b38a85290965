import LifecycleCore
import Testing

/// L5: what is requested while an app ends is done after its end.
@Suite("Pushes to apps that are ending")
struct PushAfterEndTests {
    private func harness(_ stage: Stage, policy: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        let harness = Harness("photos") {
            $0.backgroundModes = .push
            policy(&$0)
        }
        harness.move("photos", to: stage)
        return harness
    }

    @Test(
        "a push to an app that is ending launches it after its end, and each push is delivered (L5, L30, L31)",
        arguments: [Stage.terminating, .ending])
    func launches(stage: Stage) {
        let harness = harness(stage)
        let run = harness.run("photos")
        let first = harness.push("photos", "one")
        let second = harness.push("photos", "two")
        #expect(!harness.isAnswered(first) && !harness.isAnswered(second))
        harness.finish("photos", stage, run)
        #expect(harness.answers[first] == .done(.background) && harness.answers[second] == .done(.background))
        #expect(harness.launches("photos").map(\.reason) == [.user, .push])
        #expect(harness.delivered("photos").map(\.payload) == ["one", "two"])
    }

    @Test(
        "a push does not take the place of an activation that follows the end, and is delivered in the foreground (L5)")
    func activation() {
        let harness = harness(.ending)
        let run = harness.run("photos")
        let activate = harness.activate("photos")
        let push = harness.push("photos")
        harness.finish("photos", .ending, run)
        #expect(harness.answers[activate] == .done(.active) && harness.answers[push] == .done(.active))
        #expect(harness.delivered("photos").map(\.kind) == ["push"])
        #expect(harness.launches("photos").count == 2)
    }

    @Test("a later request to end the app supersedes the push (L5)", arguments: [Request.terminate, .remove])
    func superseded(end: Request) {
        let harness = harness(.ending)
        let run = harness.run("photos")
        let push = harness.push("photos")
        harness.request("photos", end)
        #expect(harness.answers[push] == .superseded(by: .terminating))
        harness.finish("photos", .ending, run)
        #expect(harness.state("photos") == .notRunning)
        harness.launch("photos")
        #expect(harness.delivered("photos") == [])
    }

    @Test("a push whose launch is postponed is refused after the end, and dropped (L11)")
    func postponed() {
        let harness = Harness("photos") { $0.backgroundModes = .push }
        harness.behave("photos") { $0.dies = false }
        harness.launch("photos")
        harness.handle(
            .run(harness.run("photos"), .process(.exited(.exited(1), cpu: .zero, memory: 0))))
        #expect(harness.state("photos") == .terminating)
        let push = harness.push("photos")
        harness.behave("photos") { $0.dies = true }
        harness.handle(.run(harness.run("photos"), .process(.emptied)))
        #expect(harness.answers[push] == .refused(.launchPostponed(by: .seconds(10))))
        harness.launch("photos")
        #expect(harness.delivered("photos") == [])
    }
}
