import Glibc
import Systemd

/// A small C program that ends at once, launched by a bare posix_spawn(3), by greenroomd and by supervisord.
func measureLaunches(_ bench: Bench) throws {
    let count = bench.isQuick ? 60 : 300
    bench.report.section(
        "Launching", "a small C program that notes the time in its first line and ends; \(count) of them, in turns")
    let launches = try Launches(bench, count)
    try launches.oneAfterAnother()
    try launches.allAtOnce()
    try launches.emptyCalls()
    launches.stop()
}

/// How it went with one launcher.
private struct Course {
    /// From the call to the program's first line.
    var first = Samples()
    /// From the call to its answer.
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
        // In the foreground, as a person launches: apps in the background run in the idle class (L19), which neither of the
        // others does. All of them at once, so that none has to make room.
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

    // MARK: One after the other

    /// In turns, so that what else happens on the machine meets all of them alike.
    func oneAfterAnother() throws {
        var (bare, ours, theirs) = (Course(), Course(), Course())
        let size = 20
        for first in stride(from: 0, to: count, by: size) {
            let block = first..<min(first + size, count)
            try run(block, &bare) { try self.spawn($0) }
            try run(block, &ours) { number in
                let pending = try self.greenroom.beginLaunch("app\(number)", background: false)
                try self.greenroom.finish(pending)
            }
            try greenroom.forgetNews()
            try run(block, &theirs) { number in
                try self.supervisor.call("supervisor.startProcess", [.string("app:\(number)"), .bool(false)])
            }
        }
        addRate(
            "one after the other", ours.perSecond, [("posix_spawn", bare.perSecond), ("supervisord", theirs.perSecond)])
        for (peer, course) in [("posix_spawn", bare), ("supervisord", theirs)] {
            bench.report.add("call → its first line", ours.first, peer, course.first)
        }
        for (peer, course) in [("posix_spawn + waitpid", bare), ("supervisord", theirs)] {
            bench.report.add("call → answer", ours.answer, peer, course.answer)
        }
    }

    private func run(_ block: Range<Int>, _ course: inout Course, _ launch: (Int) throws -> Void) throws {
        board.clear(block)
        var calls: [UInt64] = []
        let start = clockNow()
        for number in block {
            let call = clockNow()
            calls.append(call)
            try launch(number)
            course.answer.add(from: call, to: clockNow())
        }
        course.seconds += Double(clockNow() - start) / 1e9
        try board.awaitTimes(block, "all programs were launched")
        for (number, call) in zip(block, calls) { course.first.add(from: call, to: board.time(number)) }
        // What is left to do of it is nobody else's burden.
        rest(microseconds: 20_000)
    }

    private func spawn(_ number: Int) throws { reapBare(try spawnBare(command(number))) }
    private func command(_ number: Int) -> [String] { [bench.app, "stamp", board.path, "\(number)"] }

    // MARK: All at once

    func allAtOnce() throws {
        var children: [pid_t] = []
        let bare = try rate { for number in 0..<self.count { children.append(try spawnBare(self.command(number))) } }
        for child in children { reapBare(child) }
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
        addRate("all at once", ours, [("posix_spawn", bare), ("supervisord", theirs)])
    }

    /// Launches a second, up to the first line of the last program.
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

    // MARK: What the way there costs

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
        bench.report.add("a call that asks for nothing", ours, "supervisord", theirs)
    }
}
