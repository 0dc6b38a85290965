import Glibc
import JSON
import Linux
import Posix
import TestKit
import Testing

/// Commands of `greenroomctl run --protocol=`, whose messages pass through the relay.
@Suite("greenroomctl run --protocol=", .enabled(if: geteuid() == 0, "needs control groups"))
struct RunProtocolTests {
    /// Answers each request with its process, and with how often it was notified that it is initialized; `hold` with the next one.
    private static let server = #"""
        n=0; held=
        while read -r line; do
            id=${line#*\"id\":}; id=${id%%[,\}]*}
            answer="\"pid\":$$,\"initialized\":$n"
            case $line in
            *'"hold"'*) held=$id ;;
            *initialized*) n=$((n + 1)) ;;
            *'"id"'*)
                [ -z "$held" ] || echo "{\"jsonrpc\":\"2.0\",\"id\":$held,\"result\":{$answer}}"
                held=
                echo "{\"jsonrpc\":\"2.0\",\"id\":$id,\"result\":{$answer}}" ;;
            esac
        done
        """#

    private static func request(_ id: String, _ method: String) -> String {
        #"{"jsonrpc":"2.0","id":\#(id),"method":"\#(method)","params":{}}"# + "\n"
    }

    /// The next message: of the request with this ID.
    private static func answer(_ client: RunClient, to id: Int) throws -> JSONValue {
        let line = try client.line()
        let message = try JSONValue.parse(Array(line.utf8))
        guard message["id"]?.integerValue == Int64(id), let result = message["result"] else {
            throw TestFailure("'\(line)' instead of the answer to \(id)")
        }
        return result
    }

    private func waitForRequest(_ daemon: TestDaemon) throws {
        try daemon.eventually("it is awake for a request") {
            guard try daemon.listed().contains("run@server") else { return false }
            let reasons = try daemon.status("run@server")["awake"]?.arrayValue ?? []
            return reasons.contains { $0["reason"]?.stringValue == "request" }
        }
    }

    private static func initialized(_ daemon: TestDaemon, _ options: [String]) throws -> (RunClient, process: Int64?) {
        let client = try RunClient(
            daemon, ["sh", "-c", server], options: RunClient.soon + ["--name", "server", "--protocol=mcp"] + options)
        try client.write(request("0", "initialize"))
        let process = try answer(client, to: 0)["pid"]?.integerValue
        try client.write(#"{"jsonrpc":"2.0","method":"notifications/initialized"}"# + "\n")
        return (client, process)
    }

    @Test(
        "a command that has not answered a request stays awake, and sleeps once it has (L54)",
        arguments: ["jsonrpc", "mcp"])
    func unanswered(name: String) throws {
        let daemon = try TestDaemon()
        let client = try RunClient(
            daemon, ["sh", "-c", Self.server],
            options: RunClient.soon + ["--name", "server", "--protocol=\(name)"])
        try client.write(Self.request("1", "hold"))
        try waitForRequest(daemon)
        #expect(try daemon.state("run@server") == "background")
        try client.write(Self.request("2", "go"))
        _ = try Self.answer(client, to: 1)
        _ = try Self.answer(client, to: 2)
        try daemon.waitUntil("run@server", is: "suspended")
        // One that is cancelled is not answered.
        try client.write(Self.request("\"3\"", "hold"))
        try daemon.waitUntil("run@server", is: "background")
        try client.write(#"{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":"3"}}"# + "\n")
        try daemon.waitUntil("run@server", is: "suspended")
        client.closeInput()
        #expect(try client.end() == .exited(0))
    }

    @Test(
        "a server that was ended while it slept is started again by the next request, and initialized as before (L54)",
        arguments: ["UnloadAfterSec=1s", "SuspendedMemoryMax=64K"])
    func returns(setting: String) throws {
        let daemon = try TestDaemon()
        let (client, first) = try Self.initialized(daemon, ["-p", setting])
        let key = String(setting.prefix { $0 != "=" })
        var (last, ends) = (first, 0)
        for id in 1...2 {
            func explanations() throws -> [String] {
                try daemon.receipts("run@server").compactMap { $0["explanation"]?.stringValue }
            }
            // More often on a slow machine, where a message may reach it too late.
            try daemon.eventually("it is ended") { try explanations().count > ends && daemon.listed().isEmpty }
            ends = try explanations().count
            #expect(try explanations().allSatisfy { $0.contains(key) })
            try client.write(Self.request("\(id)", "ping"))
            let result = try Self.answer(client, to: id)
            #expect(result["pid"]?.integerValue != last)
            #expect(result["initialized"]?.integerValue == 1)
            last = result["pid"]?.integerValue
        }
        // The end of the input of a server that is ended needs no server.
        try daemon.eventually("it is ended") { try daemon.listed().isEmpty }
        client.closeInput()
        #expect(try client.end() == .exited(0))
        #expect(try daemon.listed().isEmpty)
    }

    @Test("a server that ends otherwise, or has a state that is not known, is not started again (L54)")
    func doesNotReturn() throws {
        let daemon = try TestDaemon()
        let (killed, process) = try Self.initialized(daemon, [])
        try daemon.waitUntil("run@server", is: "suspended")
        kill(pid_t(try #require(process)), SIGKILL)
        #expect(try killed.end() == .exited(137))
        // Until the daemon has recorded its end it has the name.
        try daemon.eventually("nothing is left") { try daemon.listed().isEmpty }
        let (client, _) = try Self.initialized(daemon, [])
        try client.write(Self.request("1", "logging/setLevel"))
        _ = try Self.answer(client, to: 1)
        try waitForRequest(daemon)
        let wrong = try RunClient(daemon, ["true"], options: ["--protocol=lsp"])
        #expect(try wrong.end() == .exited(125))
        #expect(daemon.errors.contains("unknown protocol 'lsp'; expected jsonrpc or mcp"))
    }

    @Test("long messages pass unchanged in both directions, also to a client that reads late (L54)")
    func longMessages() throws {
        let daemon = try TestDaemon()
        let client = try RunClient(daemon, ["cat"], options: RunClient.soon + ["--protocol=jsonrpc"])
        let text = String(repeating: "0123456789abcdef", count: 16 << 10)
        let message = Array((#"{"jsonrpc":"2.0","method":"echo","params":{"text":"\#(text)"}}"# + "\n").utf8)
        for start in stride(from: 0, to: message.count, by: 40_000) {
            let part = Array(message[start..<min(start + 40_000, message.count)])
            try client.write(part)
            #expect(try client.bytes(part.count) == part)
        }
        client.closeInput()
        #expect(try client.bytes() == [])
        #expect(try client.end() == .exited(0))
    }
}
