import Control
import Glibc
import JSON
import LifecycleCore
import Linux
import Systemd
import TestKit
import Testing

@testable import Daemon

/// Messages of push servers for apps with `UnifiedPush=yes` (L30), as a client reports them.
@Suite("UnifiedPush")
struct UnifiedPushTests {
    private static func manifest(_ app: String = "") -> String {
        TestDaemon.manifest(
            "", app: app, "[Lifecycle]\nSuspendDelaySec=0\nBackgroundModes=push\n[Wake]\nUnifiedPush=yes\n")
    }

    private func apps(_ daemon: TestDaemon) throws -> [Variant]? {
        try daemon.bus.call(
            path: ControlNames.managerPath, interface: "org.freedesktop.DBus.Properties", member: "Get",
            [.string(ControlNames.managerInterface), .string("PushApps")])[0].unwrapped.arrayValue
    }

    /// What the files of the pushes in the inbox of an app have, in their order.
    private func pushes(_ daemon: TestDaemon, _ app: String) -> [String] {
        let folder = "\(daemon.runtime)/inbox/\(app)"
        return entries(of: folder).filter { $0.hasPrefix("push.") }.sorted()
            .map { TestDaemon.text(of: "\(folder)/\($0)") }
    }

    @Test("a message is a push with the same text, and what is no text is a URL that contains it (L30)")
    func payloads() {
        #expect(PushEndpoints.payload(Array("a\nüx".utf8)) == "a\nüx")
        #expect(PushEndpoints.payload([0]) == "data:;base64,AA==")
        #expect(PushEndpoints.payload([0xff, 0xfe]) == "data:;base64,//4=")
        #expect(PushEndpoints.payload([0, 0x10, 0x83, 0x10, 0x51, 0x87]) == "data:;base64,ABCDEFGH")
        let longest = PushEndpoints.payload(Array(repeating: 0xfb, count: PushEndpoints.longestMessage))
        #expect(longest.utf8.count == Notification.maximumPush && longest.hasSuffix("+/v7+w=="))
    }

    @Test("a message launches an app into the background, and wakes it, with a push; others are refused (L26, L30)")
    func messages() throws {
        let daemon = try TestDaemon([
            "new": Self.manifest("Name=Chat"), "old": Self.manifest(),
            "plain": TestDaemon.manifest("", "[Lifecycle]\nBackgroundModes=push"),
        ])
        let user = Variant.string(String(geteuid()))
        #expect(
            try apps(daemon) == [
                .structure([.string("new"), user, .string("Chat")]),
                .structure([.string("old"), user, .string("old")]),
            ])
        try daemon.launch("old", background: true)
        try daemon.waitUntil("old", is: "suspended")
        let messages = [Array("a text".utf8), [0, 1, 2]]
        for app in ["old", "new"] {
            for message in messages { _ = try daemon.call("ReportPush", [.string(app), .bytes(message)]) }
            #expect(try daemon.state(app) == "background")
            #expect(try daemon.status(app)["wakes"]?.arrayValue?.map { $0["reason"]?.stringValue } == ["push", "push"])
            try daemon.eventually("both pushes of \(app)") {
                pushes(daemon, app) == ["a text\n", "data:;base64,AAEC\n"]
            }
        }
        for name in ["plain", "absent", "no app", ""] {
            #expect(
                daemon.refusal("ReportPush", [.string(name), .bytes([1])])?.contains(
                    "No app '\(name)' of uid \(geteuid()) has UnifiedPush=.") == true)
        }
        let long = String(repeating: "x", count: 200)
        let refusal = daemon.refusal("ReportPush", [.string(long), .bytes([1])])
        #expect(refusal?.contains("No app '\(long.prefix(77))…' of uid") == true)
        for size in [0, PushEndpoints.longestMessage + 1] {
            #expect(
                daemon.refusal("ReportPush", [.string("new"), .bytes(Array(repeating: 65, count: size))])?.contains(
                    "Invalid message; expected 1 to 4096 bytes.") == true)
        }
    }

    @Test("pushes of the longest messages wait for an app over a crash of the daemon, and there is a limit (L31)")
    func waiting() throws {
        let daemon = try TestDaemon(["chat": Self.manifest()])
        try daemon.launch("chat", background: true)
        try daemon.waitUntil("chat", is: "suspended")
        let message = Variant.bytes(Array(repeating: 0, count: PushEndpoints.longestMessage))
        _ = try daemon.call("ReportPush", [.string("chat"), message])
        daemon.crash()
        let next = try daemon.successor()
        let text = PushEndpoints.payload(Array(repeating: 0, count: PushEndpoints.longestMessage)) + "\n"
        #expect(pushes(next, "chat") == [text])
        // 64 wakes of an app are open at most.
        var refusal: String?
        for _ in 0..<100 where refusal == nil { refusal = next.refusal("ReportPush", [.string("chat"), .bytes([65])]) }
        #expect(refusal?.contains("wakes have not ended") == true)
    }

    @Test("the endpoint is in the inbox of each process, and in the status; it wakes no app (L30, L33)")
    func endpoint() throws {
        let daemon = try TestDaemon(["chat": Self.manifest(), "mail": Self.manifest()])
        func report(_ endpoint: String) throws {
            _ = try daemon.call("ReportPushEndpoint", [.string("chat"), .string(endpoint)])
        }
        func shown(_ daemon: TestDaemon) throws -> String? {
            try daemon.status("chat")["pushEndpoint"]?.stringValue
        }
        try report("https://push.example/1")
        #expect(try shown(daemon) == "https://push.example/1")
        // One app is in the foreground.
        try daemon.launch("mail")
        // It had none before.
        _ = try daemon.call("ReportPushEndpoint", [.string("mail"), .string("")])
        try daemon.launch("chat")
        try daemon.eventually("the endpoint") { daemon.inbox("chat", "pushEndpoint") == "https://push.example/1\n" }
        try report("http://push.example/2")
        try daemon.eventually("the next one") { daemon.inbox("chat", "pushEndpoint") == "http://push.example/2\n" }
        _ = try daemon.call("Background", [.string("chat")])
        try daemon.waitUntil("chat", is: "suspended")
        try report("")
        #expect(try shown(daemon) == nil)
        #expect(try daemon.state("chat") == "suspended")
        _ = try daemon.call("Activate", [.string("chat")])
        try daemon.eventually("none") { daemon.inbox("chat", "pushEndpoint") == "none\n" }
        #expect(daemon.inbox("mail", "pushEndpoint") == nil)
        // What has an endpoint can send pushes: the log has none.
        let log = TestDaemon.text(of: daemon.root + "/log")
        #expect(log.contains("pushEndpoint …") && !log.contains("push.example"))
        for value in ["push.example", "ftp://a", "https://a b", "https://" + String(repeating: "a", count: 1000)] {
            #expect(
                daemon.refusal("ReportPushEndpoint", [.string("chat"), .string(value)])?.contains(
                    "Invalid endpoint; expected a URL of http or https with at most 1000 bytes.") == true)
        }
    }

    @Test("an app has its endpoint for as long as its manifest has the setting, and is known to clients so long (L30)")
    func unregistered() throws {
        let name = String(repeating: "ä", count: 60)
        let daemon = try TestDaemon(["chat": Self.manifest("Name=\(name)"), "mail": Self.manifest()])
        let file = daemon.config + "/apps/chat.app"
        func known() throws -> [String]? {
            try apps(daemon)?.compactMap { if case .structure(let fields) = $0 { fields[0].stringValue } else { nil } }
        }
        // At most 100 bytes of its name.
        let fields = ["chat", String(geteuid()), String(repeating: "ä", count: 48) + "…"].map { Variant.string($0) }
        #expect(try apps(daemon)?.first == .structure(fields))
        func shown() throws -> String? { try daemon.status("chat")["pushEndpoint"]?.stringValue }
        // Without the setting, and without the manifest.
        for text in [TestDaemon.manifest(""), nil] {
            _ = try daemon.call("ReportPushEndpoint", [.string("chat"), .string("https://push.example/1")])
            #expect(try shown() == "https://push.example/1")
            if let text { try daemon.writeFile(file, text) } else { _ = try removeFile(at: file) }
            _ = try daemon.call("Reload")
            #expect(try known() == ["mail"])
            try daemon.writeFile(file, Self.manifest())
            _ = try daemon.call("Reload")
            #expect(try known() == ["chat", "mail"] && shown() == nil)
        }
        // An instance without a file ends with its run.
        try daemon.writeFile(daemon.config + "/apps/page@.app", Self.manifest())
        _ = try daemon.call("Reload")
        try daemon.launch("page@1")
        #expect(try known() == ["chat", "mail", "page@1"])
        try daemon.terminate("page@1")
        try daemon.eventually("the instance is removed") { try known() == ["chat", "mail"] }
    }

    @Test(
        "a user reports messages and endpoints of the apps of this user only, and no other user sees an endpoint (L30)",
        .enabled(if: PrivateBus.isPossible && geteuid() == 0, PrivateBus.requirement))
    func otherUser() throws {
        func manifest(_ user: String) -> String {
            "[App]\nStartupSec=0\nUser=\(user)\nExecStart=/bin/sleep 1000\n[Lifecycle]\nBackgroundModes=push\n"
                + "[Wake]\nUnifiedPush=yes\n"
        }
        let stage = try BusStage(["mine": manifest("nobody"), "theirs": manifest("root")])
        func call(_ words: String..., asOtherUser: Bool = false) throws -> (status: Int32, text: String) {
            let names = [ControlNames.busName, ControlNames.managerPath, ControlNames.managerInterface]
            return try stage.run(["busctl", "--system", "call"] + names + words, asOtherUser: asOtherUser)
        }
        for app in ["mine", "theirs"] {
            #expect(try call("ReportPushEndpoint", "ss", app, "https://\(app)").status == 0)
            let isMine = app == "mine"
            let message = try call("ReportPush", "say", app, "1", "65", asOtherUser: true)
            let report = try call("ReportPushEndpoint", "ss", app, "https://\(app)", asOtherUser: true)
            #expect((message.status == 0) == isMine && (report.status == 0) == isMine)
            #expect(try call("Status", "s", app).text.contains("https://\(app)"))
            #expect(try call("Status", "s", app, asOtherUser: true).text.contains("https://\(app)") == isMine)
        }
        try stage.serve("the app of the user is launched") { try stage.daemon.state("mine") == "background" }
        #expect(try stage.daemon.state("theirs") == "notRunning")
        // A program that registers apps is notified of one that has lost the setting.
        try stage.daemon.writeFile(
            stage.daemon.config + "/apps/mine.app", "[App]\nUser=nobody\nExecStart=/bin/sleep 1000\n")
        #expect(try call("Reload").status == 0)
        try stage.serve("the apps are announced") {
            stage.signals(named: "PropertiesChanged").last {
                $0.path == ControlNames.managerPath && $0.arguments[1]["PushApps"] != nil
            }?.arguments[1]["PushApps"]?.arrayValue?.count == 1
        }
    }
}
