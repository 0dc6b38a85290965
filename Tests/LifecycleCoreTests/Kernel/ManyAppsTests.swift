import LifecycleCore
import Testing

/// Work is counted in apps and effects, not in time.
@Suite("Many apps")
struct ManyAppsTests {
    private static let count = 2000

    /// A core with apps in the background, which do not take part in the lifecycle.
    private static func runningApps() -> LifecycleCore {
        var core = LifecycleCore()
        for number in 0..<count {
            let app = id("app\(number)")
            _ = core.handle(.configuration(.registered(app, AppPolicy(), launches: 0)), at: .origin)
            let launch = Request.launch(.background, reason: .user, url: nil)
            for effect in core.handle(.requested(RequestID(UInt64(number)), app, launch), at: .origin) {
                guard case .spawn(_, let run, _) = effect else { continue }
                _ = core.handle(.run(run, .process(.spawned(pid: Int32(number + 2)))), at: .origin)
                _ = core.handle(.run(run, .process(.executed)), at: .origin)
            }
        }
        return core
    }

    private func ended(_ effects: [Effect]) -> [RunID] {
        effects.compactMap { effect in
            switch effect {
            case .run(let run, .kill), .run(let run, .notify(.willTerminate)): run
            default: nil
            }
        }
    }

    @Test("a shutdown ends at most 16 apps in one event, and each app once", arguments: [false, true])
    func shutdown(immediately: Bool) throws {
        var core = Self.runningApps()
        let runs = core.runIDs
        #expect(runs.count == Self.count)
        let start = Instant.origin + .milliseconds(1)
        var now = start
        var all = ended(core.handle(.shutdownRequested(immediately: immediately), at: now))
        #expect(all.count == LifecycleCore.endedAtOnce)
        while all.count < Self.count, let next = core.nextDeadline, next < start + .seconds(1) {
            #expect(next > now)
            now = next
            let more = ended(core.handle(.deadlineReached, at: now))
            #expect(more.count <= LifecycleCore.endedAtOnce)
            #expect(core.lastEventSize <= LifecycleCore.endedAtOnce)
            all += more
        }
        #expect(all == runs)
        #expect(!core.isFinished)
        for run in runs {
            _ = core.handle(.run(run, .process(.exited(.exited(0), cpu: .zero, memory: 0))), at: now)
            _ = core.handle(.run(run, .process(.emptied)), at: now)
        }
        #expect(core.isFinished)
        #expect(core.nextDeadline == nil)
    }

    @Test("a shutdown of which a snapshot was saved between two steps is continued with the next app")
    func savedShutdown() throws {
        var core = Self.runningApps()
        var now = Instant.origin + .milliseconds(1)
        _ = core.handle(.shutdownRequested(immediately: false), at: now)
        var other = LifecycleCore(recovering: try SavedCore(reading: core.saved.bytes))
        #expect(other.difference(from: core) == nil)
        for _ in 0..<3 {
            now = try #require(core.nextDeadline)
            #expect(other.nextDeadline == now)
            #expect(core.handle(.deadlineReached, at: now) == other.handle(.deadlineReached, at: now))
        }
    }

    @Test("an app that is to be relaunched is not, once a shutdown has begun that has not come to it")
    func relaunch() throws {
        var core = Self.runningApps()
        let app = id("zebra")
        var policy = AppPolicy()
        policy.relaunch = .always
        policy.launchAtStart = .background
        _ = core.handle(.configuration(.registered(app, policy, launches: 0)), at: .origin)
        _ = core.handle(.configuration(.started), at: .origin)
        let run = try #require(core.run(of: app))
        _ = core.handle(.run(run, .process(.spawned(pid: 9999))), at: .origin)
        _ = core.handle(.run(run, .process(.executed)), at: .origin)
        // It ends early, so its relaunch waits.
        _ = core.handle(.run(run, .process(.exited(.exited(1), cpu: .zero, memory: 0))), at: .origin)
        _ = core.handle(.run(run, .process(.emptied)), at: .origin)
        let relaunch = try #require(core.nextDeadline)
        _ = core.handle(.shutdownRequested(immediately: false), at: relaunch)
        let effects = core.handle(.deadlineReached, at: relaunch)
        #expect(!effects.contains { if case .spawn = $0 { true } else { false } })
        #expect(core.state(of: app) == .notRunning)
    }

    @Test("an event that concerns no app takes no more time with many apps")
    func configuration() {
        var core = Self.runningApps()
        var policy = ManagerPolicy()
        policy.foregroundLimit = 3
        _ = core.handle(.configuration(.configured(policy)), at: .origin)
        #expect(core.lastEventSize == 0)
        // All ranks change.
        policy.jetsamOrder = .lru
        _ = core.handle(.configuration(.configured(policy)), at: .origin)
        #expect(core.lastEventSize == Self.count)
        _ = core.handle(.configuration(.registered(id("app7"), AppPolicy(), launches: 0)), at: .origin)
        #expect(core.lastEventSize == 1)
    }

    @Test("a core is saved in steps of a few apps, with the same bytes as at once")
    func saving() throws {
        let core = Self.runningApps()
        var saving = CoreSaving(core.saved)
        var steps = 1
        while saving.advance() { steps += 1 }
        let bytes = saving.bytes
        #expect(steps >= Self.count / CoreSaving.appsPerStep + bytes.count / CoreSaving.bytesPerStep)
        #expect(LifecycleCore(recovering: try SavedCore(reading: bytes)).difference(from: core) == nil)
        var writer = ByteWriter()
        core.saved.save(to: &writer)
        #expect(bytes.dropLast(4).suffix(writer.bytes.count).elementsEqual(writer.bytes))
    }

    @Test("a core without apps is saved in steps too")
    func empty() throws {
        let core = LifecycleCore(firstRun: 5, firstReceipt: 6)
        var saving = CoreSaving(core.saved)
        while saving.advance() {}
        #expect(LifecycleCore(recovering: try SavedCore(reading: saving.bytes)) == core)
    }
}
