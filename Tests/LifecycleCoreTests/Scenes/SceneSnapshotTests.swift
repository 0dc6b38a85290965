import Testing

@testable import LifecycleCore

/// Scenes are asked for their snapshots, and the suspension waits for them for a bounded time (L34).
@Suite("Snapshots of scenes (L34)")
struct SceneSnapshotTests {
    private let a = SceneID("a")!

    private func harness(_ more: HandledNotices = [], policy: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        let harness = Harness()
        harness.register("editor") {
            $0.suspendDelay = .milliseconds(100)
            $0.backgroundModes = [.push]
            policy(&$0)
        }
        harness.behave("editor") { $0.entering = .isSilent }
        harness.launch("editor")
        harness.handle(
            .run(
                harness.run("editor"), .connection(.attached([.didEnterBackground, .scenes, .takeSceneSnapshot, more])))
        )
        return harness
    }

    private func send(_ harness: Harness, _ event: RunEvent) { harness.handle(.run(harness.run("editor"), event)) }

    private func asked(_ harness: Harness, since mark: Int = 0) -> [String] {
        harness.notices("editor", since: mark).compactMap {
            if case .takeSceneSnapshot(let scene) = $0 { scene.name } else { nil }
        }
    }

    @Test("a scene is asked when it enters the background, also while its app stays in the foreground (L34)")
    func eachScene() throws {
        let harness = harness(.takeSnapshot)
        send(harness, .scene(.began(a, .window)))
        #expect(asked(harness) == ["main"])
        send(harness, .scene(.snapshotTaken(.main)))
        harness.background("editor")
        #expect(asked(harness) == ["main", "a"])
        send(harness, .transition(.backgroundEntered))
        send(harness, .connection(.snapshotTaken))
        // The app has given its own, and waits for that of the scene. So does the next daemon.
        harness.advance(.milliseconds(300))
        #expect(harness.state("editor") == .background)
        let recovered = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(recovered.difference(from: harness.core) == nil)
        send(harness, .scene(.snapshotTaken(a)))
        harness.advance(.zero)
        #expect(harness.state("editor") == .suspended)
    }

    @Test("an app with one window is asked for main; 500ms after its answer it is suspended without it (L34)")
    func silent() {
        let harness = harness()
        let mark = harness.mark
        harness.background("editor")
        #expect(harness.notices("editor", since: mark).suffix(2) == [.takeSceneSnapshot(.main), .didEnterBackground])
        harness.advance(.seconds(2))
        send(harness, .transition(.backgroundEntered))
        harness.advance(.milliseconds(499))
        #expect(harness.state("editor") == .background)
        harness.advance(.milliseconds(1))
        #expect(harness.state("editor") == .suspended)
    }

    @Test("after a wake with new data the scene that was in front last is asked again, unless it is disconnected (L34)")
    func wake() {
        let harness = harness()
        send(harness, .scene(.began(a, .window)))
        harness.background("editor")
        send(harness, .transition(.backgroundEntered))
        harness.advance(.milliseconds(500))
        #expect(harness.state("editor") == .suspended)
        for (result, expected) in [(WakeResult.noData, []), (.newData, ["a"])] {
            let mark = harness.mark
            harness.push("editor")
            send(harness, .wake(.completed(result)))
            #expect(asked(harness, since: mark) == expected)
            harness.advance(.milliseconds(500))
            #expect(harness.state("editor") == .suspended)
        }
    }

    @Test(
        "a scene that ends is not waited for, and its snapshot goes with it; hidden ones are not asked for (L18, L34)")
    func ended() {
        let harness = harness()
        send(harness, .scene(.began(a, .window)))
        send(harness, .scene(.snapshotTaken(.main)))
        harness.background("editor")
        let mark = harness.mark
        send(harness, .scene(.ended(a)))
        #expect(harness.effects(since: mark).contains(.dropRestorationState(id("editor"), .scene(a))))
        send(harness, .transition(.backgroundEntered))
        harness.advance(.milliseconds(100))
        #expect(harness.state("editor") == .suspended)
        let hidden = self.harness { $0.hidesSnapshot = true }
        hidden.background("editor")
        #expect(asked(hidden).isEmpty)
    }
}
