import Systemd
import Testing

@Suite("Variant", .serialized)
struct VariantTests {
    static let values: [Variant] = [
        .byte(255), .bool(true), .bool(false), .int16(.min), .uint16(.max), .int32(.min), .uint32(.max), .int64(.min),
        .uint64(.max), .double(-0.1), .double(.infinity), .string(""), .string("größer 🦊 \n"), .objectPath("/a/b_2ec"),
        .signature("a{sv}"), .bytes([]), .bytes([0, 1, 255]), .strings([]), .strings(["a", "b"]),
        .array("i", [.int32(1), .int32(-1)]), .dictionary([]),
        .dictionary([("b", .int32(1)), ("a", .dictionary([("nested", .strings(["x"]))])), ("v", .variant(.byte(1)))]),
        .array("{ss}", [.entry(.string("k"), .string("v"))]),
        .array("{oa{sa{sv}}}", [.entry(.objectPath("/"), .array("{sa{sv}}", []))]),
        .structure([.string("x"), .uint64(1), .structure([.bool(true)])]),
        .array("(sb)", [.structure([.string("x"), .bool(false)])]),
        .dictionaries([[("id", .string("mail"))], []]), .variant(.variant(.string("deep"))),
    ]

    @Test("a value is received from the bus as it was sent", arguments: values)
    func roundTrip(value: Variant) throws {
        let stage = try Stage()
        let answer = try stage.ask(try stage.client(), "Echo", [.variant(value)])
        #expect(answer == .success([.variant(value)]))
    }

    @Test("signatures are spelled as in D-Bus")
    func signatures() {
        let expected = [
            "y", "b", "b", "n", "q", "i", "u", "x", "t", "d", "d", "s", "s", "o", "g", "ay", "ay", "as", "as", "ai",
            "a{sv}",
            "a{sv}", "a{ss}", "a{oa{sa{sv}}}", "(st(b))", "a(sb)", "aa{sv}", "v",
        ]
        #expect(Self.values.map(\.signature) == expected)
    }

    @Test("values that cannot be sent are refused, and the connection stays usable")
    func unsendable() throws {
        let stage = try Stage()
        let client = try stage.client()
        let wrong: [Variant] = [
            .objectPath("no path"), .objectPath(""), .signature("a{"), .signature("("), .signature("z"), .structure([]),
            .array("s", [.int32(1)]), .array("", []), .array("ss", []), .array("{vs}", []), .array("a{sv", []),
            .entry(.string("k"), .string("v")), .array("{sv}", [.entry(.string("k"), .string("not a variant"))]),
            .signature(String(repeating: "a", count: 300) + "y"),
        ]
        for value in wrong {
            #expect(throws: BusError.self, "\(value)") {
                try client.call(
                    path: Exhibit.path, interface: Exhibit.manager, member: "Echo", [.variant(value)],
                    timeout: testTimeout
                ) { _ in Issue.record("it was answered") }
            }
        }
        #expect(try stage.ask(client, "Echo", [.variant(.bool(true))]) == .success([.variant(.bool(true))]))
    }

    @Test("a NUL inside a string does not cut it short")
    func embeddedNUL() throws {
        let stage = try Stage()
        let answer = try stage.ask(try stage.client(), "Echo", [.variant(.string("a\0b\0"))])
        #expect(answer == .success([.variant(.string("a\u{FFFD}b\u{FFFD}"))]))
    }

    @Test("a file descriptor in a message is refused", .enabled(if: isInstalled("busctl"), "busctl is not installed"))
    func descriptor() throws {
        let stage = try Stage()
        let text = try stage.busctl("call", Exhibit.name, Exhibit.path, Exhibit.manager, "Echo", "v", "h", "0").text
        #expect(text.contains("descriptor"), "\(text)")
    }

    @Test("accessors return a value of the requested type, otherwise nil")
    func accessors() {
        #expect(Variant.uint64(.max).intValue == nil)
        #expect(Variant.uint64(.max).uintValue == .max)
        #expect(Variant.int32(-1).uintValue == nil)
        #expect(Variant.byte(7).intValue == 7)
        #expect(Variant.string("x").intValue == nil)
        #expect(Variant.bool(true).boolValue == true)
        #expect(Variant.objectPath("/a").stringValue == "/a")
        #expect(Variant.bytes([1]).arrayValue == [.byte(1)])
        #expect(Variant.variant(.variant(.bool(true))).unwrapped == .bool(true))
        let dictionary = Variant.dictionary([("a", .int32(1)), ("a", .int32(2))])
        #expect(dictionary["a"] == .int32(1))
        #expect(dictionary["b"] == nil)
        #expect(Variant.int32(1)["a"] == nil)
    }
}

@Suite("Object paths")
struct ObjectPathTests {
    @Test(
        "any name can be encoded as a path and decoded again",
        arguments: ["mail", "org.example.Photos", "1", "_", "ä", "a/b", " "])
    func roundTrip(id: String) {
        let path = ObjectPath.encode(id, below: "/org/app")
        #expect(path.hasPrefix("/org/app/"))
        #expect(
            path.dropFirst("/org/app/".count).allSatisfy { $0.isASCII && ($0.isLetter || $0.isNumber || $0 == "_") })
        #expect(ObjectPath.decode(path, below: "/org/app") == id)
    }

    @Test(
        "other paths contain no name",
        arguments: [
            "/org/app", "/org/app/", "/org", "/org/apps/mail", "/org/app/a/b", "/org/app/_61", "/org/app/_6", "",
        ])
    func others(path: String) {
        #expect(ObjectPath.decode(path, below: "/org/app") == nil)
    }
}
