import LifecycleCore
import Testing

@testable import Daemon

@Suite("Rate limit of log entries")
struct EventRateLimiterTests {
    private let app = AppID("talkative")!
    private let other = AppID("quiet")!

    @Test("if an app causes more than 100 reports in a second, the excess is suppressed and counted")
    func limit() {
        var limiter = EventRateLimiter()
        let report = Report.taskBegan(app, name: "a")
        var now = Instant(sinceOrigin: .seconds(5))
        for _ in 0..<EventRateLimiter.perSecond { #expect(limiter.judge(report, at: now) == .accepted) }
        for _ in 0..<7 { #expect(limiter.judge(report, at: now) == .suppressed) }
        // Other apps, and reports that the app cannot cause at will, are not limited.
        #expect(limiter.judge(.taskBegan(other, name: "a"), at: now) == .accepted)
        #expect(limiter.judge(.freezeTakesLong(app), at: now) == .accepted)
        now = Instant(sinceOrigin: .seconds(6))
        #expect(limiter.judge(report, at: now) == .acceptedAfter(app, suppressed: 7))
        #expect(limiter.judge(report, at: now) == .accepted)
    }

    @Test("what wakes an app is limited like what the app says: peers decide how often it happens (L50)")
    func traffic() {
        var limiter = EventRateLimiter()
        let now = Instant(sinceOrigin: .seconds(5))
        let report = Report.inputArrived(app, Input(kind: .stream, pid: 1, descriptor: 3, bytes: 1))
        for _ in 0..<EventRateLimiter.perSecond { #expect(limiter.judge(report, at: now) == .accepted) }
        #expect(limiter.judge(report, at: now) == .suppressed)
        let locks = Report.locksHeld(app, FileLocks(count: 1, file: "/f"), isSuspended: false)
        #expect(limiter.judge(locks, at: now) == .suppressed)
        #expect(limiter.judge(.wokenTooOften(app, staysAwake: .seconds(2)), at: now) == .accepted)
    }

    @Test("an app that was removed starts with a new window")
    func removedApp() {
        var limiter = EventRateLimiter()
        let now = Instant(sinceOrigin: .seconds(5))
        for _ in 0...EventRateLimiter.perSecond { _ = limiter.judge(.taskBegan(app, name: "a"), at: now) }
        limiter.remove(app)
        #expect(limiter.judge(.taskBegan(app, name: "a"), at: now) == .accepted)
    }
}
