import JSON
import Systemd
import Testing

/// `Essential=` with real processes: a program that listens on the socket of a display, and one that depends on it.
@Suite("Displays as apps", .enabled(if: TrafficStage.hasPython, "needs python3"))
struct EssentialAppTests {
    /// Listens on a socket as an X server or a Wayland compositor does: `@` begins an abstract address.
    private static let program = """
        import socket, sys
        listener = socket.socket(socket.AF_UNIX)
        listener.bind(sys.argv[1].replace("@", chr(0)))
        listener.listen()
        while True:
            client = listener.accept()
        """

    @Test(
        "a display is ready when it listens, stays awake, and survives a shortage of memory (L7, L18, L38)",
        arguments: ["/X7", "@X7"])
    func display(socket: String) throws {
        let root = try TestDaemon.makeFolder()
        let address = socket.hasPrefix("@") ? socket + root.split(separator: "/").joined() : root + socket
        let text = """
            [App]
            Type=listening
            Role=worker
            ExecStart=/usr/bin/python3 \(root)/display.py \(address)
            StartupSec=0
            [Lifecycle]
            LaunchDeadlineSec=50s
            IdleSec=100ms
            Essential=yes

            """
        let client = "[App]\nExecStart=/bin/sleep 1000\nStartupSec=0\n[Lifecycle]\nSuspendDelaySec=0\n"
        let daemon = try TestDaemon(["display": text, "client": client], root: root)
        try daemon.writeFile(root + "/display.py", Self.program)
        #expect(try daemon.launch("display", background: true)["state"]?.stringValue == "background")
        #expect(try daemon.launch("client", background: true)["state"] != nil)
        try daemon.waitUntil("client", is: "suspended")
        try daemon.eventually("it is idle, and stays awake") {
            try daemon.status("display")["awake"]?.arrayValue?.first?["reason"]?.stringValue == "neverSuspended"
        }
        let first = try daemon.call("SimulatePressure", [.string("critical")])
        #expect(JSONText.of(first, "victim") == "client")
        let second = try daemon.call("SimulatePressure", [.string("critical")])
        #expect(JSONText.of(second, "victim") == nil)
        _ = try daemon.call("SimulatePressure", [.string("normal")])
        #expect(try daemon.state("display") == "background")
    }
}
