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

    /// Returns how many bytes were read again from disk or swap soon after they were evicted, since the machine was started: the
    /// `workingset_refault_*` lines of /proc/vmstat, one line `workingset_refault` before Linux 5.9.
    package static func refaulted(parsing bytes: [UInt8], pageSize: UInt64 = ProcessMemory.pageSize) -> UInt64 {
        var pages: UInt64 = 0
        var scanner = ByteScanner(bytes)
        while let line = scanner.line() {
            guard line.starts(with: "workingset_refault".utf8) else { continue }
            var words = ByteScanner(line)
            guard let name = words.word()?.text, let count: UInt64 = words.number(),
                ["workingset_refault", "workingset_refault_anon", "workingset_refault_file"].contains(name)
            else { continue }
            pages &+= count
        }
        return pages &* pageSize
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

    /// Reads /proc/vmstat; 0 if it cannot be read.
    package func refaulted() -> UInt64 {
        (try? statistics.read(limit: 64 * 1024)).flatMap { $0 }.map { MemoryInfo.refaulted(parsing: $0) } ?? 0
    }

    /// Reads /proc/zoneinfo, which takes longer than all other files together.
    package func perCPUPages() throws(SystemError) -> UInt64 {
        MemoryInfo.perCPUPages(parsing: try readFile(at: root + "/zoneinfo", limit: 4 << 20))
    }
}
