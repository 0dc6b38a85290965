import Glibc

/// `log`: the journal entries of greenroomd about an app, and the app's own output. journalctl(1) shows them.
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
            throw Failure("Cannot execute \(Self.journalctl): \(String(cString: strerror(reason)))")
        }
        throw Failure(
            "journalctl is not installed. Without the journal, greenroomd writes its log to standard error.")
    }

    /// The user of the daemon. Only this user's entries are shown: every user can write any field, except for those that
    /// start with an underscore.
    private func user(of endpoint: Endpoint) -> UInt32 {
        var about = stat()
        if stat(endpoint.socket, &about) == 0 { return about.st_uid }
        return endpoint.runtime == Endpoint.systemRuntime ? 0 : geteuid()
    }
}

/// The arguments of journalctl.
struct JournalQuery: Equatable {
    /// Without the program's name. The app's ID is valid (`Invocation` checks it), so journalctl reads it neither as an
    /// option nor as `+`.
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
        // The daemon's entries about the app, or the output stream that the daemon opened for it.
        arguments = options + daemon + ["GREENROOM_APP=\(app)", "+", "_TRANSPORT=stdout", "SYSLOG_IDENTIFIER=\(app)"]
    }
}
