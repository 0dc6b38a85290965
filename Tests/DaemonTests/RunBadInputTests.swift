import Glibc
import JSON
import Linux
import Posix
import TestKit
import Testing

/// Callers, terminals and daemons that do not behave, and what becomes of the command of `greenroomctl run`.
@Suite("greenroomctl run: callers that do not behave", .enabled(if: geteuid() == 0, "needs control groups"))
struct RunBadInputTests {
    private static let protocols: [[String]] = [[], ["--protocol=jsonrpc"], ["--protocol=mcp"]]

    @Test("a command whose output has no reader any more ends as without run (L54)", arguments: protocols)
    func noReader(options: [String]) throws {
        let daemon = try TestDaemon()
        let client = try RunClient(daemon, ["yes"], options: RunClient.soon + options)
        _ = try client.line()
        client.closeOutput()
        #expect(try client.end() == .exited(128 + SIGPIPE))
        try daemon.eventually("nothing is left") { try daemon.listed().isEmpty }
    }

    @Test(
        "a command whose caller never reads waits, and is not suspended in its write (L54, L51)", arguments: protocols)
    func neverReads(options: [String]) throws {
        let daemon = try TestDaemon()
        let client = try RunClient(
            daemon, ["yes"],
            options: RunClient.soon + options + ["--name", "full", "-p", "TerminateDeadlineSec=100ms"])
        try daemon.eventually("it waits for its reader") {
            guard try daemon.listed().contains("run@full") else { return false }
            let awake = try daemon.status("run@full")["awake"]?.arrayValue?.first
            // With a protocol its relay has an answer that is not passed on.
            return awake?["reason"]?.stringValue == "request"
                || awake?["detail"]?.stringValue?.contains("is in write(2) on a pipe") ?? false
        }
        try client.process.signal(SIGKILL)
        try daemon.eventually("nothing is left") { try daemon.listed().isEmpty }
        #expect(!daemon.isPopulated(command: "run@full"))
    }

    @Test("a caller that closes its input at once gets all output and the status (L54)", arguments: protocols)
    func earlyEnd(options: [String]) throws {
        let daemon = try TestDaemon()
        let bytes = Array(repeating: Array("0123456789abcdef\n".utf8), count: 40_000).flatMap { $0 }
        // It works on after the end of its input, and fills its output, which is read late.
        let program = "cat; yes 0123456789abcdef | head -c \(bytes.count); exec sh -c 'exit 5'"
        let client = try RunClient(daemon, ["sh", "-c", program], options: RunClient.soon + options)
        client.closeInput()
        try daemon.eventually("it waits for its reader") {
            guard let app = try daemon.listed().first else { return false }
            let awake = try daemon.status(app)["awake"]?.arrayValue?.first
            return awake?["reason"]?.stringValue == "request"
                || awake?["detail"]?.stringValue?.contains("is in write(2) on a pipe") ?? false
        }
        #expect(try client.bytes() == bytes)
        #expect(try client.end() == .exited(5))
    }

    @Test("a command answers while its relay is stopped, and its end is known when the relay continues (L54)")
    func stoppedRelay() throws {
        let daemon = try TestDaemon()
        let program = "while read -r line; do echo $line; done; exit 6"
        let client = try RunClient(daemon, ["sh", "-c", program], options: RunClient.soon + ["--name", "server"])
        try client.exchange("one")
        try daemon.waitUntil("run@server", is: "suspended")
        try client.process.signal(SIGSTOP)
        for line in ["two", "three"] {
            try client.exchange(line)
            try daemon.waitUntil("run@server", is: "suspended")
        }
        client.closeInput()
        #expect(try client.bytes() == [])
        try client.process.signal(SIGCONT)
        #expect(try client.end() == .exited(6))
        try daemon.eventually("nothing is left") { try daemon.listed().isEmpty }
    }

    @Test("a server without a state is started again without a beginning (L54)")
    func stateless() throws {
        let daemon = try TestDaemon()
        let program = #"while read -r line; do echo "{\"jsonrpc\":\"2.0\",\"id\":1,\"result\":$$}"; done"#
        let client = try RunClient(
            daemon, ["sh", "-c", program],
            options: RunClient.soon + ["--name", "server", "--protocol=mcp", "-p", "UnloadAfterSec=1s"])
        var processes: [Int64] = []
        for _ in 0..<2 {
            try client.write(#"{"jsonrpc":"2.0","id":1,"method":"tools/list","params":{}}"# + "\n")
            let answer = try JSONValue.parse(Array(client.line().utf8))
            processes.append(try #require(answer["result"]?.integerValue))
            try daemon.eventually("it is ended") { try daemon.listed().isEmpty }
        }
        #expect(processes[0] != processes[1])
        client.closeInput()
        #expect(try client.end() == .exited(0))
        // One answer for each request: no other one was invented.
        #expect(try client.bytes() == [])
    }

    @Test("relay and daemon are killed while the command is frozen: the next daemon ends it (L54)")
    func allKilled() throws {
        let first = try TestDaemon()
        let client = try RunClient(first, ["cat"], options: RunClient.soon + ["--name", "victim"])
        try client.exchange("ready")
        try first.waitUntil("run@victim", is: "suspended")
        // It would thaw the command when the daemon is gone.
        try client.process.signal(SIGSTOP)
        first.crash()
        try client.process.signal(SIGKILL)
        waitForReadable([client.process.descriptor])
        #expect(first.isPopulated(command: "run@victim"))
        let second = try first.successor()
        try second.eventually("nothing is left") { try second.listed().isEmpty }
        #expect(!second.isPopulated(command: "run@victim"))
    }

    @Test(
        "a daemon that answers with what the relay does not know is none: the command is executed directly (L54)",
        arguments: ["", "?", "G", "Gx"])
    func otherDaemon(answer: String) throws {
        let daemon = try TestDaemon()
        let folder = daemon.root + "/other"
        try createDirectories(at: folder)
        let listener = try ListeningSocket(.sequentialPacket, .path(folder + "/relay"), ListeningSocket.Settings())
        let client = try RunClient(daemon, ["sh", "-c", "echo executed; exit 7"], runtime: folder)
        waitForReadable([listener.descriptor])
        let connection = accept(listener.descriptor.raw, nil, nil)
        try #require(connection >= 0)
        _ = answer.withCString { send(connection, $0, answer.utf8.count, Int32(MSG_NOSIGNAL)) }
        #expect(try client.line() == "executed")
        #expect(try client.end() == .exited(7))
        close(connection)
        #expect(
            daemon.errors
                == "greenroomctl: run: executed directly, it does not sleep: greenroomd does not answer\n")
    }

    @Test(
        "a gigabyte through the pipes of a command that sleeps ten times arrives unchanged (L54)",
        .enabled(if: isTestingAll, "make test-all reads it"))
    func gigabyte() throws {
        let daemon = try TestDaemon()
        let program = "while read count; do yes 0123456789abcdef | head -c $count; done"
        let client = try RunClient(
            daemon, ["sh", "-c", program], options: RunClient.soon + ["--name", "source"])
        let line = Array("0123456789abcdef\n".utf8)
        let block = Array(repeating: line, count: 4096).flatMap { $0 }
        let blocks = 1 << 30 / 10 / block.count
        try daemon.eventually("it runs") { try daemon.listed() == ["run@source"] }
        for _ in 0..<10 {
            try daemon.waitUntil("run@source", is: "suspended")
            // A command that is woken within 1 s of each suspension stays awake, longer each time (L50).
            poll(nil, 0, 1100)
            try client.write("\(blocks * block.count)\n")
            for _ in 0..<blocks { try #require(try client.bytes(block.count) == block) }
        }
        client.closeInput()
        #expect(try client.end() == .exited(0))
    }

    @Test(
        "what may not or cannot be put in a group is executed directly, with one line that says why (L54)",
        arguments: [
            ("no daemon", "no greenroomd takes commands"),
            ("no groups", "greenroomd has no control groups here, and cannot freeze it"),
            ("a template", "there is a template 'run@', whose instances would have its name"),
        ])
    func withoutGroup(reason: String, sentence: String) throws {
        let apps = reason == "a template" ? ["run@": TestDaemon.manifest("")] : [:]
        let daemon = try TestDaemon(apps, asUnprivilegedUser: reason == "no groups")
        let client = try RunClient(
            daemon, ["sh", "-c", "echo executed; exit 9"], runtime: reason == "no daemon" ? "/nosuch" : nil)
        #expect(try client.line() == "executed")
        #expect(try client.end() == .exited(9))
        #expect(daemon.errors == "greenroomctl: run: executed directly, it does not sleep: \(sentence)\n")
    }
}
