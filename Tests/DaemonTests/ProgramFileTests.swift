import Glibc
import JSON
import Linux
import Posix
import TestKit
import Testing

/// The program of an app stays as it is (L10).
@Suite("Programs that stay as they are")
struct ProgramFileTests {
    private let root: String
    private var folder: String { root + "/photos" }

    init() throws {
        root = try TestDaemon.makeFolder()
        try createDirectories(at: folder)
        try replaceFile(
            at: folder + "/photos",
            with: Array(
                """
                #!/bin/sh
                (: >new) 2>/dev/null && echo written >"$1" || echo refused >"$1"
                exec sleep 1000

                """.utf8), mode: 0o755)
    }

    private func said(_ app: String, _ daemon: TestDaemon) throws -> String {
        let path = "\(root)/\(app).said"
        try daemon.eventually("\(app) has tried to write") { TestDaemon.text(of: path).hasSuffix("\n") }
        return TestDaemon.text(of: path)
    }

    @Test(
        "an app with ReadOnlyProgram=yes, and its hooks, cannot write in the folder of its program (L10)",
        .enabled(if: mayMount(), "mounting is not permitted"))
    func readOnly() throws {
        func manifest(_ app: String, _ lifecycle: String) -> String {
            "[App]\nExecStart=\(folder)/photos \(root)/\(app).said\nWorkingDirectory=\(folder)\nStartupSec=0\n[Lifecycle]\n"
                + "SuspendDelaySec=infinity\n\(lifecycle)"
        }
        let hook = "ExecEnterBackground=/bin/sh -c '(: >hook) 2>/dev/null && echo written >$$0 || echo refused >$$0' "
        let daemon = try TestDaemon(
            [
                "photos": manifest("photos", "ReadOnlyProgram=yes\n\(hook)\(root)/hook.said\n"),
                "plain": manifest("plain", ""),
            ], configuration: "[Manager]\nForegroundLimit=2\n", root: root)
        try daemon.launch("photos")
        #expect(try said("photos", daemon) == "refused\n")
        #expect(try daemon.status("photos")["readOnlyProgram"]?.boolValue == true)
        _ = try daemon.ask("Background", "photos")
        #expect(try said("hook", daemon) == "refused\n")
        try daemon.launch("plain")
        #expect(try said("plain", daemon) == "written\n")
        #expect(try daemon.status("plain")["readOnlyProgram"] == nil)
    }

    @Test("a program whose digest is not that of the manifest is not executed; the receipt has both (L10)")
    func digest() throws {
        let found = try FileDigest(of: folder + "/photos", .sha256)
        let program = "[App]\nExecStart=\(folder)/photos \(root)/photos.said\nWorkingDirectory=\(folder)\n"
        let zeroes = String(repeating: "0", count: 64)
        let daemon = try TestDaemon(
            [
                "photos": program + "ProgramDigest=\(found)\n",
                "changed": program + "ProgramDigest=sha256:\(zeroes)\n",
            ], configuration: "[Manager]\nForegroundLimit=2\n", root: root)
        try daemon.launch("photos")
        #expect(try daemon.status("photos")["programDigest"]?.stringValue == "\(found)")
        try daemon.launch("changed")
        let receipt = try #require(try daemon.receipts("changed").last)
        #expect(receipt["exitStatus"]?.integerValue == 203)
        let sentence = try #require(receipt["explanation"]?.stringValue)
        #expect(sentence.contains("its digest is \(found); expected sha256:\(zeroes)"), "\(sentence)")
    }

    @Test(
        "if a server does not answer, the launch of its program ends with its deadline, and others do not wait (L10, L7)",
        .enabled(if: access("/dev/fuse", R_OK | W_OK) == 0 && mayMount(), "only root can mount a file system of FUSE"))
    func silentServer() throws {
        let mountPoint = makeTemporaryFolder("greenroom-server")
        let server = open("/dev/fuse", O_RDWR | O_CLOEXEC)
        let options = "fd=\(server),rootmode=40000,user_id=0,group_id=0"
        try #require(mount("test", mountPoint, "fuse", 0, options) == 0)
        defer {
            close(server)
            detach(mountPoint)
            rmdir(mountPoint)
        }
        let zeroes = String(repeating: "0", count: 64)
        let manifest = "[App]\nExecStart=\(mountPoint)/program\nProgramDigest=sha256:\(zeroes)\n"
        let daemon = try TestDaemon(
            [
                "silent": manifest + "[Lifecycle]\nLaunchDeadlineSec=1s\n",
                "photos": "[App]\nExecStart=\(folder)/photos \(root)/photos.said\nWorkingDirectory=\(folder)\n",
            ], root: root)
        let launch = try daemon.begin("Launch", "silent")
        try daemon.launch("photos", background: true)
        try daemon.wait("silent", "ended")
        let receipt = try #require(try daemon.receipts("silent").last)
        // On a busy machine time without a processor follows: "(1s and 20ms without a processor)".
        #expect(receipt["explanation"]?.stringValue?.hasPrefix("Killed: exceeded its launch deadline (1s") == true)
        #expect(try daemon.state("photos") != "notRunning")
        withExtendedLifetime(launch) {}
    }

    @Test("a daemon that may not mount refuses to launch an app with ReadOnlyProgram=yes, with the reason (L10)")
    func notPermitted() throws {
        let daemon = try TestDaemon(
            ["photos": "[App]\nExecStart=/bin/sleep 1000\n[Lifecycle]\nReadOnlyProgram=yes\n"], root: root,
            asUnprivilegedUser: geteuid() == 0)
        try daemon.launch("photos")
        let receipt = try #require(try daemon.receipts("photos").last)
        #expect(receipt["exitStatus"]?.integerValue == 226)
        let sentence = try #require(receipt["explanation"]?.stringValue)
        #expect(sentence.contains("the daemon needs CAP_SYS_ADMIN for ReadOnlyProgram="), "\(sentence)")
    }
}
