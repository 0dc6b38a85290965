import Testing

@testable import LifecycleCore

@Suite("Scenes of apps (L34)")
struct SceneTests {
    private let a = SceneID("a")!
    private let b = SceneID("b")!
    private let c = SceneID("c")!

    private func harness(_ apps: String..., limit: Int = 1) -> Harness {
        let harness = Harness()
        for app in apps { harness.register(app) }
        harness.configure { $0.foregroundLimit = limit }
        for app in apps { harness.launch(app) }
        for app in apps { harness.handle(.run(harness.run(app), .connection(.attached([.scenes, .openURL])))) }
        return harness
    }

    private func begin(_ harness: Harness, _ scene: SceneID, _ role: SceneRole = .window, of app: String = "editor") {
        harness.handle(.run(harness.run(app), .scene(.began(scene, role))))
    }

    private func end(_ harness: Harness, _ scene: SceneID, of app: String = "editor") {
        harness.handle(.run(harness.run(app), .scene(.ended(scene))))
    }

    private func states(_ harness: Harness, _ app: String = "editor") -> [String] {
        harness.view(app).ownScenes.map { "\($0.id): \($0.state.name)" }
    }

    /// What the app was notified of.
    private func notified(_ harness: Harness, since mark: Int, _ app: String = "editor") -> [String] {
        harness.notices(app, since: mark).compactMap { notice in
            guard case .scene(let scene, let what) = notice else { return nil }
            return "\(what.rawValue) \(scene)"
        }
    }

    @Test("a window that an app in the foreground begins takes a slot, and displaces the app's other window (L34)")
    func begins() {
        let harness = harness("editor")
        let mark = harness.mark
        begin(harness, a)
        #expect(states(harness) == ["main: background", "a: foregroundActive"])
        #expect(
            notified(harness, since: mark) == [
                "sceneWillResignActive main", "sceneDidEnterBackground main", "sceneWillEnterForeground a",
                "sceneDidBecomeActive a",
            ])
        #expect(harness.state("editor") == .active)
        #expect(harness.changes("editor", since: mark).isEmpty)
    }

    @Test("each window takes a slot, and the one activated longest ago loses it, of whichever app (L12, L34)")
    func limit() {
        let harness = harness("editor", "mail", limit: 2)
        // Slots: editor, mail. A window that editor begins counts as activated when editor was.
        begin(harness, a)
        #expect(states(harness) == ["main: background", "a: foregroundActive"])
        #expect(harness.state("mail") == .active)
        harness.register("maps")
        harness.launch("maps")
        #expect(harness.state("editor") == .background)
        #expect(states(harness) == ["main: background", "a: background"])
        harness.activate("mail")
        begin(harness, b, of: "mail")
        #expect(states(harness, "mail") == ["main: foregroundActive", "b: foregroundActive"])
        #expect(harness.state("maps") == .background)
        harness.activate("editor")
        #expect(states(harness) == ["main: background", "a: foregroundActive"])
        #expect(states(harness, "mail") == ["main: background", "b: foregroundActive"])
    }

    @Test("an external display and a panel have a slot each, and keep their app in the foreground (L34)")
    func roles() {
        let harness = harness("editor")
        begin(harness, a, .external)
        begin(harness, b, .panel)
        #expect(states(harness) == ["main: foregroundActive", "a: foregroundActive", "b: foregroundActive"])
        harness.register("mail")
        harness.launch("mail")
        #expect(states(harness) == ["main: background", "a: foregroundActive", "b: foregroundActive"])
        #expect(harness.state("editor") == .active)
        begin(harness, c, .panel, of: "mail")
        #expect(states(harness) == ["main: background", "a: foregroundActive", "b: background"])
        harness.background("editor")
        #expect(states(harness) == ["main: background", "a: background", "b: background"])
        #expect(harness.state("editor") == .background)
    }

    @Test("with the last scene in the foreground its app leaves it; scenes are notified before the app (L34)")
    func lastScene() {
        let harness = harness("editor", limit: 2)
        begin(harness, a)
        let first = harness.request("editor", .scene(.main, .background))
        #expect(harness.answers[first] == .done(.active))
        #expect(states(harness) == ["main: background", "a: foregroundActive"])
        let mark = harness.mark
        let second = harness.request("editor", .scene(a, .background))
        #expect(harness.answers[second] == .done(.background))
        #expect(
            harness.notices("editor", since: mark) == [
                .scene(a, .willResignActive), .scene(a, .didEnterBackground), .willResignActive(.background),
                .didEnterBackground,
            ])
        harness.activate("editor")
        #expect(states(harness) == ["main: background", "a: foregroundActive"])
    }

    @Test("a scene that a user asks for is created by the app when it is in the foreground (L34)")
    func requested() {
        let harness = harness("editor")
        harness.suspend("editor")
        var mark = harness.mark
        let request = harness.request("editor", .scene(a, .activate))
        #expect(harness.answers[request] == .done(.active))
        #expect(notified(harness, since: mark).prefix(2) == ["sceneWillConnect a", "sceneWillEnterForeground a"])
        #expect(states(harness) == ["main: background", "a: foregroundActive"])
        mark = harness.mark
        harness.request("editor", .scene(.main, .activate))
        #expect(states(harness) == ["a: background", "main: foregroundActive"])
        #expect(harness.view("editor").mostActiveScene?.id == .main)
        // Another app asks.
        let refused = harness.request("editor", .scene(a, .activate), by: .app(nil))
        #expect(harness.answers[refused] == .refused(.requesterNotInForeground))
    }

    @Test("a scene is refused that the app does not have and does not create, or that is one too many (L34)")
    func refused() {
        let harness = harness("editor")
        harness.handle(.run(harness.run("editor"), .connection(.attached([]))))
        let unknown = harness.request("editor", .scene(a, .activate))
        #expect(harness.answers[unknown] == .refused(.noScene(a)))
        let sentAway = harness.request("editor", .scene(a, .background))
        #expect(harness.answers[sentAway] == .refused(.noScene(a)))
        for number in 1..<LifecycleCore.maximumScenes { begin(harness, SceneID("s\(number)")!) }
        let mark = harness.mark
        begin(harness, a)
        #expect(harness.effects(since: mark) == [.run(harness.run("editor"), .warn(.sceneRefused(a)))])
        #expect(states(harness).count == 32)
        harness.handle(.run(harness.run("editor"), .connection(.attached(.scenes))))
        let request = harness.request("editor", .scene(a, .activate))
        #expect(harness.answers[request] == .refused(.tooMany("an app has at most 32 scenes")))
        harness.crash("editor")
        let ended = harness.request("editor", .scene(a, .activate))
        #expect(harness.answers[ended] == .refused(.notRunning))
        for name in ["", "a b", "ä", "\u{1b}[2J", String(repeating: "x", count: 65)] { #expect(SceneID(name) == nil) }
    }

    @Test("the window activated last takes the slot of one that ends, and main that of the last scene (L34)")
    func ends() {
        let harness = harness("editor")
        begin(harness, a)
        begin(harness, b)
        end(harness, b)
        #expect(states(harness) == ["main: background", "a: foregroundActive"])
        end(harness, .main)
        end(harness, a)
        #expect(states(harness).isEmpty)
        #expect(harness.state("editor") == .active)
        let mark = harness.mark
        end(harness, .main)
        #expect(harness.effects(since: mark) == [.run(harness.run("editor"), .warn(.sceneNotOpen(.main)))])
        // A panel has no window's slot.
        begin(harness, c, .panel)
        harness.register("mail")
        harness.launch("mail")
        #expect(harness.state("editor") == .active)
        end(harness, c)
        #expect(harness.state("editor") == .background)
        #expect(harness.state("mail") == .active)
    }

    @Test("main can be begun again in another role, and then is no window (L34)")
    func mainAsPanel() throws {
        let harness = harness("editor")
        begin(harness, a, .external)
        end(harness, .main)
        begin(harness, .main, .panel)
        end(harness, a)
        #expect(states(harness) == ["main: foregroundActive"])
        harness.register("mail")
        harness.launch("mail")
        #expect(harness.state("editor") == .active)
        #expect(harness.state("mail") == .active)
        #expect(LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes)) == harness.core)
        end(harness, .main)
        #expect(harness.state("editor") == .background)
        #expect(states(harness).isEmpty)
    }

    @Test(
        "at a warning, scenes in the background are disconnected before an app is killed, and it is notified (L34, L35)"
    )
    func disconnected() {
        let harness = harness("editor")
        begin(harness, a)
        var mark = harness.mark
        harness.simulate(.warning)
        #expect(notified(harness, since: mark) == ["sceneDidDisconnect main"])
        #expect(states(harness) == ["main: unattached", "a: foregroundActive"])
        // Which the app may connect again itself, or a user.
        mark = harness.mark
        harness.request("editor", .scene(.main, .activate))
        #expect(notified(harness, since: mark).contains("sceneWillConnect main"))
        #expect(states(harness) == ["a: background", "main: foregroundActive"])
        // Its last one in the background is connected again with the app.
        begin(harness, b)
        harness.advance(.seconds(30))
        harness.simulate(.critical)
        harness.background("editor")
        end(harness, b)
        end(harness, a)
        mark = harness.mark
        harness.activate("editor")
        #expect(notified(harness, since: mark).first == "sceneWillConnect main")
        #expect(harness.state("editor") == .active)
    }

    @Test(
        "a suspended app is notified that a scene was disconnected before anything of it runs; its last one stays (L34)"
    )
    func disconnectedInSuspension() throws {
        let harness = harness("editor")
        begin(harness, a)
        harness.suspend("editor")
        var mark = harness.mark
        harness.simulate(.warning)
        #expect(notified(harness, since: mark).isEmpty)
        #expect(states(harness) == ["main: unattached", "a: background"])
        mark = harness.mark
        harness.activate("editor")
        let effects = harness.effects(since: mark)
        let notice = Effect.run(harness.run("editor"), .notify(.scene(.main, .didDisconnect)))
        let thawed = try #require(
            effects.firstIndex { if case .run(_, .suspension(.thaw)) = $0 { true } else { false } })
        #expect(effects[..<thawed].contains(notice))
        #expect(states(harness) == ["main: unattached", "a: foregroundActive"])
    }

    @Test("while the user is away scenes are in the background, and those of before return (L15, L34)")
    func absence() {
        let harness = harness("editor", limit: 3)
        begin(harness, a)
        begin(harness, b)
        harness.request("editor", .scene(.main, .background))
        harness.handle(.absence(.locked))
        #expect(states(harness) == ["main: background", "a: background", "b: background"])
        end(harness, b)
        harness.handle(.absence(.unlocked))
        #expect(states(harness) == ["main: background", "a: foregroundActive"])
    }

    @Test("an interruption concerns all scenes, and its process ends them (L13, L34)")
    func interruption() {
        let harness = harness("editor", limit: 2)
        begin(harness, a)
        harness.request("editor", .interrupt)
        #expect(states(harness) == ["main: foregroundInactive", "a: foregroundInactive"])
        harness.crash("editor")
        #expect(harness.core.foregroundApps.isEmpty)
        #expect(states(harness) == ["a: unattached"])
        harness.launch("editor")
        #expect(states(harness) == ["a: unattached", "main: foregroundActive"])
    }

    @Test("a core with scenes is saved and recovered, and an earlier release reads one slot of each app (L34)")
    func saved() throws {
        let harness = harness("editor", "mail", limit: 3)
        begin(harness, a)
        begin(harness, b, .panel)
        harness.simulate(.warning)
        let saved = harness.core.saved
        let core = LifecycleCore(recovering: try SavedCore(reading: saved.bytes))
        #expect(core.difference(from: harness.core) == nil)
        #expect(core.view(of: id("editor"), at: harness.now)?.ownScenes == harness.view("editor").ownScenes)
        var older = saved
        older.foregroundSlots = [ForegroundSlot(app: 0), ForegroundSlot(app: 1)]
        for index in older.apps.indices { older.apps[index].ownRunStorage().run.scenes = nil }
        #expect(older.fault == nil)
        older.foregroundSlots[0].scene = a
        #expect(older.fault == "a foreground slot of no scene of editor")
    }
}
