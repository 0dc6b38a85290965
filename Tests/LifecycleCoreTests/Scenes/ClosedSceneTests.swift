import Testing

@testable import LifecycleCore

@Suite("Scenes that a user closes (L34)")
struct ClosedSceneTests {
    private let a = SceneID("a")!
    private let b = SceneID("b")!

    /// An app with the windows `main`, `a` and `b`, of which `b` is in front.
    private func harness() -> Harness {
        let harness = Harness()
        harness.register("editor") { $0.suspendDelay = .milliseconds(100) }
        harness.launch("editor")
        attach(harness)
        for scene in [a, b] { harness.handle(.run(harness.run("editor"), .scene(.began(scene, .window)))) }
        return harness
    }

    private func attach(_ harness: Harness) {
        harness.handle(.run(harness.run("editor"), .connection(.attached([.scenes, .didDiscardScenes]))))
    }

    private func states(_ harness: Harness) -> [String] {
        harness.view("editor").ownScenes.map { "\($0.id): \($0.state.name)" }
    }

    private func close(_ harness: Harness, _ scene: SceneID) -> Answer? {
        let mark = harness.mark
        harness.request("editor", .scene(scene, .close))
        return harness.effects(since: mark).lazy.compactMap {
            if case .answer(_, let answer) = $0 { answer } else { nil }
        }.first
    }

    private func isDropped(_ harness: Harness, _ scene: SceneID, since mark: Int) -> Bool {
        harness.effects(since: mark).contains(.dropRestorationState(id("editor"), .scene(scene)))
    }

    @Test("the one in front is disconnected step by step, and the window activated before takes its place (L34)")
    func inFront() {
        let harness = harness()
        let mark = harness.mark
        #expect(close(harness, b) == .done(.active))
        #expect(
            harness.notices("editor", since: mark).filter { $0 != .scene(a, .willEnterForeground) } == [
                .scene(b, .willResignActive), .scene(b, .didEnterBackground), .sceneClosed(b),
                .scene(a, .didBecomeActive), .didDiscardScenes([b]),
            ])
        #expect(states(harness) == ["main: background", "a: foregroundActive"])
        #expect(isDropped(harness, b, since: mark))
        #expect(close(harness, b) == .refused(.noSuchScene(b)))
    }

    @Test(
        "a suspended app is notified when it is resumed, once; one that was opened again meanwhile is not closed (L34)")
    func suspended() throws {
        let harness = harness()
        harness.background("editor")
        harness.advance(.seconds(2))
        #expect(harness.state("editor") == .suspended)
        let mark = harness.mark
        #expect(close(harness, a) == .done(.suspended) && close(harness, .main) == .done(.suspended))
        #expect(states(harness) == ["b: background"])
        #expect(harness.notices("editor", since: mark).isEmpty)
        let core = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(core.difference(from: harness.core) == nil)
        harness.request("editor", .scene(.main, .activate))
        let notices = harness.notices("editor", since: mark)
        #expect(notices.contains(.sceneClosed(a)) && notices.contains(.didDiscardScenes([a])))
        #expect(!notices.contains(.sceneClosed(.main)))
        #expect(states(harness) == ["b: background", "main: foregroundActive"])
    }

    @Test("main cannot end while the others are closed, also if the app does not know that yet (L34)")
    func mainBesideClosed() throws {
        let harness = harness()
        harness.handle(.run(harness.run("editor"), .scene(.ended(a))))
        harness.background("editor")
        harness.advance(.seconds(2))
        #expect(close(harness, b) == .done(.suspended))
        // It was sent before the freeze.
        harness.handle(.run(harness.run("editor"), .scene(.ended(.main))))
        #expect(harness.effects.contains(.run(harness.run("editor"), .warn(.sceneNotOpen(.main)))))
        let core = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(core.difference(from: harness.core) == nil)
        harness.activate("editor")
        _ = try SavedCore(reading: harness.core.saved.bytes)
        #expect(harness.state("editor") == .active)
    }

    @Test("an app that ends its last open scene, or whose scenes are all closed, has main, which it keeps (L34)")
    func lastOpen() {
        let harness = harness()
        harness.background("editor")
        harness.advance(.seconds(2))
        #expect(close(harness, .main) == .done(.suspended) && close(harness, a) == .done(.suspended))
        harness.handle(.run(harness.run("editor"), .scene(.ended(b))))
        #expect(harness.view("editor").ownScenes.isEmpty || states(harness) == ["main: background"])
        let mark = harness.mark
        harness.activate("editor")
        #expect(harness.state("editor") == .active)
        let discarded = harness.notices("editor", since: mark).compactMap {
            if case .didDiscardScenes(let scenes) = $0 { scenes } else { nil }
        }
        #expect(discarded == [[a]])
    }

    @Test("one that outlived its process is named at the next launch, once; the last 32 are kept (L34)")
    func notRunning() {
        let harness = harness()
        harness.crash("editor")
        let mark = harness.mark
        #expect(close(harness, a) == .done(.notRunning))
        #expect(states(harness) == ["b: unattached"] && isDropped(harness, a, since: mark))
        #expect(close(harness, .main) == .refused(.noSuchScene(.main)))
        harness.launch("editor")
        for expected in [[Notice.didDiscardScenes([a])], []] {
            let mark = harness.mark
            attach(harness)
            #expect(
                harness.notices("editor", since: mark).filter { if case .didDiscardScenes = $0 { true } else { false } }
                    == expected)
        }
    }

    @Test("main alone is not closed; without others the app has main again, as when it ends the last one (L34)")
    func last() {
        let harness = harness()
        harness.handle(.run(harness.run("editor"), .scene(.ended(.main))))
        harness.handle(.run(harness.run("editor"), .scene(.ended(a))))
        #expect(states(harness) == ["b: foregroundActive"])
        #expect(close(harness, b) != nil)
        #expect(harness.state("editor") == .active && states(harness).isEmpty)
        #expect(close(harness, .main) == .refused(.lastScene))
    }
}
