/// A time span as systemd.time(7) writes it: `5s`, `1min 30s`, `500ms`, a bare number of seconds, `infinity`.
///
/// - Returns: `.some(nil)` for infinity; `nil` for what is no time span, or one of more than a century.
package func parseTimeSpan(_ text: String) -> Duration?? {
    var rest = trimmed(Array(text.utf8)[...])
    if rest.elementsEqual("infinity".utf8) { return .some(nil) }
    var total: UInt64 = 0
    var found = false
    while true {
        rest = rest.drop(while: isBlank)
        guard !rest.isEmpty else { return found ? .some(.microseconds(Int64(total))) : nil }
        guard let (whole, fraction) = takeDecimal(&rest) else { return nil }
        let hasBlank = rest.first.map(isBlank) ?? true
        rest = rest.drop(while: isBlank)
        // Letters, and the bytes of a µ.
        let name = rest.prefix { $0 | 0x20 >= UInt8(ascii: "a") && $0 | 0x20 <= UInt8(ascii: "z") || $0 >= 0x80 }
        rest = rest[name.endIndex...]
        // `12.34.56` is a slip, `12.34 .56` a sum (as in systemd).
        guard !name.isEmpty || hasBlank else { return nil }
        guard let unit = timeUnits.first(where: { $0.names.contains { name.elementsEqual($0.utf8) } })?.microseconds,
            whole <= longestSpan / unit
        else { return nil }
        total += whole * unit + tenths(of: unit, fraction)
        guard total <= longestSpan else { return nil }
        found = true
    }
}

/// A hundred years in microseconds: more is a mistake, and sums of it stay far from what 64 bits hold.
private let longestSpan: UInt64 = 100 * 31_557_600 * 1_000_000

private let timeUnits: [(names: [String], microseconds: UInt64)] = [
    (["", "s", "sec", "second", "seconds"], 1_000_000), (["us", "usec", "µs", "μs"], 1), (["ms", "msec"], 1000),
    (["m", "min", "minute", "minutes"], 60_000_000), (["h", "hr", "hour", "hours"], 3_600_000_000),
    (["d", "day", "days"], 86_400_000_000), (["w", "week", "weeks"], 604_800_000_000),
    (["M", "month", "months"], 2_629_800_000_000), (["y", "year", "years"], 31_557_600_000_000),
]

/// Digits behind a point, each worth a tenth of what the one before it was, in whole microseconds (as systemd counts).
private func tenths(of unit: UInt64, _ digits: ArraySlice<UInt8>) -> UInt64 {
    var worth = unit
    return digits.reduce(0) { sum, digit in
        worth /= 10
        return sum + UInt64(digit - UInt8(ascii: "0")) * worth
    }
}

/// `12`, `12.5`, `.5`: the number, and the digits behind the point.
private func takeDecimal(_ text: inout ArraySlice<UInt8>) -> (whole: UInt64, fraction: ArraySlice<UInt8>)? {
    let digits = text.prefix(while: isDigit)
    let behind = text[digits.endIndex...]
    guard behind.first == UInt8(ascii: ".") else {
        text = behind
        return number(digits).map { ($0, behind.prefix(0)) }
    }
    let fraction = behind.dropFirst().prefix(while: isDigit)
    text = text[fraction.endIndex...]
    guard !fraction.isEmpty else { return nil }
    return digits.isEmpty ? (0, fraction) : number(digits).map { ($0, fraction) }
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

/// A size in bytes: `64M`, `1.5G`, `1G 512M`; K, M, G, T, P, E by 1024, the larger ones first, as systemd.
///
/// - Returns: `nil` for what is none, or more than an `Int64` holds.
package func parseSize(_ text: String) -> UInt64? {
    var rest = Array(text.utf8)[...]
    var units = sizeUnits[...]
    var total: UInt64 = 0
    repeat {
        let digits = rest.drop(while: isBlank).prefix(while: isDigit)
        guard let whole = number(digits) else { return nil }
        rest = rest[digits.endIndex...]
        var fraction = rest.prefix(0)
        // No digit behind the point is fine here: `10.M`.
        if rest.first == UInt8(ascii: ".") {
            fraction = rest.dropFirst().prefix(while: isDigit)
            rest = rest[fraction.endIndex...]
        }
        rest = rest.drop(while: isBlank)
        let unit = units.firstIndex { $0.name == rest.first } ?? (units.endIndex - 1)
        guard units.indices.contains(unit) else { return nil }
        let factor = UInt64(1) << units[unit].shift
        if units[unit].name != nil { rest = rest.dropFirst() }
        units = units[(unit + 1)...]
        let (bytes, overflow) = whole.multipliedReportingOverflow(by: factor)
        guard !overflow, bytes <= UInt64(Int64.max) else { return nil }
        // Each is at most an Int64's largest: the sum of three is what 64 bits don't hold.
        total += part(of: factor, fraction)
        guard total <= UInt64(Int64.max) - bytes else { return nil }
        total += bytes
    } while !rest.isEmpty
    return total
}

/// By falling size; bytes may go without a name.
private let sizeUnits: [(name: UInt8?, shift: UInt64)] = [
    (UInt8(ascii: "E"), 60), (UInt8(ascii: "P"), 50), (UInt8(ascii: "T"), 40), (UInt8(ascii: "G"), 30),
    (UInt8(ascii: "M"), 20), (UInt8(ascii: "K"), 10), (UInt8(ascii: "B"), 0), (nil, 0),
]

/// Digits behind a point, of a unit, rounded down. What is behind the eighteenth counts for nothing.
private func part(of unit: UInt64, _ digits: ArraySlice<UInt8>) -> UInt64 {
    let digits = digits.prefix(18)
    let divisor = repeatElement(UInt64(10), count: digits.count).reduce(1, *)
    // Less than the divisor, so that the quotient is less than the unit.
    let product = (number(digits) ?? 0).multipliedFullWidth(by: unit)
    return divisor.dividingFullWidth(product).quotient
}

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
    let isNegative = text.utf8.first == UInt8(ascii: "-")
    guard let size = number(Array(text.utf8.dropFirst(isNegative ? 1 : 0))[...]), let magnitude = Int(exactly: size)
    else { return nil }
    let value = isNegative ? -magnitude : magnitude
    return range.contains(value) ? value : nil
}

/// `22`, `022`, `0777`: octal digits alone, as for UMask=.
func parseOctal(_ text: String, upTo maximum: UInt32) -> UInt32? {
    guard !text.isEmpty else { return nil }
    var value: UInt32 = 0
    for byte in text.utf8 {
        guard let digit = hexDigit(byte), digit < 8 else { return nil }
        value = value << 3 | digit
        guard value <= maximum else { return nil }
    }
    return value
}

/// `0%` to `100%`, whole.
func parsePercent(_ text: String) -> Int? {
    parsePermyriad(text).flatMap { $0 % 100 == 0 ? $0 / 100 : nil }
}

/// `0%` to `100%`, with two digits behind the point, in hundredths of a percent (as systemd).
func parsePermyriad(_ text: String) -> Int? {
    let bytes = Array(text.utf8)
    guard bytes.last == UInt8(ascii: "%") else { return nil }
    let parts = bytes.dropLast().split(separator: UInt8(ascii: "."), maxSplits: 1, omittingEmptySubsequences: false)
    guard let whole = parts.first.flatMap(number), whole <= 100 else { return nil }
    var hundredths: UInt64 = 0
    if parts.count == 2 {
        guard (1...2).contains(parts[1].count), let digits = number(parts[1]) else { return nil }
        hundredths = parts[1].count == 1 ? digits * 10 : digits
    }
    let sum = Int(whole * 100 + hundredths)
    return sum <= 10_000 ? sum : nil
}
