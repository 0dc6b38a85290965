import Glibc
import JSON
import Linux
import Posix
import TestKit

/// A real server in Python that knows nothing of Greenroom, as an app that is suspended when it is idle.
final class TrafficStage {
    static let python = "/usr/bin/python3"
    static let hasPython = access(python, X_OK) == 0

    private(set) var daemon: TestDaemon
    private let root: String

    /// Answers with what it receives. Writes its port to a file, so that the kernel chooses it.
    private static let program = """
        import os, socket, sys, threading
        def serve(connection):
            connection = prepare(connection)
            while data := connection.recv(65536):
                connection.sendall(data)
            connection.close()
        def prepare(connection):
            return connection
        listener = socket.socket()
        listener.bind(('127.0.0.1', 0))
        listener.listen(64)
        def publish(name, text):
            with open(name + '.new', 'w') as file:
                file.write(text)
            os.rename(name + '.new', name)
        def run():
            publish(sys.argv[1], str(listener.getsockname()[1]))
            while True:
                connection, _ = listener.accept()
                threading.Thread(target=serve, args=(connection,)).start()

        """

    /// - Parameters:
    ///   - apps: what follows the program above, by app. By default it runs.
    ///   - settings: further sections of the manifests.
    ///   - manifests: of other apps.
    init(
        _ apps: [String: String] = ["server": "run()"], _ settings: String = "",
        beside manifests: [String: String] = [:],
        asUnprivilegedUser: Bool = false
    ) throws {
        root = try TestDaemon.makeFolder()
        chmod(root, 0o777)
        var manifests = manifests
        for (app, end) in apps {
            let path = "\(root)/\(app).py"
            try replaceFile(at: path, with: Array((Self.program + end + "\n").utf8), mode: 0o644)
            manifests[app] = Self.manifest("\(Self.python) \(path) \(root)/\(app).port", settings)
        }
        daemon = try TestDaemon(manifests, root: root, asUnprivilegedUser: asUnprivilegedUser)
    }

    /// A worker that is suspended soon.
    static func manifest(_ command: String, _ settings: String = "") -> String {
        """
        [App]
        Role=worker
        ExecStart=\(command)
        StartupSec=0
        [Lifecycle]
        IdleSec=100ms
        \(settings)

        """
    }

    /// Launches an app, and returns its port.
    func launch(_ app: String = "server") throws -> UInt16 {
        try daemon.launch(app)
        var port: UInt16 = 0
        try daemon.eventually("\(app) listens") {
            port = UInt16(TestDaemon.text(of: "\(root)/\(app).port")) ?? 0
            return port > 0
        }
        return port
    }

    func suspended(_ app: String = "server") throws { try daemon.waitUntil(app, is: "suspended") }

    /// Kills the daemon.
    func crash() { daemon.crash() }
    func restart() throws { daemon = try daemon.successor() }

    /// How many sockets the daemon has open.
    var sockets: Int { daemon.openDescriptors().count { $0.hasPrefix("socket:") } }
}

/// A TCP connection to this machine. Each call fails after a minute.
final class TrafficClient {
    let number: Int32

    init(port: UInt16) throws {
        number = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var limit = timeval(tv_sec: 60, tv_usec: 0)
        for option in [SO_RCVTIMEO, SO_SNDTIMEO] {
            setsockopt(number, SOL_SOCKET, option, &limit, socklen_t(MemoryLayout<timeval>.size))
        }
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let (number, result) = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { (self.number, connect(self.number, $0, size)) }
        }
        guard result == 0 else { throw TestFailure("connect \(number) to port \(port): error \(errno)") }
    }

    deinit { close(number) }

    func send(_ bytes: [UInt8]) throws {
        var done = 0
        while done < bytes.count {
            let sent = bytes[done...].withUnsafeBytes {
                Glibc.send(number, $0.baseAddress, $0.count, Int32(MSG_NOSIGNAL))
            }
            guard sent > 0 else { throw TestFailure("send: error \(errno)") }
            done += sent
        }
    }

    /// Returns exactly so many bytes; fewer only at the end.
    func receive(_ count: Int = .max) throws -> [UInt8] {
        var bytes: [UInt8] = []
        var piece = [UInt8](repeating: 0, count: 65_536)
        while bytes.count < count {
            let got = recv(number, &piece, min(piece.count, count - bytes.count), 0)
            guard got >= 0 else { throw TestFailure("recv: error \(errno)") }
            if got == 0 { break }
            bytes += piece[..<got]
        }
        return bytes
    }

    /// Sends bytes, and expects the same as the answer.
    func exchange(_ bytes: [UInt8]) throws {
        try send(bytes)
        guard try receive(bytes.count) == bytes else { throw TestFailure("the answer differs") }
    }
}
