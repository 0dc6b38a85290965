/// A time span as systemd.time(7) writes it: `5s`, `1min 30s`, `500ms`, a bare number of seconds, `infinity`.
///
/// - Returns: `.some(nil)` for infinity; `nil` for what is no time span, or one of more than a century.
package func parseTimeSpan(_ text: String) -> Duration?? {
    var rest = trimmed(Array(text.utf8)[...])
    if rest.elementsEqual("infinity".utf8) { return .some(nil) }
    var total: Int64 = 0
    var found = false
    while true {
        rest = rest.drop(while: isBlank)
        guard !rest.isEmpty else { return found ? .some(.microseconds(total)) : nil }
        guard let (number, millionths) = takeDecimal(&rest) else { return nil }
        let hasBlank = rest.first.map(isBlank) ?? true
        rest = rest.drop(while: isBlank)
        // Letters, and the bytes of a µ.
        let name = rest.prefix { $0 | 0x20 >= UInt8(ascii: "a") && $0 | 0x20 <= UInt8(ascii: "z") || $0 >= 0x80 }
        rest = rest[name.endIndex...]
        // `12.34.56` is a slip, `12.34 .56` a sum (as in systemd).
        guard !name.isEmpty || hasBlank else { return nil }
        guard let unit = timeUnits.first(where: { $0.names.contains { name.elementsEqual($0.utf8) } })?.microseconds,
            number <= longestSpan / unit
        else { return nil }
        total += number * unit + partOf(unit, millionths)
        guard total <= longestSpan else { return nil }
        found = true
    }
}

/// A hundred years in microseconds: more is a mistake, and sums of it stay far from what 64 bits hold.
private let longestSpan: Int64 = 100 * 31_557_600 * 1_000_000

private let timeUnits: [(names: [String], microseconds: Int64)] = [
    (["", "s", "sec", "second", "seconds"], 1_000_000), (["us", "usec", "µs", "μs"], 1), (["ms", "msec"], 1000),
    (["m", "min", "minute", "minutes"], 60_000_000), (["h", "hr", "hour", "hours"], 3_600_000_000),
    (["d", "day", "days"], 86_400_000_000), (["w", "week", "weeks"], 604_800_000_000),
    (["M", "month", "months"], 2_629_800_000_000), (["y", "year", "years"], 31_557_600_000_000),
]


/// Millionths of a unit, rounded down, without leaving 64 bits: a year's worth of microseconds times a million would.
private func partOf(_ unit: Int64, _ millionths: Int64) -> Int64 {
    unit / 1_000_000 * millionths + unit % 1_000_000 * millionths / 1_000_000
}

/// A number with at most 18 digits, and its fraction in millionths: `12`, `12.5`, `.5`. What is behind the sixth digit after
/// the point counts for nothing: a microsecond is the smallest unit.
private func takeDecimal(_ text: inout ArraySlice<UInt8>) -> (whole: Int64, millionths: Int64)? {
    let digits = text.prefix(while: isDigit)
    guard digits.count <= 18 else { return nil }
    text = text[digits.endIndex...]
    let whole = digits.reduce(Int64(0)) { $0 * 10 + Int64($1 - UInt8(ascii: "0")) }
    guard text.first == UInt8(ascii: ".") else { return digits.isEmpty ? nil : (whole, 0) }
    let fraction = text.dropFirst().prefix(while: isDigit)
    guard !fraction.isEmpty else { return nil }
    text = text[fraction.endIndex...]
    var millionths: Int64 = 0
    var place: Int64 = 100_000
    for digit in fraction.prefix(6) {
        millionths += Int64(digit - UInt8(ascii: "0")) * place
        place /= 10
    }
    return (whole, millionths)
}

/// As `parseTimeSpan` reads it: `1min 30s`. What is below a microsecond is left away; less than nothing is `0`.
package func formatTimeSpan(_ time: Duration?) -> String {
    guard let time else { return "infinity" }
    let (seconds, attoseconds) = time.components
    // No span of ours is longer than a century; one that is is shown as long as it can be, in days.
    guard seconds < Int64.max / 1_000_000 - 1 else { return "\(seconds / 86_400)d" }
    guard seconds >= 0 else { return "0" }
    var left = seconds * 1_000_000 + max(0, attoseconds / 1_000_000_000_000)
    var parts: [String] = []
    for (name, unit) in [
        ("d", 86_400_000_000), ("h", 3_600_000_000), ("min", 60_000_000), ("s", 1_000_000), ("ms", 1000), ("us", 1),
    ] as [(String, Int64)] where left >= unit {
        parts.append("\(left / unit)\(name)")
        left %= unit
    }
    return parts.isEmpty ? "0" : parts.joined(separator: " ")
}

/// A size in bytes: `64M`, `1.5G`; K, M, G, T, P, E by 1024, as systemd.
///
/// - Returns: `nil` for what is none, or more than an `Int64` holds.
package func parseSize(_ text: String) -> UInt64? {
    var rest = Array(text.utf8)[...]
    guard let (whole, millionths) = takeDecimal(&rest) else { return nil }
    rest = trimmed(rest)
    guard rest.count <= 1, let shift = sizeUnits[rest.first ?? UInt8(ascii: "B")] else { return nil }
    let unit = Int64(1) << shift
    let (bytes, overflow) = whole.multipliedReportingOverflow(by: unit)
    guard !overflow else { return nil }
    // Of a multiple of the unit and less than one unit: no overflow.
    return UInt64(bytes + partOf(unit, millionths))
}

private let sizeUnits: [UInt8: Int64] = [
    UInt8(ascii: "B"): 0, UInt8(ascii: "K"): 10, UInt8(ascii: "M"): 20, UInt8(ascii: "G"): 30, UInt8(ascii: "T"): 40,
    UInt8(ascii: "P"): 50, UInt8(ascii: "E"): 60,
]

/// For people: `64.0M`.
package func formatSize(_ bytes: UInt64) -> String {
    var value = Double(bytes)
    var unit = ""
    // What would be shown as 1024.0 is one of the next unit.
    for next in ["K", "M", "G", "T", "P", "E"] where (value * 10).rounded() >= 10_240 {
        value /= 1024
        unit = next
    }
    guard !unit.isEmpty else { return "\(bytes)B" }
    let tenths = Int64((value * 10).rounded())
    return "\(tenths / 10).\(tenths % 10)\(unit)"
}

/// systemd's booleans.
func parseBoolean(_ text: String) -> Bool? {
    guard isASCII(text) else { return nil }
    switch text.lowercased() {
    case "1", "yes", "y", "true", "t", "on": return true
    case "0", "no", "n", "false", "f", "off": return false
    default: return nil
    }
}

/// Decimal digits, with a minus where the range has room for one; no other signs.
func parseNumber(_ text: String, in range: ClosedRange<Int>) -> Int? {
    let digits = text.utf8.first == UInt8(ascii: "-") ? text.utf8.dropFirst() : text.utf8[...]
    guard digits.first.map(isDigit) == true, let number = Int(text) else { return nil }
    return range.contains(number) ? number : nil
}

/// `0%` to `100%`, whole.
func parsePercent(_ text: String) -> Int? {
    guard text.utf8.last == UInt8(ascii: "%"), let first = text.utf8.first, isDigit(first) else { return nil }
    return parseNumber(String(text.dropLast()), in: 0...100)
}
