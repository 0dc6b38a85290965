import Glibc

/// polkit's agent for terminals (pkttyagent(1)), that asks for a password what this process asks the daemon for: as systemctl
/// starts it. Ends with this value.
final class PasswordAgent {
    /// How long it may take to tell polkit of itself; what comes later is as if there were none.
    private static let patience: Int32 = 5000
    /// Where it finds the end of the pipe that it closes once polkit knows of it.
    private static let notifyDescriptor: Int32 = 3

    private let pid: pid_t

    /// `nil`: there is none.
    init?() {
        var ends: [Int32] = [-1, -1]
        guard socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0, &ends) == 0 else {
            return nil
        }
        defer { close(ends[0]) }
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_adddup2(&actions, ends[1], Self.notifyDescriptor)
        // Whom the session's own agent would ask, that one asks (`--fallback`); it serves its parent, this process.
        let line: [String] = ["pkttyagent", "--notify-fd", "\(Self.notifyDescriptor)", "--fallback"]
        let words = line.map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var pid: pid_t = 0
        let result = posix_spawnp(&pid, "pkttyagent", &actions, nil, words, environ)
        close(ends[1])
        guard result == 0 else { return nil }
        self.pid = pid
        // It says nothing, but ends its side; so does one that could not do it, with which it is as without one.
        var polled = pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)
        while poll(&polled, 1, Self.patience) < 0, errno == EINTR {}
    }

    deinit {
        kill(pid, SIGTERM)
        kill(pid, SIGCONT)
        while waitpid(pid, nil, 0) < 0, errno == EINTR {}
    }
}
