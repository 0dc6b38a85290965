import Glibc
import JSON
import Linux

/// Prints the figures as a table while they are measured, or all of them as JSON at the end.
final class Report {
    private let wantsJSON: Bool
    /// The file for the run as JSON, beside the table.
    private let recording: String?
    private var run = Run(machine: [])
    /// The name of the part that is measured.
    var part = ""

    init(wantsJSON: Bool, recording: String?) {
        self.wantsJSON = wantsJSON
        self.recording = recording
    }

    private func show(_ line: String) {
        guard !wantsJSON else { return }
        (line + "\n").withCString { _ = write(STDOUT_FILENO, $0, strlen($0)) }
    }

    /// Starts the report.
    ///
    /// - Parameter machine: what is measured, and where.
    func begin(_ machine: [Run.Fact]) {
        run.machine = machine
        for line in run.machineLines { show(line) }
    }

    /// Starts a section of the table.
    ///
    /// - Parameters:
    ///   - title: what is measured.
    ///   - how: how it is measured.
    func section(_ title: String, _ how: String) {
        let section = Section(part: part, title: title, how: how)
        run.sections.append(section)
        show("")
        for line in section.heading { show(line) }
    }

    func add(_ figure: Figure) {
        run.sections[run.sections.count - 1].figures.append(figure)
        show(figure.line)
    }

    /// Adds the same percentiles of two sets of values.
    func add(
        _ name: String, _ ours: Samples, _ peer: String, _ theirs: Samples?,
        at shares: [(String, Double)] = Report.usual
    ) {
        var (ours, theirs) = (ours, theirs)
        for (word, share) in shares {
            let their = theirs?.percentile(share)
            add(
                Figure(
                    name: "\(name), \(word)", unit: .seconds, ours: ours.percentile(share), peer: peer, theirs: their))
        }
    }

    /// Adds the same percentiles of two sets of values, with their differences instead of ratios.
    func addDifferences(_ name: String, _ ours: Samples, _ peer: String, _ theirs: Samples) {
        var (ours, theirs) = (ours, theirs)
        for (word, share) in Report.usual {
            let (our, their) = (ours.percentile(share), theirs.percentile(share))
            add(
                Figure(
                    name: "\(name), \(word)", unit: .seconds, ours: our, peer: peer, theirs: their,
                    remark: difference(our - their)))
        }
    }

    static let usual = [("p50", 0.5), ("p99", 0.99)]

    /// Prints all figures in one document, if JSON is wanted, and records them.
    func finish() throws {
        let document = run.json.serialized(pretty: true)
        if let recording { try replaceFile(at: recording, with: Array((document + "\n").utf8)) }
        if wantsJSON { print(document) }
    }
}
