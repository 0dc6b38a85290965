import Glibc
import Linux
import Posix
import Synchronization

/// Memory shared with the bench apps, in which an app records when it runs. The time is thus measured in the app's first
/// statement. The layout is `struct slot` of Sources/scripts/bench.d/board.h.
final class Board {
    private static let slotSize = 64
    private let file: Descriptor
    private let memory: UnsafeMutableRawPointer
    let count: Int

    init(slots count: Int) throws {
        self.count = count
        file = try MemoryFile.empty("greenroom-bench")
        let size = count * Self.slotSize
        guard ftruncate(file.raw, size) == 0,
            let memory = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.raw, 0), memory != MAP_FAILED
        else { throw BenchFailure("cannot map shared memory: error \(errno)") }
        self.memory = memory
    }

    deinit { munmap(memory, count * Self.slotSize) }

    /// The path by which other processes of this user open the memory.
    var path: String { "/proc/\(getpid())/fd/\(file.raw)" }

    private enum Word: Int { case requested, answered, time, pid, port }

    private func word(_ slot: Int, _ word: Word) -> UnsafeMutablePointer<Atomic<UInt64>> {
        precondition(slot >= 0 && slot < count, "no slot \(slot)")
        return (memory + slot * Self.slotSize + word.rawValue * 8).assumingMemoryBound(to: Atomic<UInt64>.self)
    }

    func request(_ slot: Int, _ number: UInt64) {
        word(slot, .requested).pointee.store(number, ordering: .releasing)
    }

    func answered(_ slot: Int) -> UInt64 { word(slot, .answered).pointee.load(ordering: .acquiring) }
    func time(_ slot: Int) -> UInt64 { word(slot, .time).pointee.load(ordering: .acquiring) }
    func pid(_ slot: Int) -> Int32 { Int32(truncatingIfNeeded: word(slot, .pid).pointee.load(ordering: .acquiring)) }

    /// The port at which a server listens; 0 until it does.
    func port(_ slot: Int) -> UInt16 {
        UInt16(truncatingIfNeeded: word(slot, .port).pointee.load(ordering: .acquiring))
    }

    func clear(_ slots: Range<Int>) {
        memset(memory + slots.lowerBound * Self.slotSize, 0, slots.count * Self.slotSize)
    }

    /// Waits until all slots have a time.
    func awaitTimes(_ slots: Range<Int>, _ what: String) throws {
        var next = slots.lowerBound
        try eventually(what, everyMicroseconds: 500) {
            while next < slots.upperBound, time(next) != 0 { next += 1 }
            return next == slots.upperBound
        }
    }

    /// Waits until the servers of all slots listen.
    func awaitPorts(_ slots: Range<Int>) throws {
        var next = slots.lowerBound
        try eventually("\(slots.count) servers listen", everyMicroseconds: 500) {
            while next < slots.upperBound, port(next) != 0 { next += 1 }
            return next == slots.upperBound
        }
    }
}
