import LoopPolicy

/// What must hold of the loop, whatever apps and clients do.
package enum LoopRule: String, CaseIterable, Sendable {
    case sourcesAreDrained = "a source that is ready is drained by its turns"
    case appsHaveShares = "an app that floods gets no more than its share of the time"
    case clientsAreAnswered = "root's call is answered within 100ms, whatever apps do"
    case deadlinesAreKept = "a deadline is served within 50ms"
    case everySourceIsServed = "each source is served within a bounded time after it has become ready"
    case heartbeatContinues = "a busy daemon sends its sign of life"
    case stuckDaemonIsSilent = "a daemon that is stuck sends no sign of life"
}

/// A fault of the simulated daemon, to show that a rule finds it.
package enum LoopFault: CaseIterable, Sendable {
    /// The duplicates of a suspended app are closed, and their epoll set stays a source of the loop: the app's own descriptors keep
    /// it readable.
    case leavesWatchArmed
    /// The sockets of an app are as urgent as the control interface, and have no share.
    case appsAreUrgent
    case noShares
    case noBudgets
    /// A message is looked at and left in its socket.
    case leavesMessages
    /// One turn never ends.
    case isStuck

    /// The rule that finds it.
    package var rule: LoopRule {
        switch self {
        case .leavesWatchArmed, .leavesMessages: .sourcesAreDrained
        case .appsAreUrgent: .clientsAreAnswered
        case .noShares: .appsHaveShares
        case .noBudgets: .everySourceIsServed
        case .isStuck: .stuckDaemonIsSilent
        }
    }
}

/// A daemon's loop with apps that flood it and clients that call it, in virtual time.
package struct LoopSimulation {
    /// What a source belongs to.
    private enum Owner {
        case deadline, heartbeat
        case client(Int)
        case notify(app: Int, file: Int)
        case listener(app: Int, file: Int)
        case connection(app: Int, file: Int)
        case watch(app: Int, file: Int)
        case work
    }

    private var random: Random
    private var loop: SimulatedLoop
    private var owners: [Owner] = []
    private let fault: LoopFault?
    private let apps: Int
    /// How much of each second an app fills with messages.
    private let floods: [Double]
    private let hasWork: Bool
    private var deadline = Duration.zero
    private var deadlineSource = 0
    private var heartbeatSource = 0
    /// Root's client: when it called, and how many turns its answer still takes; `nil`: it does not wait.
    private var call: (at: Duration, turns: Int)?
    private var nextCall = Duration.zero
    private var clientFile = 0
    /// When the app whose input was found is suspended again.
    private var suspensions: [(at: Duration, app: Int, file: Int)] = []
    package private(set) var violations: [LoopRule: String] = [:]
    /// How many turns the loop has taken.
    package var turns: Int { loop.turns }

    /// - Parameter fault: of the daemon that is simulated.
    package init(seed: UInt64, fault: LoopFault? = nil) {
        random = Random(seed: seed)
        self.fault = fault
        apps = Int(random.next() % 8) + 1
        var floods: [Double] = []
        for _ in 0..<apps { floods.append(random.next() % 2 == 0 ? 1 : 0.01) }
        // Each seed has at least one app that floods.
        floods[0] = 1
        self.floods = floods
        hasWork = random.next() % 4 != 0
        loop = SimulatedLoop(apps: apps)
        loop.hasShares = fault != .noShares && fault != .appsAreUrgent
        loop.hasBudgets = fault != .noBudgets
        makeSources()
    }

    private mutating func add(_ owner: Owner, _ kind: SourceKind, _ trigger: SimulatedLoop.Trigger, app: Int? = nil)
        -> Int
    {
        owners.append(owner)
        return loop.add(kind, trigger, app: app)
    }

    private mutating func addFile(isOpenInApp: Bool = false) -> Int {
        var file = SimulatedFile()
        file.isOpenInApp = isOpenInApp
        loop.files.append(file)
        return loop.files.count - 1
    }

    private mutating func makeSources() {
        deadlineSource = add(.deadline, .deadline, .timer(.milliseconds(7)))
        heartbeatSource = add(.heartbeat, .heartbeat, .timer(.zero))
        clientFile = addFile()
        _ = add(.client(clientFile), .controlClient, .file(clientFile))
        let isUrgent = fault == .appsAreUrgent
        for app in 0..<apps {
            let notify = addFile()
            _ = add(.notify(app: app, file: notify), .notifySocket, .file(notify), app: app)
            let listener = addFile()
            _ = add(
                .listener(app: app, file: listener), isUrgent ? .controlListener : .appListener, .file(listener),
                app: app)
            for _ in 0..<Int(random.next() % 24) {
                let file = addFile()
                _ = add(
                    .connection(app: app, file: file), isUrgent ? .controlClient : .appClient, .file(file), app: app)
            }
            suspend(app, addFile(isOpenInApp: true))
        }
        if hasWork { _ = add(.work, .work, .deferred) }
    }

    /// The daemon watches duplicates of the app's descriptors.
    private mutating func suspend(_ app: Int, _ file: Int) {
        loop.files[file].isOpenInDaemon = true
        _ = add(.watch(app: app, file: file), .input, .file(file), app: app)
    }

    // MARK: Running

    /// Plays the loop for this time.
    package mutating func run(_ duration: Duration = .seconds(5)) {
        while loop.time < duration, loop.turns < 200_000 {
            outside()
            guard let index = loop.next() else {
                loop.time += .microseconds(500)
                continue
            }
            guard loop.admits(index) else { continue }
            check(loop.sources[index], index)
            serve(index)
        }
        finish(duration)
    }

    /// What apps, clients and the clock do meanwhile.
    private mutating func outside() {
        let now = loop.time
        for (index, owner) in owners.enumerated() where !loop.sources[index].isCancelled {
            switch owner {
            // As long as it is not read, its sender waits.
            case .notify(let app, let file), .listener(let app, let file), .connection(let app, let file):
                if loop.files[file].waiting < 10, isFlooding(app) { loop.files[file].waiting += 10 }
            case .watch(let app, let file):
                if random.next() % 512 == 0, isFlooding(app) { loop.files[file].waiting += 1 }
            case .deadline, .heartbeat, .client, .work: break
            }
        }
        if call == nil, now >= nextCall {
            call = (now, Int(random.next() % 40) + 5)
            loop.files[clientFile].waiting = 1
        }
        while let next = suspensions.first, next.at <= now {
            suspensions.removeFirst()
            suspend(next.app, next.file)
        }
    }

    private mutating func isFlooding(_ app: Int) -> Bool {
        floods[app] >= 1 || random.next() % 1000 < UInt64(floods[app] * 1000)
    }

    private mutating func microseconds(_ range: ClosedRange<UInt64>) -> Duration {
        .microseconds(Int64(range.lowerBound + random.next() % (range.upperBound - range.lowerBound + 1)))
    }

    private mutating func serve(_ index: Int) {
        var cost = microseconds(50...900)
        var hasProgress = true
        switch owners[index] {
        case .deadline:
            deadline = loop.time + microseconds(2_000...300_000)
            loop.sources[index].trigger = .timer(deadline)
        case .heartbeat:
            loop.sources[index].trigger = .timer(loop.time + loop.heartbeat.interval)
            loop.beginRound()
        case .client(let file):
            answer(file)
        case .work: cost = microseconds(100...1000)
        case .notify(_, let file):
            cost = microseconds(50...1000)
            if fault == .leavesMessages {
                (cost, hasProgress) = (.microseconds(10), false)
            } else {
                loop.files[file].waiting = 0
            }
        case .listener(_, let file), .connection(_, let file): loop.files[file].waiting -= 1
        case .watch(let app, let file):
            hasProgress = wake(index, app, file)
            if !hasProgress { cost = .microseconds(10) }
        }
        if fault == .isStuck, loop.time > .seconds(2) { cost = .seconds(60) }
        loop.served(index, takes: cost, hasProgress: hasProgress)
        if loop.sources[index].vainTurns > 50 {
            violate(.sourcesAreDrained, "50 turns of a source of kind \(loop.sources[index].kind) had no effect")
        }
    }

    /// Input has arrived: the watch ends, and the app reads it.
    /// - Returns: whether anything came of it.
    private mutating func wake(_ index: Int, _ app: Int, _ file: Int) -> Bool {
        guard loop.files[file].isOpenInDaemon else { return false }
        loop.files[file].isOpenInDaemon = false
        if fault == .leavesWatchArmed {
            // The app is slow to read, or its client has closed and it keeps its side open.
            return true
        }
        loop.sources[index].isCancelled = true
        loop.files[file].waiting = 0
        suspensions.append((loop.time + .milliseconds(100), app, file))
        return true
    }

    private mutating func answer(_ file: Int) {
        guard var waiting = call else { return }
        waiting.turns -= 1
        guard waiting.turns == 0 else { return call = waiting }
        let took = loop.time - waiting.at
        if took > .milliseconds(100) { violate(.clientsAreAnswered, "root's call was answered after \(took)") }
        call = nil
        loop.files[file].waiting = 0
        nextCall = loop.time + microseconds(10_000...400_000)
    }

    // MARK: Checks

    private mutating func violate(_ rule: LoopRule, _ sentence: String) {
        if violations[rule] == nil { violations[rule] = "at \(loop.time): \(sentence)" }
    }

    private mutating func check(_ source: SimulatedLoop.Source, _ index: Int) {
        guard let since = source.pendingSince?.time else { return }
        let waited = loop.time - since
        if case .deadline = owners[index] {
            let late = loop.time - deadline
            if deadline > .zero, late > .milliseconds(50) { violate(.deadlinesAreKept, "a deadline is \(late) late") }
        }
        // Each round serves 20 ms of each level, and a source of an app waits for `LoopShare.pause` beside that.
        let rivals = loop.sources.count { $0.level == source.level && !$0.isCancelled }
        let limit = Duration.milliseconds(100) * (rivals / 20 + 2) + LoopShare.pause
        if waited > limit, fault != .isStuck {
            violate(.everySourceIsServed, "a source of kind \(source.kind) waited for \(waited)")
        }
    }

    private mutating func finish(_ end: Duration) {
        for source in loop.sources where !source.isCancelled && fault != .isStuck {
            guard let since = source.pendingSince?.time, loop.time - since > .seconds(3) else { continue }
            violate(.everySourceIsServed, "a source of kind \(source.kind) waits for \(loop.time - since)")
        }
        // A fifth, and one turn of 1 ms in each window.
        for used in loop.usedByApps where used > end / 4 && fault != .isStuck {
            violate(.appsHaveShares, "an app has used \(used) of \(end)")
        }
        if let call, loop.time - call.at > .milliseconds(100) {
            violate(.clientsAreAnswered, "root's call waits for \(loop.time - call.at)")
        }
        let last = loop.heartbeats.last ?? .zero
        let isSilent = loop.time - last > loop.heartbeat.interval * 2
        if fault == .isStuck {
            // Found here, because the service manager would end it.
            if isSilent { violate(.stuckDaemonIsSilent, "it was silent, as it should be") }
        } else if isSilent {
            violate(.heartbeatContinues, "no sign of life since \(last)")
        }
    }
}
