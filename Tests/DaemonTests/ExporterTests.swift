import Glibc
import Linux
import Metrics
import Posix
import Systemd
import TestKit
import Testing

/// greenroom-exporter and greenroomd together.
@Suite("Metrics of a daemon")
struct ExporterTests {
    /// A running greenroom-exporter. It ends when it is dropped.
    private final class RunningExporter {
        let socket: String
        private let process: Linux.Process
        private let log: String

        init(_ daemon: TestDaemon, _ options: [String] = []) throws {
            socket = daemon.runtime + "/metrics"
            log = daemon.root + "/exporter.log"
            let ready = try DatagramSocket(at: daemon.root + "/exporter-ready")
            process = try ExporterTests.start(daemon, options, log: log)
            waitForReadable([ready.descriptor, process.descriptor])
            guard try ready.receive() != nil else { throw TestFailure("the exporter ended: \(logText)") }
        }

        deinit {
            _ = try? process.signal(SIGTERM)
            waitForReadable([process.descriptor])
            _ = try? process.reap()
        }

        var logText: String { TestDaemon.text(of: log) }

        func scrape(accept: String = "") throws -> String {
            try ExporterTests.request("GET /metrics", accept, on: try UnixSocket.connect(to: socket))
        }

        /// Scrapes until a line is there: an answer is valid for a second.
        func wait(for line: String, _ daemon: TestDaemon) throws -> String {
            var text = ""
            try daemon.eventually(line) {
                text = try scrape()
                return text.contains(line + "\n")
            }
            return text
        }
    }

    private static func start(_ daemon: TestDaemon, _ options: [String], log: String) throws -> Linux.Process {
        let output = SharedDescriptor(try Descriptor.open(log, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600))
        var starting = try startProcess(
            SpawnRequest(
                executable: TestDaemon.binaries + "/greenroom-exporter",
                arguments: ["--runtime", daemon.runtime] + options,
                environment: ["PATH=/usr/bin:/bin", "NOTIFY_SOCKET=\(daemon.root)/exporter-ready"],
                standardOutput: output, standardError: output))
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        return starting.process
    }

    /// Runs the exporter until it ends by itself.
    private func run(_ daemon: TestDaemon, _ options: String...) throws -> (status: EndStatus?, text: String) {
        let log = daemon.root + "/ended.log"
        let process = try Self.start(daemon, options, log: log)
        waitForReadable([process.descriptor])
        return (try process.reap()?.status, TestDaemon.text(of: log))
    }

    /// Sends a request and reads the answer to its end, header included.
    private static func request(_ line: String, _ accept: String = "", on socket: consuming Descriptor) throws -> String
    {
        try send(
            "\(line) HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\(accept.isEmpty ? "" : "Accept: \(accept)\r\n")\r\n",
            on: socket)
        // No answer is a failure, and not a test that hangs.
        var limit = timeval(tv_sec: 30, tv_usec: 0)
        setsockopt(socket.raw, SOL_SOCKET, SO_RCVTIMEO, &limit, socklen_t(MemoryLayout<timeval>.size))
        var text: [UInt8] = []
        var chunk = [UInt8](repeating: 0, count: 1 << 16)
        while true {
            let count = recv(socket.raw, &chunk, chunk.count, 0)
            if count <= 0 { break }
            text += chunk.prefix(count)
        }
        return String(decoding: text, as: UTF8.self)
    }

    private static func send(_ text: String, on socket: borrowing Descriptor) throws {
        let bytes = Array(text.utf8)
        guard Glibc.send(socket.raw, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
            throw TestFailure("the request could not be sent")
        }
    }

    /// A listening TCP socket of this process, and its port.
    private func takePort() throws -> (socket: SharedDescriptor, port: Int) {
        let socket = SharedDescriptor(
            Descriptor(adopting: Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let number = socket.raw
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                #expect(bind(number, $0, size) == 0 && listen(number, 1) == 0 && getsockname(number, $0, &size) == 0)
            }
        }
        return (socket, Int(UInt16(bigEndian: address.sin_port)))
    }

    private static let sleeper = TestDaemon.manifest("", app: "", "[Lifecycle]\nSuspendDelaySec=0")

    @Test("an app is launched, suspended, woken and killed, and a scrape has it all, in both formats")
    func lifecycle() throws {
        let daemon = try TestDaemon(["a": Self.sleeper])
        let exporter = try RunningExporter(daemon)
        try daemon.launch("a")
        try daemon.ask("Background", "a")
        try daemon.waitUntil("a", is: "suspended")
        try daemon.ask("Activate", "a")
        try daemon.terminate("a", remove: true)
        let text = try exporter.wait(for: "greenroom_app_kills_total{app=\"a\",reason=\"removed\"} 1", daemon)
        for line in [
            "greenroom_up 1", "greenroom_app_launch_duration_seconds_count{outcome=\"done\"} 1",
            "greenroom_app_suspend_duration_seconds_count{outcome=\"done\"} 1",
            "greenroom_app_wake_duration_seconds_count{outcome=\"done\"} 1",
            "greenroom_app_wakes_total{app=\"a\",reason=\"requested\"} 1",
            "greenroom_app_deadline_margin_seconds_count{deadline=\"launch\"} 1",
            "greenroom_app_kill_to_free_seconds_count 1", "greenroom_exporter_event_gaps_total 0",
        ] { #expect(text.contains("\(line)\n"), "\(line) is not in \(text)") }
        #expect(!text.contains("greenroom_app_suspended_seconds_total{app=\"a\"} 0\n"))
        for metric in Metric.allCases { #expect(text.contains("# TYPE \(metric.sampleName) "), "\(metric)") }
        #expect(text.contains("Content-Type: text/plain; version=0.0.4; charset=utf-8\r\n"))
        let open = try exporter.scrape(accept: "application/openmetrics-text;version=1.0.0,text/plain;q=0.5")
        #expect(open.contains("Content-Type: application/openmetrics-text; version=1.0.0; charset=utf-8\r\n"))
        #expect(open.hasSuffix("\n# EOF\n"))
    }

    /// Runs a program of the machine to its end.
    private func output(_ daemon: TestDaemon, _ command: String) throws -> (status: EndStatus?, text: String) {
        let path = daemon.root + "/program.log"
        let log = SharedDescriptor(try Descriptor.open(path, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600))
        var starting = try startProcess(
            SpawnRequest(
                executable: "/bin/sh", arguments: ["-c", command], environment: ["PATH=/usr/bin:/bin"],
                standardOutput: log, standardError: log))
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        waitForReadable([starting.process.descriptor])
        return (try starting.process.reap()?.status, TestDaemon.text(of: path))
    }

    @Test(
        "promtool of Prometheus finds nothing wrong", .enabled(if: isInstalled("promtool"), "promtool is not installed")
    )
    func promtool() throws {
        let daemon = try TestDaemon(["a": Self.sleeper])
        let exporter = try RunningExporter(daemon)
        try daemon.launch("a")
        try daemon.terminate("a", remove: true)
        let text = try exporter.wait(for: "greenroom_app_kills_total{app=\"a\",reason=\"removed\"} 1", daemon)
        let body = try #require(text.firstRange(of: "\r\n\r\n")).upperBound
        try replaceFile(at: daemon.root + "/text", with: Array(text[body...].utf8))
        let checked = try output(daemon, "promtool check metrics <\(daemon.root)/text")
        #expect(checked.status == .exited(0) && checked.text.isEmpty, "\(checked)")
    }

    @Test(
        "Prometheus scrapes MetricsListen=",
        .enabled(if: isTestingAll && isInstalled("prometheus"), "only with make test-all, if prometheus is installed"))
    func prometheus() throws {
        // Ports that were free a moment ago.
        let ports = try [takePort(), takePort()].map(\.port)
        let daemon = try TestDaemon(configuration: "[Manager]\nMetricsListen=127.0.0.1:\(ports[0])\n")
        let exporter = try RunningExporter(daemon)
        let configuration = """
            global: {scrape_interval: 100ms, scrape_timeout: 100ms}
            scrape_configs:
              - job_name: greenroom
                static_configs: [{targets: ["127.0.0.1:\(ports[0])"]}]

            """
        try replaceFile(at: daemon.root + "/prometheus.yml", with: Array(configuration.utf8))
        let log = SharedDescriptor(
            try Descriptor.open(daemon.root + "/prometheus.log", O_WRONLY | O_CREAT, mode: 0o600))
        var starting = try startProcess(
            SpawnRequest(
                executable: "/usr/bin/prometheus",
                arguments: [
                    "--config.file=\(daemon.root)/prometheus.yml", "--storage.tsdb.path=\(daemon.root)/tsdb",
                    "--web.listen-address=127.0.0.1:\(ports[1])",
                ], environment: ["PATH=/usr/bin:/bin"], standardOutput: log, standardError: log))
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        defer {
            _ = try? starting.process.signal(SIGKILL)
            waitForReadable([starting.process.descriptor])
            _ = try? starting.process.reap()
        }
        try daemon.eventually("Prometheus has a sample") {
            let socket = try tcpConnection(to: ports[1])
            guard let socket else { return false }
            return try Self.request("GET /api/v1/query?query=greenroom_up", on: socket.descriptor.duplicate())
                .contains(#","1"]"#)
        }
        withExtendedLifetime(exporter) {}
    }

    /// `nil`: nothing listens there yet.
    private func tcpConnection(to port: Int) throws -> SharedDescriptor? {
        let socket = SharedDescriptor(
            Descriptor(adopting: Glibc.socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        address.sin_port = in_port_t(UInt16(port)).bigEndian
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(socket.raw, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        return result == 0 ? socket : nil
    }

    @Test("a scraper that asks and never reads, and one that sends half a request, hinder no other")
    func neverReads() throws {
        let daemon = try TestDaemon(["a": Self.sleeper])
        let exporter = try RunningExporter(daemon)
        let silent = try UnixSocket.connect(to: exporter.socket)
        // More answers than the kernel's buffer takes.
        try Self.send(String(repeating: "GET /metrics HTTP/1.1\r\nHost: x\r\n\r\n", count: 1000), on: silent)
        let half = try UnixSocket.connect(to: exporter.socket)
        try Self.send("GET /metr", on: half)
        for _ in 0..<3 { #expect(try exporter.scrape().contains("greenroom_up 1\n")) }
        withExtendedLifetime((silent.raw, half.raw)) {}
    }

    @Test(
        "connections beyond the limit are served after all others were closed because they sent nothing for 10s",
        .enabled(if: isTestingAll, "only with make test-all: it takes 10s"))
    func limit() throws {
        let daemon = try TestDaemon()
        let exporter = try RunningExporter(daemon)
        let silent = try (0..<70).map { _ in SharedDescriptor(try UnixSocket.connect(to: exporter.socket)) }
        for socket in silent { try Self.send("GET /metr", on: socket.descriptor) }
        waitForReadable([silent[0]])
        #expect(try exporter.scrape().contains("greenroom_up 1\n"))
    }

    @Test("other paths and methods have answers of their own")
    func otherRequests() throws {
        let daemon = try TestDaemon()
        let exporter = try RunningExporter(daemon)
        func answer(_ line: String) throws -> String {
            try Self.request(line, on: try UnixSocket.connect(to: exporter.socket))
        }
        #expect(try answer("GET /").hasSuffix("The metrics are at /metrics.\n"))
        #expect(try answer("POST /metrics").contains("HTTP/1.1 405 "))
        let head = try answer("HEAD /metrics")
        #expect(head.contains("HTTP/1.1 200 ") && head.hasSuffix("\r\n\r\n"))
    }

    @Test("a port of the command line that is taken is a sentence and exit status 1; a wrong address is status 2")
    func portTaken() throws {
        let (socket, port) = try takePort()
        let daemon = try TestDaemon(configuration: "[Manager]\nMetricsListen=127.0.0.1:\(port)\n")
        let given = try run(daemon, "--listen", "127.0.0.1:\(port)")
        #expect(given.status == .exited(1))
        #expect(
            given.text == "greenroom-exporter: cannot listen at 127.0.0.1:\(port): Address already in use\n")
        let wrong = try run(daemon, "--listen", "localhost")
        #expect(wrong.status == .exited(2))
        #expect(wrong.text.contains("--listen: invalid value 'localhost'"))
        let relative = try run(daemon, "--socket", "run/metrics")
        #expect(relative.status == .exited(2))
        #expect(relative.text.contains("--socket: invalid value 'run/metrics'; expected an absolute path"))
        // The command line comes first.
        let exporter = try RunningExporter(daemon, ["--listen", "off"])
        #expect(try exporter.scrape().contains("greenroom_up 1\n"))
        #expect(try run(daemon).text.contains("cannot listen at \(daemon.runtime)/metrics: Address already in use"))
        withExtendedLifetime(socket) {}
    }

    @Test("while the port of MetricsListen= is taken, the Unix socket serves; once it is free, it is served, too")
    func configuredPortTaken() throws {
        var (socket, port): (SharedDescriptor?, Int) = try takePort()
        let daemon = try TestDaemon(configuration: "[Manager]\nMetricsListen=127.0.0.1:\(port)\n")
        let exporter = try RunningExporter(daemon)
        #expect(try exporter.scrape().contains("greenroom_up 1\n"))
        let sentence =
            "greenroom-exporter: MetricsListen=: cannot listen at 127.0.0.1:\(port): Address already in use; "
        #expect(exporter.logText == sentence + "retrying, and serving \(exporter.socket) meanwhile\n")
        withExtendedLifetime(socket) {}
        socket = nil
        try daemon.eventually("it listens at the port") {
            exporter.logText.hasSuffix("greenroom-exporter: MetricsListen=: listening at 127.0.0.1:\(port)\n")
        }
        let connection = try #require(try tcpConnection(to: port))
        #expect(
            try Self.request("GET /metrics", on: connection.descriptor.duplicate()).contains("greenroom_up 1\n"))
        // A reload that changes it ends the attempts, and begins others.
        let taken = try takePort()
        try replaceFile(
            at: daemon.config + "/greenroom.conf",
            with: Array("[Manager]\nMetricsListen=127.0.0.1:\(taken.port)\n".utf8))
        _ = try daemon.call("Reload")
        try daemon.eventually("it says that the other port is taken") {
            exporter.logText.contains("cannot listen at 127.0.0.1:\(taken.port): Address already in use; retrying")
        }
        #expect(try tcpConnection(to: port) == nil && exporter.scrape().contains("greenroom_up 1\n"))
        withExtendedLifetime(taken.socket) {}
    }

    @Test("MetricsListen= opens a port, and a reload closes it and opens another")
    func metricsListen() throws {
        let daemon = try TestDaemon(configuration: "[Manager]\nMetricsListen=@\(getpid())-one\n")
        let exporter = try RunningExporter(daemon)
        func answers(_ name: String) throws -> Bool {
            try String(contentsOf: "/proc/net/unix").contains("@\(getpid())-\(name)")
        }
        try daemon.eventually("it listens") { try answers("one") }
        try replaceFile(
            at: daemon.config + "/greenroom.conf", with: Array("[Manager]\nMetricsListen=@\(getpid())-two\n".utf8))
        _ = try daemon.call("Reload")
        // Nothing asks it for metrics in the meantime: a scraper may know no other address.
        try daemon.eventually("it listens at the new address") { try answers("two") && !answers("one") }
        withExtendedLifetime(exporter) {}
    }

    @Test("after a reexec no event is missing, and after a crash the exporter says that some are")
    func reconnection() throws {
        let daemon = try TestDaemon(["a": Self.sleeper])
        let exporter = try RunningExporter(daemon)
        try daemon.launch("a")
        _ = try daemon.call("Reexec")
        try daemon.reconnect()
        try daemon.ask("Background", "a")
        try daemon.waitUntil("a", is: "suspended")
        let line = "greenroom_app_suspend_duration_seconds_count{outcome=\"done\"} 1"
        #expect(try exporter.wait(for: line, daemon).contains("greenroom_exporter_event_gaps_total 0\n"))
        daemon.crash()
        try daemon.eventually("there is no daemon") { try exporter.scrape().contains("greenroom_up 0\n") }
        let next = try daemon.successor()
        _ = try exporter.wait(for: "greenroom_exporter_event_gaps_total 1", next)
        _ = try exporter.wait(for: "greenroom_apps{state=\"suspended\"} 1", next)
    }
}

extension String {
    fileprivate init(contentsOf path: String) throws {
        self = String(decoding: try readFile(at: path, limit: 1 << 24), as: UTF8.self)
    }
}
