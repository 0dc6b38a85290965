/// When a calendar event elapses. The search is that of systemd 252 (`calendar_spec_next_usec`), step by step, so that it finds
/// the same times where clocks are set forward and back.
extension CalendarEvent {
    package static let second = 1_000_000
    /// An event that this many steps do not find is never: each step sets one part.
    static let maximumSteps = 1000

    /// The first time after `time`; `nil`: never. Both in microseconds since 1970.
    /// - Parameter clock: that of the event's time zone.
    package func next(after time: Int, _ clock: some CivilClock) -> Int? {
        let start = max(0, time) + 1
        let first = clock.civil(start / Self.second)
        var search = Search(
            event: self, clock: clock, first: first, firstRest: start % Self.second, time: first,
            rest: start % Self.second)
        for _ in 0..<Self.maximumSteps {
            switch search.step() {
            case .again: continue
            case .never: return nil
            case .found:
                var found = search.time
                guard let seconds = clock.seconds(&found) else { return nil }
                return seconds * Self.second + search.rest
            }
        }
        return nil
    }

    private struct Search<Clock: CivilClock> {
        enum Outcome { case again, never, found }
        /// The parts of a time, the largest first.
        enum Part: Int, CaseIterable {
            case year, month, day, hour, minute, second

            var path: WritableKeyPath<CivilTime, Int> {
                switch self {
                case .year: \.year
                case .month: \.month
                case .day: \.day
                case .hour: \.hour
                case .minute: \.minute
                case .second: \.second
                }
            }

            /// The least value.
            var first: Int { rawValue <= Part.day.rawValue ? 1 : 0 }
            var larger: Part? { Part(rawValue: rawValue - 1) }
            var smaller: Part? { Part(rawValue: rawValue + 1) }
        }
        enum Fit { case kept, moved, none }

        let event: CalendarEvent
        let clock: Clock
        /// Where the search begins.
        let first: CivilTime
        let firstRest: Int
        var time: CivilTime
        /// Microseconds beside the seconds of `time`.
        var rest: Int
        /// Whether mktime(3) decides about daylight saving.
        var isFree = false

        mutating func step() -> Outcome {
            _ = clock.seconds(&time)
            if !isFree { time.daylightSaving = clock.daylightSaving }
            // Only years end the search: there is no larger part to continue with.
            let year = fit(event.years, .year)
            guard year != .none, isWithinBounds() == .kept else { return .never }
            for (chain, part) in [(event.months, Part.month), (event.days, .day)] {
                if let outcome = set(chain, part) { return outcome }
            }
            guard isRightWeekday else {
                time.day += 1
                clear(after: .day)
                return .again
            }
            for (chain, part) in [(event.hours, Part.hour), (event.minutes, .minute)] {
                if let outcome = set(chain, part) { return outcome }
            }
            if let outcome = setSecond() { return outcome }
            guard isStuck else { return .found }
            isFree = true
            time.hour += 1
            return .again
        }

        /// mktime(3) may choose the earlier one of two times around a change of the clocks, which is not after the start.
        private var isStuck: Bool {
            for part in Part.allCases where time[keyPath: part.path] != first[keyPath: part.path] {
                return time[keyPath: part.path] < first[keyPath: part.path]
            }
            return rest < firstRest
        }

        /// Sets a part to its next value that matches. - Returns: `nil`: it has one, so the smaller parts are next.
        private mutating func set(_ chain: [Component], _ part: Part) -> Outcome? {
            continued(fit(chain, part), part)
        }

        private mutating func setSecond() -> Outcome? {
            var value = time.second * CalendarEvent.second + rest
            let fit = match(event.microseconds, &value)
            (time.second, rest) = (value / CalendarEvent.second, value % CalendarEvent.second)
            return continued(fit, .second)
        }

        private mutating func continued(_ fit: Fit, _ part: Part) -> Outcome? {
            let bounds = fit == .none ? Fit.none : isWithinBounds()
            switch bounds {
            case .kept: return nil
            case .moved: return .again
            case .none:
                advance(before: part)
                return .again
            }
        }

        /// The smaller parts begin anew if this one changes.
        private mutating func fit(_ chain: [Component], _ part: Part) -> Fit {
            let fit = match(chain, &time[keyPath: part.path], isDay: part == .day)
            if fit == .moved { clear(after: part) }
            return fit
        }

        /// No value of this part is left: the search continues with the next larger one.
        private mutating func advance(before part: Part) {
            guard let larger = part.larger else { return }
            time[keyPath: larger.path] += 1
            clear(after: larger)
        }

        private mutating func clear(after part: Part) {
            for smaller in Part.allCases.suffix(from: part.rawValue + 1) { time[keyPath: smaller.path] = smaller.first }
            rest = 0
        }

        // MARK: One part

        /// Sets `value` to the least one that matches and is not less.
        private func match(_ chain: [Component], _ value: inout Int, isDay: Bool = false) -> Fit {
            if chain.isEmpty { return .kept }
            var least: Int?
            for component in chain {
                var (start, stop) = (component.start, component.stop)
                if isDay, event.countsFromEndOfMonth {
                    start = dayBeforeEnd(component.start) ?? -1
                    if let given = stop, let day = dayBeforeEnd(given) {
                        (start, stop) = (day, start)
                    } else {
                        stop = nil
                    }
                }
                var candidate = start
                if start < value {
                    guard component.step > 0 else { continue }
                    candidate = start + (value - start + component.step - 1) / component.step * component.step
                    if let stop, candidate > stop { continue }
                }
                least = least.map { min($0, candidate) } ?? candidate
            }
            guard let least else { return .none }
            defer { value = least }
            return least == value ? .kept : .moved
        }

        /// The day of the month that is the `count`th from its end; `nil`: it has no such day.
        private func dayBeforeEnd(_ count: Int) -> Int? {
            var day = time
            day.month += 1
            day.day = 1 - count
            guard clock.seconds(&day) != nil, day.month == time.month else { return nil }
            return day.day
        }

        private var isRightWeekday: Bool {
            guard let weekdays = event.weekdays else { return true }
            var day = time
            guard clock.seconds(&day) != nil else { return false }
            return weekdays & 1 << UInt8(day.weekday) != 0
        }

        /// Whether the time exists. One that does not, as in the hour that is skipped when clocks are set forward, becomes the
        /// next one. `.none`: it would become an earlier one, or is too late.
        private mutating func isWithinBounds() -> Fit {
            guard time.year <= CalendarEvent.years.upperBound else { return .none }
            var real = time
            guard clock.seconds(&real) != nil else { return .none }
            for part in Part.allCases where real[keyPath: part.path] != time[keyPath: part.path] {
                guard real[keyPath: part.path] > time[keyPath: part.path] else { return .none }
                // What was out of its range may have changed the next smaller part, too.
                if let smaller = part.smaller { real[keyPath: smaller.path] = smaller.first }
                time = real
                return .moved
            }
            return .kept
        }
    }
}
