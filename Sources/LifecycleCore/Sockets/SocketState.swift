/// What the core knows of the sockets that the daemon holds for an app (L29).
struct SocketState: Hashable, Sendable {
    /// The daemon was asked to watch them, and has neither reported that a client waits nor been asked to stop.
    var isWatched = false
    /// Clients wait for a launch; `nil`: none has been reported since the app last became ready.
    var wait: SocketWait?
    /// How often the app ended early without a failure; `nil`: its last end was another one.
    var earlyExits: EarlyExits?
}

/// Clients wait until the app is ready. A launch that fails does not end their wait.
struct SocketWait: Hashable, Sendable {
    /// When the first of them was reported.
    var since: Instant
    /// Only datagrams were reported: there may be no connection to reset.
    var isDatagram = false
    /// They are known to wait, and L11 holds the launch back.
    var isPostponed = false
    /// Since when the sockets are watched again, after a launch that failed; `nil`: they are not.
    var watchedSince: Instant?
}

/// Ends of an app within `earlyEnd` of the launch that were no failures, within a time from the first of them on.
struct EarlyExits: Hashable, Sendable {
    var since: Instant
    var count = 0
}

/// What is done with the sockets that the daemon holds for an app.
package enum SocketEffect: Hashable, Sendable {
    /// Watches them (L29). → `socketsReady`, once, as soon as a connection or a datagram waits. It may wait already.
    case watch
    case stopWatching
    /// Resets the connections that wait: the app cannot be launched in time (L11, `ConnectionWaitSec=`).
    case reject
}
