import Linux
import Systemd

/// One helper for each user on the private socket who has something to be closed, so that nobody waits for another.
final class StrangersClosers {
    private var closers: [UInt32: DescriptorCloser] = [:]

    var closer: StrangersCloser {
        StrangersCloser(close: { self.close($0, $1) }, pending: { self.closers[$0]?.pending ?? 0 })
    }

    private func close(_ descriptor: Int32, _ uid: UInt32) {
        // Most are done by the time that somebody else comes.
        closers = closers.filter { $0.key == uid || $0.value.pending > 0 }
        let closer = closers[uid] ?? DescriptorCloser()
        closers[uid] = closer
        closer.close(descriptor)
    }
}
