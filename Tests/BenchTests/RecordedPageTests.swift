import JSON
import Testing

@testable import greenroom_bench

@Suite("Tables of a recorded run")
struct RecordedPageTests {
    private var run: Run {
        var run = Run(machine: [Run.Fact(name: "machine", value: "Linux 6.1"), Run.Fact(name: "peers", value: "none")])
        var core = Section(part: "core", title: "Core", how: "processor time")
        core.figures = [Figure(name: "events", unit: .perSecond, ours: 3000, peer: "pipe", theirs: 1000)]
        var memory = Section(part: "memory", title: "Footprint", how: "bytes")
        memory.figures = [
            Figure(name: "own", unit: .bytes, ours: 2048, peer: "1 process", theirs: 1024, remark: "+100.0 %"),
            Figure(name: "chromium", unit: .bytes, ours: nil, peer: "left out", remark: ""),
        ]
        var rest = Section(part: "rest", title: "Idle", how: "context switches")
        rest.figures = [Figure(name: "wakeups", unit: .wakeupsPerSecond, ours: 0, peer: "", isRequired: true)]
        run.sections = [core, memory, rest]
        return run
    }

    private let page = """
        # Page
        <!-- recorded: core rest -->
        anything
        <!-- end -->
        Text.
        <!-- recorded: machine -->
        <!-- end -->

        """

    @Test("blocks are replaced by the tables of their parts, and other text stays")
    func replaced() throws {
        let lines = try RecordedPage.rewritten(page, [run]).split(separator: "\n", omittingEmptySubsequences: false)
        let words = lines.map { String($0.split(separator: " ").first ?? "") }
        #expect(
            words == [
                "#", "<!--", "```", "Core", "(processor", "events", "", "Idle", "(context", "wakeups", "```", "<!--",
                "Text.", "<!--", "```", "machine", "peers", "```", "<!--", "",
            ])
        #expect(lines.contains { $0.contains("events") && $0.contains("3,000/s") && $0.contains("3.0× better") })
    }

    @Test("a block is of the run that has measured its parts")
    func several() throws {
        var other = Run(machine: [Run.Fact(name: "machine", value: "Linux 6.2")])
        other.sections = [Section(part: "hosting", title: "Hosting", how: "requests")]
        let page = "<!-- recorded: machine hosting -->\n<!-- end -->\n<!-- recorded: machine core -->\n<!-- end -->"
        let lines = try RecordedPage.rewritten(page, [run, other]).split(separator: "\n").filter {
            $0.hasPrefix("machine") || $0.hasPrefix("Hosting") || $0.hasPrefix("Core")
        }
        #expect(
            lines.map { String($0.prefix(21)).filter { $0 != " " } } == [
                "machineLinux6.2", "Hosting", "machineLinux6.1", "Core",
            ])
        #expect(throws: BenchFailure.self) {
            try RecordedPage.rewritten("<!-- recorded: core hosting -->\n<!-- end -->", [run, other])
        }
    }

    @Test("the summary is of the run that has measured all of its parts, in whatever order the runs are named")
    func summary() throws {
        var whole = Run(machine: [])
        whole.sections = [
            ("launches", "sequential"), ("launches", "parallel"), ("launches", "call → first line of main, p50"),
            ("resuming", "asleep in read(2), p50"), ("deadlines", "launch deadline to end of the process, p50"),
            ("deadlines", "launch deadline to end of the process, p99"), ("rest", "without an app"),
            ("rest", "with 1000 suspended apps"), ("rest", "wakeups in 10 s, 1000 suspended (must be 0)"),
            ("core", "events"),
        ].map { part, name in
            var section = Section(part: part, title: name, how: "")
            section.figures = [Figure(name: name, unit: .perSecond, ours: 7000, peer: "", theirs: nil)]
            return section
        }
        let page = "<!-- recorded: summary -->\n<!-- end -->"
        let first = try RecordedPage.rewritten(page, [run, whole])
        #expect(try RecordedPage.rewritten(page, [whole, run]) == first)
        #expect(first.contains("7,000/s") && !first.contains("3,000/s"))
    }

    @Test("a block can be what another program has printed")
    func text() throws {
        let page = "<!-- recorded: game.txt -->\nold\n<!-- end -->"
        let written = try RecordedPage.rewritten(page, [run], texts: ["game.txt": ["a  b", "1  2"]])
        #expect(written == "<!-- recorded: game.txt -->\n```\na  b\n1  2\n```\n<!-- end -->")
        #expect(throws: BenchFailure.self) { try RecordedPage.rewritten(page, [run], texts: ["other.txt": []]) }
    }

    @Test("a page that was written is what the run gives, and an edit by hand is found in its line")
    func edited() throws {
        let written = try RecordedPage.rewritten(page, [run])
        #expect(try RecordedPage.rewritten(written, [run]) == written)
        #expect(RecordedPage.firstDifference(written, written) == nil)
        let lines = written.split(separator: "\n", omittingEmptySubsequences: false)
        let number = try #require(lines.firstIndex { $0.contains("3,000/s") })
        var other = lines.map(String.init)
        other[number] = other[number].replacing("3,000/s", with: "9,000/s")
        let edited = other.joined(separator: "\n")
        #expect(RecordedPage.firstDifference(edited, try RecordedPage.rewritten(edited, [run])) == number + 1)
        #expect(RecordedPage.firstDifference(written, written + "more") == lines.count)
        #expect(RecordedPage.firstDifference(written, written + "\n") == lines.count + 1)
    }

    @Test(
        "a page whose blocks are incomplete, or name a part that was not measured, is refused",
        arguments: [
            "Text.", "<!-- recorded: core -->", "<!-- end -->", "<!-- recorded: turns -->\n<!-- end -->",
            "<!-- recorded: core -->\n<!-- recorded: rest -->\n<!-- end -->",
            "<!-- recorded: summary -->\n<!-- end -->",
        ])
    func refused(page: String) {
        #expect(throws: BenchFailure.self) { try RecordedPage.rewritten(page, [run]) }
    }

    @Test("a run is read as it was written")
    func roundTrip() throws {
        #expect(try Run(parsing: Array(run.json.serialized(pretty: true).utf8)) == run)
    }

    @Test("a figure of a section that the run does not have is refused")
    func section() {
        let text = run.json.serialized(pretty: false).replacing("\"title\":\"Core\"", with: "\"title\":\"Other\"")
        #expect(throws: BenchFailure.self) { try Run(parsing: Array(text.utf8)) }
    }
}
