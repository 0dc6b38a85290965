import Glibc
import JSON

/// The whole program but for its exit.
/// - Returns: the exit status: 0 done, 1 failed, 2 wrong usage, 3 for the status of an app that is not running.
package func runCommandLine(_ arguments: [String], _ environment: Environment) -> Int32 {
    do throws(Failure) {
        switch Invocation.parse(arguments) {
        case .show(let text):
            try write(text, to: STDOUT_FILENO)
            return 0
        case .wrong(let sentence): throw Failure(sentence, status: 2, hint: "Try: \(helpCommand(arguments))")
        case .run(let invocation): return try Session(invocation, environment).perform()
        }
    } catch {
        complain(error)
        return error.status
    }
}

/// Who got as far as a verb is shown what that one takes.
private func helpCommand(_ arguments: [String]) -> String {
    let verb = arguments.first { !$0.hasPrefix("-") }.flatMap { Verb(rawValue: $0) }
    return "greenroomctl help" + (verb.map { $0 == .help ? "" : " \($0.rawValue)" } ?? "")
}

/// One command on its way.
struct Session {
    let invocation: Invocation
    let environment: Environment
    let screen: Screen

    init(_ invocation: Invocation, _ environment: Environment) {
        self.invocation = invocation
        self.environment = environment
        screen = Screen(environment)
    }

    var operands: [String] { invocation.operands }
    var wantsJSON: Bool { invocation.has(.json) }

    func perform() throws(Failure) -> Int32 {
        switch invocation.verb {
        case .list: try list()
        case .status: try status()
        case .receipts: try receipts()
        case .receipt: try receipt()
        case .watch: try watch()
        case .launch, .activate, .background, .interrupt, .resume, .terminate, .push, .send: try request()
        case .pressure: try pressure()
        case .verify: try verify()
        case .reload: try reload()
        case .reexec: try reexec()
        case .help: 0
        case .log: try log()
        case .open, .snapshot: throw Failure("“\(invocation.verb.rawValue)” is not there yet")
        }
    }

    func connect() throws(Failure) -> Client {
        try Client(try Endpoint(invocation, environment), hasUser: !wantsJSON && isatty(STDIN_FILENO) == 1)
    }

    func show(_ text: String) throws(Failure) {
        try write(text, to: STDOUT_FILENO)
    }

    /// One document; spread over lines for people.
    func show(_ json: JSONValue) throws(Failure) {
        try show(json.serialized(pretty: screen.isTerminal) + "\n")
    }

    /// An instant: how long ago on a terminal, in RFC 3339 elsewhere.
    func when(_ record: Record, _ key: String) -> String? {
        guard screen.isTerminal, let moment = record.moment(key) else { return record.text(key) }
        return ago(Moment.now().seconds - moment.seconds)
    }

    /// An instant in full, for sheets.
    func whenInFull(_ record: Record, _ key: String) -> String? {
        guard let moment = record.moment(key) else { return record.text(key) }
        let past = ago(Moment.now().seconds - moment.seconds)
        return screen.isTerminal ? "\(moment.local("%F %T")) (\(past))" : record.text(key)
    }
}
