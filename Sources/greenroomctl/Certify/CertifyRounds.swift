import Control
import JSON
import LifecycleCore
import Systemd

/// What sends requests to an app while it is suspended.
protocol CertifyRequester {
    /// Opens what is to be open while the app is suspended.
    /// - Returns: what is wrong; `nil`: nothing.
    func prepare() -> String?
    /// Sends the request of a round, or lets it be sent. Does not wait.
    /// - Returns: what is wrong; `nil`: nothing.
    func send(_ round: Int) -> String?
    /// Waits for the answer.
    /// - Returns: what is wrong; `nil`: it is right.
    func answer(to round: Int, _ app: Rehearsal) throws(Failure) -> String?
    /// What was right, after so many rounds.
    func finding(_ rounds: Int) -> String
}

extension CertifyRequester {
    /// How often the app was suspended.
    static func freezes(_ rounds: Int) -> String { rounds == 1 ? "a freeze" : "\(rounds) freezes" }
}

/// The rounds of the step "requests". In each one the app is suspended, and gets a request.
struct CertifyRounds: Equatable {
    /// Those whose answer was right.
    private(set) var done = 0
    /// Those in which the app was not suspended in time, so that nothing was sent.
    private(set) var awake = 0
    /// Why it was not, at most `mostReasons`.
    private(set) var reasons: [String] = []
    /// How often it was suspended before the last request.
    private(set) var suspensions = 0
    /// Suspensions that ended before a request was sent.
    private(set) var otherWakes = 0
    /// Suspensions that began before the step.
    private var earlier = 0
    /// The times of the answers.
    private(set) var times: [Duration] = []
    /// The shortest tick of the app (L51).
    private(set) var shortestWait: Duration?
    /// What of it cannot be watched, at most `mostReasons`.
    private(set) var notWatched: [String] = []

    /// An app that is woken within 1s of its suspension, several times in turn, is left awake (L50).
    private static let rest = Duration.milliseconds(1100)
    /// So many rounds in turn may go wrong: an app that was suspended before is not; an answer without a thaw.
    private static let mostInTurn = 3
    private static let mostReasons = 4
    /// What the daemon reports of a thaw arrives at once, but for a busy machine.
    private static let reportTime = Duration.seconds(3)

    /// By nearest rank; `nil`: no round is done.
    var median: Duration? { times.isEmpty ? nil : times.sorted()[(times.count - 1) / 2] }

    var json: JSONValue {
        var members: [(String, JSONValue)] = [
            ("rounds", .integer(Int64(done))), ("awakeRounds", .integer(Int64(awake))),
            ("suspensions", .integer(Int64(suspensions))), ("otherWakes", .integer(Int64(otherWakes))),
            ("awake", .array(reasons.map { .string($0) })), ("notWatched", .array(notWatched.map { .string($0) })),
        ]
        if let median { members.append(("answerSeconds", median.json)) }
        if let shortestWait { members.append(("shortestWaitSeconds", shortestWait.json)) }
        return .object(members)
    }

    /// Takes the app through the rounds.
    static func play(_ app: Rehearsal, _ requester: some CertifyRequester) throws(Failure) -> CertifyOutcome {
        var rounds = CertifyRounds()
        let problem = try rounds.play(app, requester)
        rounds.inspect(app)
        var outcome = problem ?? rounds.outcome(app, requester)
        outcome.rounds = rounds
        return outcome
    }

    private func outcome(_ app: Rehearsal, _ requester: some CertifyRequester) -> CertifyOutcome {
        let why = reasons.joined(separator: "; ")
        guard done > 0 else { return .notApplicable("it is not suspended: \(why)") }
        let how = app.isWokenByInput ? "woken by each request" : "activated for each request"
        let more = awake == 1 ? "another round" : "\(awake) more rounds"
        let missing = awake == 0 ? "" : "; in \(more) it was not suspended: \(why)"
        return .handled("\(requester.finding(done)); \(how)\(missing)", median)
    }

    /// - Returns: what broke.
    private mutating func play(
        _ app: Rehearsal, _ requester: some CertifyRequester
    ) throws(Failure) -> CertifyOutcome? {
        var (awakeInTurn, unseenInTurn) = (0, 0)
        for round in 1...app.options.rounds {
            if let problem = requester.prepare() { return .broken(problem) }
            if let reason = try awaitSuspension(app) {
                if let end = try end(app, isExpected: true) { return end }
                awake += 1
                awakeInTurn += 1
                Self.add(reason, to: &reasons)
                if done == 0 || awakeInTurn == Self.mostInTurn { break }
                continue
            }
            awakeInTurn = 0
            try app.readArrived()
            let start = EventLoop.now()
            let reports = app.events.count
            count(app.events)
            let problem = try exchange(round, app, requester)
            if let end = try end(app, isExpected: problem != nil) { return end }
            if let problem { return .broken(problem) }
            times.append(EventLoop.now() - start)
            done += 1
            // An app with ticks may get a request while it runs for a moment, which is not reported (L51).
            unseenInTurn = try isWoken(app, since: reports) ? 0 : unseenInTurn + 1
            if unseenInTurn == min(Self.mostInTurn, app.options.rounds) {
                let rounds = unseenInTurn == 1 ? "a round" : "\(unseenInTurn) rounds in turn"
                return .broken("it stayed suspended in \(rounds) with a right answer: the requests did not reach it")
            }
        }
        return nil
    }

    private func exchange(
        _ round: Int, _ app: Rehearsal, _ requester: some CertifyRequester
    ) throws(Failure) -> String? {
        if let problem = requester.send(round) { return problem }
        if !app.isWokenByInput { _ = try app.request("Activate") }
        return try requester.answer(to: round, app)
    }

    /// Waits until the app was suspended again, and has been for `rest`.
    /// - Returns: why it was not; `nil`: it was.
    private func awaitSuspension(_ app: Rehearsal) throws(Failure) -> String? {
        let state = try app.status().state
        if state == "active" || state == "inactive" { _ = try app.request("Background") }
        let limit = EventLoop.now() + Rehearsal.longestWait
        while true {
            guard try app.suspend(hasBeen: done > 0) else { return app.awake ?? "it does not run" }
            guard app.isWokenByInput else { return nil }
            let isWoken = try app.wait(atMost: Self.rest) { () throws(Failure) in
                // What has arrived may say that it is suspended, as the status does.
                try app.readArrived()
                return app.last(.ended) != nil || app.last(.stateChanged).map { $0.state != "suspended" } ?? false
            }
            if !isWoken { return nil }
            if EventLoop.now() > limit {
                return "it is woken before it has been suspended for \(Self.rest.timeSpan)"
            }
        }
    }

    /// Counts what came before a request.
    private mutating func count(_ events: [LifecycleEvent]) {
        let reported = events.count { $0.kind == LifecycleEvent.Kind.stateChanged.rawValue && $0.state == "suspended" }
        // The suspension that began before the step is not reported in it.
        if suspensions == 0, reported == 0 { earlier = 1 }
        suspensions = earlier + reported
        otherWakes = max(0, suspensions - done - 1)
    }

    private func isWoken(_ app: Rehearsal, since reports: Int) throws(Failure) -> Bool {
        try app.wait(atMost: Self.reportTime) { () throws(Failure) in
            app.events[reports...].contains {
                $0.kind == LifecycleEvent.Kind.stateChanged.rawValue && $0.state != "suspended"
            }
        }
    }

    /// The end of the app. If an answer is missing, it is waited for: a connection may end before it is reported.
    private func end(_ app: Rehearsal, isExpected: Bool) throws(Failure) -> CertifyOutcome? {
        _ = try app.wait(atMost: isExpected ? .milliseconds(500) : .zero) { () throws(Failure) in
            try app.readArrived()
            return app.last(.ended) != nil
        }
        try app.stopIfInterrupted()
        return try app.unexpectedEnd()
    }

    private mutating func inspect(_ app: Rehearsal) {
        shortestWait = (try? app.status())?.shortestWait
        for event in app.events where event.kind == LifecycleEvent.Kind.inputNotWatched.rawValue {
            let prefix = "\(app.id): "
            let text = event.message.hasPrefix(prefix) ? String(event.message.dropFirst(prefix.count)) : event.message
            Self.add(Rehearsal.withoutStop(text), to: &notWatched)
        }
    }

    private static func add(_ sentence: String, to list: inout [String]) {
        if list.count < mostReasons, !list.contains(sentence) { list.append(sentence) }
    }
}
