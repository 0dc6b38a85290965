import Posix

/// How many processes the machine had created at some time, and which pid was the last one. Pids are given in ascending order,
/// so between two moments that are close together it is known which ones are new. The exception is `set_tid` of clone3(2), for
/// which a program needs CAP_CHECKPOINT_RESTORE.
struct ProcessMoment: Equatable {
    /// Processes and threads since boot (/proc/stat).
    var created: UInt64
    /// The last pid or thread number of the daemon's pid namespace (/proc/loadavg).
    var lastPID: Int32
    /// How many processes and threads there are (/proc/loadavg).
    var threads: Int

    /// The most new pids, if there are not more processes and threads than that: with more, all processes are searched. It takes less
    /// time to find that a pid has no process than to read one.
    static let leastNew = 512
    /// A bound of what is listed.
    static let largestNew = 8192

    init(created: UInt64, lastPID: Int32, threads: Int = 0) {
        self.created = created
        self.lastPID = lastPID
        self.threads = threads
    }

    /// How many new pids are searched at most.
    var mostNew: Int { min(Self.largestNew, max(Self.leastNew, threads)) }

    /// `nil`: /proc does not tell.
    init?(_ proc: ProcFS) {
        guard let load = try? readFileIfPresent(at: "\(proc.root)/loadavg", limit: 256),
            let words = Optional(load.split(whereSeparator: { $0 == 0x20 || $0 == 0x0a })), words.count == 5,
            let last = Int32(words[4].text),
            // The file has a number for each interrupt.
            let stat = try? readFileIfPresent(at: "\(proc.root)/stat", limit: 1 << 20),
            let created = flatKeyed(stat, "processes")
        else { return nil }
        // "2/345": those that can run, and all.
        let threads = words[3].split(separator: UInt8(ascii: "/")).last.flatMap { Int($0.text) } ?? 0
        self.init(created: created, lastPID: last, threads: threads)
    }

    /// The pids that were given since an earlier moment; `nil`: that is not certain, or there are too many.
    func pids(since earlier: ProcessMoment) -> [Int32]? {
        guard created >= earlier.created, created - earlier.created <= UInt64(mostNew), lastPID >= earlier.lastPID,
            lastPID - earlier.lastPID <= mostNew
        else { return nil }
        return Array(earlier.lastPID..<lastPID).map { $0 + 1 }
    }
}
