/// Reads the text of a calendar event from left to right.
struct CalendarScanner {
    typealias Component = CalendarEvent.Component

    private(set) var text: ArraySlice<UInt8>

    init(_ text: ArraySlice<UInt8>) { self.text = text }

    private static let blank = UInt8(ascii: " ")
    private static let dayNames = ["monday", "tuesday", "wednesday", "thursday", "friday", "saturday", "sunday"]

    /// All of the rest, in lower case.
    var word: String { Self.lowercased(text) }

    private static func lowercased(_ bytes: ArraySlice<UInt8>) -> String {
        String(decoding: bytes.map { (65...90).contains($0) ? $0 | 0x20 : $0 }, as: UTF8.self)
    }

    // MARK: The time zone

    /// Removes the time zone from the end of the text.
    mutating func takeZone() -> CalendarEvent.Zone {
        guard let position = text.lastIndex(of: Self.blank) else { return .local }
        let name = text[(position + 1)...]
        let lower = Self.lowercased(name)
        if lower == "utc" {
            text = text[..<position]
            return .utc
        }
        guard Self.isZoneName(name), !Self.dayNames.contains(where: { lower.hasPrefix($0.prefix(3)) }) else {
            return .local
        }
        text = text[..<position]
        return .named(String(decoding: name, as: UTF8.self))
    }

    /// Names of the time zone database: letters, digits and `_+-`, in parts with `/` between them.
    private static func isZoneName(_ name: ArraySlice<UInt8>) -> Bool {
        func isLetter(_ byte: UInt8) -> Bool { (65...90).contains(byte & 0xdf) && byte < 0x80 }
        guard name.count <= 64, let first = name.first, isLetter(first) else { return false }
        let parts = name.split(separator: UInt8(ascii: "/"), omittingEmptySubsequences: false)
        return parts.allSatisfy { part in
            !part.isEmpty && part.allSatisfy { isLetter($0) || isDigit($0) || "_+-".utf8.contains($0) }
        }
    }

    // MARK: Parts

    /// - Returns: `false` if what begins as weekdays is none. Without weekdays the text stays as it is.
    mutating func weekdays(_ event: inout CalendarEvent) -> Bool {
        var rangeStart: Int?
        var isFirst = true
        while true {
            guard let day = takeDay() else { return isFirst }
            guard let day = day.number else { return false }
            var bits = (event.weekdays ?? 0) | 1 << UInt8(day)
            if let start = rangeStart {
                guard start <= day else { return false }
                for between in start..<day { bits |= 1 << UInt8(between) }
            }
            event.weekdays = bits
            switch text.first {
            case nil: return true
            case Self.blank:
                skipBlanks()
                return true
            case UInt8(ascii: ","):
                rangeStart = nil
                text = text.dropFirst()
            default:
                let isDots = text.starts(with: "..".utf8)
                guard rangeStart == nil, isDots || text.first == UInt8(ascii: "-") else { return false }
                rangeStart = day
                text = text.dropFirst(isDots ? 2 : 1)
            }
            if text.first ?? Self.blank == Self.blank {
                skipBlanks()
                return rangeStart == nil
            }
            isFirst = false
        }
    }

    /// Removes the name of a weekday from the start.
    /// - Returns: `nil`: there is none. Its `number` is `nil` if something follows that cannot follow a weekday.
    private mutating func takeDay() -> (number: Int?, Void)? {
        for (number, full) in Self.dayNames.enumerated() {
            for name in [full, String(full.prefix(3))] where Self.lowercased(text.prefix(name.utf8.count)) == name {
                text = text.dropFirst(name.utf8.count)
                let mayFollow = text.first.map { "-., ".utf8.contains($0) } ?? true
                return (mayFollow ? number : nil, ())
            }
        }
        return nil
    }

    /// - Returns: whether the time was given with the date (`@1800000000`); `nil` if the text is invalid.
    mutating func date(_ event: inout CalendarEvent) -> Bool? {
        guard let first = text.first else { return false }
        if first == UInt8(ascii: "@") { return seconds(&event) }
        let start = text
        guard let one = chain() else { return nil }
        if text.first ?? UInt8(ascii: ":") == UInt8(ascii: ":") {
            // It is a time.
            text = start
            return false
        }
        guard takeDateSeparator(&event), let two = chain() else { return nil }
        if text.first ?? Self.blank == Self.blank {
            (event.months, event.days) = (one, two)
        } else {
            guard !event.countsFromEndOfMonth, takeDateSeparator(&event), let three = chain(),
                text.first ?? Self.blank == Self.blank
            else { return nil }
            (event.years, event.months, event.days) = (one, two, three)
        }
        skipBlanks()
        return false
    }

    private mutating func takeDateSeparator(_ event: inout CalendarEvent) -> Bool {
        guard let byte = text.popFirst() else { return false }
        if byte == UInt8(ascii: "~") { event.countsFromEndOfMonth = true }
        return byte == UInt8(ascii: "~") || byte == UInt8(ascii: "-")
    }

    /// `@1800000000`: seconds since 1970.
    private mutating func seconds(_ event: inout CalendarEvent) -> Bool? {
        text = text.dropFirst()
        guard let seconds = number(), seconds < 1 << 40 else { return nil }
        let time = CivilTime(utc: seconds)
        event.zone = .utc
        event.years = [Component(start: time.year)]
        event.months = [Component(start: time.month)]
        event.days = [Component(start: time.day)]
        event.hours = [Component(start: time.hour)]
        event.minutes = [Component(start: time.minute)]
        event.microseconds = [Component(start: time.second * CalendarEvent.second)]
        return true
    }

    /// - Returns: whether the text is valid.
    mutating func time(_ event: inout CalendarEvent) -> Bool {
        let zero = [Component(start: 0)]
        (event.hours, event.minutes, event.microseconds) = (zero, zero, zero)
        if text.isEmpty { return true }
        guard let hours = chain(), text.popFirst() == UInt8(ascii: ":"), let minutes = chain() else { return false }
        (event.hours, event.minutes) = (hours, minutes)
        if text.isEmpty { return true }
        guard text.popFirst() == UInt8(ascii: ":"), let seconds = chain(inMicroseconds: true) else { return false }
        event.microseconds = seconds
        return text.isEmpty
    }

    // MARK: Components

    /// The components of one part, which commas separate; none for `*`. `nil` if the text is invalid.
    private mutating func chain(inMicroseconds isMicroseconds: Bool = false) -> [Component]? {
        if text.first == UInt8(ascii: "*") {
            text = text.dropFirst()
            return isMicroseconds ? [Component(start: 0, step: CalendarEvent.second)] : []
        }
        var chain: [Component] = []
        while chain.count <= CalendarEvent.maximumComponents {
            guard let component = component(isMicroseconds) else { return nil }
            chain.append(component)
            guard text.first == UInt8(ascii: ",") else { return chain }
            text = text.dropFirst()
        }
        return nil
    }

    private mutating func component(_ isMicroseconds: Bool) -> Component? {
        guard let start = value(isMicroseconds) else { return nil }
        var component = Component(start: start)
        if text.starts(with: "..".utf8) {
            text = text.dropFirst(2)
            guard let stop = value(isMicroseconds) else { return nil }
            component.stop = stop
            component.step = isMicroseconds ? CalendarEvent.second : 1
        }
        if text.first == UInt8(ascii: "/") {
            text = text.dropFirst()
            guard let step = value(isMicroseconds), step > 0 else { return nil }
            component.step = step
        } else if isMicroseconds, let stop = component.stop, start + component.step > stop {
            return nil
        }
        guard text.first.map({ " ,-~:".utf8.contains($0) }) ?? true else { return nil }
        return component
    }

    /// A number, of seconds with decimals. Microseconds are rounded.
    private mutating func value(_ isMicroseconds: Bool) -> Int? {
        guard let number = number() else { return nil }
        let limit = Int(Int32.max)
        guard isMicroseconds else { return number <= limit ? number : nil }
        guard number <= limit / CalendarEvent.second else { return nil }
        var value = number * CalendarEvent.second
        // One point is a decimal point, two are a range.
        if text.first == UInt8(ascii: "."), text.dropFirst().first != UInt8(ascii: ".") {
            text = text.dropFirst()
            let digits = text.prefix(while: isDigit)
            guard !digits.isEmpty else { return nil }
            text = text[digits.endIndex...]
            var weight = CalendarEvent.second
            for digit in digits.prefix(6) {
                weight /= 10
                value += Int(digit - UInt8(ascii: "0")) * weight
            }
            if let next = digits.dropFirst(6).first, next >= UInt8(ascii: "5") { value += 1 }
        }
        return value <= limit ? value : nil
    }

    private mutating func number() -> Int? {
        let digits = text.prefix(while: isDigit)
        guard !digits.isEmpty else { return nil }
        text = text[digits.endIndex...]
        return digits.reduce(0) { value, digit in
            guard let value else { return nil }
            let (product, overflows) = value.multipliedReportingOverflow(by: 10)
            return overflows || product > Int.max - 9 ? nil : product + Int(digit - UInt8(ascii: "0"))
        }
    }

    private mutating func skipBlanks() { text = text.drop { $0 == Self.blank } }
}

private func isDigit(_ byte: UInt8) -> Bool { (UInt8(ascii: "0")...UInt8(ascii: "9")).contains(byte) }
