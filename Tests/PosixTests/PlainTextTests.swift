import Posix
import Testing

@Suite("Text for people")
struct PlainTextTests {
    /// All characters that a terminal, a line of a log or the direction of text depends on.
    private static let controls: [Unicode.Scalar] =
        [0...0x1f, 0x7f...0x9f, 0x61c...0x61c, 0x200e...0x200f, 0x2028...0x202e, 0x2066...0x2069]
        .flatMap { (range: ClosedRange<UInt32>) in range.compactMap { Unicode.Scalar($0) } }

    @Test("every control character is escaped, and no other character is")
    func escapes() {
        let isEscaped = { (scalar: Unicode.Scalar) in String(scalar).escaped() != String(scalar) }
        #expect(Self.controls.allSatisfy(isEscaped))
        #expect(Self.controls.allSatisfy { String($0).escaped().utf8.allSatisfy { (0x20...0x7e).contains($0) } })
        let others = (0...0x2fff).compactMap { Unicode.Scalar(UInt32($0)) }.filter { !Self.controls.contains($0) }
        #expect(!others.contains(where: isEscaped))
        #expect("one\ntwo\r\tthree\0 \u{9b}2J\u{202e}".escaped() == #"one\ntwo\r\tthree\x00 \x9b2J\u202e"#)
    }

    @Test("a line end of two characters, and a control character with an accent, are escaped")
    func clusters() {
        #expect("a\r\nb".escaped() == #"a\r\nb"#)
        #expect("\u{1b}\u{301}".escaped() == "\\x1b\u{301}")
    }

    @Test("bytes that are not UTF-8 are shown as U+FFFD")
    func notUTF8() {
        #expect(String(decoding: [0x61, 0xff, 0x9b, 0x62] as [UInt8], as: UTF8.self).escaped() == "a\u{fffd}\u{fffd}b")
    }

    @Test("the limit is that of the result, and no escape sequence is divided", arguments: 0...13)
    func limit(limit: Int) {
        let text = "a\u{1b}ä\u{202e}b"
        let whole = #"a\x1bä\u202eb"#
        let shown = text.escaped(upTo: limit)
        #expect(shown.utf8.count <= limit)
        #expect(whole.hasPrefix(shown))
        let steps = ["", "a", #"a\x1b"#, #"a\x1bä"#, #"a\x1bä\u202e"#, whole]
        #expect(shown == steps.last { $0.utf8.count <= limit })
    }
}
