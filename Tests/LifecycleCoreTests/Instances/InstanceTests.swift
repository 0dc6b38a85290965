import Testing

@testable import LifecycleCore

/// Instances of templates without a file of their own.
@Suite("Transient instances")
struct InstanceTests {
    private static let app = id("web@1")

    private static func instance(_ policy: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        Harness("web@1") {
            $0.isTransient = true
            policy(&$0)
        }
    }

    private static func isKnown(_ harness: Harness) -> Bool { harness.core.appIDs.contains(app) }

    private static func removals(_ harness: Harness) -> Int { harness.effects.count { $0 == .removeInstance(app) } }

    @Test("an instance is removed at its end, after everything else about it")
    func end() {
        let harness = Self.instance()
        #expect(Self.isKnown(harness) && harness.view("web@1").isTransient)
        harness.launch("web@1")
        let request = harness.terminate("web@1")
        #expect(!Self.isKnown(harness))
        #expect(harness.isAnswered(request))
        #expect(harness.effects.last == .removeInstance(Self.app))
        #expect(harness.core.nextDeadline == nil)
        let late = harness.activate("web@1")
        #expect(harness.answers[late] == .refused(.unknownApp))
    }

    @Test("a new instance stays until the request that it is for, and goes if that is refused")
    func fresh() {
        let harness = Self.instance()
        harness.register("web@1")
        harness.register("mail")
        harness.launch("mail")
        #expect(Self.isKnown(harness))
        harness.request("web@1", .launch(.background, reason: .push, url: nil), by: .app(nil))
        #expect(harness.state("web@1") == .background)
        let refused = Self.instance()
        let request = refused.request("web@1", .activate, by: .app(nil))
        #expect(refused.answers[request] == .refused(.requesterNotInForeground))
        #expect(!Self.isKnown(refused) && Self.removals(refused) == 1)
    }

    @Test("an instance that is to be launched again stays (L11)")
    func relaunch() {
        let harness = Self.instance { $0.relaunch = .onFailure }
        harness.launch("web@1")
        harness.crash("web@1")
        #expect(Self.isKnown(harness) && harness.view("web@1").relaunchesIn == .seconds(10))
        harness.advance(.seconds(10))
        #expect(harness.state("web@1") == .background || harness.state("web@1") == .active)
        harness.exit("web@1")
        #expect(!Self.isKnown(harness))
    }

    @Test("an instance whose launch waits, or that is launched after its end, stays (L52)")
    func waits() {
        let harness = Harness("slow")
        harness.configure { $0.launchesAtOnce = 1 }
        harness.behave("slow") { $0.launching = .spawns }
        harness.launch("slow", .background)
        harness.register("web@1") { $0.isTransient = true }
        harness.launch("web@1", .background)
        #expect(harness.view("web@1").launchWaiting != nil)
        harness.handle(.run(harness.run("slow"), .process(.executed)))
        #expect(harness.state("web@1") == .background)
        harness.behave("web@1") { $0.terminating = .ignores }
        harness.terminate("web@1")
        harness.launch("web@1", .background)
        harness.exit("web@1")
        #expect(harness.state("web@1") == .background)
        // The one that waits is cancelled.
        harness.behave("slow") { $0.launching = .spawns }
        harness.exit("slow")
        harness.launch("slow", .background)
        harness.behave("web@1") { $0.terminating = .exits(0) }
        harness.terminate("web@1")
        harness.register("web@1")
        harness.launch("web@1", .background)
        harness.terminate("web@1")
        #expect(!Self.isKnown(harness) && Self.removals(harness) == 2)
    }

    @Test("an instance with sockets stays after its end, and is launched by a connection (L29)")
    func sockets() {
        let harness = Self.instance { $0.holdsSockets = true }
        harness.launch("web@1")
        harness.terminate("web@1")
        #expect(harness.state("web@1") == .notRunning)
        harness.connect("web@1")
        #expect(harness.state("web@1") == .background)
        harness.exit("web@1")
        #expect(Self.isKnown(harness))
        harness.register("web@1") { $0.holdsSockets = false }
        #expect(!Self.isKnown(harness))
        #expect(
            Array(harness.effects.suffix(2)) == [.sockets(Self.app, .stopWatching), .removeInstance(Self.app)])
    }

    @Test("a user removes an instance with its sockets, in every phase (L42)")
    func remove() {
        for stage in Stage.allCases where stage != .ending {
            let harness = Self.instance { $0.holdsSockets = true }
            harness.move("web@1", to: stage)
            let run = harness.core.run(of: Self.app)
            let request = harness.remove("web@1")
            if let run, Self.isKnown(harness) {
                harness.handle(.run(run, .process(.exited(.signaled(9, coreDumped: false), cpu: .zero, memory: 0))))
                harness.handle(.run(run, .process(.emptied)))
            }
            #expect(!Self.isKnown(harness) && Self.removals(harness) == 1, "\(stage)")
            #expect(harness.effects.contains(.dropRestorationState(Self.app, .everything)))
            #expect(harness.isAnswered(request))
            #expect(harness.effects.last == .removeInstance(Self.app))
        }
    }

    @Test("an instance that is removed and wanted again before its end stays (L42)")
    func removeAndLaunch() {
        let harness = Self.instance { $0.holdsSockets = true }
        harness.move("web@1", to: .ending)
        harness.launch("web@1", .background)
        let run = harness.run("web@1")
        harness.finish("web@1", .ending, run)
        #expect(harness.state("web@1") == .background)
        harness.exit("web@1")
        #expect(Self.isKnown(harness))
        harness.remove("web@1")
        #expect(!Self.isKnown(harness))
    }

    @Test("an instance that gets a file of its own stays, and one whose template is removed goes without a notice")
    func reload() {
        let harness = Self.instance()
        harness.launch("web@1")
        harness.register("web@1") { $0.isTransient = false }
        harness.terminate("web@1")
        #expect(Self.isKnown(harness))
        harness.register("web@1") { $0.isTransient = true }
        #expect(!Self.isKnown(harness) && Self.removals(harness) == 1)

        let other = Self.instance()
        other.launch("web@1")
        other.unregister("web@1")
        other.terminate("web@1")
        #expect(!Self.isKnown(other) && Self.removals(other) == 0)
    }

    @Test("the next daemon removes an instance whose request was lost, and keeps one that runs")
    func recovered() throws {
        let harness = Self.instance()
        harness.register("web@2") { $0.isTransient = true }
        harness.launch("web@2")
        let core = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(core.difference(from: harness.core) == nil)
        harness.handle(.recovered)
        #expect(harness.core.appIDs == [id("web@2")])
        #expect(Self.removals(harness) == 1)
    }

    @Test("an instance that was the home app gives that to the next one (L49)")
    func home() {
        let harness = Self.instance { $0.role = .home }
        harness.register("z-home") { $0.role = .home }
        harness.request("web@1", .background)
        #expect(!Self.isKnown(harness))
        harness.register("other")
        harness.launch("z-home")
        harness.launch("other")
        harness.terminate("other")
        harness.advance(.seconds(1))
        #expect(harness.state("z-home") == .active)
        harness.handle(.shutdownRequested(immediately: false))
        #expect(harness.core.isFinished)
    }

    // MARK: Variables of a launch

    private static func launch(_ state: LaunchState, _ environment: [String]) -> Request {
        .launch(state, reason: .user, url: nil, environment: environment)
    }

    @Test("the variables of a launch reach this launch alone, and a running app refuses them (L6)")
    func variables() {
        let harness = Harness("web")
        harness.request("web", Self.launch(.background, ["A=1"]))
        #expect(harness.launches("web").map(\.environment) == [["A=1"]])
        let request = harness.request("web", Self.launch(.foreground, ["A=2"]))
        #expect(harness.answers[request] == .refused(.running))
        harness.exit("web")
        harness.launch("web")
        #expect(harness.launches("web").map(\.environment) == [["A=1"], []])
    }

    @Test("of launches that wait, the variables of the latest one that has some count (L6, L52)")
    func queuedVariables() {
        let harness = Harness("slow", "web")
        harness.configure { $0.launchesAtOnce = 1 }
        harness.behave("slow") { $0.launching = .spawns }
        harness.launch("slow", .background)
        harness.request("web", Self.launch(.background, ["A=1"]))
        harness.request("web", Self.launch(.background, ["A=2"]))
        harness.request("web", .launch(.background, reason: .fetch, url: nil))
        harness.handle(.run(harness.run("slow"), .process(.executed)))
        #expect(harness.launches("web").map(\.environment) == [["A=2"]])
        harness.behave("web") { $0.terminating = .ignores }
        harness.terminate("web")
        harness.request("web", Self.launch(.background, ["A=3"]))
        harness.request("web", .launch(.background, reason: .fetch, url: nil))
        harness.activate("web")
        harness.exit("web")
        #expect(harness.launches("web").map(\.environment) == [["A=2"], ["A=3"]])
    }
}
