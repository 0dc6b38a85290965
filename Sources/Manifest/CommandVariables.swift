/// A word of `ExecStart=` in which variables of the environment are replaced at each launch (systemd.service(5), "Command lines").
package struct CommandWord: Hashable, Sendable {
    package enum Part: Hashable, Sendable {
        case text(String)
        /// The name of a variable. One that is not set is empty.
        case variable(String)
    }

    package var parts: [Part]
    /// The word is `$NAME`: its value is split into any number of words.
    package var isSplit = false

    /// - Parameter text: with `$$` for a dollar sign.
    /// - Returns: `nil` if no variable is in the text.
    static func parse(_ text: String) throws(ValueError) -> (word: CommandWord?, literal: String) {
        var parts: [Part] = []
        var literal: [UInt8] = []
        var hasVariables = false
        var rest = Array(text.utf8)[...]
        let sign = UInt8(ascii: "$")
        if rest.first == sign, isName(rest.dropFirst()) {
            let name = String(decoding: rest.dropFirst(), as: UTF8.self)
            return (CommandWord(parts: [.variable(name)], isSplit: true), text)
        }
        while let byte = rest.popFirst() {
            guard byte == sign else {
                literal.append(byte)
                continue
            }
            if rest.first == sign {
                literal.append(sign)
                rest = rest.dropFirst()
                continue
            }
            let name = rest.dropFirst().prefix { $0 != UInt8(ascii: "}") }
            guard rest.first == UInt8(ascii: "{"), name.endIndex < rest.endIndex, isName(name) else {
                throw ValueError(
                    problem:
                        "invalid value \(quoted(text)): a variable is ${NAME}, or $NAME as a word of its own, and a "
                        + "literal $ is $$")
            }
            if !literal.isEmpty { parts.append(.text(String(decoding: literal, as: UTF8.self))) }
            literal = []
            parts.append(.variable(String(decoding: name, as: UTF8.self)))
            hasVariables = true
            rest = rest[(name.endIndex + 1)...]
        }
        let end = String(decoding: literal, as: UTF8.self)
        guard hasVariables else { return (nil, end) }
        if !literal.isEmpty { parts.append(.text(end)) }
        return (CommandWord(parts: parts), text)
    }

    /// As it is parsed to the same word.
    var written: String {
        var text = ""
        for part in parts {
            switch part {
            case .text(let literal):
                for scalar in literal.unicodeScalars { text.unicodeScalars += scalar == "$" ? ["$", "$"] : [scalar] }
            case .variable(let name): text += isSplit ? "$" + name : "${\(name)}"
            }
        }
        return text
    }

    private static func isName(_ bytes: ArraySlice<UInt8>) -> Bool {
        isEnvironmentEntry(String(decoding: bytes, as: UTF8.self) + "=") && !bytes.contains(UInt8(ascii: "="))
    }

    fileprivate func words(_ value: (String) -> String) -> [String] {
        var text = ""
        for part in parts {
            switch part {
            case .text(let literal): text += literal
            case .variable(let name): text += value(name)
            }
        }
        guard isSplit else { return [text] }
        // With quotes, as systemd; a value whose quotes or escapes are not valid is split at blanks.
        if let words = try? splitWords(text) { return words.map(\.text) }
        return text.utf8.split(whereSeparator: isBlank).map { String(decoding: Array($0), as: UTF8.self) }
    }
}

extension AppManifest {
    /// The program and its arguments with the values of variables.
    /// - Parameter environment: of the app, `NAME=value` each, one for each name.
    package func command(_ environment: [String]) -> [String] {
        Command(words: exec, variables: commandWords).words(in: environment)
    }
}

extension Command {
    /// The program and its arguments with the values of variables.
    /// - Parameter environment: `NAME=value` each, one for each name.
    package func words(in environment: [String]) -> [String] {
        if variables.isEmpty { return words }
        var values: [String: String] = [:]
        for entry in environment {
            let bytes = entry.utf8
            guard let sign = bytes.firstIndex(of: UInt8(ascii: "=")) else { continue }
            let name = String(decoding: Array(bytes[..<sign]), as: UTF8.self)
            values[name] = String(decoding: Array(bytes[bytes.index(after: sign)...]), as: UTF8.self)
        }
        var command: [String] = []
        for (index, word) in words.enumerated() {
            command += variables[index]?.words { values[$0] ?? "" } ?? [word]
        }
        return command
    }
}
