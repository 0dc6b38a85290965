import LifecycleCore

/// The memory of a simulated machine, or of a container, in bytes. Virtual time passes in steps of 1 ms, in which programs
/// allocate and the kernel reclaims: free pages first, then the page cache that is not in use, then swap, and the text of
/// programs, which is read again from disk.
struct MemoryMachine {
    struct Hardware {
        /// What the apps and all other programs share: the machine's memory, or the limit of the container.
        var total = 8 << 30
        /// The machine's memory where the limit is that of a container; `nil`: there is no limit below the machine's memory.
        var outside: Int?
        /// What swap can take, before compression.
        var swap = 0
        /// Bytes that one byte of memory holds compressed (zram), times 100; `nil`: swap is on a disk.
        var compression: Int?
        /// Bytes that are swapped in 1 ms.
        var swapRate = 200 << 10
        /// Bytes that are read from disk in 1 ms.
        var diskRate = 500 << 10
        /// Bytes of clean pages that are reclaimed in 1 ms.
        var reclaimRate = 4 << 20
        /// Bytes that an ending process gives back in 1 ms.
        var exitRate = 6 << 20
        /// How long a part of freed memory is on the lists of the processors, where MemAvailable does not count it.
        var settling: Microseconds = 50 * .millisecond
    }

    let hardware: Hardware
    /// Resident memory of programs that are not apps, and of the kernel.
    var others: Int
    /// Page cache that no program reads again.
    var coldCache: Int
    /// The text of programs and other files that are in use, and how much of it would be in use if there were space.
    var hotCache: Int
    let wantedHotCache: Int
    /// Resident memory of all apps, including those that end.
    var resident = 0
    /// Bytes of apps in swap, before compression.
    var swapped = 0
    private(set) var refaulted = 0
    /// Freed memory that MemAvailable does not count yet.
    private var settling: [(bytes: Int, at: Microseconds)] = []
    /// How long programs waited for memory, in all.
    private(set) var someStalls: Microseconds = 0
    private(set) var fullStalls: Microseconds = 0
    /// Kills of the kernel's OOM killer.
    var kills = 0
    /// What may be done in this step.
    private var swapLeft = 0
    private var reclaimLeft = 0
    private var diskLeft = 0

    init(_ hardware: Hardware, others: Int, coldCache: Int, hotCache: Int) {
        self.hardware = hardware
        self.others = others
        self.coldCache = coldCache
        self.hotCache = hotCache
        wantedHotCache = hotCache
    }

    /// The low watermark: what the kernel keeps free.
    private var reserve: Int { hardware.total / 512 }
    /// Memory that holds compressed pages.
    /// More than a tenth of the swap space is free.
    var hasSwapLeft: Bool { hardware.swap - swapped > hardware.swap / 10 }

    private var compressed: Int { hardware.compression.map { swapped * 100 / $0 } ?? 0 }
    private var settlingBytes: Int { settling.reduce(0) { $0 + $1.bytes } }
    var free: Int { hardware.total - others - coldCache - hotCache - resident - compressed }
    /// MemAvailable (mm/show_mem.c): free pages, and the page cache except for a part that the kernel keeps.
    var available: Int {
        let cache = coldCache + hotCache
        return max(0, free - settlingBytes - reserve + cache - min(cache / 2, reserve))
    }

    /// The part of an app's memory that a kill gives back: swapped pages only as far as memory holds them.
    func givenBack(resident: Int, swapped: Int) -> Int {
        resident + (hardware.compression.map { swapped * 100 / $0 } ?? 0)
    }

    mutating func begin(at now: Microseconds) {
        settling.removeAll { $0.at <= now }
        swapLeft = hardware.swapRate
        reclaimLeft = hardware.reclaimRate
        diskLeft = hardware.diskRate
    }

    /// The memory of an ending process is free. A part of it, at most 64 MiB in all, is counted later.
    mutating func release(_ bytes: Int, at now: Microseconds) {
        resident -= bytes
        let part = min(bytes / 8, (64 << 20) - min(64 << 20, settlingBytes))
        if part > 0, hardware.settling > 0 { settling.append((part, now + hardware.settling)) }
    }

    /// Allocates memory for an app or another program.
    /// - Parameter swapOut: swaps at most this much of apps that do not run. Returns how much it was.
    /// - Returns: how much of `bytes` was allocated. The caller adds it to what uses it.
    mutating func allocate(_ bytes: Int, swapOut: (Int) -> Int) -> Int {
        var space = max(0, free - reserve)
        if space < bytes {
            let taken = reclaim(bytes - space, of: coldCache)
            coldCache -= taken
            space += taken
        }
        if space < bytes, swapLeft > 0 {
            let out = swapOut(min(bytes - space, swapLeft, hardware.swap - swapped))
            swapLeft -= out
            swapped += out
            resident -= out
            space = max(0, free - reserve)
        }
        if space < bytes {
            let taken = reclaim(bytes - space, of: hotCache - wantedHotCache / 16)
            hotCache -= taken
            space += taken
        }
        return min(bytes, space)
    }

    /// Pages of a frozen app are pushed out before memory is short.
    /// - Returns: how many bytes.
    mutating func swapOut(_ bytes: Int) -> Int {
        let out = max(0, min(bytes, swapLeft, hardware.swap - swapped))
        swapLeft -= out
        swapped += out
        resident -= out
        return out
    }

    private mutating func reclaim(_ bytes: Int, of cache: Int) -> Int {
        let taken = max(0, min(bytes, cache, reclaimLeft))
        reclaimLeft -= taken
        return taken
    }

    /// Reads swapped pages of an app that uses them.
    mutating func swapIn(_ bytes: Int) -> Int {
        let taken = max(0, min(bytes, swapLeft, free - reserve / 2))
        swapLeft -= taken
        swapped -= taken
        resident += taken
        refaulted += taken
        return taken
    }

    /// Whether programs read text again, or wait for it.
    var isRefaulting: Bool {
        let missing = wantedHotCache - hotCache
        return missing > wantedHotCache / 4 || missing > 0 && free > reserve
    }

    /// Programs read again what was reclaimed of their text, as fast as the disk allows.
    /// - Returns: whether they waited for it.
    mutating func refault() -> Bool {
        let missing = wantedHotCache - hotCache
        guard missing > 0 else { return false }
        let read = max(0, min(missing, diskLeft, free - reserve))
        hotCache += read
        refaulted += max(read, min(missing, diskLeft) / 4)
        return missing > wantedHotCache / 4
    }

    mutating func stall(some: Bool, full: Bool) {
        if some { someStalls += .millisecond }
        if full { fullStalls += .millisecond }
    }

    func reading(_ sizes: [MemoryReading.Size]) -> MemoryReading {
        var reading = MemoryReading(
            total: UInt64(hardware.outside ?? hardware.total), available: UInt64(available), sizes: sizes)
        if let outside = hardware.outside {
            reading.available = UInt64(outside - hardware.total + available)
            reading.limit = MemoryReading.Limit(
                group: "/container", total: UInt64(hardware.total), available: UInt64(available), kills: UInt64(kills))
        }
        reading.swapTotal = UInt64(hardware.swap)
        reading.swapFree = UInt64(hardware.swap - swapped)
        reading.refaulted = UInt64(refaulted)
        reading.stalls = MemoryReading.Stalls(some: someStalls.duration, full: fullStalls.duration)
        return reading
    }
}
