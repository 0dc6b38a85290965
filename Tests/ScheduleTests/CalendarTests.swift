import Glibc
import Linux
import Posix
import TestKit
import Testing

@testable import Schedule

/// The local time zone of the process is that of a test, so one runs at a time.
@Suite("Calendar events (L30)", .serialized)
struct CalendarTests {
    private static let folder = "\(#filePath)".replacing("CalendarTests.swift", with: "Fixtures")

    @Test("calendar events elapse when systemd says, in ten years of six time zones (L30)")
    func fixture() throws {
        let text = String(decoding: try readFile(at: Self.folder + "/calendar", limit: 1 << 20), as: UTF8.self)
        // All of them take half a minute of processor time.
        #expect(try check(text, each: isTestingAll ? 1 : 10) > 70)
    }

    @Test("calendar events elapse when systemd says, in time zones with rare rules (L30)", .enabled(if: isTestingAll))
    func systemd() throws {
        let zones =
            "Asia/Kolkata Africa/Casablanca America/St_Johns America/Santiago Pacific/Chatham Asia/Tehran Africa/Cairo"
        let command = "command -v systemd-analyze >/dev/null && '\(Self.folder)/record' \(zones)"
        let pipe = try #require(popen(command, "r"))
        var text: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while case let count = fread(&buffer, 1, buffer.count, pipe), count > 0 { text += buffer.prefix(count) }
        // 252 has other rules than the next releases may have: only what it says counts.
        if pclose(pipe) == 0 { #expect(try check(String(decoding: text, as: UTF8.self)) > 700) }
    }

    /// - Returns: the number of lines that were checked.
    private func check(_ text: String, each step: Int = 1) throws -> Int {
        let all = text.split(separator: "\n")
        let lines = stride(from: 0, to: all.count, by: step).map { all[$0] }
        for line in lines {
            let fields = line.split(separator: "\t", omittingEmptySubsequences: false).map(String.init)
            let (zone, expression, base) = (fields[0], fields[1], try #require(Int(fields[2])))
            setenv("TZ", zone, 1)
            defer { unsetenv("TZ") }
            let event = CalendarEvent(expression)
            guard fields[3] != "invalid" else {
                #expect(event.map { $0.hasZone } != true, "'\(expression)' is no calendar event")
                continue
            }
            guard let event else {
                Issue.record("'\(expression)' is a calendar event")
                continue
            }
            let found = event.withClock { elapses(event, base, $0) }
            #expect(found == fields.dropFirst(3).joined(separator: " "), "\(zone): '\(expression)'")
        }
        return lines.count
    }

    /// As the fixture has them.
    private func elapses(_ event: CalendarEvent, _ base: Int, _ clock: any CivilClock) -> String {
        let end = (base + 10 * 365 * 86400 + 2 * 86400) * CalendarEvent.second
        var (time, count, sum) = (base * CalendarEvent.second, 0, UInt64(0))
        var first: [String] = []
        while count < 4000, let next = event.next(after: time, clock) {
            let seconds = next / CalendarEvent.second
            if seconds * CalendarEvent.second > end { break }
            count += 1
            sum = sum &* 6_364_136_223_846_793_005 &+ UInt64(seconds)
            if first.count < 3 { first.append("\(seconds)") }
            time = next
        }
        return (["\(count)", "\(sum)"] + first).joined(separator: " ")
    }

    @Test("the search for a date that does not exist ends, and microseconds are exact")
    func bounds() throws {
        #expect(try #require(CalendarEvent("*-02-30")).next(after: 0, UTCClock()) == nil)
        let half = try #require(CalendarEvent("*:*:0/0.5 UTC"))
        #expect(half.next(after: 500_000, UTCClock()) == 1_000_000)
        #expect(half.next(after: 499_999, UTCClock()) == 500_000)
        let steps = try #require(CalendarEvent("*-*-29 0:0 UTC"))
        #expect(steps.next(after: -5, UTCClock()) == 28 * 86400 * CalendarEvent.second)
    }

    @Test("a part has at most 240 components more than one")
    func components() {
        let many = Array(repeating: "1", count: 241).joined(separator: ",")
        #expect(CalendarEvent("*:\(many)") != nil)
        #expect(CalendarEvent("*:\(many),1") == nil)
    }
}
