/// A calendar event of systemd.time(7), such as `Mon..Fri 08:30` or `*-*-01 00:00 Europe/Berlin`: a set of points in time.
///
/// What it accepts, and when it elapses, is that of systemd 252.
package struct CalendarEvent: Hashable, Sendable {
    /// A value, a range or a repetition of one part: `5`, `8..17`, `0/15`.
    package struct Component: Hashable, Comparable, Sendable {
        var start: Int
        /// `nil`: it has no end.
        var stop: Int?
        /// 0: only `start`.
        var step: Int = 0

        package static func < (a: Component, b: Component) -> Bool {
            (a.start, a.stop ?? -1, a.step) < (b.start, b.stop ?? -1, b.step)
        }
    }

    package enum Zone: Hashable, Sendable {
        case local, utc
        /// A name of the time zone database, or an abbreviation of the local time zone.
        case named(String)
    }

    /// What a value has to be, for the message about one that is not.
    package static let expected =
        "a calendar event of systemd.time(7) such as daily, Mon..Fri 08:30 or *-*-01 00:00:00 Europe/Berlin"
    /// The most components of one part.
    static let maximumComponents = 240
    /// The years in which it can elapse.
    static let years = 1970...2199

    /// As it was given.
    package let text: String
    /// Bit 0 is Monday; `nil`: every day.
    var weekdays: UInt8?
    /// No components: every value. Months and days count from 1.
    var years: [Component] = []
    var months: [Component] = []
    var days: [Component] = []
    var hours: [Component] = []
    var minutes: [Component] = []
    var microseconds: [Component] = []
    /// Days count from the last day of the month (`~`).
    var countsFromEndOfMonth = false
    package var zone = Zone.local

    /// - Returns: `nil` if the text is no calendar event.
    package init?(_ text: String) {
        self.text = text
        var scanner = CalendarScanner(Array(text.utf8)[...])
        zone = scanner.takeZone()
        guard !scanner.text.isEmpty else { return nil }
        if !setShorthand(scanner.word) {
            guard scanner.weekdays(&self), let hasTime = scanner.date(&self) else { return nil }
            if !hasTime { guard scanner.time(&self) else { return nil } }
            guard scanner.text.isEmpty else { return nil }
        }
        normalize()
        guard isValid else { return nil }
    }

    /// - Returns: whether the text is one of the names for usual events.
    private mutating func setShorthand(_ name: String) -> Bool {
        func only(_ values: Int...) -> [Component] { values.map { Component(start: $0) } }
        switch name {
        case "minutely": break
        case "hourly": minutes = only(0)
        case "daily": (hours, minutes) = (only(0), only(0))
        case "weekly": (weekdays, hours, minutes) = (1, only(0), only(0))
        case "monthly": (days, hours, minutes) = (only(1), only(0), only(0))
        case "quarterly": (months, days, hours, minutes) = (only(1, 4, 7, 10), only(1), only(0), only(0))
        case "semiannually", "semi-annually", "biannually", "bi-annually":
            (months, days, hours, minutes) = (only(1, 7), only(1), only(0), only(0))
        case "annually", "yearly", "anually": (months, days, hours, minutes) = (only(1), only(1), only(0), only(0))
        default: return false
        }
        microseconds = only(0)
        return true
    }

    // MARK: What is accepted

    private mutating func normalize() {
        if weekdays == 0 || weekdays == 127 { weekdays = nil }
        if days.isEmpty { countsFromEndOfMonth = false }
        for index in years.indices {
            years[index].start = Self.fullYear(years[index].start)
            years[index].stop = years[index].stop.map(Self.fullYear)
        }
        for part in Self.parts { Self.normalize(&self[keyPath: part]) }
    }

    private static var parts: [WritableKeyPath<CalendarEvent, [Component]>] {
        [\.years, \.months, \.days, \.hours, \.minutes, \.microseconds]
    }

    /// 12 is 2012, and 89 is 1989.
    private static func fullYear(_ year: Int) -> Int {
        year < 70 ? year + 2000 : year < 100 ? year + 1900 : year
    }

    /// The end of a range is its last value, a range of one value is that value, and components are sorted.
    private static func normalize(_ chain: inout [Component]) {
        for index in chain.indices {
            let component = chain[index]
            guard var stop = component.stop, stop >= component.start else { continue }
            if component.step > 0 { stop -= (stop - component.start) % component.step }
            chain[index] =
                stop == component.start
                ? Component(start: stop) : Component(start: component.start, stop: stop, step: component.step)
        }
        chain.sort()
    }

    private var isValid: Bool {
        Self.isValid(years, in: Self.years) && Self.isValid(months, in: 1...12)
            && Self.isValid(days, in: 1...31, fromEnd: countsFromEndOfMonth) && Self.isValid(hours, in: 0...23)
            && Self.isValid(minutes, in: 0...59) && Self.isValid(microseconds, in: 0...59_999_999)
    }

    private static func isValid(_ chain: [Component], in range: ClosedRange<Int>, fromEnd: Bool = false) -> Bool {
        // No more than 28 days from the end: every month has that one.
        let (from, to) = (range.lowerBound, range.upperBound - (fromEnd ? 3 : 0))
        return chain.allSatisfy { component in
            guard component.start >= from, component.start <= to, component.step <= to - from else { return false }
            // At least one repetition has to fit.
            if let stop = component.stop {
                return stop >= from && stop <= to && component.start + component.step <= stop
            }
            return fromEnd ? component.start - component.step >= from : component.start + component.step <= to
        }
    }
}
