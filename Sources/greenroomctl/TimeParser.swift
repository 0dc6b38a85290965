import Control
import Glibc
import Manifest

/// Reads points in time as systemd.time(7) writes them, the forms that a user types: `today`, `-1h`, `2 days ago`,
/// `2025-11-21 07:12`, RFC 3339 and `@1763709123`.
struct TimeParser {
    /// For error messages.
    static let expected = "a time such as '2025-11-21 07:12', 07:12, today, yesterday, -1h or '2 days ago'"
    /// No time is longer. In bytes.
    private static let longest = 64
    /// systemd's limit of years with four digits, in seconds since 1970.
    private static let latest = 253_402_300_799

    private let now: Timestamp

    /// - Parameter now: where relative times and times without a date start.
    /// - Returns: `nil` for any other text, and for a time before 1970.
    static func parse(_ text: String, now: Timestamp = .now()) -> Timestamp? {
        guard text.utf8.count <= longest else { return nil }
        let words = text.split(separator: " ").map(String.init)
        guard !words.isEmpty else { return nil }
        return TimeParser(now: now).time(words.joined(separator: " "), words)
    }

    private func time(_ text: String, _ words: [String]) -> Timestamp? {
        switch text {
        case "now": return now
        case "today": return date(daysAgo: 0)
        case "yesterday": return date(daysAgo: 1)
        default: break
        }
        if words.count > 1, words.last == "ago" {
            return span(words.dropLast().joined(separator: " ")).map { now - $0 }
        }
        if text.hasPrefix("-") { return span(String(text.dropFirst())).map { now - $0 } }
        if text.hasPrefix("+") { return span(String(text.dropFirst())).map { now - (Duration.zero - $0) } }
        if text.hasPrefix("@") {
            return UInt64(text.dropFirst()).flatMap { seconds in
                seconds <= UInt64(Self.latest) ? Timestamp(microseconds: seconds * 1_000_000) : nil
            }
        }
        if let time = Timestamp(rfc3339: text) { return time }
        return absolute(words)
    }

    /// A finite time span.
    private func span(_ text: String) -> Duration? {
        guard let first = text.utf8.first, first != UInt8(ascii: "-"), let span = parseTimeSpan(text) else {
            return nil
        }
        return span
    }

    /// `2025-11-21`, `2025-11-21 07:12`, `2025-11-21 07:12:03`, or a time of today, in local time; with `UTC` in UTC.
    private func absolute(_ words: [String]) -> Timestamp? {
        var words = words
        var isUTC = false
        if words.count > 1, words.last == "UTC" {
            isUTC = true
            words.removeLast()
        }
        var parts = localParts(of: now, isUTC)
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (0, 0, 0)
        guard (1...2).contains(words.count) else { return nil }
        if words.count == 2 || words[0].contains("-") {
            guard let date = numbers(words[0], "-", [4...4, 1...2, 1...2]), date.count == 3,
                (1970...9999).contains(date[0]), (1...12).contains(date[1]), (1...31).contains(date[2])
            else { return nil }
            (parts.tm_year, parts.tm_mon, parts.tm_mday) = (Int32(date[0] - 1900), Int32(date[1] - 1), Int32(date[2]))
            words.removeFirst()
        }
        if let clock = words.first {
            guard let time = numbers(clock, ":", [1...2, 2...2, 2...2]), time.count >= 2, time[0] <= 23, time[1] <= 59,
                time.count == 2 || time[2] <= 60
            else { return nil }
            (parts.tm_hour, parts.tm_min) = (Int32(time[0]), Int32(time[1]))
            parts.tm_sec = time.count == 3 ? Int32(time[2]) : 0
        }
        return timestamp(parts, isUTC, ofDay: parts.tm_mday)
    }

    /// Decimal numbers with a separator between them, each with as many digits as allowed; at most as many as `digits`.
    private func numbers(_ text: String, _ separator: Character, _ digits: [ClosedRange<Int>]) -> [Int]? {
        let parts = text.split(separator: separator, omittingEmptySubsequences: false)
        guard parts.count <= digits.count else { return nil }
        var result: [Int] = []
        for (part, range) in zip(parts, digits) {
            guard range.contains(part.utf8.count), part.utf8.allSatisfy({ (0x30...0x39).contains($0) }),
                let number = Int(part)
            else { return nil }
            result.append(number)
        }
        return result
    }

    private func date(daysAgo days: Int32) -> Timestamp? {
        var parts = localParts(of: now, false)
        (parts.tm_hour, parts.tm_min, parts.tm_sec) = (0, 0, 0)
        parts.tm_mday -= days
        return timestamp(parts, false, ofDay: nil)
    }

    private func localParts(of time: Timestamp, _ isUTC: Bool) -> tm {
        var seconds = time_t(clamping: time.microseconds / 1_000_000)
        var parts = tm()
        if isUTC { gmtime_r(&seconds, &parts) } else { localtime_r(&seconds, &parts) }
        return parts
    }

    /// - Parameter day: the day of the month, which the month must have; `nil`: it may be in the month before.
    private func timestamp(_ parts: tm, _ isUTC: Bool, ofDay day: Int32?) -> Timestamp? {
        var parts = parts
        // mktime(3) finds out whether daylight saving time was in effect. It turns February 30 into a day of March.
        parts.tm_isdst = -1
        let seconds = isUTC ? timegm(&parts) : mktime(&parts)
        guard seconds >= 0, seconds <= Self.latest, day == nil || day == parts.tm_mday else { return nil }
        return Timestamp(microseconds: UInt64(seconds) * 1_000_000)
    }
}
