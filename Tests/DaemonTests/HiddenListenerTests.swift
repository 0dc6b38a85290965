import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

@Suite("Apps of Type=listening whose sockets cannot be examined", .enabled(if: geteuid() == 0, "needs root"))
struct HiddenListenerTests {
    /// Lets a daemon without privileges launch a server that it may execute and not read, so the process is not dumpable
    /// (proc_pid(5)).
    private func launch(deadline: String) throws -> TestDaemon {
        let root = try TestDaemon.makeFolder()
        chmod(root, 0o777)
        let program = root + "/hidden"
        try replaceFile(at: program, with: readFile(at: TestDaemon.app, limit: 1 << 28), mode: 0o711)
        let manifest = """
            [App]
            Type=listening
            ExecStart=\(program) serve \(root)/port
            [Lifecycle]
            LaunchDeadlineSec=\(deadline)

            """
        return try TestDaemon(["server": manifest], root: root, asUnprivilegedUser: true)
    }

    @Test("if the sockets of an app of Type=listening cannot be examined, log, status and receipt say so and why (L7)")
    func killed() throws {
        let daemon = try launch(deadline: "3s")
        let end = try daemon.launch("server")
        #expect(end["outcome"]?.stringValue == "ended")
        let receipt = try #require(end["lastReceipt"])
        #expect(receipt["code"]?.stringValue == "0x8badf00d")
        let explanation = receipt["explanation"]?.stringValue ?? ""
        #expect(explanation.contains("could not be examined: permission denied"), "\(explanation)")
        #expect(explanation.contains("CAP_SYS_PTRACE"), "\(explanation)")
        let log = TestDaemon.text(of: daemon.root + "/log")
        #expect(log.contains("Type=listening: the sockets of process "), "\(log)")
    }

    @Test("the status of a launch says that the sockets of the app cannot be examined (L7)")
    func status() throws {
        let daemon = try launch(deadline: "50s")
        _ = try daemon.begin("Launch", "server")
        try daemon.eventually("its status says so") {
            let awake = try daemon.status("server")["awake"]?.arrayValue?.first
            return awake?["explanation"]?.stringValue?.contains("could not be examined") ?? false
        }
    }
}
