/// Sockets that the daemon holds for apps: a connection launches or wakes the app (L29).
extension LifecycleCore {
    /// The sockets are watched again after a launch that failed. What waits is reported at once: a report that comes later than
    /// this is of new clients, and the wait of those before is over.
    static let repeatedReport = Duration.seconds(1)
    /// The shortest wait for datagrams: nothing ends theirs but a launch, so they would be reported again at once.
    static let shortestDatagramWait = Duration.seconds(1)
    /// The last one of so many early ends without a failure, within this time, holds back launches as a failure does (L11): an app
    /// that ends without accepting the connection that it was launched for would be launched again at once. As systemd's
    /// `DefaultStartLimitBurst=` and `DefaultStartLimitIntervalSec=`.
    static let maximumEarlyExits = 5
    static let earlyExitTime = Duration.seconds(10)

    // MARK: The watch

    /// Asks the daemon to watch the sockets while a client that comes would have to wait, once an event is carried out. A watch
    /// ends with the first report, and is asked for again when the app cannot accept by itself any more.
    mutating func followSockets(_ index: AppIndex, _ now: Instant) {
        let isHeld = apps[index].policy.holdsSockets
        guard isHeld || apps[index].sockets != SocketState() else { return }
        if !isHeld || !apps[index].isRegistered { apps[index].sockets.wait = nil }
        let isWatched = isHeld && isToBeWatched(index)
        guard isWatched != apps[index].sockets.isWatched else { return }
        apps[index].sockets.isWatched = isWatched
        let id = apps[index].id
        guard isWatched else { return effects.append(.sockets(id, .stopWatching)) }
        apps[index].sockets.wait?.watchedSince = now
        effects.append(.sockets(id, .watch))
    }

    @inline(__always)
    private func isToBeWatched(_ index: AppIndex) -> Bool {
        guard apps[index].isRegistered, !apps[index].isRemoved, !isShuttingDown, !isGone(index) else { return false }
        switch apps[index].phase {
        case .suspended: return true
        case .notRunning:
            // A launch that no client waits for comes after the others (L52).
            if apps[index].queuedLaunch?.isRequested ?? false { return false }
            return !(apps[index].sockets.wait?.isPostponed ?? false)
        case .launching, .foreground, .enteringBackground, .background, .suspending, .waking, .terminating, .ending:
            return false
        }
    }

    /// The watches of the daemon that died have ended with it, and so may have clients.
    mutating func recoverSockets() {
        for index in apps.indices where !apps[index].isRemoved {
            let policy = apps[index].policy
            guard policy.holdsSockets || policy.unloadAfter != nil || policy.isTransient else { continue }
            apps[index].sockets.isWatched = false
            apps[index].sockets.wait?.isPostponed = false
            apps[index].awaitsRequest = false
            touch(index)
        }
    }

    // MARK: Clients

    /// A connection or a datagram waits. A report that comes after the watch is late: the app accepts by itself, or what waits
    /// is reported again after its end.
    mutating func socketsReady(_ id: AppID, _ input: Input, _ now: Instant) {
        guard let index = indices[id], apps[index].sockets.isWatched else { return }
        touch(index)
        apps[index].sockets.isWatched = false
        guard !isShuttingDown else { return }
        switch apps[index].phase {
        case .notRunning: clientWaits(index, input, now)
        case .suspended: wake(index, by: input, isHeld: true, now)
        case .launching, .foreground, .enteringBackground, .background, .suspending, .waking, .terminating, .ending:
            break
        }
    }

    private mutating func clientWaits(_ index: AppIndex, _ input: Input, _ now: Instant) {
        var wait = apps[index].sockets.wait
        if let watched = wait?.watchedSince, now - watched > Self.repeatedReport { wait = nil }
        var joined = wait ?? SocketWait(since: now, isDatagram: true)
        joined.watchedSince = nil
        if input.kind != .datagram { joined.isDatagram = false }
        // A launch that waits already is not held back.
        joined.isPostponed = isLaunchPostponed(index, now) && apps[index].queuedLaunch == nil
        apps[index].sockets.wait = joined
        if joined.isPostponed, let at = rejectionDue(index), at <= now { return rejectClients(index, now) }
        if !joined.isPostponed { launch(index, launchForClients(index, now), now) }
    }

    private func isLaunchPostponed(_ index: AppIndex, _ now: Instant) -> Bool {
        apps[index].postponedUntil.map { $0 > now } ?? false
    }

    /// A client is outside every app (L53), and no user who asks for the app. A worker is awake for as long as it works; any other
    /// app gets the time of a wake (L26).
    func launchForClients(_ index: AppIndex, _ now: Instant) -> QueuedLaunch {
        QueuedLaunch(
            launch: Launch(state: .background, reason: .socket),
            wake: apps[index].policy.role == .worker ? nil : .socket, since: now, isRequested: true)
    }

    /// When clients that wait for a launch are served, or reset; `nil`: none wait, or a launch is under way.
    func clientsDue(_ index: AppIndex) -> Instant? {
        guard let wait = apps[index].sockets.wait, wait.isPostponed, !isShuttingDown else { return nil }
        let launch = apps[index].postponedUntil ?? wait.since
        return rejectionDue(index).map { min($0, launch) } ?? launch
    }

    /// When clients that wait are reset; `nil`: never.
    private func rejectionDue(_ index: AppIndex) -> Instant? {
        guard let wait = apps[index].sockets.wait, let time = apps[index].policy.connectionWait else { return nil }
        return wait.since + (wait.isDatagram ? max(time, Self.shortestDatagramWait) : time)
    }

    mutating func clientsAreDue(_ index: AppIndex, _ now: Instant) {
        if isLaunchPostponed(index, now) { return rejectClients(index, now) }
        launch(index, launchForClients(index, now), now)
    }

    /// L11 holds the launch back for longer than clients may wait. Those that come next wait anew.
    private mutating func rejectClients(_ index: AppIndex, _ now: Instant) {
        guard let wait = apps[index].sockets.wait else { return }
        apps[index].sockets.wait = nil
        effects.append(.sockets(apps[index].id, .reject))
        if !wait.isDatagram { report(.connectionsRejected(apps[index].id, after: now - wait.since)) }
    }

    // MARK: Ends

    /// An app ended early without a failure, as one that serves a single client may.
    /// - Returns: whether it has done so more often than is tolerated.
    mutating func exitsTooOften(_ index: AppIndex, _ now: Instant) -> Bool {
        guard apps[index].policy.holdsSockets else { return false }
        var exits = apps[index].sockets.earlyExits ?? EarlyExits(since: now)
        if now - exits.since >= Self.earlyExitTime { exits = EarlyExits(since: now) }
        exits.count = min(exits.count + 1, Self.maximumEarlyExits)
        apps[index].sockets.earlyExits = exits
        return exits.count == Self.maximumEarlyExits
    }
}
