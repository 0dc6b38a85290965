import Glibc
import JSON
import LifecycleCore
import Linux
import Posix
import TestKit
import Testing

@testable import Daemon

/// The daemon is killed while clients send requests to suspended servers. Servers and connections belong to the kernel, so no
/// request may be lost.
@Suite("Kills of the daemon under traffic")
struct KillUnderTrafficTests {
    @Test(
        "100 suspended servers answer all requests, byte for byte, however often the daemon is killed meanwhile (L50)")
    func requests() throws {
        var stage = try ServerFarm(count: 100)
        for round in 0..<(isTestingAll ? 4 : 1) { try stage.play(round) }
        try stage.end()
    }
}

/// Many servers, each with a client that stays connected.
private struct ServerFarm {
    private struct Server {
        let app: String
        let port: UInt16
        let pid: Int32
        let connection: TrafficClient
    }
    /// What was sent, and has to come back.
    private struct Request {
        let app: String
        let client: TrafficClient
        let bytes: [UInt8]
    }

    private var daemon: TestDaemon
    private var servers: [Server] = []

    init(count: Int) throws {
        let root = try TestDaemon.makeFolder()
        var manifests: [String: String] = [:]
        for number in 0..<count {
            manifests["server\(number)"] = TrafficStage.manifest("\(TestDaemon.app) serve \(root)/server\(number).port")
        }
        daemon = try TestDaemon(manifests, root: root)
        for app in manifests.keys.sorted() {
            try daemon.launch(app, background: true)
            var port: UInt16 = 0
            try daemon.eventually("\(app) listens") {
                port = UInt16(TestDaemon.text(of: "\(root)/\(app).port")) ?? 0
                return port > 0
            }
            let connection = try TrafficClient(port: port)
            try connection.exchange([1, 2, 3])
            servers.append(Server(app: app, port: port, pid: try daemon.pid(app), connection: connection))
        }
    }

    /// A third of the requests is sent before the kill, one while there is no daemon, and one after another daemon was killed while
    /// it started.
    mutating func play(_ round: Int) throws {
        for server in servers { try daemon.waitUntil(server.app, is: "suspended") }
        // The daemon dies while it wakes the first ones.
        var requests = try send(round, part: 0)
        daemon.crash()
        requests += try send(round, part: 1)
        // Another daemon dies while it recovers the servers: at another step in each round.
        try daemon.successor(killedAfter: .milliseconds(10 + 15 * round))
        requests += try send(round, part: 2)
        daemon = try daemon.successor()
        for request in requests {
            do {
                guard try request.client.receive(request.bytes.count) == request.bytes else {
                    throw TestFailure("the answer differs")
                }
            } catch {
                throw TestFailure("kill \(round), \(request.app): \(error); \(description(of: request.app))")
            }
        }
    }

    /// What the daemon and the kernel know of a server whose answer is missing.
    private func description(of app: String) -> String {
        let status = (try? daemon.status(app))?.serialized(pretty: false) ?? "no status"
        let frozen = (try? daemon.frozen(app)).map { $0 ? "frozen" : "not frozen" } ?? "unknown"
        let lines = TestDaemon.text(of: daemon.root + "/log").split(separator: "\n").filter { $0.contains(" \(app):") }
        return "\(frozen); \(status); \(lines.suffix(12).joined(separator: "; ")); \(kernel(app))"
    }

    /// In which call the server is, and the queues of its connections, both ends.
    private func kernel(_ app: String) -> String {
        guard let server = servers.first(where: { $0.app == app }) else { return "" }
        let digits = String(server.port, radix: 16, uppercase: true)
        let port = ":" + String(repeating: "0", count: 4 - digits.count) + digits + " "
        let connections = TestDaemon.text(of: "/proc/net/tcp").split(separator: "\n").filter { $0.contains(port) }
        let call = TestDaemon.text(of: "/proc/\(server.pid)/syscall")
        return "call \(call.prefix { $0 != "\n" }); \(connections.joined(separator: "; "))"
    }

    /// Each third server gets its request through the connection that is open, and each sixth through a new one, too.
    private func send(_ round: Int, part: Int) throws -> [Request] {
        var requests: [Request] = []
        for (number, server) in servers.enumerated() where (number + round) % 3 == part {
            // Less than the buffers of a frozen server hold.
            let bytes = (0..<5_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ number &+ round &* 7) }
            requests.append(Request(app: server.app, client: server.connection, bytes: bytes))
            if number.isMultiple(of: 2) {
                let client = try TrafficClient(port: server.port)
                requests.append(Request(app: server.app, client: client, bytes: bytes.reversed()))
            }
        }
        for request in requests { try request.client.send(request.bytes) }
        return requests
    }

    /// No server was ended or launched again, and each is suspended again.
    func end() throws {
        for server in servers {
            try daemon.waitUntil(server.app, is: "suspended")
            let status = try daemon.status(server.app)
            #expect(status["launches"]?.integerValue == 1, "\(server.app)")
            #expect(status["pid"]?.integerValue == Int64(server.pid), "\(server.app)")
            #expect(try daemon.receipts(server.app).isEmpty, "\(server.app)")
        }
        // A request to each once more, to the watches of the last daemon.
        for server in servers { try server.connection.exchange([4, 5, 6]) }
    }
}
