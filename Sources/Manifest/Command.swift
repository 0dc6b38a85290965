import LifecycleCore

/// A command of a hook (L57).
package struct Command: Hashable, Sendable {
    /// The program's absolute path and its arguments, as they are written.
    package var words: [String]
    /// The words in which variables are replaced, by their position.
    package var variables: [Int: CommandWord] = [:]
}

/// `ExecStart=` and the hooks (systemd.service(5), "Command lines").
///
/// Prefixes and several commands in a line, which systemd would interpret, are errors: the program would otherwise receive them as
/// plain text.
extension AppManifest {
    /// The most commands of a hook. Each may take as long as the whole hook may.
    static let maximumCommands = 16

    /// Adds a command to a hook: they run in their order.
    mutating func applyHook(_ kind: HookKind, _ text: String, _ specifiers: Specifiers) throws(ValueError) {
        let words = try splitWords(text)
        try checkProgram(words, specifiers)
        let commands = self.hooks[kind] ?? []
        guard commands.count < Self.maximumCommands else {
            throw ValueError(problem: "more than \(Self.maximumCommands) commands")
        }
        self.hooks[kind] = commands + [try Self.command(text, words, specifiers)]
        policy.hooks.insert(HookKinds(kind))
    }

    mutating func resetHook(_ kind: HookKind) {
        self.hooks[kind] = nil
        policy.hooks.remove(HookKinds(kind))
    }

    mutating func applyCommand(_ text: String, _ specifiers: Specifiers) throws(ValueError) {
        let words = try splitWords(text)
        try checkProgram(words, specifiers)
        guard exec.isEmpty else {
            throw ValueError(problem: "assigned more than once; an empty 'ExecStart=' resets it")
        }
        let command = try Self.command(text, words, specifiers)
        (exec, commandWords) = (command.words, command.variables)
    }

    private static func command(_ text: String, _ words: [Word], _ specifiers: Specifiers) throws(ValueError) -> Command
    {
        let bytes = Array(text.utf8)
        var command: [String] = []
        var variables: [Int: CommandWord] = [:]
        var size = 0
        for word in words {
            guard !isSeparator(bytes, word.offset) else {
                throw ValueError(
                    problem: "several commands are not supported; '\\;' is a literal semicolon", offset: word.offset)
            }
            var found: CommandWord?
            let argument = try word.mapped { text throws(ValueError) in
                try Self.argument(text, specifiers, isProgram: command.isEmpty, &found)
            }
            if let found { variables[command.count] = found }
            guard argument.utf8.count <= longestArgument else {
                let size = argument.utf8.count
                throw ValueError(
                    problem: "argument of \(size) bytes exceeds the maximum of \(longestArgument)", offset: word.offset)
            }
            size += argument.utf8.count
            guard size <= longestList else {
                throw ValueError(problem: "arguments of more than \(longestList) bytes in total", offset: word.offset)
            }
            command.append(argument)
        }
        return Command(words: command, variables: variables)
    }

    /// - Parameter variables: receives the word if it has variables.
    private static func argument(
        _ text: String, _ specifiers: Specifiers, isProgram: Bool, _ variables: inout CommandWord?
    ) throws(ValueError) -> String {
        // The name of an instance may contain "$", which begins no variable: what specifiers bring in is text.
        let (word, literal) = try CommandWord.parse(text)
        guard var word else { return try specifiers.expanded(literal) }
        if isProgram { throw ValueError(problem: "invalid value \(quoted(text)): the program has no variables") }
        for (index, part) in word.parts.enumerated() {
            if case .text(let text) = part { word.parts[index] = .text(try specifiers.expanded(text)) }
        }
        variables = word
        return word.written
    }

    private func checkProgram(_ words: [Word], _ specifiers: Specifiers) throws(ValueError) {
        guard let program = words.first else { throw ValueError() }
        if let first = program.text.utf8.first, "-@:+!|".utf8.contains(first) {
            let prefix = Character(UnicodeScalar(first))
            throw ValueError(problem: "prefix '\(prefix)' is not supported", offset: program.offset)
        }
        let path = try program.mapped(specifiers.expanded)
        guard isAbsolutePath(path) else {
            throw ValueError(problem: "\(quoted(path)) is not an absolute path", offset: program.offset)
        }
        guard path.utf8.last != UInt8(ascii: "/") else {
            throw ValueError(problem: "\(quoted(path)) is a directory", offset: program.offset)
        }
    }

    /// Whether an unquoted and unescaped semicolon stands alone at this offset. systemd separates commands by it.
    private static func isSeparator(_ bytes: [UInt8], _ offset: Int) -> Bool {
        let end = offset + 1
        return bytes[offset] == UInt8(ascii: ";") && (end == bytes.count || isBlank(bytes[end]))
    }
}
