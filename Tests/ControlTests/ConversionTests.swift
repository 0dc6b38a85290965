import Control
import JSON
import Systemd
import Testing

@Suite("JSON and D-Bus")
struct ConversionTests {
    @Test("a record with all that the interface has survives the way to D-Bus and back")
    func roundTrip() {
        let json = JSONValue.object([
            ("id", .string("photos")), ("pid", .integer(12)), ("memoryBytes", .integer(.max)), ("left", .number(2.5)),
            ("foreground", .bool(true)), ("tasks", .array([.object([("name", .string("upload"))]), .object([])])),
            ("deadline", .object([("what", .string("launch"))])), ("errors", .array([.string("a"), .integer(1)])),
            ("none", .array([])),
        ])
        #expect(JSONValue(Variant(json)) == json)
    }

    @Test("objects are a{sv}, lists of objects aa{sv}, whole numbers x")
    func signatures() {
        #expect(Variant(JSONValue.object([("a", .integer(1))])).signature == "a{sv}")
        #expect(Variant(JSONValue.array([.object([]), .object([])])).signature == "aa{sv}")
        #expect(Variant(JSONValue.integer(1)).signature == "x")
        #expect(Variant(JSONValue.number(1)).signature == "d")
        #expect(Variant(JSONValue.array([.string("a"), .integer(1)])).signature == "av")
    }

    @Test("a key that is null is left out, and a size beyond Int64 is the largest")
    func edges() {
        #expect(Variant(JSONValue.object([("a", .null), ("b", .bool(false))])) == .dictionary([("b", .bool(false))]))
        #expect(JSONValue(Variant.uint64(.max)) == .integer(.max))
        #expect(
            JSONValue(Variant.array("{ss}", [.entry(.string("k"), .string("v"))])) == .object([("k", .string("v"))]))
    }
}
