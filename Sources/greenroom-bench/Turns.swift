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
        bench.report.section(
            "Longest time without an answer, \(count) apps", "a client calls Version without a pause; peer: none")
        let turns = try Turns(bench, count)
        try turns.start()
        try turns.calls("List", times: 3)
        try turns.calls("Reload", times: 3)
        try turns.sample(seconds: 11)
        try turns.recover()
        try turns.stop()
    }
}

private final class Turns {
    private let bench: Bench
    private let count: Int
    private let board: Board
    private let root: String
    private let runtime: String
    private let ready: DatagramSocket
    private var server: Server?
    private var pinging: BusConnection?
    private var lastSignal: UInt64 = 0
    /// What the daemon may take until a step is finished, in nanoseconds.
    private static let timeout: UInt64 = 300_000_000_000

    init(_ bench: Bench, _ count: Int) throws {
        self.bench = bench
        self.count = count
        board = try Board(slots: count)
        root = "\(bench.folder)/turns-\(count)"
        runtime = "\(bench.runtime)/turns-\(count)"
        let config = root + "/config"
        try createDirectories(at: config + "/apps")
        for number in 0..<count {
            let text = Greenroom.manifest(
                [bench.app, "wait", board.path, "\(number)"], app: "LaunchAtStart=foreground",
                lifecycle: "LaunchDeadlineSec=5min")
            try replaceFile(at: "\(config)/apps/app\(number).app", with: Array(text.utf8))
        }
        // Apps in the foreground are awake, so their memory is sampled. The largest limit is 1,000.
        let configuration = "[Manager]\nForegroundLimit=\(min(count, 1000))\n"
        try replaceFile(at: config + "/greenroom.conf", with: Array(configuration.utf8))
        ready = try DatagramSocket(at: runtime + ".ready")
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
    private func ping() throws -> Double {
        let start = clockNow()
        guard let pinging else { throw BenchFailure("not connected") }
        _ = try pinging.call(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: "Version",
            timeout: .seconds(300))
        return Double(clockNow() - start) / 1e9
    }

    /// Pings until a condition holds, and returns the longest time until an answer.
    private func longest(_ what: String, until isOver: () throws -> Bool) throws -> Double {
        let end = clockNow() + Self.timeout
        var longest = 0.0
        repeat {
            longest = max(longest, try ping())
            while try pinging?.nextSignal(until: EventLoop.now()) != nil { lastSignal = clockNow() }
            guard clockNow() < end else { throw BenchFailure("timeout: \(what)") }
        } while try !isOver()
        return longest
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
            while next < count, board.time(next) != 0 { next += 1 }
            return next == count
        }
        add("start until the first answer", first)
        add("LaunchAtStart= of all apps", during)
        add("  start until the last app runs", Double(clockNow() - begin) / 1e9)
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
        var most = 0.0
        var begin = clockNow()
        for _ in 0..<times {
            begin = clockNow()
            let pending = try other.callAsync(
                path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: member,
                timeout: .seconds(300))
            try other.wait(for: pending, until: EventLoop.now())
            most = max(
                most, try longest(member) { try other.wait(for: pending, until: EventLoop.now() + .milliseconds(2)) })
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
        var longest = 0.0
        var last = clockNow()
        do {
            while true {
                last = clockNow()
                longest = max(longest, try ping())
            }
        } catch is BusError {
            // The connection has ended: the loop is over. A turn that lasts until then counts.
            longest = max(longest, Double(clockNow() - last) / 1e9)
        }
        pinging = nil
        server?.stop()
        add("stop", longest)
        add("  stop until the end of the daemon", Double(clockNow() - begin) / 1e9)
    }
}
