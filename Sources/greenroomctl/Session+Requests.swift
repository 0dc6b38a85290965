import Control
import Glibc
import JSON
import Systemd

/// Verbs that ask for a change and wait until it has come about.
extension Session {
    func request() throws(Failure) -> Int32 {
        let client = try connect()
        let app = operands.first ?? ""
        let answer = try client.insisting { () throws(Failure) in try wait(for: app, client) }
        if wantsJSON { try show(answer) }
        let result = Record(answer)
        let sentence = "\(escaped(app)): \(outcome(result))"
        guard isSuccess(result) else { throw Failure(sentence) }
        if !wantsJSON { try show("\(sentence)\n") }
        return 0
    }

    /// Waits for the answer; of another daemon, if the one that was asked is replaced meanwhile (an upgrade, a crash). It has
    /// the request carried out, but does not know who asked.
    private func wait(for app: String, _ client: Client) throws(Failure) -> JSONValue {
        let (member, arguments) = call(for: app)
        let began = Moment.now()
        var lost = 0
        while true {
            do throws(Failure) {
                return try Waiting(client, app: app, screen).wait(for: member, arguments)
            } catch  where error.isLost && lost < Self.mostLost {
                lost += 1
                try client.reconnect()
                guard isWish else {
                    throw Failure("\(escaped(app)): greenroomd was replaced before it answered; it may have been done")
                }
                if let answer = try ending(of: app, since: began, client) { return answer }
            }
        }
    }

    /// Beyond which nobody waits for a daemon that dies again and again.
    private static let mostLost = 10

    /// Whether what is asked for is a state, and so no more when it is asked for twice.
    private var isWish: Bool {
        switch invocation.verb {
        case .launch, .activate, .background, .terminate: true
        default: false
        }
    }

    /// One that has ended meanwhile was launched, and is not launched once more: its receipt is the answer.
    private func ending(of app: String, since began: Moment, _ client: Client) throws(Failure) -> JSONValue? {
        let status = Record(try client.call("Status", [.string(app)]))
        guard status.isNotRunning, let receipt = status.json["lastReceipt"],
            let time = Record(receipt).moment("time"), time.seconds > began.seconds - 0.001
        else { return nil }
        return .object([("outcome", .string("ended")), ("state", .string("notRunning")), ("receipt", receipt)])
    }

    private func call(for app: String) -> (member: String, arguments: [Variant]) {
        let name = Variant.string(app)
        func word(_ index: Int) -> Variant { .string(operands.count > index ? operands[index] : "") }
        switch invocation.verb {
        case .launch: return ("Launch", [name, .dictionary(launchOptions)])
        case .terminate: return ("Terminate", [name, .bool(invocation.has(.remove))])
        case .push: return ("Push", [name, word(1)])
        case .send: return ("Send", [name, word(1), word(2)])
        case .activate: return ("Activate", [name])
        case .background: return ("Background", [name])
        case .interrupt: return ("Interrupt", [name])
        case .resume: return ("Resume", [name])
        case .list, .status, .receipts, .receipt, .watch, .pressure, .verify, .reload, .help, .open, .snapshot, .log,
            .reexec:
            preconditionFailure("\(invocation.verb) is no request")
        }
    }

    private var launchOptions: [(String, Variant)] {
        var options: [(String, Variant)] = []
        if invocation.has(.background) { options.append(("background", .bool(true))) }
        if let reason = invocation.options[.reason] { options.append(("reason", .string(reason))) }
        if let url = invocation.options[.url] { options.append(("url", .string(url))) }
        return options
    }

    private func isSuccess(_ result: Record) -> Bool {
        switch result.json["outcome"]?.stringValue {
        case "done": true
        case "ended": invocation.verb == .terminate
        default: false
        }
    }

    /// What happened, and why.
    private func outcome(_ result: Record) -> String {
        let why = result.text("explanation")
        switch result.json["outcome"]?.stringValue {
        case "done":
            if invocation.verb == .send, result.state == "suspended" {
                return "suspended: it gets the notification when it runs again"
            }
            return stateInWords(result.state) + (why.map { ": \($0)" } ?? "")
        case "ended":
            let receipt = result.record("receipt")
            let number = receipt?.integer("id").map { " (receipt \($0))" } ?? ""
            let sentence = receipt?.text("explanation") ?? why ?? "the daemon does not say why"
            // That it ended is what was asked for then: how it did says it all.
            if invocation.verb == .terminate { return sentence + number }
            let state = receipt?.text("state").map { " " + whileIn($0) } ?? ""
            return "ended\(state): \(sentence)\(number)"
        case "superseded":
            return "\(why ?? "a later request wanted something else"); it is \(stateInWords(result.state)) now"
        default: return "the daemon answered with “\(result.text("outcome") ?? "nothing")”, which means nothing here"
        }
    }

    private func stateInWords(_ state: String) -> String { state == "notRunning" ? "not running" : state }
}
