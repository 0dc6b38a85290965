import Control
import Glibc
import Linux
import Systemd
import Testing

/// What is installed for tools and bindings to read is what the daemon shows.
@Suite("Introspection")
struct IntrospectionTests {
    /// An interface as the daemon shows it, from its opening tag to its end.
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
        "the installed XML equals the daemon's introspection data",
        arguments: [
            (ControlNames.managerInterface, ControlNames.managerPath),
            (ControlNames.appInterface, BusStage.path("photos")),
        ])
    func files(interface: String, path: String) throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("")])
        let live = try Self.live(daemon, interface, at: path)
        let file = "\(PrivateBus.data)/\(interface).xml"
        // Sources/scripts/introspection writes it anew.
        #expect(TestDaemon.text(of: file).contains("\n\(live)\n"), "\(file) is not what the daemon shows:\n\(live)")
    }

    @Test("docs/DBUS.md documents every method, property, signal and error")
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
                #expect(text.contains("`\(name)"), "docs/DBUS.md says nothing of \(name)")
            }
        }
        for failure in ControlNames.Failure.allCases {
            #expect(
                text.contains("`\(failure.rawValue)`"), "docs/DBUS.md says nothing of the error \(failure.rawValue)")
        }
    }
}
