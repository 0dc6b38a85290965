import LifecycleCore
import Testing

@Suite("Weights in the background")
struct WeightTests {
    /// A suspended app that had worked for itself.
    private func suspended() -> Harness {
        let harness = Harness("photos", "mail") { $0.backgroundModes = [.push, .fetch] }
        harness.launch("photos", .background)
        harness.task("photos", "upload")
        harness.endTask("photos", "upload")
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        return harness
    }

    /// The changes of an app's weights since a mark: true where it is throttled.
    private func weights(_ harness: Harness, since mark: Int) -> [Bool] {
        harness.effects(since: mark).compactMap {
            switch $0 {
            case .run(_, .processor(.throttle)): true
            case .run(_, .processor(.unthrottle)): false
            default: nil
            }
        }
    }

    @Test("an app that a user wakes runs at normal weight until it has completed the wake (L19)")
    func push() {
        let harness = suspended()
        let run = harness.run("photos")
        let mark = harness.mark
        harness.push("photos")
        #expect(harness.state("photos") == .background)
        #expect(weights(harness, since: mark) == [false])
        harness.task("photos", "upload")
        harness.handle(.run(run, .wake(.completed(.newData))))
        #expect(weights(harness, since: mark) == [false, true])
        harness.endTask("photos", "upload")
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        #expect(weights(harness, since: mark) == [false, true])
    }

    @Test("an app that is about to be suspended keeps its weight, so that it can begin a task (L19)")
    func end() {
        let harness = Harness("photos")
        harness.launch("photos")
        let mark = harness.mark
        harness.background("photos")
        #expect(weights(harness, since: mark) == [])
        harness.task("photos", "upload")
        harness.endTask("photos", "upload")
        harness.task("photos", "upload")
        #expect(weights(harness, since: mark) == [true])
        harness.endTask("photos", "upload")
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        #expect(weights(harness, since: mark) == [true])
    }

    @Test(
        "an app that is not suspended within 5s works for itself meanwhile (L19)",
        arguments: [(Duration.seconds(6), AppPolicy.Suspension.yes), (.seconds(1), .no), (.seconds(1), .dryRun)])
    func staysAwake(delay: Duration, suspension: AppPolicy.Suspension) {
        let harness = Harness("photos") { ($0.suspendDelay, $0.suspension) = (delay, suspension) }
        harness.launch("photos", .background)
        #expect(weights(harness, since: 0) == [true])
    }

    @Test("an app that a user wakes has its normal weight before it runs again (L19)")
    func beforeThaw() {
        let harness = suspended()
        harness.behave("photos") { $0.thaws = false }
        let mark = harness.mark
        harness.push("photos")
        #expect(weights(harness, since: mark) == [false])
    }

    @Test("a task that is open after a user's wake gets less again (L19)")
    func task() {
        let harness = suspended()
        let run = harness.run("photos")
        harness.push("photos")
        harness.task("photos", "upload")
        let mark = harness.mark
        harness.handle(.run(run, .wake(.completed(.newData))))
        #expect(harness.state("photos") == .background)
        #expect(weights(harness, since: mark) == [true])
    }

    @Test("an app whose tasks expire runs at normal weight until they have ended (L19, L22)")
    func expiringTasks() {
        let harness = Harness("photos") { $0.suspendDelay = .seconds(3) }
        harness.launch("photos", .background)
        harness.task("photos", "upload")
        harness.task("photos", "save")
        let mark = harness.mark
        harness.advance(.seconds(25))
        #expect(weights(harness, since: mark) == [false])
        harness.endTask("photos", "upload")
        #expect(weights(harness, since: mark) == [false])
        harness.endTask("photos", "save")
        harness.advance(.seconds(3))
        #expect(harness.state("photos") == .suspended)
        #expect(weights(harness, since: mark) == [false])
    }

    @Test("an app in the background that a user sends a push is throttled no longer, for the time of the wake (L19)")
    func awake() {
        let harness = Harness("photos") { $0.backgroundTime = nil }
        harness.launch("photos", .background)
        harness.task("photos", "upload")
        let mark = harness.mark
        harness.request("photos", .launch(.background, reason: .socket, url: nil))
        #expect(weights(harness, since: mark) == [false])
        harness.advance(.seconds(30))
        #expect(weights(harness, since: mark) == [false, true])
    }

    @Test("an app that is launched for a user's push runs at normal weight from its launch (L19)")
    func launched() {
        let harness = Harness("photos") { $0.backgroundModes = .push }
        harness.push("photos")
        #expect(harness.state("photos") == .background)
        #expect(weights(harness, since: 0) == [])
        harness.task("photos", "upload")
        harness.handle(.run(harness.run("photos"), .wake(.completed(.noData))))
        #expect(weights(harness, since: 0) == [true])
    }

    @Test("a wake by another app, and a fetch, get less (L19)")
    func itself() {
        let harness = suspended()
        harness.launch("mail")
        let mark = harness.mark
        harness.request("photos", .push(payload: "hello"), by: .app(id("mail")))
        #expect(harness.state("photos") == .background)
        #expect(weights(harness, since: mark) == [])
        let fetch = suspended()
        let start = fetch.mark
        fetch.request("photos", .launch(.background, reason: .fetch, url: nil))
        #expect(fetch.state("photos") == .background)
        #expect(weights(fetch, since: start) == [])
    }

    /// Whether an app is throttled that is sent a fetch and a push, in both orders, before it can be woken.
    private func throttledAfterBoth(_ wake: (Harness, (Harness) -> Void) -> Void) -> [Bool] {
        let fetch = { (harness: Harness) in
            _ = harness.request("photos", .launch(.background, reason: .fetch, url: nil))
        }
        let push = { (harness: Harness) in _ = harness.push("photos") }
        return [[fetch, push], [push, fetch]].map { requests in
            let harness = Harness("photos", "mail") { $0.backgroundModes = [.push, .fetch] }
            var mark = 0
            wake(harness) { harness in
                for request in requests { request(harness) }
                mark = harness.mark
            }
            harness.advance(.seconds(1))
            #expect(harness.state("photos") == .background)
            return harness.effects(since: mark).contains(.run(harness.run("photos"), .processor(.throttle)))
        }
    }

    @Test("a push by the app itself and one by a user, while it ends, wake it for the user (L19)")
    func itselfAndUser() {
        let harness = Harness("photos") { $0.backgroundModes = .push }
        harness.move("photos", to: .ending)
        let run = harness.run("photos")
        harness.request("photos", .push(payload: "self"), by: .app(id("photos")))
        harness.push("photos")
        let mark = harness.mark
        harness.finish("photos", .ending, run)
        #expect(harness.state("photos") == .background)
        #expect(weights(harness, since: mark) == [])
    }

    @Test("a fetch before or after a push, while the app is not awake yet, does not make it less than a push (L19)")
    func both() {
        let waitingForSlot = throttledAfterBoth { harness, request in
            harness.configure { $0.launchesAtOnce = 1 }
            harness.behave("mail") { $0.launching = .executes }
            harness.register("mail") { $0.readiness = .notified }
            harness.request("mail", .launch(.background, reason: .user, url: nil))
            request(harness)
            #expect(harness.view("photos").launchWaiting != nil)
            harness.handle(.run(harness.run("mail"), .transition(.ready)))
        }
        #expect(waitingForSlot == [false, false])
        let launching = throttledAfterBoth { harness, request in
            harness.behave("photos") { $0.launching = .executes }
            harness.register("photos") {
                $0.readiness = .notified
                $0.backgroundModes = [.push, .fetch]
            }
            harness.request("photos", .launch(.background, reason: .user, url: nil))
            request(harness)
            harness.handle(.run(harness.run("photos"), .transition(.ready)))
        }
        #expect(launching == [false, false])
        let ending = throttledAfterBoth { harness, request in
            harness.move("photos", to: .ending)
            let run = harness.run("photos")
            request(harness)
            harness.finish("photos", .ending, run)
        }
        #expect(ending == [false, false])
    }
}
