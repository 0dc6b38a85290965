import Glibc
import JSON
import LifecycleSimulator
import Linux
import Posix

extension Bench {
    /// Measures the figures of `make bench-check` and compares them with a baseline.
    ///
    /// - Returns: whether none is worse.
    func check(baseline path: String) throws -> Bool {
        // A file that cannot be read is refused before anything is measured.
        let baseline: CheckRun
        do {
            baseline = try CheckRun(parsing: try readFile(at: path, limit: 1 << 20))
        } catch let error as SystemError where error.errno == ENOENT {
            throw BenchFailure("\(path) does not exist; make bench-baseline writes it")
        } catch {
            throw BenchFailure("\(path): \(error); make bench-baseline writes it again")
        }
        let measured = try measureCheck()
        let results = try CheckResult.compare(measured, with: baseline)
        print("measured: commit \(measured.commit), \(measured.machine)")
        print("baseline: commit \(baseline.commit), \(baseline.machine)\n")
        print(CheckResult.heading)
        for result in results { print(result.line) }
        fflush(nil)
        let worse = results.filter(\.isWorse)
        for result in worse { warn("bench-check: " + result.sentence(baseline.commit)) }
        return worse.isEmpty
    }

    /// Measures the same figures and writes them as the baseline.
    func writeBaseline(_ path: String) throws -> Bool {
        let measured = try measureCheck()
        try replaceFile(at: path, with: Array((measured.json.serialized(pretty: true) + "\n").utf8))
        print("\(path): commit \(measured.commit), \(measured.machine)\n")
        print(CheckResult.heading)
        for result in try CheckResult.compare(measured, with: measured) { print(result.line) }
        return true
    }

    private func measureCheck() throws -> CheckRun {
        warn("bench-check: measures for about two minutes")
        guard case .cgroup = ContainmentMode.detect(name: "greenroom-bench-\(getpid())") else {
            throw BenchFailure("bench-check needs a writable cgroup: the peer of two figures is cgroup.freeze")
        }
        var run = CheckRun(commit: commit ?? "unknown", machine: Machine.current())
        try raisePriority()
        // First, alone: the text of two daemons would count half in the PSS of each.
        run.values = try CheckMemory(self).measure()
        let rounds = try CheckRounds(self)
        defer { rounds.stop() }
        // One value of each figure in a round, so that a disturbance of some seconds makes few values of a figure worse.
        for round in 1...CheckFigure.rounds {
            for (figure, value) in try rounds.measure(round) { run.values[figure, default: []].append(value) }
        }
        return run
    }

    /// All measured processes inherit the policy, so that other programs delay neither the daemon nor its peers. Beside one busy
    /// process, and with two processors, launches were twice to three times as slow without it, and bare ones were not.
    private func raisePriority() throws {
        var parameters = sched_param()
        parameters.sched_priority = 1
        guard sched_setscheduler(0, Int32(SCHED_RR), &parameters) == 0 else {
            throw BenchFailure(
                "bench-check needs real-time priority: run it as root (sched_setscheduler: error \(errno))")
        }
    }

}

private func warn(_ line: String) { (line + "\n").withCString { _ = write(STDERR_FILENO, $0, strlen($0)) } }

// MARK: Memory

/// The memory and the wakeups of the daemon with 1,000 suspended apps.
private struct CheckMemory {
    private static let count = 1000
    private let bench: Bench
    private let board: Board

    init(_ bench: Bench) throws {
        self.bench = bench
        board = try Board(slots: Self.count)
    }

    private func manifests(_ app: String = "") -> [(String, String)] {
        (0..<Self.count).map { ("app\($0)", Greenroom.manifest([bench.app, "wait", board.path, "\($0)"], app: app)) }
    }

    func measure() throws -> [CheckFigure: [Double]] {
        let (idle, first, oneByOne, wakeups) = try launchOneByOne()
        let atStart = try launchAtStart()
        return [
            .idleMemory: [idle], .memoryOfFirstApp: [first - idle],
            .memoryPerApp: [(oneByOne - first) / Double(Self.count - 1)],
            .memoryPerAppAtStart: [(atStart - first) / Double(Self.count - 1)], .wakeups: [wakeups],
        ]
    }

    /// The PSS after everything that follows from work is over.
    private func settled(_ greenroom: Greenroom) throws -> Double {
        try greenroom.awaitEndOfHelpers()
        rest(microseconds: 1_000_000)
        return try greenroom.pss()
    }

    /// The first app costs more than others: the daemon executes code for it that was not in memory before.
    private func launchOneByOne() throws -> (idle: Double, first: Double, memory: Double, wakeups: Double) {
        let greenroom = try Greenroom(bench, "one-by-one")
        defer { greenroom.stop() }
        let idle = try settled(greenroom)
        let apps = manifests()
        try greenroom.add([apps[0]])
        try greenroom.suspendAll([apps[0].0])
        let first = try settled(greenroom)
        try greenroom.add(Array(apps.dropFirst()))
        try greenroom.suspendAll(apps.dropFirst().map(\.0), atOnce: 1)
        let memory = try settled(greenroom)
        return (idle, first, memory, Double(try fewestWakeups(inSeconds: 10, [greenroom.switches])[0]))
    }

    private func launchAtStart() throws -> Double {
        board.clear(0..<Self.count)
        let greenroom = try Greenroom(bench, "at-start", apps: manifests("LaunchAtStart=background"))
        defer { greenroom.stop() }
        // Calls would be work for the daemon, so the files of the cgroups tell when all are frozen.
        guard let root = try greenroom.containment().split(separator: " ").first(where: { $0.hasPrefix("/") }) else {
            throw BenchFailure("the daemon has no cgroup")
        }
        var launched = 0
        var frozen: Set<String> = []
        try eventually(
            "\(Self.count) apps are launched at the start and suspended", everyMicroseconds: 20_000, seconds: 60
        ) {
            // The daemon keeps what a client does not read.
            try greenroom.discardSignals()
            while launched < Self.count, board.time(launched) != 0 { launched += 1 }
            guard launched == Self.count else { return false }
            for leaf in try folderEntries(at: String(root), onlyFolders: true) where !frozen.contains(leaf) {
                if isFrozen("\(root)/\(leaf)") { frozen.insert(leaf) }
            }
            return frozen.count >= Self.count
        }
        return try settled(greenroom)
    }

    private func isFrozen(_ group: String) -> Bool {
        let events = (try? readFile(at: group + "/cgroup.events", limit: 4096)) ?? []
        let lines = String(decoding: events, as: UTF8.self).split(separator: "\n")
        return lines.contains("frozen 1") && lines.contains("populated 1")
    }
}

// MARK: Rounds

/// What is measured in each round, each with its peer.
private final class CheckRounds {
    private let bench: Bench
    private let launches: Launches
    private let resuming: Resuming
    private let servers: WakingServers
    private let recordings: [Recording]

    /// Counts that give medians which vary by less than a tenth on an idle machine, in about 12 s a round.
    private enum Count {
        static let launches = 200
        static let atOnce = 3
        static let resumes = 60
        static let deadlines = 200
        static let daemons = 2
        static let servers = 60
        static let recordings = UInt64(6)
        static let passes = 5
    }

    init(_ bench: Bench) throws {
        raiseDescriptorLimit()
        self.bench = bench
        launches = try Launches(bench, Count.launches, nil)
        resuming = try Resuming(bench)
        servers = try WakingServers(bench, ServerShape(name: "check"), count: Count.servers)
        recordings = (1...Count.recordings).map { Recording(SimulationOptions(seed: $0, events: 10_000)) }
    }

    func stop() {
        launches.stop()
        resuming.stop()
        servers.stop()
    }

    /// One value of each figure.
    func measure(_ round: Int) throws -> [(CheckFigure, Double)] {
        var (ours, bare) = (Samples(), Samples())
        let sequential = try launches.sequential()
        for _ in 0..<Count.atOnce {
            let rates = try launches.parallel()
            ours.add(1 / rates.ours)
            bare.add(1 / rates.bare)
        }
        let resumed = try resuming.measure(Resuming.sleeping, Count.resumes)
        guard let thawed = resumed.thawed else { throw BenchFailure("no cgroup was created for the bare thaw") }
        let late = try deadlines(round)
        return [
            (.sequentialLaunches, try ratio(sequential.ours.answer, sequential.bare.answer)),
            (.parallelLaunches, try ratio(ours, bare)), (.resuming, try ratio(resumed.ours, thawed)),
            (.deadlineMedian, late.median),
            (.deadlineTail, late.tail), (.answer, try answers(round)),
            (.events, events()),
        ]
    }

    /// The p50 and the p99: of two daemons the lower one, as a stall of the machine makes many deadlines in succession late.
    private func deadlines(_ round: Int) throws -> (median: Double, tail: Double) {
        var (medians, tails, bareMedians, bareTails) = (Samples(), Samples(), Samples(), Samples())
        for daemon in 1...Count.daemons {
            var (ours, bare) = try launchDeadlines(
                bench, "deadlines-\(round)-\(daemon)", Count.deadlines, start: 1500, step: 8)
            medians.add(ours.percentile(0.5))
            tails.add(ours.percentile(0.99))
            bareMedians.add(bare.percentile(0.5))
            bareTails.add(bare.percentile(0.99))
        }
        return (try ratio(medians, bareMedians, 0), try ratio(tails, bareTails, 0))
    }

    private func ratio(_ ours: Samples, _ theirs: Samples, _ share: Double = 0.5) throws -> Double {
        var (ours, theirs) = (ours, theirs)
        let (our, their) = (ours.percentile(share), theirs.percentile(share))
        guard our > 0, their > 0 else { throw BenchFailure("a time of 0 was measured") }
        return our / their
    }

    /// First answers through connections that were open while the servers were suspended.
    private func answers(_ round: Int) throws -> Double {
        var samples = WakingServers.Owner.allCases.map { _ in Samples() }
        for index in 0..<Count.servers {
            for turn in servers.owners.indices {
                let owner = servers.owners[(turn + index + round) % servers.owners.count]
                try servers.measure(owner, index, .established, &samples[owner.rawValue])
            }
        }
        try servers.suspendAll()
        return try ratio(
            samples[WakingServers.Owner.greenroom.rawValue], samples[WakingServers.Owner.bare.rawValue])
    }

    /// In processor time, the best of some passes: other work on the machine can only slow a pass down.
    private func events() -> Double {
        let count = recordings.reduce(0) { $0 + $1.count }
        var (best, effects, peer) = (Double.infinity, 0, 0.0)
        for _ in 0..<Count.passes {
            let start = processorTime(of: getpid())
            effects += recordings.reduce(0) { $0 + $1.replay() }
            best = min(best, processorTime(of: getpid()) - start)
            peer = max(peer, pipeEvents(50_000))
        }
        precondition(effects > 0, "the recorded events have no effect")
        return best / Double(count) * peer
    }
}
