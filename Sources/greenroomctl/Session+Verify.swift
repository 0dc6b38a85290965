import Glibc
import JSON
import Manifest
import Posix

/// `verify`: checks manifests as the daemon does, without a daemon.
extension Session {
    func verify() throws(Failure) -> Int32 {
        var found: [Diagnostic] = []
        let specifiers = SpecifierValues(isForRoot: isForRoot, environment, .read())
        for file in operands {
            let check = ManifestCheck(file, isForRoot: isForRoot, specifiers)
            let diagnostics = check.run()
            found += diagnostics
            guard !wantsJSON else { continue }
            // The name is not known before an instance is launched, and it decides what is valid.
            let sample = check.sampleInstance.map { "checked as the instance \($0)" }
            if diagnostics.isEmpty {
                try show("\(escaped(file)): OK\(sample.map { " (\($0))" } ?? "")\n")
            } else {
                try show(diagnostics.map(line).joined() + (sample.map { "\(escaped(file)): \($0)\n" } ?? ""))
            }
        }
        if wantsJSON { try show(.array(found.map(json))) }
        return found.contains { $0.severity == .error } ? 1 : 0
    }

    /// The files are for the daemon that other verbs would call.
    var isForRoot: Bool { invocation.has(.system) || (!invocation.has(.user) && geteuid() == 0) }

    func line(_ diagnostic: Diagnostic) -> String {
        let position = diagnostic.line == 0 ? "" : ":\(diagnostic.line):\(diagnostic.column)"
        let severity = screen.paint(
            "\(diagnostic.severity.rawValue):", diagnostic.severity == .error ? .boldRed : .yellow)
        return "\(escaped(diagnostic.file))\(position): \(severity) \(escaped(diagnostic.message))\n"
    }

    private func json(_ diagnostic: Diagnostic) -> JSONValue {
        var keys: [(String, JSONValue)] = [
            ("file", .string(diagnostic.file)), ("severity", .string(diagnostic.severity.rawValue)),
        ]
        if diagnostic.line > 0 {
            keys += [("line", .integer(Int64(diagnostic.line))), ("column", .integer(Int64(diagnostic.column)))]
        }
        return .object(keys + [("message", .string(diagnostic.message))])
    }
}
