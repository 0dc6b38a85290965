import LifecycleCore
import Testing

import enum LifecycleCore.ExitStatus

@Suite("Receipts")
struct ReceiptTests {
    @Test(
        "signals have the names of signal(7), and one without a name has its number",
        arguments: [
            (Int32(1), "SIGHUP"), (6, "SIGABRT"), (9, "SIGKILL"), (11, "SIGSEGV"), (15, "SIGTERM"), (31, "SIGSYS"),
            (33, "signal 33"), (34, "SIGRTMIN+0"), (64, "SIGRTMIN+30"), (65, "signal 65"), (-1, "signal -1"),
        ])
    func signals(number: Int32, name: String) {
        #expect(signalName(number) == name)
    }

    @Test(
        "without SIG, signals have the names that systemd writes",
        arguments: [(Int32(11), "SEGV"), (36, "RTMIN+2"), (33, "33")])
    func shortNames(number: Int32, name: String) {
        #expect(shortSignalName(number) == name)
    }

    @Test("the explanation of a signal without a core dump mentions none")
    func noCore() throws {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.exit("photos", .signaled(1, coreDumped: false))
        #expect(try harness.receipt("photos").explanation == "Killed by SIGHUP, which greenroomd did not send.")
    }

    @Test(
        "an app that is ended by the signal that Terminate= names has ended as it was asked to (L45)",
        arguments: [Int32(1), 2, 10, 15, 36])
    func terminateSignal(number: Int32) throws {
        let harness = Harness("photos")
        harness.move("photos", to: .terminating)
        harness.exit("photos", .signaled(number, coreDumped: false))
        let receipt = try harness.receipt("photos")
        #expect(receipt.explanation == "Terminated on request: ended by \(signalName(number)).")
        #expect(receipt.namespace == .exit)
        #expect(receipt.failure == nil)
    }

    @Test("SIGKILL of another program while an app terminates is attributed to the signal")
    func otherKill() throws {
        let harness = Harness("photos")
        harness.move("photos", to: .terminating)
        harness.exit("photos", .signaled(9, coreDumped: false))
        #expect(try harness.receipt("photos").explanation == "Killed by SIGKILL, which greenroomd did not send.")
    }

    @Test("the end of a terminating app by a crash is attributed to the signal")
    func otherSignal() throws {
        let harness = Harness("photos")
        harness.move("photos", to: .terminating)
        harness.exit("photos", .signaled(11, coreDumped: false))
        let receipt = try harness.receipt("photos")
        #expect(receipt.namespace == .signal)
        #expect(receipt.state == .active)
    }

    @Test(
        "a jetsam receipt names at most five candidates in the order of L38 (L45)"
    )
    func candidates() throws {
        let harness = Harness("a", "b", "c", "d", "e", "f", "g")
        for (index, app) in ["a", "b", "c", "d", "e", "f"].enumerated() {
            harness.behave(app) { $0.memory = UInt64(10 + index) * mebibyte }
            harness.suspend(app)
        }
        harness.launch("g")
        harness.simulate(.critical)
        let receipt = try harness.receipt("f")
        #expect(receipt.namespace == .jetsam)
        #expect(receipt.code == 1)
        #expect(receipt.explanation == "Killed while suspended to free memory: simulated memory pressure.")
        #expect(receipt.candidates.map(\.app.name) == ["f", "e", "d", "c", "b"])
        #expect(receipt.candidates.map(\.state) == Array(repeating: .suspended, count: 5))
        #expect(receipt.candidates.first?.memory == 15 * mebibyte)
        #expect(receipt.memory == 15 * mebibyte)
    }

    @Test("the receipt of an unknown exit status says so, and the cause of a sent SIGKILL counts (L45)")
    func unknownStatus() throws {
        let harness = Harness("quiet", "stuck", "asked") { $0.watchdog = .seconds(1) }
        harness.configure { $0.foregroundLimit = 3 }
        for app in ["quiet", "stuck", "asked"] {
            harness.behave(app) {
                $0.dies = false; $0.terminating = .ignores
            }
            harness.launch(app)
        }
        harness.handle(.run(harness.run("quiet"), .process(.exited(.unknown, cpu: .zero, memory: 0))))
        #expect(try harness.receipt("quiet").namespace == .exit)
        #expect(try harness.receipt("quiet").exit == .unknown)
        #expect(try harness.receipt("quiet").explanation.contains("unknown status"))
        harness.terminate("asked")
        harness.handle(.run(harness.run("asked"), .process(.exited(.unknown, cpu: .zero, memory: 0))))
        #expect(try harness.receipt("asked").explanation.hasPrefix("Terminated on request: ended with unknown status"))
        harness.advance(.seconds(1))
        harness.handle(.run(harness.run("stuck"), .process(.exited(.unknown, cpu: .zero, memory: 0))))
        #expect(try harness.receipt("stuck").code == Receipt.Code.missedDeadline)
        #expect(try harness.receipt("stuck").exit == .unknown)
    }

    @Test("the receipt has the kernel's peak only if the size was never measured (L45)")
    func peak() throws {
        let harness = Harness("short", "long")
        for app in ["short", "long"] { harness.behave(app) { $0.dies = false } }
        harness.suspend("long")
        harness.launch("short")
        let level = harness.core.memory.apps
        for app in ["short", "long"] {
            harness.handle(.run(harness.run(app), .process(.exited(.exited(0), cpu: .zero, memory: 50 * mebibyte))))
        }
        #expect(try harness.receipt("short").memory == 50 * mebibyte)
        #expect(try harness.receipt("long").memory == 10 * mebibyte)
        #expect(harness.core.memory.apps == level)
    }

    @Test("a receipt has the size when the end began and the peak, not what is left in the middle of the end (L45)")
    func memoryBeforeEnd() throws {
        let harness = Harness("photos")
        harness.behave("photos") { $0.terminating = .ignores }
        harness.launch("photos")
        let run = harness.run("photos")
        for size in [80, 200, 120] as [UInt64] {
            harness.handle(
                .memory(
                    .measured(
                        MemoryReading(
                            total: 1 << 33, available: 1 << 32, sizes: [.init(run: run, bytes: size * mebibyte)])))
            )
        }
        harness.terminate("photos")
        harness.handle(
            .memory(
                .measured(
                    MemoryReading(total: 1 << 33, available: 1 << 32, sizes: [.init(run: run, bytes: 15 * mebibyte)]))))
        harness.exit("photos")
        let receipt = try harness.receipt("photos")
        #expect(receipt.memory == 120 * mebibyte)
        #expect(receipt.peakMemory == 200 * mebibyte)
    }

    @Test(
        "the exact size of a suspended app replaces the estimate of the freeze, and no size of an earlier freeze does (L38)"
    )
    func exactSize() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.memory = 200 * mebibyte }
        harness.suspend("photos")
        let run = harness.run("photos")
        func size() -> UInt64? { harness.core.view(of: id("photos"), at: harness.now)?.memory }
        #expect(size() == 200 * mebibyte)
        harness.handle(.run(run, .suspension(.footprintMeasured(attempt: 1, memory: 40 * mebibyte))))
        #expect(size() == 40 * mebibyte)
        harness.activate("photos")
        harness.handle(.run(run, .suspension(.footprintMeasured(attempt: 1, memory: 30 * mebibyte))))
        #expect(size() == 40 * mebibyte)
        harness.background("photos")
        harness.advance(.seconds(2))
        #expect(harness.state("photos") == .suspended)
        harness.handle(.run(run, .suspension(.footprintMeasured(attempt: 1, memory: 30 * mebibyte))))
        #expect(size() == 200 * mebibyte)
    }

    @Test(
        "an end is a failure if the app failed or was killed for a fault, and none if it was asked for (L45)",
        arguments: [
            ("exit 0", Receipt.Failure?.none), ("exit 1", .failed), ("SIGHUP", .failed), ("SIGSEGV", .crashed),
            ("not executed", .notLaunched), ("terminate", nil), ("terminate, exit 1", nil), ("deadline", .failed),
            ("remove", nil), ("jetsam", nil), ("unknown", nil),
        ])
    func failure(why: String, expected: Receipt.Failure?) throws {
        let harness = Harness("photos")
        if why == "not executed" {
            harness.behave("photos") { $0.launching = .fails(SpawnProblem(sentence: "no", exitStatus: 203)) }
        }
        if why == "terminate, exit 1" { harness.behave("photos") { $0.terminating = .exits(1) } }
        if why == "deadline" { harness.behave("photos") { $0.terminating = .ignores } }
        harness.launch("photos")
        switch why {
        case "exit 0": harness.exit("photos")
        case "exit 1": harness.exit("photos", .exited(1))
        case "SIGHUP": harness.exit("photos", .signaled(1, coreDumped: false))
        case "SIGSEGV": harness.exit("photos", .signaled(11, coreDumped: false))
        case "unknown": harness.exit("photos", .unknown)
        case "remove": harness.remove("photos")
        case "jetsam": harness.simulate(.critical)
        case "not executed": break
        default:
            harness.terminate("photos")
            harness.advance(.seconds(5))
        }
        if why == "jetsam", harness.receipts.isEmpty {
            harness.suspend("photos")
            harness.simulate(.critical)
        }
        #expect(try harness.receipt("photos").failure == expected)
    }

    @Test("the receipt contains the time from process creation to the end (L45)")
    func wall() throws {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.advance(.seconds(90))
        harness.crash("photos")
        #expect(try harness.receipt("photos").wall == .seconds(90))
        #expect(try harness.receipt("photos").cpu == .milliseconds(250))
    }

    @Test("the end of a terminating app whose exit status is not known yet is a requested end")
    func emptiedWhileTerminating() throws {
        let harness = Harness("photos")
        harness.move("photos", to: .terminating)
        let run = harness.run("photos")
        harness.handle(.run(run, .process(.emptied)))
        harness.handle(.run(run, .process(.exited(.exited(0), cpu: .zero, memory: 0))))
        #expect(try harness.receipt("photos").explanation == "Terminated on request: exited with status 0.")
    }
}
