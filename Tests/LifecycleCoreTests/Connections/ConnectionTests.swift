import Testing

@testable import LifecycleCore

/// Apps with a connection of their own: URLs, what a suspension was like, answers (L8, L17, L32, L46).
@Suite("connections")
struct ConnectionTests {
    private func harness(handling handled: HandledNotices, _ policy: (inout AppPolicy) -> Void = { _ in }) -> Harness {
        let harness = Harness("photos") {
            $0.readiness = .notified
            policy(&$0)
        }
        harness.behave("photos") { $0.launching = .executes }
        harness.launch("photos")
        attach(harness, handled)
        harness.handle(.run(harness.run("photos"), .transition(.ready)))
        return harness
    }

    private func attach(_ harness: Harness, _ handled: HandledNotices) {
        harness.handle(.run(harness.run("photos"), .connection(.attached(handled))))
    }

    @Test("an app that connects while its freeze is under way is notified of its resumption")
    func connectsLate() {
        let harness = harness(handling: [])
        harness.behave("photos") { $0.freezes = false }
        harness.background("photos")
        harness.advance(.seconds(1))
        attach(harness, .didResume)
        harness.handle(.run(harness.run("photos"), .suspension(.frozen(attempt: 1, memory: mebibyte))))
        let mark = harness.mark
        harness.advance(.seconds(5))
        harness.activate("photos")
        #expect(harness.notices("photos", since: mark).first == .didResume(after: .seconds(5), changed: []))
    }

    // MARK: URLs

    @Test("a URL launch delivers, cold: ready, the URL, then active (L8)")
    func cold() {
        let harness = Harness("photos") { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        let first = harness.request("photos", .open(url: "photos:1"))
        let second = harness.request("photos", .open(url: "photos:2"))
        #expect(harness.launches("photos").map(\.url) == ["photos:1"])
        #expect(harness.launches("photos").map(\.reason) == [.url])
        attach(harness, .openURL)
        #expect(harness.notices("photos") == [])
        harness.handle(.run(harness.run("photos"), .transition(.ready)))
        #expect(harness.notices("photos") == [.openURL("photos:1"), .openURL("photos:2"), .didBecomeActive(.launch)])
        #expect(harness.answers[first] == .done(.active) && harness.answers[second] == .done(.active))
    }

    @Test("a URL delivers, warm: will enter foreground, the URL, then active (L8)", arguments: [false, true])
    func warm(isSuspended: Bool) {
        let harness = harness(handling: .openURL)
        if isSuspended { harness.suspend("photos") } else { harness.background("photos") }
        let mark = harness.mark
        let request = harness.request("photos", .open(url: "photos:3"))
        #expect(
            harness.notices("photos", since: mark) == [
                .willEnterForeground, .openURL("photos:3"), .didBecomeActive(.return),
            ])
        #expect(harness.answers[request] == .done(.active))
    }

    @Test("an app in the foreground gets a URL at once, also while it is interrupted (L8, L13)")
    func inForeground() {
        let harness = harness(handling: .openURL)
        let mark = harness.mark
        harness.request("photos", .open(url: "photos:1"))
        harness.request("photos", .interrupt)
        harness.request("photos", .launch(.foreground, reason: .url, url: "photos:2"))
        #expect(
            harness.notices("photos", since: mark) == [
                .openURL("photos:1"), .willResignActive(.interruption), .openURL("photos:2"),
            ])
    }

    @Test("URLs for an app that ends go to the next process, in order (L8)")
    func afterEnd() {
        let harness = harness(handling: .openURL)
        harness.behave("photos") { $0.terminating = .ignores }
        harness.terminate("photos")
        for number in 1...2 { harness.request("photos", .open(url: "photos:\(number)")) }
        harness.exit("photos")
        #expect(harness.launches("photos").last?.url == "photos:1")
        let mark = harness.mark
        attach(harness, .openURL)
        harness.handle(.run(harness.run("photos"), .transition(.ready)))
        #expect(
            harness.notices("photos", since: mark) == [
                .openURL("photos:1"), .openURL("photos:2"), .didBecomeActive(.launch),
            ])
    }

    @Test("of an app that handles no URLs the first is in its environment, and the others are refused (L8)")
    func withoutConnection() {
        let harness = Harness("photos") { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        let first = harness.request("photos", .open(url: "photos:1"))
        let second = harness.request("photos", .open(url: "photos:2"))
        harness.handle(.run(harness.run("photos"), .transition(.ready)))
        #expect(harness.answers[first] == .done(.active))
        #expect(harness.answers[second] == .refused(.opensNoURLs))
        #expect(harness.notices("photos") == [.didBecomeActive(.launch)])
        // It connects only now.
        attach(harness, .openURL)
        #expect(harness.notices("photos") == [.didBecomeActive(.launch), .openURL("photos:1")])
    }

    @Test("a URL whose request was answered waits until the app says that it handles URLs (L8)")
    func answeredBefore() {
        let harness = harness(handling: .openURL)
        harness.behave("photos") { $0.terminating = .ignores }
        harness.terminate("photos")
        let first = harness.request("photos", .open(url: "photos:1"))
        let second = harness.request("photos", .launch(.background, reason: .url, url: "photos:2"))
        #expect(harness.answers[first] == .superseded(by: .background))
        harness.exit("photos")
        let mark = harness.mark
        harness.handle(.run(harness.run("photos"), .transition(.ready)))
        #expect(harness.answers[second] == .done(.background))
        // Nothing says yet that the new process handles URLs.
        harness.activate("photos")
        #expect(harness.state("photos") == .active)
        attach(harness, .openURL)
        let opened = harness.notices("photos", since: mark).suffix(2)
        #expect(opened == [.openURL("photos:1"), .openURL("photos:2")])
    }

    @Test("at most 64 URLs of 8 KiB wait for an app (L8)")
    func bounds() {
        let harness = Harness("photos") { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        let long = harness.request("photos", .open(url: String(repeating: "a", count: 8193)))
        #expect(harness.answers[long] == .refused(.tooMany("a URL has at most 8192 bytes")))
        for number in 0..<64 {
            // A requester that waits is bounded too.
            harness.handle(.requestAbandoned(harness.request("photos", .open(url: "photos:\(number)"))))
        }
        let one = harness.request("photos", .open(url: "photos:64"))
        #expect(harness.answers[one] == .refused(.tooMany("64 URLs are pending")))
    }

    @Test("URLs that wait are still there after the daemon died, and no request is answered for them (L8)")
    func recovery() throws {
        let harness = Harness("photos") { $0.readiness = .notified }
        harness.behave("photos") { $0.launching = .executes }
        for number in 1...2 { harness.request("photos", .open(url: "photos:\(number)")) }
        let run = harness.run("photos")
        attach(harness, .openURL)
        var core = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(core.difference(from: harness.core) == nil)
        _ = core.handle(.recovered, at: harness.now)
        let effects = core.handle(.run(run, .transition(.ready)), at: harness.now)
        let notices = effects.compactMap { if case .run(_, .notify(let notice)) = $0 { notice } else { nil } }
        #expect(notices == [.openURL("photos:1"), .openURL("photos:2"), .didBecomeActive(.launch)])
        #expect(!effects.contains { if case .answer = $0 { true } else { false } })
    }

    // MARK: Suspension

    @Test("before a freeze the app gets willSuspend, after the thaw how long it slept and what changed (L32)")
    func suspension() {
        let harness = harness(handling: [.willSuspend, .didResume])
        let mark = harness.mark
        harness.suspend("photos")
        let run = harness.run("photos")
        let order = harness.effects(since: mark).filter {
            if case .run(_, .suspension(.freeze)) = $0 { true } else { $0 == .run(run, .notify(.willSuspend)) }
        }
        #expect(order.first == .run(run, .notify(.willSuspend)) && order.count == 2)
        for payload in ["20", "30"] { harness.send("photos", "battery", payload) }
        harness.send("photos", "x-note")
        harness.advance(.seconds(60))
        let resumed = harness.mark
        harness.activate("photos")
        let notices = harness.notices("photos", since: resumed)
        guard case .didResume(let time, let changed)? = notices.first else {
            Issue.record("\(notices)")
            return
        }
        #expect(time >= .seconds(60) && time < .seconds(70))
        #expect(changed == ["battery", "x-note"])
        #expect(notices.dropFirst() == [.willEnterForeground, .didBecomeActive(.return)])
    }

    @Test("an app without a connection gets neither")
    func silent() {
        let harness = harness(handling: [])
        harness.suspend("photos")
        harness.activate("photos")
        #expect(!harness.notices("photos").contains { $0.isForConnections })
    }

    // MARK: Answers

    @Test("an app whose connection handles didEnterBackground takes part (L17, L46)")
    func takesPart() throws {
        let harness = harness(handling: .didEnterBackground)
        harness.suspend("photos")
        let mark = harness.mark
        harness.terminate("photos")
        #expect(harness.notices("photos", since: mark) == [])
        #expect(try harness.receipt("photos").explanation == "Killed while suspended: terminated on request.")
    }

    @Test("an app that has answered willTerminate is killed at once, and its end was requested (L46)")
    func answersTermination() throws {
        let harness = harness(handling: [])
        harness.behave("photos") { $0.terminating = .ignores }
        let request = harness.terminate("photos")
        harness.advance(.seconds(1))
        harness.handle(.run(harness.run("photos"), .transition(.terminationAnswered)))
        #expect(harness.killed() == ["photos"])
        let receipt = try harness.receipt("photos")
        #expect(receipt.explanation == "Terminated on request: killed once it had answered.")
        #expect(receipt.namespace == .exit && receipt.failure == nil)
        #expect(receipt.deadline?.what == .terminate)
        #expect(harness.answers[request] == .ended(receipt))
    }

    @Test(
        "an answer to willTerminate that was not sent has no effect (L46)",
        arguments: ["foreground", "suspended", "own end"])
    func unexpectedAnswer(_ state: String) {
        let harness = harness(handling: [])
        if state == "suspended" { harness.suspend("photos") }
        if state == "own end" { harness.handle(.run(harness.run("photos"), .transition(.stopping))) }
        let before = harness.state("photos")
        harness.handle(.run(harness.run("photos"), .transition(.terminationAnswered)))
        #expect(harness.state("photos") == before && harness.killed() == [])
    }
}
