import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

@Suite("Traffic wakes suspended servers", .enabled(if: TrafficStage.hasPython, "needs python3"))
struct TrafficTests {
    @Test("a web server that is suspended answers a request, without a byte lost, and status names what woke it (L50)")
    func webServer() throws {
        let root = try TestDaemon.makeFolder()
        var generator = SystemRandomNumberGenerator()
        let file = (0..<300_000).map { _ in UInt8.random(in: 0 ... .max, using: &generator) }
        try createDirectories(at: root + "/www")
        try replaceFile(at: root + "/www/data", with: file)
        // The program has no option to tell which port the kernel has chosen.
        let program = """
            import functools, http.server, os, sys
            handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=sys.argv[1])
            server = http.server.ThreadingHTTPServer(('127.0.0.1', 0), handler)
            open(sys.argv[2] + '.new', 'w').write(str(server.server_address[1]))
            os.rename(sys.argv[2] + '.new', sys.argv[2])
            server.serve_forever()

            """
        try replaceFile(at: root + "/web.py", with: Array(program.utf8))
        let command = "\(TrafficStage.python) \(root)/web.py \(root)/www \(root)/port"
        // The request must find the program awake that the connection has woken.
        let daemon = try TestDaemon(["web": TrafficStage.manifest(command, "IdleSec=5s")], root: root)
        try daemon.launch("web")
        var port: UInt16 = 0
        try daemon.eventually("it listens") {
            port = UInt16(TestDaemon.text(of: root + "/port")) ?? 0
            return port > 0
        }
        try daemon.waitUntil("web", is: "suspended")
        try daemon.eventually("its descriptors are watched") {
            (try daemon.status("web")["watch"]?["watched"]?.integerValue ?? 0) >= 1
        }
        let client = try TrafficClient(port: port)
        try client.send(Array("GET /data HTTP/1.0\r\n\r\n".utf8))
        let answer = try client.receive()
        #expect(String(decoding: answer.prefix(15), as: UTF8.self) == "HTTP/1.0 200 OK")
        #expect(Array(answer.suffix(file.count)) == file)
        let status = try daemon.status("web")
        #expect((status["trafficWakes"]?.integerValue ?? 0) >= 1)
        #expect(status["lastInput"]?["kind"]?.stringValue == "listener", "\(status)")
        try daemon.waitUntil("web", is: "suspended")
    }

    @Test("data of an established connection wakes a server, and arrives complete and in order (L50)")
    func connection() throws {
        let stage = try TrafficStage()
        let client = try TrafficClient(port: try stage.launch())
        try client.exchange([1, 2, 3])
        try stage.suspended()
        let bytes = (0..<1_000_000).map { UInt8(truncatingIfNeeded: $0 &* 31 &+ $0 >> 8) }
        // More than the buffers hold: half of it is read before the rest is sent.
        for part in stride(from: 0, to: bytes.count, by: 50_000) {
            try client.exchange(Array(bytes[part..<min(bytes.count, part + 50_000)]))
        }
        let input = try stage.daemon.status("server")["lastInput"]
        #expect(input?["kind"]?.stringValue == "stream")
        #expect(input?["peer"]?.stringValue?.hasPrefix("127.0.0.1:") ?? false)
    }

    @Test("a server that keeps a byte in its own pipe, as libuv does, is woken once for it, and answers requests (L50)")
    func ownPipe() throws {
        let stage = try TrafficStage(["server": "own = os.pipe(); os.write(own[1], b'x'); run()"])
        let port = try stage.launch()
        try stage.daemon.eventually("the pipe wakes it") {
            try stage.daemon.status("server")["lastInput"]?["kind"]?.stringValue == "pipe"
        }
        let client = try TrafficClient(port: port)
        for number in UInt8(1)...3 {
            try stage.suspended()
            try client.exchange([number])
        }
        try stage.suspended()
        let status = try stage.daemon.status("server")
        #expect(status["lastInput"]?["kind"]?.stringValue == "stream", "\(status)")
        // The pipe, the connection that waits, and three requests.
        #expect(status["trafficWakes"]?.integerValue ?? 0 <= 5, "\(status)")
    }

    @Test("while an app runs the daemon has no duplicate of its sockets (L50)")
    func noDuplicates() throws {
        let stage = try TrafficStage()
        let client = try TrafficClient(port: try stage.launch())
        try client.exchange([1])
        try stage.daemon.waitUntilWatched("server")
        let suspended = stage.sockets
        try stage.daemon.terminate("server")
        // The listening socket, the connection, and the notify socket.
        try stage.daemon.eventually("they are closed") { suspended >= stage.sockets + 3 }
        #expect(try client.receive() == [])
    }

    @Test("a request that comes while there is no daemon is answered once the next one runs (L50)")
    func crash() throws {
        let stage = try TrafficStage()
        let port = try stage.launch()
        let old = try TrafficClient(port: port)
        try old.exchange([1])
        try stage.suspended()
        stage.crash()
        let new = try TrafficClient(port: port)
        try new.send([2, 3])
        try old.send([4])
        try stage.restart()
        #expect(try new.receive(2) == [2, 3])
        #expect(try old.receive(1) == [4])
        // The watch of the next daemon.
        try stage.suspended()
        try old.exchange([5])
    }

    @Test("a daemon that replaces itself watches the suspended apps again (L50)")
    func reexec() throws {
        let stage = try TrafficStage()
        let client = try TrafficClient(port: try stage.launch())
        try client.exchange([1])
        try stage.suspended()
        _ = try? stage.daemon.call("Reexec")
        try stage.daemon.reconnect()
        try client.exchange([2])
    }

    @Test("without cgroups a stopped server answers as well (L50)", .enabled(if: geteuid() == 0, "needs root"))
    func processGroup() throws {
        let stage = try TrafficStage(asUnprivilegedUser: true)
        let client = try TrafficClient(port: try stage.launch())
        try client.exchange([1])
        try stage.suspended()
        try client.exchange([2, 3])
        try stage.suspended()
        try client.exchange([4])
    }

    @Test("less than WakeThreshold= does not wake a server, and is read with what comes later (L50)")
    func threshold() throws {
        let stage = try TrafficStage(["server": "run()"], "[Wake]\nWakeThreshold=1K")
        let client = try TrafficClient(port: try stage.launch())
        try client.exchange([UInt8](repeating: 1, count: 1024))
        try stage.suspended()
        let before = try stage.daemon.status("server")["trafficWakes"]?.integerValue ?? 0
        // One byte at a time, for longer than descriptors rest.
        for number in 0..<500 {
            try client.send([UInt8(truncatingIfNeeded: number)])
            poll(nil, 0, 1)
        }
        let status = try stage.daemon.status("server")
        #expect(status["state"]?.stringValue == "suspended", "\(status)")
        #expect(status["trafficWakes"]?.integerValue ?? 0 == before)
        try client.send([UInt8](repeating: 7, count: 600))
        let answer = try client.receive(1100)
        #expect(answer == (0..<500).map { UInt8(truncatingIfNeeded: $0) } + [UInt8](repeating: 7, count: 600))
    }
}
