import Glibc
package import Posix

/// How many descriptors this process spends on watching apps and on holding their sockets, all apps together. The rest is for its own work: a daemon
/// without descriptors can neither launch an app nor answer a client.
package final class DescriptorBudget {
    package let total: Int
    /// Open now, without those that wait to be closed.
    package private(set) var used = 0
    /// What their threads have not closed yet counts too: a close can last as long as an app likes (SO_LINGER).
    private var closers: [DescriptorCloser] = []

    package init(total: Int) { self.total = total }

    /// Three quarters of RLIMIT_NOFILE; of less than 4,096 half.
    package convenience init() {
        var limit = rlimit()
        let isKnown = getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0
        // At most fs.nr_open can be set, about 2^30.
        let number = isKnown ? Int(clamping: limit.rlim_cur) : 1024
        self.init(total: number < 4096 ? number / 2 : number / 4 * 3)
    }

    package var available: Int {
        max(0, total - used - pending)
    }

    /// How many wait to be closed.
    package var pending: Int {
        if !closers.isEmpty { closers.removeAll { $0.pending == 0 } }
        return closers.reduce(0) { $0 + $1.pending }
    }

    /// The most duplicates of one app: an eighth, so that no app takes them from the others. What its closer has not closed
    /// counts.
    package func limit(with closer: DescriptorCloser) -> Int {
        max(0, min(DescriptorWatch.maximum, total / 8) - closer.pending)
    }

    package func take(_ count: Int = 1) { used += count }

    package func giveBack(_ count: Int) {
        used -= count
        precondition(used >= 0, "more descriptors were given back than taken")
    }

    /// Descriptors of this closer wait to be closed.
    func wait(for closer: DescriptorCloser) {
        if !closers.contains(where: { $0 === closer }) { closers.append(closer) }
    }
}
