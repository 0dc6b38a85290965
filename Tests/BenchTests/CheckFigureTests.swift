import JSON
import Testing

@testable import greenroom_bench

@Suite("Comparison of make bench-check")
struct CheckFigureTests {
    /// A run in which each figure has these values, or as many as it needs of one value.
    private func run(_ value: Double = 2, _ changes: [CheckFigure: [Double]] = [:]) -> CheckRun {
        var run = CheckRun(
            commit: "0123456789", machine: Machine(kernel: "6.1", processors: 2, processor: "A \"fast\" one"))
        for figure in CheckFigure.allCases {
            let usual = figure.kind == .count ? 0 : value
            run.values[figure] = changes[figure] ?? Array(repeating: usual, count: figure.times)
        }
        return run
    }

    private func result(_ figure: CheckFigure, _ values: [Double]) throws -> CheckResult {
        let results = try CheckResult.compare(run(2, [figure: values]), with: run())
        let others = results.filter { $0.figure != figure }
        #expect(others.allSatisfy { !$0.isWorse && !$0.isBetter })
        return try #require(results.first { $0.figure == figure })
    }

    @Test("a figure is worse if three of its five values are above 1.5 times the baseline")
    func threeOfFive() throws {
        #expect(try result(.resuming, [3.1, 2, 3.1, 2, 3.1]).isWorse)
        #expect(try !result(.resuming, [30, 2, 30, 2, 2]).isWorse)
        #expect(try !result(.resuming, [3, 3, 3, 3, 3]).isWorse)
    }

    @Test("the p99 of deadlines may be 2.5 times the baseline")
    func tail() throws {
        #expect(try !result(.deadlineTail, [4.9, 4.9, 4.9, 4.9, 4.9]).isWorse)
        #expect(try result(.deadlineTail, [5.1, 5.1, 5.1, 4, 4]).isWorse)
    }

    @Test("against the baseline of another processor a time may be 1.5 times worse again, a size may not")
    func otherProcessor() throws {
        var measured = run(2, [.resuming: [4, 4, 4, 4, 4], .idleMemory: [3.1]])
        measured.machine.processor = "another"
        let results = try CheckResult.compare(measured, with: run())
        #expect(results.first { $0.figure == .resuming }?.isWorse == false)
        #expect(results.first { $0.figure == .idleMemory }?.isWorse == true)
    }

    @Test("memory is measured once and compared in bytes")
    func memory() throws {
        #expect(try result(.memoryPerApp, [3.1]).isWorse)
        #expect(try !result(.memoryPerApp, [2.9]).isWorse)
    }

    @Test("one wakeup is worse than none")
    func wakeups() throws {
        #expect(try result(.wakeups, [1]).isWorse)
        #expect(try !result(.wakeups, [0]).isWorse)
    }

    @Test("the baseline of a figure is the median of its values")
    func median() throws {
        let baseline = run(2, [.answer: [9, 1, 2, 8, 1]])
        #expect(try CheckResult.compare(run(), with: baseline).first { $0.figure == .answer }?.baseline == 2)
    }

    @Test("a figure that is much smaller in most values is better")
    func better() throws {
        #expect(try result(.answer, [1, 1, 1, 2, 2]).isBetter)
        #expect(try !result(.answer, [1, 1, 2, 2, 2]).isBetter)
    }

    @Test("the sentence about a worse figure names it, its values, the baseline and the commit of the baseline")
    func sentence() throws {
        let sentence = try result(.resuming, [3.5, 3.25, 4, 2, 3]).sentence("0123456789")
        for part in [CheckFigure.resuming.rawValue, "3.50  3.25  4.00  2.00  3.00", "3.00 is", "0123456789", "2.00"] {
            #expect(sentence.contains(part))
        }
    }

    @Test("a figure that was not measured is refused")
    func unmeasured() {
        var measured = run()
        measured.values[.answer] = nil
        #expect(throws: BenchFailure.self) { try CheckResult.compare(measured, with: run()) }
    }

    @Test("a baseline is read as it was written")
    func roundTrip() throws {
        let run = run(1.25, [.wakeups: [0], .idleMemory: [7_864_320]])
        #expect(try CheckRun(parsing: Array(run.json.serialized(pretty: true).utf8)) == run)
    }

    @Test(
        "a baseline that lacks something, or has something else, is refused",
        arguments: [
            ("\"commit\": \"0123456789\"", "\"commit\": 5", "“commit”"),
            ("\"processors\": 2", "\"processors\": \"2\"", "“processors”"),
            ("\"figures\"", "\"values\"", "“figures”"),
            ("PSS of the idle daemon", "PSS of a busy daemon", "unknown"),
            ("deadline lateness / timerfd, p99", "deadline lateness / timerfd, p50", "twice"),
            ("\"unit\": \"bytes\"", "\"unit\": \"ratio\"", "unit"),
            ("2.0,", "0.0,", "greater than 0"),
            ("2.0,", "", "5 values"),
            ("{", "", "line 2"),
        ])
    func refused(text: String, other: String, sentence: String) throws {
        let document = run().json.serialized(pretty: true)
        let range = try #require(document.firstRange(of: text))
        let error = #expect(throws: (any Error).self) {
            try CheckRun(parsing: Array(document.replacingCharacters(in: range, with: other).utf8))
        }
        #expect("\(try #require(error))".contains(sentence))
    }

    @Test("a baseline without a figure is refused, and the figure is named", arguments: CheckFigure.allCases)
    func missing(figure: CheckFigure) throws {
        var run = run()
        run.values[figure] = nil
        let error = #expect(throws: BenchFailure.self) {
            try CheckRun(parsing: Array(run.json.serialized(pretty: false).utf8))
        }
        #expect(try #require(error).description.contains(figure.rawValue))
    }
}

extension String {
    fileprivate func replacingCharacters(in range: Range<String.Index>, with other: String) -> String {
        String(self[..<range.lowerBound]) + other + String(self[range.upperBound...])
    }
}
