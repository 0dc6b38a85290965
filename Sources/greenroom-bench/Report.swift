import Glibc
import JSON

/// The unit of a figure.
enum Unit: String {
    case seconds, perSecond, bytes, wakeupsPerSecond, count

    /// Whether a larger value is better.
    var isMoreBetter: Bool { self == .perSecond }
}

/// One line of the report: a value of greenroomd and the same value of a peer, measured in the same run.
struct Figure {
    var name: String
    var unit: Unit
    /// `nil` if the program that is measured cannot run on this machine.
    var ours: Double?
    var peer: String
    /// `nil` if the peer cannot run on this machine.
    var theirs: Double?
    /// Whether the value meets a requirement, or `nil` if there is none.
    var isRequired: Bool?
    /// Replaces the comparison in the table.
    var remark: String?

    /// The ratio to the peer's value; above 1 is better. `nil` if a value is missing or 0.
    var advantage: Double? {
        guard remark == nil, let theirs, let ours, theirs > 0, ours > 0 else { return nil }
        return unit.isMoreBetter ? ours / theirs : theirs / ours
    }
}

/// Prints the figures as a table while they are measured, or all of them as JSON at the end.
final class Report {
    private let wantsJSON: Bool
    private var sections: [(title: String, figures: [Figure])] = []
    var machine: [(String, String)] = []

    init(wantsJSON: Bool) { self.wantsJSON = wantsJSON }

    private func show(_ line: String) {
        guard !wantsJSON else { return }
        (line + "\n").withCString { _ = write(STDOUT_FILENO, $0, strlen($0)) }
    }

    func begin() {
        for (name, value) in machine { show(name.padded(12) + value) }
    }

    /// Starts a section of the table.
    ///
    /// - Parameters:
    ///   - title: what is measured.
    ///   - how: how it is measured.
    func section(_ title: String, _ how: String) {
        sections.append((title, []))
        show("")
        show(title.padded(Self.widths[0] + 2) + "greenroomd".aligned(Self.widths[1]) + "peer".aligned(Self.widths[2]))
        show("  (\(how))")
    }

    private static let widths = [44, 12, 12, 16]

    func add(_ figure: Figure) {
        sections[sections.count - 1].figures.append(figure)
        show(
            "  " + figure.name.padded(Self.widths[0])
                + (figure.ours.map { text($0, figure.unit) } ?? "–").aligned(Self.widths[1])
                + (figure.theirs.map { text($0, figure.unit) } ?? "–").aligned(Self.widths[2])
                + verdict(figure).aligned(Self.widths[3]) + "  " + figure.peer)
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

    private func verdict(_ figure: Figure) -> String {
        if let remark = figure.remark { return remark }
        if let isRequired = figure.isRequired { return isRequired ? "ok" : "NOT OK" }
        guard let advantage = figure.advantage else { return "" }
        // A smaller difference is within the variation between runs.
        if advantage > 1.05 { return "\(factor(advantage))× better" }
        if advantage < 1 / 1.05 { return "\(factor(1 / advantage))× worse" }
        return "equal"
    }

    private func factor(_ value: Double) -> String {
        value < 9.95 ? fixed(value, digits: value < 1.95 ? 2 : 1) : fixed(value, digits: 0)
    }

    // MARK: JSON

    /// Prints all figures in one document, if JSON is wanted.
    func finish() {
        guard wantsJSON else { return }
        let figures = sections.flatMap { section in section.figures.map { json($0, section.title) } }
        let document = JSONValue.object([
            ("machine", .object(machine.map { ($0, .string($1)) })), ("figures", .array(figures)),
        ])
        print(document.serialized(pretty: true))
    }

    private func json(_ figure: Figure, _ section: String) -> JSONValue {
        var keys: [(String, JSONValue)] = [
            ("section", .string(section)), ("name", .string(figure.name)), ("unit", .string(figure.unit.rawValue)),
        ]
        if let ours = figure.ours { keys.append(("greenroomd", .number(ours))) }
        keys.append(("peer", .string(figure.peer)))
        if let theirs = figure.theirs { keys.append(("peerValue", .number(theirs))) }
        if let advantage = figure.advantage { keys.append(("advantage", .number(advantage))) }
        if let remark = figure.remark { keys.append(("remark", .string(remark))) }
        if let isRequired = figure.isRequired { keys.append(("ok", .bool(isRequired))) }
        return .object(keys)
    }
}

// MARK: Formatting

private func text(_ value: Double, _ unit: Unit) -> String {
    switch unit {
    case .seconds: duration(value)
    case .perSecond: grouped(value) + "/s"
    case .bytes:
        value < 1_048_576 ? "\(fixed(value / 1024, digits: 0)) KiB" : "\(fixed(value / 1_048_576, digits: 2)) MiB"
    case .wakeupsPerSecond: value == 0 ? "0/s" : fixed(value, digits: 1) + "/s"
    case .count: grouped(value)
    }
}

private func duration(_ seconds: Double) -> String {
    switch seconds {
    case ..<9.95e-6: fixed(seconds * 1e6, digits: 1) + " µs"
    case ..<999.5e-6: fixed(seconds * 1e6, digits: 0) + " µs"
    case ..<99.95e-3: fixed(seconds * 1e3, digits: 2) + " ms"
    case ..<999.5e-3: fixed(seconds * 1e3, digits: 0) + " ms"
    default: fixed(seconds, digits: 2) + " s"
    }
}

/// Formats a difference with its sign: `+45 µs`.
private func difference(_ seconds: Double) -> String {
    (seconds < 0 ? "−" : "+") + duration(abs(seconds))
}

func fixed(_ value: Double, digits: Int) -> String {
    let scale = (0..<digits).reduce(1.0) { scale, _ in scale * 10 }
    let whole = Int((value * scale).rounded())
    guard digits > 0 else { return String(whole) }
    let fraction = String(whole % Int(scale))
    return "\(whole / Int(scale))." + String(repeating: "0", count: digits - fraction.count) + fraction
}

/// Formats a number with separators: `12,345`.
private func grouped(_ value: Double) -> String {
    var text = ""
    for (index, digit) in String(Int(value.rounded())).reversed().enumerated() {
        if index > 0, index % 3 == 0 { text.append(",") }
        text.append(digit)
    }
    return String(text.reversed())
}

extension String {
    /// Appends spaces.
    fileprivate func padded(_ width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
    /// Prepends spaces.
    fileprivate func aligned(_ width: Int) -> String { String(repeating: " ", count: max(0, width - count)) + self }
}
