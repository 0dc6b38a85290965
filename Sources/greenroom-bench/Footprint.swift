/// Measures the memory and the wakeups of the idle daemon, and of supervisord with the same number of programs.
func measureFootprint(_ bench: Bench) throws {
    let many = bench.hasFewApps ? 200 : 1000
    bench.report.section(
        "Idle", "PSS of the daemon process; greenroomd with suspended apps, supervisord with sleeping programs")
    let footprint = try Footprint(bench, many)
    try footprint.compare("without an app")
    try footprint.grow(to: 100)
    try footprint.compare("with 100 suspended apps")
    try footprint.grow(to: many)
    try footprint.compare("with \(many) suspended apps")
    try footprint.countWakeups(seconds: bench.isQuick ? 3 : 10)
    try footprint.launchMore()
    footprint.stop()
}

private final class Footprint {
    private let bench: Bench
    private let board: Board
    private let many: Int
    private let greenroom: Greenroom
    private let supervisor: Supervisor
    private var programs = ""
    private var count = 0
    private static let launches = 50

    init(_ bench: Bench, _ many: Int) throws {
        self.bench = bench
        self.many = many
        board = try Board(slots: 2 * many + 2 * Self.launches)
        greenroom = try Greenroom(bench, "rest")
        supervisor = try Supervisor(bench, "supervisor-rest")
    }

    func stop() {
        greenroom.stop()
        supervisor.stop()
    }

    /// Launches and suspends more apps, and starts as many more programs with supervisord.
    func grow(to count: Int) throws {
        let new = self.count..<count
        let manifests = new.map {
            ("app\($0)", Greenroom.manifest([bench.app, "wait", board.path, "\($0)"]))
        }
        try greenroom.add(manifests)
        try greenroom.suspendAll(manifests.map(\.0))
        try greenroom.discardSignals()
        let command = [bench.app, "wait", board.path, "%(process_num)d"]
        programs += Supervisor.program(
            "upto\(count)", command, count: new.count, first: many + new.lowerBound, starts: true)
        try supervisor.add("upto\(count)", programs: programs)
        try board.awaitTimes(many + new.lowerBound..<many + new.upperBound, "supervisord starts \(new.count) programs")
        self.count = count
    }

    func compare(_ name: String) throws {
        rest(microseconds: 1_500_000)
        bench.report.add(
            Figure(
                name: name, unit: .bytes, ours: try greenroom.pss(), peer: "supervisord",
                theirs: try supervisor.pss()))
    }

    /// Counts the wakeups of both daemons in the same time. A wakeup is a context switch of a thread; greenroomd must have none.
    func countWakeups(seconds: Int) throws {
        try greenroom.awaitEndOfHelpers()
        let wakeups = try fewestWakeups(inSeconds: seconds, [greenroom.switches, supervisor.switches])
        let (ours, theirs) = (wakeups[0], wakeups[1])
        bench.report.add(
            Figure(
                name: "wakeups in \(seconds) s, \(many) suspended (must be 0)", unit: .wakeupsPerSecond,
                ours: Double(ours) / Double(seconds), peer: "supervisord",
                theirs: Double(theirs) / Double(seconds), isRequired: ours == 0))
    }

    /// Measures launches while many apps are suspended, which should not make a difference.
    func launchMore() throws {
        let first = 2 * many
        let second = first + Self.launches
        try greenroom.add(
            (first..<second).map { ("more\($0)", Greenroom.manifest([bench.app, "stamp", board.path, "\($0)"])) })
        let command = [bench.app, "stamp", board.path, "%(process_num)d"]
        programs += Supervisor.program("more", command, count: Self.launches, first: second)
        try supervisor.add("more", programs: programs)
        var (ours, theirs) = (Samples(), Samples())
        for number in first..<second {
            let pending = try launch(number, &ours) {
                try self.greenroom.beginLaunch("more\(number)", background: false)
            }
            try greenroom.finish(pending)
            let other = number + Self.launches
            try launch(other, &theirs) {
                try self.supervisor.call("supervisor.startProcess", [.string("more:\(other)"), .bool(false)])
            }
        }
        bench.report.add("one more: call → first line of main", ours, "supervisord", theirs)
    }

    private func launch<T>(_ number: Int, _ samples: inout Samples, _ body: () throws -> T) throws -> T {
        // Both daemons finish the previous launch first.
        rest(microseconds: 20_000)
        let start = clockNow()
        let result = try body()
        try board.awaitTimes(number..<number + 1, "a program was launched")
        samples.add(from: start, to: board.time(number))
        return result
    }
}
