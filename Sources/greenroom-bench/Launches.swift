import Glibc
import Systemd

/// Measures launches of a small C program that exits immediately: by posix_spawn(3), greenroomd and supervisord.
func measureLaunches(_ bench: Bench) throws {
    let count = bench.isQuick ? 60 : 300
    bench.report.section(
        "Launch",
        "\(count) launches of a small C program that records the time in its first statement; launchers alternate")
    let launches = try Launches(bench, count)
    try launches.sequential()
    try launches.parallel()
    try launches.emptyCalls()
    launches.stop()
}

/// The results of one launcher.
private struct Results {
    /// From the call to the first statement of the program.
    var first = Samples()
    /// From the call to its reply.
    var answer = Samples()
    var seconds = 0.0

    var perSecond: Double { seconds > 0 ? Double(answer.count) / seconds : 0 }
}

private final class Launches {
    private let bench: Bench
    private let count: Int
    private let board: Board
    private let greenroom: Greenroom
    private let supervisor: Supervisor

    init(_ bench: Bench, _ count: Int) throws {
        self.bench = bench
        self.count = count
        let board = try Board(slots: count)
        self.board = board
        let manifests = (0..<count).map {
            ("app\($0)", Greenroom.manifest([bench.app, "stamp", board.path, "\($0)"]))
        }
        // Apps are launched into the foreground, as by a user: in the background they would run in the idle class (L19), unlike
        // those of the other launchers. The limit allows all of them at once, so that none is moved to the background.
        greenroom = try Greenroom(
            bench, "launches", apps: manifests, configuration: "[Manager]\nForegroundLimit=\(count)\n")
        let command = [bench.app, "stamp", board.path, "%(process_num)d"]
        supervisor = try Supervisor(
            bench, "supervisor-launches", programs: Supervisor.program("app", command, count: count))
    }

    func stop() {
        greenroom.stop()
        supervisor.stop()
    }

    // MARK: Sequential launches

    /// Alternates between the launchers, so that other activity on the machine affects all of them.
    func sequential() throws {
        var (bare, ours, theirs) = (Results(), Results(), Results())
        let size = 20
        for first in stride(from: 0, to: count, by: size) {
            let block = first..<min(first + size, count)
            try run(block, &bare) { try self.spawn($0) }
            try run(block, &ours) { number in
                let pending = try self.greenroom.beginLaunch("app\(number)", background: false)
                try self.greenroom.finish(pending)
            }
            try greenroom.discardSignals()
            try run(block, &theirs) { number in
                try self.supervisor.call("supervisor.startProcess", [.string("app:\(number)"), .bool(false)])
            }
        }
        addRate(
            "sequential", ours.perSecond, [("posix_spawn", bare.perSecond), ("supervisord", theirs.perSecond)])
        for (peer, results) in [("posix_spawn", bare), ("supervisord", theirs)] {
            bench.report.add("call → first line of main", ours.first, peer, results.first)
        }
        for (peer, results) in [("posix_spawn + waitpid", bare), ("supervisord", theirs)] {
            bench.report.add("call → reply", ours.answer, peer, results.answer)
        }
    }

    private func run(_ block: Range<Int>, _ results: inout Results, _ launch: (Int) throws -> Void) throws {
        board.clear(block)
        var calls: [UInt64] = []
        let start = clockNow()
        for number in block {
            let call = clockNow()
            calls.append(call)
            try launch(number)
            results.answer.add(from: call, to: clockNow())
        }
        results.seconds += Double(clockNow() - start) / 1e9
        try board.awaitTimes(block, "all programs were launched")
        for (number, call) in zip(block, calls) { results.first.add(from: call, to: board.time(number)) }
        // The launcher finishes its work before the next one is measured.
        rest(microseconds: 20_000)
    }

    private func spawn(_ number: Int) throws { waitForChild(try spawnChild(command(number))) }
    private func command(_ number: Int) -> [String] { [bench.app, "stamp", board.path, "\(number)"] }

    // MARK: Parallel launches

    func parallel() throws {
        var children: [pid_t] = []
        let bare = try rate { for number in 0..<self.count { children.append(try spawnChild(self.command(number))) } }
        for child in children { waitForChild(child) }
        var pending: [BusConnection.Pending] = []
        let ours = try rate {
            for number in 0..<self.count {
                pending.append(try self.greenroom.beginLaunch("app\(number)", background: false))
            }
            for one in pending { try self.greenroom.finish(one) }
        }
        let theirs = try rate {
            try self.supervisor.call("supervisor.startProcessGroup", [.string("app"), .bool(false)])
        }
        addRate("parallel", ours, [("posix_spawn", bare), ("supervisord", theirs)])
    }

    /// The launches per second until the last program runs.
    private func rate(_ launchAll: () throws -> Void) throws -> Double {
        rest(microseconds: 300_000)
        board.clear(0..<count)
        let start = clockNow()
        try launchAll()
        try board.awaitTimes(0..<count, "all programs were launched")
        let last = (0..<count).map { board.time($0) }.max() ?? start
        return Double(count) / (Double(max(last, start + 1) - start) / 1e9)
    }

    private func addRate(_ name: String, _ ours: Double, _ peers: [(String, Double)]) {
        for (peer, theirs) in peers {
            bench.report.add(Figure(name: "\(name)", unit: .perSecond, ours: ours, peer: peer, theirs: theirs))
        }
    }

    // MARK: Cost of a call

    func emptyCalls() throws {
        var (ours, theirs) = (Samples(), Samples())
        for _ in 0..<count {
            var call = clockNow()
            try greenroom.call("Version")
            ours.add(from: call, to: clockNow())
            call = clockNow()
            try supervisor.call("supervisor.getAPIVersion")
            theirs.add(from: call, to: clockNow())
        }
        bench.report.add("call without effect", ours, "supervisord", theirs)
    }
}
