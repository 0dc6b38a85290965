import Linux
import LoopPolicy
import Posix
import Systemd

/// Gives memory that much work needed back to the kernel. While 1,000 apps are launched or suspended at once the heap is some times
/// as large as afterwards, and malloc(3) keeps the pages that become free in the middle of it.
///
/// It looks each half second from when much work was done until none was, so it does nothing when nothing happens (law 9), and under
/// load it takes at most 1 ms of each half second.
final class HeapTrim {
    /// Less work needs little memory: no look, which would be a wakeup of its own.
    private static let leastPieces = 64
    /// What has to be resident in addition, in bytes: trimming takes about 1 ms.
    private static let leastGrowth: UInt64 = 64 << 10
    private static let interval = Duration.milliseconds(500)

    private let memory: OwnMemory
    private let loop: EventLoop
    private var timer: Timer?
    private var seenPieces = 0
    /// What was resident after the last trim, or less if that was so since; in bytes.
    private var least: UInt64 = 0

    init(_ memory: OwnMemory, _ loop: EventLoop) throws(SystemError) {
        self.memory = memory
        self.loop = loop
        timer = try loop.makeTimer(kind: .timer) { [unowned self] _ in look() }
        loop.work.onEmpty = { [unowned self] in workIsDone() }
    }

    private func workIsDone() {
        guard loop.work.pieces - seenPieces >= Self.leastPieces, let timer, !timer.isArmed else { return }
        timer.arm(at: loop.now() + Self.interval)
    }

    private func look() {
        // The last pieces free what the ones before needed.
        if loop.work.pieces > seenPieces { timer?.arm(at: loop.now() + Self.interval) }
        seenPieces = loop.work.pieces
        guard let resident = memory.resident() else { return }
        least = min(least, resident)
        guard resident - least >= Self.leastGrowth else { return }
        memory.trim()
        least = memory.resident() ?? resident
    }
}
