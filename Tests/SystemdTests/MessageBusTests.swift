import Glibc
import Posix
import Systemd
import Testing

@Suite("Lasting connection to a message bus", .serialized, .enabled(if: PrivateBus.isPossible, PrivateBus.requirement))
struct MessageBusTests {
    @Test("objects are served under the bus name, and the caller's user is known")
    func serves() throws {
        let stage = try BusStage(PrivateBus())
        try stage.settle()
        let client = try stage.client()
        // A method with access `owner`: the caller's credentials are requested first.
        #expect(try stage.ask(client, "Echo", [.variant(.int32(7))]).get() == [.variant(.int32(7))])
        #expect(stage.names == [.owned])
        #expect(stage.ups == 1)
    }

    @Test("signals, changed properties and new objects reach the clients that match them")
    func signals() throws {
        let stage = try BusStage(PrivateBus())
        try stage.settle()
        let client = try stage.client()
        var seen: [BusSignal] = []
        client.onSignal = { seen.append($0) }
        client.addMatch("type='signal',path_namespace='\(Exhibit.path)'")
        // The match rule is added before the answer to a later call arrives.
        _ = try stage.ask(client, "Echo", [.variant(.bool(true))])
        let path = Exhibit.appPrefix + "/mail"
        try stage.messageBus.peer?.emitSignal(
            path: Exhibit.path, interface: Exhibit.manager, member: "Changed", [.string("mail"), .uint32(7)])
        try stage.messageBus.peer?.emitPropertiesChanged(path: path, interface: Exhibit.app, ["State"])
        try stage.messageBus.peer?.emitObjectAdded(path: path)
        let mine = { seen.filter { $0.path.hasPrefix(Exhibit.path) } }
        #expect(try stage.loop.serve { mine().count == 3 })
        #expect(mine().map(\.member) == ["Changed", "PropertiesChanged", "InterfacesAdded"])
    }

    @Test("the connection is established each time the bus starts, late or again, and nothing blocks")
    func comesAndGoes() throws {
        let bus = try PrivateBus(isRunning: false)
        let stage = try BusStage(bus)
        var isServed = false
        stage.loop.callLater { isServed = true }
        #expect(try stage.loop.serve { isServed })
        #expect(stage.ups == 0)
        for round in 1...3 {
            try bus.start()
            try stage.settle()
            #expect(stage.ups == round)
            bus.stop()
            #expect(try stage.loop.serve { stage.downs.count == round })
            #expect(stage.messageBus.peer == nil)
        }
        #expect(stage.names == [.owned, .owned, .owned])
    }

    @Test("while the socket does not exist, nothing polls for it")
    func idle() throws {
        let stage = try BusStage(PrivateBus(isRunning: false))
        while try stage.loop.runOnce(timeout: .zero) {}
        #expect(!stage.messageBus.isRetrying)
        #expect(stage.downs.isEmpty)
    }

    @Test("an invalid address is reported once, and retried at growing intervals")
    func badAddress() throws {
        let loop = try EventLoop()
        let messageBus = try MessageBus(
            loop: loop, address: "nonsense", name: Exhibit.name, objects: Exhibit().objects())
        var downs = 0
        messageBus.onDown = { _ in downs += 1 }
        messageBus.connect()
        #expect(messageBus.isRetrying)
        try loop.runOnce(timeout: testTimeout)
        #expect(messageBus.isRetrying)
        #expect(downs == 1)
    }

    @Test("a bus that accepts the connection and does not answer does not block the loop")
    func silentBus() throws {
        let folder = try TemporaryFolder()
        let listener = SharedDescriptor(try UnixSocket.listen(at: folder.path + "/bus", mode: 0o600))
        defer { withExtendedLifetime(listener) {} }
        let loop = try EventLoop()
        let messageBus = try MessageBus(
            loop: loop, address: BusAddress.unix(path: folder.path + "/bus"), name: Exhibit.name,
            objects: Exhibit().objects())
        messageBus.connect()
        var isServed = false
        loop.callLater { isServed = true }
        #expect(try loop.serve { isServed })
        while try loop.runOnce(timeout: .zero) {}
        #expect(messageBus.peer == nil)
    }

    @Test("the second program is queued for the name, and owns it when the first disconnects")
    func nameTaken() throws {
        let first = try BusStage(PrivateBus())
        try first.settle()
        let second = try BusStage(first.bus, loop: first.loop)
        #expect(try second.loop.serve { second.messageBus.nameState != nil })
        #expect(second.names == [.waiting])
        first.messageBus.peer?.close(reason: "the first has ended")
        #expect(try second.loop.serve { second.messageBus.nameState == .owned })
        #expect(second.names == [.waiting, .owned])
    }

    @Test("a name that the bus refuses is reported with its error")
    func nameRefused() throws {
        let stage = try BusStage(PrivateBus(), name: "org.example.Forbidden")
        #expect(try stage.loop.serve { !stage.names.isEmpty })
        guard case .refused(let error) = stage.names.first else { throw BusTests.Missing() }
        #expect(error.name == "org.freedesktop.DBus.Error.AccessDenied")
        #expect(stage.messageBus.peer != nil)
    }

    @Test("when a caller leaves the bus, the handler of its waiting call is called, and no other")
    func callerGone() throws {
        let stage = try BusStage(PrivateBus())
        try stage.settle()
        let patient = try stage.client()
        let hasty = try stage.client()
        for client in [patient, hasty] {
            try client.call(
                Exhibit.name, path: Exhibit.path, interface: Exhibit.manager, member: "Later", timeout: nil
            ) { _ in }
        }
        #expect(try stage.loop.serve { stage.exhibit.waiting.count == 2 })
        hasty.close()
        #expect(try stage.loop.serve { stage.exhibit.goneWhileWaiting == 1 })
        _ = try stage.ask(patient, "Echo", [.variant(.bool(true))])
        #expect(stage.exhibit.goneWhileWaiting == 1)
        for call in stage.exhibit.waiting { call.reply() }
    }

    @Test("a caller that leaves the bus before it is watched is detected too")
    func callerGoneAtOnce() throws {
        let stage = try BusStage(PrivateBus())
        try stage.settle()
        let client = try stage.client()
        try client.call(
            Exhibit.name, path: Exhibit.path, interface: Exhibit.manager, member: "Later", timeout: nil
        ) { _ in }
        #expect(try stage.loop.serve { stage.exhibit.waiting.count == 1 })
        // The caller leaves after the match rule was sent, and before the bus daemon's answer is read.
        client.close()
        #expect(try stage.loop.serve { stage.exhibit.goneWhileWaiting == 1 })
    }

    @Test("a message larger than the limit is answered with an error, and other callers are not affected")
    func largeMessage() throws {
        let stage = try BusStage(PrivateBus())
        try stage.settle()
        let client = try stage.client()
        let large = Variant.variant(.bytes([UInt8](repeating: 1, count: 9 << 20)))
        guard case .failure(let error) = try stage.ask(client, "Echo", [large]) else { throw BusTests.Missing() }
        #expect(error.name == "org.freedesktop.DBus.Error.LimitsExceeded")
        #expect(stage.downs.isEmpty)
    }

    @Test(
        "busctl and gdbus find the name, the objects and their interfaces",
        .enabled(if: isInstalled("busctl") && isInstalled("gdbus"), "busctl or gdbus is not installed"))
    func realClients() throws {
        let stage = try BusStage(PrivateBus())
        try stage.settle()
        let address = "--address=\(stage.bus.address)"
        let pair = try stage.loop.run(["busctl", address, "call", Exhibit.name, Exhibit.path, Exhibit.manager, "Who"])
        #expect(pair.status == 0, "\(pair.text)")
        let tree = try stage.loop.run(["busctl", address, "--no-pager", "tree", Exhibit.name])
        #expect(tree.text.contains("\(Exhibit.appPrefix)/mail"), "\(tree.text)")
        let gdbus = try stage.loop.run([
            "gdbus", "call", "--address", stage.bus.address, "--dest", Exhibit.name, "--object-path", Exhibit.path,
            "--method", Exhibit.manager + ".Echo", "<'hello'>",
        ])
        #expect(gdbus.text == "(<'hello'>,)\n", "\(gdbus.text)")
    }
}
