import Glibc
import JSON
import LifecycleCore
import Linux
import Posix
import Systemd
import TestKit
import Testing

@testable import Daemon

@Suite("Pushes that queue")
struct PushQueueTests {
    private func start(_ script: String = "", more: String = "") throws -> TestDaemon {
        let root = try TestDaemon.makeFolder()
        let sections = "\(more)\n[Lifecycle]\nSuspendDelaySec=0\nBackgroundModes=push"
        return try TestDaemon(["mail": TestDaemon.manifest(script, sections, trace: root + "/trace")], root: root)
    }

    private func suspend(_ daemon: TestDaemon) throws {
        try daemon.launch("mail", background: true)
        try daemon.waitUntil("mail", is: "suspended")
    }

    @discardableResult
    private func push(_ daemon: TestDaemon, _ payload: String) throws -> Int? {
        try daemon.ask("Push", "mail", [.string(payload)])["wakeId"]?.integerValue.map { Int($0) }
    }

    /// The names in the inbox, sorted as a shell sorts them.
    private func names(_ daemon: TestDaemon) -> [String] { entries(of: daemon.runtime + "/inbox/mail").sorted() }

    @Test("three pushes to a suspended app are three files, and it is suspended when it has completed each (L26, L31)")
    func queue() throws {
        let daemon = try start()
        try suspend(daemon)
        let numbers = try ["one", "two\nlines", "one"].map { try push(daemon, $0) }
        #expect(numbers == [1, 2, 3])
        #expect(names(daemon) == (1...3).map { "push.000000000000000\($0)" })
        #expect(daemon.inbox("mail", "push.0000000000000002") == "two\nlines\n")
        try daemon.sendMessage("X_GREENROOM_WAKE_ID=0000000000000002\nX_GREENROOM_WAKE_DONE=new-data")
        try daemon.wait("mail", "wakeCompleted")
        try daemon.sendMessage("X_GREENROOM_WAKE_DONE=new-data")
        try daemon.wait("mail", "wakeCompleted")
        #expect(try daemon.state("mail") == "background")
        let status = try daemon.status("mail")
        #expect(status["deadline"]?["what"]?.stringValue == "wake")
        #expect(status["wakes"]?.arrayValue?.map { $0["wakeId"]?.integerValue } == [3])
        try daemon.sendMessage("X_GREENROOM_WAKE_DONE=failed\nX_GREENROOM_WAKE_ID=3")
        try daemon.waitUntil("mail", is: "suspended")
        #expect(try daemon.receipts("mail").isEmpty)
    }

    @Test("pushes to an app that is launching are files when it is ready, in order (L31)")
    func launching() throws {
        let root = try TestDaemon.makeFolder()
        let go = root + "/go"
        let text = TestDaemon.manifest(
            "compute-until \(go)", "[Lifecycle]\nLaunchDeadlineSec=1min\nBackgroundModes=push")
        let daemon = try TestDaemon(["mail": text], root: root)
        let replies = try (1...3).map { try daemon.begin("Push", "mail", [.string("\($0)")]) }
        try daemon.eventually("the app is launching") { try daemon.state("mail") == "launching" }
        try replaceFile(at: go, with: [])
        for reply in replies { #expect(try daemon.finish(reply)["state"]?.stringValue == "background") }
        #expect((1...3).map { daemon.inbox("mail", "push.000000000000000\($0)") } == ["1\n", "2\n", "3\n"])
    }

    @Test("a shell script reads all pushes in order, with line feeds, and completes each (L31)")
    func shell() throws {
        let root = try TestDaemon.makeFolder()
        let script = """
            for file in "$1"/push.*; do
                [ -e "$file" ] || continue
                payload=$(cat "$file"; printf x)
                payload=${payload%??}
                rm -- "$file"
                printf '<%s:%s>' "${file##*.}" "$payload"
            done
            """
        try replaceFile(at: root + "/read.sh", with: Array(script.utf8))
        let text = TestDaemon.manifest("", "[Lifecycle]\nSuspendDelaySec=0\nBackgroundModes=push")
        let daemon = try TestDaemon(["mail": text], root: root)
        try daemon.launch("mail", background: true)
        for payload in ["one", "two\n\n", ""] { try push(daemon, payload) }
        let output = root + "/output"
        try runShell([root + "/read.sh", daemon.runtime + "/inbox/mail"], output: output)
        #expect(
            TestDaemon.text(of: output)
                == "<0000000000000001:one><0000000000000002:two\n\n><0000000000000003:>")
        #expect(names(daemon).isEmpty)
    }

    private func runShell(_ arguments: [String], output path: String) throws {
        let output = SharedDescriptor(try Descriptor.open(path, O_WRONLY | O_CREAT, mode: 0o600))
        var starting = try startProcess(
            SpawnRequest(
                executable: "/bin/sh", arguments: arguments, environment: ["PATH=/usr/bin:/bin"],
                standardOutput: output, standardError: output))
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        waitForReadable([starting.process.descriptor])
        #expect(try starting.process.reap()?.status == .exited(0))
    }

    @Test("an app that leaves 256 events in its inbox loses the oldest one with the next, with a warning (L31)")
    func unread() throws {
        let daemon = try start()
        try daemon.launch("mail")
        for number in 1...258 { try push(daemon, "\(number)") }
        let names = names(daemon)
        #expect(names.count == 256)
        #expect(names.first == "push.0000000000000003" && names.last == "push.0000000000000258")
        let warning = "the app left 256 events in its inbox; the oldest one, push.0000000000000002, was removed"
        #expect(try daemon.status("mail")["lastWarning"]?.stringValue == warning)
    }

    @Test("the events that an app left in its inbox before a restart of the daemon count against the limit (L31)")
    func unreadBefore() throws {
        let daemon = try start()
        try daemon.launch("mail")
        let own = ["notes", "push.7", "push.x000000000000001", "chat.0000000000000001"]
        for name in own { try replaceFile(at: daemon.runtime + "/inbox/mail/" + name, with: []) }
        for number in 1...256 { try push(daemon, "\(number)") }
        daemon.crash()
        let next = try daemon.successor()
        try push(next, "257")
        let events = names(next).filter { !own.contains($0) }
        #expect(events.count == 256)
        #expect(events.first == "push.0000000000000002" && events.last == "push.0000000000000257")
        #expect(own.allSatisfy { next.inbox("mail", $0) != nil })
    }

    @Test("an app that removes all events but one from its inbox keeps that one, without a warning (L31)")
    func oneLeft() throws {
        let daemon = try start()
        try daemon.launch("mail")
        try push(daemon, "first")
        for _ in 2...300 {
            let number = try #require(try push(daemon, "more"))
            let digits = String(number)
            let name = "push." + String(repeating: "0", count: 16 - digits.utf8.count) + digits
            #expect(try removeFile(at: daemon.runtime + "/inbox/mail/" + name))
        }
        #expect(names(daemon) == ["push.0000000000000001"])
        #expect(try daemon.status("mail")["lastWarning"] == nil)
    }

    @Test("only names that the daemon gives to files of events are taken for such files")
    func eventNames() {
        #expect(Inbox.eventNumber(ofFile: "push.0000000000000017") == 17)
        #expect(Inbox.eventNumber(ofFile: "x-chat.9007199254740992") == 1 << 53)
        let others = [
            "", ".", "push", "push.", "push.17", "push.000000000000001x", "push.0000000000000017.", "battery",
            ".push.0000000000000017.1~", "x-.0000000000000017", "notes.0000000000000017", "battery.0000000000000017",
            "push.00000000000000017", "push.000000000000001\u{301}7", "\u{fffd}.0000000000000017",
        ]
        #expect(others.compactMap { Inbox.eventNumber(ofFile: $0) } == [])
    }

    @Test("the end of a task that is not open is a warning, and one of a wake that the app never had")
    func unknownEnds() throws {
        let daemon = try start("say X_GREENROOM_END_TASK=uplaod")
        try daemon.launch("mail")
        try daemon.eventually("the warning is shown") {
            try daemon.status("mail")["lastWarning"]?.stringValue
                == "X_GREENROOM_END_TASK=uplaod: no task of this name is open"
        }
        try daemon.sendMessage("X_GREENROOM_WAKE_DONE=new-data\nX_GREENROOM_WAKE_ID=9")
        try daemon.eventually("the next warning is shown") {
            try daemon.status("mail")["lastWarning"]?.stringValue
                == "X_GREENROOM_WAKE_ID=9: the app had no wake with this number"
        }
    }

    @Test("the names of events sort in the order of their numbers")
    func fileNames() throws {
        var push = try #require(Notification(kind: "x-chat", payload: ""))
        #expect(Inbox.fileName(push) == "x-chat")
        push.id = 7
        #expect(Inbox.fileName(push) == "x-chat.0000000000000007")
        push.id = 1 << 53
        #expect(Inbox.fileName(push) == "x-chat.9007199254740992")
    }
}
