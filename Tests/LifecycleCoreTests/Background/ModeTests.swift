import Testing

@testable import LifecycleCore

@Suite("Background modes and inhibitors of logind (L28)")
struct ModeTests {
    private func harness(_ modes: BackgroundModes, _ change: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        let harness = Harness()
        harness.register("player") {
            $0.backgroundModes = modes
            change(&$0)
        }
        harness.launch("player")
        return harness
    }

    private func begin(_ mode: BackgroundModes, _ harness: Harness) {
        harness.handle(.run(harness.run("player"), .mode(.began(mode))))
    }

    private func end(_ mode: BackgroundModes, _ harness: Harness) {
        harness.handle(.run(harness.run("player"), .mode(.ended(mode))))
    }

    @Test("an app is awake for as long as it asserts a mode, without a budget, and is suspended when it ends it (L28)")
    func whileAsserted() {
        let harness = harness(.audio)
        begin(.audio, harness)
        #expect(harness.reports().contains(.modeBegan(id("player"), .audio)))
        harness.background("player")
        harness.advance(.seconds(3600))
        #expect(harness.state("player") == .background)
        #expect(harness.view("player").awake.map(\.reason) == [.mode(.audio, isShown: false)])
        #expect(harness.view("player").backgroundTimeRemaining == nil)
        #expect(harness.view("player").unrequestedTime == .zero)
        // However often it was begun.
        begin(.audio, harness)
        end(.audio, harness)
        #expect(harness.reports().last == .modeEnded(id("player"), .audio))
        #expect(harness.view("player").backgroundTimeRemaining == .seconds(30))
        harness.advance(.seconds(1))
        #expect(harness.state("player") == .suspended)
    }

    @Test("a mode that a suspended app has begun before its freeze wakes it")
    func whileSuspended() {
        let harness = harness(.call)
        harness.background("player")
        harness.advance(.seconds(2))
        #expect(harness.state("player") == .suspended)
        begin(.call, harness)
        harness.advance(.seconds(100))
        #expect(harness.state("player") == .background)
        end(.call, harness)
        harness.advance(.seconds(2))
        #expect(harness.state("player") == .suspended)
    }

    @Test("a task that was open when a mode began has the whole budget once it ends")
    func taskBesideMode() {
        let harness = harness(.location)
        harness.task("player", "upload")
        harness.background("player")
        harness.advance(.seconds(20))
        begin(.location, harness)
        harness.advance(.seconds(100))
        end(.location, harness)
        harness.advance(.seconds(29))
        #expect(harness.killed().isEmpty && harness.state("player") == .background)
        harness.endTask("player", "upload")
        harness.advance(.seconds(1))
        #expect(harness.state("player") == .suspended)
    }

    @Test(
        "a mode that the manifest does not declare, and one that only the daemon begins, are refused",
        arguments: [
            BackgroundModes.recording, .push, .fetch,
        ])
    func refused(mode: BackgroundModes) {
        let harness = harness([.audio, .push, .fetch])
        harness.handle(.run(harness.run("player"), .mode(.began(mode))))
        #expect(harness.effects.contains(.run(harness.run("player"), .warn(.modeRefused(mode)))))
        harness.background("player")
        harness.advance(.seconds(1))
        #expect(harness.state("player") == .suspended)
    }

    @Test("a mode ends when the manifest no longer declares it, and with the run")
    func ends() {
        let harness = harness(.audio)
        begin(.audio, harness)
        harness.background("player")
        harness.register("player") { $0.backgroundModes = [] }
        #expect(harness.reports().contains(.modeEnded(id("player"), .audio)))
        harness.advance(.seconds(1))
        #expect(harness.state("player") == .suspended)
        harness.register("player") { $0.backgroundModes = .audio }
        harness.activate("player")
        begin(.audio, harness)
        harness.terminate("player")
        harness.advance(.seconds(10))
        harness.launch("player")
        harness.background("player")
        harness.advance(.seconds(1))
        #expect(harness.state("player") == .suspended)
    }

    private func show(_ modes: BackgroundModes, _ harness: Harness) {
        harness.handle(.run(harness.run("player"), .mode(.shown(modes))))
    }

    @Test("an app is awake while a source shows a mode that its manifest declares, and is suspended afterwards (L28)")
    func shown() {
        let harness = harness([.audio, .call])
        show([.audio, .recording], harness)
        #expect(harness.reports().last == .modeBegan(id("player"), .audio))
        harness.background("player")
        harness.advance(.seconds(3600))
        #expect(harness.view("player").awake.map(\.reason) == [.mode(.audio, isShown: true)])
        #expect(harness.view("player").modes == .audio)
        #expect(harness.view("player").shownModes == [.audio, .recording])
        #expect(harness.core.appsWithShownModes == [id("player")])
        #expect(harness.view("player").unrequestedTime == .zero)
        // The app cannot end what it does not assert.
        end(.audio, harness)
        harness.advance(.seconds(10))
        #expect(harness.state("player") == .background)
        show(.recording, harness)
        #expect(harness.reports().last == .modeEnded(id("player"), .audio))
        harness.advance(.seconds(1))
        #expect(harness.state("player") == .suspended)
        // Of an app that was suspended just before its stream began.
        show(.call, harness)
        harness.advance(.seconds(10))
        #expect(harness.state("player") == .background)
        show([], harness)
        harness.advance(.seconds(1))
        #expect(harness.state("player") == .suspended)
        #expect(harness.core.appsWithShownModes.isEmpty)
    }

    @Test("a mode that an app asserts and a source shows is reported once, and ends when both have ended (L28)")
    func shownAndAsserted() {
        let harness = harness([.audio])
        harness.background("player")
        let mark = harness.mark
        begin(.audio, harness)
        show(.audio, harness)
        begin(.audio, harness)
        #expect(
            harness.view("player").awake.map(\.reason) == [.mode(.audio, isShown: false), .mode(.audio, isShown: true)])
        end(.audio, harness)
        harness.advance(.seconds(100))
        #expect(harness.state("player") == .background)
        show([], harness)
        let reports = harness.reports(since: mark)
        #expect(reports.filter { $0 == .modeBegan(id("player"), .audio) }.count == 1)
        #expect(reports.filter { $0 == .modeEnded(id("player"), .audio) }.count == 1)
        harness.advance(.seconds(1))
        #expect(harness.state("player") == .suspended)
    }

    @Test("a mode that a source shows counts for as long as the manifest declares it (L28)")
    func shownAndDeclared() {
        let harness = harness([])
        show(.audio, harness)
        harness.background("player")
        harness.advance(.seconds(1))
        #expect(harness.state("player") == .suspended)
        harness.register("player") { $0.backgroundModes = .audio }
        harness.advance(.seconds(10))
        #expect(harness.state("player") == .background)
        harness.register("player") { $0.backgroundModes = [] }
        harness.advance(.seconds(1))
        #expect(harness.state("player") == .suspended)
        // The daemon begins these two, whatever a source shows.
        harness.register("player") { $0.backgroundModes = [.push, .fetch] }
        show([.push, .fetch], harness)
        harness.advance(.seconds(1))
        #expect(harness.state("player") == .suspended)
    }

    @Test("a mode that a source shows while the app is being frozen keeps it awake, whatever it holds (L28, L43)")
    func shownAtTheFreeze() {
        let harness = harness(.accessory)
        harness.behave("player") { $0.freezes = false }
        harness.background("player")
        harness.advance(.seconds(1))
        let run = harness.run("player")
        #expect(harness.effects.last == .run(run, .suspension(.freeze(attempt: 1))))
        show(.accessory, harness)
        // They were found by the same search.
        harness.handle(.run(run, .suspension(.locksFound(attempt: 1, FileLocks(count: 1, file: "/db")))))
        harness.handle(.run(run, .suspension(.frozen(attempt: 1, memory: 1))))
        harness.advance(.seconds(100))
        #expect(harness.state("player") == .background)
        #expect(harness.view("player").awake.map(\.reason) == [.mode(.accessory, isShown: true)])
    }

    @Test(
        "a mode that an app asserts and does not use keeps it awake no longer, until it is used or asserted anew (L28)")
    func unused() throws {
        func unused(_ modes: BackgroundModes, _ harness: Harness) {
            harness.handle(.run(harness.run("player"), .mode(.unused(modes))))
        }
        let harness = harness([.location, .audio])
        begin(.location, harness)
        // It does not assert this one.
        unused(.audio, harness)
        harness.background("player")
        harness.advance(.seconds(100))
        unused(.location, harness)
        #expect(harness.effects.contains(.run(harness.run("player"), .warn(.modeUnused(.location)))))
        #expect(harness.view("player").unusedModes == .location)
        #expect(harness.view("player").modes == [])
        #expect(harness.reports().contains(.modeEnded(id("player"), .location)))
        let saved = harness.core.saved
        #expect(try SavedCore(reading: saved.bytes[...]) == saved)
        unused([], harness)
        #expect(harness.view("player").unusedModes == [])
        harness.advance(.seconds(100))
        #expect(harness.state("player") == .background)
        unused(.location, harness)
        harness.advance(.seconds(2))
        #expect(harness.state("player") == .suspended)
        begin(.location, harness)
        harness.advance(.seconds(100))
        #expect(harness.state("player") == .background)
        // The app ends what does not count.
        unused(.location, harness)
        end(.location, harness)
        unused([], harness)
        #expect(harness.view("player").modes == [])
        // Nor does it count once it is no longer declared.
        begin(.location, harness)
        unused(.location, harness)
        harness.register("player") { $0.backgroundModes = .audio }
        #expect(harness.view("player").unusedModes == [])
        harness.advance(.seconds(2))
        #expect(harness.state("player") == .suspended)
    }

    @Test("modes that sources show are saved, in any order (L28)")
    func shownAndSaved() throws {
        let harness = harness([.audio, .call])
        show([.audio, .recording], harness)
        begin(.call, harness)
        harness.background("player")
        let saved = harness.core.saved
        let read = try SavedCore(reading: saved.bytes[...])
        #expect(read == saved)
        let core = LifecycleCore(recovering: read)
        #expect(
            core.view(of: id("player"), at: .origin)?.awake.map(\.reason)
                == [.mode(.call, isShown: false), .mode(.audio, isShown: true)])
        #expect(core.appsWithShownModes == [id("player")])
    }

    @Test("an inhibitor keeps any app awake without a declaration, until it is released (L28)")
    func inhibitor() {
        let harness = harness([])
        harness.background("player")
        let run = harness.run("player")
        harness.handle(.run(run, .mode(.inhibitorChanged("sleep, by backup: copies files"))))
        harness.advance(.seconds(100))
        #expect(harness.view("player").awake.map(\.reason) == [.inhibitor("sleep, by backup: copies files")])
        harness.handle(.run(run, .mode(.inhibitorChanged("idle, by backup: still"))))
        #expect(harness.view("player").inhibitor == "idle, by backup: still")
        harness.handle(.run(run, .mode(.inhibitorChanged(nil))))
        harness.advance(.seconds(1))
        #expect(harness.state("player") == .suspended)
    }

    @Test(
        "an app has its normal weight while it plays audio or is in a call (L19, L28)",
        arguments: [
            BackgroundModes.audio, .call, .location,
        ])
    func weight(mode: BackgroundModes) {
        let harness = harness(mode)
        harness.task("player", "save")
        harness.background("player")
        let mark = harness.mark
        begin(mode, harness)
        #expect(
            harness.effects(since: mark).contains(.run(harness.run("player"), .processor(.unthrottle)))
                == (mode != .location))
        end(mode, harness)
        #expect(
            harness.effects(since: mark).contains(.run(harness.run("player"), .processor(.throttle)))
                == (mode != .location))
    }

    @Test("the processor time of an app in the mode processing is not limited (L44)")
    func processing() {
        let harness = harness(.processing)
        harness.background("player")
        begin(.processing, harness)
        harness.advance(.seconds(600))
        #expect(!harness.effects.contains(.run(harness.run("player"), .processor(.measure))))
    }
}
