import Control
import JSON
import Systemd
import Testing

@Suite("Receipts")
struct ReceiptTests {
    @Test("receipts are a line each, with the explanation last")
    func list() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Receipts", .dictionaries([Records.receipt]))
        let outcome = try daemon.run("receipts", "photos", "-n", "5")
        #expect(
            outcome.output
                == "12  2025-11-21T07:12:03.250Z  photos  watchdog  0x8badf00d  did not finish launching within 5 s\n")
        #expect(daemon.calls.last?.arguments == [.string("photos"), .uint32(5)])
        _ = try daemon.run("receipts")
        #expect(daemon.calls.last?.arguments == [.string(""), .uint32(0)])
    }

    @Test("a receipt is shown in full: code, process, deadline and who else could have been taken")
    func full() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Receipt", .dictionary(Records.receipt))
        let outcome = try daemon.run("receipt", "12")
        #expect(
            outcome.output == """
                Receipt 12: photos
                      Ended: while launching: did not finish launching within 5 s
                       Code: watchdog 0x8badf00d: a launch, background or terminate deadline was missed
                       Time: 2025-11-21T07:12:03.250Z
                    Process: 4711, ended by SIGKILL
                      Lived: 5.21s
                        CPU: 0.31s
                     Memory: 13.7M
                   Deadline: 5s to finish launching, 5.02s passed, 0.30s of CPU used
                 Considered: 1. photos  suspended   1.0G  ← taken
                             2. mail    background  1.0M

                """)
        #expect(daemon.calls.last?.arguments == [.uint64(12)])
    }

    @Test("as JSON both have the contract's keys")
    func json() throws {
        let daemon = try FakeDaemon()
        daemon.answer("Receipts", .dictionaries([Records.receipt]))
        daemon.answer("Receipt", .dictionary(Records.receipt))
        let one = try JSONValue.parse(try daemon.run("receipt", "12", "--json").output)
        let all = try JSONValue.parse(try daemon.run("receipts", "--json").output)
        #expect(all == .array([one]))
        #expect(
            one.objectValue?.map(\.0) == [
                "id", "app", "pid", "time", "state", "namespace", "code", "explanation", "signal", "coreDumped",
                "wallSeconds", "cpuSeconds", "memoryBytes", "deadline", "candidates",
            ])
    }

    @Test("a receipt that is not there is the daemon's sentence")
    func unknown() throws {
        let daemon = try FakeDaemon()
        daemon.on("Receipt") { $0.fail(ControlNames.Failure.unknownReceipt.error("there is no receipt 99")) }
        let outcome = try daemon.run("receipt", "99")
        #expect(outcome.status == 1)
        #expect(outcome.errors == "greenroomctl: there is no receipt 99\n")
        #expect(outcome.output.isEmpty)
    }
}
