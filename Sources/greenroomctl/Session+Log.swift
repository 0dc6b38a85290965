import Glibc

/// `log`: the journal entries of greenroomd about apps, and the apps' own output. journalctl(1) shows them.
extension Session {
    func log() throws(Failure) -> Int32 {
        let endpoint = try Endpoint(invocation, environment)
        if !isJournaldRunning {
            if !apps.isEmpty { return try showOutputFiles(endpoint) }
            guard hasJournalFiles else {
                throw Failure(
                    "There is no journal on this machine: greenroomd writes its log to standard error. '\(command("log APP"))' "
                        + "shows the output of an app.")
            }
        }
        let names = try apps.contains(where: isPattern) ? expand(apps, connect()) : apps
        // Only patterns that match no app were named.
        if names.isEmpty, !apps.isEmpty { return 0 }
        let query = JournalQuery(invocation, apps: names, daemonUser: user(of: endpoint))
        let arguments = [JournalQuery.program] + query.arguments
        var pointers = arguments.map { strdup($0) } + [nil]
        execv(JournalQuery.program, &pointers)
        let reason = errno
        for pointer in pointers { free(pointer) }
        guard reason == ENOENT else {
            throw Failure("Cannot execute \(JournalQuery.program): \(String(cString: strerror(reason)))")
        }
        throw Failure(
            "journalctl is not installed. Without the journal, greenroomd writes its log to standard error.")
    }

    /// Whether journald has left files: without them and journald, journalctl succeeds with a message about missing files.
    private var hasJournalFiles: Bool {
        ["/var/log/journal", "/run/log/journal"].contains { root in
            folderEntries(root).contains { machine in
                !machine.hasPrefix(".") && folderEntries("\(root)/\(machine)").contains { $0.contains(".journal") }
            }
        }
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
    static let program = "/usr/bin/journalctl"
    /// Without the program's name. The IDs of apps are valid (`Invocation` checks them), so journalctl reads them neither as
    /// options nor as `+`.
    let arguments: [String]

    /// - Parameter apps: the apps that the patterns of the command line match, and the others that it names.
    init(_ invocation: Invocation, apps: [String]? = nil, daemonUser: UInt32) {
        let apps = apps ?? Array(invocation.apps)
        var options: [String] = []
        if invocation.has(.follow) { options.append("--follow") }
        if let lines = invocation.options[.lines] { options.append("--lines=\(lines)") }
        if let since = invocation.options[.since] { options.append("--since=\(since)") }
        if invocation.has(.json) { options.append("--output=json") }
        let daemon = ["_COMM=greenroomd", "_UID=\(daemonUser)"]
        guard !apps.isEmpty else {
            arguments = options + daemon
            return
        }
        // The daemon's entries about the apps, or the output streams that the daemon opened for them. Values of one field are
        // alternatives.
        let entries = daemon + apps.map { "GREENROOM_APP=\($0)" }
        arguments = options + entries + ["+", "_TRANSPORT=stdout"] + apps.map { "SYSLOG_IDENTIFIER=\($0)" }
    }
}
