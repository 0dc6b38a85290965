import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

@Suite("Hostile traffic", .enabled(if: TrafficStage.hasPython, "needs python3"))
struct HostileTrafficTests {
    @Test("a flood to one suspended app does not delay another one (L50)")
    func flood() throws {
        let stage = try TrafficStage(["flooded": "run()", "server": "run()"], "[Wake]\nWakeThreshold=64K")
        let flooded = try TrafficClient(port: try stage.launch("flooded"))
        try flooded.exchange([1])
        let port = try stage.launch("server")
        try stage.suspended("flooded")
        _ = fcntl(flooded.number, F_SETFL, O_NONBLOCK)
        // In sum less than the threshold: the flooded app is not woken.
        let noise = [UInt8](repeating: 0, count: 4)
        // More rounds would keep it awake: it is woken soon after each suspension.
        for _ in 0..<3 {
            for _ in 0..<5000 { _ = Glibc.send(flooded.number, noise, noise.count, Int32(MSG_NOSIGNAL)) }
            // A connection that waits counts as more than the threshold.
            try stage.suspended("server")
            try TrafficClient(port: port).exchange([2, 3])
        }
    }

    private static let neverCloses = """
        kept = []
        def serve(connection):
            kept.append(connection)
            while data := connection.recv(65536):
                connection.sendall(data)
        run()
        """
    private static let readsSlowly = """
        import time
        def serve(connection):
            while data := connection.recv(1):
                connection.sendall(data)
                time.sleep(0.01)
        run()
        """

    @Test(
        "a server that never closes its connections, or reads slowly, delays neither a deadline of another app nor a query (L7, L50)",
        arguments: [neverCloses, readsSlowly])
    func keptOpen(program: String) throws {
        let late = TestDaemon.manifest("", "[Lifecycle]\nLaunchDeadlineSec=300ms", hangs: true)
        let stage = try TrafficStage(["server": program], beside: ["late": late])
        let port = try stage.launch()
        for _ in 0..<3 {
            var clients = try (0..<8).map { _ in try TrafficClient(port: port) }
            for client in clients { try client.exchange([1]) }
            try stage.daemon.waitUntilWatched("server")
            let launch = try stage.daemon.begin("Launch", "late")
            for client in clients { try client.send([UInt8](repeating: 2, count: 9)) }
            #expect(try clients[0].receive(1) == [2])
            // The descriptors of the server, whose copies the daemon had, are readable from now on.
            clients = []
            do {
                #expect(try stage.daemon.listed().sorted() == ["late", "server"])
            } catch {
                // It would not obey SIGTERM either.
                stage.crash()
                throw error
            }
            let end = try stage.daemon.finish(launch)
            #expect(end["lastReceipt"]?["deadline"]?["what"]?.stringValue == "launch", "\(end)")
        }
        #expect(stage.daemon.stop() == .exited(0))
    }

    @Test("the clients of a suspended server that is killed by another program see its end (L50)")
    func killed() throws {
        let stage = try TrafficStage()
        let client = try TrafficClient(port: try stage.launch())
        try client.exchange([1])
        try stage.suspended()
        kill(try stage.daemon.pid("server"), SIGKILL)
        #expect(try client.receive() == [])
        try stage.daemon.waitUntil("server", is: "notRunning")
        #expect(throws: TestFailure.self) { try TrafficClient(port: try portOfNoServer(stage)) }
    }

    private func portOfNoServer(_ stage: TrafficStage) throws -> UInt16 {
        try #require(UInt16(TestDaemon.text(of: stage.daemon.root + "/server.port")))
    }

    @Test("a socket with SO_LINGER delays neither the end of its app nor the daemon (L50)")
    func lingering() throws {
        let stage = try TrafficStage([
            "server": """
            def prepare(connection):
                import struct
                connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack('ii', 1, 900))
                connection.setblocking(False)
                try:
                    while True: connection.send(bytes(65536))
                except BlockingIOError: pass
                connection.setblocking(True)
                return connection
            run()
            """
        ])
        let client = try TrafficClient(port: try stage.launch())
        #expect(try client.receive(1) == [0])
        try stage.suspended()
        try stage.daemon.terminate("server", remove: true)
        #expect(try stage.daemon.state("server") == "notRunning")
        withExtendedLifetime(client) {}
    }

    @Test("a listening socket that two apps share wakes both, and outlives one of them (L50)")
    func passedOn() throws {
        let path = "os.path.dirname(sys.argv[1]) + '/channel'"
        let stage = try TrafficStage([
            // Receives the socket of the other one, and never accepts a connection.
            "holder": """
            channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            channel.bind(\(path))
            publish(sys.argv[1], '1')
            kept = socket.recv_fds(channel, 16, 4)
            publish(sys.argv[1], '2')
            while True: channel.recv(16)
            """,
            "server": """
            channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            channel.connect(\(path))
            socket.send_fds(channel, [b'x'], [listener.fileno()])
            run()
            """,
        ])
        _ = try stage.launch("holder")
        let port = try stage.launch("server")
        try stage.suspended("holder")
        try stage.suspended("server")
        try TrafficClient(port: port).exchange([1])
        kill(try stage.daemon.pid("holder"), SIGKILL)
        try stage.daemon.waitUntil("holder", is: "notRunning")
        try stage.suspended("server")
        try TrafficClient(port: port).exchange([2])
    }

    @Test("a socket that is passed to a suspended app wakes it, and it receives the socket (L50)")
    func passedWhileSuspended() throws {
        let path = "os.path.dirname(sys.argv[1]) + '/channel'"
        let stage = try TrafficStage([
            "holder": """
            channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            channel.bind(\(path))
            publish(sys.argv[1], '1')
            _, kept, _, _ = socket.recv_fds(channel, 16, 4)
            listener = socket.socket(fileno=kept[0])
            run()
            """,
            "server": """
            import time
            channel = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
            channel.connect(\(path))
            socket.send_fds(channel, [b'x'], [listener.fileno()])
            publish(sys.argv[1], str(listener.getsockname()[1]))
            while True: time.sleep(1000)
            """,
        ])
        _ = try stage.launch("holder")
        try stage.suspended("holder")
        let port = try stage.launch("server")
        // The other app never accepts a connection.
        try TrafficClient(port: port).exchange([1])
        try stage.suspended("holder")
        try TrafficClient(port: port).exchange([2])
    }

    @Test("an app with 300 connections and an epoll descriptor is suspended and answers each of them (L50)")
    func manyConnections() throws {
        let stage = try TrafficStage([
            "server": """
            import select
            poll = select.epoll()
            connections = {}
            poll.register(listener, select.EPOLLIN)
            publish(sys.argv[1], str(listener.getsockname()[1]))
            while True:
                for number, _ in poll.poll():
                    if number == listener.fileno():
                        connection, _ = listener.accept()
                        connections[connection.fileno()] = connection
                        poll.register(connection, select.EPOLLIN)
                    else:
                        data = connections[number].recv(65536)
                        if data: connections[number].sendall(data)
                        else: connections.pop(number).close()
            """
        ])
        let port = try stage.launch()
        let clients = try (0..<300).map { _ in try TrafficClient(port: port) }
        for client in clients { try client.exchange([1]) }
        try stage.suspended()
        var watch: JSONValue?
        // The epoll descriptor's targets are compared in a later turn.
        try stage.daemon.eventually("the descriptors are watched") {
            watch = try stage.daemon.status("server")["watch"]
            return (watch?["watched"]?.integerValue ?? 0) > 300
        }
        #expect(watch?["unwatched"]?.arrayValue?.isEmpty ?? true)
        try clients[299].exchange([2])
        try stage.suspended()
        for client in clients { try client.send([3]) }
        for client in clients { #expect(try client.receive(1) == [3]) }
    }

    @Test("an app that opens its listening socket again at each wake can bind it, and answers (L50)")
    func reopened() throws {
        let stage = try TrafficStage([
            "server": """
            # Connections inherit it, and would keep the address in use.
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
            publish(sys.argv[1], str(listener.getsockname()[1]))
            address = listener.getsockname()
            while True:
                connection, _ = listener.accept()
                listener.close()
                # Fails while a duplicate of the old one exists (EADDRINUSE).
                listener = socket.socket()
                listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
                listener.bind(address)
                listener.listen(64)
                while data := connection.recv(65536):
                    connection.sendall(data)
                connection.close()
            """
        ])
        let port = try stage.launch()
        for round in 0..<3 {
            try stage.suspended()
            try TrafficClient(port: port).exchange([UInt8(round)])
        }
    }

    @Test(
        "an app whose descriptors may not be duplicated is suspended without a watch, and status says so (L50)",
        .enabled(if: geteuid() == 0, "needs root"))
    func notPermitted() throws {
        let daemon = try TestDaemon(
            ["app": TestDaemon.manifest("undumpable", app: "StartupSec=0", "[Lifecycle]\nSuspendDelaySec=0")],
            asUnprivilegedUser: true)
        try daemon.launch("app", background: true)
        try daemon.waitUntil("app", is: "suspended")
        var problems: [String] = []
        try daemon.eventually("it was tried") {
            let unwatched = try daemon.status("app")["watch"]?["unwatched"]?.arrayValue ?? []
            problems = unwatched.compactMap { $0["problem"]?.stringValue }
            return !problems.isEmpty
        }
        #expect(problems == ["notPermitted"])
    }
}
