import Testing

@testable import Greenroom

@Suite("App library: the reader of receipts")
struct JSONReaderTests {
    private func read(_ text: String) -> [String: JSONReader.Value]? {
        var reader = JSONReader(Array(text.utf8))
        return reader.fields()
    }

    @Test("texts, numbers and Booleans of an object are read, and other values are skipped")
    func values() {
        let text =
            #" { "a" : "b\"\\\/\n\u00e4\ud83e\udd8a", "n": -1.5e3, "t":true,"f":false,"x":null,"o":{"a":[1,{}]},"e":[] } "#
        #expect(
            read(text) == [
                "a": .text("b\"\\/\nä🦊"), "n": .number("-1.5e3"), "t": .bool(true), "f": .bool(false), "x": .other,
                "o": .other, "e": .other,
            ])
        #expect(read("{}") == [:])
    }

    @Test(
        "bytes that are no JSON object are no receipt",
        arguments: [
            "", "{", "}", "[]", "1", "\"a\"", "{\"a\"}", "{\"a\":}", "{\"a\":1", "{\"a\":1}x", "{\"a\":1,}", "{,}",
            "{a:1}",
            "{\"a\":\"b}", "{\"a\":\"\\x\"}", "{\"a\":\"\\u12\"}", "{\"a\":\"\\ud800\"}", "{\"a\":\"\\ud800\\u0020\"}",
            "{\"a\":nul}", "{\"a\":1 2}", "{\"a\":\"\n\"}", "{\"a\":[1,]}", "{\"a\":\\", "{\"a\":\"\\",
            "{\"a\":\"\\udc00\"}",
        ])
    func damaged(_ text: String) {
        #expect(read(text) == nil)
        #expect(LastEnd(json: Array(text.utf8)) == nil)
    }

    @Test("values are at most 64 levels deep, and bytes that are not UTF-8 are no receipt")
    func hostile() {
        func nested(_ depth: Int) -> String {
            "{\"a\":" + String(repeating: "[", count: depth) + String(repeating: "]", count: depth) + "}"
        }
        #expect(read(nested(60)) != nil)
        #expect(read(nested(100_000)) == nil)
        #expect(LastEnd(json: Array("{\"a\":\"".utf8) + [0xFF, 0x22, 0x7D]) == nil)
    }

    @Test("the first bytes of a receipt are never one, and no change of one byte ends the process")
    func everyChange() {
        let receipt = Array(#"{"code":"0x8badf00d","n":[1,{"a":"\u00e4"}],"signal":9,"coreDumped":true}"#.utf8)
        #expect(LastEnd(json: receipt)?.code == "0x8badf00d")
        for position in receipt.indices {
            #expect(LastEnd(json: Array(receipt[..<position])) == nil)
            for byte in UInt8.min...UInt8.max {
                var changed = receipt
                changed[position] = byte
                _ = LastEnd(json: changed)
            }
        }
    }
}
