import Glibc
import Linux
import Posix
import Systemd
import Testing

/// A D-Bus daemon for one test, with the bus policy that Greenroom installs.
final class PrivateBus {
    static let isPossible = isInstalled("dbus-daemon")
    static let requirement: Comment = "dbus-daemon is not installed (Debian: dbus-daemon)"

    let folder: String
    private var process: Linux.Process?

    /// In `folder`, where greenroomd looks for it too (`TestDaemon.environment`).
    init(in folder: String) throws {
        self.folder = folder
        // Like /usr/share/dbus-1/system.conf, and with the bus names of the fakes.
        let configuration = """
            <!DOCTYPE busconfig PUBLIC "-//freedesktop//DTD D-Bus Bus Configuration 1.0//EN"
             "http://www.freedesktop.org/standards/dbus/1.0/busconfig.dtd">
            <busconfig>
              <type>custom</type>
              <listen>\(PrivateBus.address(in: folder))</listen>
              <auth>EXTERNAL</auth>
              <policy context="default">
                <allow user="*"/>
                <deny own="*"/>
                <deny send_type="method_call"/>
                <allow send_type="signal"/>
                <allow send_requested_reply="true" send_type="method_return"/>
                <allow send_requested_reply="true" send_type="error"/>
                <allow receive_type="method_call"/>
                <allow receive_type="method_return"/>
                <allow receive_type="error"/>
                <allow receive_type="signal"/>
                <allow send_destination="org.freedesktop.DBus"/>
                <allow send_destination="org.freedesktop.PolicyKit1"/>
                <allow send_destination="org.freedesktop.login1"/>
                <allow send_destination="org.freedesktop.UPower"/>
                <allow send_destination="net.hadess.SensorProxy"/>
                <allow send_destination="org.freedesktop.ModemManager1"/>
                <allow send_destination="org.freedesktop.GeoClue2"/>
              </policy>
              <policy user="root">
                <allow own="org.freedesktop.PolicyKit1"/>
                <allow own="org.freedesktop.login1"/>
                <allow own="org.freedesktop.UPower"/>
                <allow own="net.hadess.SensorProxy"/>
                <allow own="org.freedesktop.ModemManager1"/>
                <allow own="org.freedesktop.GeoClue2"/>
              </policy>
              <include>\(PrivateBus.data)/org.greenroom.conf</include>
            </busconfig>
            """
        try replaceFile(at: folder + "/bus.conf", with: Array(configuration.utf8))
        try start()
    }

    deinit { stop() }

    static func address(in folder: String) -> String { BusAddress.unix(path: folder + "/system-bus") }
    var address: String { PrivateBus.address(in: folder) }

    /// The folder with the files that Greenroom installs for the bus.
    static var data: String {
        let file = #filePath
        let root = file.split(separator: "/").dropLast(3).joined(separator: "/")
        return "/\(root)/systemd"
    }

    func start() throws {
        let log = SharedDescriptor(
            try Descriptor.open(folder + "/bus-log", O_WRONLY | O_CREAT | O_APPEND, mode: 0o600))
        let request = SpawnRequest(
            executable: "/usr/bin/dbus-daemon", arguments: ["--nofork", "--config-file=\(folder)/bus.conf"],
            environment: ["PATH=/usr/bin:/bin"], standardOutput: log, standardError: log)
        var starting = try startProcess(request)
        process = starting.process
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
    }

    /// Kills the daemon, as in a crash: its socket stays.
    func stop() {
        guard let process else { return }
        self.process = nil
        _ = try? process.signal(SIGKILL)
        waitForReadable([process.descriptor])
        _ = try? process.reap()
    }
}

func isInstalled(_ program: String) -> Bool { access("/usr/bin/\(program)", X_OK) == 0 }
