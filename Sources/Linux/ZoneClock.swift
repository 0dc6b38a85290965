import CLinux
import Glibc
package import Schedule

extension CalendarEvent {
    /// The first time after `time`, by the rules of the event's time zone; `nil`: never, or the zone does not exist. Both in
    /// microseconds since 1970. For one thread of the process.
    package func next(after time: Int) -> Int? { withClock { next(after: time, $0) } ?? nil }

    /// Whether its time zone exists on this machine.
    package var hasZone: Bool { withClock { _ in true } ?? false }

    /// Why it never elapses on this machine, without the full stop; `nil`: its time zone exists.
    package var zoneProblem: String? {
        hasZone
            ? nil
            : "\(text) never elapses: this machine does not have its time zone; expected a name below /usr/share/zoneinfo such as "
                + "Europe/Berlin"
    }

    /// Calls a function with the rules of the event's time zone. For one thread of the process.
    /// - Returns: `nil` if the zone does not exist.
    package func withClock<Result>(_ body: (any CivilClock) -> Result) -> Result? {
        switch zone {
        case .utc: return body(UTCClock())
        case .local: return Self.inZone(nil) { body(ZoneClock(daylightSaving: -1)) }
        case .named(let name):
            // An abbreviation of the local time zone means a part of the year, as in systemd.
            let daylightSaving = Self.inZone(nil) { Int(clinux_zone_abbreviation(name)) }
            if daylightSaving >= 0 {
                return Self.inZone(nil) { body(ZoneClock(daylightSaving: daylightSaving)) }
            }
            return clinux_has_zone(name) ? Self.inZone(name) { body(ZoneClock(daylightSaving: -1)) } : nil
        }
    }

    private static func inZone<Result>(_ name: String?, _ body: () -> Result) -> Result {
        clinux_begin_zone(name)
        defer { clinux_end_zone() }
        return body()
    }
}

/// The rules of the zone that `clinux_begin_zone` has set.
private struct ZoneClock: CivilClock {
    let daylightSaving: Int

    func civil(_ seconds: Int) -> CivilTime {
        var time = time_t(seconds)
        var parts = tm()
        localtime_r(&time, &parts)
        return CivilTime(parts)
    }

    func seconds(_ time: inout CivilTime) -> Int? {
        var parts = tm()
        parts.tm_year = Int32(time.year - 1900)
        parts.tm_mon = Int32(time.month - 1)
        parts.tm_mday = Int32(time.day)
        parts.tm_hour = Int32(time.hour)
        parts.tm_min = Int32(time.minute)
        parts.tm_sec = Int32(time.second)
        parts.tm_isdst = Int32(time.daylightSaving)
        let seconds = mktime(&parts)
        guard seconds >= 0 else { return nil }
        time = CivilTime(parts)
        return seconds
    }
}

extension CivilTime {
    fileprivate init(_ parts: tm) {
        self.init(
            year: Int(parts.tm_year) + 1900, month: Int(parts.tm_mon) + 1, day: Int(parts.tm_mday),
            hour: Int(parts.tm_hour), minute: Int(parts.tm_min), second: Int(parts.tm_sec),
            daylightSaving: Int(parts.tm_isdst), weekday: (Int(parts.tm_wday) + 6) % 7)
    }
}
