import Control
import JSON
import Linux
import Systemd
import Testing

@Suite("Wakes and notifications of real processes")
struct NotificationTests {
    private func suspended(_ more: String = "") throws -> TestDaemon {
        let daemon = try TestDaemon([
            "mail": TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=0\nBackgroundModes=push\n\(more)")
        ])
        try daemon.launch("mail", background: true)
        try daemon.waitUntil("mail", is: "suspended")
        return daemon
    }

    @Test("a push wakes a suspended app, which is suspended again when it has completed the wake (L26, L28, L30)")
    func push() throws {
        let daemon = try suspended()
        let answer = JSONValue(try daemon.call("Push", [.string("mail"), .string("you have mail")])[0])
        #expect(answer["state"]?.stringValue == "background")
        #expect(answer["wakeId"]?.integerValue == 1)
        #expect(daemon.inbox("mail", "push.0000000000000001") == "you have mail\n")
        let status = try daemon.status("mail")
        #expect(status["deadline"]?["what"]?.stringValue == "wake")
        #expect(try !daemon.frozen("mail"))
        try daemon.sendMessage("X_GREENROOM_WAKE_DONE=new-data")
        try daemon.wait("mail", "wakeCompleted")
        try daemon.waitUntil("mail", is: "suspended")
        #expect(try daemon.frozen("mail"))
        #expect(try daemon.receipts("mail").isEmpty)
    }

    @Test(
        "the inbox of a new process is empty, and so is that of a removed app (L31)")
    func emptied() throws {
        let root = try TestDaemon.makeFolder()
        // The inbox after the death of a daemon; a subfolder is the app's own.
        try createDirectories(at: root + "/run/inbox/mail/own")
        try replaceFile(at: root + "/run/inbox/mail/push.0000000000000001", with: Array("old\n".utf8))
        let text = TestDaemon.manifest("", "[Lifecycle]\nBackgroundModes=push")
        let daemon = try TestDaemon(["mail": text], root: root)
        try daemon.launch("mail")
        #expect(daemon.inbox("mail", "push.0000000000000001") == nil)
        _ = try daemon.call("Push", [.string("mail"), .string("you have mail")])
        _ = try daemon.call("Send", [.string("mail"), .string("battery"), .string("20")])
        #expect(daemon.inbox("mail", "push.0000000000000001") == "you have mail\n")
        try daemon.terminate("mail")
        #expect(daemon.inbox("mail", "push.0000000000000001") == nil)
        try daemon.launch("mail")
        _ = try daemon.call("Send", [.string("mail"), .string("battery"), .string("19")])
        try daemon.terminate("mail", remove: true)
        #expect(daemon.inbox("mail", "battery") == nil)
        #expect(exists(at: root + "/run/inbox/mail/own"))
    }

    @Test(
        "a suspended app is not woken for a notification, and finds the latest of each kind; a foreground app stays active (L14, L31, L32, L33)"
    )
    func notifications() throws {
        let daemon = try suspended()
        func send(_ kind: String, _ payload: String) throws {
            _ = try daemon.call("Send", [.string("mail"), .string(kind), .string(payload)])
        }
        for (kind, payload) in [("battery", "20"), ("battery", "10"), ("x-draft", "kept"), ("time", "")] {
            try send(kind, payload)
        }
        #expect(try daemon.state("mail") == "suspended")
        #expect(daemon.inbox("mail", "battery") == nil)
        // After any wake the app finds the waiting notifications; a time change is delivered only in the foreground.
        _ = try daemon.call("Push", [.string("mail"), .string("")])
        #expect(daemon.inbox("mail", "battery") == "10\n")
        #expect(daemon.inbox("mail", "x-draft") == "kept\n")
        #expect(daemon.inbox("mail", "time") == nil)
        try daemon.ask("Activate", "mail")
        #expect(daemon.inbox("mail", "time") == "\n")
        try send("battery", "9")
        #expect(try daemon.state("mail") == "active")
        #expect(daemon.inbox("mail", "battery") == "9\n")
        // Changes that were undone while the app was suspended are not delivered.
        try daemon.ask("Background", "mail")
        try daemon.waitUntil("mail", is: "suspended")
        try removeFile(at: daemon.runtime + "/inbox/mail/battery")
        try send("battery", "8")
        try send("battery", "9")
        try daemon.ask("Activate", "mail")
        #expect(daemon.inbox("mail", "battery") == nil)
    }

    @Test("Notification= announces each notification and push, also to an app that is thawed for it (L32)")
    func announced() throws {
        let root = try TestDaemon.makeFolder()
        let sections = "Notification=SIGRTMIN+5\n[Lifecycle]\nSuspendDelaySec=0\nBackgroundModes=push"
        let daemon = try TestDaemon(["mail": TestDaemon.manifest("", sections, trace: root + "/trace")], root: root)
        func announcements() -> Int { daemon.trace().count { $0 == "notification" } }
        try daemon.launch("mail")
        _ = try daemon.ask("Send", "mail", [.string("battery"), .string("20")])
        try daemon.eventually("the notification is announced") { announcements() == 1 }
        try daemon.ask("Background", "mail")
        try daemon.waitUntil("mail", is: "suspended")
        _ = try daemon.ask("Send", "mail", [.string("battery"), .string("10")])
        _ = try daemon.ask("Push", "mail", [.string("you have mail")])
        try daemon.eventually("both are announced") { announcements() == 2 }
        #expect(daemon.inbox("mail", "battery") == "10\n")
    }

    @Test("a program that does not catch the signal of Notification= is not ended by it (L32)")
    func notCaught() throws {
        let daemon = try TestDaemon(["mail": "[App]\nExecStart=/bin/sleep infinity\n[Signals]\nNotification=SIGUSR1\n"])
        try daemon.launch("mail")
        let pid = try daemon.pid("mail")
        _ = try daemon.ask("Send", "mail", [.string("battery"), .string("20")])
        #expect(daemon.inbox("mail", "battery") == "20\n")
        #expect(try daemon.pid("mail") == pid)
        #expect(try daemon.receipts("mail").isEmpty)
    }
}
