import Control
import Systemd

/// The requests of one command line: one for each app. They are sent at once (over the message bus, a few at a time), and their
/// answers are taken as they come.
///
/// If the daemon is replaced meanwhile (an upgrade, a crash), the next one carries the requests out, but does not know this
/// client: it is asked again.
final class RequestBatch {
    struct Call {
        let member: String
        let arguments: [Variant]
        /// Whether the call asks for a state, so that repeating it changes nothing more.
        let isIdempotent: Bool
        /// Whether no other call of this kind may be unanswered: an app that is launched into the foreground moves another one,
        /// which is still being launched, to the background.
        var isSequential = false
    }

    private struct Job {
        let app: String
        /// Made one after the other: `restart` has two.
        let calls: [Call]
        var step = 0
        var pending: BusConnection.Pending?
        /// When the call of this step was first made.
        var began: Timestamp?
        var result: Result<RequestResult, Failure>?

        /// The call of this step.
        var call: Call { calls[step] }

        var isRefused: Bool {
            if case .failure(let failure)? = result { failure.isRefusal } else { false }
        }
    }

    private let client: Client
    private let screen: Screen
    private var jobs: [Job]
    /// Called with each result, in the order in which the answers come. Not with a refusal of this user: it may be repeated
    /// with an authorization.
    private let onResult: (String, Result<RequestResult, Failure>) -> Void
    private var lost = 0

    /// After this many losses of the connection, the requests fail.
    private static let maximumReconnects = 10

    init(
        _ client: Client, _ screen: Screen, _ requests: [(app: String, calls: [Call])],
        onResult: @escaping (String, Result<RequestResult, Failure>) -> Void
    ) {
        self.client = client
        self.screen = screen
        self.onResult = onResult
        jobs = requests.map { Job(app: $0.app, calls: $0.calls) }
    }

    /// The refusals of this user, which `onResult` was not called with.
    var refusals: [(app: String, failure: Failure)] {
        jobs.compactMap { job -> (app: String, failure: Failure)? in
            guard case .failure(let failure)? = job.result, failure.isRefusal else { return nil }
            return (app: job.app, failure: failure)
        }
    }

    /// Makes all requests that have no result, or were refused, and waits for their results.
    /// - Throws: the first refusal, or the error that no request can be made any more.
    func run() throws(Failure) {
        for index in jobs.indices where jobs[index].isRefused { jobs[index].result = nil }
        let wait = Waiting(jobs.filter { $0.result == nil }.map(\.app), client, screen)
        defer { wait.clear() }
        while true {
            do throws(Failure) {
                try serve(wait)
                break
            } catch  where error.isLost && lost < Self.maximumReconnects {
                lost += 1
                try client.reconnect()
                try recover()
            } catch  where lost > 0 {
                // The next daemon may have answered the query of `recover` before it noticed that an app had ended.
                try recover()
                if jobs.contains(where: { $0.result == nil }) { throw error }
            }
        }
        if let refusal = refusals.first { throw refusal.failure }
    }

    /// Makes all requests and waits until the daemon has received them. What is not answered by then counts as requested.
    /// Where the requests would be lost with the connection, waits for all answers.
    func runWithoutWaiting() throws(Failure) {
        guard client.mayDisconnect else { return try run() }
        for index in jobs.indices where jobs[index].isRefused { jobs[index].result = nil }
        for index in jobs.indices where jobs[index].result == nil { try send(index) }
        // The daemon handles the calls of a client in their order.
        _ = try client.call("Version", as: String.self)
        for index in jobs.indices where jobs[index].result == nil {
            try take(index)
            if jobs[index].result == nil, jobs[index].pending != nil {
                jobs[index].pending = nil
                finish(index, .success(.requested))
            }
        }
        if let refusal = refusals.first { throw refusal.failure }
    }

    // MARK: Answers

    private func serve(_ wait: Waiting) throws(Failure) {
        while true {
            try sendNext()
            let waiting = jobs.indices.filter { jobs[$0].pending != nil }
            guard let first = waiting.first else { return }
            try client.wait(forAnyOf: waiting.compactMap { jobs[$0].pending }, until: wait.nextUpdate)
            var isAnswered = false
            for index in waiting where jobs[index].pending?.result != nil {
                isAnswered = true
                wait.clear()
                try take(index)
            }
            if !isAnswered { wait.update(jobs[first].app, others: waiting.count - 1) }
        }
    }

    /// Makes the calls that are due, as many as may be unanswered.
    private func sendNext() throws(Failure) {
        var unanswered = jobs.count { $0.pending != nil }
        for index in jobs.indices where jobs[index].result == nil && jobs[index].pending == nil {
            if jobs[index].call.isSequential, jobs.contains(where: { $0.pending != nil && $0.call.isSequential }) {
                continue
            }
            guard unanswered < client.maximumUnanswered else { return }
            try send(index)
            unanswered += 1
        }
    }

    private func send(_ index: Int) throws(Failure) {
        let call = jobs[index].calls[jobs[index].step]
        if jobs[index].began == nil { jobs[index].began = Timestamp.now() }
        jobs[index].pending = try client.begin(call.member, call.arguments)
    }

    /// Takes the answer, if it has arrived.
    private func take(_ index: Int) throws(Failure) {
        guard let pending = jobs[index].pending, pending.result != nil else { return }
        do throws(Failure) {
            guard let answer = try client.answer(pending, until: nil, as: RequestResult.self) else { return }
            advance(index, .success(answer))
        } catch  where error.isLost {
            throw error
        } catch {
            // The next daemon may have noticed only now that the app had ended.
            let began = lost > 0 ? jobs[index].began : nil
            if let began, let result = try ended(jobs[index].app, since: began) {
                advance(index, .success(result))
            } else {
                advance(index, .failure(error))
            }
        }
    }

    /// Prepares the next call of an app, which `sendNext` makes, or records the result of its last one.
    private func advance(_ index: Int, _ result: Result<RequestResult, Failure>) {
        jobs[index].pending = nil
        let isLast = jobs[index].step + 1 == jobs[index].calls.count
        guard !isLast, Self.meansEnd(result) else { return finish(index, result) }
        jobs[index].step += 1
        jobs[index].began = nil
    }

    /// Whether the app has ended, or was not running.
    private static func meansEnd(_ result: Result<RequestResult, Failure>) -> Bool {
        switch result {
        case .success(let result): RequestResult.Outcome(rawValue: result.outcome) != .superseded
        case .failure(let failure): failure.name == ControlNames.Failure.notRunning.name
        }
    }

    private func finish(_ index: Int, _ result: Result<RequestResult, Failure>) {
        jobs[index].result = result
        if !jobs[index].isRefused { onResult(jobs[index].app, result) }
    }

    // MARK: The next daemon

    /// Finds the results of requests that the previous daemon did not answer, as far as the next one knows them.
    private func recover() throws(Failure) {
        for index in jobs.indices where jobs[index].result == nil {
            let call = jobs[index].calls[jobs[index].step]
            jobs[index].pending = nil
            guard call.isIdempotent else {
                let sentence =
                    "\(escaped(jobs[index].app)): greenroomd was replaced before it answered; the request may have been "
                    + "carried out."
                finish(index, .failure(Failure(sentence)))
                continue
            }
            if let began = jobs[index].began, let result = try ended(jobs[index].app, since: began) {
                advance(index, .success(result))
            }
        }
    }

    /// The answer for an app that ended since the request was sent: it was launched, and must not be launched again.
    private func ended(_ app: String, since began: Timestamp) throws(Failure) -> RequestResult? {
        let status = try client.call("Status", [.string(app)], as: AppStatus.self)
        guard status.isNotRunning, let receipt = status.lastReceipt, receipt.time >= began else { return nil }
        var result = RequestResult(.ended, state: status.state)
        result.lastReceipt = receipt
        return result
    }
}

extension RequestResult {
    /// The outcome of `--no-block`; it never comes from the daemon.
    static let requestedOutcome = "requested"

    fileprivate static var requested: RequestResult {
        var result = RequestResult()
        result.outcome = requestedOutcome
        return result
    }
}
