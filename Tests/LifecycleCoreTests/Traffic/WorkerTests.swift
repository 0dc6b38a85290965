import Testing

@testable import LifecycleCore

@Suite("Workers and idleness")
struct WorkerTests {
    private static func worker(_ policy: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        TrafficTests.worker(policy)
    }

    @Test("a worker takes no foreground slot, and runs at normal weight (L49, L19)")
    func noSlot() {
        let harness = Self.worker()
        harness.register("photos")
        harness.launch("photos")
        let launch = harness.launch("web")
        #expect(harness.answers[launch] == .done(.background))
        #expect(harness.state("photos") == .active && harness.state("web") == .background)
        #expect(!harness.effects.contains { if case .run(_, .processor(.throttle)) = $0 { true } else { false } })
        #expect(harness.view("web").backgroundTimeRemaining == nil)
        harness.advance(.seconds(10))
        #expect(harness.state("web") == .suspended)
        let activate = harness.activate("web")
        #expect(harness.answers[activate] == .done(.background))
        #expect(harness.state("photos") == .active && harness.state("web") == .background)
        #expect(harness.changes("web").last == "background: requested")
    }

    @Test("LaunchAtStart=foreground launches a worker into the background, and no app leaves the foreground for it")
    func atStart() {
        let harness = Self.worker { $0.launchAtStart = .foreground }
        harness.register("photos") { $0.launchAtStart = .foreground }
        harness.handle(.configuration(.started))
        #expect(harness.state("photos") == .active && harness.state("web") == .background)
    }

    @Test("a worker that has stopped itself is continued when it has input to read (L17, L51)")
    func stopped() {
        let harness = Self.worker()
        harness.behave("web") { $0.entering = .stops }
        harness.launch("web")
        let run = harness.run("web")
        harness.advance(.seconds(5))
        #expect(!harness.effects.contains(.run(run, .continueStopped)))
        harness.behave("web") { $0.work?.unread = 100 }
        harness.advance(.seconds(5))
        #expect(harness.effects.contains(.run(run, .continueStopped)))
    }

    @Test("one look an IdleSec= while a worker is awake, none otherwise (L51)")
    func looks() {
        let harness = Self.worker()
        harness.launch("web")
        let run = harness.run("web")
        func looks() -> [Effect] {
            harness.effects.filter { if case .run(_, .traffic(.measureWork)) = $0 { true } else { false } }
        }
        #expect(looks() == [.run(run, .traffic(.measureWork(.first)))])
        harness.behave("web") { $0.work?.wait = .unwatchedCall }
        harness.advance(.seconds(30))
        #expect(looks().count == 4)
        #expect(harness.view("web").awakeReasons == [.work(.unwatchedCall)])
        #expect(harness.view("web").awake.first?.since.map { harness.now - $0 } == .seconds(30))
        harness.behave("web") { $0.work?.wait = nil }
        harness.advance(.seconds(10))
        #expect(harness.state("web") == .suspended)
        harness.advance(.seconds(3600))
        // The last one is made when it is frozen: it may have done something meanwhile.
        #expect(looks().count == 6)
        #expect(harness.state("web") == .suspended)
    }

    /// What a worker has to do at the look, 10 s after its launch, and why it is awake then.
    static let cases: [(work: @Sendable (inout RunWork) -> Void, reason: WorkReason?)] = [
        ({ _ in }, nil),
        ({ $0.isRunnable = true }, .cpu),
        ({ $0.hasNewProcesses = true }, .processes),
        ({ $0.unread = 1 }, .unreadInput),
        ({ $0.unsent = 1 }, .unsentOutput),
        ({ $0.wait = .unwatchedCall }, .unwatchedCall),
        ({ $0.wait = .unreadable }, .unreadable),
        ({ $0.wait = .request }, .request),
        ({ $0.wait = .short }, .shortWait),
        ({ $0.due = Instant(sinceOrigin: .milliseconds(1_011_999)) }, .timerSoon),
        ({ $0.due = Instant(sinceOrigin: .milliseconds(1_012_000)) }, nil),
        ({ $0.connections = 3 }, nil),
        // Bytes over a connection, and what is not known about it, mean something only beside ticks.
        ({ ($0.traffic, $0.isIncomplete) = (.zero, true) }, nil),
        ({ $0.tick = .seconds(1) }, nil),
        ({ ($0.tick, $0.traffic) = (.seconds(1), .milliseconds(89_999)) }, .traffic),
        ({ ($0.tick, $0.traffic) = (.seconds(1), .seconds(90)) }, nil),
        ({ ($0.tick, $0.isIncomplete) = (.seconds(1), true) }, .traffic),
    ]

    @Test("an answer that has only the processor time is none to a full look, which was asked for meanwhile (L51)")
    func lateBriefAnswer() {
        let harness = Harness("web") { $0.role = .worker }
        harness.behave("web") { $0.work = nil }
        harness.launch("web", .background)
        let run = harness.run("web")
        harness.handle(.run(run, .traffic(.workMeasured(RunWork(cpu: .zero)))))
        harness.advance(.seconds(10))
        #expect(harness.effects.last == .run(run, .traffic(.measureWork(.full))))
        var brief = RunWork(cpu: .zero)
        brief.isBrief = true
        harness.handle(.run(run, .traffic(.workMeasured(brief))))
        #expect(!harness.effects.contains(.run(run, .suspension(.freeze(attempt: 1)))))
        harness.handle(.run(run, .traffic(.workMeasured(RunWork(cpu: .zero)))))
        #expect(harness.effects.contains(.run(run, .suspension(.freeze(attempt: 1)))))
    }

    @Test("what keeps a worker awake (L51)", arguments: 0..<16)
    func reasons(number: Int) {
        let (work, reason) = Self.cases[number]
        let harness = Self.worker()
        harness.launch("web")
        harness.behave("web") { work(&$0.work!) }
        harness.advance(.seconds(10))
        #expect(harness.state("web") == (reason == nil ? .suspended : .background))
        if let reason { #expect(harness.view("web").awakeReasons == [.work(reason)]) }
    }

    @Test(
        "a look says which thread keeps a worker awake, and so does the view, for the reasons that are one of a thread")
    func detail() {
        let harness = Self.worker()
        harness.launch("web")
        harness.behave("web") {
            $0.work?.wait = .unwatchedCall
            $0.work?.detail = "thread 7 (writer) is in write(2)"
        }
        harness.advance(.seconds(10))
        #expect(harness.view("web").awake.map(\.detail) == ["thread 7 (writer) is in write(2)"])
        harness.behave("web") { ($0.work!.wait, $0.work!.unread) = (nil, 1) }
        harness.advance(.seconds(10))
        #expect(harness.view("web").awake.map(\.detail) == [""])
        // What a thread waits for does not say which one has used the processor.
        harness.behave("web") {
            ($0.work!.unread, $0.work!.detail) = (0, "its threads wait for 1s at a time")
            $0.work!.cpu += .seconds(5)
        }
        harness.advance(.seconds(10))
        #expect(harness.view("web").awakeReasons == [.work(.cpu)])
        #expect(harness.view("web").awake.map(\.detail) == [""])
    }

    @Test("KeepAwake= decides whether ticks and connections count, and IdleCPU= how much processor time")
    func keepAwake() {
        let harness = Self.worker {
            $0.keepAwake = [.connections]
            $0.idleProcessorShare = 50
        }
        harness.behave("web") {
            $0.work?.hasNewProcesses = true
            ($0.work!.tick, $0.work!.traffic) = (.seconds(1), .zero)
        }
        harness.launch("web")
        harness.advance(.seconds(10))
        #expect(harness.state("web") == .suspended)
        harness.register("web") { $0.keepAwake = [.timers, .connections] }
        harness.activate("web")
        harness.advance(.seconds(10))
        #expect(harness.view("web").awakeReasons == [.work(.timer)])
        harness.behave("web") { ($0.work!.tick, $0.work!.connections) = (nil, 1) }
        harness.advance(.seconds(10))
        #expect(harness.view("web").awakeReasons == [.work(.connection)])
        harness.register("web") { $0.keepAwake = .cpu }
        harness.behave("web") { $0.work = RunWork(cpu: .milliseconds(500)) }
        harness.advance(.seconds(10))
        #expect(harness.view("web").awakeReasons == [.work(.cpu)])
        harness.behave("web") { $0.work = RunWork(cpu: .milliseconds(999)) }
        harness.advance(.seconds(10))
        #expect(harness.state("web") == .suspended)
    }

    @Test("a worker whose threads run is suspended where KeepAwake= does not contain cpu, and stays so (L51)")
    func withoutProcessor() {
        let harness = Self.worker { $0.keepAwake = .requests }
        harness.behave("web") { $0.work?.isRunnable = true }
        harness.launch("web")
        harness.advance(.seconds(60))
        #expect(harness.state("web") == .suspended)
        #expect(harness.effects.count { if case .run(_, .suspension(.thaw)) = $0 { true } else { false } } == 0)
    }

    @Test("output that no peer takes keeps a worker awake until the next look (L51)")
    func bounds() {
        let harness = Self.worker()
        harness.launch("web")
        harness.behave("web") { $0.work?.unsent = 4096 }
        harness.advance(.seconds(19))
        #expect(harness.state("web") == .background)
        harness.advance(.seconds(1))
        #expect(harness.state("web") == .suspended)
    }

    @Test("a task keeps a worker awake, without a limit of its own")
    func task() {
        let harness = Self.worker()
        harness.launch("web")
        harness.task("web", "upload")
        harness.advance(.seconds(300))
        #expect(harness.state("web") == .background)
        harness.endTask("web", "upload")
        harness.advance(.seconds(10))
        #expect(harness.state("web") == .suspended)
        #expect(harness.killed().isEmpty)
    }

    @Test("an app that is no worker is suspended SuspendDelaySec= after it was sent to the background")
    func noWorker() {
        let harness = Harness("web") { $0.wakesOnTraffic = true }
        harness.behave("web") { $0.work?.wait = .unwatchedCall }
        harness.suspend("web")
        #expect(!harness.effects.contains { if case .run(_, .traffic(.measureWork)) = $0 { true } else { false } })
    }

    @Test("a worker comes back after jetsam (L49)")
    func jetsam() {
        let harness = Self.worker()
        harness.launch("web")
        harness.advance(.seconds(10))
        harness.simulate(.critical)
        #expect(harness.killed() == ["web"])
        harness.simulate(.normal)
        harness.advance(.seconds(120))
        #expect(harness.launches("web").count == 2)
    }

    @Test(
        "a worker that is at work at the freeze is thawed at once, whatever it did at the last look (L51)",
        arguments: RunWork.Wait.allCases)
    func atTheFreeze(wait: RunWork.Wait) {
        let harness = Self.worker()
        harness.behave("web") { $0.freezes = false }
        harness.launch("web")
        harness.advance(.seconds(10))
        harness.behave("web") {
            $0.freezes = true
            $0.work?.wait = wait
        }
        harness.handle(.run(harness.run("web"), .suspension(.frozen(attempt: 1, memory: mebibyte))))
        #expect(harness.state("web") == .background)
        harness.advance(.seconds(10))
        let reasons: [RunWork.Wait: WorkReason] = [
            .unwatchedCall: .unwatchedCall, .unreadable: .unreadable, .short: .shortWait, .request: .request,
        ]
        #expect(harness.view("web").awakeReasons == reasons[wait].map { [.work($0)] })
    }

    @Test("what a worker does for its clients is not counted, whatever it was launched for (L53)")
    func forClients() {
        let harness = Self.worker { $0.relaunch = .always }
        harness.launch("web")
        harness.advance(.seconds(15))
        harness.exit("web", .exited(1))
        harness.advance(.seconds(5))
        #expect(harness.launches("web").last?.isUnrequested == true)
        harness.behave("web") { $0.work?.unread = 1 }
        harness.advance(.seconds(600))
        #expect(harness.view("web").unrequestedTime < .seconds(30))
    }

    @Test("an app whose manifest makes it a worker leaves the foreground, and has no budget any more (L49)")
    func becomesWorker() {
        let harness = Harness("web", "mail")
        harness.launch("web")
        harness.launch("mail", .background)
        harness.task("mail", "upload")
        for name in ["web", "mail"] {
            harness.register(name) {
                $0.role = .worker
                $0.wakesOnTraffic = true
            }
        }
        #expect(harness.state("web") == .background)
        #expect(harness.core.foregroundApps.isEmpty)
        harness.advance(.seconds(300))
        #expect(harness.state("web") == .suspended)
        #expect(harness.view("mail").awakeReasons == [.task(name: "upload")])
    }

    // MARK: File locks (L43)

    @Test("a lock that keeps a worker from being suspended counts from the end of its work")
    func locksOfWork() {
        let harness = Self.withLocks(Self.worker())
        harness.launch("web")
        harness.advance(.seconds(12))
        harness.behave("web") { $0.work?.unread = 1 }
        harness.advance(.seconds(120))
        harness.behave("web") { $0.work?.unread = 0 }
        harness.advance(.seconds(20))
        #expect(harness.view("web").awakeReasons == [.fileLock("/srv/web/db")])
        harness.advance(.seconds(70))
        #expect(harness.state("web") == .suspended && harness.view("web").heldLocks == Self.locks)
    }

    static let locks = FileLocks(count: 1, file: "/srv/web/db")

    /// The app takes no part, and holds a file lock.
    static func withLocks(_ harness: Harness) -> Harness {
        harness.behave("web") {
            $0.entering = .cannotBeNotified
            $0.locks = locks
        }
        return harness
    }

    @Test("an app that takes no part is not suspended with a file lock for 60s; then it is, and says so (L43)")
    func locks() {
        let harness = Self.withLocks(Harness("web"))
        harness.launch("web", .background)
        harness.advance(.seconds(55))
        #expect(harness.state("web") == .background)
        #expect(harness.view("web").awakeReasons.contains(.fileLock("/srv/web/db")))
        harness.advance(.seconds(20))
        #expect(harness.state("web") == .suspended)
        let reported = harness.reports().filter { if case .locksHeld = $0 { true } else { false } }
        #expect(
            reported == [
                .locksHeld(id("web"), Self.locks, isSuspended: false),
                .locksHeld(id("web"), Self.locks, isSuspended: true),
            ])
        #expect(harness.view("web").unrequestedTime >= .seconds(55))
    }

    @Test("a lock that is released meanwhile does not count any more")
    func released() {
        let harness = Self.withLocks(Harness("web"))
        harness.launch("web", .background)
        harness.advance(.seconds(20))
        harness.behave("web") { $0.locks = nil }
        harness.advance(.seconds(5))
        #expect(harness.state("web") == .suspended)
        harness.activate("web")
        harness.behave("web") { $0.locks = Self.locks }
        harness.background("web")
        harness.advance(.seconds(59))
        #expect(harness.state("web") == .background)
    }

    @Test("an app that takes part and keeps a file lock is ended with 0xdead10cc (L43)")
    func takesPart() throws {
        let harness = Harness("web")
        harness.behave("web") { $0.locks = Self.locks }
        harness.launch("web", .background)
        harness.advance(.seconds(1))
        let receipt = try harness.receipt("web")
        #expect(receipt.namespace == .lifecycle && receipt.code == 0xdead_10cc)
        #expect(receipt.explanation == "Killed: was about to be suspended while it held a lock on /srv/web/db.")
    }

    @Test(
        "an app that takes part and holds what Releases= names is ended with 0xdead10cc; another one stays awake for 60s (L43)"
    )
    func resources() throws {
        let device = FileLocks(count: 2, file: "/dev/video0", isResource: true)
        let harness = Harness("web")
        harness.behave("web") { $0.locks = device }
        harness.launch("web", .background)
        harness.advance(.seconds(1))
        let receipt = try harness.receipt("web")
        #expect(receipt.code == 0xdead_10cc)
        #expect(
            receipt.explanation
                == "Killed: was about to be suspended while it held /dev/video0 and 1 more (Releases=).")
        let other = Self.withLocks(Harness("web"))
        other.behave("web") { $0.locks = device }
        other.launch("web", .background)
        other.advance(.seconds(55))
        #expect(other.view("web").awakeReasons.contains(.resource("/dev/video0")))
        other.advance(.seconds(20))
        #expect(other.state("web") == .suspended && other.view("web").heldLocks == device)
    }

    @Test("with ReleasesAction=wait an app that takes part stays awake for what it holds, for 60s (L43)")
    func waits() throws {
        for locks in [Self.locks, FileLocks(count: 1, file: "/dev/video0", isResource: true)] {
            let harness = Harness("web") { $0.waitsForRelease = true }
            harness.behave("web") { $0.locks = locks }
            harness.launch("web", .background)
            harness.advance(.seconds(55))
            #expect(harness.state("web") == .background && harness.killed() == [])
            harness.advance(.seconds(20))
            #expect(harness.state("web") == .suspended && harness.view("web").heldLocks == locks)
        }
    }

    @Test("an app that takes part stays awake with a shared lock that no program waits for, for 60s (L43)")
    func sharedLock() {
        let harness = Harness("web")
        harness.behave("web") {
            $0.locks = Self.locks
            $0.locks?.isShared = true
        }
        harness.launch("web", .background)
        harness.advance(.seconds(55))
        #expect(harness.state("web") == .background)
        harness.advance(.seconds(20))
        #expect(harness.state("web") == .suspended)
    }
}
