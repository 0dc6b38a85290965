import Control
import Glibc
import JSON
import Linux
import Systemd
import Testing

/// org.greenroom on a private message bus, under the installed bus policy.
@Suite(
    "org.greenroom on the message bus", .enabled(if: PrivateBus.isPossible && geteuid() == 0, PrivateBus.requirement))
struct BusTests {
    private static let photos = TestDaemon.manifest("")

    @Test("the message bus and the private socket have the same objects")
    func sameObjects() throws {
        let stage = try BusStage(["photos": Self.photos, "org.example.Mail": Self.photos])
        let arguments = (path: ControlNames.managerPath, interface: "org.freedesktop.DBus.ObjectManager")
        let there = try stage.ask("GetManagedObjects", path: arguments.path, interface: arguments.interface).get()
        let here = try stage.daemon.bus.call(
            path: arguments.path, interface: arguments.interface, member: "GetManagedObjects")
        #expect(there == here)
        let paths = there.first?.arrayValue?.compactMap { entry -> String? in
            if case .entry(let path, _) = entry { path.stringValue } else { nil }
        }
        #expect(paths?.sorted() == [BusStage.path("org.example.Mail"), BusStage.path("photos")])
    }

    @Test("a request over the message bus is carried out, and each change is signalled once")
    func signals() throws {
        let stage = try BusStage(["photos": TestDaemon.manifest("", "[Lifecycle]\nLaunchDeadlineSec=1min", hangs: true)]
        )
        let answer = try stage.ask("Launch", [.string("photos"), .dictionary([])]) {
            // Only the last value of a turn is announced, so the app is ready only after the first one.
            try stage.serve("the first change") { !stage.changes(of: "State", in: "photos").isEmpty }
            try sendDatagram("READY=1", to: stage.daemon.notifySocket("photos"))
        }.get()
        #expect(answer.first?["outcome"] == .string("done"))
        #expect(answer.first?["state"] == .string("active"))
        try stage.serve("the last change") { stage.changes(of: "State", in: "photos").last == .string("active") }
        let pid = try stage.daemon.pid("photos")
        #expect(stage.changes(of: "Pid", in: "photos") == [.uint32(UInt32(pid))])
        #expect(stage.changes(of: "Foreground", in: "photos") == [.bool(true)])
        // The app becomes inactive and active in one turn of the loop: PropertiesChanged has the last value alone.
        #expect(stage.changes(of: "State", in: "photos") == [.string("launching"), .string("active")])
        let states = stage.signals(named: ControlNames.lifecycleEventSignal).compactMap {
            $0.arguments.first?["state"]?.stringValue
        }
        #expect(states == ["launching", "inactive", "active"])
        // Events for debugging are sent on the private socket alone.
        #expect(
            !stage.signals(named: ControlNames.lifecycleEventSignal).contains {
                $0.arguments.first?["kind"] == .string("deadlineStarted")
            })
        _ = try stage.ask("Terminate", [.bool(false)], path: BusStage.path("photos"), interface: "org.greenroom.App1")
        try stage.serve("the end") { stage.changes(of: "State", in: "photos").last == .string("notRunning") }
        #expect(stage.changes(of: "Pid", in: "photos").last == .uint32(0))
        #expect(stage.changes(of: "LastReceipt", in: "photos").last?.uintValue ?? 0 > 0)
    }

    @Test(
        "an interruption that is tied to its client ends when that leaves the message bus (L13)",
        .enabled(if: isInstalled("busctl"), "busctl is not installed"))
    func clientLeaves() throws {
        let stage = try BusStage(["photos": Self.photos])
        try stage.daemon.launch("photos")
        let answer = try stage.busctl(
            "call", ControlNames.busName, ControlNames.managerPath, ControlNames.managerInterface,
            "InterruptWhileConnected", "s", "photos")
        #expect(answer.text.contains("\"inactive\""), "\(answer.text)")
        try stage.daemon.waitForEvent("the interruption ends") { $0["reason"]?.stringValue == "interruptionEnded" }
        #expect(try stage.daemon.status("photos")["interruptions"]?.integerValue == 0)
    }

    @Test("an object is added and removed together with its manifest, on the message bus and on the private socket")
    func objectsComeAndGo() throws {
        let stage = try BusStage(["photos": Self.photos])
        let path = stage.daemon.config + "/apps/mail.app"
        try replaceFile(at: path, with: Array(Self.photos.utf8))
        _ = try stage.ask("Reload").get()
        try stage.serve("InterfacesAdded") { !stage.signals(named: "InterfacesAdded").isEmpty }
        let added = try #require(stage.signals(named: "InterfacesAdded").first)
        #expect(added.path == ControlNames.managerPath)
        #expect(added.arguments.first == .objectPath(BusStage.path("mail")))
        // The signal has the same properties as GetAll.
        let all = try stage.ask(
            "GetAll", [.string(ControlNames.appInterface)], path: BusStage.path("mail"),
            interface: "org.freedesktop.DBus.Properties"
        ).get()
        let signalled = added.arguments[1].arrayValue?.last
        #expect(signalled == .entry(.string(ControlNames.appInterface), all[0]))
        unlink(path)
        _ = try stage.ask("Reload").get()
        try stage.serve("InterfacesRemoved") { !stage.signals(named: "InterfacesRemoved").isEmpty }
        #expect(stage.signals(named: "InterfacesRemoved").first?.arguments.first == .objectPath(BusStage.path("mail")))
        let here = try ["InterfacesAdded", "InterfacesRemoved"].map { name in
            while let signal = try stage.daemon.bus.nextSignal(until: EventLoop.now() + .seconds(60)) {
                if signal.member == name { return signal.arguments }
            }
            throw TestFailure("no \(name) on the private socket")
        }
        #expect(here[0] == added.arguments)
        #expect(here[1] == stage.signals(named: "InterfacesRemoved").first?.arguments)
    }

    @Test("after a restart of the message bus the daemon reconnects, and its apps are unaffected")
    func restart() throws {
        let stage = try BusStage(["photos": Self.photos])
        try stage.daemon.launch("photos")
        let pid = try stage.daemon.pid("photos")
        stage.bus.stop()
        #expect(try stage.daemon.state("photos") == "active")
        try stage.bus.start()
        let back = try BusPeer(loop: stage.loop, busAddress: stage.bus.address)
        var answer: Variant?
        try stage.serve("org.greenroom on the new bus") {
            if back.isReady, answer == nil {
                // The daemon acquires the name after it has connected.
                back.callDaemon("GetNameOwner", [.string(ControlNames.busName)]) { answer = (try? $0.get())?.first }
            }
            return answer != nil
        }
        #expect(try stage.daemon.pid("photos") == pid)
    }

    @Test("if another program owns the name, the daemon queues for it, logs a warning and serves the private socket")
    func nameTaken() throws {
        let first = try BusStage(["photos": Self.photos])
        let root = try TestDaemon.makeFolder()
        symlink(first.root + "/system-bus", root + "/system-bus")
        let second = try TestDaemon(["mail": Self.photos], root: root)
        #expect(try second.state("mail") == "notRunning")
        try first.serve("the warning") {
            TestDaemon.text(of: root + "/log").contains("Another program owns the bus name org.greenroom")
        }
        first.daemon.stop()
        try first.serve("the second daemon owns the name") {
            TestDaemon.text(of: root + "/log").contains("Acquired the bus name org.greenroom.")
        }
    }

    @Test(
        "busctl, gdbus and Python read properties, call methods and receive errors by name",
        .enabled(if: isInstalled("busctl") && isInstalled("gdbus"), "busctl or gdbus is not installed"))
    func realClients() throws {
        let stage = try BusStage(["photos": Self.photos])
        let state = try stage.busctl(
            "get-property", ControlNames.busName, BusStage.path("photos"), ControlNames.appInterface, "State")
        #expect(state.text == "s \"notRunning\"\n")
        let launched = try stage.busctl(
            "--json=short", "call", ControlNames.busName, BusStage.path("photos"), ControlNames.appInterface, "Launch",
            "a{sv}", "0")
        #expect(launched.text.contains(#""state":{"type":"s","data":"active"}"#), "\(launched.text)")
        let tree = try stage.busctl("tree", ControlNames.busName)
        #expect(tree.text.contains("/org/greenroom/app/photos"), "\(tree.text)")
        let unknown = try stage.run([
            "gdbus", "call", "--system", "--dest", ControlNames.busName, "--object-path", ControlNames.managerPath,
            "--method", "org.greenroom.Manager1.Activate", "photo",
        ])
        #expect(unknown.status == 1)
        #expect(
            unknown.text.contains("org.greenroom.Error.UnknownApp: There is no app 'photo'. Did you mean 'photos'?"))
        let script = """
            import dbus
            bus = dbus.SystemBus()
            manager = bus.get_object('org.greenroom', '/org/greenroom')
            objects = manager.GetManagedObjects(dbus_interface='org.freedesktop.DBus.ObjectManager')
            print(objects['/org/greenroom/app/photos']['org.greenroom.App1']['State'])
            result = manager.Terminate('photos', False, dbus_interface='org.greenroom.Manager1')
            print(result['outcome'], result['lastReceipt']['signal'])
            """
        guard try stage.run(["python3", "-c", "import dbus"]).status == 0 else {
            print("skipped: Python has no dbus module (Debian: python3-dbus)")
            return
        }
        let python = try stage.run(["python3", "-c", script])
        #expect(python.text == "active\nended 15\n", "\(python.text)")
    }
}
