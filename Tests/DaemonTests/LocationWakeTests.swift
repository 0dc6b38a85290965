import Control
import Glibc
import JSON
import LifecycleCore
import Manifest
import Systemd
import TestKit
import Testing

@testable import Daemon

/// Moves of the device that wake apps (`WakeOnLocation=`, L30), as a client reports them.
@Suite("Wakes by locations")
struct LocationWakeTests {
    private static func manifest(_ app: String = "", distance: Int = 500) -> String {
        TestDaemon.manifest("", app: app, "[Lifecycle]\nSuspendDelaySec=0\n[Wake]\nWakeOnLocation=\(distance)\n")
    }

    private func apps(_ daemon: TestDaemon) throws -> [Variant]? {
        try daemon.bus.call(
            path: ControlNames.managerPath, interface: "org.freedesktop.DBus.Properties", member: "Get",
            [.string(ControlNames.managerInterface), .string("LocationApps")])[0].unwrapped.arrayValue
    }

    private func isAwake(_ daemon: TestDaemon, _ app: String) throws -> Bool {
        try daemon.status(app)["awake"]?.arrayValue?.contains { $0["detail"]?.stringValue == "location" } == true
    }

    @Test("moves that are reported meanwhile share a wake, at most one in the interval (L30)")
    func interval() throws {
        let loop = try EventLoop()
        let wakes = LocationWakes(loop: loop, interval: .milliseconds(300))
        var times: [Duration] = []
        wakes.wakes.wake = { _ in times.append(loop.now()) }
        func serve(until count: Int) throws {
            let end = loop.now() + .seconds(30)
            while times.count < count {
                guard loop.now() < end else { throw TestFailure("\(times.count) wakes") }
                try loop.runOnce(timeout: .seconds(1))
            }
        }
        let map = try #require(AppID("map"))
        var manifest = AppManifest(id: map)
        wakes.update(manifest)
        wakes.moved(map)
        manifest.wakeDistance = 100
        wakes.update(manifest)
        for _ in 0..<10 { wakes.moved(map) }
        try serve(until: 1)
        for _ in 0..<10 { wakes.moved(map) }
        try serve(until: 2)
        #expect(times[1] - times[0] >= .milliseconds(300))
        // Without the setting a move that waits wakes nothing.
        wakes.moved(map)
        manifest.wakeDistance = nil
        wakes.update(manifest)
        _ = try loop.runOnce(timeout: .milliseconds(400))
        #expect(times.count == 2)
    }

    @Test("a report of a move launches an app into the background, and wakes it, for the reason location (L26, L30)")
    func report() throws {
        let daemon = try TestDaemon([
            "new": Self.manifest(), "old": Self.manifest("WindowAppID=org.example.Old", distance: 100_000),
            "plain": TestDaemon.manifest(""),
        ])
        let user = Variant.string(String(geteuid()))
        #expect(
            try apps(daemon) == [
                .structure([.string("new"), user, .string("new"), .uint32(500)]),
                .structure([.string("old"), user, .string("org.example.Old"), .uint32(100_000)]),
            ])
        try daemon.launch("old", background: true)
        try daemon.waitUntil("old", is: "suspended")
        for app in ["old", "new"] {
            _ = try daemon.call("ReportLocation", [.string(app)])
            try daemon.eventually("\(app) is awake because of the location") { try isAwake(daemon, app) }
            #expect(try daemon.state(app) == "background")
        }
        for name in ["plain", "absent", "no app", ""] {
            #expect(
                daemon.refusal("ReportLocation", [.string(name)])?.contains(
                    "No app '\(name)' of uid \(geteuid()) has WakeOnLocation=.") == true)
        }
        // Another distance, and no setting any more.
        try daemon.writeFile(daemon.config + "/apps/new.app", Self.manifest(distance: 7))
        try daemon.writeFile(daemon.config + "/apps/old.app", TestDaemon.manifest(""))
        _ = try daemon.call("Reload")
        #expect(try apps(daemon) == [.structure([.string("new"), user, .string("new"), .uint32(7)])])
    }

    @Test(
        "a user reports moves to the apps of this user only (L30)",
        .enabled(if: PrivateBus.isPossible && geteuid() == 0, PrivateBus.requirement))
    func otherUser() throws {
        func manifest(_ user: String) -> String {
            "[App]\nStartupSec=0\nUser=\(user)\nExecStart=/bin/sleep 1000\n[Wake]\nWakeOnLocation=500\n"
        }
        let stage = try BusStage(["mine": manifest("nobody"), "theirs": manifest("root")])
        let words = [
            "busctl", "--system", "call", ControlNames.busName, ControlNames.managerPath, ControlNames.managerInterface,
            "ReportLocation", "s",
        ]
        #expect(try stage.run(words + ["theirs"], asOtherUser: true).status != 0)
        #expect(try stage.run(words + ["mine"], asOtherUser: true).status == 0)
        try stage.serve("the app of the user is launched") { try stage.daemon.state("mine") == "background" }
        #expect(try stage.daemon.state("theirs") == "notRunning")
        // Root to those of any user.
        #expect(try stage.run(words + ["theirs"]).status == 0)
        try stage.serve("the other app is launched") { try stage.daemon.state("theirs") == "background" }
    }
}
