/// `ProgramDigest=`: the digest of the only file that is executed as the program (L10).
package enum ProgramDigest {
    static let expected = "sha256: or fsverity-sha256: and 64 hexadecimal digits"

    /// Returns the digest in lower case; `nil` if it is none.
    static func normalized(_ text: String) -> String? {
        let parts = text.split(separator: ":", omittingEmptySubsequences: false)
        guard parts.count == 2, parts[0] == "sha256" || parts[0] == "fsverity-sha256", parts[1].utf8.count == 64,
            parts[1].utf8.allSatisfy({ (0x30...0x39).contains($0) || (0x61...0x66).contains($0 | 0x20) })
        else { return nil }
        return text.lowercased()
    }
}

extension AppManifest {
    static var programFileSettings: [Setting<AppManifest>] {
        [
            .flag("Lifecycle", "ReadOnlyProgram", \.readOnlyProgram),
            .value("App", "ProgramDigest", ProgramDigest.expected, \.programDigest) { text -> String?? in
                ProgramDigest.normalized(text).map { .some($0) }
            },
        ]
    }

    /// Why `ReadOnlyProgram=` is refused; `nil`: it is not.
    var readOnlyProblem: String? {
        guard self.readOnlyProgram, let program = exec.first,
            program.utf8.lastIndex(of: UInt8(ascii: "/")) == program.utf8.startIndex
        else { return nil }
        return
            "ReadOnlyProgram=yes would make the whole machine read-only for the app, because the folder of \(quoted(program)) is /; "
            + "expected a program in a folder of its own"
    }
}
