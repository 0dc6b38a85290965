import Linux

/// Recognizes kills by the kernel's OOM killer without a memory controller, by the machine's counter. It does not name the
/// processes, so a SIGKILL by another program may be taken for the kernel's if the kernel killed another program shortly before.
final class KernelKills {
    /// Reads the counter; `nil`: the kernel has none.
    private let count: () -> UInt64?
    /// What is explained already: by an app's end, or because it is older than the last measurement but one.
    private var known: UInt64
    private var lastLook: UInt64

    init(count: @escaping () -> UInt64? = { machineOOMKills() }) {
        self.count = count
        known = count() ?? 0
        lastLook = known
    }

    /// Called at each measurement of memory, with what it found. Kills before the last one are not of apps: the daemon would know of the end.
    func measured(_ count: UInt64?) {
        known = max(known, lastLook)
        lastLook = count ?? lastLook
    }

    /// An app was ended by a SIGKILL that the daemon did not send.
    /// - Returns: whether the kernel has killed a process for which there is no other explanation.
    func take() -> Bool {
        guard let now = count(), now > known else { return false }
        known += 1
        return true
    }
}
