import LifecycleCore
import Testing

@Suite("Launch admission")
struct LaunchAdmissionTests {
    private static let apps = ["chat", "mail", "maps", "music", "notes"]

    /// Apps that send READY=1 when a test says so, and compute until then.
    private func makeHarness(atOnce limit: Int? = 2) -> Harness {
        let harness = Harness()
        for app in Self.apps {
            harness.behave(app) { $0.launching = .executes }
            harness.register(app) {
                $0.readiness = .notified
                $0.launchAtStart = .background
                $0.backgroundModes = .push
            }
        }
        harness.configure { $0.launchesAtOnce = limit }
        return harness
    }

    private func launching(_ harness: Harness) -> [String] {
        Self.apps.filter { harness.state($0) == .launching }
    }

    private func waiting(_ harness: Harness) -> [String] {
        Self.apps.filter { harness.view($0).launchWaiting != nil }
    }

    /// Lets time pass in which the apps use processors.
    private func compute(_ harness: Harness, _ apps: [String], for time: Duration) {
        let step = Duration.milliseconds(5)
        var left = time
        while left > .zero {
            for app in apps { harness.behave(app) { $0.cpu += step } }
            harness.advance(step)
            left -= step
        }
    }

    private func becomeReady(_ harness: Harness, _ app: String) {
        harness.handle(.run(harness.run(app), .transition(.ready)))
        #expect(harness.state(app) == .background)
    }

    @Test(
        "launches into the background wait while LaunchesAtOnce= others compute, and their deadline starts later (L52)")
    func waits() throws {
        let harness = makeHarness()
        harness.handle(.configuration(.started))
        #expect(launching(harness) == ["chat", "mail"])
        #expect(waiting(harness) == ["maps", "music", "notes"])
        #expect(harness.state("maps") == .notRunning)
        compute(harness, ["chat", "mail"], for: .seconds(4))
        #expect(waiting(harness) == ["maps", "music", "notes"])
        #expect(harness.view("maps").launchWaiting == .seconds(4))
        becomeReady(harness, "mail")
        #expect(launching(harness) == ["chat", "maps"])
        #expect(harness.view("maps").deadline?.remaining == .seconds(5))
        becomeReady(harness, "chat")
        becomeReady(harness, "maps")
        #expect(launching(harness) == ["music", "notes"])
        #expect(waiting(harness).isEmpty)
        #expect(harness.receipts.isEmpty)
    }

    @Test("the launch of a command whose caller waits is admitted at once, and occupies a slot (L52, L54)")
    func attached() {
        let harness = makeHarness()
        harness.behave("run@cat") { $0.launching = .executes }
        harness.register("run@cat") { ($0.role, $0.isAttached, $0.readiness) = (.worker, true, .notified) }
        harness.handle(.configuration(.started))
        harness.request("run@cat", .launch(.background, reason: .user, url: nil))
        #expect(harness.state("run@cat") == .launching)
        becomeReady(harness, "mail")
        #expect(waiting(harness) == ["maps", "music", "notes"])
    }

    @Test("without LaunchesAtOnce= no launch waits (L52)")
    func unlimited() {
        let harness = makeHarness(atOnce: nil)
        harness.handle(.configuration(.started))
        #expect(launching(harness) == Self.apps)
    }

    @Test("a higher limit admits launches that wait (L52)")
    func limitChanges() {
        let harness = makeHarness(atOnce: 1)
        harness.handle(.configuration(.started))
        harness.configure { $0.launchesAtOnce = 3 }
        #expect(launching(harness) == ["chat", "mail", "maps"])
        harness.configure { $0.launchesAtOnce = nil }
        #expect(launching(harness) == Self.apps)
    }

    @Test("a launch into the foreground does not wait, and others wait for it (L52)")
    func foreground() {
        let harness = makeHarness()
        harness.launch("chat", .background)
        harness.launch("mail", .background)
        harness.activate("maps")
        #expect(launching(harness) == ["chat", "mail", "maps"])
        harness.launch("music", .background)
        becomeReady(harness, "chat")
        #expect(waiting(harness) == ["music"])
        becomeReady(harness, "mail")
        #expect(launching(harness) == ["maps", "music"])
    }

    @Test("requests come before LaunchAtStart= and relaunches, for 5min at most (L52)")
    func requestsComeFirst() {
        let harness = makeHarness(atOnce: 1)
        harness.register("notes") { $0.launchAtStart = nil }
        harness.handle(.configuration(.started))
        compute(harness, ["chat"], for: .seconds(1))
        let request = harness.launch("notes", .background)
        #expect(waiting(harness) == ["mail", "maps", "music", "notes"])
        becomeReady(harness, "chat")
        #expect(launching(harness) == ["notes"])
        becomeReady(harness, "notes")
        #expect(harness.answers[request] == .done(.background))
        #expect(launching(harness) == ["mail"])
    }

    @Test("a launch that waits for something else than a processor does not hold up others (L52)")
    func idleLaunch() {
        let harness = makeHarness()
        harness.handle(.configuration(.started))
        compute(harness, ["mail"], for: .milliseconds(25))
        #expect(launching(harness) == ["chat", "mail", "maps"])
        // `chat` is idle and `maps` too: `mail` alone keeps its slot.
        compute(harness, ["mail"], for: .milliseconds(40))
        #expect(launching(harness) == ["chat", "mail", "maps", "music"])
    }

    @Test("a launch that waits for a processor keeps its slot (L48, L52)")
    func starvedLaunch() {
        let harness = makeHarness()
        harness.handle(.configuration(.started))
        for _ in 0..<400 {
            for app in ["chat", "mail"] { harness.behave(app) { $0.waited += .milliseconds(5) } }
            harness.advance(.milliseconds(5))
        }
        #expect(launching(harness) == ["chat", "mail"])
    }

    @Test("a launch that got no processor since it was measured keeps its slot (L48, L52)")
    func neverRan() {
        let harness = makeHarness(atOnce: 1)
        harness.handle(.configuration(.started))
        harness.kernel.measuresActivity = false
        var activity = RunActivity(cpu: .zero, waited: .zero)
        for isRunnable in [true, true, false] {
            #expect(launching(harness) == ["chat"])
            harness.advance(.milliseconds(100))
            activity.isRunnable = isRunnable
            harness.handle(.run(harness.run("chat"), .deadline(.activityMeasured(activity))))
        }
        #expect(launching(harness) == ["chat", "mail"])
    }

    @Test("time before the program is executed is not counted as idle (L52)")
    func executedLate() {
        let harness = makeHarness()
        for app in ["chat", "mail"] { harness.behave(app) { $0.launching = .spawns } }
        harness.handle(.configuration(.started))
        harness.advance(.seconds(1))
        #expect(launching(harness) == ["chat", "mail"])
        for app in ["chat", "mail"] { harness.handle(.run(harness.run(app), .process(.executed))) }
        compute(harness, ["chat", "mail"], for: .seconds(1))
        #expect(launching(harness) == ["chat", "mail"])
    }

    @Test("a measurement that comes late does not make a launch idle (L52)")
    func measuredLate() {
        let harness = makeHarness(atOnce: 1)
        harness.handle(.configuration(.started))
        let run = harness.run("chat")
        harness.kernel.measuresActivity = false
        func answer(_ used: Duration) {
            harness.handle(.run(run, .deadline(.activityMeasured(RunActivity(cpu: used, waited: .zero)))))
        }
        // Asked for after 25ms, in which the program computed.
        harness.advance(.milliseconds(100))
        answer(.milliseconds(25))
        #expect(launching(harness) == ["chat"])
        // The next one was asked for 25ms later. The program has computed in half of that time.
        harness.advance(.milliseconds(100))
        answer(.milliseconds(38))
        #expect(launching(harness) == ["chat"])
        harness.advance(.milliseconds(100))
        answer(.milliseconds(38))
        #expect(launching(harness) == ["chat", "mail"])
    }

    @Test("a launch that computes for ever leaves its slot after 30s (L52)")
    func longestSlot() {
        let harness = makeHarness(atOnce: 1)
        for app in Self.apps { harness.register(app) { $0.launchDeadline = nil } }
        harness.handle(.configuration(.started))
        compute(harness, ["chat"], for: .seconds(29))
        #expect(launching(harness) == ["chat"])
        compute(harness, ["chat"], for: .seconds(10))
        #expect(launching(harness).prefix(2) == ["chat", "mail"])
    }

    @Test("no timer runs for launches if none waits")
    func noTimer() {
        let harness = makeHarness()
        harness.launch("chat", .background)
        let mark = harness.mark
        compute(harness, ["chat"], for: .seconds(4))
        #expect(
            !harness.effects(since: mark).contains {
                if case .run(_, .deadline(.measureActivity)) = $0 { true } else { false }
            })
    }

    @Test("the end of a launch admits the next one, however it ends (L52)")
    func failures() {
        let harness = makeHarness(atOnce: 1)
        harness.behave("chat") { $0.launching = .fails(SpawnProblem(sentence: "no", exitStatus: 203)) }
        harness.handle(.configuration(.started))
        #expect(launching(harness) == ["mail"])
        harness.crash("mail")
        #expect(launching(harness) == ["maps"])
        compute(harness, ["maps"], for: .seconds(5))
        #expect(harness.receipts.last?.code == Receipt.Code.missedDeadline)
        #expect(launching(harness) == ["music"])
        harness.remove("music")
        #expect(launching(harness) == ["notes"])
    }

    // MARK: Requests for an app whose launch waits

    /// A harness in which the launch of `music` waits for a client.
    private func makeWaiting() -> (Harness, RequestID) {
        let harness = makeHarness(atOnce: 1)
        harness.launch("chat", .background)
        let request = harness.launch("music", .background)
        #expect(waiting(harness) == ["music"])
        return (harness, request)
    }

    @Test("a launch that waits is cancelled by a request to end the app (L42, L46, L52)", arguments: [false, true])
    func cancelled(removes: Bool) {
        let (harness, launch) = makeWaiting()
        harness.push("music")
        let end = removes ? harness.remove("music") : harness.terminate("music")
        #expect(harness.answers[end] == .done(.notRunning))
        #expect(harness.answers[launch] == .superseded(by: .notRunning))
        becomeReady(harness, "chat")
        #expect(harness.state("music") == .notRunning)
        #expect(harness.unanswered.isEmpty)
        // What was pushed is not for the next launch.
        harness.launch("music", .background)
        becomeReady(harness, "music")
        #expect(harness.delivered("music").isEmpty)
    }

    @Test(
        "a launch that waits is cancelled if its manifest is removed, and in a shutdown (L52)",
        arguments: [false, true])
    func unregistered(shutsDown: Bool) {
        let (harness, launch) = makeWaiting()
        if shutsDown {
            harness.handle(.shutdownRequested(immediately: false))
            #expect(harness.answers[launch] == .superseded(by: .terminating))
        } else {
            harness.unregister("music")
            #expect(harness.answers[launch] == .refused(.unknownApp))
            becomeReady(harness, "chat")
        }
        #expect(harness.launches("music").isEmpty)
    }

    @Test("a second request joins a launch that waits (L52)")
    func joined() {
        let (harness, first) = makeWaiting()
        let second = harness.launch("music", .background)
        let background = harness.background("music")
        let push = harness.push("music", "hello")
        becomeReady(harness, "chat")
        #expect(harness.launches("music").map(\.reason) == [.user])
        becomeReady(harness, "music")
        for request in [first, second, background, push] { #expect(harness.answers[request] == .done(.background)) }
        #expect(harness.delivered("music").map(\.payload) == ["hello"])
        #expect(harness.view("music").awakeReasons == [.wake(.push)])
    }

    @Test("an activation does not wait for the launch that waits (L52)")
    func activated() {
        let (harness, launch) = makeWaiting()
        let push = harness.push("music", "hello")
        let activation = harness.activate("music")
        #expect(launching(harness) == ["chat", "music"])
        #expect(harness.answers[launch] == .superseded(by: .active))
        harness.handle(.run(harness.run("music"), .transition(.ready)))
        #expect(harness.answers[activation] == .done(.active))
        #expect(harness.answers[push] == .done(.active))
        #expect(harness.delivered("music").map(\.payload) == ["hello"])
    }

    @Test("a launch that waits keeps its URL, and another URL waits behind it (L8, L52)")
    func urls() {
        let harness = makeHarness(atOnce: 1)
        harness.launch("chat", .background)
        harness.request("music", .launch(.background, reason: .url, url: "music:one"))
        harness.request("music", .launch(.background, reason: .url, url: "music:two"))
        harness.activate("music")
        #expect(harness.launches("music").map(\.url) == ["music:one"])
    }

    @Test("an app that ends with a requested launch waits like others (L52)")
    func afterEnd() {
        let harness = makeHarness(atOnce: 1)
        harness.launch("chat", .background)
        becomeReady(harness, "chat")
        harness.behave("chat") { $0.terminating = .ignores }
        harness.terminate("chat")
        harness.launch("mail", .background)
        let again = harness.launch("chat", .background)
        harness.exit("chat")
        #expect(waiting(harness) == ["chat"])
        becomeReady(harness, "mail")
        becomeReady(harness, "chat")
        #expect(harness.answers[again] == .done(.background))
    }

    @Test("launches that wait survive the daemon (L52)")
    func recovered() throws {
        let (harness, _) = makeWaiting()
        var core = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(core.difference(from: harness.core) == nil)
        _ = core.handle(.recovered, at: harness.now)
        _ = core.handle(.run(harness.run("chat"), .process(.reattached(messagesKept: true))), at: harness.now)
        let effects = core.handle(.run(harness.run("chat"), .transition(.ready)), at: harness.now)
        #expect(effects.contains { if case .spawn(id("music"), _, _) = $0 { true } else { false } })
    }

    @Test("of more apps with LaunchAtStart=foreground than slots the last ones are in the foreground (L12, L52)")
    func shownAtStart() {
        let harness = makeHarness(atOnce: 2)
        for app in ["mail", "maps"] { harness.register(app) { $0.launchAtStart = .foreground } }
        harness.handle(.configuration(.started))
        #expect(harness.launches("maps").map(\.state) == [.foreground])
        #expect(launching(harness) == ["chat", "maps"])
        #expect(waiting(harness) == ["mail", "music", "notes"])
    }
}
