import Control
import JSON
import Systemd
import Testing

@testable import greenroomctl

@Suite("Receipts")
struct ReceiptTests {
    @Test("receipts has one line for each receipt, with the explanation last")
    func list() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Receipts", [Records.receipt])
        let outcome = try daemon.run("receipts", "photos", "-n", "5")
        #expect(
            outcome.output
                == "12  2025-11-21T07:12:03.250000Z  photos  watchdog/0x8badf00d  "
                + "Killed: exceeded its launch deadline (5s).\n")
        #expect(daemon.calls.last?.arguments == [.string("photos"), .uint32(5)])
        _ = try daemon.run("receipts")
        #expect(daemon.calls.last?.arguments == [.string(""), .uint32(0)])
    }

    @Test("receipt shows the cause, the code, the process, the deadline and the candidates of jetsam")
    func full() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Receipt", Records.receipt)
        let outcome = try daemon.run("receipt", "12")
        #expect(
            outcome.output == """
                Receipt 12: photos
                      Cause: Killed: exceeded its launch deadline (5s).
                      State: launching
                       Code: watchdog/0x8badf00d (missed a launch, background, terminate, thaw or heartbeat deadline)
                       Time: 2025-11-21T07:12:03.250000Z
                    Process: 4711 (killed, signal KILL)
                   Run time: 5.210s
                        CPU: 310ms
                     Memory: 13.7M
                   Deadline: 5s to finish launching, 5.020s elapsed, 300ms CPU
                 Candidates: 1. photos  suspended   1.0G  ← killed
                             2. mail    background  1.0M

                """)
        #expect(daemon.calls.last?.arguments == [.uint64(12)])
    }

    @Test("receipt, and status of an app that has failed and does not run, show the last lines of its output")
    func output() throws {
        let daemon = try FakeDaemon()
        var receipt = Records.receipt
        receipt.output = ["one", "two\u{1b}[2J"]
        daemon.answer("Receipt", receipt)
        let shown = "\n     Output: one\n             two\\x1b[2J\n"
        #expect(try daemon.run("receipt", "12").output.hasSuffix(shown))
        daemon.answer("Status", Records.make(Records.mail) { $0.lastReceipt = Records.receipt })
        #expect(try daemon.run("status", "org.example.Mail").output.hasSuffix(shown))
        #expect(daemon.calls.last?.arguments == [.uint64(12)])
        // One that runs has failed some time ago, and one that was removed has not failed.
        daemon.answer("Status", Records.photos)
        #expect(try !daemon.run("status", "photos").output.contains("Output:"))
        daemon.answer(
            "Status",
            Records.make(Records.mail) { $0.lastReceipt = Records.make(Records.receipt) { $0.namespace = "user" } })
        #expect(try !daemon.run("status", "org.example.Mail").output.contains("Output:"))
        #expect(daemon.count(of: "Receipt") == 2)
    }

    @Test("the lines before an end are those of the journal from the start of the process to its end")
    func journal() {
        #expect(
            JournalQuery.arguments(endOf: Records.receipt, lines: 10) == [
                "--quiet", "--no-pager", "--output=cat", "--lines=10", "--since=@1763709118.040000",
                "--until=@1763709123.350000", "_TRANSPORT=stdout", "SYSLOG_IDENTIFIER=photos",
            ])
    }

    @Test("as JSON both have the keys of the contract")
    func json() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Receipts", [Records.receipt])
        daemon.answer("Receipt", Records.receipt)
        let one = try JSONValue.parse(try daemon.run("receipt", "12", "--json").output)
        let all = try JSONValue.parse(try daemon.run("receipts", "--json").output)
        #expect(all == .array([one]))
        #expect(
            one.objectValue?.map(\.0) == [
                "id", "app", "pid", "time", "state", "namespace", "code", "explanation", "signal", "coreDumped",
                "wallSeconds", "cpuSeconds", "memoryBytes", "deadline", "candidates",
            ])
    }

    @Test("an exit status and a signal are shown as what they are, not as a code")
    func ends() throws {
        let daemon = try FakeDaemon()
        func variant(_ change: (inout ReceiptRecord) -> Void) -> ReceiptRecord {
            var receipt = Records.receipt
            receipt.signal = nil
            receipt.coreDumped = nil
            change(&receipt)
            return receipt
        }
        let failed = variant {
            ($0.namespace, $0.code, $0.exitStatus) = ("exit", "0", 1)
            ($0.remainingProcesses, $0.remainingNames) = (2, ["nginx"])
        }
        let crashed = variant { ($0.namespace, $0.code, $0.signal, $0.coreDumped) = ("signal", "2", 11, true) }
        let ended = variant { ($0.namespace, $0.code, $0.signal) = ("exit", "0", 15) }
        let asked = variant {
            ($0.namespace, $0.code, $0.exitStatus) = ("exit", "0", 143)
            $0.deadline?.what = "terminate"
        }
        daemon.answer("Receipts", [failed, crashed, ended, asked])
        let lines = try daemon.run("receipts").output.split(separator: "\n")
        #expect(lines[0].contains("  exited, status 1  "))
        #expect(lines[1].contains("  killed, signal SEGV, core dumped  "))
        #expect(lines[2].contains("  terminated  ") && lines[3].contains("  terminated  "))
        daemon.answer("Receipt", ended)
        let orderly = try daemon.run("receipt", "12").output
        #expect(orderly.contains("Process: 4711 (ended by SIGTERM)\n"))
        daemon.answer("Receipt", failed)
        let sheet = try daemon.run("receipt", "12").output
        #expect(sheet.contains("Process: 4711 (exited, status 1)\n"))
        // The code of every exit is 0, and would stand beside the status.
        #expect(!sheet.contains("Code:") && !orderly.contains("Code:"))
        #expect(sheet.contains("Killed too: 2 remaining processes (nginx)\n"))
    }

    @Test("an unknown receipt fails with the daemon's sentence")
    func unknown() throws {
        let daemon = try FakeDaemon()
        daemon.on("Receipt") { $0.fail(ControlNames.Failure.unknownReceipt.error("There is no receipt 99.")) }
        let outcome = try daemon.run("receipt", "99")
        #expect(outcome.status == 1)
        #expect(outcome.errors == "greenroomctl: There is no receipt 99.\n")
        #expect(outcome.output.isEmpty)
    }
}
