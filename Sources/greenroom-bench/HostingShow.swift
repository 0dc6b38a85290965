import Control
import Glibc
import Linux
import Posix
import Systemd

/// Hosts workers of one template behind nginx, as docs/HOSTING.md says, and sends them requests while greenroomd is killed (SIGKILL)
/// again and again, and started again with the descriptors that it has stored.
func measureHostingShow(_ bench: Bench) throws {
    raiseDescriptorLimit()
    let show = HostingShow(bench)
    bench.report.section(
        "\(show.count) workers behind nginx",
        "python3 with http.server, instances of one template; \(show.rate) requests per second for \(show.seconds) s, to some workers more "
            + "than to others; greenroomd is killed every \(show.pause) s and started again, as systemd does")
    guard [show.python, show.nginx].allSatisfy({ (path: String) in access(path, X_OK) == 0 }) else {
        let peer = "not installed: \(show.nginx)"
        return bench.report.add(Figure(name: "requests", unit: .count, ours: nil, peer: peer, remark: "–"))
    }
    defer { show.stop() }
    try show.prepare()
    try show.run()
}

private final class HostingShow {
    let count: Int
    let rate: Int
    let seconds: Int
    /// The time between two kills, in seconds.
    let pause: Int
    let python = "/usr/bin/python3"
    let nginx = "/usr/sbin/nginx"

    private let bench: Bench
    private let root: String
    private let runtime: String
    private var ports: [UInt16] = []
    private var keeper: DescriptorKeeper?
    private var daemon: pid_t = 0
    private var proxy: Server?

    init(_ bench: Bench) {
        self.bench = bench
        count = bench.hasFewApps ? 30 : 300
        rate = bench.hasFewApps ? 60 : 200
        seconds = bench.isQuick ? 30 : 60 * bench.minutes
        pause = min(60, max(5, seconds / 5))
        root = bench.folder + "/hosting-show"
        runtime = bench.runtime + "/show"
    }

    // MARK: Preparation

    private func socket(_ number: Int) -> String { "\(runtime)-sites/\(number).sock" }

    func prepare() throws {
        for folder in ["/config/apps", "/pages", "/nginx"] { try createDirectories(at: root + folder) }
        try createDirectories(at: runtime + "-sites")
        try replaceFile(at: root + "/pages/page.txt", with: [UInt8](repeating: 0x70, count: 4096))
        try replaceFile(at: root + "/config/apps/http@.app", with: Array(template.utf8))
        for number in 0..<count where symlink("http@.app", "\(root)/config/apps/http@\(number).app") != 0 {
            throw BenchFailure("symlink in \(root): error \(errno)")
        }
        ports = try freePorts(count)
        try replaceFile(at: root + "/nginx.conf", with: Array(nginxConfiguration.utf8))
        keeper = try DescriptorKeeper(at: runtime + ".ready")
        _ = try startDaemon()
        bench.record(groupsOf: try MemoryStatus(variant: try call("Pressure")).containment)
        proxy = try Server(nginx, ["-c", root + "/nginx.conf", "-e", "stderr"], log: root + "/nginx.log")
        try eventually("nginx listens; see \(root)/nginx.log", everyMicroseconds: 10_000) {
            if proxy?.hasEnded ?? true { throw BenchFailure("nginx ended; see \(root)/nginx.log") }
            return ports.allSatisfy { !isFree($0) }
        }
    }

    private var template: String {
        """
        [App]
        ExecStart=\(python) \(bench.folder)/site.py
        WorkingDirectory=\(root)/pages
        Type=listening
        Role=worker
        [Lifecycle]
        IdleSec=2s
        UnloadAfterSec=30s
        LaunchDeadlineSec=5min
        [Wake]
        ListenStream=\(runtime)-sites/%i.sock
        ConnectionWaitSec=5min

        """
    }

    /// docs/examples/hosting/nginx.conf, with a port for each site: the client of the load sends no names.
    private var nginxConfiguration: String {
        let servers = ports.enumerated().map { number, port in
            "    server { listen 127.0.0.1:\(port) backlog=4096; location / { proxy_pass http://unix:\(socket(number)); } }\n"
        }
        let folders = ["client_body", "proxy", "fastcgi", "uwsgi", "scgi"].map {
            "    \($0)_temp_path \(root)/nginx/\($0);\n"
        }
        return """
            daemon off;
            \(geteuid() == 0 ? "user root root;" : "")
            worker_processes 2;
            pid \(root)/nginx/pid;
            error_log stderr;
            events { worker_connections 8192; }
            http {
                access_log off;
                proxy_connect_timeout 60s;
                proxy_read_timeout 5m;
            \(folders.joined())\(servers.joined())}

            """
    }

    // MARK: The daemon

    /// - Returns: the time until it is ready, in seconds.
    private func startDaemon() throws -> Double {
        guard let keeper else { throw BenchFailure("no keeper") }
        let start = clockNow()
        daemon = try keeper.start(
            [
                bench.programs + "/greenroomd", "--config", root + "/config", "--runtime", runtime, "--state",
                root + "/state",
            ], log: root + "/log")
        try eventually("greenroomd is ready; see \(root)/log", everyMicroseconds: 1000, seconds: 60) { keeper.hasReady }
        return Double(clockNow() - start) / 1e9
    }

    /// Kills the daemon and starts the next one.
    /// - Returns: the time until that is ready, in seconds.
    private func restartDaemon() throws -> Double {
        kill(daemon, SIGKILL)
        waitForChild(daemon)
        // RestartSec= of greenroomd.service.
        rest(microseconds: 100_000)
        return try startDaemon()
    }

    /// A call through a connection of its own: the daemon may be another one each time.
    private func call(_ member: String) throws -> Variant {
        let bus = try BusConnection(path: runtime + "/bus")
        let answer = try bus.call(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: member,
            timeout: .seconds(60))
        return answer.first ?? .dictionary([])
    }

    func stop() {
        proxy?.stop()
        if daemon > 0 {
            kill(daemon, SIGTERM)
            waitForChild(daemon)
        }
        keeper?.stop()
    }

    // MARK: Figures

    func run() throws {
        try addMemory("at first")
        try addBurst()
        try addMemory("after a request to each")
        try addLoad()
        try addMemory("at the end")
    }

    private func add(_ name: String, _ unit: Unit, _ value: Double, mustBe isRequired: Bool? = nil) {
        bench.report.add(Figure(name: name, unit: unit, ours: value, peer: "", isRequired: isRequired))
    }

    private func addMemory(_ when: String) throws {
        let workers = try [AppStatus](variant: call("List")).compactMap(\.pid)
        let proc = ProcFS()
        func size(_ pid: Int32) -> Double { Double((try? proc.memoryRollup(of: pid))?.pss ?? 0) }
        add("workers running, \(when)", .count, Double(workers.count))
        add("  memory (PSS) of these", .bytes, workers.reduce(0) { $0 + size($1) })
        add("  memory (PSS) of greenroomd", .bytes, size(daemon))
    }

    /// A connection to each worker at once, while none runs.
    private func addBurst() throws {
        let start = clockNow()
        var (open, lost): ([ClientConnection], Int) = ([], 0)
        for port in ports {
            let connection = try ClientConnection(port: port, seconds: 300)
            try connection.send(Array("GET /page.txt HTTP/1.0\r\nHost: localhost\r\n\r\n".utf8))
            open.append(connection)
        }
        for connection in open {
            let answer = (try? connection.receiveAll()) ?? []
            if answer.count <= 4096 || !answer.starts(with: Array("HTTP/1.1 200".utf8)) { lost += 1 }
        }
        add("request to each at once, last answer", .seconds, Double(clockNow() - start) / 1e9)
        add("of these not answered (must be 0)", .count, Double(lost), mustBe: lost == 0)
    }

    /// The first workers get more requests: the client of the load chooses among ports of which these are listed more often.
    private var popularPorts: [String] {
        ports.enumerated().flatMap { number, port in
            [String](repeating: "\(port)", count: max(1, 60 / (number + 2)))
        }
    }

    private func addLoad() throws {
        let log = root + "/load"
        let client = try Server(bench.folder + "/load", ["\(rate)", "\(seconds)", "4096"] + popularPorts, log: log)
        var restarts = Samples()
        let pause = UInt64(pause) * 1_000_000_000
        var next = clockNow() + pause
        // Not in the last seconds: the figure is of requests that come while no daemon runs.
        let last = clockNow() + UInt64(seconds) * 1_000_000_000
        while !client.hasEnded {
            rest(microseconds: 5000)
            guard clockNow() >= next, next < last else { continue }
            let begin = clockNow()
            _ = try restartDaemon()
            restarts.add(from: begin, to: clockNow())
            next += pause
        }
        client.stop()
        let text = String(decoding: try readFile(at: log, limit: 1 << 16), as: UTF8.self)
        let values = text.split(separator: "\n").lazy.map { $0.split(separator: " ").compactMap { Double($0) } }
            .first { $0.count == 5 }
        guard let values else { throw BenchFailure("the client of the load failed: \(text)") }
        add("requests", .count, values[0])
        add("errors (must be 0)", .count, values[1], mustBe: values[1] == 0 && values[0] > 0)
        for (word, value) in zip(["p50", "p99", "max"], values[2...]) { add("answer, \(word)", .seconds, value / 1e9) }
        add("kills of greenroomd", .count, Double(restarts.count))
        if restarts.count > 0 {
            add("  until it is ready again, p50", .seconds, restarts.percentile(0.5))
            add("  until it is ready again, max", .seconds, restarts.percentile(1))
        }
    }
}
