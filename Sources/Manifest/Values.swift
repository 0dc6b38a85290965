/// Parses a time span of systemd.time(7): `5s`, `1min 30s`, `500ms`, a number of seconds without a unit, or `infinity`.
///
/// - Returns: `.some(nil)` for infinity. `nil` if the text is invalid or the time span exceeds 100 years.
package func parseTimeSpan(_ text: String) -> Duration?? {
    var rest = trimmed(Array(text.utf8)[...])
    if rest.elementsEqual("infinity".utf8) { return .some(nil) }
    var total: UInt64 = 0
    var found = false
    while true {
        rest = rest.drop(while: isBlank)
        guard !rest.isEmpty else { return found ? .some(.microseconds(Int64(total))) : nil }
        guard let (whole, fraction) = scanDecimal(&rest) else { return nil }
        let hasBlank = rest.first.map(isBlank) ?? true
        rest = rest.drop(while: isBlank)
        // Letters and the non-ASCII bytes of µ.
        let name = rest.prefix { $0 | 0x20 >= UInt8(ascii: "a") && $0 | 0x20 <= UInt8(ascii: "z") || $0 >= 0x80 }
        rest = rest[name.endIndex...]
        // As in systemd, `12.34.56` is invalid and `12.34 .56` is a sum.
        guard !name.isEmpty || hasBlank else { return nil }
        guard let unit = timeUnits.first(where: { $0.names.contains { name.elementsEqual($0.utf8) } })?.microseconds,
            whole <= longestSpan / unit
        else { return nil }
        total += whole * unit + tenths(of: unit, fraction)
        guard total <= longestSpan else { return nil }
        found = true
    }
}

/// 100 years in microseconds. A longer time span is a mistake, and sums of such values cannot overflow 64 bits.
private let longestSpan: UInt64 = 100 * 31_557_600 * 1_000_000

/// The longest time span of a setting.
package let longestTimeSpan = Duration.microseconds(Int64(longestSpan))

private let timeUnits: [(names: [String], microseconds: UInt64)] = [
    (["", "s", "sec", "second", "seconds"], 1_000_000), (["us", "usec", "µs", "μs"], 1), (["ms", "msec"], 1000),
    (["m", "min", "minute", "minutes"], 60_000_000), (["h", "hr", "hour", "hours"], 3_600_000_000),
    (["d", "day", "days"], 86_400_000_000), (["w", "week", "weeks"], 604_800_000_000),
    (["M", "month", "months"], 2_629_800_000_000), (["y", "year", "years"], 31_557_600_000_000),
]

/// The value of the digits after a decimal point, in whole microseconds. As in systemd, each digit's weight is rounded down.
private func tenths(of unit: UInt64, _ digits: ArraySlice<UInt8>) -> UInt64 {
    var weight = unit
    return digits.reduce(0) { sum, digit in
        weight /= 10
        return sum + UInt64(digit - UInt8(ascii: "0")) * weight
    }
}

/// Removes a number such as `12`, `12.5` or `.5` from the start of the text: the integer and the digits after the point.
private func scanDecimal(_ text: inout ArraySlice<UInt8>) -> (whole: UInt64, fraction: ArraySlice<UInt8>)? {
    let digits = text.prefix(while: isDigit)
    let rest = text[digits.endIndex...]
    guard rest.first == UInt8(ascii: ".") else {
        text = rest
        return number(digits).map { ($0, rest.prefix(0)) }
    }
    let fraction = rest.dropFirst().prefix(while: isDigit)
    text = text[fraction.endIndex...]
    guard !fraction.isEmpty else { return nil }
    return digits.isEmpty ? (0, fraction) : number(digits).map { ($0, fraction) }
}

/// Parses a size such as `64M`, `1.5G` or `1G 512M`. The units are powers of 1024; as in systemd, larger units come first.
///
/// - Returns: the size in bytes, or `nil` if the text is invalid or the size exceeds `Int64.max`.
package func parseSize(_ text: String) -> UInt64? {
    var rest = Array(text.utf8)[...]
    var units = sizeUnits[...]
    var total: UInt64 = 0
    repeat {
        let digits = rest.drop(while: isBlank).prefix(while: isDigit)
        guard let whole = number(digits) else { return nil }
        rest = rest[digits.endIndex...]
        var fraction = rest.prefix(0)
        // As in systemd, the digits after the point are optional: `10.M`.
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
        // Each term is at most Int64.max, so the sum of two fits into 64 bits and the sum of three may not.
        total += part(of: factor, fraction)
        guard total <= UInt64(Int64.max) - bytes else { return nil }
        total += bytes
    } while !rest.isEmpty
    return total
}

/// Sorted by size, largest first. The unit of bytes is optional.
private let sizeUnits: [(name: UInt8?, shift: UInt64)] = [
    (UInt8(ascii: "E"), 60), (UInt8(ascii: "P"), 50), (UInt8(ascii: "T"), 40), (UInt8(ascii: "G"), 30),
    (UInt8(ascii: "M"), 20), (UInt8(ascii: "K"), 10), (UInt8(ascii: "B"), 0), (nil, 0),
]

/// The value of the digits after a decimal point in a unit, rounded down. Digits after the eighteenth are ignored.
private func part(of unit: UInt64, _ digits: ArraySlice<UInt8>) -> UInt64 {
    let digits = digits.prefix(18)
    let divisor = repeatElement(UInt64(10), count: digits.count).reduce(1, *)
    // The digits are less than the divisor, so the quotient is less than the unit and fits.
    let product = (number(digits) ?? 0).multipliedFullWidth(by: unit)
    return divisor.dividingFullWidth(product).quotient
}

/// Parses a boolean as systemd does.
func parseBoolean(_ text: String) -> Bool? {
    guard isASCII(text) else { return nil }
    switch text.lowercased() {
    case "1", "yes", "y", "true", "t", "on": return true
    case "0", "no", "n", "false", "f", "off": return false
    default: return nil
    }
}

/// Parses decimal digits with an optional minus sign.
///
/// - Returns: `nil` if the text is invalid or the number is out of range.
func parseNumber(_ text: String, in range: ClosedRange<Int>) -> Int? {
    let isNegative = text.utf8.first == UInt8(ascii: "-")
    guard let size = number(Array(text.utf8.dropFirst(isNegative ? 1 : 0))[...]), let magnitude = Int(exactly: size)
    else { return nil }
    let value = isNegative ? -magnitude : magnitude
    return range.contains(value) ? value : nil
}

/// Parses octal digits such as `22`, `022` or `0777`.
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

/// Parses an integer percentage from `0%` to `100%`.
func parsePercent(_ text: String) -> Int? {
    parsePermyriad(text).flatMap { $0 % 100 == 0 ? $0 / 100 : nil }
}

/// Parses a percentage from `0%` to `100%` with at most two decimals, as in systemd.
///
/// - Returns: hundredths of a percent.
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
