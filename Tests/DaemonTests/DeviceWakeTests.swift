import Glibc
import JSON
import LifecycleCore
import Linux
import LoopPolicy
import Manifest
import Posix
import Systemd
import TestKit
import Testing

@testable import Daemon

/// Devices that wake apps when they are added (`WakeOnDevice=`, L30).
@Suite("Wakes by devices")
struct DeviceWakeTests {
    private final class Stage {
        static let interval = Duration.seconds(2)
        let loop: EventLoop
        let wakes: DeviceWakes
        let devices: SharedDescriptor
        private(set) var opened = 0
        private(set) var woken: [String] = []

        init() throws {
            loop = try EventLoop()
            let socket: SharedDescriptor
            (devices, socket) = try makeDatagramPair()
            var count: () -> Void = {}
            wakes = DeviceWakes(loop: loop, journal: .quiet, interval: Stage.interval) { () throws(SystemError) in
                count()
                return socket
            }
            count = { [unowned self] in opened += 1 }
            wakes.wakes.wake = { [unowned self] in woken.append($0.name) }
        }

        func update(_ app: String, _ devices: String...) throws {
            var manifest = AppManifest(id: try #require(AppID(app)))
            manifest.wakeDevices = devices.compactMap { DeviceMatch($0) }
            wakes.update(manifest)
        }

        func send(_ properties: String..., action: String = "add") throws {
            let message = Array(
                ([action + "@/devices/x", "ACTION=\(action)"] + properties).map { $0 + "\0" }.joined().utf8)
            try checkErrno(Glibc.send(devices.raw, message, message.count, 0), "send")
        }

        func serve(until condition: () -> Bool) throws {
            let end = loop.now() + .seconds(30)
            while !condition() {
                guard loop.now() < end else { throw TestFailure("woken: \(woken)") }
                try loop.runOnce(timeout: .seconds(1))
            }
        }
    }

    @Test(
        "a device that is added wakes the apps that name it, once for all of its messages, and again after an interval (L30)"
    )
    func wakes() throws {
        let stage = try Stage()
        try stage.update("plain")
        #expect(stage.opened == 0)
        try stage.update("game", "input:ID_INPUT_JOYSTICK=1")
        try stage.update("photos", "usb:ID_GPHOTO2=1", "block")
        try stage.update("late", "tty")
        try stage.update("gone", "hidraw")
        #expect(stage.opened == 1)
        for action in ["remove", "change", "bind"] { try stage.send("SUBSYSTEM=hidraw", action: action) }
        try stage.send("SUBSYSTEM=input", "ID_INPUT_MOUSE=1")
        for _ in 0..<3 { try stage.send("SUBSYSTEM=input", "ID_INPUT_JOYSTICK=1") }
        try stage.send("SUBSYSTEM=block")
        try stage.serve { stage.woken.count == 2 }
        let first = stage.loop.now()
        #expect(stage.woken == ["game", "photos"])
        // One that is added soon afterwards wakes the app when the interval is over.
        try stage.send("SUBSYSTEM=input", "ID_INPUT_JOYSTICK=1")
        try stage.send("SUBSYSTEM=tty")
        try stage.serve { stage.woken.count == 4 }
        #expect(stage.woken == ["game", "photos", "late", "game"])
        #expect(stage.loop.now() - first >= .seconds(1))
    }

    @Test("messages about devices are read while an app has the setting, and a removed app is not woken (L30)")
    func watching() throws {
        let stage = try Stage()
        try stage.update("game", "usb")
        try stage.send("SUBSYSTEM=usb")
        var turns = 0
        let stop = try stage.loop.makeTimer(kind: .timer) { _ in turns += 1 }
        stop.arm(at: stage.loop.now())
        try stage.serve { turns == 1 }
        stage.wakes.remove(try #require(AppID("game")))
        // The next app has a socket of its own.
        try stage.update("photos", "usb")
        #expect(stage.opened == 2)
        try stage.send("SUBSYSTEM=usb")
        try stage.serve { !stage.woken.isEmpty }
        #expect(stage.woken == ["photos"])
    }

    private static let nullEvent = "/sys/class/mem/null/uevent"

    @Test(
        "a device of this machine launches an app into the background, and wakes it (L30)",
        .enabled(if: access(nullEvent, W_OK) == 0, "as root"))
    func realDevice() throws {
        let manifest = TestDaemon.manifest(
            "", "[Lifecycle]\nSuspendDelaySec=0\n[Wake]\nWakeOnDevice=mem:MAJOR=1,MINOR=3\n")
        let daemon = try TestDaemon(["new": manifest, "old": manifest])
        try daemon.launch("old", background: true)
        try daemon.waitUntil("old", is: "suspended")
        // The kernel sends a message about a device when it is asked to.
        try writeAll(Array("add".utf8), to: try Descriptor.open(Self.nullEvent, O_WRONLY))
        for app in ["old", "new"] {
            try daemon.eventually("\(app) is awake because of the device") {
                try daemon.status(app)["awake"]?.arrayValue?.contains { $0["detail"]?.stringValue == "accessory" }
                    == true
            }
            #expect(try daemon.state(app) == "background")
        }
    }
}
