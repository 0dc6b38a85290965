import Control
import Glibc
import Linux
import Posix
import Systemd
import Testing

/// Common D-Bus programs and libraries as clients of greenroomd. The programs are in Tests/clients.
@Suite("D-Bus clients", .serialized)
struct ClientTests {
    /// How a client reaches the daemon.
    enum Route: String, CaseIterable, CustomTestStringConvertible {
        case privateSocket = "the private socket"
        case messageBus = "a message bus"

        var testDescription: String { rawValue }

        /// The bus policy lets root own the name.
        static let possible = PrivateBus.isPossible && geteuid() == 0 ? allCases : [.privateSocket]
    }

    /// A daemon with a valid and a broken manifest, and the address at which clients reach it.
    final class Setting {
        let daemon: TestDaemon
        let address: String
        private let stage: BusStage?
        private let output: String

        init(_ route: Route) throws {
            let apps = ["photos": TestDaemon.manifest(""), "broken": "[App]\nType=notfy\n"]
            switch route {
            case .privateSocket:
                stage = nil
                daemon = try TestDaemon(apps)
                address = BusAddress.unix(path: daemon.runtime + "/bus")
            case .messageBus:
                let stage = try BusStage(apps)
                self.stage = stage
                daemon = stage.daemon
                address = stage.bus.address
            }
            output = daemon.root + "/client-output"
        }

        /// Runs a program of /usr/bin with this bus as the system's.
        /// - Returns: its exit status and what it wrote, both streams; for a signal the status is -1.
        func run(_ words: [String]) throws -> (status: Int32, text: String) {
            let file = SharedDescriptor(try Descriptor.open(output, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600))
            let request = SpawnRequest(
                executable: "/usr/bin/" + words[0], arguments: Array(words.dropFirst()),
                environment: [
                    "PATH=/usr/bin:/bin", "HOME=/", "DBUS_SYSTEM_BUS_ADDRESS=\(address)", "PYTHONDONTWRITEBYTECODE=1",
                ], standardOutput: file, standardError: file)
            var starting = try startProcess(request)
            let process = starting.process
            while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
            waitForReadable([process.descriptor])
            let text = TestDaemon.text(of: output)
            guard case .exited(let status)? = try process.reap()?.status else { return (-1, text) }
            return (status, text)
        }

        func busctl(_ words: String...) throws -> (status: Int32, text: String) {
            try run(["busctl", "--address=\(address)", "--no-pager"] + words)
        }
    }

    /// Whether a module of Python is installed.
    private static func hasModule(_ name: String) -> Bool {
        guard isInstalled("python3") else { return false }
        do {
            let nowhere = SharedDescriptor(try Descriptor.open("/dev/null", O_WRONLY))
            var starting = try startProcess(
                SpawnRequest(
                    executable: "/usr/bin/python3", arguments: ["-B", "-c", "import \(name)"],
                    environment: ["PATH=/usr/bin:/bin"], standardOutput: nowhere, standardError: nowhere))
            let process = starting.process
            while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
            waitForReadable([process.descriptor])
            guard case .exited(0)? = try process.reap()?.status else { return false }
            return true
        } catch {
            return false
        }
    }

    static let hasGio = hasModule("gi")
    static let hasDBusPython = hasModule("dbus") && hasGio
    static let hasJeepney = hasModule("jeepney")
    static let hasDBusNext = hasModule("dbus_next")
    static let hasDBusFast = hasModule("dbus_fast")
    static let hasDasbus = hasModule("dasbus") && hasGio
    static let hasSdbus = hasModule("sdbus")

    /// What each program prints.
    private static let expected = """
        version: \(ControlNames.version)
        apps: broken=bad-setting photos=loaded
        launch: done active
        event: photos active
        error: org.greenroom.Error.UnknownApp

        """

    private func check(_ program: String..., more: String = "", by route: Route) throws {
        let folder = #filePath.split(separator: "/").dropLast(2).joined(separator: "/")
        let setting = try Setting(route)
        let words = ["python3", "/\(folder)/clients/\(program[0])"] + program.dropFirst()
        let (status, text) = try setting.run(words)
        #expect(text == Self.expected + more)
        #expect(status == 0)
    }

    // MARK: Libraries

    @Test(
        "GDBus with GDBusObjectManagerClient; after a message with descriptors the connection stays",
        .enabled(if: ClientTests.hasGio, "python3-gi is not installed"), arguments: Route.possible)
    func gio(route: Route) throws {
        // The message bus refuses them: the daemon has not agreed to get any.
        let error = route == .messageBus ? "descriptors: org.freedesktop.DBus.Error.NotSupported\n" : ""
        try check("client_gio.py", more: error + "afterwards: \(ControlNames.version)\n", by: route)
    }

    @Test(
        "dbus-python", .enabled(if: ClientTests.hasDBusPython, "python3-dbus or python3-gi is not installed"),
        arguments: Route.possible)
    func dbusPython(route: Route) throws { try check("client_dbus.py", by: route) }

    @Test(
        "jeepney", .enabled(if: ClientTests.hasJeepney, "python3-jeepney is not installed"), arguments: Route.possible)
    func jeepney(route: Route) throws { try check("client_jeepney.py", by: route) }

    @Test(
        "dbus-next", .enabled(if: ClientTests.hasDBusNext, "python3-dbus-next is not installed"),
        arguments: Route.possible)
    func dbusNext(route: Route) throws { try check("client_dbus_next.py", "dbus_next", by: route) }

    @Test(
        "dbus-fast", .enabled(if: ClientTests.hasDBusFast, "python3-dbus-fast is not installed"),
        arguments: Route.possible)
    func dbusFast(route: Route) throws { try check("client_dbus_next.py", "dbus_fast", by: route) }

    @Test(
        "dasbus", .enabled(if: ClientTests.hasDasbus, "python3-dasbus or python3-gi is not installed"),
        arguments: Route.possible)
    func dasbus(route: Route) throws { try check("client_dasbus.py", by: route) }

    @Test("sdbus", .enabled(if: ClientTests.hasSdbus, "sdbus (PyPI) is not installed"), arguments: Route.possible)
    func sdbus(route: Route) throws { try check("client_sdbus.py", by: route) }

    // MARK: Programs

    @Test("busctl", .enabled(if: isInstalled("busctl"), "busctl is not installed"), arguments: Route.possible)
    func busctl(route: Route) throws {
        let setting = try Setting(route)
        let (name, path, manager) = (ControlNames.busName, ControlNames.managerPath, ControlNames.managerInterface)
        #expect(try setting.busctl("call", name, path, manager, "Version").text == "s \"\(ControlNames.version)\"\n")
        let tree = try setting.busctl("tree", "--list", name).text.split(separator: "\n")
        for app in ["photos", "broken"] { #expect(tree.contains("/org/greenroom/app/\(app)")) }
        let launched = try setting.busctl("call", name, path, manager, "Launch", "sa{sv}", "photos", "0")
        #expect(launched.text == "a{sv} 2 \"outcome\" s \"done\" \"state\" s \"active\"\n")
        let app = "/org/greenroom/app/photos"
        #expect(
            try setting.busctl("get-property", name, app, ControlNames.appInterface, "Pid").text
                == "u \(setting.daemon.pid("photos"))\n")
        let failure = try setting.busctl("call", name, path, manager, "Status", "s", "missing")
        #expect(failure.status == 1 && failure.text.contains("There is no app 'missing' in "))
    }

    @Test("gdbus", .enabled(if: isInstalled("gdbus"), "gdbus is not installed"), arguments: Route.possible)
    func gdbus(route: Route) throws {
        let setting = try Setting(route)
        func gdbus(_ member: String, _ words: String...) throws -> (status: Int32, text: String) {
            let connection = route == .messageBus ? ["--system"] : ["--address", setting.address]
            return try setting.run(
                ["gdbus", "call"] + connection
                    + [
                        "--timeout", "60", "--dest", ControlNames.busName, "--object-path", ControlNames.managerPath,
                        "--method", "\(ControlNames.managerInterface).\(member)",
                    ] + words)
        }
        #expect(try gdbus("Version").text == "('\(ControlNames.version)',)\n")
        #expect(try gdbus("Launch", "photos", "{}").text == "({'outcome': <'done'>, 'state': <'active'>},)\n")
        let failure = try gdbus("Status", "missing")
        #expect(failure.status != 0 && failure.text.contains("org.greenroom.Error.UnknownApp"))
    }
}
