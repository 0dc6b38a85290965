import ManifestProperties
import Testing

@testable import Manifest

@Suite("Values in systemd's syntax")
struct ValueTests {
    @Test(
        "a time span is the sum of numbers with units (systemd.time(7))",
        arguments: [
            ("5s", 5_000_000), ("5", 5_000_000), ("0", 0), ("1min 30s", 90_000_000), ("1min30s", 90_000_000),
            ("1h30", 3_630_000_000), ("2 h", 7_200_000_000), ("500ms", 500_000), ("50us", 50), ("50µs", 50),
            ("50μs", 50), ("1.5s", 1_500_000), (".5s", 500_000), ("1.5min", 90_000_000), ("0.0000001y", 3_155_760),
            ("1.9us", 1), ("12.34 .56", 12_900_000), ("12.34s.56", 12_900_000), ("1d", 86_400_000_000),
            ("1w", 604_800_000_000), ("1M", 2_629_800_000_000), ("1m", 60_000_000), ("1y", 31_557_600_000_000),
            ("1year 2months 3weeks 4days 5hours 6minutes 7seconds 8msec 9usec", 38_995_567_008_009),
            ("1 second 1 sec 1 minute 1 hr 1 hour 1 day 1 week 1 month", 3_328_262_000_000), ("007", 7_000_000),
            ("  5s  ", 5_000_000), ("100y", 3_155_760_000_000_000), ("00000000000000000000000000000005s", 5_000_000),
        ])
    func spans(_ text: String, _ microseconds: Int) {
        #expect(parseTimeSpan(text) == .some(.microseconds(microseconds)), "\(text)")
    }

    @Test(
        "an invalid time span is not parsed",
        arguments: [
            "", " ", "s", "5x", "5S", "5Ms", "-5", "-0", "+5", "5.", ".", "5. 5", "5.s", "12.34.56", "5s 12.34.56",
            "1e3", "0x5",
            "5 s s",
            "infinity 5s", "5s infinity", "Infinity", "inf", "infinity\u{301}", "5s\u{301}", "٥s", "5\u{a0}s", "5s,",
            "101y",
            "3155760000.000001s", "99999999999999999999", "18446744073709551616us", "100y 1us", "5\u{212a}",
        ])
    func noSpans(_ text: String) {
        #expect(parseTimeSpan(text) == nil, "\(text)")
    }

    @Test("infinity is parsed as no limit")
    func infinity() {
        #expect(parseTimeSpan("infinity") == .some(nil))
        #expect(parseTimeSpan(" infinity\t") == .some(nil))
    }

    @Test(
        "time spans are formatted in the syntax in which they are parsed",
        arguments: [
            ("0", Duration.zero), ("5s", .seconds(5)), ("1min 30s", .seconds(90)), ("1d 1h", .seconds(90_000)),
            ("500ms", .milliseconds(500)), ("1s 1us", .microseconds(1_000_001)), ("infinity", nil),
            ("0", .nanoseconds(999)), ("0", .seconds(-5)), ("106751991167300d", .seconds(Int64.max)),
        ] as [(String, Duration?)])
    func showsSpans(_ text: String, _ time: Duration?) {
        #expect(formatTimeSpan(time) == text)
    }

    @Test(
        "a size is the sum of numbers with units of powers of 1024, largest unit first",
        arguments: [
            ("0", 0), ("1", 1), ("64M", 67_108_864), ("64B", 64), ("1K", 1024), ("1.5K", 1536), ("0.3M", 314_572),
            ("2G", 2_147_483_648), ("1T", 1 << 40), ("1P", 1 << 50), ("1E", 1 << 60), ("7E", 7 << 60),
            ("1G 512M", 1_610_612_736), ("1G512M", 1_610_612_736), ("1 G", 1 << 30), ("10.M", 10 << 20), ("5B 3", 8),
            ("9223372036854775807", 9_223_372_036_854_775_807), ("0.5", 0), ("0.9999999999999999999999K", 1023),
            ("0.000000001E", 1_152_921_504), ("1.5E", 3 << 59),
        ] as [(String, UInt64)])
    func sizes(_ text: String, _ bytes: UInt64) {
        #expect(parseSize(text) == bytes, "\(text)")
    }

    @Test(
        "an invalid size is not parsed",
        arguments: [
            "", "M", "-1", "+1", "1k", "1KB", "1KiB", "1Ki", "512M 1G", "1G 1G", "1x", ".5G", "1. 5K", "1e6", "0x10",
            "1,5G",
            "infinity", "10%", "8E", "9223372036854775808", "7E 1024P", "16E", "99999999999999999999", "1\u{212a}",
            "٣M",
            "1G ", "5 6", "1B 1K", "1\u{301}",
        ])
    func noSizes(_ text: String) {
        #expect(parseSize(text) == nil, "\(text)")
    }

    @Test(
        "sizes are formatted with one decimal in the largest unit below them",
        arguments: [
            (0, "0B"), (1023, "1023B"), (1024, "1.0K"), (1536, "1.5K"), (67_108_864, "64.0M"), (1_048_524, "1023.9K"),
            (1_048_575, "1.0M"), (1 << 30, "1.0G"), (.max, "16.0E"),
        ] as [(UInt64, String)])
    func showsSizes(_ bytes: UInt64, _ text: String) {
        #expect(formatSize(bytes) == text)
    }

    @Test("percentages have at most two decimals and are parsed as hundredths of a percent")
    func percentages() {
        for (text, expected) in [("0%", 0), ("7%", 700), ("100%", 10_000), ("12.5%", 1250), ("12.05%", 1205)] {
            #expect(parsePermyriad(text) == expected, "\(text)")
        }
        for text in ["", "%", "7", "101%", "100.01%", "12.555%", "12.%", ".5%", "-1%", "+1%", "1 %", "1%%", "1e1%"] {
            #expect(parsePermyriad(text) == nil, "\(text)")
        }
        #expect(parsePercent("7%") == 7)
        #expect(parsePercent("7.5%") == nil)
    }

    @Test("booleans are case-insensitive")
    func booleans() {
        for text in ["1", "yes", "y", "true", "t", "on", "YES", "True"] { #expect(parseBoolean(text) == true) }
        for text in ["0", "no", "n", "false", "f", "off", "NO", "oFF"] { #expect(parseBoolean(text) == false) }
        for text in ["", "2", "ye", "maybe", "yes\u{301}", "ＹＥＳ"] { #expect(parseBoolean(text) == nil, "\(text)") }
    }

    @Test("numbers are digits with an optional minus sign, within their range")
    func numbers() {
        #expect(parseNumber("-1000", in: -1000...1000) == -1000)
        #expect(parseNumber("-0", in: -1...1) == 0)
        #expect(parseNumber("0010", in: 0...10) == 10)
        for text in ["", "-", "+1", "1 ", "0x1", "1_0", "1.0", "٣", "--1", "99999999999999999999", "11", "-1"] {
            #expect(parseNumber(text, in: 0...10) == nil, "\(text)")
        }
        #expect(parseNumber("-9223372036854775808", in: Int.min...Int.max) == nil)
        #expect(parseOctal("0777", upTo: 0o777) == 0o777)
        #expect(parseOctal("0000000000000000000000000000022", upTo: 0o777) == 0o22)
        for text in ["", "8", "+7", "-7", "0o7", "1000", "7777777777777777777777777777", "7 "] {
            #expect(parseOctal(text, upTo: 0o777) == nil, "\(text)")
        }
    }

    @Test(
        "a signal is parsed from its name or number (signal(7))",
        arguments: [
            ("SIGTERM", 15), ("TERM", 15), ("15", 15), ("SIGUSR1", 10), ("SIGRTMIN", 34), ("RTMIN+1", 35),
            ("SIGRTMIN+0", 34), ("SIGRTMIN+30", 64), ("RTMAX", 64), ("SIGRTMAX-30", 34), ("64", 64), ("1", 1),
            ("CONT", 18),
            ("TSTP", 20), ("SYS", 31), ("IO", 29), ("015", 15),
        ] as [(String, Int32)])
    func signals(_ text: String, _ number: Int32) {
        #expect(parseSignal(text) == number, "\(text)")
    }

    @Test(
        "an invalid signal is not parsed",
        arguments: [
            "", "SIG", "term", "SIGSIGTERM", "0", "65", "-1", "+15", "RTMIN+31", "RTMAX-31", "RTMIN-1", "RTMAX+1",
            "RTMIN1",
            "RTMIN+", "RTMIN+-1", "RTMIN++1", "RTMIN+ 1", "SIG15", "SIGTERM ", "SIG\u{301}TERM", "\u{212a}ILL",
        ])
    func noSignals(_ text: String) {
        #expect(parseSignal(text) == nil, "\(text)")
    }

    @Test("SIGKILL, SIGSTOP and the two signals that glibc reserves are not accepted as signals that can be caught")
    func uncatchable() {
        for text in ["KILL", "SIGSTOP", "9", "19", "32", "33"] { #expect(parseCatchable(text) == nil, "\(text)") }
        #expect(parseCatchable("SIGCONT") == 18)
    }
}

@Suite("Suggestions for misspelled names")
struct NearestTests {
    private let keys = ["ExecStart", "Type", "User", "UMask"]

    @Test(
        "the most similar name is suggested, regardless of case",
        arguments: [
            ("ExecStrat", "ExecStart"), ("execstart", "ExecStart"), ("ExceStrt", "ExecStart"), ("Exec", nil),
            ("Typ", "Type"), ("Tyep", "Type"), ("User", "User"), ("Usr", "User"), ("UMaks", "UMask"), ("Foo", nil),
            ("", nil), ("T", nil), ("TypeType", nil),
        ] as [(String, String?)])
    func nearestKey(_ written: String, _ expected: String?) {
        #expect(nearest(written, among: keys) == expected, "\(written)")
    }

    @Test("at most a third of the letters may differ, and two exchanged neighbours count as one")
    func most() {
        #expect(nearest("abcdxy", among: ["abcdef"]) == "abcdef")
        #expect(nearest("abcxyz", among: ["abcdef"]) == nil)
        #expect(nearest("badcef", among: ["abcdef"]) == "abcdef")
        #expect(nearest("badcfe", among: ["abcdef"]) == nil)
        #expect(nearest("xabc", among: ["abc"]) == "abc")
        #expect(nearest("xyabcdefg", among: ["abcdefg"]) == "abcdefg")
    }

    @Test("of equally similar names the first is suggested, and of no names none")
    func ties() {
        #expect(nearest("ab", among: ["aa", "bb"]) == "aa")
        #expect(nearest("ab", among: ["bb", "aa"]) == "bb")
        #expect(nearest("ab", among: ["xy", "b", "ab"]) == "ab")
        #expect(nearest("ab", among: []) == nil)
    }

    @Test("no suggestion is made for a name of more than 64 bytes")
    func long() {
        let long = String(repeating: "a", count: 65)
        #expect(nearest(long, among: [long]) == nil)
        #expect(nearest(String(long.dropLast()), among: [long]) == long)
    }
}
