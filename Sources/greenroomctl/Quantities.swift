import Glibc

/// Seconds as people read them: “3.2s”, “5s”, “28s”, “1min 30s”, “2h 5min”, “3 days 4h”.
package func timeSpan(_ seconds: Double) -> String {
    guard seconds.isFinite, seconds < 1e12 else { return "infinity" }
    let seconds = max(0, seconds)
    if seconds < 9.95, seconds != seconds.rounded() { return "\(decimal(seconds))s" }
    let whole = Int(seconds.rounded())
    func pair(_ large: Int, _ unit: String, _ small: Int, _ smallUnit: String) -> String {
        "\(large)\(unit)" + (small == 0 ? "" : " \(small)\(smallUnit)")
    }
    switch whole {
    case ..<60: return "\(whole)s"
    case ..<3600: return pair(whole / 60, "min", whole % 60, "s")
    case ..<86400: return pair(whole / 3600, "h", whole % 3600 / 60, "min")
    default: return pair(whole / 86400, whole < 172_800 ? " day" : " days", whole % 86400 / 3600, "h")
    }
}

/// One unit is enough for what is past: “3min ago”.
package func ago(_ seconds: Double) -> String {
    guard seconds >= 1 else { return "just now" }
    let whole = Int(min(seconds, 1e12))
    switch whole {
    case ..<60: return "\(whole)s ago"
    case ..<3600: return "\(whole / 60)min ago"
    case ..<86400: return "\(whole / 3600)h ago"
    default: return whole < 172_800 ? "1 day ago" : "\(whole / 86400) days ago"
    }
}

/// Short times, as a receipt measures them: “0.31s”, “52ms”.
package func measured(_ seconds: Double) -> String {
    guard seconds.isFinite, seconds >= 0, seconds < 9.95 else { return timeSpan(seconds) }
    if seconds < 0.1 { return "\(Int((seconds * 1000).rounded()))ms" }
    let hundredths = Int((seconds * 100).rounded())
    return "\(hundredths / 100).\(hundredths % 100 / 10)\(hundredths % 10)s"
}

/// Bytes as systemd shows them, to the base of 1024: “512B”, “13.7M”, “1.0G”.
package func size(_ bytes: Int64) -> String {
    var value = Double(max(0, bytes))
    var units = ["B", "K", "M", "G", "T", "P"][...]
    while value >= 1023.95, units.count > 1 {
        value /= 1024
        units = units.dropFirst()
    }
    guard let unit = units.first, unit != "B" else { return "\(max(0, bytes))B" }
    return decimal(value) + unit
}

/// With one digit behind the point.
private func decimal(_ value: Double) -> String {
    let tenths = Int((value * 10).rounded())
    return "\(tenths / 10).\(tenths % 10)"
}

/// An instant of the wall clock.
package struct Moment: Equatable, Sendable {
    /// Since 1970, UTC.
    package var seconds: Double

    package init(seconds: Double) {
        self.seconds = seconds
    }

    /// Reads RFC 3339: `2025-11-21T07:12:03.123Z`, or with an offset.
    package init?(_ text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count >= 20, bytes.count <= 64 else { return nil }
        func number(_ from: Int, _ count: Int, _ range: ClosedRange<Int32>) -> Int32? {
            let digits = bytes[from..<from + count]
            guard digits.allSatisfy({ (0x30...0x39).contains($0) }) else { return nil }
            let value = digits.reduce(Int32(0)) { $0 * 10 + Int32($1 - 0x30) }
            return range.contains(value) ? value : nil
        }
        guard bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"), bytes[10] == UInt8(ascii: "T"),
            bytes[13] == UInt8(ascii: ":"), bytes[16] == UInt8(ascii: ":"), let year = number(0, 4, 1970...9999),
            let month = number(5, 2, 1...12), let day = number(8, 2, 1...31), let hour = number(11, 2, 0...23),
            let minute = number(14, 2, 0...59), let second = number(17, 2, 0...60)
        else { return nil }
        var parts = tm()
        (parts.tm_year, parts.tm_mon, parts.tm_mday) = (year - 1900, month - 1, day)
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (hour, minute, second)
        var rest = bytes[19...]
        var fraction = 0.0
        if rest.first == UInt8(ascii: ".") {
            let digits = rest.dropFirst().prefix { (0x30...0x39).contains($0) }
            guard !digits.isEmpty else { return nil }
            fraction = digits.reversed().reduce(0.0) { ($0 + Double($1 - 0x30)) / 10 }
            rest = rest.dropFirst(1 + digits.count)
        }
        guard let offset = Self.offset(Array(rest)) else { return nil }
        seconds = Double(timegm(&parts)) + fraction - Double(offset)
    }

    /// Seconds east of Greenwich: `Z` or `+01:00`.
    private static func offset(_ bytes: [UInt8]) -> Int? {
        if bytes == [UInt8(ascii: "Z")] { return 0 }
        guard bytes.count == 6, bytes[3] == UInt8(ascii: ":"), let sign = bytes.first,
            sign == UInt8(ascii: "+") || sign == UInt8(ascii: "-"),
            let hours = Int(String(decoding: bytes[1...2], as: UTF8.self)), (0...23).contains(hours),
            let minutes = Int(String(decoding: bytes[4...5], as: UTF8.self)), (0...59).contains(minutes)
        else { return nil }
        return (hours * 3600 + minutes * 60) * (sign == UInt8(ascii: "-") ? -1 : 1)
    }

    package static func now() -> Moment {
        var time = timespec()
        clock_gettime(CLOCK_REALTIME, &time)
        return Moment(seconds: Double(time.tv_sec) + Double(time.tv_nsec) / 1e9)
    }

    /// In local time, by strftime(3)'s format.
    func local(_ format: String) -> String {
        var time = time_t(seconds.rounded(.down))
        var parts = tm()
        localtime_r(&time, &parts)
        var buffer = [UInt8](repeating: 0, count: 64)
        let count = buffer.withUnsafeMutableBytes { raw in
            raw.withMemoryRebound(to: CChar.self) { strftime($0.baseAddress, 64, format, &parts) }
        }
        return String(decoding: buffer.prefix(count), as: UTF8.self)
    }
}
