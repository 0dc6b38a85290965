import Glibc
import Linux
import Posix
import Synchronization

/// Memory that this program and the bench app share: an app notes there when it gets to run, so that nothing lies between
/// its first line and the time that is known of it. The layout is the bench app's `struct slot`.
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
        else { throw BenchFailure("no shared memory: error \(errno)") }
        self.memory = memory
    }

    deinit { munmap(memory, count * Self.slotSize) }

    /// By which other processes of this user open it.
    var path: String { "/proc/\(getpid())/fd/\(file.raw)" }

    private enum Word: Int { case asked, answered, time, pid }

    private func word(_ slot: Int, _ word: Word) -> UnsafeMutablePointer<Atomic<UInt64>> {
        precondition(slot >= 0 && slot < count, "no slot \(slot)")
        return (memory + slot * Self.slotSize + word.rawValue * 8).assumingMemoryBound(to: Atomic<UInt64>.self)
    }

    func ask(_ slot: Int, _ number: UInt64) {
        word(slot, .asked).pointee.store(number, ordering: .releasing)
    }

    func answered(_ slot: Int) -> UInt64 { word(slot, .answered).pointee.load(ordering: .acquiring) }
    func time(_ slot: Int) -> UInt64 { word(slot, .time).pointee.load(ordering: .acquiring) }
    func pid(_ slot: Int) -> Int32 { Int32(truncatingIfNeeded: word(slot, .pid).pointee.load(ordering: .acquiring)) }

    func clear(_ slots: Range<Int>) {
        memset(memory + slots.lowerBound * Self.slotSize, 0, slots.count * Self.slotSize)
    }

    /// Waits until all of them have noted a time.
    func awaitTimes(_ slots: Range<Int>, _ what: String) throws {
        var next = slots.lowerBound
        try eventually(what, everyMicroseconds: 500) {
            while next < slots.upperBound, time(next) != 0 { next += 1 }
            return next == slots.upperBound
        }
    }
}
