import LifecycleCore
import Testing

import enum LifecycleCore.ExitStatus

@Suite("Receipts")
struct ReceiptTests {
    @Test(
        "signals are named as signal(7) does; one without a name is numbered",
        arguments: [
            (Int32(1), "SIGHUP"), (6, "SIGABRT"), (9, "SIGKILL"), (11, "SIGSEGV"), (15, "SIGTERM"), (31, "SIGSYS"),
            (35, "signal 35"), (-1, "signal -1"),
        ])
    func signals(number: Int32, name: String) {
        #expect(signalName(number) == name)
    }

    @Test("a signal without a core says nothing of one")
    func noCore() throws {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.exit("photos", .signaled(1, coreDumped: false))
        #expect(try harness.receipt("photos").explanation == "Killed by SIGHUP, which greenroomd did not send.")
    }

    @Test("told to terminate and ended by another signal than SIGTERM is that signal's")
    func otherSignal() throws {
        let harness = Harness("photos")
        harness.bring("photos", into: .terminating)
        harness.exit("photos", .signaled(11, coreDumped: false))
        let receipt = try harness.receipt("photos")
        #expect(receipt.namespace == .signal)
        #expect(receipt.state == .active)
    }

    @Test(
        "L45: a victim's receipt names who else was considered, in the order in which they would have gone, five at most"
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

    @Test("L45: where nobody tells how a main process ended, the receipt says so; what it was killed for counts")
    func unknownStatus() throws {
        let harness = Harness("quiet", "stuck", "asked") { $0.watchdog = .seconds(1) }
        harness.configure { $0.foregroundLimit = 3 }
        for app in ["quiet", "stuck", "asked"] {
            harness.behave(app) {
                $0.dies = false; $0.terminating = .ignores
            }
            harness.launch(app)
        }
        harness.happens(.run(harness.run("quiet"), .exited(.unknown, cpu: .zero, memory: 0)))
        #expect(try harness.receipt("quiet").namespace == .exit)
        #expect(try harness.receipt("quiet").exit == .unknown)
        #expect(try harness.receipt("quiet").explanation.contains("unknown status"))
        harness.terminate("asked")
        harness.happens(.run(harness.run("asked"), .exited(.unknown, cpu: .zero, memory: 0)))
        #expect(try harness.receipt("asked").explanation.hasPrefix("Terminated on request: ended with unknown status"))
        harness.advance(.seconds(1))
        harness.happens(.run(harness.run("stuck"), .exited(.unknown, cpu: .zero, memory: 0)))
        #expect(try harness.receipt("stuck").code == Receipt.Code.missedDeadline)
        #expect(try harness.receipt("stuck").exit == .unknown)
    }

    @Test("L45: the kernel's peak stands in for the size of a life too short to be measured, and for no other")
    func peak() throws {
        let harness = Harness("short", "long")
        for app in ["short", "long"] { harness.behave(app) { $0.dies = false } }
        harness.suspend("long")
        harness.launch("short")
        let level = harness.core.memory.apps
        for app in ["short", "long"] {
            harness.happens(.run(harness.run(app), .exited(.exited(0), cpu: .zero, memory: 50 * mebibyte)))
        }
        #expect(try harness.receipt("short").memory == 50 * mebibyte)
        #expect(try harness.receipt("long").memory == 10 * mebibyte)
        #expect(harness.core.memory.apps == level)
    }

    @Test("L45: the time from process creation to the end is in the receipt")
    func wall() throws {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.advance(.seconds(90))
        harness.crash("photos")
        #expect(try harness.receipt("photos").wall == .seconds(90))
        #expect(try harness.receipt("photos").cpu == .milliseconds(250))
    }

    @Test("told to terminate, and all gone before it is known how: the end is still what was asked for")
    func emptiedWhileTerminating() throws {
        let harness = Harness("photos")
        harness.bring("photos", into: .terminating)
        let run = harness.run("photos")
        harness.happens(.run(run, .emptied))
        harness.happens(.run(run, .exited(.exited(0), cpu: .zero, memory: 0)))
        #expect(try harness.receipt("photos").explanation == "Terminated on request: exited with status 0.")
    }
}
