import Glibc
import Posix
import Systemd
import Testing

@Suite("Bus", .serialized)
struct BusTests {
    @Test("a method receives its arguments and answers with its results")
    func call() throws {
        let stage = try Stage()
        let client = try stage.client()
        let options = Variant.dictionary([("reason", .string("url")), ("count", .uint32(3))])
        let answer = try stage.ask(client, "Launch", [.string("mail"), options]).get()
        #expect(answer.first?["id"] == .string("mail"))
        #expect(answer.first?["options"] == .variant(options))
    }

    @Test("a thousand calls are answered, each with its own value")
    func thousand() throws {
        let stage = try Stage()
        let client = try stage.client()
        var answers: [Int64?] = []
        for number in 0..<1000 {
            try client.call(
                path: Exhibit.path, interface: Exhibit.manager, member: "Echo", [.variant(.int32(Int32(number)))],
                timeout: testTimeout
            ) { answers.append((try? $0.get())?.first?.unwrapped.intValue) }
        }
        #expect(try stage.loop.serve { answers.count == 1000 })
        let right = answers.enumerated().count { $0.element == Int64($0.offset) }
        #expect(right == 1000)
        #expect(stage.exhibit.calls == 1000)
    }

    @Test("wrong arguments, unknown methods and objects, and a method's errors are returned with their names")
    func errors() throws {
        let stage = try Stage()
        let client = try stage.client()
        func name(_ member: String, _ arguments: [Variant] = [], path: String = Exhibit.path) throws -> String? {
            guard case .failure(let error) = try stage.ask(client, member, arguments, path: path) else { return nil }
            return error.name
        }
        #expect(try name("Echo", [.string("no variant")]) == "org.freedesktop.DBus.Error.InvalidArgs")
        #expect(try name("Nonsense") == "org.freedesktop.DBus.Error.UnknownMethod")
        #expect(try name("Echo", path: "/nowhere") == "org.freedesktop.DBus.Error.UnknownObject")
        #expect(
            try stage.ask(client, "Fail") == .failure(BusError("org.example.Error.Sad", "It is sad.")))
        guard case .failure(let error) = try stage.ask(client, "Lie") else { throw Missing() }
        #expect(error.message == "org.example.Manager1.Lie answered i instead of s.")
    }

    struct Missing: Error {}

    @Test("a call that is dropped without an answer fails instead of hanging")
    func droppedCall() throws {
        let stage = try Stage()
        guard case .failure(let error) = try stage.ask(try stage.client(), "Drop") else { throw Missing() }
        #expect(error.name == "org.freedesktop.DBus.Error.NoReply")
        #expect(error.message == "org.example.Manager1.Drop was dropped without an answer.")
    }

    @Test("an answer may be sent later, and other calls are served meanwhile")
    func later() throws {
        let stage = try Stage()
        let client = try stage.client()
        var answer: Result<[Variant], BusError>?
        try client.call(path: Exhibit.path, interface: Exhibit.manager, member: "Later", timeout: testTimeout) {
            answer = $0
        }
        #expect(try stage.loop.serve { !stage.exhibit.waiting.isEmpty })
        _ = try stage.ask(client, "Echo", [.variant(.bool(true))])
        #expect(answer == nil)
        stage.exhibit.waiting.removeFirst().reply()
        #expect(try stage.loop.serve { answer != nil })
        #expect(answer == .success([]))
    }

    @Test("a call is answered once: further answers have no effect")
    func answeredTwice() throws {
        let stage = try Stage()
        let client = try stage.client()
        var answers: [Result<[Variant], BusError>] = []
        try client.call(path: Exhibit.path, interface: Exhibit.manager, member: "Later", timeout: testTimeout) {
            answers.append($0)
        }
        #expect(try stage.loop.serve { !stage.exhibit.waiting.isEmpty })
        let call = stage.exhibit.waiting.removeFirst()
        call.reply()
        call.fail("org.example.Error.Late", "too late")
        _ = try stage.ask(client, "Echo", [.variant(.bool(true))])
        #expect(answers == [.success([])])
        #expect(call.isAnswered)
    }

    @Test("if a caller disconnects, the handler of its pending call is called, and a late answer has no effect")
    func peerGone() throws {
        let stage = try Stage()
        let client = try stage.client()
        var outcome: Result<[Variant], BusError>?
        try client.call(path: Exhibit.path, interface: Exhibit.manager, member: "Later", timeout: nil) { outcome = $0 }
        #expect(try stage.loop.serve { !stage.exhibit.waiting.isEmpty })
        client.close()
        #expect(try stage.loop.serve { stage.exhibit.goneWhileWaiting == 1 && outcome != nil })
        #expect(outcome == .failure(.disconnected("The connection ended before the answer.")))
        let call = stage.exhibit.waiting.removeFirst()
        #expect(call.peer.isGone)
        call.reply()
        #expect(stage.gone == ["the connection ended"])
        #expect(stage.server.peers.isEmpty)
    }

    @Test("the caller's process and user are known")
    func credentials() throws {
        let stage = try Stage()
        let answer = try stage.ask(try stage.client(), "Who").get()
        #expect(answer == [.int32(getpid()), .uint32(geteuid())])
        #expect(stage.server.peers.first?.credentials?.gid == getegid())
    }

    @Test("objects below a prefix are identified by their names; one that does not exist is unknown")
    func collection() throws {
        let stage = try Stage()
        let client = try stage.client()
        for id in stage.exhibit.ids {
            let path = ObjectPath.encode(id, below: Exhibit.appPrefix)
            #expect(try stage.ask(client, "Name", interface: Exhibit.app, path: path).get() == [.string(id)])
        }
        for path in [Exhibit.appPrefix + "/unknown", Exhibit.appPrefix + "/mail/more"] {
            guard case .failure(let error) = try stage.ask(client, "Name", interface: Exhibit.app, path: path) else {
                throw Missing()
            }
            #expect(error.name == "org.freedesktop.DBus.Error.UnknownObject", "\(path)")
        }
    }

    @Test("the object manager lists every object with its properties")
    func managedObjects() throws {
        let stage = try Stage()
        stage.exhibit.states["mail"] = "active"
        let answer = try stage.ask(
            try stage.client(), "GetManagedObjects", interface: "org.freedesktop.DBus.ObjectManager"
        ).get()
        let objects = try #require(answer.first?.arrayValue)
        let mail = try #require(
            objects.compactMap { entry -> Variant? in
                guard case .entry(.objectPath(Exhibit.appPrefix + "/mail"), let value) = entry else { return nil }
                return value
            }.first)
        let interfaces = try #require(mail.arrayValue)
        #expect(interfaces.contains(.entry(.string(Exhibit.app), .dictionary([("State", .string("active"))]))))
        #expect(objects.count == stage.exhibit.ids.count)
    }

    @Test("the object manager answers in pieces of one object, and other calls meanwhile")
    func manyManagedObjects() throws {
        let stage = try Stage()
        stage.exhibit.ids = (0..<2000).map { "app\($0)" }
        let (client, other) = (try stage.client(), try stage.client())
        // Both handshakes are done.
        for one in [client, other] { _ = try stage.ask(one, "Echo", [.variant(.int32(1))]) }
        var answer: Result<[Variant], BusError>?
        try client.call(
            path: Exhibit.path, interface: "org.freedesktop.DBus.ObjectManager", member: "GetManagedObjects",
            timeout: testTimeout
        ) { answer = $0 }
        let before = stage.loop.controlWork.pieces
        // Each piece takes a turn.
        var time = Duration.zero
        stage.loop.clock = {
            time += .milliseconds(1)
            return time
        }
        #expect(try stage.loop.serve { stage.loop.controlWork.pieces > before })
        // An object that is removed is left out, if its piece was not made yet.
        stage.exhibit.ids.removeLast()
        _ = try stage.ask(other, "Echo", [.variant(.int32(2))])
        #expect(!stage.loop.controlWork.isEmpty && stage.loop.controlWork.pieces - before < 100)
        #expect(try stage.loop.serve { answer != nil })
        #expect(stage.loop.controlWork.pieces - before >= 2000)
        let objects = try #require(try answer?.get().first?.arrayValue)
        #expect(objects.count == 1999)
    }

    @Test("every peer receives signals, changed properties, and new and removed objects")
    func signals() throws {
        let stage = try Stage()
        let clients = [try stage.client(), try stage.client()]
        var seen: [[BusSignal]] = [[], []]
        for (index, client) in clients.enumerated() { client.onSignal = { seen[index].append($0) } }
        #expect(try stage.loop.serve { stage.server.peers.count == 2 && stage.server.peers.allSatisfy(\.isReady) })
        let path = Exhibit.appPrefix + "/mail"
        stage.exhibit.states["mail"] = "background"
        try stage.server.emitSignal(
            path: Exhibit.path, interface: Exhibit.manager, member: "Changed", [.string("mail"), .uint32(7)])
        try stage.server.emitPropertiesChanged(path: path, interface: Exhibit.app, ["State"])
        try stage.server.emitObjectAdded(path: path)
        try stage.server.emitObjectRemoved(path: path)
        #expect(try stage.loop.serve { seen.allSatisfy { $0.count == 4 } })
        #expect(seen[0] == seen[1])
        #expect(
            seen[0].first
                == BusSignal(
                    path: Exhibit.path, interface: Exhibit.manager, member: "Changed",
                    arguments: [.string("mail"), .uint32(7)], sender: ":1.0"))
        #expect(
            seen[0][1].arguments
                == [.string(Exhibit.app), .dictionary([("State", .string("background"))]), .array("s", [])])
        #expect(seen[0][2...].map(\.member) == ["InterfacesAdded", "InterfacesRemoved"])
    }

    private func connectedPeers(_ loop: EventLoop, _ handler: BusObjects) throws -> (daemon: BusPeer, app: BusPeer) {
        let (near, far) = try socketPair()
        return (
            try BusPeer(loop: loop, descriptor: near.descriptor.duplicate(), role: .server(names: [])),
            try BusPeer(loop: loop, descriptor: far.descriptor.duplicate(), role: .client, objects: handler)
        )
    }

    @Test("both ends of a socket pair can call each other")
    func bothWays() throws {
        let loop = try EventLoop()
        let handler = BusObjects()
        handler.add(
            at: "/app",
            [
                BusInterface(
                    "org.example.Handler1", methods: [BusMethod("Suspend", out: "s") { $0.reply([.string("done")]) }])
            ]
        )
        let (daemon, app) = try connectedPeers(loop, handler)
        var answer: Result<[Variant], BusError>?
        try daemon.call(path: "/app", interface: "org.example.Handler1", member: "Suspend", timeout: testTimeout) {
            answer = $0
        }
        #expect(try loop.serve { answer != nil })
        #expect(answer == .success([.string("done")]))
        var reason: String?
        daemon.onGone = { reason = $0 }
        app.close()
        #expect(try loop.serve { reason != nil })
        #expect(throws: BusError.self) {
            try daemon.call(path: "/app", interface: "org.example.Handler1", member: "Suspend", timeout: nil) { _ in }
        }
    }

    @Test("a call without an answer ends with its timeout")
    func timeout() throws {
        let stage = try Stage()
        let client = try stage.client()
        var answer: Result<[Variant], BusError>?
        try client.call(
            path: Exhibit.path, interface: Exhibit.manager, member: "Later", timeout: .milliseconds(20)
        ) { answer = $0 }
        #expect(try stage.loop.serve { answer != nil })
        guard case .failure(let error)? = answer else { throw Missing() }
        #expect(error.name == "org.freedesktop.DBus.Error.NoReply")
    }

    @Test("properties are read, and one that fails returns its error")
    func properties() throws {
        let stage = try Stage()
        let client = try stage.client()
        func get(_ name: String) throws -> Result<[Variant], BusError> {
            try stage.ask(
                client, "Get", [.string(Exhibit.manager), .string(name)], interface: "org.freedesktop.DBus.Properties")
        }
        #expect(try get("Version") == .success([.variant(.string("1"))]))
        #expect(try get("Broken") == .failure(BusError("org.example.Error.No", "No.")))
    }
}
