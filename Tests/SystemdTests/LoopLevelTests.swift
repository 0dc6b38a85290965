import LoopPolicy
import Posix
import Systemd
import Testing

/// Levels, shares and sources without progress, on a real loop with a clock of the test.
@Suite("Levels of the loop")
struct LoopLevelTests {
    private final class Stage {
        let loop: EventLoop
        var time = Duration.zero
        /// The names of the sources that were served, in order.
        var served: [String] = []
        private var kept: [EventSource] = []
        private var pipes: [TestPipe] = []

        init() throws {
            loop = try EventLoop()
            loop.clock = { [unowned self] in time }
            loop.processorClock = loop.clock
        }

        /// A source that is always ready, and whose turn takes this long.
        @discardableResult
        func add(
            _ name: String, _ kind: SourceKind, takes cost: Duration, share: AppShare? = nil,
            result: TurnResult = .progress
        ) throws -> EventSource {
            let pipe = try TestPipe()
            pipe.write("x")
            pipes.append(pipe)
            let source = try loop.addDescriptor(pipe.reading, events: .readable, kind: kind, share: share) {
                [unowned self] _ in
                served.append(name)
                time += cost
                return result
            }
            kept.append(source)
            return source
        }

        func run(turns: Int) throws { for _ in 0..<turns { try loop.runOnce(timeout: .zero) } }
    }

    @Test("the control interface is served before apps, and work comes last")
    func order() throws {
        let stage = try Stage()
        try stage.add("work", .folderChange, takes: .zero)
        try stage.add("app", .notifySocket, takes: .zero)
        try stage.add("client", .controlClient, takes: .zero)
        try stage.run(turns: 3)
        #expect(Set(stage.served) == ["client"])
    }

    @Test("a level that has used its time lets every other level be served before it continues", arguments: [1, 5, 20])
    func budget(milliseconds: Int) throws {
        let stage = try Stage()
        let cost = Duration.milliseconds(milliseconds)
        try stage.add("client", .controlClient, takes: cost)
        try stage.add("app", .notifySocket, takes: cost)
        try stage.add("work", .folderChange, takes: cost)
        try stage.run(turns: 500)
        let turns = 20 / milliseconds
        let round = ["client", "app", "work"].flatMap { Array(repeating: $0, count: turns) }
        #expect(Array(stage.served.prefix(2 * round.count)) == round + round)
    }

    @Test("a timer, a deferred call and the work queue wait for the round, too, and none is lost")
    func oneShots() throws {
        let stage = try Stage()
        try stage.add("client", .controlClient, takes: .milliseconds(20))
        var fired: [String] = []
        let timer = try stage.loop.makeTimer(kind: .controlTimer) { _ in fired.append("timer") }
        timer.arm(at: .zero)
        stage.loop.controlWork.add {
            fired.append("answer")
            return false
        }
        stage.loop.work.add {
            fired.append("work")
            return false
        }
        try stage.run(turns: 40)
        #expect(Set(fired) == ["timer", "answer", "work"] && fired.count == 3)
        withExtendedLifetime(timer) {}
    }

    @Test(
        "after a thaw the processor is left to others, for a twentieth of the time at most", arguments: [0.05, 2, 40])
    func yields(milliseconds: Double) {
        let time = Duration.microseconds(Int(milliseconds * 1_000))
        var budget = YieldBudget()
        var (now, yielded, most) = (Duration.zero, Duration.zero, Duration.zero)
        for _ in 0..<10_000 {
            now += .milliseconds(1)
            guard budget.allows(at: now) else { continue }
            now += time
            budget.yielded(for: time)
            yielded += time
            most = max(most, yielded - now / 20)
        }
        // What takes a twentieth of the time or less is always allowed, and a yield may end beyond the budget.
        if time < .milliseconds(1) / 19 { #expect(yielded == time * 10_000) }
        #expect(most <= YieldBudget.burst + time)
        #expect(yielded > YieldBudget.burst)
    }

    @Test("an app that uses up its share waits until the window is over, and others do not")
    func share() throws {
        let stage = try Stage()
        let (greedy, modest) = (AppShare(), AppShare())
        var floods = 0
        greedy.onFlood = { floods += 1 }
        try stage.add("greedy", .appListener, takes: .milliseconds(5), share: greedy)
        try stage.add("modest", .appClient, takes: .microseconds(10), share: modest)
        try stage.run(turns: 200)
        // 100 ms, and a fifth of the time that has passed between its turns.
        #expect((20...25).contains(stage.served.count { $0 == "greedy" }))
        #expect(floods == 1 && greedy.floods == 1 && modest.floods == 0)
        let before = stage.served.count
        stage.time += LoopShare.pause
        #expect(try stage.loop.serve { stage.served[before...].contains("greedy") })
    }

    @Test("the descriptors of apps that share a source of the loop are served in turns, as long as they are enabled")
    func parts() throws {
        let stage = try Stage()
        let one = try stage.add("one", .notifySocket, takes: .zero)
        try stage.add("two", .notifySocket, takes: .zero)
        let three = try stage.add("three", .appListener, takes: .zero)
        try stage.run(turns: 9)
        #expect(Set(["one", "two", "three"].map { name in stage.served.count { $0 == name } }) == [3])
        one.isEnabled = false
        try three.setEvents([])
        stage.served = []
        try stage.run(turns: 3)
        #expect(stage.served == ["two", "two", "two"])
        // What one of the two forbids, the other does not allow.
        try one.setEvents(.readable)
        three.isEnabled = true
        try stage.run(turns: 1)
        #expect(stage.served.last == "two")
        one.isEnabled = true
        try three.setEvents(.readable)
        try stage.run(turns: 3)
        #expect(Set(stage.served.suffix(3)) == ["one", "two", "three"])
    }

    /// Whether epoll(7) reports the descriptor once. A line of a set is "tfd: 8 events: 40000001 …" (proc_pid_fdinfo(5)).
    private func isReportedOnce(_ descriptor: SharedDescriptor) -> Bool {
        for number in 0..<1024 {
            let bytes = (try? readFile(at: "/proc/self/fdinfo/\(number)", limit: 1 << 20)) ?? []
            for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
                let words = line.split(separator: " ")
                guard words.count > 3, words[0] == "tfd:", words[1] == "\(descriptor.raw)" else { continue }
                if let events = UInt32(words[3], radix: 16), events & 1 << 30 != 0 { return true }
            }
        }
        return false
    }

    @Test(
        "a set of descriptors of an app is reported once for each turn, and served as long as it is ready and enabled")
    func reportedOnce() throws {
        let stage = try Stage()
        let (once, always) = (try TestPipe(), try TestPipe())
        var served = 0
        let source = try stage.loop.addDescriptor(once.reading, events: .readable, kind: .input) { _ in
            served += 1
            return .progress
        }
        let other = try stage.loop.addDescriptor(always.reading, events: .readable, kind: .appClient) { _ in .progress }
        #expect(isReportedOnce(once.reading) && !isReportedOnce(always.reading))
        once.write("x")
        try stage.run(turns: 3)
        #expect(served == 3 && source.isEnabled && isReportedOnce(once.reading))
        source.isEnabled = false
        try stage.run(turns: 3)
        #expect(served == 3 && !source.isEnabled)
        source.isEnabled = true
        try stage.run(turns: 1)
        #expect(served == 4)
        withExtendedLifetime(other) {}
    }

    @Test("a set of descriptors of an app that waits for the end of a round, or of a pause, is served after it")
    func reportedOnceAndWaits() throws {
        let stage = try Stage()
        try stage.add("app", .appClient, takes: .milliseconds(20))
        try stage.add("set", .input, takes: .milliseconds(1))
        try stage.add("paused", .input, takes: LoopShare.burst, share: AppShare())
        try stage.run(turns: 60)
        #expect(stage.served.count { $0 == "set" } > 3)
        let before = stage.served.count { $0 == "paused" }
        stage.time += LoopShare.pause
        #expect(try stage.loop.serve { stage.served.count { $0 == "paused" } > before })
    }

    @Test(
        "a source that was disabled or dropped while its app waits stays so",
        arguments: [SourceKind.appClient, .notifySocket, .input])
    func disabledWhilePaused(kind: SourceKind) throws {
        let stage = try Stage()
        let share = AppShare()
        let source = try stage.add("disabled", kind, takes: LoopShare.burst, share: share)
        let dropped = try stage.add("dropped", kind, takes: .zero, share: share)
        try stage.run(turns: 10)
        #expect(stage.served == ["disabled"] && source.isEnabled)
        source.isEnabled = false
        dropped.cancel()
        let other = try stage.add("other", kind, takes: .zero, share: share)
        stage.time += LoopShare.pause
        #expect(try stage.loop.serve { stage.served.last == "other" })
        #expect(!source.isEnabled && !stage.served.contains("dropped"))
        withExtendedLifetime(other) {}
    }

    @Test(
        "a source that stays ready although nothing comes of it is switched off and reported",
        arguments: [SourceKind.input, .notifySocket])
    func withoutProgress(kind: SourceKind) throws {
        let stage = try Stage()
        var reported: [SourceKind] = []
        stage.loop.onSwitchedOff = { kind, _ in reported.append(kind) }
        let source = try stage.add("idle", kind, takes: .microseconds(10), result: .nothing)
        var isAwake = false
        source.onSwitchedOff = { isAwake = true }
        try stage.add("busy", kind, takes: .microseconds(10))
        try stage.run(turns: 1000)
        #expect(stage.served.count { $0 == "idle" } == ProgressCounter.limit)
        #expect(reported == [kind] && stage.loop.switchedOff == 1 && isAwake && !source.isEnabled)
        #expect(stage.served.count { $0 == "busy" } > ProgressCounter.limit)
    }

    @Test("a source that is woken in vain now and then is not switched off")
    func vainWakes() throws {
        let stage = try Stage()
        let source = try stage.add("idle", .input, takes: .milliseconds(100), result: .nothing)
        try stage.run(turns: 1000)
        #expect(source.isEnabled)
    }

    @Test("the heartbeat follows a round through all levels, also in a busy loop")
    func heartbeat() throws {
        let stage = try Stage()
        for (name, kind) in [("client", SourceKind.controlClient), ("app", .notifySocket), ("work", .folderChange)] {
            try stage.add(name, kind, takes: .milliseconds(1))
        }
        var beats = 0
        try stage.loop.startHeartbeat(limit: .seconds(30)) { beats += 1 }
        #expect(beats == 1)
        // The timer is due by the real clock.
        #expect(try stage.loop.serve { beats == 2 })
        #expect(stage.time < .milliseconds(200))
    }

    @Test("a round of more than 5s is no sign of life, and the next one is")
    func lateRound() {
        var heartbeat = Heartbeat(limit: .seconds(30))
        heartbeat.begin(at: .seconds(1))
        #expect(heartbeat.roundEnded(at: .seconds(7))! == (false, .seconds(7)))
        #expect(heartbeat.roundEnded(at: .seconds(8)) == nil)
        heartbeat.begin(at: .seconds(8))
        #expect(heartbeat.roundEnded(at: .seconds(9))! == (true, .seconds(18)))
    }

    @Test("nothing that an app can make ready is as urgent as the control interface, and every kind has a row")
    func table() {
        #expect(SourceKind.table.map(\.kind) == SourceKind.allCases)
        for row in SourceKind.table where row.isOfApp {
            #expect(row.kind.level.rawValue > LoopLevel.control.rawValue, "\(row.kind)")
        }
    }
}
