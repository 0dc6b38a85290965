import Glibc
import LifecycleSimulator

/// Runs the simulator. Exit status: 0 if all rules hold, 1 if a rule is violated, 2 for a usage error.

let usage = """
    Usage: greenroom-sim [--seed S] [--seeds K] [--events N] [--apps N] [--trace] [--keep-going]
           greenroom-sim --rate
           greenroom-sim memory [--seed S [--seeds K] [--verbose]]
           greenroom-sim loop [--seed S] [--seeds K]
           greenroom-sim day [--trace]

    Simulates apps, users and the kernel with the lifecycle core of greenroomd and checks the rules after every event. Runs
    the seeds S, S+1, … S+K-1 with N events each and faults, then without faults until all apps are idle. The same seed
    gives the same trace.

      --seed S      first seed (default: 1)
      --seeds K     number of seeds (default: 1)
      --events N    events of each seed before the phase without faults (default: 20000)
      --apps N      number of apps (default: chosen by the seed)
      --keep-going  do not stop at the first seed that violates a rule; print one line for each
      --trace       print every event, its effects and the states after it
      --rate        measure the core, in events per second
      memory        print what each JetsamOrder= costs on four workloads; with --seed, check the rules of memory on random
                    machines instead
      loop          check the event loop of the daemon, with apps that flood it and clients that call it (default: 100 seeds)
      day           print what wakes each app of a handheld in one day, for how long it is awake, and how often it is killed;
                    with --trace, when each wake comes, and for how long the app is awake then
    """

struct Arguments {
    var seed: UInt64 = 1
    var seeds: UInt64 = 1
    var events = 20_000
    var apps: Int?
    var isTraced = false
    var keepsGoing = false
    var measuresRate = false

    /// - Returns: `nil` if an argument is invalid.
    init?(_ words: [String]) {
        var rest = words[...]
        while let word = rest.popFirst() {
            switch word {
            case "--trace": isTraced = true
            case "--rate": measuresRate = true
            case "--keep-going": keepsGoing = true
            case "--seed":
                guard let number = rest.popFirst().flatMap({ UInt64($0) }) else { return nil }
                seed = number
            case "--seeds":
                guard let number = rest.popFirst().flatMap({ UInt64($0) }), number > 0 else { return nil }
                seeds = number
            case "--events":
                guard let number = rest.popFirst().flatMap({ Int($0) }), number > 0 else { return nil }
                events = number
            case "--apps":
                guard let number = rest.popFirst().flatMap({ Int($0) }), (1...10_000).contains(number) else {
                    return nil
                }
                apps = number
            default: return nil
            }
        }
    }
}

func seconds(of clock: clockid_t) -> Double {
    var time = timespec()
    clock_gettime(clock, &time)
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

func hexadecimal(_ number: UInt64) -> String {
    let digits = String(number, radix: 16)
    return String(repeating: "0", count: 16 - digits.count) + digits
}

func fail(_ result: SimulationResult, _ finding: Finding, _ arguments: Arguments) -> Never {
    if !arguments.isTraced {
        for line in result.lastLines { print(line) }
    }
    print(
        """

        Rule violated: \(finding.rule.rawValue).
        \(finding.sentence)
        Seed \(result.seed), event \(result.events). To print the trace:
          \(command(result.seed, arguments))
        """)
    exit(1)
}

func command(_ seed: UInt64, _ arguments: Arguments) -> String {
    let apps = arguments.apps.map { " --apps \($0)" } ?? ""
    return "greenroom-sim --seed \(seed) --events \(arguments.events)\(apps) --trace"
}

func run(_ arguments: Arguments) {
    let start = seconds(of: CLOCK_MONOTONIC)
    var events = 0
    var checks = 0
    var virtual: Int64 = 0
    var violations = 0
    var faults = FaultCounts()
    var coverage = Coverage()
    for seed in arguments.seed..<(arguments.seed &+ arguments.seeds) {
        CrashReport.prepare(seed, command(seed, arguments))
        let options = SimulationOptions(seed: seed, events: arguments.events, apps: arguments.apps)
        let result = simulate(options, print: arguments.isTraced ? { print($0) } : nil)
        if let finding = result.finding {
            if !arguments.keepsGoing { fail(result, finding, arguments) }
            violations += 1
            print("seed \(seed), event \(result.events): \(finding.rule): \(finding.sentence)")
        }
        events += result.events
        checks += result.checks
        virtual += result.virtualSeconds
        faults.add(result.faults)
        coverage.add(result.coverage)
        if let digest = result.digest, arguments.seeds == 1 { print("digest \(hexadecimal(digest))") }
    }
    if arguments.isTraced { return }
    let time = seconds(of: CLOCK_MONOTONIC) - start
    summarize(faults, coverage)
    print(
        """

        \(arguments.seeds) seeds, \(events) events, \(checks) checks, \(virtual / 3600) virtual hours: \(
            violations == 0 ? "all rules hold" : "\(violations) seeds violate a rule").
        \(Int(Double(events) / time)) events/s
        """)
    if violations > 0 { exit(1) }
}

func summarize(_ faults: FaultCounts, _ coverage: Coverage) {
    print("Events by phase of their app (–: no app, or an app without a manifest):\n")
    for line in coverage.table { print(line) }
    print("\nFaults:\n")
    for fault in Fault.allCases {
        let count = "\(faults[fault])"
        print(String(repeating: " ", count: max(0, 10 - count.utf8.count)) + count + "  " + fault.name)
    }
}

/// Measures the core with the recorded events of some seeds, in processor time. It prints the best of several passes: other
/// work on the machine can only slow a pass down.
func measureRate() {
    let recordings = (UInt64(1)...24).map { Recording(SimulationOptions(seed: $0, events: 10_000)) }
    let events = recordings.reduce(0) { $0 + $1.count }
    var best = Double.infinity
    var effects = 0
    for _ in 0..<7 {
        let start = seconds(of: CLOCK_PROCESS_CPUTIME_ID)
        effects = recordings.reduce(0) { $0 + $1.replay() }
        best = min(best, seconds(of: CLOCK_PROCESS_CPUTIME_ID) - start)
    }
    print("core: \(Int(Double(events) / best)) events/s (\(events) events, \(effects) effects)")
    measureRecording(recordings, events)
}

/// Measures the cost of recording events and saving snapshots, from which the next daemon recovers.
func measureRecording(_ recordings: [Recording], _ events: Int) {
    func best(_ body: () -> Int) -> (seconds: Double, bytes: Int) {
        var best = (seconds: Double.infinity, bytes: 0)
        for _ in 0..<7 {
            let start = seconds(of: CLOCK_PROCESS_CPUTIME_ID)
            best.bytes = body()
            best.seconds = min(best.seconds, seconds(of: CLOCK_PROCESS_CPUTIME_ID) - start)
        }
        return best
    }
    let recorded = best { recordings.reduce(0) { $0 + $1.log().bytes } }
    let snapshots = recordings.map { $0.snapshot() }
    let apps = snapshots.reduce(0) { $0 + $1.apps }
    let saved = best { snapshots.reduce(0) { $0 + $1.bytes() } }
    print("recorded: \(Int(recorded.seconds / Double(events) * 1e9)) ns and \(recorded.bytes / events) bytes per event")
    print("saved: \(Int(saved.seconds / Double(apps) * 1e9)) ns and \(saved.bytes / apps) bytes per app")
}

func failUsage() -> Never {
    _ = (usage + "\n").withCString { write(STDERR_FILENO, $0, strlen($0)) }
    exit(2)
}

if CommandLine.arguments.dropFirst().first == "memory" {
    guard let holds = MemoryCommand.run(CommandLine.arguments.dropFirst(2)) else { failUsage() }
    exit(holds ? 0 : 1)
}
if CommandLine.arguments.dropFirst().first == "loop" {
    guard let holds = LoopCommand.run(CommandLine.arguments.dropFirst(2)) else { failUsage() }
    exit(holds ? 0 : 1)
}
if CommandLine.arguments.dropFirst().first == "day" {
    let words = CommandLine.arguments.dropFirst(2)
    guard words.isEmpty || words == ["--trace"] else { failUsage() }
    for line in DayTable(isTraced: !words.isEmpty).lines { print(line) }
    exit(0)
}
guard let arguments = Arguments(Array(CommandLine.arguments.dropFirst())) else { failUsage() }
CrashReport.install()
if arguments.measuresRate { measureRate() } else { run(arguments) }
