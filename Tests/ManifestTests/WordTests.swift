import Testing

@testable import Manifest

/// Tests the syntax of systemd.syntax(7), "Quoting".
@Suite("Words, quotes and escapes")
struct WordTests {
    private func words(_ text: String) throws -> [String] { try splitWords(text).map(\.text) }

    @Test(
        "words are split at blanks outside quotes, and quotes may start inside a word",
        arguments: [
            ("a b\tc", ["a", "b", "c"]), (" a  b ", ["a", "b"]), ("", []), (" \t", []), ("\"a b\"", ["a b"]),
            ("'a b' c", ["a b", "c"]), ("a\"b c\"d", ["ab cd"]), ("''", [""]), ("a '' b", ["a", "", "b"]),
            ("\"a'b\"", ["a'b"]), ("'a\"b'", ["a\"b"]), ("\"a\"'b'", ["ab"]), ("a=\"b c\" d", ["a=b c", "d"]),
        ] as [(String, [String])])
    func split(_ text: String, _ expected: [String]) throws {
        #expect(try words(text) == expected)
    }

    @Test(
        "C-style escapes are replaced inside and outside quotes",
        arguments: [
            (#"\a\b\f\n\r\t\v"#, "\u{7}\u{8}\u{c}\n\r\t\u{b}"), (#"\\"#, "\\"), (#"\""#, "\""), (#"\'"#, "'"),
            (#"\s"#, " "), (#"a\sb"#, "a b"), (#"\x41\x7a"#, "Az"), (#"\xc3\xa4"#, "ä"), (#"\101\060"#, "A0"),
            (#"\303\244"#, "ä"), (#"\u00e4"#, "ä"), (#"\U0001F600"#, "😀"), (#"\x4A\x4a"#, "JJ"),
        ])
    func escapes(_ text: String, _ expected: String) throws {
        #expect(try words(text) == [expected])
        #expect(try words("\"\(text)\"") == [expected])
    }

    @Test(
        "an invalid escape is an error at its backslash",
        arguments: [
            (#"a\"#, 1), (#"ab\q"#, 2), (#"\x4"#, 0), (#"\x4g"#, 0), (#"\xg4"#, 0), (#"a\x00"#, 1), (#"\400"#, 0),
            (#"\08"#, 0), (#"\01"#, 0), (#"\000"#, 0), (#"\ud800"#, 0), (#"\U00110000"#, 0), (#"\u123"#, 0),
            (#"\UFFFFFFFF"#, 0), (#"a b\é"#, 3), (#"\x+4"#, 0), (#"\e"#, 0), (#"\ "#, 0),
        ])
    func noEscapes(_ text: String, _ offset: Int) throws {
        let error = try #require(throws: ValueError.self) { try splitWords(text) }
        #expect(error.offset == offset)
        #expect(error.problem != nil)
    }

    @Test(
        "a word that is not valid UTF-8 after unescaping is an error at its start",
        arguments: [#"a b\xff"#, #"a "\xc3""#])
    func noText(_ text: String) throws {
        #expect(try #require(throws: ValueError.self) { try splitWords(text) }.offset == 2)
    }

    @Test(
        "a missing closing quote is an error at the opening quote",
        arguments: [("a \"b", 2), ("a b'c\"", 3), ("\"a\" \"", 4), ("\"a\\\"", 0)])
    func openQuotes(_ text: String, _ offset: Int) throws {
        let error = try #require(throws: ValueError.self) { try splitWords(text) }
        #expect(error.offset == offset)
        #expect(error.problem?.contains("missing closing quote") == true)
    }

    @Test("the offset of a word is in bytes")
    func offsets() throws {
        #expect(try splitWords("ä \"b c\"  d").map(\.offset) == [0, 3, 10])
    }

    @Test("4096 words are accepted and one more is an error")
    func tooMany() throws {
        #expect(try words(String(repeating: "a ", count: 4096)).count == 4096)
        let error = try #require(throws: ValueError.self) { try splitWords(String(repeating: "a ", count: 4097)) }
        #expect(error.offset == 8192)
    }

    @Test("a combining accent after a blank, a quote or a backslash does not change its meaning")
    func accents() throws {
        #expect(try words("a \u{301}b") == ["a", "\u{301}b"])
        #expect(try words("\"\u{301} \"\u{301}") == ["\u{301} \u{301}"])
        #expect(throws: ValueError.self) { try splitWords("\\\u{301}") }
    }

    @Test("$$ is a literal sign; any other begins a variable")
    func signs() throws {
        #expect(try CommandWord.parse("$$a%").literal == "$a%")
        for text in ["$", "a$A", "a${B", "$$$"] {
            #expect(throws: ValueError.self, "\(text)") { try CommandWord.parse(text) }
        }
    }
}
