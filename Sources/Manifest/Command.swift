/// `ExecStart=`: one program (systemd.service(5), “Command lines”). What systemd would do with prefixes, several commands,
/// specifiers and variables is refused rather than passed on as part of a name.
extension AppManifest {
    mutating func takeCommand(_ text: String) throws(ValueError) {
        let words = try splitWords(text)
        try checkProgram(words)
        guard exec.isEmpty else {
            throw ValueError(problem: "there is one already, and no empty ExecStart= before this one begins anew")
        }
        let bytes = Array(text.utf8)
        var command: [String] = []
        for word in words {
            guard !isSeparator(bytes, word.offset) else {
                throw ValueError(problem: "“;” would begin a second command, “\\;” is an argument", offset: word.offset)
            }
            let argument = try word.mapped { text throws(ValueError) in try withoutVariables(withoutSpecifiers(text)) }
            guard argument.utf8.count <= longestArgument else {
                let size = argument.utf8.count
                throw ValueError(
                    problem: "an argument has \(size) bytes, and execve(2) takes \(longestArgument)",
                    offset: word.offset)
            }
            command.append(argument)
        }
        exec = command
    }

    private func checkProgram(_ words: [Word]) throws(ValueError) {
        guard let program = words.first else { throw ValueError() }
        if let first = program.text.utf8.first, "-@:+!|".utf8.contains(first) {
            let prefix = Character(UnicodeScalar(first))
            throw ValueError(problem: "the prefix “\(prefix)” is not known here", offset: program.offset)
        }
        guard isAbsolutePath(program.text) else {
            throw ValueError(problem: "“\(shown(program.text))” is no absolute path", offset: program.offset)
        }
        guard program.text.utf8.last != UInt8(ascii: "/") else {
            throw ValueError(problem: "“\(shown(program.text))” is a folder", offset: program.offset)
        }
    }

    /// A semicolon that stands alone as it was written: not quoted, not escaped.
    private func isSeparator(_ bytes: [UInt8], _ offset: Int) -> Bool {
        let end = offset + 1
        return bytes[offset] == UInt8(ascii: ";") && (end == bytes.count || isBlank(bytes[end]))
    }
}
