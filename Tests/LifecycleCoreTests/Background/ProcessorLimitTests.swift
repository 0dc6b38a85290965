import Testing

@testable import LifecycleCore

@Suite("Processor time in the background")
struct ProcessorLimitTests {
    /// An app in the background with a task that keeps it awake, whose limits are those of processor time alone.
    private static func app(_ policy: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        let harness = Harness("photos") {
            $0.backgroundTime = nil
            $0.backgroundTimePerHour = nil
            $0.backgroundModes = [.push]
            policy(&$0)
        }
        harness.launch("photos")
        harness.task("photos", "upload")
        harness.background("photos")
        #expect(harness.state("photos") == .background)
        return harness
    }

    private static func worker(_ policy: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        let harness = TrafficTests.worker(policy)
        harness.behave("web") { $0.work?.isRunnable = true }
        harness.launch("web")
        return harness
    }

    /// Lets an app use a share of one processor, in percent, and wait for another share.
    private static func burn(
        _ harness: Harness, _ app: String, _ percent: Int, waiting: Int = 0, for seconds: Int
    ) {
        for _ in 0..<seconds {
            harness.behave(app) {
                $0.processor?.used += .milliseconds(10 * percent)
                $0.processor?.waited += .milliseconds(10 * waiting)
            }
            harness.advance(.seconds(1))
        }
    }

    private static func looks(_ harness: Harness, since mark: Int = 0) -> Int {
        harness.effects(since: mark).count { if case .run(_, .processor(.measure)) = $0 { true } else { false } }
    }

    private static func warnings(_ harness: Harness) -> Int {
        harness.reports().count { if case .processorUseHigh = $0 { true } else { false } }
    }

    @Test(
        "an app above 80% of one processor for 60s in the background is killed with 0xc51bad01, after a warning (L44)")
    func killed() throws {
        let harness = Self.app()
        Self.burn(harness, "photos", 100, for: 30)
        #expect(Self.warnings(harness) == 0)
        Self.burn(harness, "photos", 100, for: 10)
        let use = BackgroundUse(used: .seconds(30), within: .seconds(30), limit: 800)
        #expect(harness.reports().contains(.processorUseHigh(id("photos"), use)))
        Self.burn(harness, "photos", 100, for: 29)
        #expect(harness.state("photos") == .background && harness.killed() == [])
        Self.burn(harness, "photos", 100, for: 1)
        #expect(harness.killed() == ["photos"] && Self.warnings(harness) == 1)
        #expect(harness.changes("photos").suffix(2) == ["terminating: cpuLimit", "notRunning: ended"])
        let receipt = try harness.receipt("photos")
        #expect((receipt.namespace, receipt.code, receipt.state) == (.resource, 0xc51b_ad01, .background))
        #expect(receipt.failure == .failed)
        #expect(
            receipt.explanation
                == "Killed: used 1min of CPU time within 1min in the background; the limit is 80% of one processor "
                + "(BackgroundCPULimit=).")
    }

    @Test("an app at its limit is not killed, and is warned of once; it is again after it has used little (L44)")
    func atTheLimit() {
        let harness = Self.app()
        Self.burn(harness, "photos", 80, for: 600)
        #expect(harness.state("photos") == .background && Self.warnings(harness) == 1)
        Self.burn(harness, "photos", 10, for: 120)
        Self.burn(harness, "photos", 60, for: 120)
        #expect(harness.state("photos") == .background && Self.warnings(harness) == 2)
    }

    @Test("what many threads use in a short time counts as an average over 60s (L44)")
    func threads() {
        let harness = Self.app()
        Self.burn(harness, "photos", 0, for: 12)
        Self.burn(harness, "photos", 1600, for: 2)
        Self.burn(harness, "photos", 0, for: 200)
        #expect(harness.state("photos") == .background && Self.warnings(harness) == 1)
        Self.burn(harness, "photos", 1600, for: 4)
        #expect(harness.state("photos") == .background)
        // 64 s in the last minute: until the next look, 6 s after the program began to compute.
        Self.burn(harness, "photos", 0, for: 2)
        #expect(harness.killed() == ["photos"])
    }

    @Test("processor time in the foreground does not count, and each stay in the background begins anew (L44)")
    func foreground() {
        let harness = Self.app()
        for _ in 0..<3 {
            Self.burn(harness, "photos", 100, for: 60)
            harness.activate("photos")
            let mark = harness.mark
            Self.burn(harness, "photos", 100, for: 300)
            #expect(Self.looks(harness, since: mark) == 0)
            harness.background("photos")
        }
        #expect(harness.killed() == [])
    }

    @Test("short stays count together, and while the app is suspended time passes in which it uses nothing (L44)")
    func suspensions() {
        for (pause, isKilled) in [(1, true), (50, false)] {
            let harness = Self.app()
            harness.endTask("photos", "upload")
            harness.advance(.seconds(1))
            #expect(harness.state("photos") == .suspended)
            for _ in 0..<15 where harness.killed() == [] {
                harness.push("photos")
                Self.burn(harness, "photos", 100, for: 9)
                guard harness.state("photos") == .background else { break }
                harness.handle(.run(harness.run("photos"), .wake(.completed(.newData))))
                harness.advance(.seconds(pause))
            }
            #expect(harness.killed() == (isKilled ? ["photos"] : []), "with pauses of \(pause) s")
        }
    }

    @Test("an app is measured six times a minute while it is awake in the background, and never otherwise (L44, law 9)")
    func looksAreRare() {
        let harness = Self.app()
        harness.advance(.seconds(60))
        #expect(Self.looks(harness) == 6)
        harness.endTask("photos", "upload")
        harness.advance(.seconds(3600))
        #expect(harness.state("photos") == .suspended)
        #expect(Self.looks(harness) == 6)
        let ignored = Self.app { $0.backgroundCPU = .ignore }
        Self.burn(ignored, "photos", 400, for: 300)
        #expect(Self.looks(ignored) == 0 && ignored.state("photos") == .background)
    }

    @Test(
        "a worker above its limit gets less of the processor until it needs half of the limit, and is not killed (L44)")
    func throttled() {
        let harness = Self.worker()
        let run = harness.run("web")
        Self.burn(harness, "web", 100, for: 69)
        #expect(
            !harness.effects.contains(.run(run, .processor(.throttle))) && harness.view("web").processorExcess == nil)
        Self.burn(harness, "web", 100, for: 1)
        let use = BackgroundUse(used: .seconds(60), within: .seconds(60), limit: 800)
        #expect(
            harness.effects.contains(.run(run, .processor(.limit(800))))
                && harness.effects.contains(.run(run, .processor(.throttle))))
        #expect(harness.reports().contains(.processorThrottled(id("web"), use)))
        let since = harness.now
        let mark = harness.mark
        // It uses less only because it gets less.
        Self.burn(harness, "web", 20, waiting: 70, for: 300)
        #expect(harness.view("web").processorExcess == use && harness.view("web").throttledSince == since)
        Self.burn(harness, "web", 20, waiting: 10, for: 70)
        #expect(harness.view("web").processorExcess == nil && harness.view("web").throttledSince == nil)
        let ended = harness.effects(since: mark).filter { effect in
            switch effect {
            case .run(_, .processor(.limit)), .run(_, .processor(.throttle)), .run(_, .processor(.unthrottle)),
                .report(.processorThrottleEnded):
                true
            default: false
            }
        }
        #expect(
            ended == [
                .run(run, .processor(.limit(nil))), .report(.processorThrottleEnded(id("web"))),
                .run(run, .processor(.unthrottle)),
            ])
        #expect(harness.state("web") == .background && harness.killed() == [])
    }

    @Test("BackgroundCPU= decides: a worker is killed, an app is throttled (L44)")
    func actions() throws {
        let worker = Self.worker { $0.backgroundCPU = .kill }
        Self.burn(worker, "web", 90, for: 70)
        #expect(try worker.receipt("web").code == 0xc51b_ad01)
        let app = Self.app { $0.backgroundCPU = .throttle }
        Self.burn(app, "photos", 90, for: 70)
        #expect(app.killed() == [] && app.view("photos").processorExcess != nil)
    }

    @Test("an app that comes to the foreground, or is to end, is not throttled before it is notified (L44, L46)")
    func leavesBackground() {
        for notice in [Notice.willEnterForeground, .willTerminate] {
            let harness = Self.app { $0.backgroundCPU = .throttle }
            let run = harness.run("photos")
            Self.burn(harness, "photos", 100, for: 70)
            let mark = harness.mark
            if notice == .willTerminate { harness.terminate("photos") } else { harness.activate("photos") }
            let order = harness.effects(since: mark).filter {
                $0 == .run(run, .processor(.limit(nil))) || $0 == .run(run, .processor(.unthrottle))
                    || $0 == .run(run, .notify(notice))
            }
            #expect(
                order == [
                    .run(run, .processor(.limit(nil))), .run(run, .processor(.unthrottle)), .run(run, .notify(notice)),
                ])
        }
    }

    @Test("a throttled app stays throttled for a wake by a user, and no longer when its manifest says otherwise (L44)")
    func wakesAndManifests() {
        let harness = Self.app { $0.backgroundCPU = .throttle }
        let run = harness.run("photos")
        Self.burn(harness, "photos", 100, for: 70)
        var mark = harness.mark
        harness.push("photos")
        #expect(!harness.effects(since: mark).contains(.run(run, .processor(.unthrottle))))
        mark = harness.mark
        harness.register("photos") { $0.backgroundCPU = .ignore }
        #expect(harness.effects(since: mark).contains(.run(run, .processor(.limit(nil)))))
        mark = harness.mark
        Self.burn(harness, "photos", 100, for: 20)
        #expect(Self.looks(harness, since: mark) == 0 && harness.view("photos").processorExcess == nil)
    }

    @Test("a total that decreases, because an orphan has ended, is not counted twice (L44)")
    func decreases() {
        let harness = Self.app()
        Self.burn(harness, "photos", 50, for: 300)
        let before = harness.kernel.behaviours[id("photos")]?.processor
        harness.behave("photos") { $0.processor = (.zero, .zero) }
        harness.advance(.seconds(10))
        harness.behave("photos") { $0.processor = before }
        harness.advance(.seconds(80))
        #expect(harness.state("photos") == .background && harness.killed() == [])
    }

    @Test("what was measured before the daemon died counts, and so does the time without a daemon (L44)")
    func recovery() throws {
        let harness = Self.app()
        Self.burn(harness, "photos", 100, for: 45)
        let run = harness.run("photos")
        var core = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(core == harness.core)
        let later = harness.now + .seconds(40)
        _ = core.handle(.recovered, at: later)
        _ = core.handle(.run(run, .process(.reattached(messagesKept: true))), at: later)
        #expect(core.handle(.deadlineReached, at: later).contains(.run(run, .processor(.measure))))
        let effects = core.handle(.run(run, .processor(.measured(used: .seconds(85), waited: .zero))), at: later)
        #expect(effects.contains(.run(run, .kill)))
    }
}
