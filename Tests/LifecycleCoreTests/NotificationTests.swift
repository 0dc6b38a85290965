import LifecycleCore
import Testing

@Suite("Notifications")
struct NotificationTests {
    @Test("L3: a push that launches an app is delivered after it was told that it is in the background")
    func pushLaunches() {
        let house = House("photos") {
            $0.backgroundModes = .push; $0.readiness = .notified
        }
        house.behave("photos") {
            $0.launching = .executes; $0.entering = .isSilent
        }
        house.push("photos", "hello")
        #expect(house.delivered("photos") == [])
        let run = house.run("photos")
        let mark = house.mark
        house.happens(.run(run, .ready))
        let said = house.effects(since: mark).filter { effect in
            switch effect {
            case .notify, .deliver: true
            default: false
            }
        }
        #expect(said.count == 2)
        #expect(said.first == .notify(run, .didEnterBackground))
        #expect(house.delivered("photos").map(\.payload) == ["hello"])
    }

    @Test(
        "L32: what comes while an app launches is delivered once it is ready, into the foreground before it is active")
    func sentWhileLaunching() {
        let house = House("photos") { $0.readiness = .notified }
        house.behave("photos") { $0.launching = .executes }
        house.launch("photos")
        let request = house.send("photos", "battery", "20")
        #expect(house.answers[request] == .done(.launching))
        #expect(house.delivered("photos") == [])
        let run = house.run("photos")
        house.happens(.run(run, .ready))
        let delivery = house.effects.firstIndex { if case .deliver = $0 { true } else { false } }
        let active = house.effects.firstIndex(of: .notify(run, .didBecomeActive))
        #expect(house.delivered("photos").map(\.payload) == ["20"])
        #expect(delivery! < active!)
    }

    @Test("L32: a significant time change waits for the foreground in a background launch too")
    func timeWaitsInBackgroundLaunch() {
        let house = House("photos") { $0.readiness = .notified }
        house.behave("photos") { $0.launching = .executes }
        house.launch("photos", .background)
        house.send("photos", "time")
        house.happens(.run(house.run("photos"), .ready))
        #expect(house.delivered("photos") == [])
        house.activate("photos")
        #expect(house.delivered("photos").map(\.kind) == ["time"])
    }

    @Test(
        "L31: what is no state but an event is news each time: a memory warning, a time change, a word without payload")
    func eventsRepeat() {
        let house = House("photos")
        for (kind, payload) in [("memory", "warning"), ("time", "1"), ("accessory", ""), ("x-refresh", "")] {
            house.suspend("photos")
            house.send("photos", kind, payload)
            house.activate("photos")
            house.suspend("photos")
            let mark = house.mark
            house.send("photos", kind, payload)
            house.activate("photos")
            #expect(house.delivered("photos", since: mark).map(\.kind) == [kind])
        }
    }

    @Test("L31: an app that runs hears of everything, twice if it is said twice")
    func runningHearsAll() {
        let house = House("photos")
        house.launch("photos")
        house.send("photos", "x-chat", "hello")
        house.send("photos", "x-chat", "hello")
        house.background("photos")
        house.send("photos", "x-chat", "hello")
        #expect(house.delivered("photos").map(\.payload) == ["hello", "hello", "hello"])
    }

    @Test("L31: of each kind the net change is kept while the app is suspended; what was undone is dropped")
    func netChange() {
        let house = House("photos")
        house.launch("photos")
        house.send("photos", "orientation", "portrait")
        house.send("photos", "battery", "50")
        house.suspend("photos")
        let mark = house.mark
        house.send("photos", "orientation", "landscape")
        house.send("photos", "battery", "40")
        house.send("photos", "locale", "fr")
        house.send("photos", "battery", "30")
        house.send("photos", "orientation", "portrait")
        #expect(house.delivered("photos", since: mark) == [])
        #expect(house.state("photos") == .suspended)
        house.activate("photos")
        #expect(
            house.delivered("photos", since: mark).map { "\($0.kind) \($0.payload)" } == ["locale fr", "battery 30"])
    }

    @Test("L33: an app's own kinds are bounded, and leave room for those that Greenroom knows of and for a push")
    func bound() {
        let house = House("photos") {
            $0.backgroundModes = .push; $0.readiness = .notified
        }
        house.behave("photos") { $0.launching = .executes }
        house.launch("photos")
        for number in 0..<64 { house.send("photos", "x-\(number)", "1") }
        let another = house.send("photos", "x-64", "1")
        let again = house.send("photos", "x-63", "2")
        let battery = house.send("photos", "battery", "5")
        house.push("photos", "hello")
        #expect(house.answers[another] == .refused(.tooMany("64 kinds of its own wait for it already")))
        #expect(house.answers[again] == .done(.launching))
        #expect(house.answers[battery] == .done(.launching))
        house.happens(.run(house.run("photos"), .ready))
        #expect(house.delivered("photos").count == 66)
        #expect(house.delivered("photos").suffix(3).map(\.payload) == ["2", "5", "hello"])
    }

    @Test("L32: what was sent during a freeze that timed out is delivered before the app runs on")
    func sentDuringFreeze() {
        let house = House("photos")
        house.behave("photos") { $0.freezes = false }
        house.launch("photos", .background)
        house.advance(.seconds(1))
        house.send("photos", "battery", "5")
        #expect(house.delivered("photos") == [])
        house.advance(.seconds(2))
        #expect(house.delivered("photos").map(\.payload) == ["5"])
        let thaw = house.effects.firstIndex(of: .thaw(house.run("photos"), attempt: 1))!
        let delivery = house.effects.firstIndex { if case .deliver = $0 { true } else { false } }!
        #expect(delivery < thaw)
    }

    @Test("L31: of each kind one is kept, the last")
    func oneOfEachKind() {
        let house = House("photos")
        house.suspend("photos")
        for level in [90, 80, 70] { house.send("photos", "battery", "\(level)") }
        house.send("photos", "locale", "de")
        house.send("photos", "battery", "60")
        #expect(house.state("photos") == .suspended)
        house.activate("photos")
        #expect(house.delivered("photos").map(\.payload) == ["de", "60"])
        house.suspend("photos")
        let mark = house.mark
        house.activate("photos")
        #expect(house.delivered("photos", since: mark) == [])
    }

    @Test(
        "L32: what waits is delivered before anything else, in the foreground or the background",
        arguments: [true, false])
    func deliveredFirst(inForeground: Bool) {
        let house = House("photos") { $0.backgroundModes = .push }
        house.suspend("photos")
        house.send("photos", "battery", "20")
        let mark = house.mark
        if inForeground { house.activate("photos") } else { house.push("photos", "hello") }
        let effects = house.effects(since: mark)
        let delivery = effects.firstIndex { if case .deliver = $0 { true } else { false } }!
        let thaw = effects.firstIndex { if case .thaw = $0 { true } else { false } }!
        #expect(delivery < thaw)
        #expect(house.delivered("photos").map(\.payload) == (inForeground ? ["20"] : ["20", "hello"]))
    }

    @Test("L32: a significant time change waits for the foreground, whatever wakes the app before")
    func timeWaits() {
        let house = House("photos") { $0.backgroundModes = .push }
        house.suspend("photos")
        house.send("photos", "time")
        house.send("photos", "locale", "fr")
        house.push("photos")
        #expect(house.delivered("photos").map(\.kind) == ["locale", "push"])
        house.happens(.run(house.run("photos"), .wakeCompleted(.noData)))
        house.advance(.seconds(1))
        house.activate("photos")
        #expect(house.delivered("photos").map(\.kind) == ["locale", "push", "time"])
    }

    @Test("L31: a new process knows nothing of what an earlier one was told, and gets nothing that waited for it")
    func newProcess() {
        let house = House("photos")
        house.launch("photos")
        house.send("photos", "battery", "50")
        house.suspend("photos")
        house.send("photos", "locale", "fr")
        house.terminate("photos")
        let mark = house.mark
        house.launch("photos")
        #expect(house.delivered("photos", since: mark) == [])
        house.suspend("photos")
        house.send("photos", "battery", "50")
        house.activate("photos")
        #expect(house.delivered("photos", since: mark).map(\.payload) == ["50"])
    }

    @Test(
        "L33: the kinds that there are, and an app's own beginning with x-",
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

    @Test("a payload has 4 KiB at most")
    func payload() {
        #expect(Notification(kind: "x-a", payload: String(repeating: "a", count: 4096)) != nil)
        #expect(Notification(kind: "x-a", payload: String(repeating: "a", count: 4097)) == nil)
        #expect(Notification(kind: "x-a", payload: String(repeating: "ä", count: 2049)) == nil)
    }
}
