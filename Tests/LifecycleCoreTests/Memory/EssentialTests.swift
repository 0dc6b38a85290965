import LifecycleCore
import Testing

/// `Essential=`: apps that others depend on, as the programs of a display depend on it.
@Suite("Apps that others depend on")
struct EssentialTests {
    private func harness() -> Harness {
        let harness = Harness("photos") { $0.suspendDelay = .seconds(1) }
        harness.register("display") {
            $0.isEssential = true
            $0.suspendDelay = .seconds(1)
        }
        harness.behave("display") { $0.memory = 800 * mebibyte }
        harness.launch("display", .background)
        return harness
    }

    @Test("an essential app is not suspended, also in a dry run, and says why (L18, L58)")
    func staysAwake() {
        let harness = harness()
        harness.configure { $0.isDryRun = true }
        harness.advance(.seconds(60))
        #expect(harness.state("display") == .background)
        #expect(harness.view("display").awake.map(\.reason) == [.neverSuspended])
        #expect(!harness.reports().contains(.wouldSuspend(id("display"))))
    }

    @Test("an app that becomes essential is woken, and suspended again when it no longer is (L18)")
    func reloaded() {
        let harness = Harness("display") { $0.suspendDelay = .seconds(1) }
        harness.suspend("display")
        harness.register("display") { $0.isEssential = true }
        #expect(harness.state("display") == .background)
        harness.register("display") { $0.isEssential = false }
        harness.advance(.seconds(2))
        #expect(harness.state("display") == .suspended)
    }

    @Test("no shortage of memory kills an essential app, and the kernel ranks it with the active ones (L38)")
    func survives() {
        let harness = harness()
        harness.launch("photos")
        harness.configure { $0.budget = 1 }
        harness.advance(.seconds(30))
        #expect(harness.killed() == ["photos"])
        #expect(harness.state("display") == .background)
        #expect(
            !harness.effects.contains {
                if case .run(let run, .memory(.setOOMClass(let rank))) = $0 {
                    harness.kernel.app(of: run)?.name == "display" && rank != .active
                } else {
                    false
                }
            })
    }

    @Test("a shutdown ends an essential app after all others have ended (L46)")
    func endsLast() {
        let harness = harness()
        harness.launch("photos")
        harness.behave("photos") { $0.terminating = .ignores }
        harness.handle(.shutdownRequested(immediately: false))
        harness.advance(.seconds(1))
        #expect(harness.notices("photos").last == .willTerminate)
        #expect(!harness.notices("display").contains(.willTerminate))
        harness.exit("photos")
        #expect(harness.notices("display").last == .willTerminate)
        harness.advance(.seconds(10))
        #expect(harness.core.isFinished)
    }

    @Test("an essential app that was to end after its launch ends after the others in a shutdown (L46)")
    func pendingEnd() {
        let harness = harness()
        harness.launch("photos")
        harness.behave("photos") { $0.terminating = .ignores }
        harness.terminate("display")
        harness.behave("display") { $0.launching = .spawns }
        harness.launch("display", .background)
        let mark = harness.mark
        harness.terminate("display")
        harness.handle(.shutdownRequested(immediately: false))
        harness.handle(.run(harness.run("display"), .transition(.ready)))
        #expect(!harness.notices("display", since: mark).contains(.willTerminate))
        harness.exit("photos")
        harness.advance(.seconds(10))
        #expect(harness.notices("display", since: mark).last == .willTerminate)
        #expect(harness.core.isFinished)
    }

    @Test("an essential app in the foreground stays there until the others have ended (L46)")
    func staysInFront() {
        let harness = harness()
        harness.launch("photos", .background)
        harness.activate("display")
        harness.behave("photos") { $0.terminating = .ignores }
        harness.handle(.shutdownRequested(immediately: false))
        harness.advance(.seconds(1))
        #expect(harness.state("display") == .active)
        #expect(harness.core.foregroundApps == [id("display")])
        harness.exit("photos")
        harness.advance(.seconds(10))
        #expect(harness.core.foregroundApps.isEmpty && harness.core.isFinished)
    }

    @Test("an app that is no longer essential after its main process has exited keeps its rank for the kernel (L38)")
    func reloadedWhileEnding() {
        let harness = harness()
        harness.behave("display") { $0.terminating = .ignores }
        harness.terminate("display")
        let remaining = RemainingProcesses(count: 1, names: ["sh"])
        harness.handle(
            .run(harness.run("display"), .process(.exited(.exited(0), cpu: .zero, memory: 0, remaining: remaining))))
        #expect(harness.state("display") == .terminating)
        let mark = harness.mark
        harness.register("display") { $0.isEssential = false }
        #expect(
            !harness.effects(since: mark).contains {
                if case .run(_, .memory(.setOOMClass)) = $0 { true } else { false }
            })
    }
}
