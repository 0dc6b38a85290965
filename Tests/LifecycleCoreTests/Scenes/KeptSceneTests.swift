import Testing

@testable import LifecycleCore

@Suite("Scenes that outlive their process (L34)")
struct KeptSceneTests {
    private let a = SceneID("a")!
    private let b = SceneID("b")!

    /// An app with the windows `main`, `a` and `b`, of which `a` is in front.
    private func harness(policy: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        let harness = Harness()
        harness.register("editor", policy: policy)
        harness.launch("editor")
        attach(harness)
        for scene in [a, b, a] { begin(harness, scene) }
        harness.request("editor", .scene(a, .activate))
        return harness
    }

    private func attach(_ harness: Harness) {
        harness.handle(.run(harness.run("editor"), .connection(.attached([.scenes]))))
    }

    private func begin(_ harness: Harness, _ scene: SceneID) {
        harness.handle(.run(harness.run("editor"), .scene(.began(scene, .window))))
    }

    private func states(_ harness: Harness) -> [String] {
        harness.view("editor").ownScenes.map { "\($0.id): \($0.state.name)" }
    }

    private func notified(_ harness: Harness, since mark: Int) -> [String] {
        harness.notices("editor", since: mark).compactMap { notice in
            guard case .scene(let scene, let what) = notice else { return nil }
            return "\(what.rawValue) \(scene)"
        }
    }

    @Test("after a crash they are unattached; the one in front comes back with the app, others when activated (L34)")
    func crash() throws {
        let harness = harness()
        harness.crash("editor")
        #expect(states(harness) == ["b: unattached", "a: unattached"])
        // The next daemon knows them.
        let core = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(core.difference(from: harness.core) == nil)
        harness.launch("editor")
        let mark = harness.mark
        attach(harness)
        #expect(
            notified(harness, since: mark) == [
                "sceneWillResignActive main", "sceneDidEnterBackground main", "sceneWillConnect a",
                "sceneWillEnterForeground a", "sceneDidBecomeActive a",
            ])
        #expect(states(harness) == ["b: unattached", "main: background", "a: foregroundActive"])
        harness.request("editor", .scene(b, .activate))
        #expect(states(harness) == ["main: background", "a: background", "b: foregroundActive"])
    }

    @Test("an app that is launched in the background has none, until it is in the foreground (L34)")
    func background() {
        let harness = harness()
        harness.crash("editor")
        harness.launch("editor", .background)
        attach(harness)
        #expect(states(harness) == ["b: unattached", "a: unattached", "main: background"])
        // Nor does another end change which one was in front.
        harness.crash("editor")
        harness.launch("editor", .background)
        attach(harness)
        harness.activate("editor")
        #expect(states(harness) == ["b: unattached", "main: background", "a: foregroundActive"])
    }

    @Test("one that the app connects or closes is not kept, and a user's choice is what is in front (L34)")
    func taken() {
        let harness = harness()
        harness.crash("editor")
        harness.launch("editor", .background)
        attach(harness)
        begin(harness, b)
        #expect(states(harness) == ["a: unattached", "main: background", "b: background"])
        harness.request("editor", .scene(.main, .activate))
        #expect(states(harness) == ["a: unattached", "b: background", "main: foregroundActive"])
        let mark = harness.mark
        harness.handle(.run(harness.run("editor"), .scene(.ended(a))))
        #expect(states(harness) == ["b: background", "main: foregroundActive"])
        #expect(notified(harness, since: mark).isEmpty)
        // Its restoration state goes with it, as with one that is open.
        #expect(harness.effects(since: mark).contains(.dropRestorationState(id("editor"), .scene(a))))
        harness.handle(.run(harness.run("editor"), .scene(.ended(b))))
        #expect(harness.effects(since: mark).contains(.dropRestorationState(id("editor"), .scene(b))))
    }

    @Test("the removal of the app and two deaths in launch drop them (L11, L34, L42)")
    func dropped() {
        let removed = harness()
        removed.remove("editor")
        #expect(states(removed).isEmpty)
        let faulty = harness { $0.readiness = .notified }
        faulty.crash("editor")
        faulty.behave("editor") { $0.launching = .executes }
        for expected in [["b: unattached", "a: unattached"], []] {
            faulty.launch("editor")
            faulty.crash("editor")
            #expect(states(faulty) == expected)
        }
    }
}
