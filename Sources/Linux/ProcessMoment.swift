import Posix

/// How many processes the machine had created at some time, and which pid was the last one. Pids are given in ascending order,
/// so between two moments that are close together it is known which ones are new. The exception is `set_tid` of clone3(2), for
/// which a program needs CAP_CHECKPOINT_RESTORE.
struct ProcessMoment: Equatable {
    /// Processes and threads since boot (/proc/stat).
    var created: UInt64
    /// The last pid or thread number of the daemon's pid namespace (/proc/loadavg).
    var lastPID: Int32

    /// The most new pids: with more, all processes are searched.
    static let mostNew = 512

    init(created: UInt64, lastPID: Int32) {
        self.created = created
        self.lastPID = lastPID
    }

    /// `nil`: /proc does not tell.
    init?(_ proc: ProcFS) {
        guard let load = try? readFileIfPresent(at: "\(proc.root)/loadavg", limit: 256),
            let last = load.split(whereSeparator: { $0 == 0x20 || $0 == 0x0a }).last.flatMap({ Int32($0.text) }),
            // The file has a number for each interrupt.
            let stat = try? readFileIfPresent(at: "\(proc.root)/stat", limit: 1 << 20),
            let created = flatKeyed(stat, "processes")
        else { return nil }
        self.init(created: created, lastPID: last)
    }

    /// The pids that were given since an earlier moment; `nil`: that is not certain, or there are too many.
    func pids(since earlier: ProcessMoment) -> [Int32]? {
        guard created >= earlier.created, created - earlier.created <= UInt64(Self.mostNew), lastPID >= earlier.lastPID,
            lastPID - earlier.lastPID <= Self.mostNew
        else { return nil }
        return Array(earlier.lastPID..<lastPID).map { $0 + 1 }
    }
}
