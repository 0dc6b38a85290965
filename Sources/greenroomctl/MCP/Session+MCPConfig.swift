import Glibc
import JSON
import Linux
import Posix

/// `mcp-config`: puts `greenroomctl run` before the servers in the configuration of an MCP client, or takes it out again.
extension Session {
    /// What the old text is kept in: the user's own, and the one with `greenroomctl run`.
    private static let (copySuffix, removedSuffix) = (".before-greenroom", ".with-greenroom")
    /// The largest configuration, in bytes. A client that keeps its history in the same file has some MiB.
    private static let maximumSize = 64 << 20

    func mcpConfig() throws(Failure) -> Int32 {
        let file = operands[0]
        let bytes = try configuration(file)
        let found: ServerConfiguration
        let isTOML = file.hasSuffix(".toml")
        do {
            found = try isTOML ? ServerConfiguration(toml: bytes) : ServerConfiguration(json: bytes)
        } catch {
            throw Failure(
                "\(escaped(file)): \(error)",
                hint:
                    "Expected \(isTOML ? "TOML" : "JSON"). In a file of another format, put 'greenroomctl run --' before each command."
            )
        }
        let removes = invocation.has(.remove)
        let options = RunProtocol(invocation).map { ["--protocol=\($0.rawValue)"] } ?? []
        let changed = removes ? found.removing() : found.adding(try programPath(), options: options)
        if changed.names.isEmpty {
            let none = found.servers.isEmpty ? "no server that is started as a command" : "nothing to change"
            try wantsJSON ? show(document(file, [], copy: nil)) : show("\(escaped(file)): \(none).\n")
            return 0
        }
        let copy = file + (removes ? Self.removedSuffix : Self.copySuffix)
        try replace(copy, like: file, bytes)
        try replace(file, like: file, changed.bytes)
        if wantsJSON { return try showed(document(file, changed.names, copy: copy)) }
        try showDifference(copy, file)
        let count = changed.names.count
        let what =
            count == 1
            ? "1 server \(removes ? "no longer " : "")starts" : "\(count) servers \(removes ? "no longer " : "")start"
        try show(
            "\(what) with 'greenroomctl run'. "
                + "The old file is \(escaped(copy)). Restart the client.\n")
        return 0
    }

    private func showed(_ document: JSONValue) throws(Failure) -> Int32 {
        try show(document)
        return 0
    }

    private func document(_ file: String, _ names: [String], copy: String?) -> JSONValue {
        .object([
            ("file", .string(file)), ("servers", .array(names.map(JSONValue.string))),
            ("copy", copy.map(JSONValue.string) ?? .null),
        ])
    }

    private func configuration(_ file: String) throws(Failure) -> [UInt8] {
        var about = stat()
        guard stat(file, &about) == 0 else {
            throw Failure("Cannot read \(escaped(file)): \(String(cString: strerror(errno)))")
        }
        guard about.st_mode & S_IFMT == S_IFREG, about.st_size <= Self.maximumSize else {
            throw Failure("\(escaped(file)): expected a regular file of at most \(Self.maximumSize >> 20) MiB")
        }
        do throws(SystemError) {
            return try Posix.readFile(at: file, limit: Self.maximumSize)
        } catch {
            throw Failure("Cannot read \(escaped(file)): \(SystemError.text(of: error.errno))")
        }
    }

    /// Replaces a file as a whole, with the owner and the mode of another one: it may contain keys.
    private func replace(_ path: String, like other: String, _ bytes: [UInt8]) throws(Failure) {
        var about = stat()
        guard stat(other, &about) == 0 else {
            throw Failure("Cannot read \(escaped(other)): \(String(cString: strerror(errno)))")
        }
        do throws(SystemError) {
            // A link stays one: the file behind it is replaced.
            try replaceFile(
                at: resolvedPath(path) ?? path, with: bytes, mode: about.st_mode & 0o7777,
                owner: geteuid() == 0 ? Owner(uid: about.st_uid, gid: about.st_gid) : nil, durable: true)
        } catch {
            throw Failure("Cannot write \(escaped(path)): \(SystemError.text(of: error.errno))")
        }
    }

    private func programPath() throws(Failure) -> String {
        guard let path = realpath("/proc/self/exe", nil) else {
            throw Failure("Cannot read /proc/self/exe: \(String(cString: strerror(errno)))")
        }
        defer { free(path) }
        return String(cString: path)
    }

    /// By diff(1), which Debian always has. Without it nothing is shown.
    private func showDifference(_ old: String, _ new: String) throws(Failure) {
        let line: [String] = ["diff", "-u", "--", old, new]
        let words = line.map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var (pid, status): (pid_t, Int32) = (0, 0)
        guard posix_spawnp(&pid, "diff", nil, nil, words, environ) == 0 else { return }
        while waitpid(pid, &status, 0) < 0, errno == EINTR {}
    }
}
