import Glibc
package import Posix

/// The memory of a process in bytes, from /proc/PID/status (proc_pid_status(5)).
package struct ProcessMemory: Equatable {
    /// Resident pages of its own (RssAnon). Pages that parent and child share after a fork are counted for both.
    package var anonymous: UInt64 = 0
    /// Resident pages of files (RssFile). They stay in the page cache when the process ends.
    package var file: UInt64 = 0
    /// Resident shared memory: memfds, files in a tmpfs, System V segments (RssShmem).
    package var shared: UInt64 = 0
    /// Pages of its own in swap (VmSwap).
    package var swapped: UInt64 = 0
    /// What the kernel uses for it: page tables (VmPTE), and for each thread its stack and task.
    package var kernel: UInt64 = 0

    /// What the kernel needs for a thread: a stack of 16 KiB, its task and what belongs to it (measured on Linux 6.18).
    static let bytesPerThread: UInt64 = 22 << 10

    /// A process that has ended has no such lines: all values are 0.
    package init(parsingStatus bytes: [UInt8]) {
        var scanner = ByteScanner(bytes)
        while let line = scanner.line() {
            switch line.first {
            case UInt8(ascii: "R"), UInt8(ascii: "V"), UInt8(ascii: "T"): read(line)
            default: break
            }
        }
    }

    private mutating func read(_ line: ArraySlice<UInt8>) {
        var words = ByteScanner(line)
        guard let name = words.word() else { return }
        func bytes() -> UInt64 {
            let (product, overflow) = (words.number() ?? 0 as UInt64).multipliedReportingOverflow(by: 1024)
            return overflow ? 0 : product
        }
        if name.elementsEqual("RssAnon:".utf8) {
            anonymous = bytes()
        } else if name.elementsEqual("RssFile:".utf8) {
            file = bytes()
        } else if name.elementsEqual("RssShmem:".utf8) {
            shared = bytes()
        } else if name.elementsEqual("VmSwap:".utf8) {
            swapped = bytes()
        } else if name.elementsEqual("VmPTE:".utf8) {
            kernel &+= bytes()
        } else if name.elementsEqual("Threads:".utf8) {
            kernel &+= (words.number() ?? 0 as UInt64) &* Self.bytesPerThread
        }
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
        try read("status", of: pid).map { ProcessMemory(parsingStatus: $0) }
    }

    /// Opens the folder of a process, for `HelperThread.measure`.
    package func openFolder(of pid: Int32) throws(SystemError) -> Descriptor {
        try Descriptor.open("\(root)/\(pid)", O_RDONLY | O_DIRECTORY)
    }

    package func memoryRollup(of pid: Int32) throws(SystemError) -> ProcessMemoryRollup? {
        try read("smaps_rollup", of: pid).flatMap { ProcessMemoryRollup(parsing: $0) }
    }
}
