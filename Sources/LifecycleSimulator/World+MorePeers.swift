import LifecycleCore

/// Simulates what peers, administrators and the kernel do in some of the seeds that have peers: buffers that are full, timers,
/// many descriptors at once, manifests that change, and a daemon that may not watch (L50). Its random draws are a stream of
/// their own.
extension World {
    private enum Act: Int { case fill, timer, event, burst, reload }

    mutating func actAsMorePeers() {
        if isQuiet { return }
        queue.push(.morePeers, at: now + 1 + traffic.more.within(0...2 * scenario.pace))
        let candidates = traffic.more.chance(500) ? min(3, apps.count) : apps.count
        let app = traffic.more.below(candidates)
        guard let act = Act(rawValue: traffic.more.weighted([6, 4, 4, 8, 4])) else { return }
        if act == .reload { return reload(app) }
        if act == .burst { return beginBurst(from: app) }
        guard let run = apps[app].run, runs[run].program == .running else { return }
        switch act {
        case .fill: fillBuffer(run)
        case .timer: arrive(input(.timer, run, Self.timer, 8), at: run)
        case .event: arrive(input(.event, run, Self.event, 8), at: run)
        case .burst, .reload: break
        }
    }

    // MARK: Many descriptors

    /// The run of the next app that is watched for input and is not woken by one byte.
    private func watchedRun(from app: Int) -> Int? {
        for index in app..<app + apps.count {
            let app = apps[index % apps.count]
            guard let run = app.run, let watch = traffic.runs[run].watch, watch.isOpen, !watch.isLost,
                !watch.onlyPeers, app.policy.wakeThreshold.bytes > 1, runs[run].program == .running
            else { continue }
            return run
        }
        return nil
    }

    /// A byte arrives at each of many descriptors.
    private mutating func beginBurst(from app: Int) {
        guard traffic.burstsLeft > 0, let run = watchedRun(from: app), traffic.runs[run].burst == nil else { return }
        traffic.burstsLeft -= 1
        faults.add(.inputBurst)
        // One is as large as an app can be. It costs as many events as a whole seed.
        let isLargest = traffic.burstsLeft == 0 && scenario.seed % 3 == 0
        traffic.runs[run].burst = RunTraffic.Burst(end: RunTraffic.Burst.first + (isLargest ? 10_000 : 600))
        if !traffic.runs[run].isReadPlanned {
            traffic.runs[run].isReadPlanned = true
            plan(.readInput, by: run, after: traffic.more.within(50...20 * .millisecond))
        }
        beginBurst(run)
    }

    /// The daemon watches a run, or descriptors of a run that it watches become readable.
    mutating func beginBurst(_ run: Int) {
        guard let watch = traffic.runs[run].watch, let burst = traffic.runs[run].burst else { return }
        reportBurst(run, watch.attempt, burst.next)
    }

    /// The daemon looks at some descriptors, and at the next ones later. After the last one more arrives there.
    mutating func reportBurst(_ run: Int, _ attempt: Int, _ next: Int32) {
        guard let watch = traffic.runs[run].watch, watch.attempt == attempt, watch.isOpen, !watch.isLost,
            !watch.onlyPeers, !traffic.runs[run].isBlind, let burst = traffic.runs[run].burst, burst.next == next,
            next < burst.end
        else { return }
        let end = min(burst.end, next + RunTraffic.Burst.piece)
        traffic.runs[run].burst?.next = end
        for descriptor in next..<end {
            let byte = input(.stream, run, descriptor, 1)
            deliver(.run(runs[run].id, .traffic(.inputArrived(attempt: attempt, byte))), after: 0)
        }
        if end < burst.end {
            schedule(.reportBurst(attempt: attempt, next: end), for: run, after: Self.rearmTime)
        } else {
            let bytes = max(2, apps[runs[run].app].policy.wakeThreshold.bytes)
            arrive(input(.stream, run, end, bytes), at: run)
        }
    }

    // MARK: Manifests

    /// An administrator changes what wakes the app, or what suspends it, and reloads the manifest.
    private mutating func reload(_ index: Int) {
        guard apps[index].isRegistered, index >= scenario.homeApps, index < traffic.settings.count else { return }
        faults.add(.reloaded)
        traffic.changeSettings(of: index)
        apps[index].policy.role = .app
        addTraffic(to: index)
        deliver(
            .configuration(.registered(apps[index].id, apps[index].policy, launches: apps[index].launches)), after: 0)
    }

    /// The core receives a manifest.
    mutating func registeredTraffic(_ app: Int, _ policy: AppPolicy) {
        let hasChanged = apps[app].knownWakesOnTraffic != policy.wakesOnTraffic
        apps[app].knownWakesOnTraffic = policy.wakesOnTraffic
        if hasChanged, let run = apps[app].run { traffic.runs[run].isLeftAwake = false }
    }

    /// The core learns what is watched of a suspended app. If that is nothing, it thaws the app.
    mutating func watchDelivered(_ run: Int, _ attempt: Int, _ watch: InputWatch) {
        guard runs[run].isAskedToFreeze, runs[run].attempt == attempt else { return }
        traffic.runs[run].isLeftAwake = watch.isBlind
    }

    // MARK: The daemon

    /// The next daemon may have other rights: without them it may not take the duplicates.
    mutating func drawDaemonRights() {
        if scenario.hasMoreTraffic { traffic.isDaemonBlind = traffic.more.chance(500) }
    }

    /// What the daemon can watch of an app now.
    mutating func currentWatch(of app: Int) -> InputWatch {
        guard scenario.hasMoreTraffic else { return traffic.settings[app].watch }
        if traffic.isDaemonBlind {
            faults.add(.watchFails)
            return InputWatch(unwatched: [.init(what: "socket", problem: .notPermitted, count: 5)])
        }
        // Other apps have its share of descriptors.
        if !isQuiet, traffic.more.chance(30) {
            faults.add(.watchFails)
            return InputWatch(unwatched: [.init(what: "socket", problem: .tooMany, count: 5)])
        }
        return traffic.settings[app].watch
    }

    // MARK: Locks

    /// In the phase without faults a server that runs takes a lock, and keeps it for longer than that may keep it awake.
    mutating func lockForLong(_ run: Int) {
        guard scenario.hasMoreTraffic, traffic.isServer(runs[run].app), runs[run].canRun,
            traffic.runs[run].locks == nil
        else { return }
        traffic.runs[run].locks = FileLocks(count: 1, file: "/var/lib/app/quiet.lock")
    }
}
