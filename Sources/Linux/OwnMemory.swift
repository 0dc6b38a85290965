import CLinux
import Glibc
import Posix

/// The memory of this process: it can be locked, and what is free of the heap goes back to the kernel.
package final class OwnMemory {
    private var isLocked = false
    private static let pageSize = UInt64(sysconf(Int32(_SC_PAGESIZE)))

    /// What malloc(3) keeps free at the end of the heap, in bytes. Less would take system calls for each larger array.
    private static let heapEnd = 256 << 10

    package init() {}

    /// Bounds what of the heap is kept although it is free.
    package func boundHeap() { clinux_bound_heap_end(Self.heapEnd) }

    /// Locks all memory, page by page as it is used (mlockall(2), MCL_ONFAULT).
    package func lock() {
        isLocked = mlockall(CInt(MCL_CURRENT) | CInt(MCL_FUTURE) | CInt(MCL_ONFAULT)) == 0
    }

    /// How much of it is resident, in bytes; `nil`: /proc does not tell.
    package func resident() -> UInt64? {
        // "size resident shared …", in pages (proc_pid_statm(5)).
        guard let bytes = try? readFile(at: "/proc/self/statm", limit: 256) else { return nil }
        let words = bytes.split(separator: UInt8(ascii: " "))
        return words.count > 1 ? UInt64(words[1].text).map { $0 * Self.pageSize } : nil
    }

    /// Gives the free pages of the heap back to the kernel (malloc_trim(3)). The kernel does not take locked pages
    /// (madvise(2)), so they are unlocked meanwhile.
    package func trim() {
        if isLocked { munlockall() }
        clinux_trim_heap()
        if isLocked { lock() }
    }
}
