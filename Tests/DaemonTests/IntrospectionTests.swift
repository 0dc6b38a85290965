import Control
import Daemon
import Glibc
import Linux
import Reports
import Systemd
import Testing

@testable import LifecycleCore

/// The installed introspection data and docs/DBUS.md match the daemon.
@Suite("Introspection")
struct IntrospectionTests {
    /// The XML of an interface in the introspection data of the daemon.
    static func live(_ daemon: TestDaemon, _ interface: String, at path: String) throws -> String {
        let answer = try daemon.bus.call(
            path: path, interface: "org.freedesktop.DBus.Introspectable", member: "Introspect")
        let text = try #require(answer.first?.stringValue)
        let lines = text.split(separator: "\n", omittingEmptySubsequences: false)
        let start = try #require(lines.firstIndex { $0.contains("<interface name=\"\(interface)\">") })
        let end = try #require(lines[start...].firstIndex { $0.contains("</interface>") })
        return lines[start...end].joined(separator: "\n")
    }

    @Test(
        "the installed XML is the introspection data of the daemon",
        arguments: [
            (ControlNames.managerInterface, ControlNames.managerPath),
            (ControlNames.appInterface, BusStage.path("photos")),
        ])
    func files(interface: String, path: String) throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("")])
        let live = try Self.live(daemon, interface, at: path)
        let file = "\(PrivateBus.data)/\(interface).xml"
        // Sources/scripts/introspection writes the file.
        #expect(TestDaemon.text(of: file).contains("\n\(live)\n"), "\(file) differs from the daemon:\n\(live)")
    }

    @Test("docs/DBUS.md has every method, property, signal and error")
    func documented() throws {
        let text = TestDaemon.text(of: "\(PrivateBus.data)/../docs/DBUS.md")
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("")])
        let both = try [
            Self.live(daemon, ControlNames.managerInterface, at: ControlNames.managerPath),
            Self.live(daemon, ControlNames.appInterface, at: BusStage.path("photos")),
        ]
        for interface in both {
            let parts = interface.split(separator: "\n")[1...]
            for line in parts where ["<method ", "<property ", "<signal "].contains(where: { line.contains($0) }) {
                let name = try #require(line.split(separator: "\"").dropFirst().first)
                #expect(text.contains("`\(name)"), "docs/DBUS.md lacks \(name)")
            }
        }
        for failure in ControlNames.Failure.allCases {
            #expect(
                text.contains("`\(failure.rawValue)`"), "docs/DBUS.md lacks the error \(failure.rawValue)")
        }
    }

    @Test("the documents have each reason with which an app is notified that it will be ended")
    func terminationReasons() throws {
        let causes: [TerminationCause] = [.requested, .shutdown, .exitsOnSuspend, .unloaded, .jetsam(.available, [])]
        // A new cause belongs into the list, unless the app itself ends.
        for cause in causes {
            switch cause {
            case .requested, .shutdown, .exitsOnSuspend, .unloaded, .jetsam: break
            case .selfInitiated: Issue.record("no app is notified of its own end")
            }
        }
        let root = PrivateBus.data + "/.."
        for (path, start) in [
            ("docs/DBUS.md", "| `willTerminate` |"), ("docs/APPS.md", "| `on_terminate` |"),
            ("docs/PYTHON.md", "`handler(reason, deadline_seconds)`"),
            ("Sources/Greenroom/AppDelegate.swift", "/// - Parameter reason: `requested`"),
        ] {
            let lines = TestDaemon.text(of: "\(root)/\(path)").split(separator: "\n")
            let first = try #require(lines.firstIndex { $0.contains(start) }, "\(path) lacks \(start)")
            let text = lines[first...(first + 1)].joined()
            for cause in causes { #expect(text.contains(cause.reason.rawValue), "\(path) lacks \(cause.reason)") }
        }
    }

    @Test("docs/DBUS.md has the keys of every record with their types, in order, and no others")
    func records() throws {
        let text = TestDaemon.text(of: "\(PrivateBus.data)/../docs/DBUS.md")
        try check(AppStatus.self, text)
        try check(SocketStatus.self, text)
        try check(TaskStatus.self, text)
        try check(WakeStatus.self, text)
        try check(AwakeStatus.self, text)
        try check(ThrottleStatus.self, text)
        try check(InputStatus.self, text)
        try check(WatchStatus.self, text)
        try check(UnwatchedStatus.self, text)
        try check(DeferredWakeStatus.self, text)
        try check(LockStatus.self, text)
        try check(DeadlineStatus.self, text)
        try check(ReceiptRecord.self, text)
        try check(JetsamCandidate.self, text)
        try check(MemoryStatus.self, text)
        try check(MemoryLimitStatus.self, text)
        try check(StallStatus.self, text)
        try check(SimulationResult.self, text)
        try check(LaunchOptions.self, text)
        try check(RequestResult.self, text)
        try check(ReloadResult.self, text)
        try check(LifecycleEvent.self, text)
    }

    private func check<Value: Record>(_ record: Value.Type, _ text: String) throws {
        let heading = try #require(text.firstRange(of: "\n### \(record)\n"), "docs/DBUS.md lacks \(record)")
        let section = text[heading.upperBound...].split(separator: "\n#", maxSplits: 1)[0]
        let table = try #require(section.firstRange(of: "|---|---|---|---|\n"))
        let rows = section[table.upperBound...].split(separator: "\n", omittingEmptySubsequences: false)
            .prefix { $0.hasPrefix("|") }
        let documented = rows.map { row in
            let cells = row.split(separator: "|").map { $0.drop { $0 == " " } }
            return "\(cells[0].prefix { $0 != " " }) \(cells[1].prefix { $0 != " " }) "
                + (row.contains(" Optional") ? "optional" : "required")
        }
        let actual = record.fields.map { "`\($0.key)` `\($0.signature)` \($0.isRequired ? "required" : "optional")" }
        #expect(documented == actual, "\(record)")
    }

    @Test("docs/DBUS.md has every value of the core that a record can contain")
    func words() throws {
        let text = TestDaemon.text(of: "\(PrivateBus.data)/../docs/DBUS.md")
        let words =
            LifecycleEvent.Kind.allCases.map(\.rawValue) + StateReason.allCases.map(\.rawValue)
            + AppState.allCases.map(\.rawValue) + DeadlineKind.allCases.map(\.rawValue)
            + MemoryCause.allCases.map(\.rawValue) + MemoryLevel.allCases.map(\.name)
            + WakeResult.allCases.map(\.rawValue) + Receipt.Namespace.allCases.map(\.rawValue)
            + LaunchReason.allCases.map(\.rawValue) + RequestResult.Outcome.allCases.map(\.rawValue)
            + InputKind.allCases.map(\.rawValue) + InputWatch.Problem.allCases.map(\.rawValue)
            + WorkReason.allCases.map(\.rawValue)
        for word in words { #expect(text.contains("`\(word)`"), "docs/DBUS.md lacks \(word)") }
    }
}
