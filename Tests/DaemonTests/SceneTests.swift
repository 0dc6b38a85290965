import Control
import Glibc
import JSON
import LifecycleCore
import Linux
import Posix
import Systemd
import Testing

/// Scenes of real processes (L34).
@Suite("Scenes")
struct SceneTests {
    private func states(_ daemon: TestDaemon, _ app: String) throws -> [String] {
        (try daemon.status(app)["scenes"]?.arrayValue ?? []).map {
            "\($0["id"]?.stringValue ?? "") \($0["role"]?.stringValue ?? "") \($0["state"]?.stringValue ?? "")"
        }
    }

    /// The next events, as `scene notice` or their kind.
    private func events(_ client: SelfClient, _ count: Int) throws -> [String] {
        try (0..<count).map { _ in
            let event = try client.next()
            guard event.kind == "scene" else { return event.kind }
            return "\(event.details["scene"]?.stringValue ?? "") \(event.details["notice"]?.stringValue ?? "")"
        }
    }

    @Test("an app is notified of its scenes, also over a crash of the daemon; its last one takes it along (L34)")
    func connection() throws {
        let root = try TestDaemon.makeFolder()
        let daemon = try TestDaemon(
            ["mail": SelfConnectionTests.manifest(root, SelfStage.quick + "SceneRoles=panel\n")], root: root)
        let client = try SelfStage.launch(daemon, "mail", "lend")
        #expect(throws: (any Error).self) { try client.call("BeginScene", [.string("tv"), .string("external")]) }
        try client.call("BeginScene", [.string("a"), .string("")])
        #expect(
            try events(client, 4) == [
                "main sceneWillResignActive", "main sceneDidEnterBackground", "a sceneWillEnterForeground",
                "a sceneDidBecomeActive",
            ])
        try client.call("BeginScene", [.string("tools"), .string("panel")])
        #expect(try events(client, 2) == ["tools sceneWillEnterForeground", "tools sceneDidBecomeActive"])
        let all = ["main window background", "a window foregroundActive", "tools panel foregroundActive"]
        #expect(try states(daemon, "mail") == all)
        // By request: the app is asked to create a scene that it does not have.
        _ = try daemon.call("ActivateScene", [.string("mail"), .string("b")])
        #expect(try events(client, 3).last == "b sceneWillConnect")
        #expect(try events(client, 2) == ["b sceneWillEnterForeground", "b sceneDidBecomeActive"])
        _ = try daemon.call("Open", [.string("mail"), .string("mail:1"), .dictionary([])])
        #expect(try client.next().details["scene"]?.stringValue == "b")
        _ = try daemon.call("BackgroundScene", [.string("mail"), .string("tools")])
        #expect(try events(client, 2) == ["tools sceneWillResignActive", "tools sceneDidEnterBackground"])
        #expect(try daemon.state("mail") == "active")
        // The next daemon knows them.
        daemon.crash()
        let next = try daemon.successor()
        #expect(
            try states(next, "mail") == [
                "tools panel background", "main window background", "a window background", "b window foregroundActive",
            ])
        _ = try next.call("SimulatePressure", [.string("warning")])
        #expect(try states(next, "mail").contains("a window unattached"))
        let again = try SelfClient(next)
        try again.attach()
        try again.call("EndScene", [.string("b")])
        try next.eventually("the window activated last takes its place") {
            try states(next, "mail").contains("a window foregroundActive")
        }
        for scene in ["tools", "a"] { try again.call("EndScene", [.string(scene)]) }
        try next.eventually("it has main alone") { try states(next, "mail").isEmpty }
        #expect(try next.state("mail") == "active")
    }

    @Test("each scene says whether it may be shown and gets input, and how notices are shown meanwhile (L34, L55)")
    func presentation() throws {
        let root = try TestDaemon.makeFolder()
        let daemon = try TestDaemon(
            ["mail": SelfConnectionTests.manifest(root, SelfStage.quick + "Notices=alert\nSceneRoles=panel\n")],
            root: root)
        func shown() throws -> [String] {
            try (daemon.status("mail")["scenes"]?.arrayValue ?? []).map { scene in
                let words = ["visible", "receivesInput"].filter { scene[$0]?.boolValue == true }
                #expect(scene["noticeStyle"]?.stringValue == "alert")
                // There is no sensor.
                #expect(scene["orientation"] == nil)
                return ([scene["id"]?.stringValue ?? ""] + words).joined(separator: " ")
            }
        }
        let client = try SelfStage.launch(daemon, "mail", "lend")
        try client.call("BeginScene", [.string("a"), .string("")])
        try client.call("BeginScene", [.string("tools"), .string("panel")])
        #expect(try shown() == ["main", "a visible receivesInput", "tools visible receivesInput"])
        try daemon.ask("Interrupt", "mail")
        #expect(try shown() == ["main", "a visible", "tools visible"])
        try daemon.ask("Resume", "mail")
        _ = try daemon.call("BackgroundScene", [.string("mail"), .string("tools")])
        #expect(try shown() == ["tools", "main", "a visible receivesInput"])
        let scenes = try daemon.bus.property(
            path: ObjectPath.encode("mail", below: ControlNames.appPrefix), interface: ControlNames.appInterface,
            "Scenes")
        #expect(try [SceneStatus](variant: scenes).map(\.isVisible) == [false, false, true])
    }

    @Test("a suspended app is notified of a scene that was disconnected before anything else when it is thawed (L34)")
    func suspended() throws {
        let root = try TestDaemon.makeFolder()
        let daemon = try TestDaemon(["mail": SelfConnectionTests.manifest(root, SelfStage.quick)], root: root)
        let client = try SelfStage.launch(daemon, "mail", "lend")
        try client.call("BeginScene", [.string("a"), .string("window")])
        _ = try events(client, 4)
        try SelfStage.request(daemon, "Background", "mail")
        #expect(try events(client, 3) == ["a sceneWillResignActive", "a sceneDidEnterBackground", "willResignActive"])
        try client.answer(try client.next().serial)
        try daemon.waitUntil("mail", is: "suspended")
        #expect(try events(client, 1) == ["willSuspend"])
        _ = try daemon.call("SimulatePressure", [.string("warning")])
        #expect(try states(daemon, "mail") == ["main window unattached", "a window background"])
        try SelfStage.request(daemon, "Activate", "mail")
        #expect(try events(client, 1) == ["main sceneDidDisconnect"])
        try daemon.waitUntil("mail", is: "active")
        #expect(try states(daemon, "mail") == ["main window unattached", "a window foregroundActive"])
    }

    @Test("calls that are sent at once succeed exactly for the scenes that the app has afterwards (L34)")
    func answers() throws {
        let root = try TestDaemon.makeFolder()
        let daemon = try TestDaemon(["mail": SelfConnectionTests.manifest(root, SelfStage.quick)], root: root)
        let client = try SelfStage.launch(daemon, "mail", "lend")
        // One scene is its main one.
        let first = (1..<LifecycleCore.maximumScenes - 1).map { [Variant.string("s\($0)"), .string("")] }
        #expect(try client.callAll("BeginScene", first))
        let last = [[Variant.string("a"), .string("")], [.string("b"), .string("")], [.string("a"), .string("")]]
        #expect(throws: (any Error).self) { try client.callAll("BeginScene", last) }
        let states = try states(daemon, "mail")
        #expect(states.count == LifecycleCore.maximumScenes)
        #expect(states.contains { $0.hasPrefix("a ") } && !states.contains { $0.hasPrefix("b ") })
        #expect(client.failure("BeginScene", [.string("b"), .string("")])?.name == "TooMany")
        #expect(client.failure("BeginScene", [.string("a"), .string("")]) == nil)
    }

    @Test(
        "of 10,000 scenes that an app begins at once the first 31 are accepted beside main, the others refused; the log stays short (L34)"
    )
    func flood() throws {
        let root = try TestDaemon.makeFolder()
        let daemon = try TestDaemon(["mail": SelfConnectionTests.manifest(root, SelfStage.quick)], root: root)
        let client = try SelfStage.launch(daemon, "mail", "lend")
        let raw = try RawSelfClient(daemon)
        func call(_ number: Int) -> RawMessage {
            var call = RawMessage(UInt32(number), "BeginScene")
            call.signature = "ss"
            call.body.put("s\(number)")
            call.body.put("")
            return call
        }
        let bytes = (1...10_000).flatMap { number -> [UInt8] in
            var call = call(number)
            // No answer is expected.
            call.flags = 1
            return call.bytes
        }
        var rest = bytes[...]
        var answers = 0
        while !rest.isEmpty {
            let sent = raw.sendSome(rest)
            guard sent >= 0 else { throw TestFailure("the daemon ended the connection") }
            rest = rest.dropFirst(sent)
            #expect(try daemon.call("List")[0].arrayValue?.count == 1)
            answers += 1
            // A thousand messages are read in a second.
            var polled = pollfd(fd: raw.socket.raw, events: Int16(POLLOUT), revents: 0)
            #expect(poll(&polled, 1, 60_000) > 0)
        }
        #expect(answers > 1)
        // Calls may still wait, and then others are refused.
        var serial = 10_001
        var answer: RawSelfClient.Reply
        repeat {
            try raw.send(call(serial).bytes)
            answer = try raw.answer(to: UInt32(serial))
            serial += 1
        } while String(decoding: answer.body, as: UTF8.self).contains("wait for their answer")
        #expect(answer.type == 3)
        #expect(String(decoding: answer.body, as: UTF8.self).contains("at most 32 scenes"))
        let scenes = try states(daemon, "mail").map { $0.prefix { $0 != " " } }
        #expect(scenes.sorted() == (["main"] + (1...31).map { "s\($0)" }).sorted().map { $0[...] })
        let log = TestDaemon.text(of: root + "/log").split(separator: "\n")
        // Where many arrive at once, calls are refused because others wait for their answer.
        let refusals = log.filter { $0.contains("at most 32 scenes") || $0.contains("wait for their answer") }
        // Ten in a minute.
        #expect((1...20).contains(refusals.count), "\(log.suffix(5))")
        withExtendedLifetime(client) {}
    }

    @Test("the restoration state of a scene outlives its process, and goes with the scene (L34)")
    func restoration() throws {
        let root = try TestDaemon.makeFolder()
        let daemon = try TestDaemon(
            [
                "editor": TestDaemon.manifest(
                    "contents store state.a=one store state.b=two", trace: root + "/trace")
            ], root: root)
        func stored() throws -> [String] { daemon.trace().filter { $0.contains("=") } }
        try daemon.launch("editor")
        for scene in ["a", "b"] { try daemon.sendMessage("X_GREENROOM_BEGIN_SCENE=\(scene)") }
        try daemon.eventually("both scenes are there") { try states(daemon, "editor").count == 3 }
        try daemon.sendMessage("X_GREENROOM_END_SCENE=a")
        try daemon.eventually("one is left") { try states(daemon, "editor").count == 2 }
        try daemon.terminate("editor")
        #expect(try states(daemon, "editor") == ["b window unattached"])
        try daemon.launch("editor")
        #expect(try stored() == ["state.b=two"])
    }

    @Test(
        "the snapshot of a scene is asked for, given, listed with its age, kept over a stop, and goes with the scene (L34)"
    )
    func snapshots() throws {
        let root = try TestDaemon.makeFolder()
        let daemon = try TestDaemon(["mail": SelfConnectionTests.manifest(root, SelfStage.quick)], root: root)
        func control(_ daemon: TestDaemon, _ words: String...) throws -> String {
            try daemon.run("\(TestDaemon.binaries)/greenroomctl", ["--runtime", daemon.runtime] + words).output
        }
        let client = try SelfStage.launch(daemon, "mail", "lend")
        try client.attach(SelfClient.kinds + ["takeSceneSnapshot"])
        try client.call("BeginScene", [.string("a"), .string("")])
        var question = try client.next()
        while question.kind != "takeSceneSnapshot" { question = try client.next() }
        #expect(question.details["scene"]?.stringValue == "main")
        func save(_ scene: String, _ text: String) throws {
            let file = SharedDescriptor(try MemoryFile.sealed("snapshot", Array(text.utf8)))
            try client.call("SaveSceneSnapshot", [.string(scene), .string("text/plain"), .descriptor(file)])
        }
        try save("main", "the main window")
        try save("a", "window a")
        try client.answer(question.serial)
        #expect(
            client.failure(
                "SaveSceneSnapshot",
                [
                    .string("a/b"), .string("text/plain"),
                    .descriptor(
                        SharedDescriptor(try MemoryFile.sealed("snapshot", []))),
                ])?.name == "InvalidArgument")
        let foreign = SharedDescriptor(try MemoryFile.sealed("snapshot", []))
        do throws(BusError) {
            _ = try daemon.bus.call(
                path: BusStage.path("mail"), interface: ControlNames.appInterface, member: "SetSceneSnapshot",
                [.string("a"), .string("text/plain"), .descriptor(foreign)])
            Issue.record("another program sets the snapshot of an app that gives it itself")
        } catch {
            #expect(error.message.contains("takes its snapshots itself"))
        }
        #expect(try control(daemon, "snapshot", "mail", "--scene", "a") == "window a")
        #expect(try control(daemon, "snapshot", "mail", "--scene", "main") == "the main window")
        // That of the window that was activated last stands for the app.
        #expect(try control(daemon, "snapshot", "mail") == "window a")
        #expect(try control(daemon, "snapshot", "mail", "--scene", "b").contains("scene 'b' of 'mail': it has none"))
        let scenes = try daemon.status("mail")["scenes"]?.arrayValue ?? []
        #expect(scenes.count == 2 && scenes.allSatisfy { $0["snapshotTime"] != nil })
        let listed = try control(daemon, "list", "--scenes").split(separator: "\n")
        #expect(listed.count == 2 && listed.allSatisfy { $0.hasSuffix("Z") }, "\(listed)")
        try client.call("EndScene", [.string("a")])
        try daemon.eventually("the snapshot goes with its scene") {
            try control(daemon, "snapshot", "mail", "--scene", "a").contains("it has none")
        }
        #expect(try control(daemon, "snapshot", "mail") == "the main window")
        #expect(daemon.stop() == .exited(0))
        let next = try daemon.successor()
        #expect(try control(next, "snapshot", "mail", "--scene", "main") == "the main window")
        #expect(next.stop() == .exited(0))
        // The facts are of another boot.
        let path = next.state + "/restoration/mail.snapshot-facts+main"
        let text = TestDaemon.text(of: path).split(separator: "\n").prefix(2).joined(separator: "\n")
        try replaceFile(at: path, with: Array((text + "\n0123\n").utf8))
        let last = try next.successor()
        #expect(try control(last, "snapshot", "mail", "--scene", "main").contains("it has none"))
    }

    @Test(
        "a user closes a scene of an app that runs, and one of an app that does not, which is notified at its next launch (L34)"
    )
    func closed() throws {
        let root = try TestDaemon.makeFolder()
        let daemon = try TestDaemon(["mail": SelfConnectionTests.manifest(root, SelfStage.quick)], root: root)
        func close(_ scene: String) throws -> String {
            try daemon.run(
                "\(TestDaemon.binaries)/greenroomctl", ["--runtime", daemon.runtime, "close", "mail", "--scene", scene]
            ).output
        }
        func names(_ event: SelfClient.Event) -> [String] {
            event.details["scenes"]?.arrayValue?.compactMap(\.stringValue) ?? []
        }
        var client = try SelfStage.launch(daemon, "mail", "lend")
        for scene in ["a", "b"] { try client.call("BeginScene", [.string(scene), .string("")]) }
        _ = try events(client, 8)
        #expect(try close("main").contains("mail:"))
        let end = try client.next()
        #expect(end.details["notice"]?.stringValue == "sceneDidDisconnect")
        #expect(end.details["reason"]?.stringValue == "closed")
        let discarded = try client.next()
        #expect(discarded.kind == "didDiscardScenes" && names(discarded) == ["main"])
        #expect(try states(daemon, "mail") == ["a window background", "b window foregroundActive"])
        #expect(try close("main").contains("it has no scene 'main'"))
        try daemon.terminate("mail")
        _ = try close("a")
        #expect(try states(daemon, "mail") == ["b window unattached"])
        try SelfStage.request(daemon, "Launch", "mail", [.dictionary([])])
        client = try SelfClient(daemon)
        try client.attach()
        #expect(try names(client.next()) == ["a"])
    }

    @Test("a script begins scenes over its notify socket; what is not valid is refused with a sentence (L34)")
    func messages() throws {
        let daemon = try TestDaemon(["editor": TestDaemon.manifest("", "[Lifecycle]\nSceneRoles=external")])
        try daemon.launch("editor")
        try daemon.sendMessage("X_GREENROOM_SCENE_ROLE=external\nX_GREENROOM_BEGIN_SCENE=tv")
        let event = try daemon.waitForEvent("the scene is shown") {
            $0["kind"]?.stringValue == "sceneChanged" && $0["sceneState"]?.stringValue == "foregroundActive"
        }
        #expect(event["scene"]?.stringValue == "tv" && event["app"]?.stringValue == "editor")
        let scenes = try daemon.bus.property(
            path: ObjectPath.encode("editor", below: ControlNames.appPrefix), interface: ControlNames.appInterface,
            "Scenes")
        let roles = try [SceneStatus](variant: scenes).map(\.role)
        #expect(roles == ["window", "external"])
        #expect(try states(daemon, "editor") == ["main window foregroundActive", "tv external foregroundActive"])
        for (message, reason) in [
            ("X_GREENROOM_BEGIN_SCENE=a b", "expected 1 to 64 of the characters"),
            ("X_GREENROOM_BEGIN_SCENE=x\nX_GREENROOM_SCENE_ROLE=wall", "expected one of window, external, panel"),
            ("X_GREENROOM_BEGIN_SCENE=x\nX_GREENROOM_SCENE_ROLE=panel", "does not declare the role (SceneRoles=)"),
            ("X_GREENROOM_SCENE_ROLE=panel", "needs a valid X_GREENROOM_BEGIN_SCENE="),
            ("X_GREENROOM_END_SCENE=none", "the app has no such scene, or no other"),
        ] {
            try daemon.sendMessage(message)
            try daemon.eventually(reason) {
                try daemon.status("editor")["lastWarning"]?.stringValue?.contains(reason) ?? false
            }
        }
        #expect(throws: (any Error).self) { try daemon.call("ActivateScene", [.string("editor"), .string("x")]) }
        for number in 0..<40 { try daemon.sendMessage("X_GREENROOM_BEGIN_SCENE=s\(number)") }
        try daemon.eventually("the last one is refused") {
            let warning = try daemon.status("editor")["lastWarning"]?.stringValue ?? ""
            return warning.contains("s39") && warning.contains("at most 32 scenes")
        }
        #expect(try states(daemon, "editor").count == 32)
        try daemon.sendMessage("X_GREENROOM_END_SCENE=tv")
        try daemon.eventually("it ends") { try !states(daemon, "editor").contains { $0.hasPrefix("tv") } }
    }
}
