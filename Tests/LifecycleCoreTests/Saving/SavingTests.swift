import LifecycleCore
import TestKit
import Testing

import enum LifecycleCore.ExitStatus

@Suite("Saved state")
struct SavingTests {
    /// A harness with an app in most of the phases and a value in most fields.
    private static func harnessWithEverything() -> Harness {
        let harness = Harness("photos", "mail", "maps", "music", "notes", "shop", "chat") {
            $0.backgroundModes = .push
            $0.relaunch = .onFailure
            $0.watchdog = .seconds(20)
        }
        harness.configure {
            $0.foregroundLimit = 2
            $0.budget = 1 << 30
        }
        harness.launch("photos")
        harness.launch("mail")
        harness.task("mail", "upload «ä»")
        harness.launch("maps", .background)
        harness.advance(.seconds(5))
        harness.send("maps", "battery", "low")
        harness.push("photos")
        harness.request("photos", .interruptWhileConnected)
        harness.isSlow = true
        harness.launch("music", .background, .url)
        harness.request("notes", .launch(.foreground, reason: .url, url: "notes:there"))
        harness.terminate("mail")
        harness.push("mail", "after the end")
        harness.configure { $0.launchesAtOnce = 1 }
        harness.launch("shop")
        harness.request("chat", .launch(.background, reason: .url, url: "chat:later"))
        harness.register("store@1") {
            $0.isTransient = true
            $0.holdsSockets = true
        }
        harness.connect("store@1")
        // One hook runs, and two wait for it.
        harness.register("vault") { $0.hooks = HookKinds(rawValue: 15) }
        harness.isSlow = false
        harness.launch("vault")
        harness.background("vault")
        harness.behave("vault") { $0.hook = nil }
        harness.advance(.seconds(1))
        harness.isSlow = true
        harness.activate("vault")
        harness.simulate(.critical)
        return harness
    }

    private static func reading(_ harness: Harness) throws -> SavedCore {
        try SavedCore(reading: harness.core.saved.bytes)
    }

    private static func isRefused(_ bytes: ArraySlice<UInt8>) -> Bool { (try? SavedCore(reading: bytes)) == nil }

    @Test("all that was measured of an app's work is saved")
    func work() throws {
        var work = RunWork(cpu: .seconds(1))
        (work.isRunnable, work.hasNewProcesses, work.wait, work.isIncomplete) = (true, true, .unreadable, true)
        (work.isOwn, work.isBrief, work.tick, work.traffic) = (true, true, .seconds(2), .seconds(3))
        (work.unread, work.unsent, work.connections, work.hasSignalTimers) = (3, 4, 6, true)
        (work.detail, work.due) = ("thread 7 (writer) is in write(2)", Instant(sinceOrigin: .seconds(70)))
        let blank = Mirror(reflecting: RunWork.blank).children
        for (field, unset) in zip(Mirror(reflecting: work).children, blank) {
            #expect("\(field.value)" != "\(unset.value)", "\(field.label ?? "") is not tested")
        }
        let event = Event.run(RunID(3), .traffic(.workMeasured(work)))
        let bytes = LoggedEvent(event, at: Instant(sinceOrigin: .seconds(7))).savedBytes
        #expect(try LoggedEvent(reading: bytes).event == event)
    }

    @Test("a recovered core equals the saved one and behaves like it")
    func recovers() throws {
        let harness = Self.harnessWithEverything()
        var old = harness.core
        var new = LifecycleCore(recovering: try Self.reading(harness))
        #expect(new.difference(from: old) == nil)
        #expect(new.nextDeadline == old.nextDeadline)
        var now = harness.now
        for _ in 0..<50 {
            guard let next = old.nextDeadline else { break }
            now = max(now, next)
            #expect(old.handle(.deadlineReached, at: now) == new.handle(.deadlineReached, at: now))
            for run in old.runIDs {
                let event = Event.run(
                    run, .deadline(.inspected(Inspection(traced: false, cpu: .zero, memory: 1 << 20))))
                #expect(old.handle(event, at: now) == new.handle(event, at: now))
            }
        }
        #expect(new.difference(from: old) == nil)
        #expect(old != harness.core)
    }

    @Test("the saved form is deterministic and small")
    func bytes() throws {
        let harness = Self.harnessWithEverything()
        let bytes = harness.core.saved.bytes
        #expect(try Self.reading(harness).bytes == bytes)
        #expect(try Self.reading(harness) == harness.core.saved)
        #expect(bytes.count < 200 * harness.core.appIDs.count)
    }

    @Test("a truncated or changed file is refused, with the position of the error")
    func damage() {
        let bytes = Self.harnessWithEverything().core.saved.bytes
        for length in 0..<bytes.count { #expect(Self.isRefused(bytes[..<length])) }
        for index in bytes.indices {
            var damaged = bytes
            damaged[index] ^= 0x10
            #expect(Self.isRefused(damaged[...]))
        }
    }

    /// The checksum is corrected, so that the reader sees each changed byte.
    @Test("reading any file ends with an error or with a core that handles events")
    func hostile() {
        let harness = Self.harnessWithEverything()
        let bytes = Array(harness.core.saved.bytes.dropLast(4))
        var accepted = 0
        var refused: Set<String> = []
        for index in bytes.indices {
            let few = [0, 0xff, bytes[index] &+ 1]
            for value in isTestingAll ? few + [1, 2, 7, 10, 0x7f, 0x80, bytes[index] ^ 0x40] : few {
                var hostile = bytes
                hostile[index] = value
                let sum = Checksum.crc32(hostile)
                hostile += (0..<4).map { UInt8(truncatingIfNeeded: sum >> (8 * $0)) }
                do {
                    var core = LifecycleCore(recovering: try SavedCore(reading: hostile))
                    // The state may be one that no core has.
                    core.continueAfterBrokenInvariants()
                    accepted += 1
                    handleEverything(&core, harness.now)
                } catch {
                    refused.insert(error.sentence)
                }
            }
        }
        #expect(accepted > 100)
        #expect(refused.count > 20)
    }

    /// Delivers every event to all runs.
    private func handleEverything(_ core: inout LifecycleCore, _ start: Instant) {
        _ = core.handle(.recovered, at: start)
        let runs = core.runIDs
        for run in runs {
            for event in Self.events(run) { _ = core.handle(event, at: start) }
        }
        for app in core.appIDs {
            _ = core.handle(.requested(RequestID(1000), app, .activate), at: start)
            _ = core.handle(.requested(RequestID(1001), app, .interrupt), at: start)
        }
        let later = start + .seconds(100)
        _ = core.handle(.deadlineReached, at: later)
        for run in core.runIDs { _ = core.handle(.run(run, .process(.reattached(messagesKept: false))), at: later) }
        _ = core.handle(.shutdownRequested(immediately: true), at: later)
        for run in runs {
            _ = core.handle(.run(run, .process(.exited(.unknown, cpu: .zero, memory: 0))), at: later)
            _ = core.handle(.run(run, .process(.emptied)), at: later)
        }
    }

    private static let hiddenActivity = RunActivity(
        cpu: .zero, waited: .zero, listens: false, hiddenSockets: HiddenSockets(count: 2, pid: 77))

    private static let moment = TimerMoment(realtime: 1_800_000_000_000_000, monotonic: 3, boottime: 4)

    private static func events(_ run: RunID) -> [Event] {
        [
            .run(run, .process(.reattached(messagesKept: false, noticesDelayed: true))),
            .run(run, .process(.spawned(pid: 7))),
            .run(run, .process(.executed)),
            .run(run, .transition(.notified(.memoryWarning(.critical), delivered: true, cpu: .milliseconds(3)))),
            .run(
                run,
                .deadline(.activityMeasured(RunActivity(cpu: .seconds(1), waited: .milliseconds(2), listens: true)))),
            .run(run, .deadline(.activityMeasured(hiddenActivity))),
            .run(run, .suspension(.frozen(attempt: 2, memory: 5 << 30, uncertainty: 1 << 30))),
            .run(run, .memory(.sizeMeasured(bytes: 3 << 30, estimate: 4 << 30))),
            .run(run, .suspension(.frozen(attempt: 2, memory: 5 << 30))), .run(run, .suspension(.thawed(attempt: 1))),
            .run(run, .memory(.outOfMemory(.machine))),
            .run(
                run,
                .deadline(.inspected(Inspection(traced: true, cpu: .nanoseconds(5), memory: 3, waited: .seconds(4))))),
            .run(run, .transition(.ready)),
            .run(run, .transition(.backgroundEntered)), .run(run, .process(.stopped)), .run(run, .process(.continued)),
            .run(run, .task(.began(name: "a task", owner: -1))),
            .run(run, .task(.progressed(name: "a task", TaskProgress(done: 1, total: 1 << 53, title: "Aufräumen")!))),
            .run(run, .task(.progressed(name: "a task", TaskProgress(done: 9, total: 0)!))),
            .run(run, .task(.ended(name: ""))), .run(run, .deadline(.extended(by: .microseconds(Int64.max)))),
            .run(run, .wake(.completed(.noData))), .run(run, .wake(.completed(.failed, id: 17))),
            .run(run, .watchdog(.heartbeat)), .run(run, .watchdog(.triggered)),
            .run(run, .watchdog(.timeChanged(to: .microseconds(Int64.max)))),
            .run(run, .mode(.began(.recording))), .run(run, .mode(.ended(.call))),
            .run(run, .mode(.inhibitorChanged("sleep, by backup: copies files"))),
            .run(run, .mode(.inhibitorChanged(nil))),
            .run(run, .mode(.shown([.audio, .call]))), .run(run, .mode(.shown([]))),
            .run(run, .mode(.unused(.location))),
            .run(run, .transition(.stopping)), .run(run, .transition(.terminationAnswered)),
            .run(run, .traffic(.idleHinted(true))),
            .run(run, .connection(.snapshotTaken)),
            .run(run, .transition(.notified(.takeSnapshot, delivered: true, cpu: .zero))),
            .run(run, .scene(.snapshotTaken(.main))), .run(run, .connection(.withdrawn)),
            .run(run, .transition(.notified(.withdraw, delivered: true, cpu: .zero))),
            .run(run, .transition(.notified(.sceneClosed(.main), delivered: true, cpu: .zero))),
            .run(run, .transition(.notified(.didDiscardScenes([.main]), delivered: true, cpu: .zero))),
            .run(run, .transition(.notified(.takeSceneSnapshot(.main), delivered: true, cpu: .zero))),
            .run(run, .connection(.attached([.didEnterBackground, .didResume]))), .run(run, .connection(.attached([]))),
            .run(run, .transition(.notified(.willResignActive(.interruption), delivered: true, cpu: .zero))),
            .run(run, .transition(.notified(.didBecomeActive(.interruptionEnded), delivered: true, cpu: .zero))),
            .run(run, .transition(.notified(.openURL("a:ä"), delivered: true, cpu: .zero))),
            .run(run, .transition(.notified(.willSuspend, delivered: true, cpu: .zero))),
            .run(
                run,
                .transition(
                    .notified(.didResume(after: .seconds(3), changed: ["battery", "x-a"]), delivered: true, cpu: .zero))
            ),
            .run(run, .scene(.began(.main, .external))), .run(run, .scene(.ended(SceneID("a.b_c-1")!))),
            .run(run, .transition(.notified(.scene(.main, .didDisconnect), delivered: true, cpu: .zero))),
            .run(run, .process(.mainProcessChanged(pid: 9))), .run(run, .suspension(.freezeLost(attempt: 1))),
            .run(run, .wake(.notificationDelayed(wake: 17))), .run(run, .hookEnded(number: 3, .refusal)),
            .run(run, .hookEnded(number: 1 << 40, .notStarted("no"))),
            .run(run, .processor(.measured(used: .seconds(61), waited: .milliseconds(7)))),
            .run(run, .processor(.gpuUsed(.milliseconds(12)))),
            .run(run, .process(.exited(.signaled(11, coreDumped: true), cpu: .zero, memory: 1))),
            .run(run, .process(.spawnFailed(SpawnProblem(sentence: "no", exitStatus: 203)))),
            .run(run, .process(.emptied)),
        ]
    }

    private static var fullReading: MemoryReading {
        var reading = MemoryReading(total: 1 << 40, available: 8, sizes: [])
        (reading.swapTotal, reading.swapFree, reading.refaulted, reading.stored) = (7, 6, 1 << 50, 5)
        reading.limit = MemoryReading.Limit(group: "/apps.slice", total: 1 << 30, available: 5, kills: 2)
        reading.stalls = MemoryReading.Stalls(some: .milliseconds(40), full: .milliseconds(9))
        return reading
    }

    @Test("every event is saved and read back unchanged, and refused when it is truncated")
    func events() throws {
        let photos = id("photos")
        var policy = AppPolicy()
        policy.launchAtStart = .background
        policy.memoryHigh = .max
        (policy.holdsSockets, policy.isTransient) = (true, true)
        (policy.connectionWait, policy.unloadAfter) = (nil, .seconds(600))
        policy.hooks = [HookKinds(.beforeSuspend), HookKinds(.afterResume)]
        policy.notifications = NotificationKinds(rawValue: 0xfff)
        let others: [Event] = [
            .configuration(.registered(photos, policy, launches: 3)), .configuration(.unregistered(photos)),
            .configuration(.configured(ManagerPolicy())), .configuration(.started),
            .recovered, .absence(.sleepRequested), .absence(.awoke), .absence(.locked), .absence(.unlocked),
            .requestAbandoned(RequestID(4)),
            .shutdownRequested(immediately: true), .deadlineReached,
            .memory(.measured(MemoryReading(total: 9, available: 8, sizes: [.init(run: RunID(3), bytes: 77)]))),
            .memory(.measured(Self.fullReading)),
            .memory(.pressureStalled(.warning)), .memory(.pressureSimulated(RequestID(.max), .critical)),
            .requested(RequestID(1), photos, .push(payload: "…")), .requested(RequestID(2), photos, .remove),
            .requested(RequestID(4), photos, .activate, by: .app(nil)),
            .requested(RequestID(5), photos, .activate, by: .app(photos)),
            .requested(RequestID(3), photos, .launch(.foreground, reason: .url, url: "a:b")),
            .requested(RequestID(5), photos, .interruptWhileConnected),
            .requested(RequestID(7), photos, .open(url: "a:b")),
            .requested(RequestID(8), photos, .scene(.main, .background)),
            .requested(RequestID(9), photos, .cancelTask(name: "a task")),
            .requested(
                RequestID(6), photos, .launch(.background, reason: .user, url: nil, environment: ["A=1", "B=«ä»"])),
            .socketsReady(photos, Input(kind: .listener, pid: 0, descriptor: 3, bytes: 0, peer: "[::]:80")),
            .run(RunID(1), .process(.exited(.lost, cpu: .zero, memory: 0))),
            .timer(photos, .began(Self.moment, last: nil)), .timer(photos, .began(Self.moment, last: 5)),
            .timer(photos, .rebased(to: 7)), .timer(photos, .elapsed(.timer, Self.moment)),
            .timer(photos, .elapsed(.fetch, Self.moment)),
            .observed(Notification(kind: "time", payload: "midnight")!),
            .observed(Notification(kind: "settings", payload: "absent")!, of: photos),
        ]
        for event in others + Self.events(RunID(1 << 40)) {
            let bytes = LoggedEvent(event, at: Instant(sinceOrigin: .seconds(7))).savedBytes
            #expect(try LoggedEvent(reading: bytes).event == event)
            for length in bytes.indices { #expect((try? LoggedEvent(reading: bytes[..<length])) == nil) }
        }
    }
}
