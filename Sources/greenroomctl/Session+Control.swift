import Control
import Glibc
import Systemd

/// Verbs that change an app's state and wait until the change is done.
extension Session {
    func request() throws(Failure) -> Int32 {
        let client = try connect()
        let app = operands.first ?? ""
        let result = try client.withAuthorization { () throws(Failure) in try wait(for: app, client) }
        if wantsJSON { try show(result.json) }
        let sentence = "\(escaped(app)): \(sentence(result))"
        guard isSuccess(result) else {
            let hint = result.lastReceipt.map { "See: greenroomctl receipt \($0.id)" }
            throw Failure(sentence, hint: hint)
        }
        if !wantsJSON { try show("\(sentence)\n") }
        if invocation.has(.whileConnected) { try holdConnection(client) }
        return 0
    }

    /// Keeps the connection, with which the interruption ends, until Ctrl-C.
    /// - Throws: once the daemon has closed it.
    private func holdConnection(_ client: Client) throws(Failure) {
        Waiting.endsAtInterrupt()
        if screen.errorIsTerminal, screen.isTerminal {
            try write(screen.paint("Press Ctrl-C to end the interruption.", .faint) + "\n", to: STDERR_FILENO)
        }
        while true { _ = try client.nextEvent() }
    }

    /// Waits for the answer. If the daemon is replaced meanwhile (an upgrade, a crash), the next one carries the request
    /// out, but does not know this client: it is asked again.
    private func wait(for app: String, _ client: Client) throws(Failure) -> RequestResult {
        let (member, arguments) = call(for: app)
        let began = Timestamp.now()
        var lost = 0
        while true {
            do throws(Failure) {
                return try Waiting(client, app: app, screen).wait(for: member, arguments)
            } catch  where error.isLost && lost < Self.maximumReconnects {
                lost += 1
                try client.reconnect()
                guard isIdempotent else {
                    throw Failure(
                        "\(escaped(app)): greenroomd was replaced before it answered; the request may have been "
                            + "carried out.")
                }
                if let result = try ended(app, since: began, client) { return result }
            } catch  where lost > 0 {
                // The next daemon may have answered the query above before it noticed that the app had ended.
                if let result = try ended(app, since: began, client) { return result }
                throw error
            }
        }
    }

    /// After this many losses of the connection, the request fails.
    private static let maximumReconnects = 10

    /// Whether the verb asks for a state, so that a repeated request changes nothing more.
    private var isIdempotent: Bool {
        switch invocation.verb {
        case .launch, .activate, .background, .terminate: true
        default: false
        }
    }

    /// The answer for an app that ended since the request was sent: it was launched, and must not be launched again.
    private func ended(_ app: String, since began: Timestamp, _ client: Client) throws(Failure) -> RequestResult? {
        let status = try client.call("Status", [.string(app)], as: AppStatus.self)
        guard status.isNotRunning, let receipt = status.lastReceipt, receipt.time >= began else { return nil }
        var result = RequestResult(.ended, state: status.state)
        result.lastReceipt = receipt
        return result
    }

    private func call(for app: String) -> (member: String, arguments: [Variant]) {
        let name = Variant.string(app)
        func operand(_ index: Int) -> Variant { .string(operands.count > index ? operands[index] : "") }
        switch invocation.verb {
        case .launch: return ("Launch", [name, launchOptions.variant])
        case .terminate: return ("Terminate", [name, .bool(invocation.has(.remove))])
        case .push: return ("Push", [name, operand(1)])
        case .send: return ("Send", [name, operand(1), operand(2)])
        case .activate: return ("Activate", [name])
        case .background: return ("Background", [name])
        case .interrupt:
            return (invocation.has(.whileConnected) ? "InterruptWhileConnected" : "Interrupt", [name])
        case .resume: return ("Resume", [name])
        case .list, .status, .receipts, .receipt, .watch, .pressure, .verify, .reload, .help, .open, .snapshot, .log,
            .reexec:
            preconditionFailure("\(invocation.verb) is not a request")
        }
    }

    private var launchOptions: LaunchOptions {
        var options = LaunchOptions()
        if invocation.has(.background) { options.background = true }
        options.reason = invocation.options[.reason]
        options.url = invocation.options[.url]
        return options
    }

    private func isSuccess(_ result: RequestResult) -> Bool {
        switch RequestResult.Outcome(rawValue: result.outcome) {
        case .done: true
        case .ended: invocation.verb == .terminate
        case .superseded, nil: false
        }
    }

    private func sentence(_ result: RequestResult) -> String {
        let state = stateInWords(result.state ?? "")
        switch RequestResult.Outcome(rawValue: result.outcome) {
        case .done:
            if invocation.verb == .send, result.state == "suspended" {
                return "suspended; the notification is delivered when the app resumes"
            }
            return result.wakeID.map { "\(state), push \($0)" } ?? state
        case .ended:
            let explanation = result.lastReceipt?.explanation ?? result.explanation ?? "Ended for an unknown reason."
            // The end is the requested result: its receipt is named here, and not as a hint of a failure.
            guard invocation.verb != .terminate else {
                return explanation + (result.lastReceipt.map { " (receipt \($0.id))" } ?? "")
            }
            let before = result.lastReceipt.map { "ended \(period(of: $0.state)): " } ?? ""
            return before + explanation
        case .superseded:
            return "\(result.explanation ?? "A later request asked for another state.") It is \(state) now."
        case nil: return "unknown answer '\(result.outcome)' of greenroomd"
        }
    }

    /// When an app ended: "while launching".
    private func period(of state: String) -> String {
        switch state {
        case "background": "in the background"
        case "notRunning": "before it ran"
        default: "while \(state)"
        }
    }
}
