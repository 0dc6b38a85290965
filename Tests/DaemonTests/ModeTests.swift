import Control
import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// What keeps real processes awake for as long as it lasts (L28).
@Suite("Background modes")
struct ModeTests {
    private static let manifest = TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=0\nBackgroundModes=audio call")

    @Test("an app stays awake while it is in a mode, and is suspended when it ends it (L28)")
    func message() throws {
        let daemon = try TestDaemon(["player": Self.manifest])
        try daemon.launch("player")
        try daemon.sendMessage("X_GREENROOM_BEGIN_MODE=audio")
        try daemon.wait("player", "modeBegan")
        _ = try daemon.call("Background", [.string("player")])
        let awake = try daemon.status("player")["awake"]?.arrayValue
        #expect(awake?.map { $0["reason"]?.stringValue } == ["mode"])
        #expect(awake?.first?["explanation"]?.stringValue == "it is in the mode 'audio' (BackgroundModes=)")
        // The next daemon knows it.
        daemon.crash()
        let next = try daemon.successor()
        #expect(try next.status("player")["awake"]?.arrayValue?.first?["detail"]?.stringValue == "audio")
        try next.sendMessage("X_GREENROOM_END_MODE=audio")
        try next.waitUntil("player", is: "suspended")
    }

    @Test(
        "a mode that the manifest does not declare is refused with a sentence",
        arguments: ["recording", "push", "sleep"])
    func refused(mode: String) throws {
        let daemon = try TestDaemon(["player": Self.manifest])
        try daemon.launch("player")
        try daemon.sendMessage("X_GREENROOM_BEGIN_MODE=\(mode)")
        let reason =
            switch mode {
            case "recording": "its manifest does not declare BackgroundModes=recording, or the app is about to end"
            case "push": "the daemon begins this mode with a wake; an app can begin audio, recording"
            default: "expected one of audio, recording, call, location, accessory, processing"
            }
        try daemon.eventually("the warning") {
            try daemon.status("player")["lastWarning"]?.stringValue?.contains(reason) ?? false
        }
        _ = try daemon.call("Background", [.string("player")])
        try daemon.waitUntil("player", is: "suspended")
    }

    @Test("a connection of an app begins and ends modes, and gets the reason why one is refused")
    func connection() throws {
        let stage = try SelfStage("SuspendDelaySec=0\nBackgroundModes=call\n")
        let client = try stage.active()
        try client.call("BeginMode", [.string("call")])
        try client.call("BeginMode", [.string("call")])
        let status = try stage.daemon.status("mail")
        #expect(status["modes"]?.arrayValue?.compactMap(\.stringValue) == ["call"])
        #expect(
            client.failure("BeginMode", [.string("audio")])?.sentence.contains(
                "the mode audio is refused: its manifest does not declare BackgroundModes=audio") == true)
        #expect(client.failure("BeginMode", [.string("x")])?.sentence.contains("there is no mode 'x'") == true)
        try client.call("EndMode", [.string("call")])
        #expect(try stage.daemon.status("mail")["modes"] == nil)
    }

    @Test(
        "an app of which a process holds an inhibitor of logind is not suspended (L28)",
        .enabled(if: PrivateBus.isPossible && geteuid() == 0, PrivateBus.requirement))
    func inhibitor() throws {
        let stage = try BusStage(["backup": TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=0")])
        let logind = try FakeLogind(stage)
        try stage.daemon.launch("backup")
        let pid = try stage.daemon.pid("backup")
        // A delay inhibitor only asks for a notification, and others are not the app's.
        try logind.setInhibitors([("sleep", "delay", pid), ("idle:sleep", "block", pid), ("idle", "block", getpid())])
        func awake() throws -> JSONValue? { try stage.daemon.status("backup")["awake"]?.arrayValue?.first }
        _ = try stage.daemon.call("Background", [.string("backup")])
        try stage.serve("it is awake for it") { try awake()?["reason"]?.stringValue == "inhibitor" }
        #expect(
            try awake()?["explanation"]?.stringValue
                == "a process of it holds an inhibitor of logind: idle sleep, by backup: copies files")
        #expect(try stage.daemon.state("backup") == "background")
        try logind.setInhibitors([("sleep", "delay", pid)])
        try stage.serve("it is suspended") { try stage.daemon.state("backup") == "suspended" }
        // Also of a suspended app: it was taken just before the freeze.
        try logind.setInhibitors([("shutdown", "block", pid)])
        try stage.serve("it is awake again") { try stage.daemon.state("backup") == "background" }
        // A logind that ends takes them along, unless it comes back.
        try logind.setInhibitors([])
        try stage.serve("it is suspended again") { try stage.daemon.state("backup") == "suspended" }
    }

    /// Holds /dev/full open from the start, or once the file `opened` exists, until the file `closed` does.
    private static func holder(_ root: String, isLate: Bool = false, _ lifecycle: String) -> String {
        func wait(_ name: String) -> String { "while [ ! -e \(root)/\(name) ]; do sleep 0.1; done" }
        let begin = isLate ? wait("opened") + "; " : ""
        return
            "[App]\nStartupSec=0\nExecStart=/bin/sh -c '\(begin)exec 5</dev/full; \(wait("closed")); exec 5<&-; exec sleep 1000'\n"
            + "[Lifecycle]\n\(lifecycle)"
    }

    @Test(
        "an app with BackgroundModes=accessory stays awake while a process of it has an accessory open (L28)",
        .enabled(if: geteuid() == 0, "needs a file system of its own"))
    func accessory() throws {
        let root = try TestDaemon.makeFolder()
        // A kernel to which /dev/full is a device of the subsystem hidraw.
        try createDirectories(at: root + "/char/1:7")
        #expect(symlink("../../class/hidraw", root + "/char/1:7/subsystem") == 0)
        let modes = "BackgroundModes=accessory\n"
        let daemon = try TestDaemon(
            [
                "pad": Self.holder(root, "SuspendDelaySec=0\n" + modes),
                "late": Self.holder(root, isLate: true, "SuspendDelaySec=10s\n" + modes),
                "exits": Self.holder(root, "SuspendDelaySec=10s\nExitsOnSuspend=yes\n" + modes),
                "other": Self.holder(root, "SuspendDelaySec=0\nBackgroundModes=audio\n"),
            ], configuration: "[Manager]\nForegroundLimit=4\n", root: root,
            wrapper: [
                "/usr/bin/unshare", "--mount", "/bin/sh", "-c",
                "mount --bind \(root)/char /sys/dev/char && exec \"$@\"", "sh",
            ])
        let holders = ["pad", "late", "exits"]
        for app in holders + ["other"] { try daemon.launch(app) }
        for app in ["pad", "exits", "other"] {
            try daemon.eventually("the device is open") { access("/proc/\(try daemon.pid(app))/fd/5", F_OK) == 0 }
        }
        for app in holders + ["other"] { _ = try daemon.ask("Background", app) }
        try replaceFile(at: root + "/opened", with: [])
        // The mode is not declared.
        try daemon.waitUntil("other", is: "suspended")
        func isAwake(_ daemon: TestDaemon, _ app: String) throws -> Bool {
            let status = try daemon.status(app)
            return status["state"]?.stringValue == "background"
                && status["awake"]?.arrayValue?.first?["explanation"]?.stringValue
                    == "it has an accessory open (BackgroundModes=accessory)"
        }
        for app in holders { try daemon.eventually("\(app) is awake for it") { try isAwake(daemon, app) } }
        daemon.crash()
        let next = try daemon.successor()
        for app in holders { #expect(try isAwake(next, app)) }
        try replaceFile(at: root + "/closed", with: [])
        try next.waitUntil("exits", is: "notRunning")
        for app in ["pad", "late"] { try next.waitUntil(app, is: "suspended") }
    }
}
