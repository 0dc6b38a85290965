import LifecycleCore
import Testing

/// The answer to each request in each phase: immediately, with the state then, and after the transition in progress,
/// with the state then. “–” means that the request waits.
@Suite("Requests by phase")
struct PhaseTableTests {
    typealias Row = (request: String, now: String, then: String)

    static let requests: [String: Request] = [
        "launch": .launch(.foreground, reason: .user, url: nil),
        "launch --background": .launch(.background, reason: .user, url: nil),
        "fetch": .launch(.background, reason: .fetch, url: nil),
        "activate": .activate, "background": .background, "interrupt": .interrupt, "resume": .endInterruption,
        "terminate": .terminate, "remove": .remove, "push": .push(payload: "p"),
        "send": .send(Notification(kind: "battery", payload: "9")!),
    ]

    static let table: [(stage: Stage, rows: [Row])] = [
        (
            .notRunning,
            [
                ("launch", "– launching", "done(active) active"),
                ("launch --background", "– launching", "done(background) background"),
                ("fetch", "– launching", "done(background) background"),
                ("activate", "– launching", "done(active) active"),
                ("background", "refused(notRunning) notRunning", "notRunning"),
                ("interrupt", "refused(notRunning) notRunning", "notRunning"),
                ("resume", "refused(notRunning) notRunning", "notRunning"),
                ("terminate", "refused(notRunning) notRunning", "notRunning"),
                ("remove", "done(notRunning) notRunning", "notRunning"),
                ("push", "– launching", "done(background) background"),
                ("send", "refused(notRunning) notRunning", "notRunning"),
            ]
        ),
        (
            .launching,
            [
                ("launch", "– launching", "done(active) active"),
                ("launch --background", "– launching", "done(active) active"),
                ("fetch", "– launching", "done(active) active"),
                ("activate", "– launching", "done(active) active"),
                ("background", "– launching", "done(background) background"),
                ("interrupt", "done(launching) launching", "inactive"),
                ("resume", "refused(notInterrupted) launching", "active"),
                ("terminate", "– launching", "ended notRunning"),
                ("remove", "ended notRunning", "notRunning"),
                ("push", "– launching", "done(active) active"),
                ("send", "done(launching) launching", "active"),
            ]
        ),
        (
            .active,
            [
                ("launch", "done(active) active", "active"),
                ("launch --background", "done(active) active", "active"),
                ("fetch", "done(active) active", "active"),
                ("activate", "done(active) active", "active"),
                ("background", "done(background) background", "background"),
                ("interrupt", "done(inactive) inactive", "inactive"),
                ("resume", "refused(notInterrupted) active", "active"),
                ("terminate", "ended notRunning", "notRunning"),
                ("remove", "ended notRunning", "notRunning"),
                ("push", "done(active) active", "active"),
                ("send", "done(active) active", "active"),
            ]
        ),
        (
            .inactive,
            [
                ("launch", "done(inactive) inactive", "inactive"),
                ("launch --background", "done(inactive) inactive", "inactive"),
                ("fetch", "done(inactive) inactive", "inactive"),
                ("activate", "done(inactive) inactive", "inactive"),
                ("background", "done(background) background", "background"),
                ("interrupt", "done(inactive) inactive", "inactive"),
                ("resume", "done(active) active", "active"),
                ("terminate", "ended notRunning", "notRunning"),
                ("remove", "ended notRunning", "notRunning"),
                ("push", "done(inactive) inactive", "inactive"),
                ("send", "done(inactive) inactive", "inactive"),
            ]
        ),
        (
            .entering,
            [
                ("launch", "– background", "done(active) active"),
                ("launch --background", "– background", "done(background) background"),
                ("fetch", "– background", "done(background) background"),
                ("activate", "– background", "done(active) active"),
                ("background", "– background", "done(background) background"),
                ("interrupt", "refused(notInForeground) background", "background"),
                ("resume", "refused(notInterrupted) background", "background"),
                ("terminate", "– background", "ended notRunning"),
                ("remove", "ended notRunning", "notRunning"),
                ("push", "– background", "done(background) background"),
                ("send", "done(background) background", "background"),
            ]
        ),
        (
            .running,
            [
                ("launch", "done(active) active", "active"),
                ("launch --background", "done(background) background", "background"),
                ("fetch", "done(background) background", "background"),
                ("activate", "done(active) active", "active"),
                ("background", "done(background) background", "background"),
                ("interrupt", "refused(notInForeground) background", "background"),
                ("resume", "refused(notInterrupted) background", "background"),
                ("terminate", "ended notRunning", "notRunning"),
                ("remove", "ended notRunning", "notRunning"),
                ("push", "done(background) background", "background"),
                ("send", "done(background) background", "background"),
            ]
        ),
        (
            .suspending,
            [
                ("launch", "done(active) active", "active"),
                ("launch --background", "done(background) background", "suspended"),
                ("fetch", "done(background) background", "background"),
                ("activate", "done(active) active", "active"),
                ("background", "done(background) background", "suspended"),
                ("interrupt", "refused(notInForeground) background", "suspended"),
                ("resume", "refused(notInterrupted) background", "suspended"),
                ("terminate", "ended notRunning", "notRunning"),
                ("remove", "ended notRunning", "notRunning"),
                ("push", "done(background) background", "background"),
                ("send", "done(background) background", "suspended"),
            ]
        ),
        (
            .suspended,
            [
                ("launch", "done(active) active", "active"),
                ("launch --background", "done(suspended) suspended", "suspended"),
                ("fetch", "done(background) background", "background"),
                ("activate", "done(active) active", "active"),
                ("background", "done(suspended) suspended", "suspended"),
                ("interrupt", "refused(notInForeground) suspended", "suspended"),
                ("resume", "refused(notInterrupted) suspended", "suspended"),
                ("terminate", "ended notRunning", "notRunning"),
                ("remove", "ended notRunning", "notRunning"),
                ("push", "done(background) background", "background"),
                ("send", "done(suspended) suspended", "suspended"),
            ]
        ),
        (
            .waking,
            [
                ("launch", "– background", "done(active) active"),
                ("launch --background", "– background", "done(background) background"),
                ("fetch", "– background", "done(background) background"),
                ("activate", "– background", "done(active) active"),
                ("background", "– background", "done(background) background"),
                ("interrupt", "refused(notInForeground) background", "background"),
                ("resume", "refused(notInterrupted) background", "background"),
                ("terminate", "– background", "ended notRunning"),
                ("remove", "ended notRunning", "notRunning"),
                ("push", "– background", "done(background) background"),
                ("send", "done(background) background", "background"),
            ]
        ),
        (
            .terminating,
            [
                ("launch", "– terminating", "done(active) active"),
                ("launch --background", "– terminating", "done(background) background"),
                ("fetch", "– terminating", "done(background) background"),
                ("activate", "– terminating", "done(active) active"),
                ("background", "refused(ending) terminating", "notRunning"),
                ("interrupt", "refused(notInForeground) terminating", "notRunning"),
                ("resume", "refused(notInterrupted) terminating", "notRunning"),
                ("terminate", "– terminating", "ended notRunning"),
                ("remove", "ended notRunning", "notRunning"),
                ("push", "– terminating", "done(background) background"),
                ("send", "refused(ending) terminating", "notRunning"),
            ]
        ),
        (
            .ending,
            [
                ("launch", "– terminating", "done(active) active"),
                ("launch --background", "– terminating", "done(background) background"),
                ("fetch", "– terminating", "done(background) background"),
                ("activate", "– terminating", "done(active) active"),
                ("background", "refused(ending) terminating", "notRunning"),
                ("interrupt", "refused(notInForeground) terminating", "notRunning"),
                ("resume", "refused(notInterrupted) terminating", "notRunning"),
                ("terminate", "– terminating", "ended notRunning"),
                ("remove", "– terminating", "ended notRunning"),
                ("push", "– terminating", "done(background) background"),
                ("send", "refused(ending) terminating", "notRunning"),
            ]
        ),
    ]

    @Test("every stage is in the table")
    func isComplete() { #expect(Self.table.map(\.stage) == Stage.allCases) }

    @Test(
        "each request in each phase is answered, immediately or after the transition in progress",
        arguments: table.map(\.stage))
    func answers(stage: Stage) throws {
        let rows = try #require(Self.table.first { $0.stage == stage }?.rows)
        #expect(Set(rows.map(\.request)) == Set(Self.requests.keys))
        for row in rows {
            let harness = Harness("photos") {
                $0.readiness = .notified; $0.backgroundModes = [.push, .fetch]
            }
            harness.move("photos", to: stage)
            let run = harness.core.run(of: id("photos"))
            let request = harness.request("photos", try #require(Self.requests[row.request]))
            let now = Self.describe(harness.answers[request]) + " " + harness.state("photos")!.rawValue
            #expect(now == row.now, "\(row.request) in \(stage)")
            harness.finish("photos", stage, run ?? harness.core.run(of: id("photos")))
            let answer = row.now.hasPrefix("–") ? Self.describe(harness.answers[request]) + " " : ""
            #expect(answer + harness.state("photos")!.rawValue == row.then, "\(row.request) in \(stage)")
        }
    }

    private static func describe(_ answer: Answer?) -> String {
        switch answer {
        case nil: "–"
        case .done(let state): "done(\(state.rawValue))"
        case .refused(let refusal): "refused(\(refusal))"
        case .superseded(let state): "superseded(\(state.rawValue))"
        case .ended: "ended"
        case .simulated: "simulated"
        }
    }
}
