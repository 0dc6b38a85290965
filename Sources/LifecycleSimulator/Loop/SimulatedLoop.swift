import LoopPolicy

/// What the kernel knows of a file: how much can be read, and who has it open. A file stays in an epoll set until its last
/// descriptor is closed, in whichever process that is (epoll(7)).
struct SimulatedFile {
    /// Messages, connections or bytes that can be read.
    var waiting = 0
    var isOpenInDaemon = true
    var isOpenInApp = false

    var isOpen: Bool { isOpenInDaemon || isOpenInApp }
}

/// An event loop with the rules of sd-event(3): strict priorities, sources of one priority in the order in which they became pending,
/// level-triggered descriptors, one-shot timers and deferred calls. What it serves is decided by the daemon's own `LoopPolicy`.
struct SimulatedLoop {
    enum Trigger {
        /// Ready while the file can be read: a socket, or what an epoll set contains.
        case file(Int)
        /// Ready once, from this time on.
        case timer(Duration)
        case deferred
    }

    struct Source {
        let kind: SourceKind
        let level: Int
        /// The app whose share it uses; `nil`: none.
        let app: Int?
        var trigger: Trigger
        var isCancelled = false
        var isEnabled = true
        var isWaitingForRound = false
        var pausedUntil: Duration?
        /// The turn in which it became pending, and the time; `nil`: it is not.
        var pendingSince: (turn: Int, time: Duration)?
        var progress = ProgressCounter()
        /// How many turns in a row had no effect.
        var vainTurns = 0
    }

    var time = Duration.zero
    var files: [SimulatedFile] = []
    var sources: [Source] = []
    var shares: [LoopShare]
    var policy = LoopPolicy()
    var heartbeat = Heartbeat(limit: .seconds(3))
    private(set) var turns = 0
    /// When the sign of life was sent.
    var heartbeats: [Duration] = [.zero]
    /// The time that the sources of each app have used.
    var usedByApps: [Duration]
    /// Limits the faults of a daemon: without one, it has no such rule.
    var hasShares = true
    var hasBudgets = true
    private var isRoundPending = false

    init(apps: Int) {
        shares = Array(repeating: LoopShare(), count: apps)
        usedByApps = Array(repeating: .zero, count: apps)
    }

    mutating func add(_ kind: SourceKind, _ trigger: Trigger, app: Int? = nil) -> Int {
        sources.append(Source(kind: kind, level: kind.level.rawValue, app: app, trigger: trigger))
        return sources.count - 1
    }

    private func isReady(_ source: Source) -> Bool {
        guard source.isEnabled, source.pausedUntil == nil else { return false }
        return switch source.trigger {
        case .file(let number): files[number].isOpen && files[number].waiting > 0
        case .timer(let due): due <= time
        case .deferred: true
        }
    }

    /// Looks for what has become pending, as epoll_wait(2) reports it, and returns the source whose turn it is; `nil`: none is
    /// pending.
    mutating func next() -> Int? {
        turns += 1
        var best: (priority: Int, since: Int, index: Int)?
        for index in sources.indices where !sources[index].isCancelled {
            if let end = sources[index].pausedUntil, end <= time { sources[index].pausedUntil = nil }
            guard isReady(sources[index]) else {
                sources[index].pendingSince = nil
                continue
            }
            let since = sources[index].pendingSince?.turn ?? turns
            if since == turns { sources[index].pendingSince = (turns, time) }
            let last = LoopLevel.rounds.rawValue + 1
            let priority = sources[index].isWaitingForRound ? last : sources[index].level
            if best.map({ (priority, since) < ($0.priority, $0.since) }) ?? true { best = (priority, since, index) }
        }
        let end = LoopLevel.rounds.rawValue
        if isRoundPending, best.map({ $0.priority > end }) ?? true {
            endRound()
            return next()
        }
        return best?.index
    }

    /// Whether the source may be served now. If not, it waits.
    mutating func admits(_ index: Int) -> Bool {
        let source = sources[index]
        let share = hasShares ? source.app.map { shares[$0] } : nil
        switch policy.verdict(on: source.kind, share, at: time) {
        case .serve: return true
        case .waitForRound:
            if !hasBudgets { return true }
            sources[index].isWaitingForRound = true
            isRoundPending = true
        case .pause(let end): sources[index].pausedUntil = end
        }
        // libsystemd has called the handler.
        time += .microseconds(1)
        return false
    }

    /// A turn of the source is over.
    mutating func served(_ index: Int, takes cost: Duration, hasProgress: Bool) {
        let start = time
        time += cost
        let source = sources[index]
        policy.served(source.kind, for: cost)
        if policy.awaitsRound { isRoundPending = true }
        if let app = source.app {
            _ = shares[app].served(from: start, to: time)
            usedByApps[app] += cost
        }
        sources[index].pendingSince = nil
        sources[index].vainTurns = hasProgress ? 0 : source.vainTurns + 1
        if case .file = source.trigger {
            if sources[index].progress.ended(hasProgress: hasProgress, at: time) {
                sources[index].isEnabled = false
            }
        }
    }

    mutating func beginRound() {
        heartbeat.begin(at: time)
        isRoundPending = true
    }

    private mutating func endRound() {
        isRoundPending = false
        policy.endRound()
        for index in sources.indices { sources[index].isWaitingForRound = false }
        if heartbeat.roundEnded(at: time)?.isAlive == true { heartbeats.append(time) }
    }
}
