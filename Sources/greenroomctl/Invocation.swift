import Control
import LifecycleCore
import Manifest

/// A parsed command line.
package struct Invocation: Equatable, Sendable {
    package var verb: Verb
    package var operands: [String]
    /// The value of a flag is empty.
    package var options: [Option: String]
    /// The values of `--setenv`, in their order.
    package var variables: [String] = []
    /// The values of `-p`, in their order.
    package var settings: [String] = []
    /// Whether there was no verb: the daemon as a whole is shown.
    var isBare = false
    /// Whether the operands are a command: they came after `--`.
    package var isCommand = false

    package enum Parsed: Equatable, Sendable {
        case run(Invocation)
        /// To print to standard output; exit status 0.
        case show(String)
        /// A usage error: to print to standard error; exit status 2.
        case wrong(String)
    }

    func has(_ option: Option) -> Bool { options[option] != nil }

    /// Parses a command line.
    ///
    /// - Parameter arguments: without the program's name.
    package static func parse(_ arguments: [String]) -> Parsed {
        var reader = ArgumentReader(arguments)
        reader.readAll()
        if reader.options[.version] != nil { return .show("greenroomctl \(ControlNames.version)\n") }
        let wantsHelp = reader.options[.help] != nil
        guard let word = reader.words.first else {
            if let problem = reader.problem { return .wrong(problem) }
            return wantsHelp ? .show(Help.general) : bare(reader)
        }
        guard let verb = Verb(rawValue: word) else {
            if let problem = reader.problem { return .wrong(problem) }
            return .wrong(unknownVerb(word))
        }
        if wantsHelp { return .show(Help.text(of: verb)) }
        if let problem = reader.problem { return .wrong(problem) }
        var invocation = Invocation(
            verb: verb, operands: Array(reader.words.dropFirst()), options: reader.options, variables: reader.variables,
            settings: reader.settings)
        invocation.isCommand = reader.endOfOptions == 1
        invocation.shortenApps()
        if let problem = invocation.problem(reader.written) { return .wrong(problem) }
        return verb == .help ? help(invocation) : .run(invocation)
    }

    /// A command line without a verb shows the same as `status`.
    private static func bare(_ reader: ArgumentReader) -> Parsed {
        var invocation = Invocation(verb: .status, operands: [], options: reader.options)
        invocation.isBare = true
        // Options of verbs belong to a verb that is missing.
        let isOfVerb = reader.options.keys.contains { $0.verbs != nil }
        if let problem = isOfVerb ? "missing verb" : invocation.problem(reader.written) { return .wrong(problem) }
        return .run(invocation)
    }

    /// The verb of a command line that may have errors.
    static func verb(in arguments: [String]) -> Verb? {
        var reader = ArgumentReader(arguments)
        reader.readAll()
        // The first word may be the value of an option that does not exist.
        let words = reader.problem == nil ? Array(reader.words.prefix(1)) : reader.words
        return words.lazy.compactMap { Verb(rawValue: $0) }.first
    }

    /// Whether a command line that may have errors asks for JSON.
    static func wantsJSON(_ arguments: [String]) -> Bool {
        var reader = ArgumentReader(arguments)
        reader.readAll()
        return reader.options[.json] != nil
    }

    private static func unknownVerb(_ word: String) -> String {
        let hint = Verb.hint(for: word).map { "; \($0)" } ?? suggestion(word, Verb.allCases.map(\.rawValue))
        return "unknown verb '\(escaped(word))'\(hint)"
    }

    /// The operands that name apps.
    var apps: ArraySlice<String> {
        // A URL alone names no app.
        let namesNone = (verb == .open && operands.count == 1) || (verb == .certify && isCommand)
        return operands.prefix(namesNone ? 0 : verb.appOperands)
    }

    /// Whether the command line can name more than one app: the answer is a list then.
    var namesSeveral: Bool { apps.count > 1 || apps.contains(where: isPattern) }

    /// `photos.app` is accepted for `photos`, as systemctl accepts units with and without their suffix.
    private mutating func shortenApps() {
        for index in apps.indices where operands[index].hasSuffix(".app") && operands[index].count > 4 {
            operands[index].removeLast(4)
        }
    }

    private static func help(_ invocation: Invocation) -> Parsed {
        guard let word = invocation.operands.first else { return .show(Help.general) }
        guard let verb = Verb(rawValue: word) else {
            return .wrong(unknownVerb(word))
        }
        return .show(Help.text(of: verb))
    }

    // MARK: Usage errors

    /// - Parameter written: the options as they were typed, for the error about one: `-n` or `--lines`.
    private func problem(_ written: [Option: String]) -> String? {
        if let option = Option.allCases.first(where: { has($0) && !($0.verbs ?? [verb]).contains(verb) }) {
            let verbs = (option.verbs ?? []).map(\.rawValue)
            let list = verbs.count > 1 ? verbs.dropLast().joined(separator: ", ") + " and " : ""
            return
                "\(verb.rawValue): unexpected option '\(written[option] ?? option.long)'; it is for \(list)\(verbs.last ?? "")"
        }
        if has(.user), has(.system) { return "--user and --system are mutually exclusive" }
        if has(.scenes), has(.clients) { return "--scenes and --clients are mutually exclusive" }
        if has(.clients), has(.sort) { return "--clients cannot be sorted; the client with the most memory is first" }
        if operands.count < verb.operands.lowerBound { return "\(verb.rawValue): missing argument \(missing)" }
        if operands.count > verb.operands.upperBound {
            return "\(verb.rawValue): unexpected argument '\(escaped(operands[verb.operands.upperBound]))'"
        }
        return invalidValue()
    }

    private var missing: String {
        switch verb {
        case .receipt: "ID"
        case .verify, .mcpConfig: "FILE"
        case .initialize: operands.isEmpty ? "NAME" : "COMMAND"
        case .send where operands.count == 1: "KIND"
        case .cancelTask where operands.count == 1: "TASK"
        case .open: "URL"
        case .app, .run: "COMMAND"
        default: "APP"
        }
    }

    /// Values that can be refused without the daemon.
    private func invalidValue() -> String? {
        if verb == .receipt, let text = operands.first, UInt64(text) == nil {
            let hint = AppID(text) == nil ? "" : "; to list the receipts of an app, use 'receipts \(text)'"
            return "receipt: invalid ID '\(escaped(text))'; expected a number\(hint)"
        }
        if let sentence = invalidApp() { return sentence }
        if verb == .app, let sentence = AppCommand.problem(operands, options) { return sentence }
        if let sentence = invalidScheme() ?? (verb == .top ? TopOptions.problem(self) : ListSelection.problem(options))
        {
            return sentence
        }
        if verb == .pressure, let text = operands.first, MemoryLevelName(rawValue: text) == nil {
            return "pressure: invalid level '\(escaped(text))'"
                + Self.expectation(text, MemoryLevelName.allCases.map(\.rawValue))
        }
        if let text = options[.lines], UInt32(text) == nil {
            return "--lines: invalid number '\(escaped(text))'"
        }
        if let text = options[.reason], LaunchReason(rawValue: text) == nil {
            return "--reason: invalid value '\(escaped(text))'"
                + Self.expectation(text, LaunchReason.allCases.map(\.rawValue))
        }
        if let sentence = plotProblem() { return sentence }
        if verb == .close, !has(.scene) { return "close: missing option; expected --scene ID" }
        if verb == .receipts || verb == .plot, let text = options[.since], TimeParser.parse(text) == nil {
            return "--since: invalid time '\(escaped(text))'; expected \(TimeParser.expected)"
        }
        if let text = variables.first(where: { !Self.isVariable($0) }) {
            return
                "--setenv: invalid variable '\(escaped(text))'; expected NAME=VALUE, or NAME for a variable of the caller"
        }
        if verb == .run { return RunOptions.problem(self) }
        if verb == .mcpConfig { return RunProtocol.problem(self) }
        if verb == .certify { return CertifyOptions.problem(self) }
        return options[.property].flatMap(PropertySelection.problem)
    }

    /// One form is asked for, and the order of jetsam exists.
    private func plotProblem() -> String? {
        if let text = options[.jetsamOrder], ManagerPolicy.JetsamOrder(name: text) == nil {
            return "--jetsam-order: invalid value '\(escaped(text))'"
                + Self.expectation(text, ManagerPolicy.JetsamOrder.names)
        }
        guard verb == .plot else { return nil }
        let forms = [Option.svg, .html, .perfetto, .json].filter(has)
        if forms.count == 1 { return nil }
        return forms.isEmpty
            ? "plot: missing option; expected --svg, --html, --perfetto or --json"
            : "\(forms.map(\.long).joined(separator: " and ")) are mutually exclusive"
    }

    private func invalidScheme() -> String? {
        guard let text = options[.urlScheme] else { return nil }
        if let wrong = text.split(separator: ",", omittingEmptySubsequences: false)
            .first(where: { URLScheme.normalized($0) == nil })
        {
            return "--url-scheme: invalid scheme '\(escaped(String(wrong)))'; expected a scheme such as mailto"
        }
        if let name = operands.first, templateName(name) != nil {
            return "--url-scheme: \(escaped(name)) is a template; only an app opens URLs"
        }
        // A desktop entry has escape sequences of its own.
        if let name = operands.first, name.contains("\\") {
            return "--url-scheme: \(escaped(name)): a desktop entry cannot name an app with a backslash"
        }
        return nil
    }

    /// The verbs that use the IDs themselves; the daemon checks those of the others.
    private func invalidApp() -> String? {
        let isChecked = [.log, .initialize, .certify, .edit, .enable, .disable].contains(verb)
        for text in apps where isChecked && !(isPattern(text) && ![.initialize, .certify, .edit].contains(verb)) {
            // A template can be created and changed.
            if verb == .initialize || verb == .edit, templateName(text) != nil { continue }
            if let problem = problemOfID(text) {
                return "\(verb.rawValue): invalid app ID '\(escaped(text))': \(problem)"
            }
        }
        return nil
    }

    /// `NAME=VALUE`, or `NAME`.
    private static func isVariable(_ text: String) -> Bool {
        isEnvironmentEntry(text.utf8.contains(UInt8(ascii: "=")) ? text : text + "=")
    }

    static func expectation(_ written: String, _ known: [String]) -> String {
        "\(suggestion(written, known)); expected \(known.joined(separator: ", "))"
    }

    fileprivate static func suggestion(_ written: String, _ known: [String]) -> String {
        nearest(written, among: known).map { "; did you mean '\($0)'?" } ?? ""
    }
}

/// Whether an operand is a pattern of fnmatch(3), and not an ID.
func isPattern(_ text: String) -> Bool { text.contains { "*?[".contains($0) } }

/// The arguments of `pressure`.
private enum MemoryLevelName: String, CaseIterable { case normal, warning, critical }

/// Splits arguments into words and options. `--` ends the options; a single `-` is a word.
private struct ArgumentReader {
    private var rest: ArraySlice<String>
    private(set) var words: [String] = []
    private(set) var options: [Option: String] = [:]
    private(set) var variables: [String] = []
    private(set) var settings: [String] = []
    /// How many words stood before `--`.
    private(set) var endOfOptions: Int?
    /// Each option as it was typed last.
    private(set) var written: [Option: String] = [:]
    /// The first error.
    private(set) var problem: String?

    init(_ arguments: [String]) {
        rest = arguments[...]
    }

    mutating func readAll() {
        while let argument = rest.popFirst() {
            if argument == "--" {
                endOfOptions = words.count
                words += rest
                return
            }
            if argument.hasPrefix("--") {
                readLong(argument)
            } else if argument.hasPrefix("-"), argument != "-" {
                readShort(argument)
            } else {
                words.append(argument)
            }
        }
    }

    private mutating func readLong(_ argument: String) {
        let parts = argument.dropFirst(2).split(separator: "=", maxSplits: 1, omittingEmptySubsequences: false)
        let name = parts.first.map(String.init) ?? ""
        guard let option = Option(rawValue: name) else {
            let known = Option.allCases.map(\.rawValue)
            let near = nearest(name, among: known).map { "; did you mean '--\($0)'?" } ?? ""
            return fail("unrecognized option '--\(escaped(name))'\(near)")
        }
        take(option, written: option.long, inline: parts.count == 2 ? String(parts[1]) : nil)
    }

    private mutating func readShort(_ argument: String) {
        var letters = argument.dropFirst()
        while let letter = letters.popFirst() {
            guard let option = Option.allCases.first(where: { $0.short == letter }) else {
                return fail("invalid option '-\(escaped(String(letter)))'")
            }
            guard option.placeholder != nil, !letters.isEmpty else {
                take(option, written: "-\(letter)", inline: nil)
                continue
            }
            return take(option, written: "-\(letter)", inline: String(letters))
        }
    }

    private mutating func take(_ option: Option, written: String, inline: String?) {
        self.written[option] = written
        guard let placeholder = option.placeholder else {
            if inline != nil { fail("option '\(written)' does not take a value") }
            options[option] = ""
            return
        }
        guard let value = inline ?? rest.popFirst(), !value.isEmpty else {
            return fail("option '\(written)' requires a value \(placeholder)")
        }
        if option == .setenv { variables.append(value) }
        if option == .property { settings.append(value) }
        let earlier = option.isList ? options[option].map { $0 + "," } ?? "" : ""
        options[option] = earlier + value
    }

    private mutating func fail(_ sentence: String) {
        problem = problem ?? sentence
    }
}
