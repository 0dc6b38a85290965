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
            .notWatchable, .fileLock("/var/lib/db"), .suspendDelay, .suspending, .waking, .terminating,
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
}
