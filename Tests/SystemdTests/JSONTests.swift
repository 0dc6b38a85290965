import JSON
import Testing

@Suite("JSON")
struct JSONTests {
    static let document = JSONValue.object([
        ("zebra", .null), ("id", .string("mail")), ("memoryBytes", .integer(9_007_199_254_740_993)),
        ("remainingSeconds", .number(4.1)),
        ("tasks", .array([.object([("name", .string("a\"b\\c\n\t\u{1}\u{7f}🦊"))])])),
        ("empty", .array([])), ("none", .object([])), ("yes", .bool(true)), ("no", .bool(false)),
        ("limits", .array([.integer(.min), .integer(.max), .number(0.1), .number(-1e300), .number(5)])),
    ])

    @Test("a document is parsed as it was written, with its keys in order", arguments: [true, false])
    func roundTrip(pretty: Bool) throws {
        #expect(try JSONValue.parse(Self.document.serialized(pretty: pretty)) == Self.document)
    }

    @Test("compact output has no spaces, pretty output indents by two spaces a level")
    func form() {
        let value = JSONValue.object([("a", .array([.integer(1), .null])), ("b", .object([])), ("c", .string("x y"))])
        #expect(value.serialized(pretty: false) == #"{"a":[1,null],"b":{},"c":"x y"}"#)
        let pretty = """
            {
              "a": [
                1,
                null
              ],
              "b": {},
              "c": "x y"
            }
            """
        #expect(value.serialized(pretty: true) == pretty)
    }

    @Test(
        "numbers and strings are written as in JSON",
        arguments: [
            (.number(0.1), "0.1"), (.number(5), "5.0"), (.number(.nan), "null"), (.number(-.infinity), "null"),
            (.number(1e22), "1e+22"), (.string("\u{0}\u{1f}\u{9b}"), #""\u0000\u001f\u009b""#),
            (.string("é/"), "\"é/\""),
            (.string("\u{202e}\u{2028}\u{2066}\u{61c}\u{200c}"), "\"\\u202e\\u2028\\u2066\\u061c\u{200c}\""),
        ] as [(JSONValue, String)])
    func written(value: JSONValue, text: String) {
        #expect(value.serialized(pretty: false) == text)
    }

    @Test(
        "text that is not JSON is refused with its position",
        arguments: [
            ("", 1), ("{", 1), ("{\n  \"a\": 1,\n  \"a\": 2\n}", 3), ("[1,]", 1), ("[1]\n x", 2), ("'a'", 1),
            ("nul", 1),
            ("[99999999999999999999]", 1), ("\"\\ud800\"", 1), ("\"a\nb\"", 1), ("[1e999]", 1),
        ])
    func refused(text: String, line: Int) {
        let error = #expect(throws: JSONError.self) { _ = try JSONValue.parse(text) }
        #expect(error?.line == line, "\(error.map(String.init(describing:)) ?? "")")
        #expect(error?.message.isEmpty == false)
    }

    @Test("an error contains line, column and byte")
    func errorPosition() {
        let error = #expect(throws: JSONError.self) { _ = try JSONValue.parse("{\n  \"a\": nonsense\n}") }
        #expect(error?.line == 2)
        #expect(error?.column == 15)
        #expect(error?.position == 17)
        #expect(error?.description == "line 2, column 15: invalid token near 'nonsense'")
    }

    @Test("bytes that are not UTF-8 are refused")
    func notUTF8() {
        #expect(throws: JSONError.self) { _ = try JSONValue.parse([0x22, 0xff, 0x22]) }
    }

    @Test("depth and size are bounded", arguments: [64, 65, 2000, 100_000])
    func bounds(depth: Int) throws {
        let text = String(repeating: "[", count: depth) + String(repeating: "]", count: depth)
        if depth <= 64 {
            #expect(try JSONValue.parse(text).arrayValue?.count == 1)
        } else {
            #expect(throws: JSONError.self) { _ = try JSONValue.parse(text) }
        }
        var limits = JSONLimits()
        limits.bytes = 3
        #expect(throws: JSONError.self) { _ = try JSONValue.parse("1234", limits: limits) }
    }

    @Test("any value may be a document, and NULs survive in strings and keys")
    func single() throws {
        #expect(try JSONValue.parse("  7 ") == .integer(7))
        #expect(try JSONValue.parse("7.0") == .number(7))
        #expect(try JSONValue.parse(#""a\u0000b""#) == .string("a\0b"))
        #expect(try JSONValue.parse("[true,false,null]") == .array([.bool(true), .bool(false), .null]))
    }

    @Test("accessors return a value of the requested type, otherwise nil")
    func accessors() {
        #expect(Self.document["id"]?.stringValue == "mail")
        #expect(Self.document["missing"] == nil)
        #expect(Self.document["memoryBytes"]?.integerValue == 9_007_199_254_740_993)
        #expect(Self.document["remainingSeconds"]?.integerValue == nil)
        #expect(JSONValue.integer(2).numberValue == 2)
        #expect(Self.document["yes"]?.boolValue == true)
        #expect(Self.document["none"]?.objectValue?.isEmpty == true)
    }
}
