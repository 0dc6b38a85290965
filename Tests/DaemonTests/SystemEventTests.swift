import Control
import Glibc
import JSON
import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd
import TestKit
import Testing

@testable import Daemon

/// The sources of notifications, each with folders of its own, and with real processes (L33).
@Suite("Notifications from the machine")
struct SystemEventTests {
    private static let photos = AppID("photos")!

    /// Sources that look into a folder, and what they report.
    private final class Stage {
        let root: String
        let loop: EventLoop
        let events = EventList()
        let sources: SystemEvents
        /// The other end of the socket with messages about devices.
        let devices: SharedDescriptor

        init() throws {
            root = try TestDaemon.makeFolder()
            for folder in ["etc/default", "sys"] { try createDirectories(at: "\(root)/\(folder)") }
            loop = try EventLoop()
            let socket: SharedDescriptor
            (devices, socket) = try makeDatagramPair()
            sources = try SystemEvents(
                loop: loop, journal: .quiet, events: events,
                locations: SystemEvents.Locations(
                    etc: root + "/etc", sys: root + "/sys", upowerTimeout: .milliseconds(100),
                    openDeviceEvents: { () throws(SystemError) in socket }))
        }

        func subscribe(_ names: String...) {
            sources.subscribe(
                SystemEventTests.photos, NotificationKinds(names.map { NotificationKinds(named: $0) ?? [] }))
        }

        /// What was read of a kind so far.
        func readings(_ kind: String) -> [String] {
            events.events.compactMap {
                if case .observed(let reading, of: _) = $0, reading.kind == kind { reading.payload } else { nil }
            }
        }

        func serve(_ kind: String, until payload: String) throws {
            let end = loop.now() + .seconds(30)
            while readings(kind).last != payload {
                guard loop.now() < end else { throw TestFailure("\(kind) is \(readings(kind)), not \(payload)") }
                try loop.runOnce(timeout: .seconds(1))
            }
        }

        func write(_ file: String, _ text: String) throws {
            let path = "\(root)/\(file)"
            if let end = path.lastIndex(of: "/") { try createDirectories(at: String(path[..<end])) }
            try replaceFile(at: path, with: Array(text.utf8))
        }

        func sendDevice(_ subsystem: String) throws {
            let message = Array("change@/devices/x\0ACTION=change\0SUBSYSTEM=\(subsystem)\0SEQNUM=1\0".utf8)
            try checkErrno(send(devices.raw, message, message.count, 0), "send")
        }
    }

    @Test("locale reports the variables of locale.conf, and of the file that Debian has without one (L33)")
    func locale() throws {
        let stage = try Stage()
        stage.subscribe("locale")
        try stage.serve("locale", until: "LANG=C")
        try stage.write("etc/default/locale", "# Debian\nLANG=\"de_DE.UTF-8\"\n")
        try stage.serve("locale", until: "LANG=de_DE.UTF-8")
        try stage.write("etc/locale.conf", "LC_TIME=C\nLANG=fr_FR.UTF-8\nPATH=/evil\nLANG2=x\nLC_ALL=\u{1b}[1m\n")
        try stage.serve("locale", until: "LANG=fr_FR.UTF-8 LC_TIME=C")
    }

    @Test("time reports another time zone, a clock that was set, and midnight; a sleep of the machine is none (L33)")
    func time() throws {
        let stage = try Stage()
        #expect(symlink("/usr/share/zoneinfo/Europe/Berlin", stage.root + "/etc/localtime") == 0)
        stage.subscribe("time")
        // As timedatectl(1) does it.
        #expect(symlink("../usr/share/zoneinfo/Asia/Tokyo", stage.root + "/etc/.new") == 0)
        #expect(rename(stage.root + "/etc/.new", stage.root + "/etc/localtime") == 0)
        try stage.serve("time", until: "time-zone Asia/Tokyo")
        var reports: [String] = []
        let source = try TimeSource(stage.loop, folder: stage.root + "/etc") { reports.append($0) }
        let offset = TimeSource.offset()
        // After a sleep both clocks have advanced.
        source.handle(.clockSet, offset: offset + 1000)
        #expect(reports == [])
        source.handle(.clockSet, offset: offset - 3_600_000_000)
        source.handle(.elapsed, offset: offset - 3_600_000_000)
        #expect(reports == ["clock-set", "midnight"])
    }

    @Test("devices and the battery are read from /sys when the kernel reports a change of them (L33)")
    func devices() throws {
        let stage = try Stage()
        let supply = "sys/class/power_supply"
        try stage.write("\(supply)/AC/uevent", "POWER_SUPPLY_TYPE=Mains\nPOWER_SUPPLY_ONLINE=1\n")
        try stage.write(
            "\(supply)/mouse/uevent", "POWER_SUPPLY_TYPE=Battery\nPOWER_SUPPLY_SCOPE=Device\nPOWER_SUPPLY_CAPACITY=3\n")
        try stage.write(
            "\(supply)/BAT0/uevent",
            "POWER_SUPPLY_TYPE=Battery\nPOWER_SUPPLY_STATUS=Charging\nPOWER_SUPPLY_CAPACITY=41\n")
        try stage.write("sys/class/input/input3/name", "Keyboard K120\n")
        try stage.write("sys/bus/usb/devices/1-2/product", "Camera\u{1b}[2J\n")
        try stage.write("sys/bus/usb/devices/usb1/product", "xHCI\n")
        try stage.write("sys/class/drm/card0-HDMI-A-1/status", "disconnected\n")
        stage.subscribe("battery", "accessory", "display")
        try stage.serve("accessory", until: "input Keyboard K120\nusb Camera\u{fffd}[2J")
        try stage.serve("display", until: "card0-HDMI-A-1 disconnected")
        // UPower is not there.
        try stage.serve("battery", until: "41 charging")
        try stage.write("sys/class/drm/card0-HDMI-A-1/status", "connected\n")
        try stage.write(
            "\(supply)/BAT0/uevent",
            "POWER_SUPPLY_TYPE=Battery\nPOWER_SUPPLY_STATUS=Full\nPOWER_SUPPLY_ENERGY_NOW=990\nPOWER_SUPPLY_ENERGY_FULL=1000\n"
        )
        // Only what the messages are about is read.
        for subsystem in ["net", "drm"] { try stage.sendDevice(subsystem) }
        try stage.serve("display", until: "card0-HDMI-A-1 connected")
        #expect(stage.readings("battery") == ["41 charging"])
        try stage.sendDevice("power_supply")
        try stage.serve("battery", until: "99 full")
    }

    @Test("a source that reports changes without end is read a few times, and its last state counts (L33)")
    func flood() throws {
        let stage = try Stage()
        stage.subscribe("locale")
        try stage.serve("locale", until: "LANG=C")
        for number in 1...2000 {
            try stage.write("etc/locale.conf", "LANG=x\(number)\n")
            if number % 100 == 0 { try stage.loop.runOnce(timeout: .zero) }
        }
        let before = stage.loop.now()
        try stage.serve("locale", until: "LANG=x2000")
        let most = 3 + (stage.loop.now() - before) / SystemEvents.interval
        #expect(Double(stage.readings("locale").count) <= 20 + most)
    }

    @Test("a source whose descriptor is always ready takes a few turns, and is read in intervals (L33)")
    func endlessChanges() throws {
        let loop = try EventLoop()
        let pipe = try Pipe()
        try writeAll([0], to: pipe.write)
        let end = SharedDescriptor(try pipe.read.duplicate())
        var reads = 0
        let source = try ReadingSource(loop, [ReadingSource.Trigger(descriptor: end) { _ in true }]) { reads += 1 }
        let start = loop.now()
        while reads < 4 { try loop.runOnce(timeout: .seconds(30)) }
        #expect(loop.now() - start >= ReadingSource.interval * 3)
        #expect(loop.servedTurns <= 8)
        withExtendedLifetime(source) {}
    }

    @Test("a settings file is noticed when it is written, replaced or removed, also with its folder (L33)")
    func settings() throws {
        let stage = try Stage()
        let file = "home/app/settings.conf"
        var manifest = AppManifest(id: Self.photos)
        manifest.settingsFile = "\(stage.root)/\(file)"
        stage.sources.update(manifest)
        stage.subscribe("settings")
        try stage.serve("settings", until: "absent")
        func state() -> String {
            var about = stat()
            guard stat("\(stage.root)/\(file)", &about) == 0 else { return "absent" }
            let (time, size) = (about.st_mtim, Int64(about.st_size))
            return SettingsSource.payload(
                FileState(size: size, seconds: Int64(time.tv_sec), nanoseconds: Int64(time.tv_nsec)))
        }
        try stage.write(file, "a")
        try stage.serve("settings", until: state())
        #expect(rename("\(stage.root)/home/app", "\(stage.root)/home/old") == 0)
        try stage.serve("settings", until: "absent")
        try stage.write(file, "abc")
        #expect(state().hasSuffix(" 3"))
        try stage.serve("settings", until: state())
        manifest.settingsFile = nil
        stage.sources.update(manifest)
        #expect(try removeFile(at: "\(stage.root)/\(file)"))
        while try stage.loop.runOnce(timeout: .zero) {}
        #expect(stage.readings("settings").last?.hasSuffix(" 3") == true)
    }

    @Test("only so many settings files are watched as inotify(7) has instances for, and the log says so (L33)")
    func mostSettings() throws {
        let (loop, log, events) = (try EventLoop(), try TestLog(), EventList())
        let sources = try SystemEvents(
            loop: loop, journal: log.journal, events: events, locations: SystemEvents.Locations(mostSettingsFiles: 1))
        let kind = NotificationKinds(named: "settings") ?? []
        func subscribe(_ name: String, _ kinds: NotificationKinds) throws {
            var manifest = AppManifest(id: try #require(AppID(name)))
            manifest.settingsFile = "/etc/\(name).conf"
            sources.update(manifest)
            sources.subscribe(manifest.id, kinds)
        }
        try subscribe("a", kind)
        try subscribe("b", kind)
        #expect(log.lines.count == 1)
        #expect(log.text.contains("it is not notified of its settings file: those of 1 apps are watched already"))
        try subscribe("a", [])
        try subscribe("b", [])
        try subscribe("b", kind)
        #expect(log.lines.count == 1)
    }

    @Test("the digest of a user's settings is passed on to the apps of this user without a file of their own (L33)")
    func desktop() throws {
        let stage = try Stage()
        let desktop = stage.sources.desktop
        desktop.user = { $0.name == "other" ? 1001 : 1000 }
        // No app is notified of it.
        desktop.reported("a", 1000)
        stage.subscribe("settings")
        #expect(desktop.users == [1000])
        desktop.reported("b", 1001)
        for digest in ["c", "d", "e"] { desktop.reported(digest, 1000) }
        try stage.serve("settings", until: "e")
        #expect(stage.readings("settings") == ["e"])
        // One that is launched later begins with what is known.
        let kind = NotificationKinds(named: "settings") ?? []
        let late = try #require(AppID("late"))
        stage.sources.subscribe(late, kind)
        #expect(stage.events.events.last == .observed(Notification(kind: "settings", payload: "e")!, of: late))
        let count = stage.events.events.count
        stage.sources.subscribe(try #require(AppID("other")), kind)
        var manifest = AppManifest(id: late)
        manifest.settingsFile = stage.root + "/late.conf"
        stage.sources.update(manifest)
        desktop.reported("f", 1000)
        try stage.serve("settings", until: "f")
        #expect(
            stage.events.events[count...].contains(
                .observed(Notification(kind: "settings", payload: "f")!, of: Self.photos)))
        #expect(
            !stage.events.events[count...].contains(.observed(Notification(kind: "settings", payload: "f")!, of: late)))
        stage.subscribe()
        #expect(desktop.users == [1001])
    }

    @Test("of messages of the kernel and of udev the subsystem is read, and no bytes are trusted (L33)")
    func messages() {
        let kernel = Array("add@/devices/1\0ACTION=add\0DEVPATH=/devices/1\0SUBSYSTEM=usb\0SEQNUM=7\0".utf8)
        #expect(DeviceEvents.subsystem(of: kernel[...]) == "usb")
        var udev = Array("libudev\0".utf8) + [0xfe, 0xed, 0xca, 0xfe, 40, 0, 0, 0, 40, 0, 0, 0, 30, 0, 0, 0]
        udev += Array(repeating: 255, count: 16) + Array("SUBSYSTEM=drm\0ACTION=change\0".utf8)
        #expect(DeviceEvents.subsystem(of: udev[...]) == "drm")
        for length in 0..<udev.count { _ = DeviceEvents.subsystem(of: udev[..<length]) }
        udev.replaceSubrange(16..<20, with: [255, 255, 255, 255])
        #expect(DeviceEvents.subsystem(of: udev[...]) == nil)
        #expect(DeviceEvents.subsystem(of: []) == nil)
    }

    @Test("what UPower may not say is ignored (L33)")
    func upower() {
        func reading(_ percent: Double, _ state: UInt32, isPresent: Bool = true) -> String? {
            Readings.battery([
                "IsPresent": .bool(isPresent), "Percentage": .double(percent), "State": .uint32(state),
            ])
        }
        #expect(reading(79.5, 2) == "80 discharging")
        #expect(reading(100, 4) == "100 full")
        #expect(reading(50, 77) == "50 unknown")
        for percent in [.nan, -1, 101, .infinity] { #expect(reading(percent, 1) == nil) }
        #expect(reading(50, 1, isPresent: false) == nil && Readings.battery([String: Variant]()) == nil)
        #expect(Readings.orientation(["AccelerometerOrientation": .string("sideways")]) == nil)
    }

    // MARK: Real processes

    private static func manifest(_ app: String) -> String {
        TestDaemon.manifest("", app: app, "[Lifecycle]\nSuspendDelaySec=0")
    }

    @Test(
        "an app is notified of its settings file at once while it runs, and of the net change when it slept (L31, L33)")
    func settingsOfProcess() throws {
        let root = try TestDaemon.makeFolder()
        let file = root + "/web.conf"
        let daemon = try TestDaemon(
            ["web": Self.manifest("Notifications=settings locale time battery\nSettingsFile=\(file)")], root: root)
        try daemon.launch("web")
        var number = 0
        try daemon.eventually("a notification") {
            number += 1
            try replaceFile(at: file, with: Array("\(number)".utf8))
            return daemon.inbox("web", "settings") != nil
        }
        _ = try daemon.call("Background", [.string("web")])
        try daemon.waitUntil("web", is: "suspended")
        #expect(unlink(root + "/run/inbox/web/settings") == 0 || errno == ENOENT)
        // The next daemon watches the file, too.
        daemon.crash()
        let next = try daemon.successor()
        #expect(unlink(file) == 0)
        try next.eventually("the notification of the change") {
            _ = try next.call("Activate", [.string("web")])
            _ = try next.call("Background", [.string("web")])
            return next.inbox("web", "settings") == "absent\n"
        }
    }

    @Test("a report of settings reaches an app that wants it, and one that is no digest is refused (L33)")
    func reportedSettings() throws {
        let daemon = try TestDaemon(["web": Self.manifest("Notifications=settings")])
        func users() throws -> [Variant]? {
            try daemon.bus.call(
                path: ControlNames.managerPath, interface: "org.freedesktop.DBus.Properties", member: "Get",
                [.string(ControlNames.managerInterface), .string("SettingsUsers")])[0].unwrapped.arrayValue
        }
        #expect(try users() == [])
        try daemon.launch("web")
        #expect(try users() == [.uint32(geteuid())])
        // The first digest is no change, and of several that follow each other soon the last one is passed on.
        var number = 0
        try daemon.eventually("a notification") {
            number += 1
            _ = try daemon.call("ReportSettings", [.string("\(number)")])
            return daemon.inbox("web", "settings") != nil
        }
        #expect(
            daemon.refusal("ReportSettings", [.string("")])?.contains("Invalid digest ''; expected 1 to 64") == true)
    }

    @Test("nothing is watched before an app that wants it is launched, nor after its end (L33)")
    func nothingWatched() throws {
        let all = "accessory orientation time battery proximity display settings locale"
        let daemon = try TestDaemon(["web": Self.manifest("Notifications=\(all)\nSettingsFile=/etc/web.conf")])
        // What the first launch of any app opens for good.
        try daemon.writeFile(daemon.config + "/apps/plain.app", Self.manifest(""))
        _ = try daemon.call("Reload")
        try daemon.launch("plain")
        try daemon.terminate("plain")
        try daemon.eventually("the end") { try daemon.state("plain") == "notRunning" }
        func count(_ name: String) throws -> Int { try daemon.settledDescriptors().count { $0.contains(name) } }
        let (before, watches) = (try daemon.settledDescriptors(), try count("inotify"))
        try daemon.launch("web")
        // /etc for the time and for the locale, /etc/default, and the folder of the settings.
        try daemon.eventually("watches") { try count("inotify") >= watches + 3 }
        try daemon.terminate("web")
        daemon.waitUntilNothingOpen(beyond: before)
    }

    @Test(
        "UPower and sensors are read while an app wants them, also after the bus was restarted (L33)",
        .enabled(if: PrivateBus.isPossible && geteuid() == 0, PrivateBus.requirement))
    func bus() throws {
        let stage = try BusStage(["web": Self.manifest("Notifications=battery orientation")])
        let sensors = try FakeSensors(stage)
        #expect(sensors.reads == 0 && sensors.claims == [])
        try stage.daemon.launch("web")
        try stage.serve("the first reading") { sensors.reads > 0 && sensors.claims == ["ClaimAccelerometer"] }
        try changeUntilNotified(stage, sensors, 70)
        // The kernel, which has no battery, was not asked meanwhile.
        #expect(!TestDaemon.text(of: stage.root + "/log").contains("battery none"))
        stage.bus.stop()
        try stage.bus.start()
        try stage.serve("the fakes are back") { sensors.haveNames }
        try stage.serve("the sensor is claimed again") { sensors.claims.count == 2 }
        try changeUntilNotified(stage, sensors, 50)
        _ = try stage.daemon.terminate("web")
        try stage.serve("the sensor is released") { sensors.claims.last == "ReleaseAccelerometer" }
    }

    /// The folder that has dbusmock, if it is not Python's own (`pip install --target DIR python-dbusmock`).
    private static let mockFolder =
        getenv("GREENROOM_DBUSMOCK").map { String(cString: $0) } ?? "/usr/lib/python3/dist-packages"
    private static let hasMock =
        system("PYTHONPATH=\(mockFolder) /usr/bin/python3 -c 'import dbusmock' 2>/dev/null") == 0

    @Test(
        "the battery is that of UPower as in python-dbusmock (L33)",
        .enabled(if: PrivateBus.isPossible && geteuid() == 0, PrivateBus.requirement),
        .enabled(if: hasMock, "dbusmock is not installed (Debian: python3-dbusmock)"))
    func mock() throws {
        let stage = try BusStage(["web": Self.manifest("Notifications=battery")])
        let upower = try stage.start([
            "env", "PYTHONPATH=\(Self.mockFolder)", "PYTHONDONTWRITEBYTECODE=1", "python3", "-m", "dbusmock",
            "--system",
            "--template", "upower",
        ])
        try stage.waitForOwner(of: "org.freedesktop.UPower")
        try stage.daemon.launch("web")
        var percent = 50
        try stage.daemon.eventually("a notification") {
            percent = 101 - percent
            // Kind 2 is a battery, state 1 charging.
            _ = try stage.busctl(
                "call", "org.freedesktop.UPower", "/org/freedesktop/UPower", "org.freedesktop.DBus.Mock",
                "SetupDisplayDevice", "uuddddxxbsu", "2", "1", "\(percent)", "50", "100", "1", "0", "0", "true", "x",
                "1")
            return ["50 charging\n", "51 charging\n"].contains(stage.daemon.inbox("web", "battery"))
        }
        try upower.process.signal(SIGKILL)
    }

    @Test(
        "a message about a device of this machine is read (L33)", .enabled(if: access(nullEvent, W_OK) == 0, "as root"))
    func kernelMessage() throws {
        let socket = try DeviceEvents.open(control: "/nonexistent")
        // The kernel sends a message about a device when it is asked to.
        let file = try Descriptor.open(Self.nullEvent, O_WRONLY)
        try writeAll(Array("change".utf8), to: file)
        var found: Set<String> = []
        while !found.contains("mem") {
            waitForReadable([socket])
            found.formUnion(DeviceEvents.read(socket) ?? [])
        }
    }

    private static let nullEvent = "/sys/class/mem/null/uevent"

    /// The first reading of the daemon is no change. It may come at any time.
    private func changeUntilNotified(_ stage: BusStage, _ sensors: FakeSensors, _ percent: Double) throws {
        var isOdd = false
        try stage.serve("a notification of the battery") {
            isOdd.toggle()
            try sensors.setPercent(isOdd ? percent : percent + 1)
            return stage.daemon.inbox("web", "battery")?.hasPrefix("\(Int(percent))") ?? false
        }
        try stage.serve("a notification of the orientation") {
            isOdd.toggle()
            try sensors.setOrientation(isOdd ? "left-up" : "bottom-up")
            return stage.daemon.inbox("web", "orientation") != nil
        }
        #expect(unlink(stage.root + "/run/inbox/web/orientation") == 0)
    }

    @Test(
        "the orientation is known while an app is notified of it, and each app gets it at its launch (L55)",
        .enabled(if: PrivateBus.isPossible && geteuid() == 0, PrivateBus.requirement))
    func orientation() throws {
        let root = try TestDaemon.makeFolder()
        let other = "[App]\nExecStart=/bin/sh -c 'env > \(root)/env; exec sleep 1000'\n"
        let stage = try BusStage(["web": Self.manifest("Notifications=orientation"), "other": other])
        func orientation() throws -> String? {
            try stage.daemon.bus.property(
                path: ControlNames.managerPath, interface: ControlNames.managerInterface, "Orientation"
            ).stringValue
        }
        let sensors = try FakeSensors(stage)
        try sensors.setOrientation("left-up")
        #expect(try orientation() == "")
        try stage.daemon.launch("web")
        try stage.serve("the orientation") { try orientation() == "left-up" }
        try stage.daemon.launch("other")
        try stage.serve("the environment") {
            TestDaemon.text(of: root + "/env").contains("GREENROOM_ORIENTATION=left-up\n")
        }
        // Of an app that is visible, too: the one that is launched last is in front.
        func orientation(of app: String) throws -> String? {
            try stage.daemon.bus.property(
                path: BusStage.path(app), interface: ControlNames.appInterface, "Orientation"
            ).stringValue
        }
        #expect(try orientation(of: "other") == "left-up")
        #expect(try orientation(of: "web") == "")
        try sensors.setOrientation("bottom-up")
        func announced(_ app: String) -> String? { stage.changes(of: "Orientation", in: app).last?.stringValue }
        try stage.serve("the orientation is announced") { announced("other") == "bottom-up" }
        #expect(announced("web") == "")
        try stage.daemon.ask("Background", "other")
        #expect(try orientation(of: "other") == "")
    }
}
