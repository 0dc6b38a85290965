import Testing

@testable import LifecycleCore

@Suite("Waking on traffic")
struct TrafficTests {
    static let request = Input(kind: .stream, pid: 101, descriptor: 5, bytes: 312, peer: "192.0.2.7:50123")

    private static func arrive(_ harness: Harness, _ input: Input = request, attempt: Int? = nil) {
        let run = harness.run("web")
        let attempt = attempt ?? harness.core.freezeAttempt(ofSuspended: run) ?? 0
        harness.handle(.run(run, .traffic(.inputArrived(attempt: attempt, input))))
    }

    private static func server(_ policy: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        Harness("web") {
            $0.wakesOnTraffic = true
            policy(&$0)
        }
    }

    static func worker(_ policy: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        Harness("web") {
            $0.role = .worker
            $0.wakesOnTraffic = true
            policy(&$0)
        }
    }

    /// Launches the worker and lets it become idle.
    static func rest(_ harness: Harness) {
        harness.launch("web")
        harness.advance(harness.policies[id("web")]!.idleTime)
        #expect(harness.state("web") == .suspended)
    }

    @Test("input thaws a suspended app, after its watch has ended (L50)")
    func wakes() {
        let harness = Self.server()
        harness.suspend("web")
        let run = harness.run("web")
        #expect(harness.effects.contains(.run(run, .traffic(.watchInput(attempt: 1, onlyPeers: false)))))
        #expect(harness.view("web").watch == InputWatch(watched: 3))
        let mark = harness.mark
        Self.arrive(harness)
        #expect(
            Array(harness.effects(since: mark).prefix(2)) == [
                .run(run, .traffic(.stopWatchingInput)), .run(run, .suspension(.thaw(attempt: 1))),
            ])
        #expect(harness.reports(since: mark).contains(.inputArrived(id("web"), Self.request)))
        #expect(harness.changes("web", since: mark) == ["background: woken"])
        let view = harness.view("web")
        #expect(view.awakeReasons == [.wake(.socket)] && view.watch == nil)
        #expect(view.trafficWakes == 1 && view.lastInput == Self.request && view.lastInputAt == harness.now)
    }

    @Test("an app that input has woken is suspended when it is idle, and after 30s in any case, without a kill (L50)")
    func endsWithWork() {
        let harness = Self.server()
        harness.suspend("web")
        Self.arrive(harness)
        harness.advance(.seconds(10))
        #expect(harness.state("web") == .background)
        harness.advance(.seconds(1))
        #expect(harness.state("web") == .suspended)
        harness.behave("web") { $0.work?.unread = 1 }
        harness.advance(.seconds(60))
        Self.arrive(harness)
        harness.advance(.seconds(29))
        #expect(harness.view("web").awakeReasons == [.wake(.socket), .work(.unreadInput)])
        harness.advance(.seconds(2))
        #expect(harness.state("web") == .suspended)
        #expect(harness.killed().isEmpty)
    }

    @Test("input of an earlier suspension, or of an app without Traffic=, wakes nothing")
    func ignored() {
        let harness = Self.server()
        harness.suspend("web")
        Self.arrive(harness, attempt: 7)
        #expect(harness.state("web") == .suspended)
        harness.register("web") { $0.wakesOnTraffic = false }
        let run = harness.run("web")
        #expect(
            Array(harness.effects.suffix(2)) == [
                .run(run, .traffic(.stopWatchingInput)), .run(run, .traffic(.watchInput(attempt: 1, onlyPeers: true))),
            ])
        Self.arrive(harness)
        #expect(harness.state("web") == .suspended)
    }

    @Test("less than WakeThreshold= waits for its time, and a connection does not wait (L50)")
    func threshold() {
        let harness = Self.server { $0.wakeThreshold = .init(bytes: 64, time: .seconds(120)) }
        harness.suspend("web")
        var input = Self.request
        input.bytes = 63
        Self.arrive(harness, input)
        harness.advance(.seconds(119))
        #expect(harness.state("web") == .suspended)
        harness.advance(.seconds(1))
        #expect(harness.state("web") == .background)
        harness.advance(.seconds(11))
        #expect(harness.state("web") == .suspended)
        input.bytes = 64
        Self.arrive(harness, input)
        #expect(harness.state("web") == .background)
        harness.advance(.seconds(11))
        Self.arrive(harness, Input(kind: .listener, pid: 101, descriptor: 3, bytes: 0))
        #expect(harness.state("web") == .background)
    }

    @Test(
        "datagrams, and bytes with the end behind them, are enough whatever the threshold (L50)",
        arguments: [true, false])
    func enough(isDatagram: Bool) {
        let harness = Self.server { $0.wakeThreshold = .init(bytes: 64) }
        harness.suspend("web")
        Self.arrive(
            harness,
            Input(kind: isDatagram ? .datagram : .stream, pid: 101, descriptor: 5, bytes: 10, isEnd: !isDatagram))
        #expect(harness.state("web") == .background)
    }

    @Test("another threshold in the manifest counts for an app that is suspended")
    func otherThreshold() {
        let harness = Self.server { $0.wakeThreshold = .init(bytes: 1024, time: .seconds(60)) }
        harness.suspend("web")
        Self.arrive(harness)
        harness.register("web") { $0.wakeThreshold = .init(bytes: 1) }
        let run = harness.run("web")
        #expect(
            Array(harness.effects.suffix(2)) == [
                .run(run, .traffic(.stopWatchingInput)), .run(run, .traffic(.watchInput(attempt: 1, onlyPeers: false))),
            ])
        harness.advance(.seconds(120))
        #expect(harness.state("web") == .suspended)
        Self.arrive(harness)
        #expect(harness.state("web") == .background)
    }

    @Test(
        "the end of a connection wakes an app whatever its threshold, also where less than that waits at another (L50)")
    func end() {
        let end = Input(kind: .stream, pid: 101, descriptor: 5, bytes: 0, isEnd: true)
        for bytes in [0, 3] as [UInt64] {
            let harness = Self.server { $0.wakeThreshold = .init(bytes: 64) }
            harness.suspend("web")
            if bytes > 0 { Self.arrive(harness, Input(kind: .stream, pid: 101, descriptor: 6, bytes: bytes)) }
            #expect(harness.state("web") == .suspended)
            Self.arrive(harness, end)
            #expect(harness.state("web") == .background, "\(bytes) bytes wait")
        }
    }

    @Test("space for output that an app waits to write wakes it (L50)")
    func space() {
        let harness = Self.server { $0.wakeThreshold = .init(bytes: 64) }
        harness.suspend("web")
        Self.arrive(harness, Input(kind: .stream, pid: 101, descriptor: 5, bytes: 0))
        #expect(harness.state("web") == .background)
    }

    @Test(
        "ends of connections that arrive at many apps at once wake one app after the other, the last ones after 10s (L50)"
    )
    func ends() {
        let names = (0..<310).map { "web\($0)" }
        let harness = Harness()
        for name in names {
            harness.register(name) { ($0.role, $0.wakesOnTraffic) = (.worker, true) }
            harness.launch(name)
        }
        harness.advance(.seconds(10))
        for name in names {
            #expect(harness.state(name) == .suspended)
            let run = harness.run(name)
            let attempt = harness.core.freezeAttempt(ofSuspended: run) ?? 0
            harness.handle(
                .run(
                    run,
                    .traffic(
                        .inputArrived(
                            attempt: attempt, Input(kind: .stream, pid: 101, descriptor: 5, bytes: 0, isEnd: true)))))
        }
        let start = harness.now
        harness.advance(.seconds(10))
        let wakes = harness.log.compactMap { entry -> Duration? in
            guard case .run(_, .suspension(.thaw)) = entry.effect else { return nil }
            return entry.at - start
        }
        #expect(wakes == (0..<310).map { min(.milliseconds(33 * $0), .seconds(10)) })
    }

    @Test("the end of its input wakes a command of run at once, however many others end (L50, L54)")
    func endOfCommands() {
        let names = (0..<20).map { "run@cat-\($0)" }
        let harness = Harness()
        for name in names {
            harness.register(name) { ($0.role, $0.wakesOnTraffic, $0.isAttached) = (.worker, true, true) }
            harness.launch(name)
        }
        harness.advance(.seconds(10))
        for name in names {
            #expect(harness.state(name) == .suspended)
            let run = harness.run(name)
            let attempt = harness.core.freezeAttempt(ofSuspended: run) ?? 0
            let end = Input(kind: .pipe, pid: 101, descriptor: 0, bytes: 0, isEnd: true)
            harness.handle(.run(run, .traffic(.inputArrived(attempt: attempt, end))))
            #expect(harness.state(name) == .background)
        }
    }

    @Test(
        "any app is woken for a moment when the buffer of a local peer is more than half full; that time is limited (L50, L53)"
    )
    func peers() {
        let harness = Harness("web") { $0.backgroundTimePerHour = .seconds(10) }
        harness.suspend("web")
        let run = harness.run("web")
        #expect(harness.effects.contains(.run(run, .traffic(.watchInput(attempt: 1, onlyPeers: true)))))
        let full = Input(kind: .stream, pid: 101, descriptor: 5, bytes: 150_000, isHalfFull: true)
        var wakes = 0
        for _ in 0..<30 {
            Self.arrive(harness, full)
            if harness.state("web") == .background { wakes += 1 }
            harness.advance(.seconds(3))
        }
        #expect(wakes == 10, "1s each")
        #expect(harness.state("web") == .suspended)
        // When there is time again, the input that waits is served.
        harness.advance(.seconds(3700))
        #expect(harness.view("web").trafficWakes > 10)
    }

    @Test(
        "what an app has sent to itself is no peer that waits, however full the buffer (L50)",
        arguments: [InputKind.stream, .datagram, .pipe])
    func ownBuffer(kind: InputKind) {
        let harness = Harness("web")
        harness.suspend("web")
        Self.arrive(
            harness, Input(kind: kind, pid: 101, descriptor: 5, bytes: 150_000, isHalfFull: true, source: .own))
        #expect(harness.state("web") == .suspended)
        harness.advance(.seconds(3700))
        #expect(harness.view("web").trafficWakes == 0)
        // A peer that sends to the same descriptor does wait.
        Self.arrive(harness, Input(kind: kind, pid: 101, descriptor: 5, bytes: 150_000, isHalfFull: true))
        #expect(harness.state("web") == .background)
    }

    @Test(
        "timer descriptors of an app are its own doing, and limited; those of a worker are not (L53)",
        arguments: [true, false])
    func timers(isWorker: Bool) {
        let harness = isWorker ? Self.worker() : Self.server()
        harness.register("web") { $0.backgroundTimePerHour = .seconds(60) }
        if isWorker { Self.rest(harness) } else { harness.suspend("web") }
        let timer = Input(kind: .timer, pid: 101, descriptor: 9, bytes: 0)
        for _ in 0..<20 {
            Self.arrive(harness, timer)
            #expect(!isWorker || harness.state("web") == .background)
            harness.advance(.seconds(15))
        }
        #expect(harness.view("web").trafficWakes == (isWorker ? 20 : 6))
        #expect((harness.view("web").deferredWake == nil) == isWorker)
        #expect(harness.state("web") == .suspended)
        Self.arrive(harness)
        #expect(harness.state("web") == .background)
        harness.advance(.seconds(15))
        #expect(harness.view("web").unrequestedTime <= .seconds(isWorker ? 0 : 70))
    }

    @Test("an app that is woken soon after each suspension stays awake, for longer each time (L50)")
    func tooOften() {
        let harness = Self.worker()
        Self.rest(harness)
        func awake() -> Duration {
            let start = harness.now
            Self.arrive(harness)
            #expect(harness.state("web") == .background)
            while harness.state("web") == .background { harness.advance(.seconds(1)) }
            return harness.now - start
        }
        harness.register("web") { $0.idleTime = .seconds(1) }
        var times = (0..<12).map { _ in awake() }
        #expect(
            times.map { $0.components.seconds } == [1, 1, 2, 4, 8, 16, 32, 64, 128, 256, 300, 300])
        let reported = harness.reports().compactMap { report -> Duration? in
            if case .wokenTooOften(id("web"), let stay) = report { stay } else { nil }
        }
        #expect(reported.first == .seconds(2) && reported.last == .seconds(300))
        harness.advance(.seconds(5))
        times = [awake()]
        #expect(times == [.seconds(1)])
    }

    @Test("an app whose descriptors cannot be watched is left awake, and says so (L50)")
    func blind() {
        let refused = InputWatch(unwatched: [.init(what: "socket", problem: .notPermitted, count: 2)])
        let harness = Self.worker()
        harness.behave("web") { $0.watch = refused }
        harness.launch("web")
        harness.advance(.seconds(3600))
        #expect(harness.state("web") == .background)
        #expect(harness.view("web").awakeReasons == [.notWatchable])
        #expect(harness.view("web").watch == refused)
        #expect(harness.reports().filter { $0 == .inputNotWatched(id("web"), refused) }.count == 1)
        let freezes = harness.effects.count { if case .run(_, .suspension(.freeze)) = $0 { true } else { false } }
        #expect(freezes == 1)
        harness.register("web") { $0.wakesOnTraffic = false }
        harness.advance(.seconds(11))
        #expect(harness.state("web") == .suspended)
    }

    @Test(
        "an app is left awake if the descriptors of a whole process or thread cannot be watched, whatever is beside it (L50)",
        arguments: ["process", "thread"])
    func partlyBlind(_ what: String) {
        let watch = InputWatch(watched: 4, unwatched: [.init(what: what, problem: .notPermitted, count: 1)])
        let harness = Self.worker()
        harness.behave("web") { $0.watch = watch }
        harness.launch("web")
        harness.advance(.seconds(3600))
        #expect(harness.state("web") == .background)
        #expect(harness.view("web").awakeReasons == [.notWatchable])
        #expect(harness.reports().filter { $0 == .inputNotWatched(id("web"), watch) }.count == 1)
    }

    @Test("an app that cannot be watched for lack of descriptors is tried again (L50)")
    func shortOfDescriptors() {
        let harness = Self.worker()
        harness.behave("web") {
            $0.watch = InputWatch(unwatched: [.init(what: "process", problem: .tooMany, count: 1)])
        }
        harness.launch("web")
        harness.advance(.seconds(65))
        #expect(harness.view("web").awakeReasons == [.notWatchable])
        harness.behave("web") { $0.watch = InputWatch(watched: 2) }
        harness.advance(.seconds(30))
        #expect(harness.state("web") == .suspended)
    }

    @Test("what is not watched beside what is, is reported once")
    func partly() {
        let watch = InputWatch(
            watched: 4, unwatched: [.init(what: "io_uring", problem: .notSupported, count: 1)])
        let harness = Self.worker()
        harness.behave("web") { $0.watch = watch }
        Self.rest(harness)
        for _ in 0..<3 {
            Self.arrive(harness)
            harness.advance(.seconds(12))
        }
        #expect(harness.view("web").watch == watch)
        #expect(harness.reports().filter { $0 == .inputNotWatched(id("web"), watch) }.count == 1)
    }

    @Test("the watch ends before SIGKILL, and with a run that ends by another hand", arguments: [true, false])
    func ends(isKilled: Bool) {
        let harness = Self.worker()
        Self.rest(harness)
        let run = harness.run("web")
        let mark = harness.mark
        if isKilled {
            harness.remove("web")
            let ends = harness.effects(since: mark).filter {
                $0 == .run(run, .traffic(.stopWatchingInput)) || $0 == .run(run, .kill)
            }
            #expect(ends == [.run(run, .traffic(.stopWatchingInput)), .run(run, .kill)])
        } else {
            harness.exit("web", .signaled(9, coreDumped: false))
            #expect(harness.effects(since: mark).contains(.run(run, .traffic(.stopWatchingInput))))
        }
        #expect(harness.state("web") == .notRunning)
    }

    @Test("a recovered daemon watches suspended apps again (L50)")
    func recovery() {
        let harness = Self.worker()
        Self.rest(harness)
        let run = harness.run("web")
        harness.handle(.recovered)
        let mark = harness.mark
        harness.handle(.run(run, .process(.reattached(messagesKept: true))))
        #expect(harness.effects(since: mark).contains(.run(run, .traffic(.watchInput(attempt: 1, onlyPeers: false)))))
        Self.arrive(harness)
        #expect(harness.state("web") == .background)
    }

    @Test("a recovered daemon tries once to watch an app that was left awake (L50)", arguments: [true, false])
    func watchableAgain(isWatchable: Bool) {
        let refused = InputWatch(watched: 1, unwatched: [.init(what: "process", problem: .notPermitted, count: 1)])
        let harness = Self.worker()
        harness.behave("web") { $0.watch = refused }
        harness.launch("web")
        harness.advance(.seconds(3600))
        #expect(harness.view("web").awakeReasons == [.notWatchable])
        if isWatchable { harness.behave("web") { $0.watch = InputWatch(watched: 2) } }
        harness.handle(.recovered)
        let mark = harness.mark
        harness.handle(.run(harness.run("web"), .process(.reattached(messagesKept: true))))
        harness.advance(.seconds(3600))
        let freezes = harness.effects(since: mark).count {
            if case .run(_, .suspension(.freeze)) = $0 { true } else { false }
        }
        #expect(freezes == 1)
        #expect(harness.state("web") == (isWatchable ? .suspended : .background))
        #expect(harness.view("web").awakeReasons == (isWatchable ? [] : [.notWatchable]))
        // It is reported once, by the daemon before.
        #expect(harness.reports().filter { $0 == .inputNotWatched(id("web"), refused) }.count == 1)
        guard isWatchable else { return }
        Self.arrive(harness)
        #expect(harness.state("web") == .background)
    }

    @Test("an app that is no worker and was left awake is suspended again by a daemon that can watch it (L50)")
    func appWatchableAgain() {
        let harness = Harness("web") { $0.wakesOnTraffic = true }
        harness.behave("web") {
            $0.watch = InputWatch(unwatched: [.init(what: "process", problem: .notPermitted, count: 1)])
        }
        harness.launch("web")
        harness.background("web")
        harness.advance(.seconds(60))
        #expect(harness.view("web").awakeReasons == [.notWatchable])
        harness.behave("web") { $0.watch = InputWatch(watched: 2) }
        harness.handle(.recovered)
        harness.handle(.run(harness.run("web"), .process(.reattached(messagesKept: true))))
        harness.advance(.seconds(60))
        #expect(harness.state("web") == .suspended)
    }

    @Test("input does not wake an app in a shutdown")
    func shutdown() {
        let harness = Self.worker { $0.terminateSuspended = .notify }
        Self.rest(harness)
        harness.behave("web") { $0.thaws = false }
        harness.handle(.shutdownRequested(immediately: false))
        let mark = harness.mark
        Self.arrive(harness)
        #expect(harness.effects(since: mark).isEmpty)
    }
}
