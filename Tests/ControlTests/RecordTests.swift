import Control
import JSON
import Systemd
import Testing

@Suite("Records in D-Bus and JSON")
struct RecordTests {
    private func survives<Value: RecordValue>(_ value: Value) throws -> Bool {
        let json = try JSONValue.parse(value.json.serialized(pretty: true))
        return try Value(variant: value.variant) == value && Value(json: json) == value
    }

    @Test("every record is equal after the conversion to D-Bus or JSON and back")
    func roundTrip() throws {
        #expect(try survives(Records.receipt))
        #expect(try survives([Records.photos, Records.mail, Records.broken]))
        #expect(try survives([Records.worker, Records.idleWorker]))
        #expect(try survives(Records.memory))
        #expect(try survives(Records.ended))
        #expect(try survives(Records.simulated("critical", victim: "mail")))
        #expect(try survives([Records.heldWorker, Records.unloadedWorker]))
        #expect(try survives(ClientStatus(pid: 7, name: "claude", program: "node")))
        #expect(try survives(Records.make(LaunchOptions()) { $0.url = "x:y" }))
        #expect(try survives(Records.make(LaunchOptions()) { $0.environment = ["A=1", "B="] }))
        #expect(try survives(Records.make(ReloadResult()) { $0.errors = ["a", "b"] }))
        let event = Records.make(LifecycleEvent(.ended, app: "photos")) {
            $0.time = Records.time
            $0.monotonic = 1_500_000
            $0.took = .microseconds(250)
            $0.state = "suspended"
            $0.previousState = "background"
            $0.tasks = [Records.make(TaskStatus()) { $0.name = "upload" }]
            $0.relaunch = .milliseconds(1500)
            $0.receipt = 12
            $0.input = Records.input
            $0.watch = Records.watch
            $0.staysAwake = .seconds(4)
            $0.file = "/var/lib/db"
            $0.locks = 2
            $0.cpu = .seconds(25)
            $0.within = .seconds(30)
        }
        #expect(try survives(event))
    }

    /// The types of a record's keys, as in docs/DBUS.md.
    private static func types<Value: Record>(_ type: Value.Type) -> [String: String] {
        Dictionary(uniqueKeysWithValues: type.fields.map { ($0.key, $0.signature) })
    }

    @Test("a key has one D-Bus type in all records, except for the two kinds of ID")
    func oneTypeAKey() {
        let records = [
            Self.types(AppStatus.self), Self.types(ClientStatus.self), Self.types(SocketStatus.self),
            Self.types(TaskStatus.self),
            Self.types(WakeStatus.self),
            Self.types(ThrottleStatus.self), Self.types(AwakeStatus.self), Self.types(InputStatus.self),
            Self.types(WatchStatus.self), Self.types(UnwatchedStatus.self), Self.types(DeferredWakeStatus.self),
            Self.types(LockStatus.self), Self.types(DeadlineStatus.self),
            Self.types(ReceiptRecord.self), Self.types(JetsamCandidate.self), Self.types(LifecycleEvent.self),
            Self.types(MemoryStatus.self), Self.types(MemoryLimitStatus.self), Self.types(StallStatus.self),
            Self.types(SimulationResult.self), Self.types(RequestResult.self),
            Self.types(LaunchOptions.self),
        ]
        var all: [String: Set<String>] = [:]
        for record in records { for (key, type) in record { all[key, default: []].insert(type) } }
        #expect(all.filter { $0.value.count > 1 } == ["id": ["s", "t"]])
        #expect(all["pid"] == ["u"] && all["memoryBytes"] == ["t"] && all["receipt"] == ["t"] && all["time"] == ["t"])
        #expect(Self.types(ReceiptRecord.self)["id"] == "t" && Self.types(AppStatus.self)["id"] == "s")
    }

    @Test("JSON has the contract's keys, times in RFC 3339, and sizes, pids and seconds as numbers")
    func json() {
        let json = Records.photos.json
        #expect(json["since"] == .string("2025-11-21T07:12:03.250000Z"))
        #expect(json["pid"] == .integer(4711))
        #expect(json["memoryBytes"] == .integer(14_365_491))
        #expect(json["deadline"] == .object([("what", .string("background")), ("remainingSeconds", .number(3.21))]))
        #expect(json["lastReceipt"]?["time"] == .string("2025-11-21T07:12:03.250000Z"))
        #expect(Records.mail.json["tasks"] == .array([]))
    }

    @Test("D-Bus has times in microseconds of CLOCK_REALTIME, and leaves absent values out")
    func variant() {
        #expect(Records.photos.variant["since"] == .uint64(1_763_709_123_250_000))
        #expect(Records.photos.variant["backgroundTimeRemainingSeconds"] == nil)
        #expect(Records.photos.variant["tasks"]?.signature == "aa{sv}")
        #expect(Records.mail.variant["tasks"] == .array("a{sv}", []))
    }

    @Test("an unknown key is ignored, and of a repeated key the first one counts")
    func unknownKeys() throws {
        let entries: [(String, Variant)] = [
            ("level", .string("normal")), ("future", .bool(true)), ("level", .uint64(1)),
        ]
        #expect(try SimulationResult(variant: .dictionary(entries)) == Records.simulated("normal"))
    }

    @Test(
        "a value of another type is an error that names the key, what was expected and what was found",
        arguments: [
            (.dictionary([]), "key 'level': expected s, found nothing"),
            (.dictionary([("level", .uint64(1))]), "key 'level': expected s, found t"),
            (.array("s", []), "the value: expected a{sv}, found as"),
        ] as [(Variant, String)])
    func wrongType(variant: Variant, expected: String) {
        #expect(description { try SimulationResult(variant: variant) } == expected)
    }

    @Test("the error names the path inside lists and records")
    func wrongTypeInside() {
        func status(_ key: String, _ value: Variant) -> Variant {
            .array("a{sv}", [.dictionary([(key, value)] + Records.photos.entries)])
        }
        func error(_ key: String, _ value: Variant) -> String? {
            description { try [AppStatus](variant: status(key, value)) }
        }
        #expect(error("pid", .int64(3)) == "key '[0].pid': expected u, found x")
        #expect(
            error("tasks", .array("a{sv}", [.dictionary([("name", .bool(true))])]))
                == "key '[0].tasks[0].name': expected s, found b")
        #expect(error("tasks", .array("s", [])) == "key '[0].tasks': expected aa{sv}, found as")
        #expect(error("since", .string("today")) == "key '[0].since': expected t, found s")
        #expect(error("since", .uint64(.max)) == "key '[0].since': expected t, found a value out of range")
        #expect(
            error("launchPostponedSeconds", .double(.infinity))
                == "key '[0].launchPostponedSeconds': expected d, found a value out of range")
    }

    @Test(
        "JSON of another type is an error, too",
        arguments: [
            (#"{"id": -1, "app": "a"}"#, "key 'id': expected a whole number that is not negative, found the number -1"),
            (#"{"id": 1.5}"#, "key 'id': expected a whole number that is not negative, found the number 1.5"),
            (#"{"id": 1, "app": []}"#, "key 'app': expected a string, found a list"),
            (#"{"id": 1}"#, "key 'app': expected s, found nothing"),
            (
                #"{"id": 1, "app": "a", "pid": 4294967296}"#,
                "key 'pid': expected a whole number of 32 bits that is not negative, found the number 4294967296"
            ),
            (#"{"id": 1, "app": "a", "time": "noon"}"#, "key 'time': expected a time in RFC 3339, found a string"),
            ("[]", "the value: expected an object, found a list"),
        ])
    func wrongJSON(text: String, expected: String) throws {
        let json = try JSONValue.parse(text)
        #expect(description { try ReceiptRecord(json: json) } == expected)
    }

    @Test("a list that is longer than the limit is refused")
    func bounded() {
        let names = Variant.array("s", Array(repeating: .string(""), count: 65_537))
        #expect(
            description { try [String](variant: names) } == "the value: expected at most 65536 elements, found 65537")
    }

    @Test("a duration keeps its microseconds, and is written with no more digits than that")
    func durations() throws {
        for microseconds in [0, 1, 999_999, 5_210_000, 3_204_180, 86_400_000_001, -1_500_000] {
            let duration = Duration.microseconds(microseconds)
            #expect(try survives(duration))
            #expect(duration.json.serialized(pretty: false).count <= 16)
        }
        #expect(Duration.nanoseconds(3_204_180_555).json.serialized(pretty: false) == "3.20418")
        #expect(Duration.seconds(Int64.max).json == .number(1e12))
    }

    @Test("a size above the largest JSON integer is written as that integer")
    func clamped() {
        #expect(UInt64.max.json == .integer(.max))
    }

    private func description(_ body: () throws -> Any) -> String? {
        do {
            _ = try body()
            return nil
        } catch {
            return "\(error)"
        }
    }
}

@Suite("Timestamps and quantities")
struct QuantityTests {
    @Test("a timestamp is written in RFC 3339 with microseconds, and read with any fraction and offset")
    func timestamps() {
        #expect(Timestamp(rfc3339: "1970-01-01T00:00:00Z")?.microseconds == 0)
        #expect(Timestamp(rfc3339: "2025-11-21T07:12:03.25Z") == Records.time)
        #expect(Timestamp(rfc3339: "2025-11-21T08:12:03.250000999+01:00") == Records.time)
        #expect(Records.time.rfc3339 == "2025-11-21T07:12:03.250000Z")
        #expect(Timestamp(microseconds: 1).rfc3339 == "1970-01-01T00:00:00.000001Z")
        #expect(Timestamp(microseconds: .max).rfc3339 == "9999-12-31T23:59:59.999999Z")
    }

    @Test(
        "a timestamp has the right date around leap days and at the ends of centuries",
        arguments: [
            (68_169_599, "1972-02-28T23:59:59"), (68_169_600, "1972-02-29T00:00:00"),
            (68_256_000, "1972-03-01T00:00:00"),
            (951_782_400, "2000-02-29T00:00:00"), (946_684_799, "1999-12-31T23:59:59"),
            (4_107_542_400, "2100-03-01T00:00:00"), (4_107_456_000, "2100-02-28T00:00:00"),
            (253_402_300_799, "9999-12-31T23:59:59"),
        ] as [(UInt64, String)])
    func dates(seconds: UInt64, text: String) {
        #expect(Timestamp(microseconds: seconds * 1_000_000).rfc3339 == text + ".000000Z")
        #expect(Timestamp(rfc3339: text + "Z")?.microseconds == seconds * 1_000_000)
    }

    @Test(
        "other text is no timestamp",
        arguments: [
            "", "yesterday", "2025-11-21 07:12:03Z", "2025-13-21T07:12:03Z", "2025-11-21T07:12:03",
            "2025-11-21T07:12:03.Z", "2025-11-21T07:12:0xZ", "2025-11-21T07:12:03+1:000", "2025-11-21T07:12:03Zjunk",
            "1970-01-01T00:00:00+01:00",
        ])
    func noTimestamps(text: String) {
        #expect(Timestamp(rfc3339: text) == nil)
    }

    @Test("timestamps are compared and subtracted, and none is before 1970")
    func arithmetic() {
        let later = Timestamp(microseconds: Records.time.microseconds + 1_500_000)
        #expect(later - Records.time == .milliseconds(1500))
        #expect(Records.time - later == .milliseconds(-1500))
        #expect(later - .milliseconds(1500) == Records.time)
        #expect(Timestamp(microseconds: 5) - .seconds(1) == Timestamp(microseconds: 0))
        #expect(Records.time < later)
    }

    @Test(
        "an age has one unit",
        arguments: [
            (-5, "just now"), (0, "just now"), (12, "12s ago"), (200, "3min ago"), (7199, "1h ago"),
            (90000, "1 day ago"), (200_000, "2 days ago"),
        ] as [(Int64, String)])
    func ages(seconds: Int64, expected: String) {
        #expect(formattedAge(.seconds(seconds)) == expected)
    }

    @Test(
        "sizes are to the base of 1024, and never need a fifth digit",
        arguments: [
            (0, "0B"), (1023, "1023B"), (1024, "1.0K"), (14_365_491, "13.7M"), (1_073_741_823, "1.0G"),
            (66_900_000, "63.8M"), (.max, "16.0E"),
        ] as [(UInt64, String)])
    func sizes(bytes: UInt64, expected: String) {
        #expect(formattedSize(bytes) == expected)
    }
}
