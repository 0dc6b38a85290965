/// Sockets that the daemon holds for apps: a connection launches or wakes the app (L29).
extension LifecycleCore {
    /// A connection or a datagram waits.
    mutating func socketsReady(_ id: AppID, _ input: Input, _ now: Instant) {
        guard let index = indices[id] else { return }
        touch(index)
    }
}
