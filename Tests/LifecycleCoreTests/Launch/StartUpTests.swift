import LifecycleCore
import Testing

@Suite("Start-up")
struct StartUpTests {
    /// A program that takes no part, launched into the background.
    private func launch(_ policy: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        let harness = Harness("server") {
            $0.startUpTime = .seconds(30)
            policy(&$0)
        }
        harness.behave("server") { $0.entering = .cannotBeNotified }
        harness.launch("server", .background)
        return harness
    }

    /// Lets time pass in which the app uses a part of a processor, in percent.
    private func compute(_ harness: Harness, for time: Duration, percent: Int = 50) {
        let step = Duration.milliseconds(100)
        var left = time
        while left > .zero {
            harness.behave("server") { $0.cpu += step * percent / 100 }
            harness.advance(step)
            left -= step
        }
    }

    @Test("a program that takes no part is not suspended while it starts up, for StartupSec= at most (L18)")
    func startsUp() {
        let harness = launch { $0.backgroundTime = nil }
        #expect(harness.state("server") == .background)
        #expect(harness.view("server").awakeReasons == [.startUp])
        compute(harness, for: .seconds(29))
        #expect(harness.state("server") == .background)
        compute(harness, for: .seconds(1))
        #expect(harness.view("server").awakeReasons == [.suspendDelay])
        compute(harness, for: .seconds(1))
        #expect(harness.state("server") == .suspended)
    }

    @Test("a program that listens has started up (L18)")
    func listens() {
        let harness = launch()
        compute(harness, for: .seconds(4))
        harness.behave("server") { $0.listens = true }
        compute(harness, for: .seconds(2))
        #expect(harness.state("server") == .suspended)
    }

    @Test("a program that uses no processor for 6s has started up (L18)")
    func idle() {
        let harness = launch()
        compute(harness, for: .seconds(3))
        compute(harness, for: .milliseconds(5500), percent: 0)
        #expect(harness.state("server") == .background)
        compute(harness, for: .seconds(3), percent: 0)
        #expect(harness.state("server") == .suspended)
    }

    @Test("with StartupSec=0 a program is suspended like any other (L18)")
    func off() {
        let harness = launch { $0.startUpTime = .zero }
        compute(harness, for: .seconds(1))
        #expect(harness.state("server") == .suspended)
    }

    @Test("an app that takes part is suspended when it has answered (L18)")
    func takesPart() {
        let harness = Harness("server") { $0.startUpTime = .seconds(30) }
        harness.launch("server", .background)
        harness.advance(.seconds(1))
        #expect(harness.state("server") == .suspended)
    }

    @Test("Type=notify says itself when it has started up (L18)")
    func notified() {
        let harness = launch { $0.readiness = .notified }
        harness.advance(.seconds(1))
        #expect(harness.state("server") == .suspended)
    }

    @Test("a program in the foreground is not measured, and the rest of StartupSec= counts in the background (L18)")
    func foreground() {
        let harness = Harness("server") { $0.startUpTime = .seconds(30) }
        harness.behave("server") { $0.entering = .cannotBeNotified }
        harness.launch("server")
        compute(harness, for: .seconds(10))
        #expect(!harness.effects.contains { if case .run(_, .deadline(.measureActivity)) = $0 { true } else { false } })
        harness.background("server")
        compute(harness, for: .seconds(18))
        #expect(harness.state("server") == .background)
        compute(harness, for: .seconds(3))
        #expect(harness.state("server") == .suspended)
    }

    @Test("a program that starts up is measured rarely, and less often with time")
    func rate() {
        let harness = launch()
        compute(harness, for: .seconds(30))
        let count = harness.effects.count { if case .run(_, .deadline(.measureActivity)) = $0 { true } else { false } }
        #expect((20...80).contains(count))
    }

    @Test("the background time of an app does not end its start-up (L18, L21)")
    func budget() {
        let harness = launch { $0.backgroundTime = .seconds(5) }
        compute(harness, for: .seconds(20))
        #expect(harness.state("server") == .background)
        #expect(harness.receipts.isEmpty)
    }

    @Test("Type=listening is ready when the program listens (L7)", arguments: [LaunchState.foreground, .background])
    func listening(state: LaunchState) {
        let harness = Harness("server") { $0.readiness = .listening }
        harness.behave("server") { $0.entering = .cannotBeNotified }
        harness.launch("server", state)
        harness.advance(.seconds(3))
        #expect(harness.state("server") == .launching)
        harness.behave("server") { $0.listens = true }
        harness.advance(.milliseconds(500))
        #expect(harness.state("server") == (state == .foreground ? .active : .background))
    }

    @Test("an app of Type=listening that enters the background while it launches is ready when it listens (L7)")
    func entersWhileLaunching() {
        let harness = Harness("server") { $0.readiness = .listening }
        harness.launch("server")
        harness.handle(.run(harness.run("server"), .transition(.backgroundEntered)))
        harness.behave("server") { $0.listens = true }
        harness.advance(.seconds(1))
        #expect(harness.state("server") == .active)
    }

    @Test("a manifest that changes Type= while the app launches has no effect on this launch (L7)")
    func typeChanges() {
        let harness = Harness("server") { $0.readiness = .listening }
        harness.launch("server")
        harness.register("server") { $0.readiness = .notified }
        harness.behave("server") { $0.listens = true }
        harness.advance(.seconds(1))
        #expect(harness.state("server") == .active)
    }

    @Test("if the sockets of an app of Type=listening cannot be examined, status and receipt say so and why (L7)")
    func hiddenSockets() throws {
        let harness = Harness("server") { $0.readiness = .listening }
        let hidden = HiddenSockets(count: 1, pid: 77)
        harness.behave("server") { $0.hiddenSockets = hidden }
        harness.launch("server")
        #expect(harness.view("server").hiddenSockets == nil)
        harness.advance(.seconds(3))
        #expect(harness.view("server").hiddenSockets == hidden)
        harness.advance(.seconds(2))
        let receipt = try harness.receipt("server")
        #expect(receipt.code == Receipt.Code.missedDeadline && receipt.deadline?.hiddenSockets == hidden)
        #expect(
            receipt.explanation.hasPrefix(
                "Killed: exceeded its launch deadline (5s); whether it listens could not be seen (Type=listening): the sockets "
                    + "of process 77 could not be examined: permission denied"))
        #expect(receipt.explanation.contains("CAP_SYS_PTRACE"))
    }

    @Test("what could be examined at the last measurement is not in the receipt (L7)")
    func hiddenBefore() throws {
        let harness = Harness("server") { $0.readiness = .listening }
        harness.behave("server") { $0.hiddenSockets = HiddenSockets(count: 2, pid: 77) }
        harness.launch("server")
        harness.advance(.seconds(2))
        harness.behave("server") { $0.hiddenSockets = nil }
        harness.advance(.seconds(3))
        #expect(try !harness.receipt("server").explanation.contains("examined"))
    }

    @Test("Type=listening that does not listen misses its launch deadline (L7)")
    func neverListens() throws {
        let harness = Harness("server") { $0.readiness = .listening }
        harness.launch("server")
        harness.advance(.seconds(5))
        let receipt = try harness.receipt("server")
        #expect(receipt.code == Receipt.Code.missedDeadline)
        #expect(
            receipt.explanation.contains(
                "(5s); none of its processes listens on a TCP or Unix stream socket (Type=listening): set Type=exec if it never does"
            ))
    }

    @Test("a start-up in progress is saved and recovered (L18)")
    func recovered() throws {
        let harness = launch()
        compute(harness, for: .seconds(3))
        let core = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(core.difference(from: harness.core) == nil)
        #expect(core.nextDeadline == harness.core.nextDeadline)
    }

    @Test(
        "whether a launch of Type=listening is complete is looked at soon, and then later by an eighth of the program's age (L7)"
    )
    func looks() {
        func times(_ holdsSockets: Bool) -> [Duration] {
            let harness = launch {
                $0.readiness = .listening
                $0.holdsSockets = holdsSockets
            }
            let mark = harness.now
            var times: [Duration] = []
            while harness.now - mark < .milliseconds(30) {
                let before = harness.effects.count
                harness.advance(.microseconds(500))
                if harness.effects.dropFirst(before).contains(where: \.looksForListener) {
                    times.append(harness.now - mark)
                }
            }
            return times
        }
        let expected = [2, 4, 6, 8, 10, 12, 14, 16, 18, 20.5, 23, 26, 29].map { Duration.milliseconds($0) }
        #expect(times(true) == expected)
        #expect(times(false) == expected)
    }
}

extension Effect {
    fileprivate var looksForListener: Bool {
        if case .run(_, .deadline(.measureActivity(listeners: true))) = self { true } else { false }
    }
}
