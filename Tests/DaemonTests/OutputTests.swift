import Glibc
import JSON
import Linux
import TestKit
import Testing

@Suite("Output and environment of apps")
struct OutputTests {
    /// The flags of a descriptor of a process (proc_pid_fdinfo(5)).
    private func flags(_ pid: Int32, _ number: Int) -> Int32 {
        let line = TestDaemon.text(of: "/proc/\(pid)/fdinfo/\(number)").split(separator: "\n").first {
            $0.hasPrefix("flags:")
        }
        return line.flatMap { Int32($0.dropFirst(6).filter { $0 != "\t" }, radix: 8) } ?? 0
    }

    @Test("a program that makes its output non-blocking changes that of no other app, nor the daemon's (L56)")
    func descriptions() throws {
        let root = try TestDaemon.makeFolder()
        let script =
            "import fcntl, os; fcntl.fcntl(1, fcntl.F_SETFL, os.O_NONBLOCK | os.O_APPEND); open('\(root)/done', 'w'); "
            + "import signal; signal.pause()"
        let daemon = try TestDaemon(
            [
                "a": "[App]\nExecStart=/usr/bin/python3 -c \"\(script)\"\nStandardOutput=inherit\n",
                "b": "[App]\nExecStart=/bin/sleep 1000\nStandardOutput=inherit\n",
            ], root: root)
        _ = try daemon.launch("b")
        _ = try daemon.launch("a")
        try daemon.eventually("the flag is set") { access(root + "/done", F_OK) == 0 }
        let own = try daemon.pid("a")
        #expect(flags(own, 1) & O_NONBLOCK != 0 && flags(own, 2) & O_NONBLOCK != 0)
        for pid in [try daemon.pid("b"), daemon.process.pid] {
            #expect(flags(pid, 2) & O_NONBLOCK == 0 && flags(pid, 2) & O_APPEND != 0)
        }
    }

    @Test("output goes to the file of StandardOutput=, with variables of EnvironmentFile= in the command")
    func file() throws {
        let root = try TestDaemon.makeFolder()
        try replaceFile(at: root + "/env", with: Array("A='one  two'\n".utf8))
        let text = """
            [App]
            ExecStart=/bin/sh -c 'echo "$$#:$$1:$$2:$$A"; echo error >&2; exec sleep 1000' x ${A}. $A
            EnvironmentFile=\(root)/env
            EnvironmentFile=-\(root)/none
            StandardOutput=append:\(root)/output

            """
        let daemon = try TestDaemon(
            ["a": text, "b": "[App]\nExecStart=/bin/true\nEnvironmentFile=\(root)/none\n"], root: root)
        _ = try daemon.launch("a")
        try daemon.eventually("the lines are there") {
            TestDaemon.text(of: root + "/output") == "3:one  two.:one:one  two\nerror\n"
        }
        let answer = try daemon.launch("b")
        let explanation = answer["lastReceipt"]?["explanation"]?.stringValue ?? ""
        #expect(explanation.contains("the environment file \(root)/none does not exist"), "\(answer)")
    }
}
