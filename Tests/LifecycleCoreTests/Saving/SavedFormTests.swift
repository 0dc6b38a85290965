import Testing

@testable import LifecycleCore

@Suite("The saved form between releases")
struct SavedFormTests {
    // MARK: Golden files

    /// A core with an app in each phase that lasts, and a value in most fields.
    static func scene() -> Harness {
        let harness = Harness("photos", "mail", "maps", "music", "notes", "shop") {
            $0.backgroundModes = .push
            $0.relaunch = .onFailure
            $0.watchdog = .seconds(20)
            $0.backgroundTime = .seconds(40)
            $0.memoryHigh = 300 * mebibyte
        }
        harness.configure {
            $0.foregroundLimit = 2
            $0.budget = 1 << 30
            $0.jetsamOrder = .lru
        }
        harness.launch("mail")
        harness.task("mail", "upload «ä»")
        harness.background("mail")
        harness.suspend("maps")
        harness.send("maps", "battery", "low")
        harness.suspend("shop")
        harness.push("shop")
        harness.launch("photos")
        harness.request("photos", .interrupt)
        harness.move("notes", to: .terminating)
        harness.exit("notes", .exited(3))
        harness.isSlow = true
        harness.launch("music")
        return harness
    }

    private static let folder = "\(#filePath)".replacing("SavedFormTests.swift", with: "SavedForms")

    /// To add the file of a release: `GREENROOM_SAVED_FORM=VERSION swift test --filter SavedFormTests`.
    @Test("a saved core of each release is read, and is the core that was saved", arguments: ["0.2.0"])
    func golden(release: String) throws {
        var expected = Self.scene().core
        let path = "\(Self.folder)/\(release).core"
        if environmentVariable("GREENROOM_SAVED_FORM") == release { try writeFile(expected.saved.bytes, to: path) }
        if release == "0.2.0" {
            // Recorded since then.
            for index in expected.apps.indices where expected.apps[index].run != nil {
                expected[run: index].takesPart = false
                expected[run: index].peakMemory = expected[run: index].memory
                expected[run: index].memoryBeforeEnd = 0
                expected[run: index].isUnrequested = false
                expected[run: index].processor = ProcessorWatch()
                expected.timers.set(index, to: expected.nextTimer(index)?.at)
                // Wakes for users, and what is about to be suspended, were throttled then.
                if [id("shop"), id("maps")].contains(expected.apps[index].id) {
                    expected[run: index].isThrottled = true
                }
                // It was not known then where tasks began.
                expected[run: index].assertions.updateTasks { $0.isOfUser = false }
                // Wakes had no numbers then.
                expected[run: index].assertions.updateWakes { $0.id = 0 }
                // Suspended apps were not watched then.
                if expected.apps[index].phase == .suspended { expected.update(index, .suspended(Suspended())) }
            }
            for index in expected.apps.indices {
                expected.apps[index].unrequestedTime = UnrequestedTime()
                expected.apps[index].wakes = PendingWakes()
            }
        }
        let saved = try SavedCore(reading: try readFile(path))
        let core = LifecycleCore(recovering: saved)
        #expect(core.difference(from: expected) == nil)
        #expect(core.state(of: id("maps")) == .suspended)
        #expect(core.view(of: id("mail"), at: Self.scene().now)?.tasks.map(\.name) == ["upload «ä»"])
        #expect(core.state(of: id("music")) == .launching)
        #expect(core.foregroundApps.map(\.name) == ["photos", "music"])
    }

    // MARK: Releases that differ by fields

    /// What a newer release would save: fields that this one does not know, in the core and in each app.
    private struct NewerCore: SavedRecord {
        struct NewerApp: SavedRecord {
            var app: App
            static var blank: NewerApp { NewerApp(app: .blank) }

            mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
                try app.code(&coder)
                var (text, number): (String?, UInt64?) = ("a field of a newer release", 7)
                try coder.optional(100, &text)
                try coder.optional(101, &number)
            }
        }
        var core: SavedCore
        static var blank: NewerCore { NewerCore(core: .blank) }

        mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
            var apps = core.apps.map(NewerApp.init)
            try coder.list(1, &apps, upTo: SavedLimits.apps)
            core.apps = []
            try core.code(&coder)
            var text: String? = "a field of a newer release"
            try coder.optional(100, &text)
        }
    }

    @Test("the saved core of a newer release is read; fields that this release does not know are skipped")
    func newer() throws {
        let saved = Self.scene().core.saved
        let bytes = NewerCore(core: saved).savedBytes
        #expect(bytes.count > saved.savedBytes.count + 6 * 20)
        #expect(try SavedCore(reading: framed(bytes)) == saved)
    }

    /// What an older release would have saved: without the policy, the notifications and the counters of an app.
    private struct OlderApp: SavedRecord {
        var app: App
        static var blank: OlderApp { OlderApp(app: .blank) }

        mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
            try coder.required(1, &app.id)
            try coder.required(5, &app.life)
            try coder.required(6, &app.since)
        }
    }

    @Test("the saved app of an older release is read; fields that are missing keep their defaults")
    func older() throws {
        let apps = Self.scene().core.saved.apps
        for app in apps {
            let read = try App(reading: OlderApp(app: app).savedBytes)
            #expect(read.life == app.life)
            #expect(read.policy == AppPolicy())
            #expect(read.isRegistered)
            #expect(read.launches == 0)
        }
    }

    @Test("of several wakes a run that is saved has the oldest one where earlier releases read it")
    func severalWakes() throws {
        let harness = Harness("photos") { $0.backgroundModes = .push }
        harness.suspend("photos")
        for _ in 0..<3 { harness.push("photos") }
        let run = try #require(harness.core.apps[0].run)
        #expect(run.assertions.wakes.map(\.id) == [1, 2, 3])
        #expect(try Run(reading: run.savedBytes) == run)
        // What a release before it reads of the field.
        let assertions = try AssertionList(reading: run.assertions.savedBytes)
        #expect(assertions.wakes == [run.assertions.wakes[0]])
        let core = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(core.difference(from: harness.core) == nil)
    }

    @Test("a default that is not nil is distinguished from nil: unlimited background time stays unlimited")
    func nullable() throws {
        var policy = AppPolicy()
        policy.backgroundTime = nil
        #expect(try AppPolicy(reading: policy.savedBytes) == policy)
        #expect(try AppPolicy(reading: []).backgroundTime == .seconds(30))
    }

    // MARK: The rules of the codec

    private struct Example: SavedRecord, Equatable {
        var number: UInt64 = 0
        var level = MemoryLevel.normal
        var list: [String] = []
        static var blank: Example { Example() }

        mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
            try coder.required(2, &number)
            try coder.field(4, &level)
            try coder.list(6, &list, upTo: 3)
        }
    }

    @Test("a case that this release does not know counts as a missing field")
    func unknownCase() throws {
        // Field 2, a number: 5; field 4, a number: 77, which is no level.
        #expect(try Example(reading: [2 << 1, 5, 4 << 1, 77]) == Example(number: 5))
        // In a field that must be there it is an error.
        #expect(throws: SavedError.self) { try Waiter(reading: [1 << 1, 5, 2 << 1, 77]) }
    }

    @Test("fields of both forms are skipped in front of, between and behind the known ones")
    func skipping() throws {
        let bytes: [UInt8] = [
            1 << 1, 9, 2 << 1, 5, 3 << 1 | 1, 2, 0xff, 0xff, 4 << 1, 2, 5 << 1, 1, 6 << 1 | 1, 2, 1, 0x61, 7 << 1 | 1,
            0,
        ]
        #expect(try Example(reading: bytes) == Example(number: 5, level: .critical, list: ["a"]))
    }

    @Test(
        "what breaks the rules is an error",
        arguments: [
            // The required field 2 is missing.
            ([4 << 1, 1], "field 2 is missing"),
            // Field 2 after field 4, and twice.
            ([2 << 1, 5, 4 << 1, 1, 3 << 1, 1], "field 3 comes after field 4"),
            ([2 << 1, 5, 2 << 1, 5], "field 2 comes after field 2"),
            // Bytes where a number is expected.
            ([2 << 1 | 1, 1, 5], "field 2 has another form than expected"),
            // A list that is too long, and one that is longer than the bytes.
            ([2 << 1, 5, 6 << 1 | 1, 4, 0, 0, 0, 0], "a list of more than 3 values"),
            ([2 << 1, 5, 6 << 1 | 1, 9, 0], "9 bytes expected, 1 are left"),
            // An unknown field that is longer than the bytes.
            ([2 << 1, 5, 9 << 1 | 1, 9, 0], "9 bytes expected, 1 are left"),
        ] as [([UInt8], String)])
    func errors(bytes: [UInt8], sentence: String) {
        do {
            _ = try Example(reading: bytes)
            Issue.record("read without an error")
        } catch {
            #expect(error.sentence == sentence)
        }
    }

    /// As `SavedCore.bytes` frames a record.
    private func framed(_ record: [UInt8]) -> [UInt8] {
        var bytes = Array("greenroom core\n".utf8) + [2] + record
        let sum = Checksum.crc32(bytes)
        bytes += (0..<4).map { UInt8(truncatingIfNeeded: sum >> (8 * $0)) }
        return bytes
    }

    /// How many of these topics use each number.
    private static func numbers(_ topics: [any SavedUnion.Type]) -> [UInt64: Int] {
        var uses: [UInt64: Int] = [:]
        for topic in topics {
            for number in UInt64(1)...400 {
                var writer = ByteWriter()
                writer.put(number: number)
                var reader = ByteReader(writer.bytes)
                do throws(SavedError) { _ = try topic.init(from: &reader) } catch {
                    if error.isUnknownCase { continue }
                }
                uses[number, default: 0] += 1
            }
        }
        return uses
    }

    @Test("a number of a saved event is used by one topic only")
    func numbersOfEvents() {
        let events = Self.numbers([ConfigurationEvent.self, AbsenceEvent.self, MemoryEvent.self])
        #expect(events.count == 11 && events.values.allSatisfy { $0 == 1 })
        // The numbers of `Event` itself.
        #expect(events.keys.allSatisfy { ![1, 6, 7, 8, 9, 14, 18, 30, 100, 101].contains($0) })
        let ofRuns = Self.numbers([
            ProcessEvent.self, TransitionEvent.self, DeadlineEvent.self, WatchdogEvent.self, SuspensionEvent.self,
            RunMemoryEvent.self, TrafficEvent.self, ProcessorEvent.self, TaskEvent.self, ModeEvent.self,
            SceneEvent.self, WakeEvent.self, ConnectionEvent.self,
        ])
        #expect(ofRuns.count > 50 && ofRuns.values.allSatisfy { $0 == 1 })
        // That of `RunEvent.hookEnded`.
        #expect(ofRuns[80] == nil)
    }
}
