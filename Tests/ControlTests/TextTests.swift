import Testing
import greenroomctl

@Suite("Text for terminals")
struct TextTests {
    @Test(
        "controls and turns of direction are spelled out, all else stays",
        arguments: [
            ("plain – “ünïcödé” 中文", "plain – “ünïcödé” 中文"),
            ("a\u{1B}[31mred\u{7}", "a\\x1b[31mred\\x07"),
            ("one\ntwo\r\tthree\0", "one\\ntwo\\r\\tthree\\x00"),
            ("c1: \u{9B}2J \u{7F}", "c1: \\x9b2J \\x7f"),
            ("\u{202E}exe.sgp\u{2066}x\u{2028}", "\\u202eexe.sgp\\u2066x\\u2028"),
        ])
    func escapes(text: String, expected: String) {
        #expect(escaped(text) == expected)
    }

    @Test("wide characters take two columns, combining marks none")
    func widths() {
        #expect(displayWidth("abc") == 3)
        #expect(displayWidth("中文") == 4)
        #expect(displayWidth("e\u{301}") == 1)
    }

    @Test("lines are broken at spaces, and words stay whole")
    func breaking() {
        #expect(wrapped("one two three", to: 7) == ["one two", "three"])
        #expect(wrapped("incomprehensibilities do", to: 7) == ["incomprehensibilities", "do"])
        #expect(wrapped("", to: 7) == [""])
    }
}

@Suite("Quantities")
struct QuantityTests {
    @Test(
        "time spans have the units that people read",
        arguments: [
            (0, "0s"), (0.04, "0.0s"), (3.21, "3.2s"), (5, "5s"), (9.96, "10s"), (28.4, "28s"), (59.6, "1min"),
            (90, "1min 30s"),
            (7500, "2h 5min"), (86400, "1 day"), (273_600, "3 days 4h"), (-3, "0s"), (.infinity, "infinity"),
            (.nan, "infinity"), (1e300, "infinity"),
        ])
    func timeSpans(seconds: Double, expected: String) {
        #expect(timeSpan(seconds) == expected)
    }

    @Test(
        "what is past needs one unit",
        arguments: [
            (-5, "just now"), (0.5, "just now"), (12, "12s ago"), (200, "3min ago"), (7199, "1h ago"),
            (90000, "1 day ago"),
            (200_000, "2 days ago"), (.nan, "just now"), (.infinity, "11574074 days ago"),
        ])
    func pasts(seconds: Double, expected: String) {
        #expect(ago(seconds) == expected)
    }

    @Test(
        "short times keep their digits",
        arguments: [(0.0521, "52ms"), (0.314, "0.31s"), (2.004, "2.00s"), (75, "1min 15s")])
    func shortTimes(seconds: Double, expected: String) {
        #expect(measured(seconds) == expected)
    }

    @Test(
        "sizes are to the base of 1024, and never need a fifth digit",
        arguments: [
            (0, "0B"), (1023, "1023B"), (1024, "1.0K"), (14_365_491, "13.7M"), (1_073_741_823, "1.0G"),
            (.max, "8192.0P"),
            (-5, "0B"),
        ] as [(Int64, String)])
    func sizes(bytes: Int64, expected: String) {
        #expect(size(bytes) == expected)
    }

    @Test("instants are read in RFC 3339, with a fraction and an offset or without")
    func moments() {
        #expect(Moment("1970-01-01T00:00:00Z")?.seconds == 0)
        #expect(Moment("2025-11-21T07:12:03.250Z")?.seconds == 1_763_709_123.25)
        #expect(Moment("2025-11-21T08:12:03+01:00") == Moment("2025-11-21T07:12:03Z"))
    }

    @Test(
        "what is no instant is none",
        arguments: [
            "", "yesterday", "2025-11-21 07:12:03Z", "2025-13-21T07:12:03Z", "2025-11-21T07:12:03",
            "2025-11-21T07:12:03.Z",
            "2025-11-21T07:12:0xZ", "2025-11-21T07:12:03+1:000", "2025-11-21T07:12:03Zjunk",
        ])
    func noMoments(text: String) {
        #expect(Moment(text) == nil)
    }
}
