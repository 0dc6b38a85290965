import Testing
import greenroomctl

@Suite("Text for terminals")
struct TextTests {
    @Test(
        "control characters and changes of direction are escaped, other text is unchanged",
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
        #expect(displayWidth("🚀") == 2)
        #expect(displayWidth("\u{1112}\u{1161}\u{11AB}") == 2)
        #expect(displayWidth("a\u{200D}b") == 2)
    }

    @Test("a help text is wrapped to a width, with descriptions in their column")
    func help() {
        let text = """
            Usage: x

            Head:
              --one                   First second third fourth
                                      fifth

            One two three
            four.

            """
        #expect(
            reflowed(text, to: 52) == """
                Usage: x

                Head:
                  --one                   First second third fourth
                                          fifth

                One two three four.

                """)
        #expect(
            reflowed(text, to: 30) == """
                Usage: x

                Head:
                  --one
                      First second third
                      fourth fifth

                One two three four.

                """)
    }

    @Test("lines are wrapped at spaces, and words stay whole")
    func breaking() {
        #expect(wrapped("one two three", to: 7) == ["one two", "three"])
        #expect(wrapped("incomprehensibilities do", to: 7) == ["incomprehensibilities", "do"])
        #expect(wrapped("", to: 7) == [""])
    }
}
