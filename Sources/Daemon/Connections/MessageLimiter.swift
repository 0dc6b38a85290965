import LoopPolicy
import Posix
import Systemd

/// Counts the messages of an app's connections, in windows of one second.
final class MessageLimiter {
    /// The most messages that are read in a second, as of the notify socket.
    static let perSecond = NotifySocket.messagesPerSecond

    private(set) var end = Duration.zero
    /// Ends a pause of a flood.
    fileprivate var pause: Systemd.Timer?
    private var messages = 0

    /// Counts a message. What was counted above the limit counts in the next second.
    /// - Returns: whether no more are read in this second.
    func count(at now: Duration) -> Bool {
        if now >= end { (end, messages) = (now + .seconds(1), max(0, messages - Self.perSecond)) }
        messages += 1
        return messages >= Self.perSecond
    }

    /// Counts bytes that were written to a file for the app.
    func charge(bytes: Int) { messages += bytes / NotifySocket.bytesPerMessage }
}

extension ConnectionTransport {
    /// Whether messages wait because there were too many.
    var isPaused: Bool { limiter?.pause?.isArmed == true }

    /// A message has arrived. After too many the rest waits in the sockets until the second is over.
    func countMessage() {
        let limiter = self.limiter ?? MessageLimiter()
        self.limiter = limiter
        let isFull = limiter.count(at: loop.now())
        let closing = run.socket.closer.pending
        guard isFull || closing > NotifySocket.maximumClosing, !isPaused else { return }
        run.socket.warn(
            isFull
                ? "the app sent \(MessageLimiter.perSecond) messages over its connections within 1s; the rest waits"
                : "the app sent \(closing) descriptors that cannot be closed yet; its messages wait until then")
        for peer in server?.peers ?? [] { peer.hold() }
        if limiter.pause == nil {
            limiter.pause = try? loop.makeTimer(kind: .appTimer) { [weak self] _ in self?.endPause() }
        }
        limiter.pause?.arm(at: limiter.end)
    }

    private func endPause() {
        if run.socket.closer.pending > NotifySocket.maximumClosing {
            limiter?.pause?.arm(at: loop.now() + .seconds(1))
        } else {
            for peer in server?.peers ?? [] { peer.endHold() }
        }
    }

    /// Handles what the processes sent before they ended or a deadline passed: at most the messages of one second.
    func drain() {
        if isPaused { return }
        for peer in server?.peers ?? [] { peer.drain(limit: MessageLimiter.perSecond) }
    }
}
