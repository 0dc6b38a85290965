import Control
import Glibc
import Linux
import Systemd
import Testing

/// Apps that an error in their manifest disables, as D-Bus objects.
@Suite("Disabled apps on D-Bus")
struct DisabledAppTests {
    private static let path = ObjectPath.encode("broken", below: ControlNames.appPrefix)

    /// All properties of the app.
    private static func properties(_ daemon: TestDaemon) throws -> Variant {
        let answer = try daemon.bus.call(
            path: path, interface: "org.freedesktop.DBus.Properties", member: "GetAll",
            [.string(ControlNames.appInterface)])
        return try #require(answer.first)
    }

    @Test("an app that an error disables is an object with the error")
    func object() throws {
        let daemon = try TestDaemon(["broken": "[App]\nType=notfy\n", "photos": TestDaemon.manifest("")])
        let properties = try Self.properties(daemon)
        #expect(properties["Id"] == .string("broken"))
        #expect(properties["State"] == .string("notRunning"))
        #expect(properties["LoadState"] == .string("bad-setting"))
        #expect(properties["LoadError"]?.stringValue?.contains("Type=") == true)
        let managed = try daemon.bus.call(
            path: ControlNames.managerPath, interface: "org.freedesktop.DBus.ObjectManager",
            member: "GetManagedObjects")
        let paths = (managed.first?.arrayValue ?? []).compactMap { entry in
            if case .entry(let path, _) = entry { path.stringValue } else { nil }
        }
        #expect(paths.filter { $0 == Self.path }.count == 1)
        do throws(BusError) {
            _ = try daemon.bus.call(path: Self.path, interface: ControlNames.appInterface, member: "Activate")
            Issue.record("a disabled app was activated")
        } catch {
            #expect(error.name == ControlNames.Failure.unknownApp.name)
            #expect(error.message.contains("Type="))
        }
    }

    @Test("a reload announces that an error in a manifest begins and ends, and the object stays")
    func reload() throws {
        let daemon = try TestDaemon(["broken": TestDaemon.manifest("")])
        #expect(try Self.properties(daemon)["LoadState"] == .string("loaded"))
        let file = daemon.config + "/apps/broken.app"
        for (text, state) in [("[App]\nType=notfy\n", "bad-setting"), (TestDaemon.manifest(""), "loaded")] {
            try replaceFile(at: file, with: Array(text.utf8))
            _ = try daemon.call("Reload")
            while true {
                let signal = try #require(try daemon.bus.nextSignal(until: EventLoop.now() + .seconds(60)))
                #expect(signal.member != "InterfacesRemoved")
                guard signal.member == "PropertiesChanged", signal.path == Self.path else { continue }
                if signal.arguments[1]["LoadState"] == .string(state) { break }
            }
            #expect(try Self.properties(daemon)["LoadState"] == .string(state))
        }
        // The error disables one app: the reload has not failed, and the daemon has logged the error.
        #expect(TestDaemon.text(of: daemon.root + "/log").contains("broken.app:2"))
        unlink(file)
        _ = try daemon.call("Reload")
        while let signal = try daemon.bus.nextSignal(until: EventLoop.now() + .seconds(60)) {
            if signal.member == "InterfacesRemoved" { return }
        }
        Issue.record("no InterfacesRemoved")
    }
}
