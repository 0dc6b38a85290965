import LifecycleCore

/// The parameters of one seed: apps, pace of the user, memory and faults. Each seed leaves out some faults, so that the
/// others reach more states.
struct Scenario {
    let seed: UInt64
    /// Events before the quiet phase.
    let events: Int
    let apps: [AppID]
    let personalities: [Personality]
    /// The average time between requests.
    let pace: Microseconds
    let isMemoryTight: Bool
    let totalMemory: UInt64
    /// Probability of each `Fault` where it is possible, per 1,000; 0: not in this seed.
    let rates: [Int]
    let shutsDownInTheMiddle: Bool
    let firstRun: UInt64
    /// Whether the machine sleeps and the screen is locked at times.
    let hasAbsences: Bool
    /// Whether programs take time to start up (`StartupSec=`, `Type=listening`).
    let hasStartUps: Bool
    /// The launches at the start of the daemon, if they compute.
    let storm: LaunchStorm?
    /// Whether apps try to get more background time than they are allowed (L53), for some hours.
    let hasEvasion: Bool
    /// How many of the first apps have `Role=home` (L49).
    let homeApps: Int
    /// Whether apps have peers: some are workers, and input wakes some (L49 to L51).
    let hasTraffic: Bool
    /// Whether apps use much processor time (L44).
    let hasBurning: Bool
    /// Whether these peers fill buffers and many descriptors, manifests change what they wake, and watches fail.
    let hasMoreTraffic: Bool
    /// Whether the daemon holds sockets for apps, apps are unloaded, and some are instances of templates (L29).
    let hasSockets: Bool
    /// Whether manifests have hooks (L57).
    let hasHooks: Bool

    init(seed: UInt64, events: Int, apps count: Int?, random: inout Random) {
        self.seed = seed
        self.events = events
        let sizes = [1, 2, 2, 3, 3, 4, 5, 6, 8, 8, 12, 16, 32]
        hasStartUps = seed % 7 == 2
        let hasStorm = seed % 5 == 0
        let drawn = count ?? random.pick(sizes)
        let count = max(1, hasStorm && count == nil ? max(24, drawn) : drawn)
        storm = hasStorm ? LaunchStorm(seed: seed, apps: count) : nil
        apps = (0..<count).map { Self.name($0) }
        // Computed from the seed: another random draw here would change all seeds.
        let hasEvasion = seed % 13 == 8 && !hasStorm
        self.hasEvasion = hasEvasion
        let hasTraffic = !hasStorm && !hasEvasion && [1, 2, 5, 6].contains(seed % 7)
        self.hasTraffic = hasTraffic
        hasBurning = !hasStorm && !hasEvasion && (seed % 9 == 4 || seed % 9 == 7)
        let hasMoreTraffic = hasTraffic && seed % 7 == 6
        self.hasMoreTraffic = hasMoreTraffic
        let hasSockets = !hasStorm && !hasEvasion && (seed % 3 == 0 || seed % 8 == 6)
        self.hasSockets = hasSockets
        hasHooks = !hasStorm && [2, 5, 9].contains(seed % 11)
        homeApps = hasStorm || hasEvasion ? 0 : seed % 6 == 1 ? 1 : seed % 12 == 4 ? min(2, count) : 0
        let others = apps.map { _ in random.pick(Personality.all) }
        personalities = others.enumerated().map { hasEvasion && $0 < 2 ? Personality.evading : $1 }
        let pace = random.pick([20 * .millisecond, 300 * .millisecond, 1 * .second, 4 * .second, 15 * .second])
        self.pace = hasEvasion ? 1800 * .second : pace
        isMemoryTight = random.chance(400)
        totalMemory = random.pick([1 << 30, 8 << 30, 16 << 30, 32 << 30])
        let intensity = random.pick([0, 1, 2, 3])
        // Computed from the seed: another random draw here would change all seeds.
        let hasAbsences = seed % 3 == 1
        self.hasAbsences = hasAbsences
        let hasOutages = seed % 11 == 3 || seed % 11 == 9
        let hasFloods = seed % 11 == 4 || seed % 11 == 9
        rates = Fault.allCases.map { fault in
            switch fault {
            case .sleeps, .locks: return hasAbsences ? 500 : 0
            case .execFails: return hasOutages ? 1000 : 0
            case .requestFlood: return hasFloods ? 1000 : 0
            case .continuedByOthers: return seed % 5 == 2 ? 300 : 0
            case .evades, .asksForApps: return hasEvasion ? 1000 : 0
            case .inputFlood, .pesters, .holdsLock, .notWatchable: return hasTraffic ? 1000 : 0
            case .reloaded, .inputBurst, .watchFails: return hasMoreTraffic ? 1000 : 0
            // The traffic of these seeds is drawn by itself.
            case .rests, .restIsKept, .callIsRestarted, .blocksWrite: return 0
            case .acceptsLate: return hasSockets ? 1000 : 0
            case .inboxFull: return seed % 5 == 4 ? 1000 : 0
            default: break
            }
            return intensity == 0 || random.chance(350) ? 0 : Self.rate(fault) * intensity / 2
        }
        shutsDownInTheMiddle = random.chance(150)
        firstRun = random.chance(200) ? 1 << 40 : 1
    }

    /// Whether this seed has a fault.
    func has(_ fault: Fault) -> Bool { rates[fault.rawValue] > 0 }

    /// Whether an app's manifest may change after it was read for the first time.
    var changesManifests: Bool { has(.reregistered) || has(.unregistered) }

    static func name(_ index: Int) -> AppID {
        let names = ["photos", "mail", "maps", "music", "notes", "shop", "camera", "chat"]
        let plain = index < names.count ? names[index] : "\(names[index % names.count])-\(index / names.count)"
        guard let id = AppID(plain) else { preconditionFailure("“\(plain)” is not a valid app ID") }
        return id
    }

    /// Probability per 1,000. Faults that are frequent or cost many events have a lower one.
    private static func rate(_ fault: Fault) -> Int {
        switch fault {
        case .spawnFails, .spawnFailsLate, .execHangs: 40
        case .freezeLate, .freezeReportedLate, .thawReportedLate: 60
        case .freezeNever: 40
        case .diesWhileFreezing, .diesAfterThaw: 40
        case .killedByOthers: 30
        case .notifiedLate, .inspectedLate, .measuredLate: 60
        case .emptiedBeforeExit: 300
        case .emptiedLate, .blocksKill: 60
        case .traced: 60
        case .clockJumps: 8
        case .timerLate: 15
        case .timerSpurious: 15
        case .machineFills, .pressureSpike: 60
        case .memoryGrows: 100
        case .outOfMemory: 300
        case .reregistered, .unregistered, .reconfigured: 15
        case .requestBurst: 15
        case .invalidRequest: 60
        case .requestAbandoned: 40
        case .simulatedPressure: 20
        case .sleeps, .locks, .execFails, .requestFlood, .continuedByOthers, .evades, .asksForApps, .inputFlood,
            .pesters, .holdsLock, .notWatchable, .inboxFull, .reloaded, .inputBurst, .watchFails,
            .acceptsLate, .rests, .restIsKept, .callIsRestarted, .blocksWrite:
            0
        case .beginsTooMany: 40
        case .sendsAfterEnd: 100
        case .killedBeforeExec, .diesAtDeadline, .crashes, .ignoresTerminate, .neverAnswers, .answersLate,
            .answersAtDeadline, .stopsItself, .beginsManyTasks, .leaksTask, .extendsTimeout, .forks,
            .changesMainProcess,
            .missesHeartbeat, .givesUpHeartbeat, .sendsUnexpected:
            100
        }
    }
}

extension Random {
    /// A random valid manifest: most values are defaults, some are extreme.
    mutating func policy() -> AppPolicy {
        var policy = AppPolicy()
        policy.readiness = chance(500) ? .notified : .executed
        policy.launchAtStart = chance(150) ? (chance(500) ? .foreground : .background) : nil
        policy.relaunch = [.no, .no, .onFailure, .always][below(4)]
        policy.launchDeadline = deadline(shortest: .milliseconds(100))
        policy.backgroundDeadline = deadline(shortest: .milliseconds(1))
        policy.terminateDeadline = deadline(shortest: .milliseconds(1))
        policy.extendedDeadlineMax = chance(800) ? .seconds(60) : chance(500) ? nil : .seconds(2)
        policy.backgroundTime =
            [.seconds(30), .seconds(30), .seconds(30), .seconds(6), .seconds(180), .zero, nil][below(7)]
        policy.expirationNotice = [.seconds(5), .seconds(5), .seconds(1), .zero, .seconds(60)][below(5)]
        policy.suspendDelay = [.seconds(1), .seconds(1), .zero, .milliseconds(50), .seconds(8)][below(5)]
        policy.watchdog = chance(200) ? [.seconds(2), .seconds(10)][below(2)] : nil
        policy.exitsOnSuspend = chance(100)
        policy.backgroundModes = BackgroundModes(rawValue: UInt8(below(128)))
        if chance(600) { policy.backgroundModes.insert(.push) }
        policy.jetsamPriority = [0, 0, 0, 0, -1000, -5, 10, 1000][below(8)]
        policy.memoryHigh = chance(200) ? UInt64(below(300)) << 20 : nil
        if chance(20) { policy.memoryHigh = chance(500) ? 0 : .max }
        policy.suspendedMemoryHigh = chance(200) ? UInt64(below(200)) << 20 : nil
        return policy
    }

    private mutating func deadline(shortest: Duration) -> Duration? {
        [.seconds(5), .seconds(5), .seconds(5), .seconds(1), .seconds(20), shortest, nil][below(7)]
    }

    mutating func managerPolicy(total: UInt64, isTight: Bool) -> ManagerPolicy {
        var policy = ManagerPolicy()
        policy.foregroundLimit = [1, 1, 1, 2, 3, 0][below(6)]
        policy.budget = isTight && chance(500) ? total / 16 * UInt64(1 + below(12)) : nil
        policy.jetsamOrder = chance(750) ? .largest : .lru
        if chance(200) { policy.warningAvailable = .bytes(total / 8) }
        if chance(200) { policy.criticalAvailable = .percent(below(8)) }
        // Valid values that only a typing error produces.
        if chance(10) { policy.warningAvailable = .bytes(.max) }
        if chance(10) { policy.criticalAvailable = .bytes(.max) }
        if chance(10) { policy.budget = chance(500) ? 0 : .max }
        return policy
    }
}
