import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// Commands of `greenroomctl run` in a shell on a terminal.
@Suite("greenroomctl run on a terminal", .enabled(if: geteuid() == 0, "needs control groups"))
struct RunTerminalTests {
    /// A shell with job control, on a terminal of its own.
    private final class Shell {
        let master: SharedDescriptor
        let process: Linux.Process
        private var seen: [UInt8] = []

        /// - Parameter script: executed instead, by a shell without job control.
        init(_ daemon: TestDaemon, script: String? = nil) throws {
            let (number, path) = try openTerminal()
            master = SharedDescriptor(Descriptor(adopting: number))
            // The leader of a session that opens a terminal has it as its controlling terminal.
            let shell = script.map { "sh -c '\($0)'" } ?? "bash --norc -i"
            let command = "PS1='out> ' exec \(shell) <\(path) >\(path) 2>&1"
            let run =
                "\(TestDaemon.binaries)/greenroomctl --runtime \(daemon.runtime) run -p IdleSec=100ms -p StartupSec=0"
            var starting = try startProcess(
                SpawnRequest(
                    executable: "/bin/bash", arguments: ["-c", command],
                    environment: ["PATH=/usr/bin:/bin", "TERM=dumb", "RUN=\(run)", "HISTFILE=/dev/null"]))
            process = starting.process
            while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
            if script == nil { try expect("out> ") }
        }

        deinit {
            _ = try? process.signal(SIGKILL)
            waitForReadable([process.descriptor])
            _ = try? process.reap()
        }

        func type(_ text: String) throws { try writeAll(Array(text.utf8), to: master.descriptor) }

        /// Waits until the terminal shows a text after what was expected before.
        func expect(_ text: String) throws {
            while true {
                let all = String(decoding: seen, as: UTF8.self)
                if let found = all.firstRange(of: text) {
                    seen = Array(all[found.upperBound...].utf8)
                    return
                }
                var piece = [UInt8](repeating: 0, count: 4096)
                guard isReadable(master.raw, within: .seconds(30)), case let count = read(master.raw, &piece, 4096),
                    count > 0
                else { throw TestFailure("'\(text)' is not in '\(all)'") }
                seen += piece[..<count]
            }
        }
    }

    @Test("keys, ^C, ^Z and fg reach a command that sleeps (L54)")
    func jobs() throws {
        let daemon = try TestDaemon()
        let shell = try Shell(daemon)
        try shell.type("$RUN --name job -- sh -c 'while read a; do echo got-$a; done'\n")
        try daemon.eventually("it runs") { try daemon.listed() == ["run@job"] }
        try daemon.waitUntil("run@job", is: "suspended")
        try shell.type("one\n")
        try shell.expect("got-one")
        try daemon.waitUntil("run@job", is: "suspended")
        try shell.type("\u{1a}")
        try shell.expect("Stopped")
        try shell.expect("out> ")
        try shell.type("fg\n")
        try shell.type("two\n")
        try shell.expect("got-two")
        try daemon.waitUntil("run@job", is: "suspended")
        try shell.type("\u{3}")
        try shell.expect("out> ")
        try shell.type("echo status-$?\n")
        try shell.expect("status-130")
    }

    @Test("a shell that sleeps gets ^C and the size of the terminal, and the foreground again (L54)")
    func innerShell() throws {
        let daemon = try TestDaemon()
        let shell = try Shell(daemon)
        try shell.type("$RUN --name inner -- env PS1='in''> ' bash --norc -i\n")
        try shell.expect("in> ")
        try daemon.waitUntil("run@inner", is: "suspended")
        try shell.type("abc")
        try shell.expect("abc")
        try daemon.waitUntil("run@inner", is: "suspended")
        try shell.type("\u{3}")
        try shell.expect("in> ")
        try daemon.waitUntil("run@inner", is: "suspended")
        // It may wake between the freeze and the watch, where it is no input.
        func wakes() -> Int {
            TestDaemon.text(of: daemon.root + "/log").split(separator: "\n").count {
                $0.contains("suspended → background")
            }
        }
        let before = wakes()
        var size: [UInt16] = [33, 77, 0, 0]
        _ = ioctl(shell.master.raw, UInt(TIOCSWINSZ), &size)
        try daemon.eventually("the new size wakes it") { wakes() > before }
        try shell.type("stty size\n")
        try shell.expect("33 77")
        try shell.expect("in> ")
        try shell.type("exit 8\n")
        try shell.expect("out> ")
        try shell.type("echo status-$?\n")
        try shell.expect("status-8")
    }

    @Test("a command in the background leaves the terminal to the shell, and ends with the terminal's session (L54)")
    func background() throws {
        let daemon = try TestDaemon()
        let shell = try Shell(daemon)
        try shell.type("$RUN --name back -- sleep 1000 &\n")
        try daemon.eventually("it runs") { try daemon.listed() == ["run@back"] }
        try daemon.waitUntil("run@back", is: "suspended")
        try shell.type("echo still-$((1+1))\n")
        try shell.expect("still-2")
        try shell.type("kill %1; wait %1; echo status-$?\n")
        try shell.expect("status-143")
        try daemon.eventually("it is gone") { try daemon.listed().isEmpty }
    }

    @Test(
        "a relay that is stopped while its command sleeps delays the thaw only, and the command continues with the relay (L54)"
    )
    func stoppedRelay() throws {
        let daemon = try TestDaemon()
        // A shell with job control would take the terminal back.
        let shell = try Shell(
            daemon, script: #"PS1="in> " $RUN --name inner -- bash --norc -i; echo status-$?; sleep 1000"#)
        try shell.expect("in> ")
        try daemon.waitUntil("run@inner", is: "suspended")
        let inner = try daemon.pid("run@inner")
        let relay = try #require(try ProcFS().stat(of: Int32(inner))?.parent)
        kill(relay, SIGSTOP)
        try shell.type("echo got-$((20+3))\n")
        try daemon.waitUntil("run@inner", is: "background")
        kill(relay, SIGCONT)
        try shell.expect("got-23")
        try shell.type("exit 6\n")
        try shell.expect("status-6")
    }

    @Test("a shell is not thawed before its relay, which gets no processor for long, has returned the terminal (L54)")
    func slowRelay() throws {
        let daemon = try TestDaemon()
        let shell = try Shell(daemon)
        try shell.type("$RUN --name inner -- env PS1='in''> ' bash --norc -i\n")
        try shell.expect("in> ")
        try daemon.waitUntil("run@inner", is: "suspended")
        let relay = try #require(try ProcFS().stat(of: Int32(daemon.pid("run@inner")))?.parent)
        let group = try #require(daemon.groupRoot) + "-slow"
        try createDirectories(at: group)
        defer { rmdir(group) }
        try writeControlFile(group + "/cgroup.procs", "\(relay)")
        try writeControlFile(group + "/cgroup.freeze", "1")
        try shell.type("echo got-$((20+3))\n")
        try daemon.waitUntil("run@inner", is: "background")
        poll(nil, 0, 300)
        try writeControlFile(group + "/cgroup.freeze", "0")
        try shell.expect("got-23")
        try shell.type("exit 6\n")
        try shell.expect("out> ")
        try shell.type("echo status-$?\n")
        try shell.expect("status-6")
    }

    @Test("a terminal that goes away while its command sleeps ends the command, as without run (L54)")
    func lostTerminal() throws {
        let daemon = try TestDaemon()
        var shell: Shell? = try Shell(daemon)
        try shell?.type("$RUN --name lost -- cat\n")
        try daemon.eventually("it runs") { try daemon.listed() == ["run@lost"] }
        try daemon.waitUntil("run@lost", is: "suspended")
        shell = nil
        try daemon.eventually("it is gone") { try daemon.listed().isEmpty }
        #expect(!daemon.isPopulated(command: "run@lost"))
    }
}
