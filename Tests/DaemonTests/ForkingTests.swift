import Glibc
import JSON
import Linux
import TestKit
import Testing

@Suite("Type=forking")
struct ForkingTests {
    private func daemon(_ script: String, _ more: String = "") throws -> TestDaemon {
        let root = try TestDaemon.makeFolder()
        try replaceFile(at: root + "/app", with: Array(("#!/bin/sh\n" + script + "\n").utf8), mode: 0o755)
        let text = """
            [App]
            Type=forking
            PIDFile=\(root)/pid
            ExecStart=\(root)/app
            Environment=ROOT=\(root)
            \(more)

            """
        return try TestDaemon(["app": text], root: root)
    }

    /// Forks a server with one more process, and exits once the file names the server.
    private static let server = """
        setsid sh -c 'sleep 1000 & echo $! > $ROOT/new; mv $ROOT/new $ROOT/pid; wait' &
        while ! [ -e $ROOT/pid ]; do sleep 0.01; done
        """

    @Test("the process that PIDFile= names is the main process once the first process has exited")
    func forks() throws {
        let daemon = try daemon(Self.server)
        #expect(try daemon.launch("app")["state"]?.stringValue == "active")
        let pid = try daemon.pid("app")
        #expect(TestDaemon.text(of: daemon.root + "/pid") == "\(pid)\n")
        // The shell may have written the number before its child has executed the program, and mv may not have ended.
        var others: [Int32] = []
        try daemon.eventually("it runs the program, beside its shell") {
            others = try daemon.processes(of: "app")
            return try others.count == 2 && ProcFS().stat(of: pid)?.comm == "sleep"
        }
        try #require(kill(pid, SIGKILL) == 0)
        try daemon.wait("app", "ended")
        let receipt = try #require(try daemon.receipts("app").last)
        #expect(receipt["pid"]?.integerValue == Int64(pid))
        #expect(receipt["signal"]?.integerValue == 9)
        try daemon.waitUntil("app", is: "notRunning")
        #expect(others.allSatisfy { !isAlive($0) })
    }

    @Test("a file that names a process outside the app is not believed, and the launch deadline counts (L7)")
    func foreign() throws {
        let daemon = try daemon(
            "sleep 1000 & echo \(getpid()) > $ROOT/pid", "[Lifecycle]\nLaunchDeadlineSec=500ms")
        let answer = try daemon.launch("app")
        #expect(answer["lastReceipt"]?["state"]?.stringValue == "launching", "\(answer)")
        #expect(answer["lastReceipt"]?["code"]?.stringValue == "0x8badf00d", "\(answer)")
        try daemon.waitUntil("app", is: "notRunning")
    }

    @Test("a launch that is not finished names what it waits for")
    func obstacles() throws {
        for (script, time, problem) in [
            ("sleep 1000", "500ms", "; its first process has not exited (Type=forking)"),
            ("sleep 1000 &", "4s", "/pid does not exist"),
            ("echo x1 > $ROOT/pid; sleep 1000 &", "4s", "/pid has no process ID: 'x1'"),
            ("echo 1 > $ROOT/pid; sleep 1000 &", "4s", "/pid names process 1, which is not a process of the app"),
        ] {
            let daemon = try daemon(script, "[Lifecycle]\nLaunchDeadlineSec=\(time)")
            let answer = try daemon.launch("app")
            #expect(answer["lastReceipt"]?["explanation"]?.stringValue?.contains(problem) == true, "\(answer)")
        }
    }

    @Test("blanks around the number in the PID file do not count")
    func padded() throws {
        let daemon = try daemon("sleep 1000 & printf '   %d \\r\\n' $! > $ROOT/pid")
        #expect(try daemon.launch("app")["state"]?.stringValue == "active")
    }

    @Test("a first process that exits with an error, or leaves no process, has not launched the app")
    func fails() throws {
        for (script, status) in [("sleep 1000 & exit 3", 3), ("exit 0", 0)] as [(String, Int64)] {
            let daemon = try daemon(script)
            let answer = try daemon.launch("app")
            #expect(answer["lastReceipt"]?["exitStatus"]?.integerValue == status, "\(answer)")
            #expect(answer["lastReceipt"]?["remainingProcesses"]?.integerValue == (status == 3 ? 1 : nil), "\(answer)")
        }
    }

    @Test("the next daemon continues to wait for the main process")
    func recovered() throws {
        let daemon = try daemon(
            "setsid sh -c 'while ! [ -e $ROOT/go ]; do sleep 0.01; done; echo $$ > $ROOT/new; mv $ROOT/new $ROOT/pid; while :; do sleep 0.1; done' &\nexit 0",
            "[Lifecycle]\nLaunchDeadlineSec=1min")
        _ = try daemon.begin("Launch", "app")
        try daemon.wait("app", "stateChanged", state: "launching")
        let pid = try daemon.pid("app")
        try daemon.eventually("the first process has exited") { try pid > 0 && ProcFS().stat(of: pid) == nil }
        daemon.crash()
        let next = try daemon.successor()
        #expect(try next.state("app") == "launching")
        try replaceFile(at: next.root + "/go", with: [])
        try next.eventually("the app runs") { try next.state("app") == "active" }
        #expect(TestDaemon.text(of: next.root + "/pid") == "\(try next.pid("app"))\n")
    }
}
