import Control
import Glibc
import JSON
import LifecycleCore
import Linux
import Systemd
import TestKit
import Testing

@testable import Daemon

/// Modes that a client reports of unmodified programs, as greenroom-session does (L28).
@Suite("Modes that clients report")
struct ModeReportTests {
    private static let manifest = TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=0\nBackgroundModes=audio call")

    private static func variant(_ modes: [(pid: Int32, mode: String)]) -> Variant {
        .array("(us)", modes.map { .structure([.uint32(UInt32(bitPattern: $0.pid)), .string($0.mode)]) })
    }

    private func report(_ client: BusConnection, _ modes: [(pid: Int32, mode: String)]) throws {
        _ = try client.call(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: "ReportModes",
            [Self.variant(modes)])
    }

    @Test(
        "an app stays awake while a client reports that it plays audio, until the client no longer does or ends (L28)")
    func audio() throws {
        let daemon = try TestDaemon(["player": Self.manifest])
        try daemon.launch("player")
        let pid = try daemon.pid("player")
        do {
            let client = try BusConnection(path: daemon.runtime + "/bus")
            // What the manifest does not declare, and processes of no app, do not matter.
            try report(client, [(pid, "audio"), (pid, "recording"), (getpid(), "audio"), (Int32.max, "call")])
            try daemon.wait("player", "modeBegan")
            _ = try daemon.call("Background", [.string("player")])
            let awake = try daemon.status("player")["awake"]?.arrayValue
            #expect(awake?.map { $0["reason"]?.stringValue } == ["mode"])
            #expect(
                awake?.first?["explanation"]?.stringValue
                    == "it plays audio, as greenroom-session reports (BackgroundModes=audio)")
            // A second client shows another mode, and ends.
            let other = try BusConnection(path: daemon.runtime + "/bus")
            try report(other, [(pid, "call")])
            try report(client, [])
            #expect(try daemon.status("player")["modes"]?.arrayValue?.compactMap(\.stringValue) == ["call"])
            try report(other, [])
            try daemon.waitUntil("player", is: "suspended")
            try report(client, [(pid, "audio")])
            try withExtendedLifetime(client) { try daemon.waitUntil("player", is: "background") }
        }
        try daemon.waitUntil("player", is: "suspended")
    }

    @Test(
        "modes that clients have reported to a daemon that was killed last until a client of the user reports again (L28)"
    )
    func recovery() throws {
        let daemon = try TestDaemon(["player": Self.manifest])
        try daemon.launch("player")
        let pid = try daemon.pid("player")
        let client = try BusConnection(path: daemon.runtime + "/bus")
        try report(client, [(pid, "audio")])
        _ = try daemon.call("Background", [.string("player")])
        daemon.crash()
        let next = try daemon.successor()
        #expect(try next.status("player")["awake"]?.arrayValue?.first?["detail"]?.stringValue == "audio")
        let again = try BusConnection(path: next.runtime + "/bus")
        try report(again, [(pid, "audio")])
        #expect(try next.state("player") == "background")
        try report(again, [])
        try next.waitUntil("player", is: "suspended")
    }

    private final class Performer: EffectPerforming {
        func perform(_ effect: Effect, _ id: EffectID) {}
    }

    @Test("modes that no client reports to the next daemon end after a time (L28)")
    func recoveryTime() throws {
        let folder = makeTemporaryFolder("greenroom-modes")
        defer { removeTree(folder) }
        let app = try #require(AppID("player"))
        var core = LifecycleCore()
        _ = core.handle(.configuration(.registered(app, AppPolicy(), launches: 0)), at: .origin)
        _ = core.handle(.requested(RequestID(1), app, .activate), at: .origin)
        _ = core.handle(.run(try #require(core.run(of: app)), .mode(.shown(.audio))), at: .origin)
        let loop = try EventLoop()
        let logbook = Logbook(path: folder + "/logbook", journal: .quiet)
        logbook.create(core, records: [:])
        let driver = try CoreDriver(loop: loop, core: core, logbook: logbook)
        let performer = Performer()
        driver.connect(performer: performer, observers: [])
        let containment = try Containment(mode: .processGroup(reason: "a test"), name: "bare")
        let reports = ModeReports(
            loop: loop, containment: containment, driver: driver, recoveryTime: .milliseconds(1))
        reports.started()
        #expect(driver.core.appsWithShownModes == [app])
        while !driver.core.appsWithShownModes.isEmpty { try loop.runOnce(timeout: .seconds(1)) }
    }

    @Test("a report with an unknown mode, an impossible process or too many entries is refused with a sentence")
    func refused() throws {
        let daemon = try TestDaemon(["player": Self.manifest])
        try daemon.launch("player")
        let pid = try daemon.pid("player")
        func refusal(_ modes: [(pid: Int32, mode: String)]) -> String? {
            daemon.refusal("ReportModes", [Self.variant(modes)])
        }
        #expect(
            refusal([(pid, "push")])?.contains(
                "Process \(pid): there is no mode 'push' that a client can report; expected audio, recording, call")
                == true)
        #expect(refusal([(0, "audio")])?.contains("There is no process 0.") == true)
        #expect(refusal([(-1, "audio")])?.contains("There is no process 4294967295.") == true)
        #expect(
            refusal(Array(repeating: (pid, "audio"), count: 257))?.contains(
                "257 modes are reported; expected at most 256.") == true)
        #expect(try daemon.status("player")["modes"] == nil)
    }

    @Test(
        "only root and the user of a process may report its modes (L28)",
        .enabled(if: PrivateBus.isPossible && geteuid() == 0, PrivateBus.requirement))
    func otherUser() throws {
        let stage = try BusStage(["player": Self.manifest])
        try stage.daemon.launch("player")
        let pid = try stage.daemon.pid("player")
        let answer = try stage.run(
            [
                "busctl", "--system", "call", ControlNames.busName, ControlNames.managerPath,
                ControlNames.managerInterface,
                "ReportModes", "a(us)", "1", "\(pid)", "audio",
            ], asOtherUser: true)
        #expect(answer.status == 1)
        #expect(
            answer.text.contains(
                "Process \(pid) runs as uid 0; only this user and root may report its modes, not uid \(BusStage.otherUser)."
            ),
            "\(answer.text)")
        #expect(try stage.daemon.status("player")["modes"] == nil)
    }
}
