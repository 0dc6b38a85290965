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

    @Test("L26, L30: a push wakes a suspended app, which is suspended again once it has said that it is done")
    func push() throws {
        let daemon = try suspended()
        let answer = JSONValue(try daemon.call("Push", [.string("mail"), .string("you have mail")])[0])
        #expect(answer["state"]?.stringValue == "background")
        #expect(daemon.inbox("mail", "push") == "you have mail\n")
        let status = try daemon.status("mail")
        #expect(status["deadline"]?["what"]?.stringValue == "wake")
        #expect(try !daemon.frozen("mail"))
        try daemon.say("X_GREENROOM_WAKE_DONE=new-data")
        try daemon.wait("mail", "wakeCompleted")
        try daemon.waitUntil("mail", is: "suspended")
        #expect(try daemon.frozen("mail"))
        #expect(try daemon.receipts("mail").isEmpty)
    }

    @Test(
        "L14, L31, L32: a suspended app is not woken, and finds the latest of each kind; in the foreground its state stays"
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
        // Whatever wakes it, it finds what waited; a change of the time is for the foreground.
        _ = try daemon.call("Push", [.string("mail"), .string("")])
        #expect(daemon.inbox("mail", "battery") == "10\n")
        #expect(daemon.inbox("mail", "x-draft") == "kept\n")
        #expect(daemon.inbox("mail", "time") == nil)
        try daemon.ask("Activate", "mail")
        #expect(daemon.inbox("mail", "time") == "\n")
        try send("battery", "9")
        #expect(try daemon.state("mail") == "active")
        #expect(daemon.inbox("mail", "battery") == "9\n")
        // What was undone while it was suspended has not been.
        try daemon.ask("Background", "mail")
        try daemon.waitUntil("mail", is: "suspended")
        try removeFile(at: daemon.runtime + "/inbox/mail/battery")
        try send("battery", "8")
        try send("battery", "9")
        try daemon.ask("Activate", "mail")
        #expect(daemon.inbox("mail", "battery") == nil)
    }
}
