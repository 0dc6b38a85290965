import Glibc
import Systemd

/// Measures launches of a small C program that exits immediately: by posix_spawn(3), greenroomd and supervisord.
func measureLaunches(_ bench: Bench) throws {
    let count = bench.isQuick ? 60 : 300
    bench.report.section(
        "Launch",
        "\(count) launches of a small C program that records the time in its first statement; launchers alternate")
    let supervisor = { try Supervisor(bench, "supervisor-launches", programs: $0) }
    let launches = try Launches(bench, count, supervisor)
    addSequential(bench, try launches.sequential())
    addRates(bench, "parallel", try launches.parallel())
    try launches.emptyCalls()
    launches.stop()
}

private func addSequential(_ bench: Bench, _ results: LaunchResults<Launched>) {
    addRates(bench, "sequential", results.map(\.perSecond))
    let (bare, ours, theirs) = (results.bare, results.ours, results.theirs)
    for (peer, results) in [("posix_spawn", bare), ("supervisord", theirs)] {
        bench.report.add("call → first line of main", ours.first, peer, results?.first)
    }
    for (peer, results) in [("posix_spawn + waitpid", bare), ("supervisord", theirs)] {
        bench.report.add("call → reply", ours.answer, peer, results?.answer)
    }
}

private func addRates(_ bench: Bench, _ name: String, _ rates: LaunchResults<Double>) {
    for (peer, theirs) in [("posix_spawn", rates.bare), ("supervisord", rates.theirs)] {
        bench.report.add(Figure(name: name, unit: .perSecond, ours: rates.ours, peer: peer, theirs: theirs))
    }
}

/// What was measured of each launcher.
struct LaunchResults<Value> {
    /// posix_spawn(3).
    var bare: Value
    var ours: Value
    /// supervisord, if it is measured.
    var theirs: Value?

    func map<Other>(_ body: (Value) -> Other) -> LaunchResults<Other> {
        LaunchResults<Other>(bare: body(bare), ours: body(ours), theirs: theirs.map(body))
    }
}

/// The launches of one launcher, one after the other.
struct Launched {
    /// From the call to the first statement of the program.
    var first = Samples()
    /// From the call to its reply.
    var answer = Samples()
    var seconds = 0.0

    var perSecond: Double { seconds > 0 ? Double(answer.count) / seconds : 0 }
}

final class Launches {
    private let bench: Bench
    private let count: Int
    private let board: Board
    private let greenroom: Greenroom
    private let supervisor: Supervisor?

    /// - Parameter supervisor: starts a supervisord with these programs; `nil`: it is not measured.
    init(_ bench: Bench, _ count: Int, _ supervisor: ((String) throws -> Supervisor)?) throws {
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
        self.supervisor = try supervisor?(Supervisor.program("app", command, count: count))
    }

    func stop() {
        greenroom.stop()
        supervisor?.stop()
    }

    // MARK: Sequential launches

    /// Alternates between the launchers, so that other activity on the machine affects all of them.
    func sequential() throws -> LaunchResults<Launched> {
        var (bare, ours, theirs) = (Launched(), Launched(), Launched())
        let size = 20
        for first in stride(from: 0, to: count, by: size) {
            let block = first..<min(first + size, count)
            try run(block, &bare) { try self.spawn($0) }
            try run(block, &ours) { number in
                let pending = try self.greenroom.beginLaunch("app\(number)", background: false)
                try self.greenroom.finish(pending)
            }
            try greenroom.discardSignals()
            guard let supervisor else { continue }
            try run(block, &theirs) { number in
                try supervisor.call("supervisor.startProcess", [.string("app:\(number)"), .bool(false)])
            }
        }
        return LaunchResults(bare: bare, ours: ours, theirs: supervisor == nil ? nil : theirs)
    }

    private func run(_ block: Range<Int>, _ results: inout Launched, _ launch: (Int) throws -> Void) throws {
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

    /// The launches per second, all begun at once.
    func parallel() throws -> LaunchResults<Double> {
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
        try greenroom.discardSignals()
        let theirs = try supervisor.map { supervisor in
            try rate { try supervisor.call("supervisor.startProcessGroup", [.string("app"), .bool(false)]) }
        }
        return LaunchResults(bare: bare, ours: ours, theirs: theirs)
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

    // MARK: Cost of a call

    func emptyCalls() throws {
        guard let supervisor else { return }
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
