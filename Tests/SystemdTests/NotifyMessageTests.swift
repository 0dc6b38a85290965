import Systemd
import Testing

@Suite("Notifications of apps")
struct NotifyMessageTests {
    struct Row: Sendable, CustomTestStringConvertible {
        let text: String
        let messages: [NotifyMessage]
        var warnings: [String] = []

        var testDescription: String { text.debugDescription }

        init(_ text: String, _ messages: [NotifyMessage], _ warnings: String...) {
            self.text = text
            self.messages = messages
            self.warnings = warnings
        }
    }

    static let rows: [Row] = [
        Row("", []),
        Row("\n\n", []),
        Row("READY=1", [.ready]),
        Row("READY=1\n", [.ready]),
        Row("READY=1\0", [.ready]),
        Row("READY=0", [], "READY=0: expected 1."),
        Row("READY=1\nSTATUS=Up and running.\nMAINPID=17", [.ready, .status("Up and running."), .mainPID(17)]),
        // The last of READY= and STOPPING= counts.
        Row("READY=1\nSTOPPING=1", [.stopping]),
        Row("STOPPING=1\nSTATUS=a\nREADY=1\nREADY=1", [.status("a"), .ready]),
        // The first of the others counts.
        Row("STATUS=a\nSTATUS=b", [.status("a")], "STATUS= is assigned twice; the first assignment counts."),
        Row("STATUS=", [.status("")]),
        Row("STATUS=a=b", [.status("a=b")]),
        Row("STATUS=red \u{1b}[31m\u{9b}", [.status("red \u{FFFD}[31m\u{FFFD}")]),
        Row("STATUS=größer 🦊", [.status("größer 🦊")]),
        Row("ERRNO=0", [.errno(0)]),
        Row("ERRNO=4095", [.errno(4095)]),
        Row("ERRNO=4096", [], "ERRNO=4096: expected a whole number from 0 to 4095."),
        Row("ERRNO=-2", [], "ERRNO=-2: expected a whole number from 0 to 4095."),
        Row("MAINPID=0", [], "MAINPID=0: expected a whole number from 1 to 4194304."),
        Row("MAINPID=4194304", [.mainPID(4_194_304)]),
        Row("MAINPID=4194305", [], "MAINPID=4194305: expected a whole number from 1 to 4194304."),
        Row("MAINPID=+5", [], "MAINPID=+5: expected a whole number from 1 to 4194304."),
        Row("MAINPID= 5", [], "MAINPID= 5: expected a whole number from 1 to 4194304."),
        Row("MAINPID=", [], "MAINPID=: expected a whole number from 1 to 4194304."),
        Row(
            "MAINPID=99999999999999999999999", [],
            "MAINPID=99999999999999999999999: expected a whole number from 1 to 4194304."),
        Row("WATCHDOG=1", [.watchdog]),
        Row("WATCHDOG=trigger", [.watchdogTrigger]),
        Row("WATCHDOG=2", [], "WATCHDOG=2: expected 1 or trigger."),
        Row("EXTEND_TIMEOUT_USEC=1500000", [.extendTimeout(.milliseconds(1500))]),
        Row("EXTEND_TIMEOUT_USEC=9223372036854775807", [.extendTimeout(.microseconds(Int64.max))]),
        Row(
            "EXTEND_TIMEOUT_USEC=18446744073709551615", [],
            "EXTEND_TIMEOUT_USEC=18446744073709551615: expected a whole number from 1 to 9223372036854775807."),
        Row("FDSTORE=1", [.storeDescriptors(name: "stored")]),
        Row("FDSTORE=1\nFDNAME=state", [.storeDescriptors(name: "state")]),
        Row(
            "X_GREENROOM_SNAPSHOT_TYPE=image/svg+xml\nFDSTORE=1\nFDNAME=snapshot",
            [.storeDescriptors(name: "snapshot", type: "image/svg+xml")]),
        Row(
            "FDSTORE=1\nFDNAME=snapshot\nX_GREENROOM_SNAPSHOT_TYPE=jpeg", [.storeDescriptors(name: "snapshot")],
            "X_GREENROOM_SNAPSHOT_TYPE=jpeg: expected a media type such as image/jpeg, of at most 127 bytes."),
        Row(
            "FDSTORE=1\nFDNAME=state\nX_GREENROOM_SNAPSHOT_TYPE=image/jpeg", [.storeDescriptors(name: "state")],
            "X_GREENROOM_SNAPSHOT_TYPE= needs FDSTORE=1 and FDNAME=snapshot."),
        Row("FDNAME=state\nREADY=1\nFDSTORE=1", [.ready, .storeDescriptors(name: "state")]),
        Row("FDNAME=state", []),
        Row(
            "FDSTORE=1\nFDNAME=a:b", [.storeDescriptors(name: "stored")],
            "FDNAME=a:b: expected 1 to 255 printable ASCII characters without a colon."),
        Row("FDSTOREREMOVE=1\nFDNAME=state", [.removeDescriptors(name: "state")]),
        Row("FDSTOREREMOVE=1", [], "FDSTOREREMOVE=1 needs a valid FDNAME=."),
        Row("FDSTORE=yes", [], "FDSTORE=yes: expected 1."),
        Row("BARRIER=1", [.barrier]),
        Row("BARRIER=1\nREADY=1", [], "The message was ignored: BARRIER=1 must be the only assignment."),
        Row("BARRIER=0", []),
        Row("X_GREENROOM_BACKGROUND=1", [.background]),
        Row(
            "X_GREENROOM_BEGIN_TASK=upload\nX_GREENROOM_BEGIN_TASK=sync\nX_GREENROOM_END_TASK=upload",
            [.beginTask("upload"), .beginTask("sync"), .endTask("upload")]),
        Row(
            "X_GREENROOM_BEGIN_TASK=", [],
            "X_GREENROOM_BEGIN_TASK=: expected a name of 1 to 128 bytes without control characters."),
        Row(
            "X_GREENROOM_END_TASK=a\tb", [],
            "X_GREENROOM_END_TASK=a\u{FFFD}b: expected a name of 1 to 128 bytes without control characters."),
        Row(
            "X_GREENROOM_TASK_TITLE=Export größer\nX_GREENROOM_TASK_PROGRESS=40/100 my export",
            [.taskProgress("my export", done: 40, total: 100, title: "Export größer")]),
        Row("X_GREENROOM_TASK_PROGRESS=7/0 export", [.taskProgress("export", done: 7, total: 0, title: "")]),
        Row(
            "X_GREENROOM_TASK_PROGRESS=1/2 a\nX_GREENROOM_TASK_PROGRESS=1/2 b",
            [.taskProgress("a", done: 1, total: 2, title: "")],
            "X_GREENROOM_TASK_PROGRESS= is assigned twice; the first assignment counts."),
        Row(
            "X_GREENROOM_TASK_PROGRESS=-1/2 a", [],
            "X_GREENROOM_TASK_PROGRESS=-1/2 a: expected DONE/TOTAL NAME, such as 40/100 export."),
        Row(
            "X_GREENROOM_TASK_PROGRESS=", [],
            "X_GREENROOM_TASK_PROGRESS=: expected DONE/TOTAL NAME, such as 40/100 export."),
        Row(
            "X_GREENROOM_TASK_PROGRESS=1/99999999999999999999 a", [],
            "X_GREENROOM_TASK_PROGRESS=1/99999999999999999999 a: expected DONE/TOTAL NAME, such as 40/100 export."),
        Row(
            "X_GREENROOM_TASK_PROGRESS=1/2 ", [],
            "X_GREENROOM_TASK_PROGRESS=: expected a name of 1 to 128 bytes without control characters."),
        Row("X_GREENROOM_TASK_TITLE=a", [], "X_GREENROOM_TASK_TITLE= needs a valid X_GREENROOM_TASK_PROGRESS=."),
        Row("X_GREENROOM_WAKE_DONE=new-data", [.wakeDone(.newData)]),
        Row("X_GREENROOM_WAKE_DONE=no-data", [.wakeDone(.noData)]),
        Row("X_GREENROOM_WAKE_DONE=failed", [.wakeDone(.failed)]),
        Row(
            "X_GREENROOM_WAKE_DONE=newData", [], "X_GREENROOM_WAKE_DONE=newData: expected new-data, no-data or failed."),
        Row(
            "X_GREENROOM_WAKE_ID=0000000000000017\nX_GREENROOM_WAKE_DONE=no-data", [.wakeDone(.noData, id: 17)]),
        Row("X_GREENROOM_WAKE_DONE=failed\nX_GREENROOM_WAKE_ID=2", [.wakeDone(.failed, id: 2)]),
        // Not the oldest wake, as without a number.
        Row(
            "X_GREENROOM_WAKE_DONE=failed\nX_GREENROOM_WAKE_ID=push.2", [],
            "X_GREENROOM_WAKE_ID=push.2: expected a whole number from 1 to 9007199254740992."),
        Row("X_GREENROOM_WAKE_ID=2", [], "X_GREENROOM_WAKE_ID= needs a valid X_GREENROOM_WAKE_DONE=."),
        Row("X_GREENROOM_IDLE=1", [.idle(true)]),
        Row("X_GREENROOM_IDLE=0", [.idle(false)]),
        Row("X_GREENROOM_IDLE=yes", [], "X_GREENROOM_IDLE=yes: expected 1 or 0."),
        // Unknown keys are ignored; a line without "=" causes a warning.
        Row("MONOTONIC_USEC=1\nRELOADING=1\nX_OTHER=1\n=1\nready=1", []),
        // Keys of systemd that a program may rely on.
        Row("NOTIFYACCESS=all\nREADY=1", [.ready]),
        Row("WATCHDOG_USEC=5\nREADY=1", [.watchdogTime(.microseconds(5)), .ready]),
        Row("WATCHDOG_USEC=0", [.watchdogTime(.zero)]),
        Row("WATCHDOG_USEC=18446744073709551615", [.watchdogTime(.zero)]),
        Row("WATCHDOG_USEC=5s", [], "WATCHDOG_USEC=5s: expected a whole number from 0 to 18446744073709551615."),
        Row("READY", [], "'READY' is not an assignment (KEY=VALUE)."),
        Row("READY=1\r\nSTOPPING=1", [.stopping], "READY=1\u{FFFD}: expected 1."),
        Row("STATUS=\u{301}x", [.status("\u{301}x")]),
        Row("READY=1\r", [], "READY=1\u{FFFD}: expected 1."),
        Row("READY=1\0STOPPING=1", [], "The message was ignored: it contains a NUL."),
        Row("READY=1\0\0", [], "The message was ignored: it contains a NUL."),
    ]

    @Test("a datagram is parsed as systemd parses it", arguments: rows)
    func table(row: Row) {
        let read = NotifyDatagram(Array(row.text.utf8))
        #expect(read.messages == row.messages)
        #expect(read.warnings == row.warnings)
    }

    @Test("unknown keys have no effect and are listed once, up to a limit; keys that only systemd defines are not")
    func unknownKeys() {
        let typo = "X_GREENROOM_BACKGRUOND=1"
        let text = "\(typo)\nREADY=1\n\(typo)\nRELOADING=1\nFDPOLL=0\nBARRIER=0\nREDAY=1"
        let read = NotifyDatagram(Array(text.utf8))
        #expect(read.messages == [.ready])
        #expect(read.warnings.isEmpty)
        #expect(read.unknownKeys == ["X_GREENROOM_BACKGRUOND", "REDAY"])
        let many = (0..<100).map { "K\($0)=1" }.joined(separator: "\n")
        #expect(NotifyDatagram(Array(many.utf8)).unknownKeys.count == NotifyDatagram.maximumWarnings)
        let long = String(repeating: "K", count: 65) + "=1"
        #expect(NotifyDatagram(Array(long.utf8)).unknownKeys.isEmpty)
        for key in NotifyDatagram.keys { #expect(NotifyDatagram(Array("\(key)=1".utf8)).unknownKeys.isEmpty) }
    }

    @Test("each key of sd_notify(3) has an effect, or is listed once with the reason why it has none")
    func ignoredKeys() {
        // systemd 258, without keys that are part of another one: MONOTONIC_USEC=, FDNAME=, FDPOLL=.
        let all = [
            "READY=1", "RELOADING=1", "STOPPING=1", "STATUS=a", "NOTIFYACCESS=all", "ERRNO=2", "BUSERROR=a.b",
            "VARLINKERROR=a.b", "EXIT_STATUS=3", "MAINPID=4711", "MAINPIDFD=1", "MAINPIDFDID=17", "WATCHDOG=1",
            "WATCHDOG=trigger", "WATCHDOG_USEC=20000000", "EXTEND_TIMEOUT_USEC=5", "FDSTORE=1",
            "FDSTOREREMOVE=1\nFDNAME=a", "BARRIER=1", "RESTART_RESET=1",
        ]
        for text in all {
            let read = NotifyDatagram(Array(text.utf8))
            let repeated = NotifyDatagram(Array((text == "BARRIER=1" ? text : text + "\n" + text).utf8))
            #expect(read.unknownKeys.isEmpty && read.warnings.isEmpty, "\(text)")
            #expect(read.messages.isEmpty == (read.ignoredKeys.count == 1), "\(text)")
            #expect(repeated.ignoredKeys == read.ignoredKeys)
            for key in read.ignoredKeys { #expect(NotifyDatagram.whyIgnored(key) != nil) }
        }
        #expect(NotifyDatagram.whyIgnored("READY") == nil)
    }

    @Test("a datagram that is not UTF-8 is refused")
    func notUTF8() {
        let read = NotifyDatagram(Array("READY=1\nSTATUS=".utf8) + [0xff])
        #expect(read.messages.isEmpty)
        #expect(read.warnings == ["The message was ignored: it is not UTF-8."])
    }

    @Test("4096 bytes are accepted, one more is refused")
    func size() {
        let text = "STATUS=" + String(repeating: "x", count: 4096 - 7)
        #expect(NotifyDatagram(Array(text.utf8)).messages.count == 1)
        let read = NotifyDatagram(Array((text + "x").utf8))
        #expect(read.messages.isEmpty)
        #expect(read.warnings == ["The message was ignored: it is longer than 4096 bytes."])
    }

    @Test("a status text has at most 4096 bytes as it is kept, with U+FFFD for control and bidirectional characters")
    func longStatus() {
        let read = NotifyDatagram(Array(("STATUS=" + String(repeating: "\u{1}", count: 3000)).utf8))
        guard case .status(let text)? = read.messages.first else { return #expect(Bool(false)) }
        #expect(text.utf8.count <= NotifyDatagram.maximumStatus)
        #expect(text.utf8.count > NotifyDatagram.maximumStatus - 6 && text.hasSuffix("\u{fffd}…"))
        #expect(NotifyDatagram(Array("STATUS=a\u{202e}b\u{2028}c".utf8)).messages == [.status("a\u{fffd}b\u{fffd}c")])
    }

    @Test("each line of a datagram is counted, also if it is ignored")
    func lines() {
        #expect(NotifyDatagram(Array("READY=1\n\nX=1\nx\n".utf8)).lines == 3)
        #expect(NotifyDatagram(Array(String(repeating: "x\n", count: 2048).utf8)).lines == 2048)
        #expect(NotifyDatagram([]).lines == 0)
    }

    @Test("a task's name has at most 128 bytes, and a warning shortens a longer one")
    func taskNames() {
        let longest = String(repeating: "ä", count: 64)
        let begin = "X_GREENROOM_BEGIN_TASK="
        #expect(NotifyDatagram(Array((begin + longest).utf8)).messages == [.beginTask(longest)])
        let read = NotifyDatagram(Array((begin + longest + "x").utf8))
        #expect(read.messages.isEmpty)
        #expect(read.warnings.first?.contains(String(repeating: "ä", count: 40) + "…") == true)
    }

    @Test("the number of warnings is limited, however many lines are invalid")
    func manyWarnings() {
        let read = NotifyDatagram(Array(String(repeating: "x\n", count: 2000).utf8))
        #expect(read.warnings.count == NotifyDatagram.maximumWarnings + 1)
        #expect(read.warnings.last == "1992 more assignments of the message are not valid.")
    }

    @Test("random bytes never trap")
    func random() {
        var generator = SeededGenerator(seed: 1)
        let words = [
            "READY=", "MAINPID=", "FDNAME=", "BARRIER=1", "X_GREENROOM_BEGIN_TASK=", "\n", "1", "=", "\0", "\u{1b}",
        ]
        for _ in 0..<2000 {
            var bytes: [UInt8] = []
            for _ in 0..<Int.random(in: 0..<12, using: &generator) {
                bytes += Array(words.randomElement(using: &generator)!.utf8)
                if Bool.random(using: &generator) { bytes.append(.random(in: 0...255, using: &generator)) }
            }
            let read = NotifyDatagram(bytes)
            #expect(read.messages.count <= 12 && read.warnings.count <= NotifyDatagram.maximumWarnings + 1)
        }
    }
}
