import Control
import Glibc
import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// Where an app listens, as a client connects to it.
enum CertifyEndpoint: Equatable {
    case internet(port: UInt16, isVersion6: Bool)
    case unix(String)

    var name: String {
        switch self {
        case .internet(let port, _): "port \(port)"
        case .unix(let path): path
        }
    }

    /// A stream socket that a process listens on; `nil`: none.
    static func find(_ pid: Int32) -> CertifyEndpoint? {
        var inodes: Set<String> = []
        var buffer = [CChar](repeating: 0, count: 64)
        for name in folderEntries("/proc/\(pid)/fd") {
            let count = readlink("/proc/\(pid)/fd/\(name)", &buffer, buffer.count)
            guard count > 9 else { continue }
            let text = String(decoding: buffer.prefix(count).map { UInt8(bitPattern: $0) }, as: UTF8.self)
            if text.hasPrefix("socket:[") { inodes.insert(String(text.dropFirst(8).dropLast())) }
        }
        func table(_ name: String) -> [[Substring]] {
            guard let bytes = try? Posix.readFile(at: "/proc/\(pid)/net/\(name)", limit: 8 << 20) else { return [] }
            return String(decoding: bytes, as: UTF8.self).split(separator: "\n").dropFirst().map {
                $0.split(separator: " ")
            }
        }
        for name in ["tcp", "tcp6"] {
            // sl local_address rem_address st … inode: 0A is TCP_LISTEN.
            for words in table(name) where words.count > 9 && words[3] == "0A" && inodes.contains(String(words[9])) {
                guard let port = words[1].split(separator: ":").last.flatMap({ UInt16($0, radix: 16) }) else {
                    continue
                }
                return .internet(port: port, isVersion6: name == "tcp6")
            }
        }
        // Num RefCount Protocol Flags Type St Inode Path: __SO_ACCEPTCON.
        for words in table("unix") where words.count == 8 && words[3] == "00010000" && words[4] == "0001" {
            if inodes.contains(String(words[6])), words[7].hasPrefix("/") { return .unix(String(words[7])) }
        }
        return nil
    }

    /// Connects; `nil`: it is refused.
    func connect() -> CertifyConnection? {
        switch self {
        case .unix(let path):
            var address = sockaddr_un()
            address.sun_family = sa_family_t(AF_UNIX)
            guard path.utf8.count < MemoryLayout.size(ofValue: address.sun_path) else { return nil }
            withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
            return CertifyConnection(AF_UNIX, address)
        case .internet(let port, false):
            var address = sockaddr_in()
            address.sin_family = sa_family_t(AF_INET)
            address.sin_port = port.bigEndian
            address.sin_addr.s_addr = INADDR_LOOPBACK.bigEndian
            return CertifyConnection(AF_INET, address)
        case .internet(let port, true):
            var address = sockaddr_in6()
            address.sin6_family = sa_family_t(AF_INET6)
            address.sin6_port = port.bigEndian
            address.sin6_addr = in6addr_loopback
            return CertifyConnection(AF_INET6, address)
        }
    }
}

/// A client's connection to the app.
final class CertifyConnection {
    private let descriptor: Int32
    /// For an answer, on a machine that does other things.
    private static let timeout = Duration.seconds(10)

    init?<Address>(_ family: Int32, _ address: Address) {
        descriptor = socket(family, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard descriptor >= 0 else { return nil }
        let result = withUnsafeBytes(of: address) { bytes in
            Glibc.connect(
                descriptor, bytes.baseAddress?.assumingMemoryBound(to: sockaddr.self), socklen_t(bytes.count))
        }
        if result != 0 { return nil }
    }

    deinit { if descriptor >= 0 { close(descriptor) } }

    func send(_ request: CertifyRequest) -> Bool {
        let bytes = Array(request.text.utf8)
        return Glibc.send(descriptor, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count
    }

    /// Reads the answer: up to the end of the connection, or of the line.
    func answer(to request: CertifyRequest, within time: Duration = timeout) -> [UInt8] {
        var bytes: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        let limit = EventLoop.now() + time
        while bytes.count < 4 << 20, EventLoop.now() < limit, !CertifyInterrupt.isRequested {
            guard isReadable(descriptor, within: min(limit - EventLoop.now(), .milliseconds(200))) else { continue }
            let count = read(descriptor, &chunk, chunk.count)
            if count < 0, errno == EINTR || errno == EAGAIN { continue }
            if count <= 0 { break }
            bytes += chunk.prefix(count)
            if !request.isHTTP, bytes.last == 0x0A { break }
        }
        return request.comparable(bytes)
    }
}

/// A request that many servers answer.
enum CertifyRequest: CaseIterable {
    case http, ping, echo

    var isHTTP: Bool { self == .http }

    var text: String {
        switch self {
        case .http: "GET / HTTP/1.0\r\nHost: localhost\r\n\r\n"
        case .ping: "PING\r\n"
        case .echo: "greenroom certify\n"
        }
    }

    var name: String {
        switch self {
        case .http: "GET / over HTTP"
        case .ping: "PING"
        case .echo: "a line"
        }
    }

    /// The part of an answer that is the same each time: of HTTP the status line and the body, without the header, which has the
    /// date. Empty: it is no answer.
    func comparable(_ bytes: [UInt8]) -> [UInt8] {
        guard isHTTP else { return bytes }
        guard bytes.starts(with: Array("HTTP/".utf8)), let line = bytes.firstIndex(of: 0x0A) else { return [] }
        guard let end = bytes.firstRange(of: Array("\r\n\r\n".utf8)) else { return [] }
        return Array(bytes[...line]) + bytes[end.upperBound...]
    }
}

/// Sends a request that many servers answer, on connections that were open while the app was suspended.
final class CertifyGuess: CertifyRequester {
    private let endpoint: CertifyEndpoint
    private let request: CertifyRequest
    private let expected: [UInt8]
    private var connection: CertifyConnection?

    /// With the first request that the app answers the same way twice; `nil`: there is none.
    init?(_ endpoint: CertifyEndpoint) {
        self.endpoint = endpoint
        for request in CertifyRequest.allCases {
            let answers = (0..<2).map { _ -> [UInt8] in
                guard let connection = endpoint.connect(), connection.send(request) else { return [] }
                return connection.answer(to: request, within: .seconds(5))
            }
            guard !answers[0].isEmpty, answers[0] == answers[1] else { continue }
            (self.request, expected) = (request, answers[0])
            return
        }
        return nil
    }

    func prepare() -> String? {
        connection = endpoint.connect()
        return connection == nil ? "\(endpoint.name) refuses a connection" : nil
    }

    func send(_ round: Int) -> String? {
        connection?.send(request) == true ? nil : "a connection was lost while the app was suspended"
    }

    func answer(to round: Int, _ app: Rehearsal) throws(Failure) -> String? {
        let answer = connection?.answer(to: request) ?? []
        if answer == expected { return nil }
        return "answered \(request.name) at \(endpoint.name) with \(answer.count) other bytes instead of "
            + "\(expected.count) after \(Self.freezes(round))"
    }

    func finding(_ rounds: Int) -> String {
        "\(request.name) at \(endpoint.name): the same \(expected.count) bytes before and after \(Self.freezes(rounds)), on "
            + "connections from before them"
    }
}

extension CertifySteps {
    static func load(_ app: Rehearsal) throws(Failure) -> CertifyOutcome {
        if let command = app.options.client { return try load(app, command) }
        guard let pid = try app.status().pid, let endpoint = CertifyEndpoint.find(pid) else {
            return .notApplicable("its main process listens on no TCP or Unix socket")
        }
        guard let guess = CertifyGuess(endpoint) else {
            return .notApplicable("\(endpoint.name) gives the same answer twice to none of the requests that are known")
        }
        return try CertifyRounds.play(app, guess)
    }

    /// The requests are those of the caller's client.
    private static func load(_ app: Rehearsal, _ command: String) throws(Failure) -> CertifyOutcome {
        // What the right answer is, the client learns from an app that runs. A worker is woken by the request.
        if !app.isWorker, try app.status().state == "suspended" { _ = try app.request("Activate") }
        let client = try CertifyClient(command, app.options.timeout)
        defer { client.stop() }
        var problem = client.send(0)
        if problem == nil { problem = try client.answer(to: 0, app) }
        try app.stopIfInterrupted()
        if let problem { return try app.unexpectedEnd() ?? .broken(problem) }
        return try CertifyRounds.play(app, client)
    }
}
