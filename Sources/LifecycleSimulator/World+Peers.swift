import LifecycleCore

/// Simulates the peers of apps: what they send, and when (L50).
extension World {
    private enum Peer: Int {
        case connection, bytes, oneByte, end, datagram, timer, event, local, flood, lock
    }

    private static let listener: Int32 = 3
    private static let stream: Int32 = 4
    private static let datagram: Int32 = 8
    static let timer: Int32 = 9
    static let event: Int32 = 10
    private static let local: Int32 = 11
    /// One end of a socket pair whose other end the app has, too.
    private static let pair: Int32 = 12

    /// A peer of one app acts, at random intervals.
    mutating func actAsPeer() {
        if isQuiet { return }
        queue.push(.peer, at: now + 1 + traffic.random.within(0...2 * scenario.pace))
        // Half of them are peers of the first two apps.
        let candidates = traffic.random.chance(500) ? min(2, apps.count) : apps.count
        let app = traffic.random.below(candidates)
        let drawn = Peer(rawValue: traffic.random.weighted([20, 16, 8, 4, 4, 5, 3, 8, 4, 8]))
        guard let drawn, let run = apps[app].run, runs[run].program == .running else { return }
        act(drawn, on: run, app)
    }

    private mutating func act(_ peer: Peer, on run: Int, _ app: Int) {
        switch peer {
        case .connection: arrive(input(.listener, run, Self.listener, 0, "192.0.2.7:50123"), at: run)
        case .bytes:
            let descriptor = Self.stream + Int32(traffic.random.below(3))
            let bytes: UInt64 = traffic.random.pick([1, 20, 400, 5000, 100_000])
            arrive(input(.stream, run, descriptor, bytes), at: run)
        case .oneByte: arrive(input(.stream, run, Self.stream, 1), at: run)
        case .end: closeConnection(run)
        case .datagram:
            let isOwn = traffic.settings[app].sendsToItself
            arrive(isOwn ? own(.datagram, run, 512) : input(.datagram, run, Self.datagram, 512), at: run)
        case .timer: arrive(input(.timer, run, Self.timer, 8), at: run)
        case .event:
            let kind: InputKind = traffic.random.chance(500) ? .event : .epoll
            arrive(input(kind, run, Self.event, 0), at: run)
        case .local: fillBuffer(run)
        case .flood:
            faults.add(.inputFlood)
            flood(run, left: 5 + traffic.random.below(20))
        case .lock: if traffic.settings[app].holdsLocks { lockFile(run) }
        }
    }

    func input(
        _ kind: InputKind, _ run: Int, _ descriptor: Int32, _ bytes: UInt64, _ peer: String = "192.0.2.9:40000"
    ) -> Input {
        Input(kind: kind, pid: runs[run].pid, descriptor: descriptor, bytes: bytes, peer: peer)
    }

    /// The app has sent it to itself.
    private func own(_ kind: InputKind, _ run: Int, _ bytes: UInt64) -> Input {
        var own = input(kind, run, Self.pair + (kind == .datagram ? 1 : 0), bytes, "")
        own.source = .own
        // Of AF_UNIX messages any one counts.
        own.isHalfFull = kind == .datagram
        return own
    }

    /// A local peer has filled more than half of the buffer towards the app.
    mutating func fillBuffer(_ run: Int) {
        var filled = input(.stream, run, Self.local, 150_000, "/run/app.sock")
        filled.isHalfFull = true
        arrive(filled, at: run)
    }

    /// The end of a stream, without bytes.
    mutating func closeConnection(_ run: Int) {
        var end = input(.stream, run, Self.stream, 0)
        end.isEnd = true
        arrive(end, at: run)
    }

    mutating func flood(_ run: Int, left: Int) {
        guard !isQuiet, left > 0 else { return }
        let bytes = UInt64(1 + traffic.random.below(2000))
        arrive(input(.stream, run, Self.stream + 1, bytes), at: run)
        schedule(.flood(left: left - 1), for: run, after: traffic.random.within(1 * .millisecond...10 * .millisecond))
    }

    /// A local program sends what wakes the app, soon after it was suspended.
    mutating func pester(_ run: Int, _ attempt: Int) {
        guard !isQuiet, traffic.runs[run].watch?.attempt == attempt else { return }
        faults.add(.pesters)
        let policy = apps[runs[run].app].policy
        guard policy.wakesOnTraffic else { return fillBuffer(run) }
        let bytes = max(1, policy.wakeThreshold.bytes)
        // The bytes were under way when it was frozen.
        let isOwn = traffic.settings[runs[run].app].sendsToItself
        arrive(isOwn ? own(.stream, run, bytes) : input(.stream, run, Self.stream, bytes), at: run)
    }

    /// The app locks a file for some time.
    private mutating func lockFile(_ run: Int) {
        guard runs[run].canRun, traffic.runs[run].locks == nil else { return }
        faults.add(.holdsLock)
        let count = 1 + traffic.random.below(3)
        traffic.runs[run].locks = FileLocks(count: count, file: "/var/lib/app/data.lock", isShared: count == 3)
        let time: Microseconds = traffic.random.pick([100 * .millisecond, 3 * .second, 20 * .second, 150 * .second])
        plan(.unlockFile, by: run, after: time)
    }

    /// The peers end what they do: clients disconnect, and apps answer and unlock their files.
    mutating func endTraffic(of run: Int) {
        lockForLong(run)
        // Longer than locks may keep an app from being suspended.
        if traffic.runs[run].locks != nil { plan(.unlockFile, by: run, after: 90 * .second) }
        // With `KeepAwake=connections` they were work until now.
        if traffic.runs[run].connections > 0 { traffic.runs[run].lastWork = now }
        // So were ticks, which end here.
        let app = runs[run].app
        if app < traffic.settings.count, traffic.settings[app].tick != nil { traffic.runs[run].lastWork = now }
        traffic.runs[run].connections = 0
        traffic.runs[run].unsentUntil = min(now, traffic.runs[run].unsentUntil)
        if !traffic.runs[run].requests.isEmpty { plan(.answerRequests, by: run, after: 1000) }
    }
}
