import Glibc
package import Posix

/// /proc/meminfo, in bytes.
package struct MemoryInfo: Equatable {
    package var total: UInt64
    /// What programs can allocate without swapping (MemAvailable). Too low directly after a kill: see `perCPUPages`.
    package var available: UInt64
    package var swapTotal: UInt64
    package var swapFree: UInt64

    package init(total: UInt64, available: UInt64, swapTotal: UInt64, swapFree: UInt64) {
        self.total = total
        self.available = available
        self.swapTotal = swapTotal
        self.swapFree = swapFree
    }

    package init?(parsing bytes: [UInt8]) {
        guard let total = kibibytes(bytes, "MemTotal:"), let available = kibibytes(bytes, "MemAvailable:")
        else { return nil }
        self.init(
            total: total, available: available, swapTotal: kibibytes(bytes, "SwapTotal:") ?? 0,
            swapFree: kibibytes(bytes, "SwapFree:") ?? 0)
    }

    /// Returns the bytes of free pages on the lists of single CPUs, which MemAvailable does not count: for some seconds after
    /// a kill of 1 GiB they were a third of it. The sum of the `count:` lines of /proc/zoneinfo's pagesets.
    package static func perCPUPages(parsing bytes: [UInt8], pageSize: UInt64 = ProcessMemory.pageSize) -> UInt64 {
        var pages: UInt64 = 0
        var scanner = ByteScanner(bytes)
        while let line = scanner.line() {
            var words = ByteScanner(line)
            guard words.word()?.elementsEqual("count:".utf8) == true, let count: UInt64 = words.number() else {
                continue
            }
            pages &+= count
        }
        return pages &* pageSize
    }
}

/// What /proc/vmstat counts since the machine was started.
package struct VMStatistics: Equatable {
    /// How many bytes were read again from disk or swap soon after they were evicted: the `workingset_refault_*` lines, one line
    /// `workingset_refault` before Linux 5.9.
    package var refaulted: UInt64 = 0
    /// How many processes the OOM killer has killed. `nil`: a kernel before 4.13.
    package var oomKills: UInt64?

    package init() {}

    package init(parsing bytes: [UInt8], pageSize: UInt64 = ProcessMemory.pageSize) {
        var pages: UInt64 = 0
        var scanner = ByteScanner(bytes)
        while let line = scanner.line() {
            guard line.starts(with: "workingset_refault".utf8) || line.starts(with: "oom_kill".utf8) else { continue }
            var words = ByteScanner(line)
            guard let name = words.word()?.text, let count: UInt64 = words.number() else { continue }
            switch name {
            case "workingset_refault", "workingset_refault_anon", "workingset_refault_file": pages &+= count
            case "oom_kill": oomKills = count
            default: continue
            }
        }
        refaulted = pages &* pageSize
    }
}

/// Keeps /proc/meminfo and /proc/vmstat open, for frequent reads.
package struct MemoryInfoReader: ~Copyable {
    private let memory: KeptFile
    private let statistics: ReopenedFile
    private let root: String

    package init(proc: ProcFS = ProcFS()) throws(SystemError) {
        root = proc.root
        memory = try KeptFile(root + "/meminfo")
        statistics = ReopenedFile(root + "/vmstat")
    }

    package func read() throws(SystemError) -> MemoryInfo {
        guard let info = MemoryInfo(parsing: try memory.read()) else {
            throw SystemError(call: "parse", errno: EBADMSG, path: root + "/meminfo")
        }
        return info
    }

    /// Reads /proc/vmstat; nothing is counted if it cannot be read.
    package func counters() -> VMStatistics {
        (try? statistics.read(limit: 64 * 1024)).flatMap { $0 }.map { VMStatistics(parsing: $0) } ?? VMStatistics()
    }

    /// Reads /proc/zoneinfo, which takes longer than all other files together.
    package func perCPUPages() throws(SystemError) -> UInt64 {
        MemoryInfo.perCPUPages(parsing: try readFile(at: root + "/zoneinfo", limit: 4 << 20))
    }
}
