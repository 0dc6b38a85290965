import LifecycleCore
import Testing

@Suite("Notifications of the machine (L33)")
struct SubscriptionTests {
    private static let photos = id("photos")
    private static let kinds: NotificationKinds = [.named("battery"), .named("time")]

    private func stage(_ policy: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        Harness("photos") {
            $0.notifications = Self.kinds
            policy(&$0)
        }
    }

    private func observe(_ harness: Harness, _ kind: String, _ payload: String, of app: AppID? = nil) {
        harness.handle(.observed(Notification(kind: kind, payload: payload)!, of: app))
    }

    private func subscriptions(_ harness: Harness) -> [NotificationKinds] {
        harness.effects.compactMap { if case .subscribe(Self.photos, let kinds) = $0 { kinds } else { nil } }
    }

    @Test("sources are watched from the launch of an app that wants them until its end (L33)")
    func subscribes() {
        let harness = stage()
        #expect(subscriptions(harness) == [])
        harness.launch("photos")
        #expect(subscriptions(harness) == [Self.kinds])
        harness.suspend("photos")
        #expect(subscriptions(harness) == [Self.kinds])
        harness.register("photos") { $0.notifications = .named("locale") }
        #expect(subscriptions(harness) == [Self.kinds, .named("locale")])
        harness.exit("photos")
        #expect(subscriptions(harness) == [Self.kinds, .named("locale"), []])
    }

    @Test("an app is notified of each change of a kind that it named, and of no other kind (L33)")
    func namedKinds() {
        let harness = stage()
        harness.launch("photos")
        for payload in ["80 charging", "80 charging", "81 charging"] { observe(harness, "battery", payload) }
        for payload in ["normal", "left-up"] { observe(harness, "orientation", payload) }
        // Of what a client sends it is notified always.
        harness.send("photos", "orientation", "left-up")
        #expect(harness.delivered("photos").map(\.payload) == ["81 charging", "left-up"])
    }

    @Test("its address for pushes is given to each process, when it is known and when it changes (L30, L33)")
    func pushEndpoint() {
        let harness = Harness("photos") { $0.notifications = .named("pushEndpoint") }
        harness.launch("photos")
        for payload in ["https://a", "https://a", "https://b"] { observe(harness, "pushEndpoint", payload) }
        #expect(harness.delivered("photos").map(\.payload) == ["https://a", "https://b"])
        // The next daemon reports it again.
        harness.suspend("photos")
        observe(harness, "pushEndpoint", "https://b")
        harness.activate("photos")
        #expect(harness.delivered("photos").count == 2)
        harness.exit("photos")
        harness.launch("photos")
        observe(harness, "pushEndpoint", "https://b")
        #expect(harness.delivered("photos").map(\.payload).last == "https://b")
        #expect(harness.delivered("photos").count == 3)
    }

    @Test("what an app was launched in is no change, and a change that was undone while it slept is dropped (L31)")
    func undone() {
        let harness = stage()
        harness.launch("photos")
        observe(harness, "battery", "80 charging")
        harness.suspend("photos")
        for percent in [81, 82, 81, 80] { observe(harness, "battery", "\(percent) charging") }
        harness.activate("photos")
        #expect(harness.delivered("photos") == [])
        harness.suspend("photos")
        for percent in [81, 80, 79] { observe(harness, "battery", "\(percent) charging") }
        #expect(harness.state("photos") == .suspended)
        harness.activate("photos")
        #expect(harness.delivered("photos").map(\.payload) == ["79 charging"])
    }

    @Test("a change of the time waits for the foreground (L32)")
    func timeWaits() {
        let harness = stage()
        harness.launch("photos")
        harness.background("photos")
        observe(harness, "time", "midnight")
        #expect(harness.delivered("photos") == [])
        harness.activate("photos")
        #expect(harness.delivered("photos").map(\.payload) == ["midnight"])
    }

    @Test("a reading for one app does not concern another, nor an app that does not run (L33)")
    func oneApp() {
        let harness = stage()
        harness.register("mail") { $0.notifications = Self.kinds }
        harness.launch("photos", .background)
        observe(harness, "battery", "1 full", of: id("mail"))
        observe(harness, "battery", "1 full", of: id("photos"))
        observe(harness, "battery", "2 full", of: id("mail"))
        observe(harness, "battery", "3 full", of: id("photos"))
        #expect(harness.delivered("photos").map(\.payload) == ["3 full"])
        #expect(harness.delivered("mail") == [])
    }

    @Test("the next daemon watches again, and notifies of what has changed meanwhile (L31, L33)")
    func recovered() throws {
        let harness = stage()
        harness.launch("photos")
        observe(harness, "battery", "80 full")
        harness.suspend("photos")
        var next = LifecycleCore(recovering: harness.core.saved)
        #expect(next == harness.core)
        #expect(next.handle(.recovered, at: harness.now).contains(.subscribe(Self.photos, Self.kinds)))
        for (payload, deliveries) in [("80 full", 0), ("79 discharging", 1)] {
            var core = next
            _ = core.handle(.observed(Notification(kind: "battery", payload: payload)!), at: harness.now)
            let effects = core.handle(.requested(RequestID(99), Self.photos, .activate), at: harness.now)
            #expect(effects.count { if case .run(_, .deliver) = $0 { true } else { false } } == deliveries)
        }
    }
}

extension NotificationKinds {
    static func named(_ name: String) -> NotificationKinds { NotificationKinds(named: name)! }
}
