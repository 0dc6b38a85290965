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

/// Keeps /proc/meminfo open, for frequent reads.
package struct MemoryInfoReader: ~Copyable {
    private let memory: KeptFile
    private let root: String

    package init(proc: ProcFS = ProcFS()) throws(SystemError) {
        root = proc.root
        memory = try KeptFile(root + "/meminfo")
    }

    package func read() throws(SystemError) -> MemoryInfo {
        guard let info = MemoryInfo(parsing: try memory.read()) else {
            throw SystemError(call: "parse", errno: EBADMSG, path: root + "/meminfo")
        }
        return info
    }

    /// Reads /proc/zoneinfo. It is slower, so use it only after a kill.
    package func perCPUPages() throws(SystemError) -> UInt64 {
        MemoryInfo.perCPUPages(parsing: try readFile(at: root + "/zoneinfo", limit: 4 << 20))
    }
}
