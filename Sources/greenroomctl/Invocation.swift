import Control
import LifecycleCore
import Manifest

/// What a command line asks for.
package struct Invocation: Equatable, Sendable {
    package var verb: Verb
    package var operands: [String]
    /// Flags have an empty value.
    package var options: [Option: String]

    package enum Parsed: Equatable, Sendable {
        case run(Invocation)
        /// To standard output, and done.
        case show(String)
        /// To standard error; exit status 2.
        case wrong(String)
    }

    func has(_ option: Option) -> Bool { options[option] != nil }

    /// - Parameter arguments: without the program's name.
    package static func parse(_ arguments: [String]) -> Parsed {
        var reader = ArgumentReader(arguments)
        reader.readAll()
        if reader.options[.version] != nil { return .show("greenroomctl \(ControlNames.version)\n") }
        let wantsHelp = reader.options[.help] != nil
        guard let word = reader.words.first else {
            if let problem = reader.problem { return .wrong(problem) }
            return wantsHelp ? .show(Help.general) : .wrong("a verb is missing")
        }
        guard let verb = Verb(rawValue: word) else {
            if let problem = reader.problem { return .wrong(problem) }
            return .wrong("unknown verb “\(escaped(word))”\(suggestion(word, Verb.allCases.map(\.rawValue)))")
        }
        if wantsHelp { return .show(Help.text(of: verb)) }
        // Its options are not there either: what counts is said when it runs.
        guard verb.isThere else { return .run(Invocation(verb: verb, operands: [], options: reader.options)) }
        if let problem = reader.problem { return .wrong(problem) }
        let invocation = Invocation(verb: verb, operands: Array(reader.words.dropFirst()), options: reader.options)
        if let problem = invocation.problem() { return .wrong(problem) }
        return verb == .help ? help(invocation) : .run(invocation)
    }

    private static func help(_ invocation: Invocation) -> Parsed {
        guard let word = invocation.operands.first else { return .show(Help.general) }
        guard let verb = Verb(rawValue: word) else {
            return .wrong("unknown verb “\(escaped(word))”\(suggestion(word, Verb.allCases.map(\.rawValue)))")
        }
        return .show(Help.text(of: verb))
    }

    // MARK: What does not fit

    private func problem() -> String? {
        if let option = Option.allCases.first(where: { has($0) && !($0.verbs ?? [verb]).contains(verb) }) {
            let verbs = (option.verbs ?? []).filter(\.isThere).map(\.rawValue).joined(separator: " and ")
            return "\(option.long) goes with \(verbs), not with \(verb.rawValue)"
        }
        if has(.user), has(.system) { return "--user and --system exclude each other" }
        if operands.count < verb.operands.lowerBound { return "\(verb.rawValue) needs \(missing)" }
        if operands.count > verb.operands.upperBound {
            let extra = operands[verb.operands.upperBound]
            return "“\(escaped(extra))” is one word too many for \(verb.rawValue)"
        }
        return badValue()
    }

    private var missing: String {
        switch verb {
        case .receipt: "the ID of a receipt"
        case .verify: "a file"
        case .send where operands.count == 1: "the kind of notification"
        default: "an app"
        }
    }

    /// Values that are known to be wrong before anybody is asked.
    private func badValue() -> String? {
        if verb == .receipt, let text = operands.first, UInt64(text) == nil {
            return "“\(escaped(text))” is no receipt's ID: those are numbers"
        }
        if verb == .log, let text = operands.first, AppID(text) == nil {
            return "“\(escaped(text))” cannot be the name of an app"
        }
        if verb == .pressure, let text = operands.first, MemoryLevelName(rawValue: text) == nil {
            let names = MemoryLevelName.allCases.map(\.rawValue)
            return "“\(escaped(text))” is no memory level\(Self.suggestion(text, names)); "
                + "expected \(names.joined(separator: ", "))"
        }
        if let text = options[.lines], UInt32(text) == nil {
            return "--lines: “\(escaped(text))” is no number"
        }
        if let text = options[.reason], LaunchReason(rawValue: text) == nil {
            let names = LaunchReason.allCases.map(\.rawValue)
            return "--reason: “\(escaped(text))” is no reason to launch\(Self.suggestion(text, names)); "
                + "expected one of \(names.joined(separator: ", "))"
        }
        return nil
    }

    fileprivate static func suggestion(_ written: String, _ known: [String]) -> String {
        nearest(written, among: known).map { "; did you mean \($0)?" } ?? ""
    }
}

/// The levels that memory can be in, as `pressure` spells them.
private enum MemoryLevelName: String, CaseIterable { case normal, warning, critical }

/// Sorts arguments into words and options. `--` ends the options; a lone `-` is a word.
private struct ArgumentReader {
    private var rest: ArraySlice<String>
    private(set) var words: [String] = []
    private(set) var options: [Option: String] = [:]
    /// The first thing that was wrong.
    private(set) var problem: String?

    init(_ arguments: [String]) {
        rest = arguments[...]
    }

    mutating func readAll() {
        while let argument = rest.popFirst() {
            if argument == "--" {
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
            let near = nearest(name, among: known).map { "; did you mean --\($0)?" } ?? ""
            return complain("unknown option “--\(escaped(name))”\(near)")
        }
        take(option, written: option.long, inline: parts.count == 2 ? String(parts[1]) : nil)
    }

    private mutating func readShort(_ argument: String) {
        var letters = argument.dropFirst()
        while let letter = letters.popFirst() {
            guard let option = Option.allCases.first(where: { $0.short == letter }) else {
                return complain("unknown option “-\(escaped(String(letter)))”")
            }
            guard option.value != nil, !letters.isEmpty else {
                take(option, written: "-\(letter)", inline: nil)
                continue
            }
            return take(option, written: "-\(letter)", inline: String(letters))
        }
    }

    private mutating func take(_ option: Option, written: String, inline: String?) {
        guard let kind = option.value else {
            if inline != nil { complain("\(written) takes no value") }
            options[option] = ""
            return
        }
        guard let value = inline ?? rest.popFirst(), !value.isEmpty else {
            return complain("\(written) needs a value: \(kind)")
        }
        options[option] = value
    }

    private mutating func complain(_ sentence: String) {
        problem = problem ?? sentence
    }
}
