import Control
import Glibc
import JSON
import Systemd
import Testing

@Suite("An app's properties")
struct PropertyTests {
    private let path = ObjectPath.encode("app", below: ControlNames.appPrefix)

    private func value(_ name: String, _ daemon: TestDaemon) throws -> Variant {
        try daemon.bus.property(path: path, interface: ControlNames.appInterface, name)
    }

    @Test("the properties of an app equal its status while it runs, while it is suspended and after its end")
    func agreeWithStatus() throws {
        let daemon = try TestDaemon([
            "app": TestDaemon.manifest("background=answer", "[Lifecycle]\nSuspendDelaySec=0")
        ])
        try check(daemon, running: false)
        try daemon.launch("app")
        try check(daemon, running: true)
        try daemon.ask("Background", "app")
        try daemon.waitUntil("app", is: "suspended")
        try check(daemon, running: true)
        // The app is frozen, so its size does not change.
        let memory = try #require(daemon.status("app")["memoryBytes"]?.integerValue)
        #expect(try value("MemoryBytes", daemon).intValue == memory)
        #expect(memory > 0)
        try daemon.terminate("app")
        try check(daemon, running: false)
    }

    private func check(_ daemon: TestDaemon, running: Bool) throws {
        let status = try daemon.status("app")
        #expect(try value("Id", daemon).stringValue == "app")
        #expect(try value("State", daemon).stringValue == status["state"]?.stringValue)
        #expect(try value("Pid", daemon).intValue == status["pid"]?.integerValue ?? 0)
        #expect(try (value("Pid", daemon).intValue != 0) == running)
        #expect(try value("Foreground", daemon).boolValue == status["foreground"]?.boolValue)
        #expect(try value("Launches", daemon).intValue == status["launches"]?.integerValue)
    }

    @Test("PropertiesChanged contains the state, the pid and whether the app is in the foreground")
    func changesAreSignalled() throws {
        let daemon = try TestDaemon(["app": TestDaemon.manifest("background=answer")])
        try daemon.launch("app")
        let pid = try daemon.pid("app")
        // The last signal does not contain what did not change.
        var known: [String: JSONValue] = [:]
        while known["State"]?.stringValue != "active" {
            let signal = try #require(try daemon.bus.nextSignal(until: EventLoop.now() + .seconds(60)))
            guard signal.member == "PropertiesChanged", signal.path == path else { continue }
            #expect(signal.arguments[0].stringValue == ControlNames.appInterface)
            let changed = JSONValue(signal.arguments[1])
            for name in ["State", "Pid", "Foreground"] where changed[name] != nil { known[name] = changed[name] }
        }
        #expect(known["Pid"]?.integerValue == Int64(pid))
        #expect(known["Foreground"]?.boolValue == true)
    }

    @Test(
        "an app may be shown once it has finished its launch into the foreground, and gets input while it is active (L55)"
    )
    func presentation() throws {
        // It does not say itself that it is ready.
        let daemon = try TestDaemon([
            "app": TestDaemon.manifest(
                "",
                "[App]\nSeat=seat1\nWindowAppID=org.example.App\n[Lifecycle]\nNotices=alert\nLaunchDeadlineSec=1min",
                hangs: true)
        ])
        func check(_ visible: Bool, _ input: Bool, launch: String = "") throws {
            #expect(try value("Visible", daemon).boolValue == visible)
            #expect(try value("ReceivesInput", daemon).boolValue == input)
            #expect(try value("LaunchState", daemon).stringValue == launch)
        }
        #expect(try value("NoticeStyle", daemon).stringValue == "alert")
        #expect(try value("WindowAppID", daemon).stringValue == "org.example.App")
        #expect(try value("Seat", daemon).stringValue == "seat1")
        try check(false, false)
        let launch = try daemon.begin("Launch", "app")
        try daemon.eventually("it is being launched") { try daemon.state("app") == "launching" }
        try check(false, false, launch: "inactive")
        try daemon.eventually("it has a socket") { (try? daemon.sendMessage("READY=1")) != nil }
        _ = try daemon.finish(launch)
        try check(true, true)
        let pid = UInt32(try daemon.pid("app"))
        #expect(try daemon.call("GetAppByPID", [.uint32(pid)]) == [.string("app")])
        for other in [0, UInt32(getpid()), .max] {
            #expect(daemon.failure("GetAppByPID", [.uint32(other)]) == "UnknownApp")
        }
        try daemon.ask("Interrupt", "app")
        try check(true, false)
        try daemon.ask("Resume", "app")
        try daemon.ask("Background", "app")
        try check(false, false)
        try daemon.terminate("app")
        let background = try daemon.begin("Launch", "app", [.dictionary([("background", .bool(true))])])
        try daemon.eventually("it is being launched") { try daemon.state("app") == "launching" }
        try check(false, false, launch: "background")
        try daemon.eventually("it has a socket") { (try? daemon.sendMessage("READY=1")) != nil }
        _ = try daemon.finish(background)
        try check(false, false)
    }
}
