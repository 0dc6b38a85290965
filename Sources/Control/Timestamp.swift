package import JSON
package import Systemd

/// A point in time: microseconds of CLOCK_REALTIME since 1970, as in systemd's D-Bus interfaces. RFC 3339 in JSON.
package struct Timestamp: Hashable, Comparable, Sendable {
    package var microseconds: UInt64

    package init(microseconds: UInt64) {
        self.microseconds = microseconds
    }

    /// The time of CLOCK_REALTIME now.
    package static func now() -> Timestamp { Timestamp(microseconds: realtimeMicroseconds()) }

    package static func < (a: Timestamp, b: Timestamp) -> Bool { a.microseconds < b.microseconds }

    /// The time that passed since an earlier timestamp; negative since a later one.
    package static func - (a: Timestamp, b: Timestamp) -> Duration {
        .microseconds(a.microseconds) - .microseconds(b.microseconds)
    }

    package static func - (a: Timestamp, b: Duration) -> Timestamp {
        let (seconds, attoseconds) = (.microseconds(a.microseconds) - b).components
        let microseconds = seconds * 1_000_000 + attoseconds / 1_000_000_000_000
        return Timestamp(microseconds: UInt64(max(0, microseconds)))
    }
}

// MARK: RFC 3339

extension Timestamp {
    /// 9999-12-31T23:59:59.999999Z: years of RFC 3339 have four digits.
    private static let latest = Timestamp(microseconds: 253_402_300_799_999_999)

    /// In UTC, with microseconds: `2025-11-21T07:12:03.250000Z`.
    package var rfc3339: String {
        let clamped = min(self, Self.latest).microseconds
        let (year, month, day) = civilDate(daysSince1970: Int(clamped / 1_000_000 / 86_400))
        let second = Int(clamped / 1_000_000 % 86_400)
        func two(_ number: Int) -> String { number < 10 ? "0\(number)" : "\(number)" }
        let fraction = String(1_000_000 + clamped % 1_000_000).dropFirst()
        return "\(year)-\(two(month))-\(two(day))"
            + "T\(two(second / 3600)):\(two(second / 60 % 60)):\(two(second % 60)).\(fraction)Z"
    }

    /// Reads RFC 3339 with or without a fraction, of which six digits count, in UTC or with an offset. `nil` for a time
    /// before 1970.
    package init?(rfc3339 text: String) {
        let bytes = Array(text.utf8)
        guard bytes.count >= 20, bytes.count <= 64 else { return nil }
        func number(_ from: Int, _ count: Int, _ range: ClosedRange<Int>) -> Int? {
            let digits = bytes[from..<from + count]
            guard digits.allSatisfy(isDigit) else { return nil }
            let value = digits.reduce(0) { $0 * 10 + Int($1 - 0x30) }
            return range.contains(value) ? value : nil
        }
        guard bytes[4] == UInt8(ascii: "-"), bytes[7] == UInt8(ascii: "-"), bytes[10] == UInt8(ascii: "T"),
            bytes[13] == UInt8(ascii: ":"), bytes[16] == UInt8(ascii: ":"), let year = number(0, 4, 1970...9999),
            let month = number(5, 2, 1...12), let day = number(8, 2, 1...31), let hour = number(11, 2, 0...23),
            let minute = number(14, 2, 0...59), let second = number(17, 2, 0...60)
        else { return nil }
        var rest = bytes[19...]
        var fraction: UInt64 = 0
        if rest.first == UInt8(ascii: ".") {
            let digits = rest.dropFirst().prefix(while: isDigit)
            guard !digits.isEmpty else { return nil }
            let six = digits.prefix(6)
            fraction = six.reduce(0) { $0 * 10 + UInt64($1 - 0x30) }
            for _ in six.count..<6 { fraction *= 10 }
            rest = rest.dropFirst(1 + digits.count)
        }
        guard let offset = Self.offset(Array(rest)) else { return nil }
        let days = daysSince1970(year: year, month: month, day: day)
        let seconds = days * 86_400 + hour * 3600 + minute * 60 + second - offset
        guard seconds >= 0 else { return nil }
        microseconds = UInt64(seconds) * 1_000_000 + fraction
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
}

/// The date of a day in the Gregorian calendar. Years are counted from March, so that the leap day is the last day of a year,
/// in eras of 400 years, which all have 146,097 days.
private func civilDate(daysSince1970 days: Int) -> (year: Int, month: Int, day: Int) {
    // 719,468 days from 0000-03-01 to 1970-01-01.
    let (era, dayOfEra) = (days + 719_468).quotientAndRemainder(dividingBy: 146_097)
    let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36_524 - dayOfEra / 146_096) / 365
    let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
    let monthFromMarch = (5 * dayOfYear + 2) / 153
    let month = monthFromMarch < 10 ? monthFromMarch + 3 : monthFromMarch - 9
    return (era * 400 + yearOfEra + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * monthFromMarch + 2) / 5 + 1)
}

/// The inverse of `civilDate`, for years from 1970.
private func daysSince1970(year: Int, month: Int, day: Int) -> Int {
    let year = month <= 2 ? year - 1 : year
    let (era, yearOfEra) = year.quotientAndRemainder(dividingBy: 400)
    let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5 + day - 1
    return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
}

private func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }

extension Timestamp: ScalarValue {
    package static var signature: String { "t" }
    package static var jsonType: String { "a time in RFC 3339" }
    package var variant: Variant { .uint64(microseconds) }
    package var json: JSONValue { .string(rfc3339) }

    package static func decode(_ variant: Variant) -> Timestamp? {
        guard case .uint64(let value) = variant, Timestamp(microseconds: value) <= latest else { return nil }
        return Timestamp(microseconds: value)
    }
    package static func decode(_ json: JSONValue) -> Timestamp? { json.stringValue.flatMap { Timestamp(rfc3339: $0) } }
}
