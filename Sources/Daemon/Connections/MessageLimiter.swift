import LoopPolicy
import Posix
import Systemd

/// Counts the messages of an app's connections, in windows of one second.
struct MessageLimiter {
    /// The most messages that are read in a second, as of the notify socket.
    static let perSecond = NotifySocket.messagesPerSecond

    private(set) var end = Duration.zero
    private var messages = 0

    /// Counts a message. What was counted above the limit counts in the next second.
    /// - Returns: whether no more are read in this second.
    mutating func count(at now: Duration) -> Bool {
        if now >= end { (end, messages) = (now + .seconds(1), max(0, messages - Self.perSecond)) }
        messages += 1
        return messages >= Self.perSecond
    }

    /// Counts bytes that were written to a file for the app.
    mutating func charge(bytes: Int) { messages += bytes / NotifySocket.bytesPerMessage }
}

extension ConnectionTransport {
    /// A message has arrived. After too many the rest waits in the sockets until the second is over.
    func countMessage() {
        let isFull = limiter.count(at: loop.now())
        let closing = run.socket.closer.pending
        guard isFull || closing > NotifySocket.maximumClosing, pause?.isArmed != true else { return }
        run.socket.warn(
            isFull
                ? "the app sent \(MessageLimiter.perSecond) messages over its connections within 1s; the rest waits"
                : "the app sent \(closing) descriptors that cannot be closed yet; its messages wait until then")
        for peer in server?.peers ?? [] { peer.hold() }
        if pause == nil { pause = try? loop.makeTimer(kind: .appTimer) { [weak self] _ in self?.endPause() } }
        pause?.arm(at: limiter.end)
    }

    private func endPause() {
        if run.socket.closer.pending > NotifySocket.maximumClosing {
            pause?.arm(at: loop.now() + .seconds(1))
        } else {
            for peer in server?.peers ?? [] { peer.endHold() }
        }
    }

    /// Handles what the processes sent before they ended or a deadline passed: at most the messages of one second.
    func drain() {
        if pause?.isArmed == true { return }
        for peer in server?.peers ?? [] { peer.drain(limit: MessageLimiter.perSecond) }
    }
}
