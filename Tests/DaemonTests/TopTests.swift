import Control
import Glibc
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// greenroomctl top, greenroomd and an app, each a process.
@Suite("top with a daemon")
struct TopTests {
    /// greenroomctl top on a terminal of its own.
    private final class Screen {
        let process: Linux.Process
        private var master: SharedDescriptor?
        private var output: [UInt8] = []

        init(_ daemon: TestDaemon) throws {
            let (number, path) = try openTerminal(rows: 24, columns: 80)
            master = SharedDescriptor(Descriptor(adopting: number))
            let terminal = SharedDescriptor(try Descriptor.open(path, O_RDWR | O_NOCTTY))
            var starting = try startProcess(
                SpawnRequest(
                    executable: TestDaemon.binaries + "/greenroomctl", arguments: ["--runtime", daemon.runtime, "top"],
                    environment: ["PATH=/usr/bin:/bin", "TERM=xterm", "LC_ALL=C.UTF-8"], standardInput: terminal,
                    standardOutput: terminal, standardError: terminal))
            process = starting.process
            while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        }

        func type(_ text: String) {
            if let master { _ = Glibc.write(master.raw, text, text.utf8.count) }
        }

        /// Waits until the screen shows a text. Ctrl-L draws all of it again.
        func waits(for text: String, _ daemon: TestDaemon) throws {
            try daemon.eventually("the screen shows '\(text)'") {
                output = []
                type("\u{0C}")
                while let master, isReadable(master.raw, within: .milliseconds(100)) {
                    var bytes = [UInt8](repeating: 0, count: 1 << 16)
                    let count = read(master.raw, &bytes, bytes.count)
                    guard count > 0 else { break }
                    output += bytes.prefix(count)
                    if String(decoding: output, as: UTF8.self).contains(text) { return true }
                }
                return false
            }
        }

        func hangUp() { master = nil }

        func end() throws -> EndStatus? {
            if !isReadable(process.descriptor.raw, within: .seconds(30)) {
                Issue.record("it did not end")
                _ = try process.signal(SIGKILL)
                waitForReadable([process.descriptor])
            }
            return try process.reap()?.status
        }
    }

    @Test("a row changes its state after a key, also with the next daemon, and q ends with status 0")
    func keys() throws {
        let daemon = try TestDaemon(["web": TestDaemon.manifest("")])
        let screen = try Screen(daemon)
        try screen.waits(for: "notRunning", daemon)
        screen.type("a")
        try screen.waits(for: "web: active", daemon)
        #expect(try daemon.state("web") == "active")
        screen.type("b")
        try screen.waits(for: "suspended", daemon)
        _ = try? daemon.call("Reexec")
        try daemon.reconnect()
        try screen.waits(for: "Connected to greenroomd again", daemon)
        screen.type("t")
        try screen.waits(for: "y/N: terminate web?", daemon)
        screen.type("y")
        try screen.waits(for: "notRunning", daemon)
        #expect(try daemon.state("web") == "notRunning")
        screen.type("q")
        #expect(try screen.end() == .exited(0))
    }

    @Test("it ends when its terminal is gone, without a signal")
    func hangUp() throws {
        let daemon = try TestDaemon(["web": TestDaemon.manifest("")])
        let screen = try Screen(daemon)
        try screen.waits(for: "notRunning", daemon)
        screen.hangUp()
        #expect(try screen.end() == .exited(0))
    }
}
