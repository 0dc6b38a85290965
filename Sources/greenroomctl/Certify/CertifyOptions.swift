import Manifest

/// The options of `certify`.
struct CertifyOptions: Equatable {
    /// The most rounds of the step "requests". One takes more than a second.
    static let mostRounds = 100_000
    /// How often an app is suspended with a connection open, without `--rounds`.
    private static let usualRounds = 5
    /// For an answer, on a machine that does other things.
    static let usualTimeout = Duration.seconds(10)

    /// A command line of sh(1) that makes the requests.
    var client: String?
    var rounds = usualRounds
    /// For an answer of the client.
    var timeout = usualTimeout
    /// The names of the steps that are taken; `nil`: all.
    var only: [String]?

    init() {}

    init(_ invocation: Invocation) {
        client = invocation.options[.client]
        rounds = invocation.options[.rounds].flatMap { Int($0) } ?? Self.usualRounds
        timeout = invocation.options[.timeout].flatMap { parseTimeSpan($0) ?? nil } ?? Self.usualTimeout
        only = Self.steps(invocation)
    }

    /// The steps that are taken, in their order.
    var steps: [CertifyStep] { CertifyStep.all.filter { only?.contains($0.name) ?? true } }

    private static func steps(_ invocation: Invocation) -> [String]? {
        invocation.options[.only]?.split(separator: ",", omittingEmptySubsequences: false).map(String.init)
    }

    static func problem(_ invocation: Invocation) -> String? {
        if !invocation.isCommand, invocation.operands.count > 1 {
            return "certify: unexpected argument '\(escaped(invocation.operands[1]))'; a command comes after --"
        }
        if !invocation.isCommand, !invocation.settings.isEmpty {
            return "certify: --property is for a command; an app has its manifest"
        }
        if let wrong = invocation.settings.first(where: { !$0.contains("=") || $0.contains("\n") || $0.hasSuffix("\\") }
        ) {
            return "--property: invalid setting '\(escaped(wrong))'; expected KEY=VALUE"
        }
        return roundsProblem(invocation) ?? clientProblem(invocation)
    }

    private static func roundsProblem(_ invocation: Invocation) -> String? {
        let names = CertifyStep.all.map(\.name)
        if let wrong = steps(invocation)?.first(where: { !names.contains($0) }) {
            return "--only: unknown step '\(escaped(wrong))'" + Invocation.expectation(wrong, names)
        }
        if let text = invocation.options[.rounds], Int(text).map({ !(1...mostRounds).contains($0) }) ?? true {
            return "--rounds: invalid number '\(escaped(text))'; expected 1 to \(mostRounds)"
        }
        for option in [Option.client, .rounds]
        where invocation.has(option) && steps(invocation)?.contains("load") == false {
            return "\(option.long) is for the step load, which --only does not name"
        }
        return nil
    }

    private static func clientProblem(_ invocation: Invocation) -> String? {
        if let text = invocation.options[.timeout] {
            guard let time = parseTimeSpan(text) ?? nil, time > .zero else {
                return "--timeout: invalid time '\(escaped(text))'; expected a time span such as 30s or 1min"
            }
            if !invocation.has(.client) { return "certify: --timeout is for the answers of --client" }
        }
        if let command = invocation.options[.client], command.contains("\0") {
            return "--client: a command cannot have a NUL"
        }
        return nil
    }
}
