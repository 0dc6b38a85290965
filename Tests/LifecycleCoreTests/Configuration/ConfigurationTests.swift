import LifecycleCore
import Testing

@Suite("Configuration")
struct ConfigurationTests {
    @Test(
        "an app whose manifest returns while it ends is launched as requested and holds no foreground slot without a process"
    )
    func comesBackWhileEnding() {
        let harness = Harness("photos", "mail")
        harness.behave("photos") {
            $0.dies = false; $0.terminating = .ignores
        }
        harness.launch("photos")
        harness.advance(.seconds(20))
        harness.terminate("photos")
        harness.advance(.seconds(5))
        #expect(harness.killed() == ["photos"])
        let request = harness.activate("photos")
        harness.unregister("photos")
        harness.register("photos")
        harness.exit("photos", .signaled(9, coreDumped: false))
        #expect(harness.answers[request] == .done(.active))
        harness.launch("mail")
        #expect(harness.state("mail") == .active)
        #expect(harness.state("photos") == .background)
    }

    @Test(
        "an app whose manifest was removed keeps running, is removed at its end, and its waiting requests are answered")
    func removedAtItsEnd() {
        let harness = Harness("photos") { $0.relaunch = .always }
        harness.behave("photos") {
            $0.dies = false; $0.terminating = .ignores
        }
        harness.launch("photos")
        harness.unregister("photos")
        #expect(harness.state("photos") == .active)
        let terminate = harness.terminate("photos")
        let activate = harness.activate("photos")
        harness.exit("photos")
        #expect(harness.answers[activate] == .refused(.unknownApp))
        #expect(harness.answers[terminate] == .ended(harness.receipts[0]))
        #expect(harness.core.appIDs == [])
        #expect(harness.core.nextDeadline == nil)
        let launch = harness.launch("photos")
        #expect(harness.answers[launch] == .refused(.unknownApp))
    }

    @Test("LaunchAtStart= launches apps at the start, and none during a shutdown")
    func launchAtStart() {
        let harness = Harness()
        harness.register("mail") { $0.launchAtStart = .background }
        harness.register("photos") { $0.launchAtStart = .foreground }
        harness.register("music")
        harness.handle(.configuration(.started))
        #expect(harness.state("mail") == .background)
        #expect(harness.state("photos") == .active)
        #expect(harness.state("music") == .notRunning)
        #expect(
            harness.launches("mail") == [
                {
                    var l = Launch(state: .background, reason: .user); l.isFirst = true; return l
                }()
            ])

        let closing = Harness()
        closing.register("mail") { $0.launchAtStart = .background }
        closing.handle(.shutdownRequested(immediately: false))
        closing.handle(.configuration(.started))
        #expect(closing.launches("mail") == [])
    }

    @Test("a foreground limit below 1 means 1 (L12)", arguments: [0, -1])
    func limitOfNothing(limit: Int) {
        let harness = Harness("photos", "mail")
        harness.configure { $0.foregroundLimit = limit }
        harness.launch("photos")
        #expect(harness.state("photos") == .active)
        harness.background("photos")
        harness.activate("photos")
        harness.launch("mail")
        #expect(harness.state("mail") == .active)
        #expect(harness.state("photos") == .background)
    }

    @Test("apps are listed by name, and the next app reuses the index of a removed one")
    func listed() {
        let harness = Harness("photos", "mail")
        #expect(harness.core.appIDs == [id("mail"), id("photos")])
        harness.launch("mail")
        harness.unregister("photos")
        harness.register("music")
        #expect(harness.core.appIDs == [id("mail"), id("music")])
        #expect(harness.state("photos") == nil)
        #expect(harness.core.view(of: id("photos"), at: harness.now) == nil)
        #expect(harness.state("mail") == .active)
        harness.launch("music")
        #expect(harness.state("music") == .active)
        harness.advance(.seconds(1))
        #expect(harness.state("mail") == .suspended)
    }

    @Test("unregistering an unknown manifest has no effect")
    func unregisteredTwice() {
        let harness = Harness("photos")
        harness.unregister("photos")
        harness.unregister("photos")
        harness.unregister("mail")
        harness.register("photos", launches: 4)
        #expect(harness.view("photos").launches == 4)
    }

    @Test("a changed manifest of a running app applies to later decisions")
    func reload() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.register("photos") {
            $0.suspendDelay = .seconds(20); $0.backgroundTime = .seconds(100)
        }
        harness.background("photos")
        harness.advance(.seconds(19))
        #expect(harness.state("photos") == .background)
        // The new delay applies to the suspension in progress.
        harness.register("photos") { $0.suspendDelay = .seconds(25) }
        harness.advance(.seconds(5))
        #expect(harness.state("photos") == .background)
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        // The budget of a stay is fixed at its begin.
        harness.register("photos") { $0.backgroundTime = .seconds(5) }
        #expect(harness.view("photos").backgroundTimeRemaining == .seconds(75))
    }

    @Test(
        "an app ID has a length limit and cannot be a path",
        arguments: [
            ("a", true), ("org.example.Photos_2-x", true), ("", false), (".hidden", false), ("a/b", false),
            ("a b", false),
            ("ä", false), ("a\u{0}", false), (String(repeating: "a", count: 128), true),
            (String(repeating: "a", count: 129), false),
            ("..", false), ("a..b", true), ("-rf", true),
        ])
    func names(name: String, isOne: Bool) {
        #expect((AppID(name) != nil) == isOne)
        if isOne { #expect(AppID(name)?.description == name) }
    }

    @Test("background modes have the names that manifests use")
    func modes() {
        #expect(
            BackgroundModes.named.map(\.name) == [
                "audio", "recording", "call", "location", "accessory", "fetch", "push", "processing",
            ])
        #expect(Set(BackgroundModes.named.map(\.mode.rawValue)).count == 8)
    }

    @Test("MAINPID= changes the main process")
    func mainProcess() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.handle(.run(harness.run("photos"), .process(.mainProcessChanged(pid: 4711))))
        #expect(harness.view("photos").pid == 4711)
        harness.crash("photos")
        #expect(harness.receipts.first?.pid == 4711)
    }
}
