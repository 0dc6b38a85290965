/// A time as people write it: the parts of C's `struct tm`, with months from 1 and full years.
package struct CivilTime: Hashable, Sendable {
    package var year: Int
    package var month: Int
    package var day: Int
    package var hour: Int
    package var minute: Int
    package var second: Int
    /// As `tm_isdst`: -1 is unknown.
    package var daylightSaving: Int = -1
    /// 0 is Monday.
    package var weekday: Int

    package init(
        year: Int, month: Int, day: Int, hour: Int, minute: Int, second: Int, daylightSaving: Int = -1, weekday: Int = 0
    ) {
        self.year = year
        self.month = month
        self.day = day
        self.hour = hour
        self.minute = minute
        self.second = second
        self.daylightSaving = daylightSaving
        self.weekday = weekday
    }

    /// The UTC time so many seconds after 1970 began.
    package init(utc seconds: Int) {
        let (days, rest) = Self.divide(seconds, by: 86400)
        let (year, month, day) = Self.date(ofDay: days)
        self.init(
            year: year, month: month, day: day, hour: rest / 3600, minute: rest / 60 % 60, second: rest % 60,
            daylightSaving: 0, weekday: Self.divide(days + 3, by: 7).rest)
    }

    /// In seconds since 1970, if it is a UTC time. Parts out of their ranges count as in mktime(3).
    package var utcSeconds: Int {
        let (carry, month) = Self.divide(month - 1, by: 12)
        let days = Self.day(ofYear: year + carry, month: month + 1) + day - 1
        return ((days * 24 + hour) * 60 + minute) * 60 + second
    }

    private static func divide(_ value: Int, by divisor: Int) -> (quotient: Int, rest: Int) {
        let rest = ((value % divisor) + divisor) % divisor
        return ((value - rest) / divisor, rest)
    }

    /// The number of the first day of a month, counted from 1970-01-01. Years are counted from March, so that the day of a leap
    /// year is the last one.
    private static func day(ofYear year: Int, month: Int) -> Int {
        let shifted = month <= 2 ? year - 1 : year
        let (era, yearOfEra) = divide(shifted, by: 400)
        let dayOfYear = (153 * (month > 2 ? month - 3 : month + 9) + 2) / 5
        return era * 146_097 + yearOfEra * 365 + yearOfEra / 4 - yearOfEra / 100 + dayOfYear - 719_468
    }

    private static func date(ofDay day: Int) -> (year: Int, month: Int, day: Int) {
        let (era, dayOfEra) = divide(day + 719_468, by: 146_097)
        let yearOfEra = (dayOfEra - dayOfEra / 1460 + dayOfEra / 36524 - dayOfEra / 146_096) / 365
        let dayOfYear = dayOfEra - (365 * yearOfEra + yearOfEra / 4 - yearOfEra / 100)
        let shifted = (5 * dayOfYear + 2) / 153
        let month = shifted < 10 ? shifted + 3 : shifted - 9
        return (yearOfEra + era * 400 + (month <= 2 ? 1 : 0), month, dayOfYear - (153 * shifted + 2) / 5 + 1)
    }
}

/// The rules of one time zone.
package protocol CivilClock {
    /// The time so many seconds after 1970 began.
    func civil(_ seconds: Int) -> CivilTime
    /// Seconds since 1970, as mktime(3) finds them; `time` gets its parts into their ranges. `nil`: there are none, or the time is
    /// before 1970.
    func seconds(_ time: inout CivilTime) -> Int?
    /// `tm_isdst` of the times that an event looks for; -1: either.
    var daylightSaving: Int { get }
}

/// UTC.
package struct UTCClock: CivilClock {
    package init() {}
    package func civil(_ seconds: Int) -> CivilTime { CivilTime(utc: seconds) }

    package func seconds(_ time: inout CivilTime) -> Int? {
        let seconds = time.utcSeconds
        time = CivilTime(utc: seconds)
        return seconds < 0 ? nil : seconds
    }

    package var daylightSaving: Int { -1 }
}
