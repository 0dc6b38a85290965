import Control
import Glibc
import Linux
import Posix
import Systemd

/// Measures how long the event loop is busy with one thing: a client calls `Version` without a pause, and the longest time
/// until an answer is the longest time in which no other source was served either. The scheduler adds to it where all
/// processors are busy.
func measureTurns(_ bench: Bench) throws {
    for count in bench.turnSizes {
        let turns = try Turns(bench, count)
        let running = turns.running == count ? "" : ", \(turns.running) of them with a process"
        bench.report.section(
            "Longest time without an answer, \(count) apps\(running)",
            "a client calls Version without a pause; on a processor: the daemon, until an answer; peer: none")
        try turns.start()
        try turns.calls("List", times: 3)
        try turns.calls("Reload", times: 3)
        try turns.sample(seconds: 11)
        try turns.recover()
        try turns.stop()
    }
}

/// Measures the same with apps that do not run and whose sockets the daemon holds, and the launch of some of them by a connection.
func measureHeldSockets(_ bench: Bench) throws {
    for count in bench.turnSizes {
        let turns = try Turns(bench, count, isHolding: true)
        let held = turns.held == count ? "" : ", \(turns.held) of them"
        bench.report.section(
            "\(count) apps with held sockets\(held)",
            "the longest time without an answer, as for turns; the apps do not run; 100 of them are launched by a connection, one after "
                + "the other")
        try turns.start()
        try turns.calls("List", times: 3)
        try turns.calls("Reload", times: 3)
        try turns.launchByConnection(min(100, turns.held))
        try turns.recover()
        try turns.stop()
    }
}

private final class Turns {
    /// The longest time until an answer in seconds.
    private struct Longest {
        var time = 0.0
        /// How long the daemon was on a processor between two answers. The scheduler does not add to it.
        var processorTime = 0.0

        mutating func include(_ other: Longest) {
            time = max(time, other.time)
            processorTime = max(processorTime, other.processorTime)
        }
    }

    private let bench: Bench
    private let count: Int
    /// How many apps have a process: the daemon has up to six descriptors for each.
    let running: Int
    /// How many apps have a socket that the daemon holds. It uses three eighths of its descriptors for them.
    let held: Int
    private let board: Board
    private let root: String
    private let runtime: String
    private let ready: DatagramSocket
    private var server: Server?
    private var pinging: BusConnection?
    private var lastSignal: UInt64 = 0
    /// What the daemon may take until a step is finished, in nanoseconds.
    private static let timeout: UInt64 = 300_000_000_000

    init(_ bench: Bench, _ count: Int, isHolding: Bool = false) throws {
        self.bench = bench
        self.count = count
        running = isHolding ? 0 : min(count, (Self.maximumDescriptors() - 1000) / 6)
        held = isHolding ? min(count, Self.maximumDescriptors() / 8 * 3) : 0
        board = try Board(slots: count)
        let name = "turns-\(count)\(isHolding ? "-held" : "")"
        root = "\(bench.folder)/\(name)"
        runtime = "\(bench.runtime)/\(name)"
        let config = root + "/config"
        try createDirectories(at: config + "/apps")
        for number in 0..<count {
            let text = Greenroom.manifest(
                [bench.app, "wait", board.path, "\(number)"], app: number < running ? "LaunchAtStart=foreground" : "",
                lifecycle: "LaunchDeadlineSec=5min\n"
                    + (number < held ? "[Wake]\nListenStream=\(Self.socket(number, runtime))" : ""))
            try replaceFile(at: "\(config)/apps/app\(number).app", with: Array(text.utf8))
        }
        // Apps in the foreground are awake, so their memory is sampled. The largest limit is 1,000.
        let configuration = "[Manager]\nForegroundLimit=\(min(count, 1000))\n"
        try replaceFile(at: config + "/greenroom.conf", with: Array(configuration.utf8))
        ready = try DatagramSocket(at: runtime + ".ready")
    }

    private static func socket(_ number: Int, _ runtime: String) -> String { "\(runtime)-sockets/\(number)" }

    private static func maximumDescriptors() -> Int {
        var limit = rlimit()
        return getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
            ? Int(clamping: limit.rlim_max) : 1024
    }

    // MARK: The daemon

    /// Starts the daemon.
    /// - Returns: the time from its start to its first answer in seconds.
    private func startServer() throws -> Double {
        let start = clockNow()
        let server = try Server(
            bench.programs + "/greenroomd",
            ["--config", root + "/config", "--runtime", runtime, "--state", root + "/state"],
            environment: ["NOTIFY_SOCKET=\(runtime).ready"], log: root + "/log")
        self.server = server
        while true {
            if server.hasEnded { throw BenchFailure("greenroomd exited; see \(root)/log") }
            guard clockNow() - start < Self.timeout else { throw BenchFailure("greenroomd does not listen") }
            if let bus = try? BusConnection(path: runtime + "/bus") {
                pinging = bus
                break
            }
            rest(microseconds: 1000)
        }
        try ping()
        return Double(clockNow() - start) / 1e9
    }

    private func isReady() throws -> Bool {
        while let datagram = try ready.receive() {
            if String(decoding: datagram.bytes, as: UTF8.self).contains("READY=1") { return true }
        }
        return false
    }

    @discardableResult
    private func ping() throws -> Longest {
        let start = clockNow()
        let processorStart = processorTime
        guard let pinging else { throw BenchFailure("not connected") }
        _ = try pinging.call(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: "Version",
            timeout: .seconds(300))
        return Longest(time: Double(clockNow() - start) / 1e9, processorTime: processorTime - processorStart)
    }

    /// The processor time of the daemon in seconds.
    private var processorTime: Double {
        var clock = clockid_t()
        var time = timespec()
        guard let pid = server?.process.pid, clock_getcpuclockid(pid, &clock) == 0, clock_gettime(clock, &time) == 0
        else { return 0 }
        return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
    }

    /// Calls, and connects again if the daemon has ended the connection: on a busy machine this program may read the signals of
    /// many apps too slowly.
    private func pingAgain() throws -> Longest {
        do {
            return try ping()
        } catch let error as BusError where error.name == BusError.disconnected("").name {
            if server?.hasEnded ?? true { throw error }
            pinging = try BusConnection(path: runtime + "/bus")
            return Longest()
        }
    }

    /// Pings until a condition holds, and returns the longest time until an answer.
    private func longest(_ what: String, until isOver: () throws -> Bool) throws -> Longest {
        let end = clockNow() + Self.timeout
        var longest = Longest()
        repeat {
            longest.include(try pingAgain())
            while try pinging?.nextSignal(until: EventLoop.now()) != nil { lastSignal = clockNow() }
            guard clockNow() < end else { throw BenchFailure("timeout: \(what)") }
        } while try !isOver()
        return longest
    }

    private func add(_ name: String, _ longest: Longest) {
        add(name, longest.time)
        add("  on a processor", longest.processorTime)
    }

    private func add(_ name: String, _ seconds: Double) {
        bench.report.add(Figure(name: name, unit: .seconds, ours: seconds, peer: "", theirs: nil))
    }

    // MARK: Steps

    func start() throws {
        let begin = clockNow()
        let first = try startServer()
        bench.record(groupsOf: try containment())
        var next = 0
        let during = try longest("all apps are launched") {
            while next < running, board.time(next) != 0 { next += 1 }
            return try held > 0 ? isReady() : next == running
        }
        add("start until the first answer", first)
        add(held > 0 ? "all sockets are bound" : "LaunchAtStart= of all apps", during)
        add("  start until \(held > 0 ? "READY=1" : "the last app runs")", Double(clockNow() - begin) / 1e9)
    }

    /// Measures launches from the connection of a client to the first instruction of the app.
    func launchByConnection(_ times: Int) throws {
        try settle()
        var samples = Samples()
        var clients: [SharedDescriptor] = []
        for index in 0..<times {
            let number = index * (held / times)
            let start = clockNow()
            clients.append(SharedDescriptor(try UnixSocket.connect(to: Self.socket(number, runtime))))
            try eventually("app\(number) is launched") { board.time(number) != 0 }
            samples.add(from: start, to: board.time(number))
        }
        bench.report.add("connection → first instruction", samples, "", nil)
    }

    /// Waits until the daemon has sent no signal for 1 s, so that the next step is measured alone.
    private func settle() throws {
        lastSignal = clockNow()
        _ = try longest("the daemon is idle") { clockNow() - lastSignal > 1_000_000_000 }
    }

    private func containment() throws -> String {
        guard let pinging else { throw BenchFailure("not connected") }
        let answer = try pinging.call(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: "Pressure",
            timeout: .seconds(300))
        return try MemoryStatus(variant: answer.first ?? .dictionary([])).containment
    }

    /// Calls a method from another connection and pings meanwhile.
    func calls(_ member: String, times: Int) throws {
        try settle()
        let other = try BusConnection(path: runtime + "/bus")
        var most = Longest()
        var begin = clockNow()
        for _ in 0..<times {
            begin = clockNow()
            let pending = try other.callAsync(
                path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: member,
                timeout: .seconds(300))
            try other.wait(for: pending, until: EventLoop.now())
            most.include(
                try longest(member) { try other.wait(for: pending, until: EventLoop.now() + .milliseconds(2)) })
        }
        add(member, most)
        add("  \(member) until its answer", Double(clockNow() - begin) / 1e9)
    }

    /// Pings while the memory of all apps is sampled, at least every 10 s.
    func sample(seconds: UInt64) throws {
        let end = clockNow() + seconds * 1_000_000_000
        add("sampling of memory", try longest("sampling") { clockNow() >= end })
    }

    func recover() throws {
        try settle()
        _ = try isReady()
        _ = try server?.process.signal(SIGKILL)
        pinging = nil
        server?.stop()
        let begin = clockNow()
        let first = try startServer()
        let during = try longest("recovery") { try isReady() }
        add("recovery until the first answer", first)
        add("recovery after the first answer", during)
        add("  recovery until READY=1", Double(clockNow() - begin) / 1e9)
    }

    func stop() throws {
        try settle()
        let begin = clockNow()
        _ = try server?.process.signal(SIGTERM)
        var longest = Longest()
        var last = clockNow()
        do {
            while true {
                last = clockNow()
                longest.include(try pingAgain())
            }
        } catch is BusError {
            // The connection has ended: the loop is over. A turn that lasts until then counts.
            longest.time = max(longest.time, Double(clockNow() - last) / 1e9)
        }
        pinging = nil
        server?.stop()
        add("stop", longest)
        add("  stop until the end of the daemon", Double(clockNow() - begin) / 1e9)
    }
}
