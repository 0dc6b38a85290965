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

    /// What `printable` does, character by character.
    private func expected(_ text: some StringProtocol, upTo limit: Int) -> String {
        var result: [Unicode.Scalar] = []
        var (count, kept) = (0, 0)
        for scalar in text.unicodeScalars {
            let shown = scalar.isControl ? "\u{fffd}" : scalar
            count += UTF8.width(shown)
            guard count <= limit else {
                return result.prefix(kept).reduce(into: "") { $0.unicodeScalars.append($1) } + "…"
            }
            result.append(shown)
            if count <= limit - 3 { kept += 1 }
        }
        return result.reduce(into: "") { $0.unicodeScalars.append($1) }
    }

    @Test("random bytes are stored as their characters, whether they are plain ASCII or not", arguments: 0..<64)
    func random(seed: Int) {
        var state = UInt64(seed)
        func next() -> Int {
            state = state &* 6_364_136_223_846_793_005 &+ 1_442_695_040_888_963_407
            return Int(state >> 33)
        }
        // All bytes, ASCII with a few control characters, plain ASCII, and characters of two to four bytes.
        let alphabets: [() -> [UInt8]] = [
            { [UInt8(next() % 256)] }, { [UInt8(next() % 128)] }, { [UInt8(0x20 + next() % 95)] },
            { Array(["ä", "€", "\u{202e}", "\u{9b}", "😀", "x", "\u{301}"][next() % 7].utf8) },
        ]
        let alphabet = alphabets[seed % alphabets.count]
        let bytes = (0..<next() % 200).flatMap { _ in alphabet() }
        let text = String(decoding: bytes, as: UTF8.self)
        let part = "=\(text)".dropFirst()
        for limit in [0, 1, 2, 3, 4, 7, bytes.count - 1, bytes.count, bytes.count + 1, 3 * bytes.count, .max]
        where limit >= 0 {
            #expect(Array(text.printable(upTo: limit).utf8) == Array(expected(text, upTo: limit).utf8))
            #expect(Array(part.printable(upTo: limit).utf8) == Array(expected(part, upTo: limit).utf8))
        }
        #expect(text.escaped().unicodeScalars.allSatisfy { !$0.isControl })
    }

    @Test("plain ASCII characters are all that are neither control characters nor of several bytes")
    func plain() {
        for value in UInt8(0)...0xff {
            let text = String(decoding: [0x61, value], as: UTF8.self)
            let isPlain = (0x20...0x7e).contains(value)
            #expect(text.printable() == (isPlain ? text : "a\u{fffd}"))
            #expect((text.escaped() == text) == (isPlain || value >= 0x80))
        }
    }
}
