import Glibc

/// polkit's password agent for terminals (pkttyagent(1)), started as systemctl starts it: it asks for the password for
/// requests of this process. The agent ends with this value.
final class PasswordAgent {
    /// How long the agent has to register with polkit, in milliseconds. After that, requests are sent without it.
    private static let registrationTimeout: Int32 = 5000
    /// The descriptor that the agent closes once it is registered.
    private static let notifyDescriptor: Int32 = 3

    private let pid: pid_t

    /// `nil` if no agent is installed.
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
        // With `--fallback` an agent of the session takes precedence. The agent serves its parent, this process.
        let line: [String] = ["pkttyagent", "--notify-fd", "\(Self.notifyDescriptor)", "--fallback"]
        let words = line.map { strdup($0) } + [nil]
        defer { for word in words { free(word) } }
        var pid: pid_t = 0
        let result = posix_spawnp(&pid, "pkttyagent", &actions, nil, words, environ)
        close(ends[1])
        guard result == 0 else { return nil }
        self.pid = pid
        // The descriptor closes when the agent is registered, or when it failed; then the request is refused again.
        var polled = pollfd(fd: ends[0], events: Int16(POLLIN), revents: 0)
        while poll(&polled, 1, Self.registrationTimeout) < 0, errno == EINTR {}
    }

    deinit {
        kill(pid, SIGTERM)
        kill(pid, SIGCONT)
        while waitpid(pid, nil, 0) < 0, errno == EINTR {}
    }
}
