import Linux

/// Recognizes kills by the kernel's OOM killer without a memory controller, by the machine's counter. It does not name the
/// processes, so a SIGKILL by another program may be taken for the kernel's if the kernel killed another program shortly before.
final class KernelKills {
    /// Reads the counter; `nil`: the kernel has none.
    private let count: () -> UInt64?
    /// What is explained already: by an app's end, or because it is older than `longestEnd`.
    private var known: UInt64
    /// A measurement, the count of which is explained once it is that old.
    private var earlier: (count: UInt64, at: Duration)?

    /// The daemon knows of the end of an app that the kernel kills when its memory is free, about 0.1s for each GiB, and later where the
    /// machine stalls.
    private static let longestEnd = Duration.seconds(5)

    init(count: @escaping () -> UInt64? = { machineOOMKills() }) {
        self.count = count
        known = count() ?? 0
    }

    /// Called at each measurement of memory, with what it found. Older kills are not of apps: the daemon would know of the end.
    func measured(_ count: UInt64?, at now: Duration) {
        if let earlier {
            if now - earlier.at < Self.longestEnd { return }
            known = max(known, earlier.count)
        }
        earlier = count.map { ($0, now) }
    }

    /// An app was ended by a SIGKILL that the daemon did not send.
    /// - Returns: whether the kernel has killed a process for which there is no other explanation.
    func take() -> Bool {
        guard let now = count(), now > known else { return false }
        known += 1
        return true
    }
}
