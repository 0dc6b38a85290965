import Control
import JSON
import LifecycleCore
import Testing

@testable import Daemon

@Suite("Why an app is awake, as a record")
struct AwakeStatusTests {
    private static let reasons: [AwakeReason] =
        [
            .launching, .foreground, .enteringBackground, .task(name: "upload"), .wake(.push), .startUp, .wokenTooOften,
            .notWatchable, .fileLock("/var/lib/db"), .suspendDelay, .neverSuspended, .dryRun, .suspending,
            .waking, .terminating,
        ] + WorkReason.allCases.map(AwakeReason.work)

    @Test("each reason is one word of its own, which docs/DBUS.md has, and a sentence (L51)")
    func words() {
        let text = TestDaemon.text(of: "\(PrivateBus.data)/../docs/DBUS.md")
        let words = Self.reasons.map(\.word)
        #expect(Set(words).count == words.count)
        for word in words {
            #expect(word.allSatisfy { $0.isASCII && $0.isLetter })
            #expect(text.contains("`\(word)`"), "docs/DBUS.md lacks \(word)")
        }
        #expect(Set(Self.reasons.map(\.explanation)).count == words.count)
        #expect(AwakeReason.task(name: "upload").explanation == "the task 'upload' is open")
        #expect(AwakeReason.fileLock("/var/lib/db").explanation == "it holds a lock on /var/lib/db")
    }

    @Test("a status says why an app in the background is awake, and that a suspended one is not (L51)")
    func status() throws {
        let daemon = try TestDaemon([
            "app": TestDaemon.manifest("background=answer", "[Lifecycle]\nSuspendDelaySec=0")
        ])
        try daemon.launch("app")
        #expect(try daemon.status("app")["awake"]?.arrayValue?.first?["reason"]?.stringValue == "foreground")
        try daemon.ask("Background", "app")
        try daemon.waitUntil("app", is: "suspended")
        let status = try daemon.status("app")
        #expect(status["awake"] == nil)
        #expect(status["trafficWakes"]?.integerValue == 0)
        #expect(status["lastInput"] == nil)
    }

    @Test("since when an app is awake for a reason is the same in each status (L51)")
    func since() throws {
        let daemon = try TestDaemon([
            "app": TestDaemon.manifest("background=answer", "[Lifecycle]\nSuspendDelaySec=10min")
        ])
        try daemon.launch("app")
        try daemon.ask("Background", "app")
        func awake() throws -> JSONValue? { try daemon.status("app")["awake"]?.arrayValue?.first }
        try daemon.eventually("it has answered") { try awake()?["reason"]?.stringValue == "suspendDelay" }
        let first = try #require(try awake()?["since"]?.serialized(pretty: false))
        #expect(try awake()?["since"]?.serialized(pretty: false) == first)
    }

    @Test("the time of a reason is fixed when it is first asked for, and removed with the reason")
    func timestamps() throws {
        let app = try #require(AppID("app"))
        let start = Instant(sinceOrigin: .seconds(100))
        let time = Timestamp(microseconds: 1_700_000_000_123_456)
        var stamps = AwakeTimestamps()
        let first = stamps.timestamps(of: app, since: [start, nil], now: (start + .seconds(5), time))
        #expect(first == [Timestamp(microseconds: 1_699_999_995_123_000), nil])
        // The system clock was set.
        let later = (instant: start + .seconds(6), time: Timestamp(microseconds: 1_800_000_000_000_000))
        let second = stamps.timestamps(of: app, since: [start + .seconds(6), start], now: later)
        #expect(second == [later.time, first[0]])
        #expect(stamps.timestamps(of: app, since: [], now: later).isEmpty)
        #expect(stamps.timestamps(of: app, since: [start], now: later) != [first[0]])
    }

    @Test("file locks of a suspended app have their number and one of the files (L43)")
    func locks() {
        let status = LockStatus(FileLocks(count: 3, file: "/var/lib/db"))
        #expect(status.count == 3 && status.file == "/var/lib/db")
        #expect(status.phrase == "it holds 3 file locks, one on /var/lib/db: other programs may wait for it")
        let resource = LockStatus(FileLocks(count: 2, file: "/dev/video0", isResource: true))
        #expect(resource.phrase == "it holds /dev/video0 and 1 more (Releases=): other programs may wait for it")
    }
}
