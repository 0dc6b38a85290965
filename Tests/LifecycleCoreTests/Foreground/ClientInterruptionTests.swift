import Testing

@testable import LifecycleCore

@Suite("Interruptions that end with their client")
struct ClientInterruptionTests {
    private func activeHarness() -> Harness {
        let harness = Harness("photos")
        harness.launch("photos")
        return harness
    }

    @Test("an interruption outlives the client that began it, unless that asked to tie it to its connection (L13)")
    func disconnects() {
        let harness = activeHarness()
        let plain = harness.request("photos", .interrupt)
        let tied = harness.request("photos", .interruptWhileConnected)
        #expect(harness.answers[plain] == .done(.inactive) && harness.answers[tied] == .done(.inactive))
        harness.handle(.requestAbandoned(plain))
        harness.handle(.requestAbandoned(tied))
        #expect(harness.view("photos").interruptions == 1)
        #expect(harness.state("photos") == .inactive)
        harness.request("photos", .endInterruption)
        #expect(harness.state("photos") == .active)
        #expect(
            harness.notices("photos").suffix(2) == [
                .willResignActive(.interruption), .didBecomeActive(.interruptionEnded),
            ])
    }

    @Test("the app is active when the last interruption ends with its client (L13)")
    func nests() {
        let harness = activeHarness()
        let first = harness.request("photos", .interruptWhileConnected)
        let second = harness.request("photos", .interruptWhileConnected)
        harness.handle(.requestAbandoned(first))
        #expect(harness.state("photos") == .inactive)
        harness.handle(.requestAbandoned(first))
        #expect(harness.state("photos") == .inactive)
        harness.handle(.requestAbandoned(second))
        #expect(harness.state("photos") == .active)
        #expect(harness.core.requests.numbers == [])
    }

    @Test("a request to end an interruption ends those first that do not end with a client (L13)")
    func endsByRequest() {
        let harness = activeHarness()
        let tied = harness.request("photos", .interruptWhileConnected)
        harness.request("photos", .interrupt)
        harness.request("photos", .endInterruption)
        #expect(harness.core.requests.numbers == [tied.number])
        harness.request("photos", .endInterruption)
        #expect(harness.state("photos") == .active)
        // The client disconnects later.
        harness.request("photos", .interrupt)
        harness.handle(.requestAbandoned(tied))
        #expect(harness.state("photos") == .inactive)
    }

    @Test("of several interruptions that end with their clients a request ends the oldest one (L13)")
    func oldestEndsByRequest() {
        let harness = activeHarness()
        let first = harness.request("photos", .interruptWhileConnected)
        let second = harness.request("photos", .interruptWhileConnected)
        harness.request("photos", .endInterruption)
        harness.handle(.requestAbandoned(first))
        #expect(harness.state("photos") == .inactive)
        harness.handle(.requestAbandoned(second))
        #expect(harness.state("photos") == .active)
    }

    @Test("an interruption that ended in the background, or with the app, does not end again with its client (L13)")
    func background() {
        let harness = activeHarness()
        let first = harness.request("photos", .interruptWhileConnected)
        harness.background("photos")
        harness.activate("photos")
        let second = harness.request("photos", .interrupt)
        harness.handle(.requestAbandoned(first))
        #expect(harness.state("photos") == .inactive && harness.isAnswered(second))
        let third = harness.request("photos", .interruptWhileConnected)
        harness.crash("photos")
        #expect(harness.core.requests.numbers == [])
        harness.launch("photos")
        harness.request("photos", .interrupt)
        harness.handle(.requestAbandoned(third))
        #expect(harness.state("photos") == .inactive)
    }

    @Test(
        "an interruption ends with the daemon if it was tied to a connection: those of the dead daemon are gone (L13)")
    func recovery() throws {
        let harness = activeHarness()
        harness.request("photos", .interruptWhileConnected)
        var core = LifecycleCore(recovering: try SavedCore(reading: harness.core.saved.bytes))
        #expect(core.difference(from: harness.core) == nil)
        let effects = core.handle(.recovered, at: harness.now)
        #expect(effects.contains(.run(harness.run("photos"), .notify(.didBecomeActive(.interruptionEnded)))))
        #expect(core.state(of: id("photos")) == .active)
    }
}
