// The inverse of the parser, to check that it parses what it should.

/// Formats a time span as systemd does, such as `1min 30s`; `parseTimeSpan` parses it.
///
/// The value is rounded down to microseconds. A negative value is formatted as `0`, and `nil` as `infinity`.
package func formatTimeSpan(_ time: Duration?) -> String {
    guard let time else { return "infinity" }
    let (seconds, attoseconds) = time.components
    // A value that would overflow is formatted in days. Values of manifests never exceed 100 years.
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

/// Formats a size with one decimal, such as `64.0M`.
package func formatSize(_ bytes: UInt64) -> String {
    var value = Double(bytes)
    var unit = ""
    // A value that rounds to 1024.0 is shown in the next unit.
    for next in ["K", "M", "G", "T", "P", "E"] where (value * 10).rounded() >= 10_240 {
        value /= 1024
        unit = next
    }
    guard !unit.isEmpty else { return "\(bytes)B" }
    let tenths = Int64((value * 10).rounded())
    return "\(tenths / 10).\(tenths % 10)\(unit)"
}
