import Glibc
package import Posix

/// /proc/PID/statm, in bytes (proc_pid_statm(5)).
package struct ProcessMemory: Equatable {
    package var size: UInt64
    package var resident: UInt64
    /// The part of `resident` that is file-backed or shared.
    package var shared: UInt64

    /// The bytes that the kernel gets back if only this process ends: resident pages that are neither file-backed nor shared.
    /// File pages stay in the cache or belong to other processes too. Swapped pages are not included; pages that parent and
    /// child share after a fork are counted for both.
    package var anonymous: UInt64 { resident > shared ? resident - shared : 0 }

    package init?(parsing bytes: [UInt8], pageSize: UInt64 = ProcessMemory.pageSize) {
        var scanner = ByteScanner(bytes)
        guard let size: UInt64 = scanner.number(), let resident: UInt64 = scanner.number(),
            let shared: UInt64 = scanner.number()
        else { return nil }
        self.size = size &* pageSize
        self.resident = resident &* pageSize
        self.shared = shared &* pageSize
    }

    package static let pageSize = UInt64(max(sysconf(Int32(_SC_PAGESIZE)), 4096))
}

/// /proc/PID/smaps_rollup, in bytes. It is exact but slow: 12 ms for 1 GiB in small pages.
package struct ProcessMemoryRollup: Equatable {
    /// The proportional set size: shared pages are divided among the processes that share them.
    package var pss: UInt64
    package var swapPss: UInt64

    package init?(parsing bytes: [UInt8]) {
        guard let pss = kibibytes(bytes, "Pss:") else { return nil }
        self.pss = pss
        swapPss = kibibytes(bytes, "SwapPss:") ?? 0
    }
}

/// Returns the value of a line "Name:   123 kB" in bytes.
func kibibytes(_ bytes: [UInt8], _ name: String) -> UInt64? {
    guard let number = flatKeyed(bytes, name) else { return nil }
    let (product, overflow) = number.multipliedReportingOverflow(by: 1024)
    return overflow ? nil : product
}

extension ProcFS {
    package func memory(of pid: Int32) throws(SystemError) -> ProcessMemory? {
        try read("statm", of: pid).flatMap { ProcessMemory(parsing: $0) }
    }

    package func memoryRollup(of pid: Int32) throws(SystemError) -> ProcessMemoryRollup? {
        try read("smaps_rollup", of: pid).flatMap { ProcessMemoryRollup(parsing: $0) }
    }
}
