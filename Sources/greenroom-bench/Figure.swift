import JSON

/// The unit of a figure.
enum Unit: String {
    case seconds, perSecond, bytes, wakeupsPerSecond, count

    /// Whether a larger value is better.
    var isMoreBetter: Bool { self == .perSecond }
}

/// One line of the report: a value of greenroomd and the same value of a peer, measured in the same run.
struct Figure: Equatable {
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

/// The figures that one part of the benchmark has measured in the same way: a table with a heading.
struct Section: Equatable {
    /// The name of the part, as for `ONLY=`.
    var part: String
    /// What is measured.
    var title: String
    /// How it is measured.
    var how: String
    var figures: [Figure] = []

    var heading: [String] {
        [
            title.padded(Table.widths[0] + 2) + "greenroomd".aligned(Table.widths[1]) + "peer".aligned(Table.widths[2]),
            "  (\(how))",
        ]
    }

    var lines: [String] { heading + figures.map(\.line) }
}

// MARK: The table

private enum Table {
    static let widths = [44, 12, 12, 16]
}

extension Figure {
    /// The line of the table.
    var line: String {
        let ours = ours.map { text($0, unit) } ?? "–"
        let theirs = theirs.map { text($0, unit) } ?? "–"
        let line =
            "  " + name.padded(Table.widths[0]) + ours.aligned(Table.widths[1]) + theirs.aligned(Table.widths[2])
            + verdict.aligned(Table.widths[3]) + "  " + peer
        return line.lastIndex { $0 != " " }.map { String(line[...$0]) } ?? ""
    }

    private var verdict: String {
        if let remark { return remark }
        if let isRequired { return isRequired ? "ok" : "NOT OK" }
        guard let advantage else { return "" }
        // A smaller difference is within the variation between runs.
        if advantage > 1.05 { return "\(factor(advantage))× better" }
        if advantage < 1 / 1.05 { return "\(factor(1 / advantage))× worse" }
        return "equal"
    }
}

private func factor(_ value: Double) -> String {
    value < 9.95 ? fixed(value, digits: value < 1.95 ? 2 : 1) : fixed(value, digits: 0)
}

/// Formats a value with its unit.
func text(_ value: Double, _ unit: Unit) -> String {
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
func difference(_ seconds: Double) -> String {
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
    func padded(_ width: Int) -> String { self + String(repeating: " ", count: max(0, width - count)) }
    /// Prepends spaces.
    func aligned(_ width: Int) -> String { String(repeating: " ", count: max(0, width - count)) + self }
}
