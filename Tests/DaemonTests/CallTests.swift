import Glibc
import JSON
import Systemd
import Testing

/// The calls of ModemManager: the mode of the dialer (L28), and interruptions (L13).
@Suite("Calls", .enabled(if: PrivateBus.isPossible && geteuid() == 0, PrivateBus.requirement))
struct CallTests {
    private static let dialer = TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=0\nBackgroundModes=call\n")

    private static func callsBegan(_ stage: BusStage) -> Int {
        TestDaemon.text(of: stage.root + "/log").split(separator: "\n").count {
            $0.hasSuffix("phone: mode 'call' began")
        }
    }

    @Test("the app that Dialer= names is in the mode call while ModemManager has a call, and is woken for it (L28)")
    func mode() throws {
        let stage = try BusStage(
            ["phone": Self.dialer, "other": Self.dialer], configuration: "[Manager]\nDialer=phone\nForegroundLimit=2\n")
        let daemon = stage.daemon
        for app in ["phone", "other"] {
            try daemon.launch(app)
            try daemon.ask("Background", app)
            try daemon.waitUntil(app, is: "suspended")
        }
        let modem = try FakeModem(stage)
        try modem.set(1, .ringingIn)
        try stage.serve("it is woken") { try daemon.state("phone") == "background" }
        try stage.serve("it is awake for it") {
            try daemon.status("phone")["awake"]?.arrayValue?.first?["explanation"]?.stringValue
                == "it is in a call, as ModemManager or greenroom-session reports (BackgroundModes=call)"
        }
        #expect(try daemon.state("other") == "suspended")
        // Another one waits while the first is active, and the first one ends.
        try modem.set(1, .active)
        try modem.set(2, .waiting)
        try modem.set(1, .terminated)
        try modem.set(2, .active)
        try modem.set(1, nil)
        #expect(try daemon.state("phone") == "background")
        // One without a call, and then the one with it.
        try modem.unplug()
        try modem.unplug(2)
        try stage.serve("it is suspended") { try daemon.state("phone") == "suspended" }
        #expect(Self.callsBegan(stage) == 1)
    }

    @Test("with Interruptions=calls the active app is interrupted from the first call to the end of the last (L13)")
    func interruption() throws {
        let app = TestDaemon.manifest("")
        let stage = try BusStage(
            ["phone": Self.dialer, "game": app, "book": app],
            configuration: "[Manager]\nDialer=phone\nInterruptions=calls\nForegroundLimit=3\n")
        let daemon = stage.daemon
        for app in ["phone", "game"] { try daemon.launch(app) }
        // ModemManager is started while there is a call.
        let modem = try FakeModem(stage, calls: [(1, .ringingIn)])
        try stage.serve("the game is interrupted") { try daemon.state("game") == "inactive" }
        #expect(try daemon.state("phone") == "active")
        // An app that the user activates meanwhile is not interrupted.
        try daemon.launch("book")
        #expect(try daemon.state("book") == "active")
        try modem.set(2, .waiting)
        try modem.set(1, .terminated)
        try stage.serve("the second call is read") { modem.reads > 1 }
        try modem.set(2, nil)
        try stage.serve("the game is active again") { try daemon.state("game") == "active" }
        #expect(try daemon.status("phone")["modes"] == nil)
        // There was no moment without a call.
        #expect(Self.callsBegan(stage) == 1)
    }
}
