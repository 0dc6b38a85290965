import Control
import Glibc
import Linux
import Posix
import Systemd

/// Measures hundreds of idle workers that are instances of one template and whose sockets greenroomd holds, beside the same servers
/// left running, under supervisord, and started by systemd-socket-activate.
func measureHosting(_ bench: Bench) throws {
    raiseDescriptorLimit()
    for program in HostedProgram.all(bench) {
        bench.report.section(
            "\(program.count) workers: \(program.name)",
            "instances of one template with ListenStream=; the peers start as many of the same servers in other ways")
        guard program.path.allSatisfy({ access($0, X_OK) == 0 }) else {
            let peer = "not installed: \(program.path.joined(separator: ", "))"
            bench.report.add(Figure(name: "launch all", unit: .seconds, ours: nil, peer: peer, remark: "–"))
            continue
        }
        let hosting = try Hosting(bench, program)
        defer { hosting.stop() }
        try hosting.measure()
    }
}

/// A server that can take a listening socket, how many of it run, and the requests to them.
struct HostedProgram {
    var name: String
    var count: Int
    /// How many of them are measured one after the other.
    var samples: Int
    /// The command with a socket, before the number of the worker.
    var command: [String]
    /// The command that opens its own port, before the number of the worker.
    var ownCommand: [String]
    /// Whether the number of a server with its own port is the port. Otherwise the server records its port in the board.
    var choosesPort: Bool
    /// The programs that must be installed.
    var path: [String]
    /// A request, and the least length of its answer; 0: the request comes back.
    var request: [UInt8]
    var answerLength: Int
    var rate: Int
    var seconds: Int

    static func all(_ bench: Bench) -> [HostedProgram] {
        let few = bench.hasFewApps
        let pages = bench.folder + "/pages"
        let python = "/usr/bin/python3"
        return [
            HostedProgram(
                name: "python3 http.server", count: few ? 12 : 300, samples: few ? 6 : 60,
                command: [python, bench.folder + "/pages.py", pages],
                ownCommand: [python, bench.folder + "/pages.py", pages],
                choosesPort: true, path: [python, bench.supervisord, socketActivator],
                request: Array("GET /page.txt HTTP/1.0\r\nHost: localhost\r\n\r\n".utf8), answerLength: 4096,
                rate: few ? 50 : 150, seconds: few ? 4 : 20),
            HostedProgram(
                name: "C server", count: few ? 60 : 1000, samples: few ? 30 : 200,
                command: [bench.folder + "/server", "plain"], ownCommand: [bench.folder + "/server", "plain"],
                choosesPort: false, path: [bench.supervisord, socketActivator],
                request: [UInt8](repeating: 0x78, count: 64), answerLength: 0,
                rate: few ? 300 : 2000, seconds: few ? 5 : 60 * bench.minutes),
        ]
    }
}

/// The workers of greenroomd and the same servers of the peers.
final class Hosting {
    let bench: Bench
    let program: HostedProgram
    /// Slots are ports, or numbers of servers with a port of their own.
    private let board: Board
    /// The ports of the workers, of those that are ended when they are suspended, and of the servers of the peers.
    private let ports: Range<Int>
    private let unloadedPorts: Range<Int>
    private let peerPorts: Range<Int>
    private let greenroom: Greenroom
    /// Follows the signals alone: workers are suspended while requests to others wait.
    private let suspensions: Suspensions
    private var supervisor: Supervisor?
    private var numbers = SeededNumbers(seed: 5)

    init(_ bench: Bench, _ program: HostedProgram) throws {
        self.bench = bench
        self.program = program
        try createDirectories(at: bench.folder + "/pages")
        try replaceFile(at: bench.folder + "/pages/page.txt", with: [UInt8](repeating: 0x70, count: 4096))
        let first = try consecutiveFreePorts(3 * program.count)
        ports = first..<first + program.count
        unloadedPorts = ports.upperBound..<ports.upperBound + program.samples
        peerPorts = unloadedPorts.upperBound..<unloadedPorts.upperBound + program.count
        let board = try Board(slots: peerPorts.upperBound)
        self.board = board
        let name = "hosting\(program.count)"
        let apps = "\(bench.folder)/\(name)/config/apps"
        try createDirectories(at: apps)
        // What `greenroomctl enable` makes of a template.
        for (template, ports) in [("worker", ports), ("cold", unloadedPorts)] {
            for port in ports where symlink("\(template)@.app", "\(apps)/\(template)@\(port).app") != 0 {
                throw BenchFailure("symlink in \(apps): error \(errno)")
            }
        }
        let command = Self.command(program, program.command, board, "%i")
        greenroom = try Greenroom(
            bench, name,
            apps: [
                ("worker@", Self.template(command, "infinity")), ("cold@", Self.template(command, "1s")),
            ])
        suspensions = Suspensions(greenroom)
    }

    private static func command(_ program: HostedProgram, _ words: [String], _ board: Board, _ number: String)
        -> [String]
    {
        words + (program.choosesPort ? [] : [board.path]) + [number]
    }

    private static func template(_ command: [String], _ unloadAfter: String) -> String {
        """
        [App]
        ExecStart=\(command.joined(separator: " "))
        Type=listening
        Role=worker
        [Lifecycle]
        IdleSec=1s
        UnloadAfterSec=\(unloadAfter)
        LaunchDeadlineSec=5min
        [Wake]
        ListenStream=127.0.0.1:%i
        ConnectionWaitSec=5min

        """
    }

    func stop() {
        greenroom.stop()
        supervisor?.stop()
    }

    func measure() throws {
        let unloaded = try greenroom.pss()
        let launch = try requestAll(Array(ports), areOurs: true)
        // No signals are read while supervisord starts.
        try suspensions.awaitAll()
        let running = try startSupervisor()
        try suspensions.awaitAll()
        try addIdle(running)
        try addFirstAnswers(running)
        try addLoad(running)
        supervisor?.stop()
        supervisor = nil
        let (ours, theirs) = try measureUnloaded()
        greenroom.stop()
        try addActivation(launch, unloaded, ours, theirs)
    }

    /// The daemon ends the connection of a client that does not read its signals.
    private func readSignals() throws { try restReading(.milliseconds(5)) }

    private func restReading(_ time: Duration) throws { try suspensions.read(until: EventLoop.now() + time) }

    // MARK: Requests

    /// Sends a request to each port at once.
    ///
    /// - Parameter areOurs: whether greenroomd has the ports. It ends the connection of a client that does not read its signals.
    /// - Returns: the time until the last answer in seconds, and how many have no answer.
    private func requestAll(_ ports: [Int], areOurs: Bool) throws -> (seconds: Double, lost: Int) {
        let start = clockNow()
        var lost = 0
        var open: [ClientConnection] = []
        for (index, port) in ports.enumerated() {
            if areOurs, index % 16 == 0 { try suspensions.readArrived(pause: .microseconds(20)) }
            do {
                let connection = try ClientConnection(port: UInt16(port), seconds: 300)
                try connection.send(program.request)
                open.append(connection)
            } catch { lost += 1 }
        }
        for (index, connection) in open.enumerated() {
            if areOurs, index % 16 == 0 { try suspensions.readArrived(pause: .microseconds(20)) }
            while try !connection.isReadable(milliseconds: 5) {
                guard clockNow() - start < 300_000_000_000 else { break }
                if areOurs { try readSignals() }
            }
            if !isAnswered(connection) { lost += 1 }
        }
        return (Double(clockNow() - start) / 1e9, lost)
    }

    /// Whether the whole answer arrives.
    private func isAnswered(_ connection: ClientConnection) -> Bool {
        guard program.answerLength > 0 else { return (try? connection.receive()) != nil }
        guard let bytes = try? connection.receiveAll() else { return false }
        return bytes.count > program.answerLength && bytes.starts(with: Array("HTTP/1.".utf8))
    }

    /// Measures the answer to one request after 2 ms of idle time, so that the processors sleep.
    private func measureAnswer(_ port: Int, _ samples: inout Samples) throws {
        try restReading(.milliseconds(2))
        let start = clockNow()
        let connection = try ClientConnection(port: UInt16(port))
        try connection.send(program.request)
        guard isAnswered(connection) else { throw BenchFailure("port \(port) did not answer") }
        samples.add(from: start, to: clockNow())
    }

    private func addFirstAnswers(_ running: Running) throws {
        var (ours, theirs) = (Samples(), Samples())
        for index in (0..<program.count).shuffled(using: &numbers).prefix(program.samples) {
            try measureAnswer(ports.lowerBound + index, &ours)
            try measureAnswer(running.ports[index], &theirs)
        }
        bench.report.addDifferences("first answer, suspended", ours, "running", theirs)
    }

    private func addLoad(_ running: Running) throws {
        try suspensions.awaitAll()
        let ours = try load(Array(ports))
        let theirs = try load(running.ports)
        let report = bench.report
        report.add(
            Figure(
                name: "\(program.rate)/s for \(program.seconds) s: requests", unit: .count, ours: ours.requests,
                peer: "running", theirs: theirs.requests, remark: "–"))
        report.add(
            Figure(
                name: "errors (must be 0)", unit: .count, ours: ours.errors, peer: "running", theirs: theirs.errors,
                isRequired: ours.errors == 0 && ours.requests > 0))
        for (word, our, their) in [
            ("p50", ours.median, theirs.median), ("p99", ours.late, theirs.late), ("max", ours.longest, theirs.longest),
        ] {
            report.add(
                Figure(name: "answer under load, \(word)", unit: .seconds, ours: our, peer: "running", theirs: their))
        }
    }

    /// What `load` prints, with times in seconds.
    private struct Load {
        var requests, errors, median, late, longest: Double
    }

    private func load(_ ports: [Int]) throws -> Load {
        let log = "\(bench.folder)/load-\(ports.count)-\(ports[0])"
        let client = try Server(
            bench.folder + "/load",
            ["\(program.rate)", "\(program.seconds)", "\(program.answerLength)"] + ports.map(String.init), log: log)
        while !client.hasEnded {
            try readSignals()
        }
        client.stop()
        let text = String(decoding: try readFile(at: log, limit: 1 << 16), as: UTF8.self)
        let lines = text.split(separator: "\n")
        let values = lines.lazy.map { $0.split(separator: " ").compactMap { Double($0) } }.first { $0.count == 5 }
        guard let values else { throw BenchFailure("the client of the load failed: \(text)") }
        return Load(
            requests: values[0], errors: values[1], median: values[2] / 1e9, late: values[3] / 1e9,
            longest: values[4] / 1e9)
    }

    // MARK: Idle workers

    private func addIdle(_ running: Running) throws {
        let pids = try workerProcesses()
        let seconds = bench.isQuick ? 3 : 10
        let supervisorPid = supervisor?.pid ?? 0
        func times() -> (Double, Double, Double) {
            let theirs = running.pids.reduce(0) { $0 + processorTime(of: $1) }
            return (
                ([greenroom.pid] + pids).reduce(0) { $0 + processorTime(of: $1) }, theirs,
                processorTime(of: supervisorPid)
            )
        }
        let before = times()
        try restReading(.seconds(seconds))
        let after = times()
        let count = Double(program.count)
        let ours = try memory(of: pids) + greenroom.pss()
        let theirs = try memory(of: running.pids)
        let supervised = theirs + (try supervisor?.pss() ?? 0)
        let report = bench.report
        let name = "memory (PSS) per worker, suspended"
        report.add(Figure(name: name, unit: .bytes, ours: ours / count, peer: "running", theirs: theirs / count))
        report.add(
            Figure(name: name, unit: .bytes, ours: ours / count, peer: "supervisord", theirs: supervised / count))
        let processor = "processor time of all in \(seconds) s, suspended"
        report.add(
            Figure(
                name: processor, unit: .seconds, ours: after.0 - before.0, peer: "running", theirs: after.1 - before.1))
        report.add(
            Figure(
                name: processor, unit: .seconds, ours: after.0 - before.0, peer: "supervisord",
                theirs: after.1 - before.1 + after.2 - before.2))
    }

    private func memory(of pids: [Int32]) throws -> Double {
        let proc = ProcFS()
        return try pids.reduce(0.0) { $0 + Double(try proc.memoryRollup(of: $1)?.pss ?? 0) }
    }

    private func workerProcesses() throws -> [Int32] {
        try greenroom.statuses().filter { $0.id.hasPrefix("worker@") }.map {
            guard let pid = $0.pid else { throw BenchFailure("\($0.id) does not run") }
            return pid
        }
    }

    // MARK: Peers

    /// The same servers left running, as supervisord started them.
    private struct Running {
        var ports: [Int]
        var pids: [Int32]
    }

    private func startSupervisor() throws -> Running {
        let command = Self.command(program, program.ownCommand, board, "%(process_num)d")
        let group = Supervisor.program("own", command, count: program.count, first: peerPorts.lowerBound, starts: true)
        let supervisor = try Supervisor(bench, "supervisor-hosting\(program.count)", programs: group)
        self.supervisor = supervisor
        try eventually("\(program.count) servers of supervisord listen", everyMicroseconds: 100_000, seconds: 180) {
            try readSignals()
            return program.choosesPort
                ? try areListening(peerPorts) : peerPorts.allSatisfy { board.port($0) != 0 }
        }
        let ports = program.choosesPort ? Array(peerPorts) : peerPorts.map { Int(board.port($0)) }
        return Running(ports: ports, pids: try supervisor.children())
    }

    /// Measures the first answers of workers that were ended to give their memory back, and of servers that
    /// systemd-socket-activate starts.
    private func measureUnloaded() throws -> (ours: Samples, theirs: Samples) {
        let launched = try requestAll(Array(unloadedPorts), areOurs: true)
        guard launched.lost == 0 else { throw BenchFailure("\(launched.lost) workers did not answer") }
        try eventually("all are ended after UnloadAfterSec=", everyMicroseconds: 20_000, seconds: 120) {
            try readSignals()
            return try greenroom.statuses().allSatisfy { !$0.id.hasPrefix("cold@") || $0.pid == nil }
        }
        var (ours, theirs) = (Samples(), Samples())
        for (index, port) in unloadedPorts.enumerated() {
            try measureAnswer(port, &ours)
            try readSignals()
            let activator = try activate(peerPorts.lowerBound + index)
            defer { activator.stop() }
            try eventually("systemd-socket-activate listens", everyMicroseconds: 1000) {
                try isListening(UInt16(peerPorts.lowerBound + index))
            }
            try measureAnswer(peerPorts.lowerBound + index, &theirs)
        }
        return (ours, theirs)
    }

    private func activate(_ port: Int) throws -> Server {
        // The variable identifies the process when the script cleans up.
        let activation = ["-l", "127.0.0.1:\(port)", "-E", "GREENROOM_BENCH=\(bench.folder)/"]
        let command = Self.command(program, program.command, board, "\(port)")
        return try Server(socketActivator, activation + command, log: "\(bench.folder)/activate.log")
    }

    /// Compares with as many processes of systemd-socket-activate: their memory before a connection, and the start of all servers.
    private func addActivation(
        _ launch: (seconds: Double, lost: Int), _ unloaded: Double, _ ours: Samples, _ theirs: Samples
    ) throws {
        var activators: [Server] = []
        defer { for activator in activators { activator.stop() } }
        for port in peerPorts { activators.append(try activate(port)) }
        try eventually("\(program.count) sockets listen", everyMicroseconds: 100_000, seconds: 60) {
            try areListening(peerPorts)
        }
        let waiting = try activators.reduce(0.0) { $0 + (try $1.pss()) }
        let activated = try requestAll(Array(peerPorts), areOurs: false)
        let report = bench.report
        let peer = "systemd-socket-activate"
        let count = Double(program.count)
        report.add(
            Figure(
                name: "memory (PSS) per worker, not running", unit: .bytes, ours: unloaded / count, peer: peer,
                theirs: waiting / count))
        report.add("first answer, unloaded", ours, peer, theirs)
        report.add(
            Figure(
                name: "launch all: a connection each at once", unit: .seconds, ours: launch.seconds, peer: peer,
                theirs: activated.seconds))
        report.add(
            Figure(
                name: "of these not answered (must be 0)", unit: .count, ours: Double(launch.lost), peer: peer,
                theirs: Double(activated.lost), isRequired: launch.lost == 0))
    }
}
