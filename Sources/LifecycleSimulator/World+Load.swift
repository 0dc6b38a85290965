import LifecycleCore

/// Many launches at the start of the daemon, which share the processors with each other and with other programs (L52). Until
/// its end there are no requests and no faults, so the time in which all launches are complete has a bound.
struct LaunchStorm {
    let processors: Int
    /// Other programs, each of which uses as much of a processor as it gets.
    let otherLoad: Int
    /// The processor time of each launch.
    let cost: Microseconds
    /// N launches of this cost take N × cost ÷ processors, longer by the share of other programs, and one deadline.
    let end: Microseconds

    init(seed: UInt64, apps: Int) {
        processors = seed % 4 < 2 ? 1 : 2
        otherLoad = seed % 2 == 0 ? processors : 0
        // With many apps the simulation would spend all of its events here.
        cost = min(3 * .second, 72 * .second * Microseconds(processors) / Microseconds(apps))
        let work = Microseconds(apps) * cost * Microseconds(processors + otherLoad)
        end = work / Microseconds(processors * processors) + 5 * .second
    }
}

/// The processors during a launch storm. All that compute get the same share.
struct ProcessorLoad {
    var computing: [Int] = []
    var updatedAt: Microseconds = 0
    /// Identifies the next completion; an earlier one is void.
    var version = 0
}

extension World {
    var isInStorm: Bool { scenario.storm.map { now < $0.end } ?? false }

    /// A launch begins to compute. It is ready once it had its processor time.
    mutating func beginComputing(_ run: Int) {
        guard let storm = scenario.storm else { return }
        updateLoad()
        runs[run].workLeft = storm.cost
        load.computing.append(run)
        scheduleCompletion()
    }

    mutating func completeLaunches(_ version: Int) {
        guard version == load.version else { return }
        updateLoad()
        let finished = load.computing.filter { runs[$0].workLeft <= 0 }
        load.computing.removeAll(where: finished.contains)
        for run in finished {
            runs[run].waited = 0
            perform(.ready, by: run)
        }
        scheduleCompletion()
    }

    /// Distributes the time since the last change.
    private mutating func updateLoad() {
        guard let storm = scenario.storm else { return }
        let time = now - load.updatedAt
        load.updatedAt = now
        load.computing.removeAll { runs[$0].program != .running }
        let share = time * Microseconds(storm.processors) / competitors(storm)
        for run in load.computing {
            runs[run].workLeft -= share
            runs[run].used += share
            runs[run].waited += time - share
        }
    }

    private func competitors(_ storm: LaunchStorm) -> Microseconds {
        Microseconds(max(storm.processors, load.computing.count + storm.otherLoad))
    }

    private mutating func scheduleCompletion() {
        load.version += 1
        guard let storm = scenario.storm, let least = load.computing.map({ runs[$0].workLeft }).min() else { return }
        let time = max(0, least) * competitors(storm) / Microseconds(storm.processors) + 1
        queue.push(.load(load.version), at: now + time)
    }

    // MARK: Measurements

    /// For how long a run has waited for a processor since its last notice. Outside the storm any time may be found.
    mutating func waitedTime(_ run: Int) -> Duration {
        if isInStorm {
            updateLoad()
            return runs[run].waited.duration
        }
        guard scenario.storm != nil, !isQuiet else { return .zero }
        return loadRandom.pick([0, 0, 0, 300 * .millisecond, 3 * .second, 60 * .second]).duration
    }

    mutating func measureActivity(_ run: Int, listeners: Bool) {
        var activity: RunActivity
        if isInStorm {
            updateLoad()
            activity = RunActivity(cpu: runs[run].used.duration, waited: runs[run].waited.duration)
            activity.isRunnable = load.computing.contains(run)
        } else {
            let used = isQuiet ? 0 : now * loadRandom.pick([0, 1, 3, 4]) / 4
            activity = RunActivity(cpu: used.duration, waited: .zero)
        }
        if listeners { activity.listens = listens(run) }
        deliver(.run(runs[run].id, .deadline(.activityMeasured(activity))), after: loadRandom.within(5...500))
    }

    /// Whether a program listens. One that is ready when it executes may never do that.
    private mutating func listens(_ run: Int) -> Bool {
        guard runs[run].program == .running else { return false }
        return runs[run].readiness == .listening ? runs[run].isReady : loadRandom.chance(50)
    }

    /// An app that listens before its launch deadline is ready, however late the daemon looks.
    mutating func reportListener(_ run: Int) {
        guard runs[run].readiness == .listening, runs[run].isReady else { return }
        report(
            run,
            .run(runs[run].id, .deadline(.activityMeasured(RunActivity(cpu: .zero, waited: .zero, listens: true)))),
            after: 0)
    }

    // MARK: Settings

    /// How many launches compute at once, in seeds with a storm.
    mutating func limitLaunches() {
        guard let storm = scenario.storm else { return }
        if now == 0 {
            // No app is killed for memory during the storm.
            var policy = ManagerPolicy()
            policy.foregroundLimit = manager.foregroundLimit
            policy.launchesAtOnce = storm.processors
            manager = policy
        } else {
            manager.launchesAtOnce = loadRandom.pick([1, 2, 4, nil])
        }
    }

    mutating func takeTimeToStartUp(_ index: Int) {
        guard scenario.hasStartUps else { return }
        apps[index].policy.startUpTime = loadRandom.pick([.zero, .seconds(5), .seconds(30), nil])
        if apps[index].policy.readiness == .executed, loadRandom.chance(300) {
            apps[index].policy.readiness = .listening
        }
    }

    /// All apps are launched at the start: the first one into the foreground.
    mutating func joinStorm(_ index: Int) {
        guard scenario.storm != nil, now == 0 else { return }
        apps[index].policy.launchAtStart = index == 0 ? .foreground : .background
        apps[index].policy.readiness = .notified
        apps[index].policy.launchDeadline = .seconds(5)
        // No app is killed in the foreground, and launched once more.
        apps[index].policy.watchdog = nil
    }
}
