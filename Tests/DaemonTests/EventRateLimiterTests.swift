import LifecycleCore
import Testing

@testable import Daemon

@Suite("What one app may have us say")
struct NewsGateTests {
    private let app = AppID("talkative")!
    private let other = AppID("quiet")!

    @Test("Beyond a hundred pieces of news a second an app's own are left out, and then it is said how many")
    func limit() {
        var gate = EventRateLimiter()
        var now = Instant(sinceOrigin: .seconds(5))
        let news = Report.taskBegan(app, name: "a")
        for _ in 0..<EventRateLimiter.perSecond { #expect(gate.judge(news, at: now) == .said) }
        for _ in 0..<7 { #expect(gate.judge(news, at: now) == .unsaid) }
        // The others are heard, and so is what Greenroom itself does with the app.
        #expect(gate.judge(.taskBegan(other, name: "a"), at: now) == .said)
        #expect(gate.judge(.freezeTimedOut(app), at: now) == .said)
        now = Instant(sinceOrigin: .seconds(6))
        #expect(gate.judge(news, at: now) == .saidAfter(app, unsaid: 7))
        #expect(gate.judge(news, at: now) == .said)
    }
}
