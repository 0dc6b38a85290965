import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// Apps that come back after jetsam, and the home app, as real processes.
@Suite("Coming back after jetsam, with real processes")
struct ReturnTests {
    @Test("the app of a kiosk is ended for memory, waits until there is space, and comes back (L11, L39)")
    func kiosk() throws {
        let root = try TestDaemon.makeFolder()
        let script = """
            #!/bin/sh
            echo "$GREENROOM_LAUNCH_REASON $GREENROOM_LAUNCH_STATE $GREENROOM_LAST_RECEIPT" >>\(root)/launches
            exec \(TestDaemon.app) allocate \(60 << 20) ready

            """
        try replaceFile(at: root + "/kiosk", with: Array(script.utf8), mode: 0o755)
        let kiosk = """
            [App]
            Type=notify
            ExecStart=\(root)/kiosk
            Relaunch=always
            [Lifecycle]
            SuspendDelaySec=0

            """
        let daemon = try TestDaemon(
            ["kiosk": kiosk, "guest": TestDaemon.manifest("allocate \(50 << 20)")],
            configuration: "[Memory]\nBudget=100M\n", root: root)
        try daemon.launch("kiosk")
        try daemon.launch("guest")
        let wait = try daemon.wait("kiosk", "memoryAwaited")
        #expect(wait["memoryBytes"]?.integerValue ?? 0 > 60 << 20, "\(wait)")
        #expect(try daemon.receipts("kiosk").map { $0["namespace"]?.stringValue } == ["jetsam"])
        let status = try daemon.status("kiosk")
        #expect(status["state"]?.stringValue == "notRunning")
        #expect(status["memoryAwaitedBytes"]?.integerValue == wait["memoryBytes"]?.integerValue, "\(status)")
        #expect(TestDaemon.text(of: root + "/log").contains("kiosk: waits for 6"))
        try daemon.terminate("guest")
        try daemon.waitUntil("kiosk", is: "suspended")
        let launches = TestDaemon.text(of: root + "/launches").split(separator: "\n")
        #expect(launches.map { $0.prefix { $0 != "/" } } == ["user inactive ", "relaunch background "], "\(launches)")
        #expect(launches.last?.hasSuffix("/last/kiosk.json") == true, "\(launches)")
        #expect(try daemon.status("kiosk")["memoryAwaitedBytes"] == nil)
        #expect(try daemon.receipts("guest").map { $0["namespace"]?.stringValue } != ["jetsam"])
    }

    @Test("twenty apps with LaunchAtStart= that a shortage ended all come back after it (L11)")
    func workers() throws {
        let names = (0..<20).map { "worker-\($0)" }
        let text = TestDaemon.manifest("", app: "LaunchAtStart=background", "[Lifecycle]\nSuspendDelaySec=0")
        let daemon = try TestDaemon(Dictionary(uniqueKeysWithValues: names.map { ($0, text) }))
        for name in names { try daemon.waitUntil(name, is: "suspended") }
        try daemon.eventually("all are ended for memory") {
            _ = try daemon.call("SimulatePressure", [.string("critical")])
            return try names.allSatisfy { try daemon.state($0) == "notRunning" }
        }
        _ = try daemon.call("SimulatePressure", [.string("normal")])
        for name in names { try daemon.waitUntil(name, is: "suspended") }
        for name in names {
            #expect(try daemon.receipts(name).map { $0["namespace"]?.stringValue } == ["jetsam"], "\(name)")
            #expect(try daemon.status(name)["launches"]?.integerValue == 2, "\(name)")
        }
    }

    @Test("when the app in the foreground ends, the home app is active, also after jetsam (L49)")
    func home() throws {
        let daemon = try TestDaemon([
            "home": TestDaemon.manifest(
                "", app: "Role=home\nLaunchAtStart=foreground", "[Lifecycle]\nSuspendDelaySec=0"),
            "front": TestDaemon.manifest(""),
        ])
        try daemon.waitUntil("home", is: "active")
        try daemon.launch("front")
        try daemon.waitUntil("home", is: "suspended")
        kill(try daemon.pid("front"), SIGKILL)
        try daemon.waitUntil("home", is: "active")
        try daemon.launch("front")
        try daemon.waitUntil("home", is: "suspended")
        #expect(JSONText.of(try daemon.call("SimulatePressure", [.string("critical")]), "victim") == "home")
        try daemon.wait("home", "stateChanged", state: "notRunning")
        try daemon.terminate("front")
        #expect(try daemon.state("home") == "notRunning")
        _ = try daemon.call("SimulatePressure", [.string("normal")])
        try daemon.waitUntil("home", is: "active")
        #expect(try daemon.state("front") == "notRunning")
    }

    @Test("of two apps with Role=home the second one causes a warning, and is an ordinary app (L49)")
    func twoHomes() throws {
        let daemon = try TestDaemon([
            "beta": TestDaemon.manifest("", app: "Role=home"), "alpha": TestDaemon.manifest("", app: "Role=home"),
            "front": TestDaemon.manifest(""),
        ])
        #expect(
            TestDaemon.text(of: daemon.root + "/log").contains(
                "Role=home: several apps have it; alpha is the home app, the others are ordinary apps: beta"))
        try daemon.launch("front")
        try daemon.terminate("front")
        try daemon.waitUntil("alpha", is: "active")
        #expect(try daemon.state("beta") == "notRunning")
    }
}
