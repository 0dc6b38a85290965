import Control
import Glibc
import Linux
import Posix
import Systemd
import Testing

/// Interruptions by critical notifications that a client reports, as greenroom-session does (L13).
@Suite("Alerts that clients report")
struct AlertTests {
    private static let configuration = "[Manager]\nForegroundLimit=3\nInterruptions=notifications\n"

    private func report(_ client: BusConnection, _ isShown: Bool) throws {
        _ = try client.call(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: "ReportAlert",
            [.bool(isShown)])
    }

    private func areWanted(_ daemon: TestDaemon) throws -> Variant {
        try daemon.bus.call(
            path: ControlNames.managerPath, interface: "org.freedesktop.DBus.Properties", member: "Get",
            [.string(ControlNames.managerInterface), .string("AlertsWanted")])[0].unwrapped
    }

    @Test("an alert interrupts the apps that are active when it is shown, until it is closed or its client ends (L13)")
    func interruption() throws {
        let app = TestDaemon.manifest("")
        let daemon = try TestDaemon(["game": app, "book": app], configuration: Self.configuration)
        #expect(try areWanted(daemon) == .bool(true))
        try daemon.launch("game")
        let client = try BusConnection(path: daemon.runtime + "/bus")
        try report(client, true)
        try daemon.waitUntil("game", is: "inactive")
        // An app that the user activates meanwhile is not interrupted, by no further report of the same client.
        try daemon.launch("book")
        try report(client, true)
        #expect(try daemon.state("book") == "active")
        do {
            let other = try BusConnection(path: daemon.runtime + "/bus")
            try report(other, true)
            try daemon.waitUntil("book", is: "inactive")
            // Its answer may come before the core has handled it.
            try report(client, false)
            try daemon.waitUntil("game", is: "active")
        }
        try daemon.waitUntil("book", is: "active")
        // Each alert interrupts anew.
        try report(client, true)
        try withExtendedLifetime(client) { try daemon.waitUntil("game", is: "inactive") }
    }

    @Test("without Interruptions=notifications an alert interrupts nothing, and a reload ends what it began (L13)")
    func setting() throws {
        let app = TestDaemon.manifest("")
        let daemon = try TestDaemon(["game": app], configuration: "[Manager]\nInterruptions=calls\n")
        func configure(_ text: String) throws {
            try replaceFile(at: daemon.config + "/greenroom.conf", with: Array(text.utf8))
            _ = try daemon.call("Reload")
        }
        try daemon.launch("game")
        let client = try BusConnection(path: daemon.runtime + "/bus")
        try report(client, true)
        #expect(try daemon.state("game") == "active")
        #expect(try areWanted(daemon) == .bool(false))
        try configure(Self.configuration)
        #expect(try areWanted(daemon) == .bool(true))
        try report(client, true)
        try daemon.waitUntil("game", is: "inactive")
        try configure("[Manager]\n")
        try withExtendedLifetime(client) { try daemon.waitUntil("game", is: "active") }
    }

    @Test("at most 8 connections of a user report alerts (L13)")
    func bound() throws {
        let daemon = try TestDaemon(["game": TestDaemon.manifest("")], configuration: Self.configuration)
        var clients: [BusConnection] = []
        for _ in 0..<8 {
            clients.append(try BusConnection(path: daemon.runtime + "/bus"))
            try report(clients[clients.count - 1], true)
        }
        let refusal = daemon.refusal("ReportAlert", [.bool(true)])
        #expect(refusal?.contains("8 clients of uid \(geteuid()), or 64 in all, report alerts already.") == true)
        // Having none to report needs no connection of the eight.
        _ = try withExtendedLifetime(clients) { try daemon.call("ReportAlert", [.bool(false)]) }
    }

    @Test(
        "a user's alert interrupts the apps of this user only (L13)",
        .enabled(if: PrivateBus.isPossible && geteuid() == 0, PrivateBus.requirement))
    func otherUser() throws {
        func manifest(_ user: String) -> String { "[App]\nStartupSec=0\nUser=\(user)\nExecStart=/bin/sleep 1000\n" }
        let stage = try BusStage(
            ["mine": manifest("nobody"), "theirs": manifest("root")], configuration: Self.configuration)
        for app in ["mine", "theirs"] { try stage.daemon.launch(app) }
        let words = [
            "busctl", "--system", "call", ControlNames.busName, ControlNames.managerPath, ControlNames.managerInterface,
        ]
        #expect(try stage.run(words + ["ReportAlert", "b", "true"], asOtherUser: true).status == 0)
        // The alert has ended with busctl.
        func lines(_ app: String) -> [Substring] {
            TestDaemon.text(of: stage.root + "/log").split(separator: "\n").filter {
                $0.contains(" \(app): state changed")
            }
        }
        try stage.serve("it was interrupted, and is active again") {
            lines("mine").contains { $0.contains("active → inactive") }
                && lines("mine").last?.contains("inactive → active") == true
        }
        #expect(!lines("theirs").contains { $0.contains("active → inactive") })
        #expect(try stage.daemon.state("theirs") == "active")
    }
}
