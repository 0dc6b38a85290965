import Glibc
import Posix
import Systemd
import Testing

@Suite("A place on a bus", .serialized, .enabled(if: PrivateBus.isPossible, PrivateBus.whyNot))
struct MessageBusTests {
    @Test("objects are served under the name, with the caller's user known")
    func serves() throws {
        let stage = try BusStage(PrivateBus())
        try stage.settle()
        let client = try stage.client()
        // A method of the owner's: the caller's credentials are asked for on the way.
        #expect(try stage.ask(client, "Echo", [.variant(.int32(7))]).get() == [.variant(.int32(7))])
        #expect(stage.names == [.owned])
        #expect(stage.ups == 1)
    }

    @Test("signals, changed properties and new objects reach who listens for them")
    func signals() throws {
        let stage = try BusStage(PrivateBus())
        try stage.settle()
        let client = try stage.client()
        var seen: [BusSignal] = []
        client.onSignal = { seen.append($0) }
        client.addMatch("type='signal',path_namespace='\(Exhibit.path)'")
        // The rule is in place when what is asked for after it is answered.
        _ = try stage.ask(client, "Echo", [.variant(.bool(true))])
        let path = Exhibit.appPrefix + "/mail"
        try stage.place.peer?.emitSignal(
            path: Exhibit.path, interface: Exhibit.manager, member: "Changed", [.string("mail"), .uint32(7)])
        try stage.place.peer?.emitPropertiesChanged(path: path, interface: Exhibit.app, ["State"])
        try stage.place.peer?.emitObjectAdded(path: path)
        let mine = { seen.filter { $0.path.hasPrefix(Exhibit.path) } }
        #expect(try stage.loop.serve { mine().count == 3 })
        #expect(mine().map(\.member) == ["Changed", "PropertiesChanged", "InterfacesAdded"])
    }

    @Test("a bus that comes late, goes and comes back is joined each time, and nothing waits for it")
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
            #expect(stage.place.peer == nil)
        }
        #expect(stage.names == [.owned, .owned, .owned])
    }

    @Test("while there is no socket, nothing looks for it again and again")
    func idle() throws {
        let stage = try BusStage(PrivateBus(isRunning: false))
        while try stage.loop.runOnce(timeout: .zero) {}
        #expect(!stage.place.isRetrying)
        #expect(stage.downs.isEmpty)
    }

    @Test("an address that is none is told of once, and tried again later and later")
    func badAddress() throws {
        let loop = try EventLoop()
        let place = try MessageBus(loop: loop, address: "nonsense", name: Exhibit.name, objects: Exhibit().objects())
        var downs = 0
        place.onDown = { _ in downs += 1 }
        place.connect()
        #expect(place.isRetrying)
        try loop.runOnce(timeout: patience)
        #expect(place.isRetrying)
        #expect(downs == 1)
    }

    @Test("a bus that accepts and says nothing holds up nobody")
    func silentBus() throws {
        let folder = try TemporaryFolder()
        let listener = SharedDescriptor(try UnixSocket.listen(at: folder.path + "/bus", mode: 0o600))
        defer { withExtendedLifetime(listener) {} }
        let loop = try EventLoop()
        let place = try MessageBus(
            loop: loop, address: BusAddress.unix(path: folder.path + "/bus"), name: Exhibit.name,
            objects: Exhibit().objects())
        place.connect()
        var isServed = false
        loop.callLater { isServed = true }
        #expect(try loop.serve { isServed })
        while try loop.runOnce(timeout: .zero) {}
        #expect(place.peer == nil)
    }

    @Test("who comes second waits in line for the name, and has it when the first goes")
    func nameTaken() throws {
        let first = try BusStage(PrivateBus())
        try first.settle()
        let second = try BusStage(first.bus, loop: first.loop)
        #expect(try second.loop.serve { second.place.nameState != nil })
        #expect(second.names == [.waiting])
        first.place.peer?.close(reason: "the end of the first")
        #expect(try second.loop.serve { second.place.nameState == .owned })
        #expect(second.names == [.waiting, .owned])
    }

    @Test("a name that the bus does not let us have is refused in its words")
    func nameRefused() throws {
        let stage = try BusStage(PrivateBus(), name: "org.example.Forbidden")
        #expect(try stage.loop.serve { !stage.names.isEmpty })
        guard case .refused(let error) = stage.names.first else { throw BusTests.Missing() }
        #expect(error.name == "org.freedesktop.DBus.Error.AccessDenied")
        #expect(stage.place.peer != nil)
    }

    @Test("when the caller leaves the bus, its waiting call is told; of others it is not")
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

    @Test("a caller that is gone before anybody watches it is told of too")
    func callerGoneAtOnce() throws {
        let stage = try BusStage(PrivateBus())
        try stage.settle()
        let client = try stage.client()
        try client.call(
            Exhibit.name, path: Exhibit.path, interface: Exhibit.manager, member: "Later", timeout: nil
        ) { _ in }
        #expect(try stage.loop.serve { stage.exhibit.waiting.count == 1 })
        // The rule has been sent but not answered: this overtakes nothing, but is dealt with before the answer is read.
        client.close()
        #expect(try stage.loop.serve { stage.exhibit.goneWhileWaiting == 1 })
    }

    @Test("a message larger than we take costs its sender an error, and others nothing")
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
