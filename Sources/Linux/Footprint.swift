package import Posix

/// The memory of an app in bytes: the same definition with a memory controller and without.
package struct Footprint: Equatable {
    /// What is given back when all processes of the app end: memory of their own, shared memory that no other process holds, what
    /// of both is swapped, and the kernel's memory for them. Pages of files are never included: they stay in the page cache,
    /// and the kernel takes them when it needs memory, without any kill.
    package var bytes: UInt64 = 0
    /// What is in RAM now, pages of files that are mapped included.
    package var resident: UInt64 = 0
    /// What is in swap.
    package var swapped: UInt64 = 0
    /// The shared memory in `bytes`, some of which may outlive the app. Only a memory controller tells it.
    package var shared: UInt64 = 0

    package init() {}

    /// From memory.stat and memory.swap.current of a group (kernel: cgroup-v2.rst). The kernel gives a group's reclaimable
    /// slab, such as directory entries and inodes of files that the app has read, back without a kill.
    init(parsingStat stat: [UInt8], swapped: UInt64) {
        var values = MemoryStat()
        var scanner = ByteScanner(stat)
        while let line = scanner.line() { values.read(line) }
        self.swapped = swapped
        shared = values.shared
        let kernel = values.kernel ?? values.parts
        bytes = values.anonymous &+ values.shared &+ swapped &+ (kernel - min(kernel, values.reclaimable))
        // What is in swap and not freed yet is in the lists of the kernel only, with shared memory. Most of that is mapped, and is part of both.
        let listed = values.listed - min(values.listed, values.shared)
        resident = max(values.anonymous, listed) &+ max(values.shared, values.mapped)
    }
}

/// The lines of memory.stat that count.
private struct MemoryStat {
    var anonymous: UInt64 = 0
    /// Memory that can be swapped out, in its lists.
    var listed: UInt64 = 0
    var shared: UInt64 = 0
    /// Mapped pages of files, and of shared memory.
    var mapped: UInt64 = 0
    var reclaimable: UInt64 = 0
    /// All memory of the kernel, since Linux 5.18; `parts`: its largest parts, on older ones.
    var kernel: UInt64?
    var parts: UInt64 = 0

    mutating func read(_ line: ArraySlice<UInt8>) {
        var words = ByteScanner(line)
        guard let name = words.word(), let value: UInt64 = words.number() else { return }
        func isNamed(_ other: StaticString) -> Bool {
            other.withUTF8Buffer { name.elementsEqual($0) }
        }
        if isNamed("anon") {
            anonymous = value
        } else if isNamed("shmem") {
            shared = value
        } else if isNamed("file_mapped") {
            mapped = value
        } else if isNamed("inactive_anon") || isNamed("active_anon") {
            listed &+= value
        } else if isNamed("slab_reclaimable") {
            reclaimable = value
        } else if isNamed("kernel") {
            kernel = value
        } else if isNamed("slab") || isNamed("kernel_stack") || isNamed("pagetables") || isNamed("percpu") {
            parts &+= value
        }
    }
}

/// The memory of one enclosure, measured in steps: an app can have thousands of processes.
package struct FootprintMeasurement {
    private var pids: ArraySlice<Int32>
    private let proc: ProcFS
    /// What the group's controller tells.
    private let counted: Footprint?
    /// Sums over the processes, and the largest value of one for what processes usually share.
    private var own: UInt64 = 0
    private var swapped: UInt64 = 0
    private var mostSwapped: UInt64 = 0
    private var kernel: UInt64 = 0
    private var mostShared: UInt64 = 0
    private var mostFile: UInt64 = 0
    private var mostOwn: UInt64 = 0

    /// How many processes a step reads: about 12 µs each.
    private static let step = 16

    init(counted: Footprint? = nil, pids: [Int32] = [], proc: ProcFS) {
        self.counted = counted
        self.pids = counted == nil ? pids[...] : []
        processes = pids
        self.proc = proc
    }

    /// What was measured so far. Without a controller it is exact for one process. Pages that several processes share after a
    /// fork are counted for each; shared memory is counted once, as if all processes used the same.
    package var footprint: Footprint {
        if let counted { return counted }
        var sum = Footprint()
        sum.bytes = own &+ mostShared &+ swapped &+ kernel
        sum.resident = own &+ mostShared &+ mostFile
        sum.swapped = swapped
        return sum
    }

    /// The kernel's memory for the processes: page tables and threads.
    package var kernelBytes: UInt64 { kernel }

    /// By how much the app may be smaller: what its processes may share after a fork, in RAM or in swap, and shared memory that may
    /// outlive it.
    package var uncertainty: UInt64 { counted?.shared ?? (own - mostOwn + swapped - mostSwapped + mostShared) }

    /// Whether a memory controller has counted the app.
    package var isCounted: Bool { counted != nil }

    /// The processes that were found.
    package let processes: [Int32]

    /// Measures the next processes.
    /// - Returns: whether there are more.
    package mutating func advance() throws(SystemError) -> Bool {
        for pid in pids.prefix(Self.step) {
            guard let memory = try proc.memory(of: pid) else { continue }
            own &+= memory.anonymous
            mostOwn = max(mostOwn, memory.anonymous)
            swapped &+= memory.swapped
            mostSwapped = max(mostSwapped, memory.swapped)
            kernel &+= memory.kernel
            mostShared = max(mostShared, memory.shared)
            mostFile = max(mostFile, memory.file)
        }
        pids = pids.dropFirst(Self.step)
        return !pids.isEmpty
    }
}
