import Glibc
import Linux
import Posix

/// Writes the results of recorded runs into a page.
///
/// A line `<!-- recorded: WORD… -->` begins a block of them and `<!-- end -->` ends it. A word is `summary`, `machine`, or the name of
/// a part, whose tables it stands for. The block is about one run: the first that has measured its parts. A word with the suffix `.txt` is
/// the name of what another program has printed.
enum RecordedPage {
    private static let begin = "<!-- recorded: "
    private static let end = "<!-- end -->"

    /// The page with its blocks as the runs give them.
    /// - Parameter texts: by file name.
    static func rewritten(_ page: String, _ runs: [Run], texts: [String: [String]] = [:]) throws -> String {
        var lines: [String] = []
        var isInside = false
        var blocks = 0
        for line in page.split(separator: "\n", omittingEmptySubsequences: false).map(String.init) {
            if line.hasPrefix(begin), line.hasSuffix(" -->") {
                guard !isInside else { throw BenchFailure("the block before “\(line)” has no end: expected \(end)") }
                let words = line.dropFirst(begin.count).dropLast(" -->".count).split(separator: " ").map(String.init)
                lines += [line, "```"] + (try block(words, runs, texts)) + ["```", end]
                isInside = true
                blocks += 1
            } else if line == end {
                guard isInside else { throw BenchFailure("\(end) ends no block") }
                isInside = false
            } else if !isInside {
                lines.append(line)
            }
        }
        guard !isInside else { throw BenchFailure("the last block has no end: expected \(end)") }
        guard blocks > 0 else { throw BenchFailure("there is no line “\(begin)… -->”") }
        return lines.joined(separator: "\n")
    }

    /// The number of the first line that differs, counted from 1; `nil` if the pages are the same.
    static func firstDifference(_ page: String, _ other: String) -> Int? {
        let (left, right) = (
            page.split(separator: "\n", omittingEmptySubsequences: false),
            other.split(separator: "\n", omittingEmptySubsequences: false)
        )
        if let index = zip(left, right).enumerated().first(where: { $1.0 != $1.1 })?.offset { return index + 1 }
        return left.count == right.count ? nil : min(left.count, right.count) + 1
    }

    private static func block(_ words: [String], _ runs: [Run], _ texts: [String: [String]]) throws -> [String] {
        if let name = words.first, words.count == 1, name.hasSuffix(".txt") {
            guard let text = texts[name] else { throw BenchFailure("there is no recorded text \(name)") }
            return text
        }
        let parts = words.filter { $0 != "machine" }.flatMap { $0 == "summary" ? Summary.parts : [$0] }
        guard
            let run = runs.first(where: { run in parts.allSatisfy { part in run.sections.contains { $0.part == part } }
            })
        else { throw BenchFailure("no recorded run has all of: \(parts.joined(separator: ", "))") }
        // Tables have an empty line between them.
        return Array(try words.map { try lines($0, run) }.joined(separator: [""]))
    }

    private static func lines(_ word: String, _ run: Run) throws -> [String] {
        if word == "machine" { return run.machineLines }
        if word == "summary" { return try Summary.lines(run) }
        return Array(run.sections.filter { $0.part == word }.map(\.lines).joined(separator: [""]))
    }

    // MARK: The command

    /// Writes the recorded runs into the page, or only checks that they are written there.
    ///
    /// - Parameter arguments: `[--check] RUN… PAGE`. A run is a file of JSON, or a text (.txt).
    /// - Returns: `nil` for other arguments.
    static func command(_ arguments: [String]) throws -> Bool? {
        let isChecked = arguments.first == "--check"
        let files = isChecked ? Array(arguments.dropFirst()) : arguments
        guard files.count >= 2, let path = files.last else { return nil }
        var texts: [String: [String]] = [:]
        for text in files.dropLast() where text.hasSuffix(".txt") {
            let lines = String(decoding: try readFile(at: text, limit: 1 << 20), as: UTF8.self).split(
                separator: "\n", omittingEmptySubsequences: false)
            texts[String(text.split(separator: "/").last ?? "")] = lines.dropLast().map(String.init)
        }
        let runs = try files.dropLast().filter { !$0.hasSuffix(".txt") }.map { recording in
            do {
                return try Run(parsing: try readFile(at: recording, limit: 16 << 20))
            } catch {
                throw BenchFailure("\(recording): \(error)")
            }
        }
        let page = String(decoding: try readFile(at: path, limit: 16 << 20), as: UTF8.self)
        let other: String
        do {
            other = try rewritten(page, runs, texts: texts)
        } catch {
            throw BenchFailure("\(path): \(error)")
        }
        guard let line = firstDifference(page, other) else { return true }
        guard !isChecked else {
            throw BenchFailure("\(path):\(line): this is not what the recorded runs give; do not edit it by hand")
        }
        try replaceFile(at: path, with: Array(other.utf8))
        return true
    }
}

/// The ten results with which the page begins.
enum Summary {
    /// A result: the text for it, and the part and the name of its figures. One figure for each peer.
    private static let results: [(text: String, part: String, name: String)] = [
        ("launches, one after the other", "launches", "sequential"),
        ("launches, all at once", "launches", "parallel"),
        ("launch → first line of main, p50", "launches", "call → first line of main, p50"),
        ("suspended → first instruction, p50", "resuming", "asleep in read(2), p50"),
        ("killed after a launch deadline, p50", "deadlines", "launch deadline to end of the process, p50"),
        ("killed after a launch deadline, p99", "deadlines", "launch deadline to end of the process, p99"),
        ("memory of the idle daemon (PSS)", "rest", "without an app"),
        ("… with 1,000 suspended apps", "rest", "with 1000 suspended apps"),
        ("wakeups with 1,000 suspended apps", "rest", "wakeups in 10 s, 1000 suspended (must be 0)"),
        ("the core without the daemon", "core", "events"),
    ]

    /// The parts that they are of.
    static let parts = results.map(\.part)

    static func lines(_ run: Run) throws -> [String] {
        ["".padded(38) + "greenroomd".aligned(12)] + (try results.map { try line($0.text, $0.part, $0.name, run) })
    }

    private static func line(_ words: String, _ part: String, _ name: String, _ run: Run) throws -> String {
        let figures = run.sections.filter { $0.part == part }.flatMap(\.figures).filter { $0.name == name }
        guard let first = figures.first, let ours = first.ours else {
            throw BenchFailure("the recorded run has no figure “\(name)”; it must be a whole run, with cgroups")
        }
        let peers = figures.compactMap { figure in figure.theirs.map { "\(figure.peer) \(text($0, figure.unit))" } }
        return words.padded(38) + text(ours, first.unit).aligned(12) + "   " + peers.joined(separator: ", ")
    }
}
