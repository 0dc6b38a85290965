import Daemon
import Glibc
import Linux
import Posix
import TestKit
import Testing

@Suite("Options of greenroomd")
struct OptionTests {
    private func parse(_ arguments: String...) -> DaemonOptions.Parsed {
        DaemonOptions.parse(
            arguments, isRoot: true, version: "1", environment: { _ in nil }, workingDirectory: "/srv/here")
    }

    @Test("relative folders start at the working directory; absolute ones keep their path")
    func folders() throws {
        guard case .run(let options) = parse("--config", "./etc/", "--runtime=../run", "--state", "/var//state/.")
        else {
            Issue.record("refused")
            return
        }
        #expect(options.folders.config == "/srv/here/etc")
        #expect(options.folders.runtime == "/srv/here/../run")
        #expect(options.folders.state == "/var/state")
        #expect(options.hasGivenConfig)
    }

    /// Starts greenroomd, and waits until it ends or its log has a text.
    private func run(_ arguments: [String], until text: String) throws -> (log: String, status: EndStatus?) {
        let root = try TestDaemon.makeFolder()
        defer { removeTree(root) }
        let output = SharedDescriptor(try Descriptor.open(root + "/log", O_WRONLY | O_CREAT | O_APPEND, mode: 0o600))
        let request = SpawnRequest(
            executable: TestDaemon.binaries + "/greenroomd",
            arguments: ["--runtime", root + "/run", "--state", root + "/state"] + arguments,
            environment: ["PATH=/usr/bin:/bin", "HOME=/", "DBUS_SYSTEM_BUS_ADDRESS=unix:path=\(root)/no-bus"],
            standardOutput: output, standardError: output)
        var starting = try startProcess(request)
        let process = starting.process
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        var status: EndStatus?
        while status == nil, !TestDaemon.text(of: root + "/log").contains(text) {
            if try process.hasEnded() { status = try process.reap()?.status } else { poll(nil, 0, 5) }
        }
        if status == nil {
            _ = try process.signal(SIGTERM)
            waitForReadable([process.descriptor])
            _ = try process.reap()
        }
        return (TestDaemon.text(of: root + "/log"), status)
    }

    @Test("a configuration folder that was named and does not exist is a warning")
    func missingConfig() throws {
        let (log, status) = try run(["--config", "/nowhere"], until: "is ready")
        #expect(status == nil)
        #expect(log.contains("--config: /nowhere does not exist"), "\(log)")
    }

    @Test(
        "a cgroup that was named and does not exist is an error",
        .enabled(if: ContainmentMode.problem(ofGivenRoot: "/nowhere") != nil, "there is no cgroup v2"))
    func missingGroup() throws {
        let (log, status) = try run(["--cgroup", "/nowhere"], until: "is ready")
        #expect(status == .exited(1))
        #expect(log.contains("greenroomd: --cgroup: the cgroup /nowhere does not exist"), "\(log)")
    }
}
