import LifecycleCore
import Testing

@Suite("Notifications")
struct NotificationTests {
    @Test("a push that launches an app is delivered after didEnterBackground (L3)")
    func pushLaunches() {
        let harness = Harness("photos") {
            $0.backgroundModes = .push; $0.readiness = .notified
        }
        harness.behave("photos") {
            $0.launching = .executes; $0.entering = .isSilent
        }
        harness.push("photos", "hello")
        #expect(harness.delivered("photos") == [])
        let run = harness.run("photos")
        let mark = harness.mark
        harness.handle(.run(run, .transition(.ready)))
        let said = harness.effects(since: mark).filter { effect in
            switch effect {
            case .run(_, .notify), .run(_, .deliver): true
            default: false
            }
        }
        #expect(said.count == 2)
        #expect(said.first == .run(run, .notify(.didEnterBackground)))
        #expect(harness.delivered("photos").map(\.payload) == ["hello"])
    }

    @Test(
        "notifications during a launch are delivered once the app is ready, in the foreground before it is active (L32)"
    )
    func sentWhileLaunching() {
        let harness = Harness("photos") { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        harness.launch("photos")
        let request = harness.send("photos", "battery", "20")
        #expect(harness.answers[request] == .done(.launching))
        #expect(harness.delivered("photos") == [])
        let run = harness.run("photos")
        harness.handle(.run(run, .transition(.ready)))
        let delivery = harness.effects.firstIndex { if case .run(_, .deliver) = $0 { true } else { false } }
        let active = harness.effects.firstIndex(of: .run(run, .notify(.didBecomeActive(.launch))))
        #expect(harness.delivered("photos").map(\.payload) == ["20"])
        #expect(delivery! < active!)
    }

    @Test("a significant time change waits for the foreground, also after a background launch (L32)")
    func timeWaitsInBackgroundLaunch() {
        let harness = Harness("photos") { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        harness.launch("photos", .background)
        harness.send("photos", "time")
        harness.handle(.run(harness.run("photos"), .transition(.ready)))
        #expect(harness.delivered("photos") == [])
        harness.activate("photos")
        #expect(harness.delivered("photos").map(\.kind) == ["time"])
    }

    @Test(
        "a notification that is an event is delivered each time: a memory warning, a time change, one without payload (L31)"
    )
    func eventsRepeat() {
        let harness = Harness("photos")
        for (kind, payload) in [("memory", "warning"), ("time", "1"), ("accessory", ""), ("x-refresh", "")] {
            harness.suspend("photos")
            harness.send("photos", kind, payload)
            harness.activate("photos")
            harness.suspend("photos")
            let mark = harness.mark
            harness.send("photos", kind, payload)
            harness.activate("photos")
            #expect(harness.delivered("photos", since: mark).map(\.kind) == [kind])
        }
    }

    @Test("a running app receives every notification, repeated ones too (L31)")
    func runningReceivesAll() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.send("photos", "x-chat", "hello")
        harness.send("photos", "x-chat", "hello")
        harness.background("photos")
        harness.send("photos", "x-chat", "hello")
        #expect(harness.delivered("photos").map(\.payload) == ["hello", "hello", "hello"])
    }

    @Test("while an app is suspended the net change of each kind is kept, and reverted changes are dropped (L31)")
    func netChange() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.send("photos", "orientation", "portrait")
        harness.send("photos", "battery", "50")
        harness.suspend("photos")
        let mark = harness.mark
        harness.send("photos", "orientation", "landscape")
        harness.send("photos", "battery", "40")
        harness.send("photos", "locale", "fr")
        harness.send("photos", "battery", "30")
        harness.send("photos", "orientation", "portrait")
        #expect(harness.delivered("photos", since: mark) == [])
        #expect(harness.state("photos") == .suspended)
        harness.activate("photos")
        #expect(
            harness.delivered("photos", since: mark).map { "\($0.kind) \($0.payload)" } == ["locale fr", "battery 30"])
    }

    @Test("the number of an app's own kinds is limited, so that Greenroom's kinds and a push always fit (L33)")
    func bound() {
        let harness = Harness("photos") {
            $0.backgroundModes = .push; $0.readiness = .notified
        }
        harness.behave("photos") { $0.launching = .executes }
        harness.launch("photos")
        for number in 0..<64 { harness.send("photos", "x-\(number)", "1") }
        let another = harness.send("photos", "x-64", "1")
        let again = harness.send("photos", "x-63", "2")
        let battery = harness.send("photos", "battery", "5")
        harness.push("photos", "hello")
        #expect(harness.answers[another] == .refused(.tooMany("64 kinds of its own are pending")))
        #expect(harness.answers[again] == .done(.launching))
        #expect(harness.answers[battery] == .done(.launching))
        harness.handle(.run(harness.run("photos"), .transition(.ready)))
        #expect(harness.delivered("photos").count == 66)
        #expect(harness.delivered("photos").suffix(3).map(\.payload) == ["2", "5", "hello"])
    }

    @Test("notifications during a freeze are delivered before the app continues (L32)")
    func sentDuringFreeze() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.freezes = false }
        harness.launch("photos", .background)
        harness.advance(.seconds(1))
        harness.send("photos", "battery", "5")
        #expect(harness.delivered("photos") == [])
        harness.advance(.seconds(2))
        harness.activate("photos")
        #expect(harness.delivered("photos").map(\.payload) == ["5"])
        let thaw = harness.effects.firstIndex(of: .run(harness.run("photos"), .suspension(.thaw(attempt: 1))))!
        let delivery = harness.effects.firstIndex { if case .run(_, .deliver) = $0 { true } else { false } }!
        #expect(delivery < thaw)
    }

    @Test("the last notification of each kind is kept (L31)")
    func oneOfEachKind() {
        let harness = Harness("photos")
        harness.suspend("photos")
        for level in [90, 80, 70] { harness.send("photos", "battery", "\(level)") }
        harness.send("photos", "locale", "de")
        harness.send("photos", "battery", "60")
        #expect(harness.state("photos") == .suspended)
        harness.activate("photos")
        #expect(harness.delivered("photos").map(\.payload) == ["de", "60"])
        harness.suspend("photos")
        let mark = harness.mark
        harness.activate("photos")
        #expect(harness.delivered("photos", since: mark) == [])
    }

    @Test(
        "pending notifications are delivered before any notice, in the foreground and the background (L32)",
        arguments: [true, false])
    func deliveredFirst(inForeground: Bool) {
        let harness = Harness("photos") { $0.backgroundModes = .push }
        harness.suspend("photos")
        harness.send("photos", "battery", "20")
        let mark = harness.mark
        if inForeground { harness.activate("photos") } else { harness.push("photos", "hello") }
        let effects = harness.effects(since: mark)
        let delivery = effects.firstIndex { if case .run(_, .deliver) = $0 { true } else { false } }!
        let thaw = effects.firstIndex { if case .run(_, .suspension(.thaw)) = $0 { true } else { false } }!
        #expect(delivery < thaw)
        #expect(harness.delivered("photos").map(\.payload) == (inForeground ? ["20"] : ["20", "hello"]))
    }

    @Test("a significant time change waits for the foreground, whatever wakes the app before (L32)")
    func timeWaits() {
        let harness = Harness("photos") { $0.backgroundModes = .push }
        harness.suspend("photos")
        harness.send("photos", "time")
        harness.send("photos", "locale", "fr")
        harness.push("photos")
        #expect(harness.delivered("photos").map(\.kind) == ["locale", "push"])
        harness.handle(.run(harness.run("photos"), .wake(.completed(.noData))))
        harness.advance(.seconds(1))
        harness.activate("photos")
        #expect(harness.delivered("photos").map(\.kind) == ["locale", "push", "time"])
    }

    @Test("a new process gets no notifications that waited for an earlier one, and no state of it counts (L31)")
    func newProcess() {
        let harness = Harness("photos")
        harness.launch("photos")
        harness.send("photos", "battery", "50")
        harness.suspend("photos")
        harness.send("photos", "locale", "fr")
        harness.terminate("photos")
        let mark = harness.mark
        harness.launch("photos")
        #expect(harness.delivered("photos", since: mark) == [])
        harness.suspend("photos")
        harness.send("photos", "battery", "50")
        harness.activate("photos")
        #expect(harness.delivered("photos", since: mark).map(\.payload) == ["50"])
    }

    @Test(
        "a kind is one of Greenroom's or begins with x- (L33)",
        arguments: [
            ("battery", true), ("accessory", true), ("memory", true), ("x-a", true), ("x-Sync-2", true), ("x-", false),
            ("", false),
            ("Battery", false), ("x-ä", false), ("x-a b", false), ("push", false),
            ("x-" + String(repeating: "a", count: 62), true),
            ("x-" + String(repeating: "a", count: 63), false),
        ])
    func kinds(kind: String, isOne: Bool) {
        #expect((Notification(kind: kind, payload: "") != nil) == isOne)
    }

    @Test("a payload has at most 4 KiB")
    func payload() {
        #expect(Notification(kind: "x-a", payload: String(repeating: "a", count: 4096)) != nil)
        #expect(Notification(kind: "x-a", payload: String(repeating: "a", count: 4097)) == nil)
        #expect(Notification(kind: "x-a", payload: String(repeating: "ä", count: 2049)) == nil)
    }
}
