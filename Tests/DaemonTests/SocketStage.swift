import Glibc
import JSON
import Linux
import Posix
import TestKit

/// Apps whose sockets the daemon holds: greenroom-testapp, which sends back what it receives (held.c).
final class SocketStage {
    var daemon: TestDaemon
    var root: String { daemon.root }

    /// - Parameter apps: the commands of the app, and its manifest's lines of `[Wake]` and further sections, by app. `ROOT` stands
    ///   for a folder of the test.
    init(
        _ apps: [String: (commands: String, settings: String)], manager: FakeServiceManager? = nil, root: String? = nil,
        userRuntime: String? = nil, asUnprivilegedUser: Bool = false, wrapper: [String] = []
    ) throws {
        let root = try root ?? TestDaemon.makeFolder()
        daemon = try TestDaemon(
            apps.mapValues { Self.manifest($0.commands, $0.settings, in: root) }, root: root,
            asUnprivilegedUser: asUnprivilegedUser, manager: manager, userRuntime: userRuntime, wrapper: wrapper)
    }

    /// A worker that is suspended soon.
    static func manifest(_ commands: String, _ settings: String, app more: String = "", in root: String) -> String {
        """
        [App]
        Role=worker
        ExecStart=\(TestDaemon.app) held \(commands)
        StartupSec=0
        \(more)
        [Lifecycle]
        IdleSec=100ms
        [Wake]
        \(settings)

        """.replacing("ROOT", with: root)
    }

    /// For an app that a connection wakes and that the bytes after it must find awake: a client may not be scheduled between the
    /// two for longer than the 100 ms of the other apps.
    static let longIdle = "[Lifecycle]\nIdleSec=5s"

    /// Replaces a manifest, and reads it again.
    func rewrite(_ app: String, _ commands: String, _ settings: String) throws {
        let text = Self.manifest(commands, settings, in: root)
        try replaceFile(at: "\(daemon.config)/apps/\(app).app", with: Array(text.utf8))
        _ = try daemon.call("Reload")
    }

    func path(_ name: String) -> String { root + "/" + name }

    /// What is wrong with each socket of an app; empty: nothing.
    func problems(_ app: String) throws -> [String] {
        try daemon.status(app)["sockets"]?.arrayValue?.map { $0["problem"]?.stringValue ?? "" } ?? []
    }

    var log: String { TestDaemon.text(of: root + "/log") }

    /// How often the program was executed. It may answer a client before the daemon has handled that it was executed.
    func launches(_ app: String) throws -> Int {
        var launches = 0
        try daemon.eventually("\(app) is launched") {
            let status = try daemon.status(app)
            launches = Int(status["launches"]?.integerValue ?? 0)
            return status["state"]?.stringValue != "launching"
        }
        return launches
    }
}

/// A socket of a client on this machine. Each call fails after a minute.
final class SocketClient {
    enum Address {
        case port(UInt16)
        case path(String)
        case abstract(String)
    }

    let number: Int32

    init(_ address: Address, _ type: __socket_type = SOCK_STREAM) throws {
        let domain = if case .port = address { AF_INET } else { AF_UNIX }
        number = socket(domain, Int32(type.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        var limit = timeval(tv_sec: 60, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(number, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        if domain == AF_UNIX, type == SOCK_DGRAM {
            // Without an address of its own it gets no answer.
            var own = sa_family_t(AF_UNIX)
            let result = withUnsafeMutablePointer(to: &own) { pointer in
                pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                    bind(number, $0, socklen_t(MemoryLayout<sa_family_t>.size))
                }
            }
            guard result == 0 else { throw TestFailure("autobind: error \(errno)") }
        }
        guard connect(address) == 0 else { throw TestFailure("connect to \(address): error \(errno)") }
    }

    deinit { close(number) }

    private func connect(_ address: Address) -> Int32 {
        switch address {
        case .port(let port):
            var four = sockaddr_in()
            four.sin_family = sa_family_t(AF_INET)
            four.sin_port = port.bigEndian
            four.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
            return connect(&four, MemoryLayout<sockaddr_in>.size)
        case .path(let path): return connectLocal(Array(path.utf8) + [0])
        case .abstract(let name): return connectLocal([0] + Array(name.utf8))
        }
    }

    private func connectLocal(_ name: [UInt8]) -> Int32 {
        var local = sockaddr_un()
        local.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &local.sun_path) { $0.copyBytes(from: name) }
        return connect(&local, MemoryLayout<sa_family_t>.size + name.count)
    }

    private func connect<Form>(_ address: inout Form, _ length: Int) -> Int32 {
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(number, $0, socklen_t(length))
            }
        }
    }

    func send(_ text: String) throws {
        let bytes = Array(text.utf8)
        guard Glibc.send(number, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
            throw TestFailure("send: error \(errno)")
        }
    }

    /// - Returns: `nil`: the connection was reset. Empty: its end.
    func receive() throws -> String? {
        var bytes = [UInt8](repeating: 0, count: 65_536)
        let count = recv(number, &bytes, bytes.count, 0)
        if count < 0, errno == ECONNRESET { return nil }
        guard count >= 0 else { throw TestFailure("recv: error \(errno)") }
        return String(decoding: bytes[..<count], as: UTF8.self)
    }

    /// Sends a text, and expects the same as the answer.
    func exchange(_ text: String) throws {
        try send(text)
        let answer = try receive()
        guard answer == text else { throw TestFailure("the answer to '\(text)' is '\(answer ?? "a reset")'") }
    }
}

/// A port that no socket has now, below those that the kernel gives to clients (ip_local_port_range, ip(7)).
func freePort() throws -> UInt16 {
    for _ in 0..<1000 {
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        defer { close(number) }
        let port = UInt16.random(in: 10_000..<32_000)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        let isBound = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
        if isBound { return port }
    }
    throw TestFailure("no port is free: error \(errno)")
}
