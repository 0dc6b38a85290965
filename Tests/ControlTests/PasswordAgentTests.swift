import Control
import Glibc
import Systemd
import Testing

@Suite("Password agent")
struct PasswordAgentTests {
    /// An agent that writes its parent, its pid and its arguments to a file, and runs until it is killed.
    private static let ready = """
        #!/bin/sh
        echo "$PPID $$ $*" >"$ASKED"
        exec 3>&-
        exec /bin/sleep 1000

        """

    private func daemon(refusing times: Int) throws -> FakeDaemon {
        let daemon = try FakeDaemon()
        for member in ["Launch", "SimulatePressure"] {
            daemon.on(member) { [unowned daemon] call in
                if daemon.count(of: member) <= times {
                    call.fail(ControlNames.Failure.accessDenied.error("\(member) is for root; polkit is asked first"))
                } else {
                    if member == "Launch" {
                        call.reply(Records.done("active"))
                    } else {
                        call.reply(Records.simulated("normal"))
                    }
                }
            }
        }
        return daemon
    }

    /// The calls of the daemon, without the status: a program that has waited for a quarter of a second asks for it.
    private func requests(_ daemon: FakeDaemon) -> [String] { daemon.calls.map(\.member).filter { $0 != "Status" } }

    private func environment(_ daemon: FakeDaemon, agent: String?) throws -> [String] {
        if let agent { try install(daemon.folder.write("bin/agent", agent), as: daemon.runtime + "/bin/pkttyagent") }
        return ["PATH=\(daemon.runtime)/bin", "ASKED=\(daemon.runtime)/asked"]
    }

    /// Installs a program from another process. A process that another test forks at the same time holds a copy of all open
    /// descriptors until it executes its program, and a file that is open for writing cannot be executed (ETXTBSY).
    private func install(_ file: String, as program: String) throws {
        let line: [String] = ["install", "-m", "755", file, program]
        let words = line.map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var pid: pid_t = 0
        try #require(posix_spawn(&pid, "/usr/bin/install", nil, nil, words, environ) == 0)
        var status: Int32 = 0
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
        try #require(status == 0)
    }

    /// The words that the agent wrote.
    private func asked(_ daemon: FakeDaemon) -> [String]? {
        guard let file = fopen(daemon.runtime + "/asked", "r") else { return nil }
        defer { fclose(file) }
        var line = [CChar](repeating: 0, count: 256)
        guard fgets(&line, 256, file) != nil else { return nil }
        return String(decoding: line.prefix { $0 != 0 && $0 != 10 }.map { UInt8(bitPattern: $0) }, as: UTF8.self)
            .split(separator: " ").map(String.init)
    }

    @Test(
        "on a terminal a refused request is repeated with polkit's agent, which is then ended",
        arguments: [["launch", "photos"], ["pressure", "normal"]])
    func asks(line: [String]) throws {
        let daemon = try daemon(refusing: 1)
        let program = try RunningProgram(
            ["--runtime", daemon.runtime] + line, environment: try environment(daemon, agent: Self.ready),
            terminal: true)
        let outcome = try program.finish(in: daemon.loop)
        #expect(outcome.status == 0, "\(outcome.output)")
        let member = line[0] == "launch" ? "Launch" : "SimulatePressure"
        #expect(requests(daemon) == [member, member])
        let words = try #require(asked(daemon))
        #expect(words.first == "\(program.pid)")
        #expect(words.dropFirst(2) == ["--notify-fd", "3", "--fallback"])
        let pid = try #require(Int32(words[1]))
        #expect(kill(pid, 0) < 0 && errno == ESRCH)
    }

    @Test("a request that is refused again fails with a hint", arguments: [ready, "#!/bin/sh\nexit 127\n"])
    func refusedForGood(agent: String) throws {
        let daemon = try daemon(refusing: 9)
        let outcome = try daemon.run(
            "launch", "photos", environment: try environment(daemon, agent: agent), terminal: true)
        #expect(outcome.status == 1)
        #expect(requests(daemon) == ["Launch", "Launch"])
        #expect(outcome.output.contains("Try as root"))
    }

    @Test(
        "no agent is started without a terminal, with --json, or where none is installed",
        arguments: [(false, [], ready), (true, ["--json"], ready), (true, [], nil)])
    func noAgent(terminal: Bool, options: [String], agent: String?) throws {
        let daemon = try daemon(refusing: 1)
        let program = try RunningProgram(
            ["--runtime", daemon.runtime, "launch", "photos"] + options,
            environment: try environment(daemon, agent: agent), terminal: terminal)
        let outcome = try program.finish(in: daemon.loop)
        #expect(outcome.status == 1)
        #expect(requests(daemon) == ["Launch"])
        #expect(asked(daemon) == nil)
        #expect((outcome.output + outcome.errors).contains("Launch is for root"))
    }
}
