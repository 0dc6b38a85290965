import JSON

/// What `make bench-check` measures and compares with the baseline, by its name there. A larger value is worse.
enum CheckFigure: String, CaseIterable {
    case sequentialLaunches = "launches, one after the other / posix_spawn"
    case parallelLaunches = "launches, all at once / posix_spawn"
    case resuming = "activate → first instruction / bare thaw, p50"
    case deadlineMedian = "deadline lateness / timerfd, p50"
    case deadlineTail = "deadline lateness / timerfd, p99"
    case answer = "first answer of a suspended server / bare loop, p50"
    case events = "an event of the core / a byte through a pipe"
    case idleMemory = "PSS of the idle daemon"
    case memoryOfFirstApp = "PSS for the first app, suspended"
    case memoryPerApp = "PSS for each of 999 more, launched one by one"
    case memoryPerAppAtStart = "PSS for each of 999 more, LaunchAtStart="
    case wakeups = "wakeups in 10 s, 1,000 suspended"

    /// Memory has no peer, so it is compared in bytes. A count has no baseline but 0.
    enum Kind: String { case ratio, bytes, count }

    var kind: Kind {
        switch self {
        case .sequentialLaunches, .parallelLaunches, .resuming, .deadlineMedian, .deadlineTail, .answer, .events: .ratio
        case .idleMemory, .memoryOfFirstApp, .memoryPerApp, .memoryPerAppAtStart: .bytes
        case .wakeups: .count
        }
    }

    /// How often it is measured. What takes little time and varies is measured in each round.
    var times: Int { kind == .ratio ? Self.rounds : 1 }

    static let rounds = 5

    /// By how much it may be worse than the baseline. Ratios of medians vary by a fifth where other programs keep the processors busy.
    /// The p99 is decided by few deadlines, which come while the daemon is busy with something else: it varied between 4.8 and 10.
    var tolerance: Double { self == .deadlineTail ? 2.5 : 1.5 }

    /// Formats a value as the table does.
    func text(_ value: Double) -> String {
        switch kind {
        case .ratio: fixed(value, digits: value < 99.5 ? 2 : 0)
        case .bytes: "\(fixed(value / 1024, digits: 2)) KiB"
        case .count: fixed(value, digits: 0)
        }
    }
}

/// The figures of one `make bench-check`, or of the baseline.
struct CheckRun: Equatable {
    /// The commit of the programs, with a remark if they were changed since.
    var commit: String
    var machine: Machine
    /// All values of each figure, in the order in which they were measured.
    var values: [CheckFigure: [Double]] = [:]

    init(commit: String, machine: Machine) {
        self.commit = commit
        self.machine = machine
    }

    /// The median of the values.
    func typical(_ figure: CheckFigure) -> Double {
        var samples = Samples()
        for value in values[figure] ?? [] { samples.add(value) }
        return samples.percentile(0.5)
    }

    // MARK: JSON

    var json: JSONValue {
        .object([
            ("commit", .string(commit)),
            (
                "machine",
                .object([
                    ("kernel", .string(machine.kernel)), ("processors", .integer(Int64(machine.processors))),
                    ("processor", .string(machine.processor)),
                ])
            ),
            (
                "figures",
                .array(
                    CheckFigure.allCases.compactMap { figure in
                        values[figure].map { values in
                            .object([
                                ("name", .string(figure.rawValue)), ("unit", .string(figure.kind.rawValue)),
                                ("values", .array(values.map { .number($0) })),
                            ])
                        }
                    })
            ),
        ])
    }

    /// Reads a baseline.
    ///
    /// - Throws: a `JSONError`, or a `BenchFailure` that says what is missing or wrong.
    init(parsing bytes: [UInt8]) throws {
        let document = try JSONValue.parse(bytes)
        commit = try document.member("commit", "a text", \.stringValue)
        let about = try document.member("machine", "an object", { $0.objectValue == nil ? nil : $0 })
        machine = Machine(
            kernel: try about.member("kernel", "a text", \.stringValue),
            processors: try about.member("processors", "an integer", { $0.integerValue.flatMap { Int(exactly: $0) } }),
            processor: try about.member("processor", "a text", \.stringValue))
        for entry in try document.member("figures", "an array", \.arrayValue) { try add(entry) }
        for figure in CheckFigure.allCases where values[figure] == nil {
            throw BenchFailure("it has no figure “\(figure.rawValue)”")
        }
    }

    private mutating func add(_ entry: JSONValue) throws {
        let name = try entry.member("name", "a text", \.stringValue)
        guard let figure = CheckFigure(rawValue: name) else { throw BenchFailure("the figure “\(name)” is unknown") }
        guard values[figure] == nil else { throw BenchFailure("it has the figure “\(name)” twice") }
        guard try entry.member("unit", "a text", \.stringValue) == figure.kind.rawValue else {
            throw BenchFailure("the figure “\(name)” has another unit than \(figure.kind.rawValue)")
        }
        let numbers = try entry.member("values", "an array", \.arrayValue).compactMap(\.numberValue)
        // A number of 0 would let each value be worse.
        guard numbers.count == figure.times, numbers.allSatisfy({ $0 > 0 || (figure.kind == .count && $0 == 0) }) else {
            throw BenchFailure("the figure “\(name)” needs \(figure.times) values greater than 0")
        }
        values[figure] = numbers
    }
}

/// One figure beside its baseline.
struct CheckResult: Equatable {
    var figure: CheckFigure
    var values: [Double]
    var baseline: Double
    /// Whether the baseline is of another processor: there the ratio of a system call to a computation is another one.
    var isOfOtherProcessor = false

    /// By how much it may be worse. Sizes do not depend on the processor.
    var tolerance: Double { figure.tolerance * (isOfOtherProcessor && figure.kind == .ratio ? 1.5 : 1) }

    /// Whether most of the values are too large: three of five.
    var isWorse: Bool { 2 * values.count { $0 > baseline * tolerance } > values.count }
    /// Whether most of the values are so small that the baseline should be renewed.
    var isBetter: Bool { 2 * values.count { $0 * tolerance < baseline } > values.count }

    private var list: String { values.map { figure.text($0) }.joined(separator: "  ") }

    static let heading = "figure".padded(54) + "measured".padded(36) + "baseline".aligned(12)

    var line: String {
        let verdict = isWorse ? "WORSE" : isBetter ? "better" : "ok"
        return figure.rawValue.padded(54) + list.padded(36) + figure.text(baseline).aligned(12) + "  " + verdict
    }

    /// What is wrong, for a figure that is worse.
    func sentence(_ commit: String) -> String {
        let limit = figure.text(baseline * tolerance)
        return
            "\(figure.rawValue): measured \(list); more than \(limit) is too much, as the baseline of commit \(commit) is "
            + figure.text(baseline)
    }

    /// Compares all figures.
    ///
    /// - Throws: a `BenchFailure` if one was not measured.
    static func compare(_ measured: CheckRun, with baseline: CheckRun) throws -> [CheckResult] {
        try CheckFigure.allCases.map { figure in
            guard let values = measured.values[figure], values.count == figure.times else {
                throw BenchFailure("“\(figure.rawValue)” was not measured \(figure.times) times")
            }
            return CheckResult(
                figure: figure, values: values, baseline: baseline.typical(figure),
                isOfOtherProcessor: measured.machine.processor != baseline.machine.processor
                    || measured.machine.processors != baseline.machine.processors)
        }
    }
}
