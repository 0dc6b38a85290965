import Manifest
import Posix
import Systemd

/// Limits the warnings about the notify messages and the inbox of one app, so that it cannot fill the journal.
struct NotifyWarningLimit {
    /// The most warnings that are logged in a minute: enough for a program that is being written.
    static let perMinute = 10
    static let minute = Duration.seconds(60)

    /// When the minute is over that began with the first of its warnings, in time of `EventLoop.now`.
    private(set) var end = Duration.zero
    private var count = 0
    private var omitted = 0

    func isOver(at now: Duration) -> Bool { now >= end }

    /// Counts a warning.
    /// - Returns: whether it is logged.
    mutating func admits(at now: Duration) -> Bool {
        if isOver(at: now) { (end, count) = (now + Self.minute, 0) }
        count += 1
        if count <= Self.perMinute { return true }
        omitted += 1
        return false
    }

    /// How many warnings were not logged since the last call.
    mutating func takeOmitted() -> Int {
        defer { omitted = 0 }
        return omitted
    }
}

/// Keys that are defined and have no effect in this version.
private let laterKeys = ["X_GREENROOM_BEGIN_MODE", "X_GREENROOM_END_MODE"]

/// The warning about a key that is not known; `nil`: it is neither Greenroom's nor similar to one that is known, so that it is
/// probably meant for another receiver.
func notifyKeyProblem(_ key: String) -> String? {
    let shown = key.printable(upTo: 64)
    if laterKeys.contains(key) { return "\(shown)= is not implemented; it was ignored" }
    if let similar = nearest(key, among: NotifyDatagram.keys) {
        return "\(shown)= is not known and was ignored; did you mean \(similar)=?"
    }
    return key.hasPrefix("X_GREENROOM_") ? "\(shown)= is not known and was ignored" : nil
}
