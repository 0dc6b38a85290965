import Glibc
import Linux
import Posix
import Systemd

/// A supervisord that the benchmark starts, and its XML-RPC interface over one connection.
final class Supervisor {
    private let server: Server
    private let configuration: String
    private let socket: String
    private var connection: SharedDescriptor?

    /// - Parameter programs: the program sections of its configuration.
    init(_ bench: Bench, _ name: String, programs: String = "") throws {
        let root = bench.folder + "/" + name
        try createDirectories(at: root)
        configuration = root + "/supervisord.conf"
        socket = bench.runtime + "/" + name
        try Self.write(configuration, root, socket, programs)
        server = try Server(bench.supervisord, ["-n", "-c", configuration], log: root + "/log")
        let server = self.server
        try eventually("supervisord listens; see \(root)/log", everyMicroseconds: 10_000) {
            if server.hasEnded { throw BenchFailure("supervisord exited; see \(root)/log") }
            connection = try? SharedDescriptor(UnixSocket.connect(to: socket))
            return connection != nil
        }
    }

    func stop() { server.stop() }
    func pss() throws -> Double { try server.pss() }
    /// The process of supervisord.
    var pid: Int32 { server.process.pid }
    func switches() throws -> ContextSwitches { try server.switches() }

    private static func write(_ path: String, _ root: String, _ socket: String, _ programs: String) throws {
        let text = """
            [supervisord]
            logfile=\(root)/supervisord.log
            pidfile=\(socket).pid
            childlogdir=\(root)
            minfds=8192
            [unix_http_server]
            file=\(socket)
            [rpcinterface:supervisor]
            supervisor.rpcinterface_factory=supervisor.rpcinterface:make_main_rpcinterface
            \(programs)

            """
        try replaceFile(at: path, with: Array(text.utf8))
    }

    /// A configuration section for `count` programs with the names GROUP:FIRST and so on, without log files. `%(process_num)d`
    /// in the command is replaced by the number.
    static func program(
        _ group: String, _ command: [String], count: Int, first: Int = 0, starts: Bool = false, more: String = ""
    ) -> String {
        """
        [program:\(group)]
        command=\(command.joined(separator: " "))
        process_name=%(process_num)d
        numprocs=\(count)
        numprocs_start=\(first)
        autostart=\(starts)
        autorestart=false
        startsecs=0
        stdout_logfile=NONE
        stderr_logfile=NONE
        \(more)

        """
    }

    /// Reloads the configuration with additional programs and starts a new group.
    func add(_ group: String, programs: String) throws {
        let root = String(configuration.dropLast("/supervisord.conf".count))
        try Self.write(configuration, root, socket, programs)
        try call("supervisor.reloadConfig")
        try call("supervisor.addProcessGroup", [.string(group)])
    }

    // MARK: XML-RPC

    enum Value {
        case string(String)
        case bool(Bool)

        fileprivate var xml: String {
            switch self {
            case .string(let text): "<param><value><string>\(text)</string></value></param>"
            case .bool(let flag): "<param><value><boolean>\(flag ? 1 : 0)</boolean></value></param>"
            }
        }
    }

    /// Calls a method and waits for the reply.
    ///
    /// - Throws: if the reply is a fault.
    func call(_ method: String, _ arguments: [Value] = []) throws {
        let body =
            "<?xml version='1.0'?><methodCall><methodName>\(method)</methodName><params>"
            + arguments.map(\.xml).joined() + "</params></methodCall>"
        let head = "POST /RPC2 HTTP/1.1\r\nHost: localhost\r\nContent-Type: text/xml\r\nContent-Length: "
        guard let connection else { throw BenchFailure("supervisord is not connected") }
        try writeAll(Array("\(head)\(body.utf8.count)\r\n\r\n\(body)".utf8), to: connection.descriptor)
        let reply = try readReply(method, connection)
        guard reply.contains("<methodResponse>"), !reply.contains("<fault>") else {
            throw BenchFailure("supervisord: \(method) failed: \(reply)")
        }
    }

    private func readReply(_ method: String, _ connection: SharedDescriptor) throws -> String {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            var polled = pollfd(fd: connection.raw, events: Int16(POLLIN), revents: 0)
            guard poll(&polled, 1, 60_000) > 0 else { throw BenchFailure("supervisord did not reply to \(method)") }
            let count = read(connection.raw, &buffer, buffer.count)
            guard count > 0 else { throw BenchFailure("supervisord closed the connection") }
            bytes += buffer[..<count]
            if let body = Self.body(bytes) { return body }
        }
    }

    /// The body of an HTTP response, or `nil` if it is incomplete.
    private static func body(_ bytes: [UInt8]) -> String? {
        let empty = Array("\r\n\r\n".utf8)
        guard bytes.count >= empty.count,
            let end = (0...bytes.count - empty.count).first(where: { bytes[$0..<$0 + empty.count].elementsEqual(empty) }
            )
        else { return nil }
        let head = String(decoding: bytes[..<end], as: UTF8.self)
        let body = bytes[(end + empty.count)...]
        for line in head.split(whereSeparator: \.isNewline) {
            let words = line.split(separator: " ")
            guard words.count == 2, words[0].lowercased() == "content-length:", let length = Int(words[1]) else {
                continue
            }
            return body.count < length ? nil : String(decoding: body, as: UTF8.self)
        }
        return nil
    }
}
