/// A size as systemd writes it, to the base of 1024: `512B`, `13.7M`, `1.0G`.
package func formattedSize(_ bytes: UInt64) -> String {
    guard bytes >= 1024 else { return "\(bytes)B" }
    var value = Double(bytes)
    var units = ["B", "K", "M", "G", "T", "P", "E"][...]
    // With one decimal, 1023.95 and above rounds up to 1024.0.
    while value >= 1023.95, units.count > 1 {
        value /= 1024
        units = units.dropFirst()
    }
    let tenths = Int((value * 10).rounded())
    return "\(tenths / 10).\(tenths % 10)\(units.first ?? "B")"
}

/// How long ago something happened, with one unit: `just now`, `12s ago`, `3min ago`, `2 days ago`.
package func formattedAge(_ age: Duration) -> String {
    guard age >= .seconds(1) else { return "just now" }
    let seconds = age.components.seconds
    if seconds < 60 { return "\(seconds)s ago" }
    if seconds < 3600 { return "\(seconds / 60)min ago" }
    if seconds < 86400 { return "\(seconds / 3600)h ago" }
    return seconds < 172_800 ? "1 day ago" : "\(seconds / 86400) days ago"
}
