import Control
import JSON
import Systemd
import Testing

@testable import greenroomctl

/// The tests do not depend on the time zone of the test process, but for whole days of local time.
@Suite("Times of --since")
struct TimeParserTests {
    /// 2025-11-21T07:12:03.25Z
    private let now = Records.time

    private func parse(_ text: String) -> String? { TimeParser.parse(text, now: now)?.rfc3339 }

    @Test("relative times, times in UTC, RFC 3339 and seconds since 1970 are read")
    func absolute() {
        #expect(parse("now") == "2025-11-21T07:12:03.250000Z")
        #expect(parse("-1h") == "2025-11-21T06:12:03.250000Z")
        #expect(parse("1h 30min ago") == "2025-11-21T05:42:03.250000Z")
        #expect(parse("+5s") == "2025-11-21T07:12:08.250000Z")
        #expect(parse("2025-11-20 UTC") == "2025-11-20T00:00:00.000000Z")
        #expect(parse("2025-11-20 23:59 UTC") == "2025-11-20T23:59:00.000000Z")
        #expect(parse(" 2024-02-29  01:02:03  UTC ") == "2024-02-29T01:02:03.000000Z")
        #expect(parse("6:05 UTC") == "2025-11-21T06:05:00.000000Z")
        #expect(parse("2025-11-21T07:00:00Z") == "2025-11-21T07:00:00.000000Z")
        #expect(parse("@1763709123") == "2025-11-21T07:12:03.000000Z")
    }

    @Test("today and yesterday begin at midnight of local time")
    func days() throws {
        let today = try #require(TimeParser.parse("today", now: now))
        let yesterday = try #require(TimeParser.parse("yesterday", now: now))
        #expect(today <= now && now - today < .seconds(25 * 3600))
        #expect(yesterday < today && today - yesterday <= .seconds(25 * 3600))
    }

    @Test(
        "any other text is refused",
        arguments: [
            "", " ", "soon", "-", "--1h", "-infinity", "2025-11-31", "2025-02-29 UTC", "2025-13-01", "1969-12-31 UTC",
            "25:00", "7", "7:5", "2025-11-21 07:12:03:04", "2025-11-21 07:12 x", "@", "@99999999999999999999",
            "ago", "10000-01-01", String(repeating: "1", count: 65),
        ])
    func invalid(text: String) { #expect(TimeParser.parse(text, now: now) == nil) }

    @Test("receipts --since shows the receipts since then; -n counts them after that")
    func receipts() throws {
        let daemon = try FakeDaemon()
        let times = ["2025-11-20T00:00:00Z", "2025-11-21T00:00:00Z", "2025-11-22T00:00:00Z"]
        daemon.answer(
            "Receipts",
            times.enumerated().map { index, time in
                Records.make(Records.receipt) {
                    $0.id = UInt64(index)
                    $0.time = Timestamp(rfc3339: time) ?? Records.time
                }
            })
        func ids(_ arguments: String...) throws -> [Int64?]? {
            let line = ["--runtime", daemon.runtime, "receipts", "--json"] + arguments
            let outcome = try RunningProgram(line, environment: [], terminal: false).finish(in: daemon.loop)
            return try JSONValue.parse(outcome.output).arrayValue?.map { $0["id"]?.integerValue }
        }
        #expect(try ids("--since", "2025-11-21 00:00") == [1, 2])
        #expect(daemon.calls.last?.arguments == [.string(""), .uint32(0)])
        #expect(try ids("--since", "2025-11-21", "-n", "1", "photos") == [2])
        #expect(daemon.calls.last?.arguments == [.string("photos"), .uint32(0)])
        #expect(try ids("photos", "x*") == [0, 1, 2])
        #expect(try ids("mail", "m*") == [])
    }
}
