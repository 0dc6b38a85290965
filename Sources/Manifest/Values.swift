/// A time span as systemd.time(7) writes it: `5s`, `1min 30s`, `500ms`, a bare number of seconds, `infinity`.
///
/// - Returns: `.some(nil)` for infinity; `nil` for what is no time span, or one of more than a century.
package func parseTimeSpan(_ text: String) -> Duration?? {
    if text == "infinity" { return .some(nil) }
    var rest = Substring(text)
    var total = Duration.zero
    var found = false
    while true {
        rest = trimmed(rest)
        guard !rest.isEmpty else { return found ? .some(total) : nil }
        guard let (number, fraction) = takeDecimal(&rest) else { return nil }
        rest = trimmed(rest)
        let name = rest.prefix { $0.isLetter || $0 == "µ" }
        rest = rest.dropFirst(name.count)
        guard let unit = timeUnits.first(where: { $0.names.contains(name) })?.microseconds, number <= longestSpan / unit
        else { return nil }
        // Six digits after the point: a microsecond is the smallest unit.
        let micro = number * unit + fraction * unit / 1_000_000
        total += .microseconds(micro)
        guard total <= .microseconds(longestSpan) else { return nil }
        found = true
    }
}

/// A hundred years in microseconds.
private let longestSpan: Int64 = 100 * 31_557_600 * 1_000_000

private let timeUnits: [(names: [Substring], microseconds: Int64)] = [
    (["", "s", "sec", "second", "seconds"], 1_000_000), (["us", "usec", "µs", "μs"], 1), (["ms", "msec"], 1000),
    (["m", "min", "minute", "minutes"], 60_000_000), (["h", "hr", "hour", "hours"], 3_600_000_000),
    (["d", "day", "days"], 86_400_000_000), (["w", "week", "weeks"], 604_800_000_000),
    (["M", "month", "months"], 2_629_800_000_000), (["y", "year", "years"], 31_557_600_000_000),
]

/// A number with at most 18 digits, and its fraction in millionths.
private func takeDecimal(_ text: inout Substring) -> (whole: Int64, millionths: Int64)? {
    let digits = text.prefix { ("0"..."9").contains($0) }
    guard !digits.isEmpty, digits.count <= 18, let whole = Int64(digits) else { return nil }
    text = text.dropFirst(digits.count)
    guard text.first == "." else { return (whole, 0) }
    let fraction = text.dropFirst().prefix { ("0"..."9").contains($0) }
    guard !fraction.isEmpty else { return nil }
    text = text.dropFirst(1 + fraction.count)
    let six = fraction.prefix(6) + String(repeating: "0", count: max(0, 6 - fraction.count))
    return Int64(six).map { (whole, $0) }
}

/// As `parseTimeSpan` reads it: `1min 30s`.
package func formatTimeSpan(_ time: Duration?) -> String {
    guard let time else { return "infinity" }
    let (seconds, attoseconds) = time.components
    var left = seconds * 1_000_000 + attoseconds / 1_000_000_000_000
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
/// - Returns: `nil` for what is none.
package func parseSize(_ text: String) -> UInt64? {
    var rest = Substring(text)
    guard let (whole, millionths) = takeDecimal(&rest) else { return nil }
    let units = ["": 0, "B": 0, "K": 10, "M": 20, "G": 30, "T": 40, "P": 50, "E": 60]
    guard let shift = units[String(trimmed(rest))] else { return nil }
    let unit = UInt64(1) << shift
    let (bytes, overflow) = UInt64(whole).multipliedReportingOverflow(by: unit)
    guard !overflow, bytes <= UInt64(Int64.max) else { return nil }
    return bytes + unit / 1_000_000 * UInt64(millionths) + unit % 1_000_000 * UInt64(millionths) / 1_000_000
}

/// For people: `64.0M`.
package func formatSize(_ bytes: UInt64) -> String {
    var value = Double(bytes)
    var unit = ""
    for next in ["K", "M", "G", "T", "P"] where value >= 1024 {
        value /= 1024
        unit = next
    }
    guard !unit.isEmpty else { return "\(bytes)B" }
    let tenths = Int64((value * 10).rounded())
    return "\(tenths / 10).\(tenths % 10)\(unit)"
}

/// systemd's booleans.
func parseBoolean(_ text: String) -> Bool? {
    switch text.lowercased() {
    case "1", "yes", "y", "true", "t", "on": true
    case "0", "no", "n", "false", "f", "off": false
    default: nil
    }
}

/// A signal by name or number: `SIGUSR1`, `USR1`, `10`, `SIGRTMIN+1`, `RTMAX-2` (signal(7), glibc's real-time range).
func parseSignal(_ text: String) -> Int32? {
    if let number = Int32(text), (1...64).contains(number), text.utf8.allSatisfy({ $0 >= 48 }) { return number }
    let name = text.hasPrefix("SIG") ? text.dropFirst(3) : Substring(text)
    if let number = signalNumbers[String(name)] { return number }
    for (prefix, base, sign) in [("RTMIN", Int32(34), Int32(1)), ("RTMAX", Int32(64), Int32(-1))]
    where name.hasPrefix(prefix) {
        let rest = name.dropFirst(prefix.count)
        if rest.isEmpty { return base }
        guard rest.first == (sign > 0 ? "+" : "-"), let offset = Int32(rest.dropFirst()), (0...30).contains(offset),
            rest.dropFirst().first != "+", rest.dropFirst().first != "-"
        else { return nil }
        return base + sign * offset
    }
    return nil
}

private let signalNumbers: [String: Int32] = [
    "HUP": 1, "INT": 2, "QUIT": 3, "ILL": 4, "TRAP": 5, "ABRT": 6, "BUS": 7, "FPE": 8, "KILL": 9, "USR1": 10,
    "SEGV": 11, "USR2": 12, "PIPE": 13, "ALRM": 14, "TERM": 15, "STKFLT": 16, "CHLD": 17, "CONT": 18, "STOP": 19,
    "TSTP": 20, "TTIN": 21, "TTOU": 22, "URG": 23, "XCPU": 24, "XFSZ": 25, "VTALRM": 26, "PROF": 27, "WINCH": 28,
    "IO": 29, "POLL": 29, "PWR": 30, "SYS": 31,
]
