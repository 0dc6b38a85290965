import Glibc

/// An app's journal: what greenroomd wrote of it, and what it wrote itself. The reading is journalctl's.
extension Session {
    private static let journalctl = "/usr/bin/journalctl"

    func log() throws(Failure) -> Int32 {
        let endpoint = try Endpoint(invocation, environment)
        let arguments = [Self.journalctl] + JournalQuery(invocation, daemonUser: user(of: endpoint)).arguments
        var pointers = arguments.map { strdup($0) } + [nil]
        execv(Self.journalctl, &pointers)
        let reason = errno
        for pointer in pointers { free(pointer) }
        guard reason == ENOENT else {
            throw Failure("\(Self.journalctl) cannot be run: \(String(cString: strerror(reason)))")
        }
        throw Failure("there is no journalctl here: without a journal greenroomd writes to its standard error")
    }

    /// Whose daemon it is: entries are taken from this user alone, as anybody may write any field but those that begin
    /// with an underscore.
    private func user(of endpoint: Endpoint) -> UInt32 {
        var about = stat()
        if stat(endpoint.socket, &about) == 0 { return about.st_uid }
        return endpoint.runtime == Endpoint.systemRuntime ? 0 : geteuid()
    }
}

/// What is asked of journalctl.
struct JournalQuery: Equatable {
    /// Without the program's name. The app's name is one (`Invocation` refuses others): no option, and no `+`.
    let arguments: [String]

    init(_ invocation: Invocation, daemonUser: UInt32) {
        var options: [String] = []
        if invocation.has(.follow) { options.append("--follow") }
        if let lines = invocation.options[.lines] { options.append("--lines=\(lines)") }
        if invocation.has(.json) { options.append("--output=json") }
        let daemon = ["_COMM=greenroomd", "_UID=\(daemonUser)"]
        guard let app = invocation.operands.first else {
            arguments = options + daemon
            return
        }
        // What the daemon says of it, or what came through the stream that the daemon opened for it.
        arguments = options + daemon + ["GREENROOM_APP=\(app)", "+", "_TRANSPORT=stdout", "SYSLOG_IDENTIFIER=\(app)"]
    }
}
