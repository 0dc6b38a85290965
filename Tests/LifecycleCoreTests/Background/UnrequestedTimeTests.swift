import Testing

@testable import LifecycleCore

@Suite("Background time that no user asked for")
struct UnrequestedTimeTests {
    /// An app that uses what it can: it opens a task whenever it runs in the background, and never ends one.
    private func leak(_ harness: Harness, for time: Duration, _ also: (Harness) -> Void = { _ in }) {
        let end = harness.now + time
        while harness.now < end {
            if harness.state("photos") == .background, harness.view("photos").tasks.isEmpty {
                harness.task("photos", "leak")
            }
            also(harness)
            harness.advance(.milliseconds(500))
        }
    }

    /// The longest time that an app was awake in the background within an hour, and the sum.
    private func awake(_ harness: Harness) -> (inAnHour: Duration, sum: Duration) {
        var spans: [(start: Instant, end: Instant)] = []
        var start: Instant?
        for entry in harness.log {
            guard case .report(.stateChanged(id("photos"), _, let state, _)) = entry.effect else { continue }
            switch state {
            case .launching, .background: if start == nil { start = entry.at }
            case .notRunning, .inactive, .active, .suspended, .terminating:
                if let begun = start { spans.append((begun, entry.at)) }
                start = nil
            }
        }
        if let start { spans.append((start, harness.now)) }
        func sum(from: Instant, to: Instant) -> Duration {
            spans.reduce(.zero) { $0 + max(.zero, min($1.end, to) - max($1.start, from)) }
        }
        let most = spans.map { sum(from: $0.start, to: $0.start + .seconds(3600)) }.max() ?? .zero
        return (most, sum(from: .origin, to: harness.now))
    }

    @Test("an app that leaks tasks and is relaunched runs in the background for no more than 10min in an hour (L53)")
    func relaunches() {
        let harness = Harness("photos") { $0.relaunch = .always }
        harness.launch("photos", .background)
        leak(harness, for: .seconds(3 * 3600))
        let (most, sum) = awake(harness)
        // One stay is in progress when the time ends.
        #expect(most >= .seconds(600) && most <= .seconds(631), "\(most)")
        #expect(sum >= .seconds(1700), "the time comes back: \(sum)")
        let used = harness.reports().filter { $0 == .unrequestedTimeUsedUp(id("photos"), limit: .seconds(600)) }
        #expect((1...4).contains(used.count), "\(used.count)")
    }

    @Test("an app that asks for itself is woken for no more than 10min in an hour; users still wake it (L53)")
    func asksForItself() {
        let harness = Harness("photos") { $0.backgroundModes = .push }
        harness.launch("photos", .background)
        leak(harness, for: .seconds(2 * 3600)) { harness in
            harness.endTask("photos", "leak")
            harness.request(
                "photos", .launch(.background, reason: .timer, url: nil), by: .app(id("photos")))
        }
        let most = awake(harness).inAnHour
        #expect(most >= .seconds(600) && most <= .seconds(632), "\(most)")
        let own = harness.request("photos", .push(payload: "me"), by: .app(id("photos")))
        guard case .refused(.backgroundTimeUsedUp(let time))? = harness.answers[own] else {
            Issue.record("\(String(describing: harness.answers[own]))")
            return
        }
        #expect(time > .zero && time <= .seconds(3600))
        let push = harness.push("photos")
        #expect(harness.answers[push] == .done(.background))
    }

    @Test("an app that crashes after each relaunch does not run for more than its time, and relaunches wait (L53)")
    func crashes() {
        let harness = Harness("photos") { $0.relaunch = .always }
        harness.launch("photos", .background)
        leak(harness, for: .seconds(2 * 3600)) { harness in
            guard harness.state("photos") == .background else { return }
            // Not an early end (L11).
            if harness.now - harness.view("photos").since > .seconds(11) { harness.crash("photos") }
        }
        let most = awake(harness).inAnHour
        #expect(most >= .seconds(600) && most <= .seconds(631), "\(most)")
    }

    @Test("after the time is used up a task is refused, and one from the foreground ends without a kill (L53)")
    func refusesTasks() {
        let harness = Harness("photos") { $0.backgroundTimePerHour = .seconds(20) }
        harness.launch("photos")
        harness.task("photos", "upload")
        harness.background("photos")
        harness.advance(.seconds(15))
        harness.task("photos", "second")
        harness.endTask("photos", "upload")
        harness.advance(.seconds(9))
        #expect(harness.view("photos").unrequestedTime == .seconds(24))
        #expect(harness.view("photos").unrequestedTimeLimit == .seconds(20))
        harness.task("photos", "third")
        #expect(harness.reports().contains(.taskRefused(id("photos"), name: "third")))
        // The user comes back before the budget ends. The task is open still.
        harness.activate("photos")
        harness.advance(.seconds(100))
        let mark = harness.mark
        harness.background("photos")
        #expect(harness.notices("photos", since: mark).last == .tasksExpiring)
        #expect(harness.reports(since: mark).contains(.taskEnded(id("photos"), name: "second")))
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        #expect(harness.receipts.isEmpty)
        #expect(
            harness.reports().filter { $0 == .unrequestedTimeUsedUp(id("photos"), limit: .seconds(20)) }.count == 1)
    }

    @Test("what a user asks for is not counted: the way to the background, a launch, a push (L53)")
    func usersTime() {
        let harness = Harness("photos") { $0.backgroundModes = .push }
        harness.launch("photos")
        harness.background("photos")
        harness.advance(.seconds(1))
        #expect(harness.state("photos") == .suspended)
        for _ in 1...100 {
            harness.push("photos")
            harness.advance(.seconds(20))
            harness.handle(.run(harness.run("photos"), .wake(.completed(.newData))))
            harness.advance(.seconds(10))
        }
        harness.terminate("photos")
        harness.launch("photos", .background)
        harness.advance(.seconds(1))
        #expect(harness.view("photos").unrequestedTime == .zero)
        // A task after the wake is the app's own.
        harness.push("photos")
        harness.task("photos", "upload")
        harness.advance(.seconds(10))
        #expect(harness.view("photos").unrequestedTime == .zero)
        harness.handle(.run(harness.run("photos"), .wake(.completed(.newData))))
        harness.advance(.seconds(7))
        #expect(harness.view("photos").unrequestedTime == .seconds(7))
    }

    @Test("time in which an app cannot be frozen is counted (L53)")
    func cannotBeFrozen() {
        let harness = Harness("photos")
        harness.behave("photos") { $0.freezes = false }
        harness.launch("photos", .background)
        harness.advance(.seconds(301))
        #expect(harness.view("photos").unrequestedTime == .seconds(300))
        harness.advance(.seconds(400))
        harness.task("photos", "upload")
        #expect(harness.reports().contains(.taskRefused(id("photos"), name: "upload")))
    }

    @Test("the time survives the end of a run, a reload, and the daemon (L53)")
    func survives() throws {
        let harness = Harness("photos") { $0.backgroundTimePerHour = .seconds(20) }
        harness.launch("photos", .background)
        harness.task("photos", "upload")
        harness.advance(.seconds(25))
        harness.crash("photos")
        harness.register("photos")
        #expect(harness.view("photos").unrequestedTime == .seconds(25))
        harness.launch("photos", .background)
        harness.task("photos", "upload")
        #expect(harness.reports().contains(.taskRefused(id("photos"), name: "upload")))
        harness.advance(.milliseconds(1500))
        let saved = try SavedCore(reading: harness.core.saved.bytes)
        let next = LifecycleCore(recovering: saved)
        #expect(next == harness.core)
        #expect(next.view(of: id("photos"), at: harness.now)?.unrequestedTime == .seconds(25))
        #expect(next.view(of: id("photos"), at: harness.now + .seconds(3700))?.unrequestedTime == .zero)
    }

    @Test("an app in the background cannot bring an app to the foreground; one in the foreground can (L53)")
    func foregroundRequests() {
        let harness = Harness("photos", "home", "other")
        harness.launch("photos", .background)
        let asksItself = harness.request("photos", .activate, by: .app(id("photos")))
        #expect(harness.answers[asksItself] == .refused(.requesterNotInForeground))
        let launch = Request.launch(.foreground, reason: .user, url: nil)
        let unknown = harness.request("other", launch, by: .app(nil))
        #expect(harness.answers[unknown] == .refused(.requesterNotInForeground))
        harness.activate("home")
        let home = harness.request("photos", .activate, by: .app(id("home")))
        #expect(harness.answers[home] == .done(.active))
        #expect(harness.state("home") == .background)
    }

    @Test("an app that is on its way to the background cannot bring an app to the foreground (L53)")
    func requestWhileEntering() {
        let harness = Harness("photos", "other")
        harness.move("photos", to: .entering)
        let request = harness.request("other", .activate, by: .app(id("photos")))
        #expect(harness.answers[request] == .refused(.requesterNotInForeground))
    }

    @Test("a launch that an app asks for is postponed after an early end, and does not reset the delay (L11, L53)")
    func launchesAreNotUsers() {
        let harness = Harness("photos", "other")
        harness.launch("photos")
        harness.crash("photos")
        let request = harness.request(
            "photos", .launch(.background, reason: .user, url: nil), by: .app(id("other")))
        #expect(harness.answers[request] == .refused(.launchPostponed(by: .seconds(10))))
        harness.launch("photos", .background)
        #expect(harness.state("photos") == .background)
    }

    @Test("a launch that follows an end is refused if an app asked for it and the time is used up (L53)")
    func launchAfterEnd() {
        let harness = Harness("photos") { $0.backgroundTimePerHour = .seconds(5) }
        harness.behave("photos") { $0.terminating = .ignores }
        harness.launch("photos", .background)
        harness.task("photos", "upload")
        harness.advance(.seconds(6))
        harness.terminate("photos")
        let launch = Request.launch(.background, reason: .user, url: nil)
        let request = harness.request("photos", launch, by: .app(nil))
        harness.advance(.seconds(5))
        guard case .refused(.backgroundTimeUsedUp)? = harness.answers[request] else {
            Issue.record("\(String(describing: harness.answers[request]))")
            return
        }
        #expect(harness.state("photos") == .notRunning)
    }

    @Test("while the screen is locked a relaunch waits for background time, until the user returns (L15, L53)")
    func relaunchWhileLocked() {
        let harness = Harness("photos") {
            $0.relaunch = .always
            $0.backgroundTimePerHour = .seconds(5)
        }
        harness.launch("photos")
        harness.advance(.seconds(20))
        harness.handle(.absence(.locked))
        harness.task("photos", "upload")
        harness.advance(.seconds(12))
        harness.crash("photos")
        harness.advance(.seconds(60))
        #expect(harness.state("photos") == .notRunning)
        harness.handle(.absence(.unlocked))
        harness.advance(.zero)
        #expect(harness.state("photos") == .active)
    }

    // MARK: The account

    @Test("no hour has more time than is counted at its end, and each minute is counted for 61 min at most")
    func account() {
        var random = SystemRandomNumberGenerator()
        for _ in 0..<200 {
            var account = UnrequestedTime()
            var spans: [(start: Instant, end: Instant)] = []
            var now = Instant(sinceOrigin: .milliseconds(Int.random(in: 0...7_200_000, using: &random)))
            for _ in 0..<40 {
                let start = now
                account.setCounting(true, at: start)
                now = now + .milliseconds(Int.random(in: 0...900_000, using: &random))
                let used = account.used(at: now)
                account.setCounting(false, at: now)
                #expect(account.used(at: now) == used)
                spans.append((start, now))
                func sum(_ hours: Duration) -> Duration {
                    spans.reduce(.zero) {
                        $0 + max(.zero, $1.end - max($1.start, Instant(sinceOrigin: now.sinceOrigin - hours)))
                    }
                }
                #expect(used >= sum(.seconds(3600)))
                #expect(used <= sum(.seconds(3660)))
                #expect(account.minutes.count <= UnrequestedTime.maximumMinutes)
                let available = account.available(from: now, limit: .seconds(600))
                #expect(account.used(at: available) < .seconds(600))
                if available > now {
                    let before = Instant(sinceOrigin: available.sinceOrigin - .milliseconds(1))
                    #expect(account.used(at: before) >= .seconds(600))
                }
                now = now + .milliseconds(Int.random(in: 0...900_000, using: &random))
            }
        }
    }
}
