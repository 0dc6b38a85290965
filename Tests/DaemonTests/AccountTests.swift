import Control
import Glibc
import LifecycleCore
import Systemd
import TestKit
import Testing

@testable import Daemon

/// Online accounts, which a program in the session of a user reports (`ReportAccounts`, L33).
@Suite("Online accounts")
struct AccountTests {
    private static func manifest(_ app: String) -> String {
        TestDaemon.manifest("", app: app, "[Lifecycle]\nSuspendDelaySec=0")
    }

    private func users(_ daemon: TestDaemon, _ property: String) throws -> [Variant]? {
        try daemon.bus.call(
            path: ControlNames.managerPath, interface: "org.freedesktop.DBus.Properties", member: "Get",
            [.string(ControlNames.managerInterface), .string(property)])[0].unwrapped.arrayValue
    }

    @Test("a report of accounts reaches an app with Notifications=account, and no other one (L33)")
    func report() throws {
        let daemon = try TestDaemon([
            "mail": Self.manifest("Notifications=account"), "theme": Self.manifest("Notifications=settings"),
        ])
        // Not wanted: it is ignored.
        _ = try daemon.call("ReportAccounts", [.string("0")])
        #expect(try users(daemon, "AccountUsers") == [])
        try daemon.launch("theme")
        #expect(try users(daemon, "AccountUsers") == [])
        try daemon.launch("mail")
        #expect(try users(daemon, "AccountUsers") == [.uint32(geteuid())])
        // The first digest is no change.
        var number = 0
        try daemon.eventually("a notification") {
            number += 1
            _ = try daemon.call("ReportAccounts", [.string("\(number)")])
            return daemon.inbox("mail", "account") != nil
        }
        #expect(number > 1)
        #expect(daemon.inbox("theme", "account") == nil && daemon.inbox("theme", "settings") == nil)
        #expect(
            daemon.refusal("ReportAccounts", [.string("a b")])?.contains("Invalid digest 'a b'; expected 1 to 64")
                == true)
        try daemon.terminate("mail")
        try daemon.eventually("no user") { try users(daemon, "AccountUsers") == [] }
    }

    @Test(
        "a suspended app is notified of the latest accounts, and the next daemon compares with what it got (L31, L33)")
    func suspended() throws {
        let daemon = try TestDaemon(["mail": Self.manifest("Notifications=account")])
        try daemon.launch("mail")
        _ = try daemon.call("ReportAccounts", [.string("one")])
        _ = try daemon.call("Background", [.string("mail")])
        try daemon.waitUntil("mail", is: "suspended")
        daemon.crash()
        let next = try daemon.successor()
        #expect(try users(next, "AccountUsers") == [.uint32(geteuid())])
        _ = try next.call("ReportAccounts", [.string("two")])
        try next.eventually("the notification of the change") {
            _ = try next.call("Activate", [.string("mail")])
            _ = try next.call("Background", [.string("mail")])
            return next.inbox("mail", "account") == "two\n"
        }
    }

    @Test(
        "the accounts of a user are reported to the apps of this user only (L33)",
        .enabled(if: PrivateBus.isPossible && geteuid() == 0, PrivateBus.requirement))
    func otherUser() throws {
        func manifest(_ user: String) -> String {
            "[App]\nStartupSec=0\nUser=\(user)\nNotifications=account\nExecStart=/bin/sleep 1000\n"
        }
        let stage = try BusStage(["mine": manifest("nobody"), "theirs": manifest("root")])
        for app in ["mine", "theirs"] { try stage.daemon.launch(app) }
        #expect(try users(stage.daemon, "AccountUsers") == [.uint32(0), .uint32(65534)])
        let words = [
            "busctl", "--system", "call", ControlNames.busName, ControlNames.managerPath, ControlNames.managerInterface,
        ]
        func count(_ app: String) -> Int {
            TestDaemon.text(of: stage.root + "/log").split(separator: "\n").count {
                $0.contains("read for \(app): account")
            }
        }
        #expect(try stage.run(words + ["ReportAccounts", "s", "one"], asOtherUser: true).status == 0)
        try stage.serve("the app of the user is notified") { count("mine") == 1 }
        // Root's are those of root, and no other user's.
        #expect(try stage.run(words + ["ReportAccounts", "s", "two"]).status == 0)
        try stage.serve("the app of root is notified") { count("theirs") == 1 }
        #expect(count("mine") == 1)
    }
}
