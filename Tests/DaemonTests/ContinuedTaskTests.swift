import Control
import JSON
import Linux
import Systemd
import Testing

/// Tasks of real processes that report their progress (L21).
@Suite("Continued tasks")
struct ContinuedTaskTests {
    private func report(_ client: SelfClient, _ done: UInt64, _ title: String = "") throws {
        try client.call(
            "SetTaskProgress", [.string("export"), .uint64(done), .uint64(4), .string(title)])
    }

    private func task(_ daemon: TestDaemon) throws -> JSONValue? {
        try daemon.status("mail")["tasks"]?.arrayValue?.first
    }

    @Test(
        "a task that advances outlasts the background time and the daemon, is shown, and can be cancelled by a user (L21)"
    )
    func connection() throws {
        let daemon = try SelfConnectionTests.daemon(
            SelfStage.quick + "BackgroundTimeSec=200ms\nTaskProgressSec=1h\nExpirationNoticeSec=30s\n")
        let client = try SelfStage.launch(daemon, "mail", "lend")
        #expect(daemon.failure("CancelTask", [.string("mail"), .string("export")]) == "NotOpen")
        try client.call("BeginTask", [.string("export"), .string("a")])
        try report(client, 1, "Exporting")
        let unknown: [Variant] = [.string("import"), .uint64(1), .uint64(4), .string("")]
        #expect(client.failure("SetTaskProgress", unknown)?.name == "NotOpen")
        let tooMuch: [Variant] = [.string("export"), .uint64(5), .uint64(4), .string("")]
        #expect(client.failure("SetTaskProgress", tooMuch)?.name == "InvalidArgument")
        try SelfStage.request(daemon, "Background", "mail")
        #expect(try client.next().kind == "willResignActive")
        try client.answer(client.next().serial)
        try daemon.waitForEvent("the background time is over") {
            $0["kind"]?.stringValue == "deadlineCancelled" && $0["deadline"]?["what"]?.stringValue == "backgroundTime"
        }
        #expect(try daemon.state("mail") == "background")
        #expect(try task(daemon)?["continued"]?.boolValue == true)

        daemon.crash()
        let next = try daemon.successor()
        #expect(try task(next)?["done"]?.integerValue == 1)
        let again = try SelfClient(next)
        try again.attach(after: client.serial)
        try report(again, 2)
        let event = try next.wait("mail", "taskProgress")
        #expect(event["message"]?.stringValue == "mail: background task 'export': 50% of 'Exporting'")
        let property = try next.bus.property(
            path: ObjectPath.encode("mail", below: ControlNames.appPrefix), interface: ControlNames.appInterface,
            "Tasks")
        let shown = try [TaskStatus](variant: property)
        #expect(shown.map { [$0.name, $0.title, $0.progressText] } == [["export", "Exporting", "50% of 'Exporting'"]])
        #expect(shown.first?.isContinued == true && shown.first?.remaining == nil)

        _ = try next.call("CancelTask", [.string("mail"), .string("export")])
        let expiring = try again.next()
        #expect(expiring.kind == "tasksExpiring")
        #expect(expiring.details["names"]?.arrayValue?.compactMap(\.stringValue) == ["export"])
        #expect(try task(next)?["cancelled"]?.boolValue == true)
        try again.call("EndTask", [.string("a")])
        #expect(try next.wait("mail", "taskEnded")["reason"]?.stringValue == "cancelled")
        try next.waitUntil("mail", is: "suspended")
    }

    @Test("a task that stalls expires, and its app is killed if it stays open (L21, L23)")
    func messages() throws {
        let daemon = try TestDaemon([
            "mail": TestDaemon.manifest(
                "begin export",
                "[Lifecycle]\nBackgroundTimeSec=10ms\nTaskProgressSec=200ms\nExpirationNoticeSec=100ms\n",
                trace: nil)
        ])
        try daemon.launch("mail")
        try daemon.sendMessage("X_GREENROOM_TASK_PROGRESS=3/2 export")
        try daemon.eventually("it is refused") {
            try daemon.status("mail")["lastWarning"]?.stringValue?.contains("expected DONE and TOTAL") ?? false
        }
        try daemon.sendMessage("X_GREENROOM_TASK_PROGRESS=1/2 export\nX_GREENROOM_TASK_TITLE=Exporting")
        try daemon.wait("mail", "taskProgress")
        try SelfStage.request(daemon, "Background", "mail")
        try daemon.waitForEvent("it stalls") { $0["reason"]?.stringValue == "stalled" }
        let end = try daemon.wait("mail", "ended")
        #expect(end["code"]?.stringValue == "0x2182bad2")
        #expect(TestDaemon.text(of: daemon.root + "/log").contains("'export' made no progress (TaskProgressSec=)"))
        #expect(!TestDaemon.text(of: daemon.root + "/log").contains("50% of"))
    }
}
