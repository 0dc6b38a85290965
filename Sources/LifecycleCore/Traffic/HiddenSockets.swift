/// Processes of a run whose sockets the daemon may not examine (EACCES, EPERM). It cannot see whether they listen (L7).
package struct HiddenSockets: Hashable, Sendable {
    /// How many processes.
    package var count: Int
    /// One of them.
    package var pid: Int32

    package init(count: Int, pid: Int32) {
        self.count = count
        self.pid = pid
    }

    /// For people: what could not be examined, and why.
    package var phrase: String {
        let subject = count == 1 ? "process \(pid)" : "\(count) processes, one of them \(pid),"
        return "the sockets of \(subject) could not be examined: permission denied, because it runs as another user "
            + "or is not dumpable and greenroomd does not have CAP_SYS_PTRACE"
    }
}
