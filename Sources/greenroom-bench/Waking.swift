import Glibc
import Linux
import Posix

/// Measures how fast suspended servers answer, beside the same servers left running and a bare loop that only freezes, watches
/// and thaws.
func measureWaking(_ bench: Bench) throws {
    try measureShapes(bench)
    try measureProxy(bench)
    try measureMany(bench)
    try measureWeb(bench)
}

// MARK: Shapes

/// How many servers each owner has, and how many answers of each way are measured.
private struct Sizes {
    var servers: Int
    var answers: Int
}

/// The first part of `measureWaking`, which can be measured by itself.
func measureShapes(_ bench: Bench) throws {
    raiseDescriptorLimit()
    // The more processes and threads a server has, the fewer of them run beside each other.
    let shapes: [(ServerShape, Sizes)] = [
        (ServerShape(name: "plain"), Sizes(servers: 50, answers: 300)),
        (ServerShape(name: "500 threads", kind: "threads", number: 500), Sizes(servers: 6, answers: 120)),
        (ServerShape(name: "200 sockets", quiet: 199), Sizes(servers: 20, answers: 400)),
        (ServerShape(name: "8 processes", kind: "processes", number: 8), Sizes(servers: 20, answers: 400)),
    ]
    bench.report.section(
        "Suspended → first answer",
        "an echo of 64 bytes over TCP; suspended by greenroomd, frozen by a bare loop, and running; in turns")
    for (shape, sizes) in shapes {
        let servers = bench.hasFewApps ? max(2, sizes.servers / 5) : sizes.servers
        let answers = bench.hasFewApps ? sizes.answers / 5 : sizes.answers
        try measure(bench, shape, Sizes(servers: servers, answers: answers))
    }
}

private func measure(_ bench: Bench, _ shape: ServerShape, _ sizes: Sizes) throws {
    var named = shape
    // The name is part of the path of a socket.
    named.name = String(shape.name.filter { $0 != " " })
    let servers = try WakingServers(bench, named, count: sizes.servers)
    defer { servers.stop() }
    let ways: [(name: String, way: WakingServers.Way)] = [("established", .established), ("new", .new)]
    var samples = ways.map { _ in WakingServers.Owner.allCases.map { _ in Samples() } }
    for round in 0..<(sizes.answers + sizes.servers - 1) / sizes.servers {
        for (number, way) in ways.enumerated() {
            for index in 0..<sizes.servers {
                // None of the owners is always the first, also not in a round: after the suspensions the machine has slept,
                // and the first answer takes longer.
                for turn in servers.owners.indices {
                    let owner = servers.owners[(turn + index + round) % servers.owners.count]
                    try servers.measure(owner, index, way.way, &samples[number][owner.rawValue])
                }
            }
            try servers.suspendAll()
        }
    }
    for (number, way) in ways.enumerated() {
        let results = samples[number]
        let name = "\(shape.name), \(way.name)"
        let ours = results[WakingServers.Owner.greenroom.rawValue]
        let bare = servers.owners.contains(.bare) ? results[WakingServers.Owner.bare.rawValue] : nil
        bench.report.add(name, ours, "freeze, watch, thaw", bare)
        bench.report.addDifferences(name, ours, "running", results[WakingServers.Owner.running.rawValue])
    }
}

// MARK: A proxy in the path

private let socketProxy = "/lib/systemd/systemd-socket-proxyd"

/// Compares the first answer with that of a server that systemd-socket-proxyd starts and, when it is idle, ends.
private func measureProxy(_ bench: Bench) throws {
    let count = bench.hasFewApps ? 5 : 30
    bench.report.section(
        "A proxy in the path",
        "an echo through a new connection to an idle server, then a second one; "
            + "systemd-socket-proxyd --exit-idle-time=1s and the server are started by the connection")
    for program in [socketProxy, socketActivator] where access(program, X_OK) != 0 {
        bench.report.add(
            Figure(name: "first answer", unit: .seconds, ours: nil, peer: "\(program) is not installed", remark: "–"))
        return
    }
    let servers = try WakingServers(bench, ServerShape(name: "proxy"), count: count)
    defer { servers.stop() }
    let board = try Board(slots: 1)
    let port = try freePorts(1)[0]
    var (first, second, proxiedFirst, proxiedSecond) = (Samples(), Samples(), Samples(), Samples())
    for _ in 0..<2 {
        for index in 0..<count {
            try servers.measure(.greenroom, index, .new, &first)
            try servers.measure(.greenroom, index, .established, &second)
            try measureProxied(bench, board, port, &proxiedFirst, &proxiedSecond)
        }
        try servers.suspendAll()
    }
    bench.report.add("first answer", first, "systemd-socket-proxyd", proxiedFirst)
    bench.report.add("answer while awake", second, "systemd-socket-proxyd", proxiedSecond)
}

private func measureProxied(
    _ bench: Bench, _ board: Board, _ port: UInt16, _ first: inout Samples, _ second: inout Samples
) throws {
    // The variable identifies the process when the script cleans up.
    let server = try Server(
        socketActivator,
        [
            "-l", "127.0.0.1:\(port)", "-E", "GREENROOM_BENCH=\(bench.folder)/", "\(bench.folder)/server", "behind",
            board.path, "0", socketProxy, "--exit-idle-time=1s",
        ], log: "\(bench.folder)/proxy.log")
    defer { server.stop() }
    try eventually("systemd-socket-activate listens", everyMicroseconds: 1000) { try isListening(port) }
    rest(microseconds: 2000)
    var start = clockNow()
    let connection = try ClientConnection(port: port)
    try connection.exchange()
    first.add(from: start, to: clockNow())
    rest(microseconds: 2000)
    start = clockNow()
    try connection.exchange()
    second.add(from: start, to: clockNow())
    withExtendedLifetime(connection) {}
}

// MARK: Many servers

func measureMany(_ bench: Bench) throws {
    let count = bench.hasFewApps ? 100 : 1000
    bench.report.section(
        "\(count) suspended servers",
        "an echo through a new connection; the same servers frozen by a bare loop, and running")
    let servers = try WakingServers(bench, ServerShape(name: "many"), count: count)
    defer { servers.stop() }
    bench.report.add(
        Figure(name: "PSS of the daemon", unit: .bytes, ours: try servers.greenroom.pss(), peer: "", theirs: nil))
    try countWakeups(bench, servers)
    try answerAny(bench, servers)
    try answerAll(bench, servers)
}

private func countWakeups(_ bench: Bench, _ servers: WakingServers) throws {
    let seconds = bench.isQuick ? 3 : 10
    try servers.greenroom.awaitEndOfHelpers()
    let before = try servers.greenroom.switches()
    rest(microseconds: seconds * 1_000_000)
    let wakeups = try servers.greenroom.switches().wakeups(since: before)
    bench.report.add(
        Figure(
            name: "wakeups in \(seconds) s (must be 0)", unit: .wakeupsPerSecond,
            ours: Double(wakeups) / Double(seconds), peer: "", theirs: nil, isRequired: wakeups == 0))
}

/// Wakes some of the servers one after the other, none of them twice.
private func answerAny(_ bench: Bench, _ servers: WakingServers) throws {
    var numbers = SeededNumbers(seed: 1)
    let chosen = (0..<servers.count).shuffled(using: &numbers).prefix(bench.hasFewApps ? 50 : 500)
    var samples = WakingServers.Owner.allCases.map { _ in Samples() }
    for (number, index) in chosen.enumerated() {
        for turn in servers.owners.indices {
            let owner = servers.owners[(turn + number) % servers.owners.count]
            try servers.measure(owner, index, .new, &samples[owner.rawValue])
        }
    }
    try servers.suspendAll()
    let ours = samples[WakingServers.Owner.greenroom.rawValue]
    let bare = servers.owners.contains(.bare) ? samples[WakingServers.Owner.bare.rawValue] : nil
    bench.report.add("any of them answers", ours, "freeze, watch, thaw", bare)
    bench.report.addDifferences("any of them answers", ours, "running", samples[WakingServers.Owner.running.rawValue])
}

private func answerAll(_ bench: Bench, _ servers: WakingServers) throws {
    var samples = WakingServers.Owner.allCases.map { _ in Samples() }
    for _ in 0..<3 {
        for owner in servers.owners { samples[owner.rawValue].add(try servers.wakeAll(owner)) }
        try servers.suspendAll()
    }
    let longest = [("the longest of 3", 1.0)]
    let ours = samples[WakingServers.Owner.greenroom.rawValue]
    let bare = servers.owners.contains(.bare) ? samples[WakingServers.Owner.bare.rawValue] : nil
    let running = samples[WakingServers.Owner.running.rawValue]
    bench.report.add("all at once", ours, "freeze, watch, thaw", bare, at: longest)
    bench.report.add("all at once", ours, "running", running, at: longest)
}
