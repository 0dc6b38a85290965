import CLinux
import Glibc

/// Closes descriptors that a stranger gave us, on a thread of its own: close(2) may wait for whoever is behind them, for as
/// long as that one likes (a TCP socket with SO_LINGER, a file of a FUSE server that does not answer). One for each
/// stranger, so that nobody waits for another.
package final class DescriptorCloser {
    /// `nil`: there was no memory for it; then it is closed by whoever asks.
    private let closer: OpaquePointer?

    package init() { closer = clinux_closer_create() }

    /// What is still to be closed then is closed all the same.
    deinit { if let closer { clinux_closer_release(closer) } }

    /// Takes `descriptor` over, and returns at once.
    package func close(_ descriptor: Int32) {
        guard let closer else { return _ = Glibc.close(descriptor) }
        clinux_closer_close(closer, descriptor)
    }

    /// How many are not closed yet.
    package var pending: Int { closer.map { Int(clinux_closer_pending($0)) } ?? 0 }
}
