import Linux
import Systemd

/// Gives memory that much work needed back to the kernel. While 1,000 apps are launched or suspended at once the heap is some times
/// as large as afterwards, and malloc(3) keeps the pages that become free in the middle of it.
///
/// It looks when the work queue has become empty, so it does nothing when nothing happens (law 9).
final class HeapTrim {
    /// After less work it does not look: a look takes about 10 µs.
    private static let leastPieces = 64
    /// What has to be resident in addition, in bytes: trimming takes about 1 ms.
    private static let leastGrowth: UInt64 = 256 << 10

    private let memory: OwnMemory
    private let loop: EventLoop
    private var seenPieces = 0
    /// What was resident after the last trim, or less if that was so since; in bytes.
    private var least: UInt64 = 0

    init(_ memory: OwnMemory, _ loop: EventLoop) {
        self.memory = memory
        self.loop = loop
        loop.work.onEmpty = { [unowned self] in look() }
    }

    private func look() {
        guard loop.work.pieces - seenPieces >= Self.leastPieces else { return }
        seenPieces = loop.work.pieces
        guard let resident = memory.resident() else { return }
        least = min(least, resident)
        guard resident - least >= Self.leastGrowth else { return }
        memory.trim()
        least = memory.resident() ?? resident
    }
}
