import Control
import Glibc
import JSON

/// Runs the command line.
///
/// - Returns: the exit status: 0 success, 1 failure, 2 usage error, 3 for `status` and `is-active` of an app that is not
///   running.
package func runCommandLine(_ arguments: [String], _ environment: Environment) -> Int32 {
    let screen = Screen(environment)
    do throws(Failure) {
        switch Invocation.parse(arguments) {
        case .show(let text):
            try write(screen.width.map { reflowed(text, to: $0) } ?? text, to: STDOUT_FILENO)
            return 0
        case .wrong(let sentence):
            throw Failure(
                sentence, status: Failure.wrongUsage, hint: "Try '\(helpCommand(arguments))' for more information.")
        case .run(let invocation): return try Session(invocation, environment).perform()
        }
    } catch {
        printError(error, asJSON: Invocation.wantsJSON(arguments), width: screen.errorWidth)
        // The other numbers are the command's.
        return Invocation.verb(in: arguments) == .run ? RunOptions.failed : error.status
    }
}

/// The help of the verb, if the line has one.
private func helpCommand(_ arguments: [String]) -> String {
    let verb = Invocation.verb(in: arguments)
    return "greenroomctl help" + (verb.map { $0 == .help ? "" : " \($0.rawValue)" } ?? "")
}

/// One invocation of a verb.
struct Session {
    let invocation: Invocation
    let environment: Environment
    let screen: Screen
    /// Nothing is printed to standard output.
    var isSilent = false

    init(_ invocation: Invocation, _ environment: Environment) {
        self.invocation = invocation
        self.environment = environment
        screen = Screen(environment)
    }

    var operands: [String] { invocation.operands }
    var apps: [String] { Array(invocation.apps) }
    var wantsJSON: Bool { invocation.has(.json) }
    /// Whether details are shown.
    var isVerbose: Bool { invocation.has(.verbose) || invocation.verb == .explain }

    func perform() throws(Failure) -> Int32 {
        switch invocation.verb {
        case .list: try list()
        case .status, .explain: try status()
        case .receipts: try receipts()
        case .receipt: try receipt()
        case .watch: try watch()
        case .show: try showProperties()
        case .isActive: try isActive()
        case .idle: try idle()
        case .listTimers: try listTimers()
        case .cat: try cat()
        case .launch, .activate, .background, .close, .cancelTask, .interrupt, .resume, .terminate, .restart, .push,
            .send, .open:
            try request()
        case .enable: try enable()
        case .disable: try disable()
        case .initialize: try initialize()
        case .pressure: try pressure()
        case .doctor: try doctor()
        case .certify: try certify()
        case .edit: try edit()
        case .verify: try verify()
        case .reload: try reload()
        case .reexec: try reexec()
        case .plot: try plot()
        case .replay: try replay()
        case .savings: try savings()
        case .app: try app()
        case .help: 0
        case .log: try log()
        case .top: try top()
        case .run: try run()
        case .mcpConfig: try mcpConfig()
        case .snapshot: try snapshot()
        case .switchApps: try switchApps()
        }
    }

    func connect() throws(Failure) -> Client {
        try Client(
            try Endpoint(invocation, environment),
            Client.Options(isInteractive: !wantsJSON && isatty(STDIN_FILENO) == 1, escapesText: !wantsJSON))
    }

    /// Prints an error of one app; others follow.
    func report(_ failure: Failure) {
        printError(failure, asJSON: wantsJSON, width: screen.errorWidth)
    }

    func show(_ text: String) throws(Failure) {
        if isSilent { return }
        try write(text, to: STDOUT_FILENO)
    }

    /// One document; on a terminal spread over several lines.
    func show(_ json: JSONValue) throws(Failure) {
        try show(json.serialized(pretty: screen.isTerminal) + "\n")
    }

    /// A time in a table: how long ago on a terminal, RFC 3339 elsewhere.
    func when(_ time: Timestamp) -> String {
        screen.isTerminal ? formattedAge(Timestamp.now() - time) : time.rfc3339
    }

    /// A time in a sheet: `2025-11-21 07:12:03 (3min ago)` on a terminal, RFC 3339 elsewhere.
    func whenInFull(_ time: Timestamp) -> String {
        screen.isTerminal ? "\(time.local("%F %T")) (\(formattedAge(Timestamp.now() - time)))" : time.rfc3339
    }
}
