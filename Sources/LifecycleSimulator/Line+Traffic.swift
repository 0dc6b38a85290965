import LifecycleCore

/// The words of traffic, idleness and file locks.
extension Line {
    // MARK: Events

    mutating func add(_ event: TrafficEvent) {
        switch event {
        case .inputWatched(let attempt, let watch):
            add(" is watched, attempt ")
            add(attempt)
            add(": ")
            add(watch)
        case .inputArrived(let attempt, let input):
            add(" has input, attempt ")
            add(attempt)
            add(": ")
            add(input)
        case .workMeasured(let work): add(work)
        case .idleHinted(let isIdle): add(isIdle ? " has nothing to do" : " has something to do")
        }
    }

    private mutating func add(_ watch: InputWatch) {
        add(watch.watched)
        add(" descriptors")
        for unwatched in watch.unwatched {
            add(", not ")
            add(unwatched.count)
            add(" ")
            add(unwatched.what)
            add(" (")
            add(unwatched.problem.rawValue)
            add(")")
        }
    }

    private mutating func add(_ input: Input) {
        add(input.kind.rawValue)
        add(" ")
        add(input.descriptor)
        add(", ")
        add(input.bytes)
        add(" bytes")
        if input.isEnd { add(", at its end") }
        if input.isHalfFull { add(", more than half full") }
        if input.source == .own { add(", its own") }
    }

    private mutating func add(_ work: RunWork) {
        add(" used ")
        add(work.cpu)
        if work.isRunnable { add(", runnable") }
        if work.hasNewProcesses { add(", has new processes") }
        addCount(", unread ", Int(clamping: work.unread))
        addCount(", unsent ", Int(clamping: work.unsent))
        addCount(", connections ", work.connections)
        switch work.wait {
        case .unwatchedCall: add(", a call that is not watched")
        case .unreadable: add(", unreadable")
        case .request: add(", a request without an answer")
        case .short: add(", a short wait")
        case nil: break
        }
        if let tick = work.tick {
            add(", ticks of ")
            add(tick)
        }
        if let due = work.due {
            add(", a timer at ")
            add(due.sinceOrigin)
        }
        if work.isIncomplete { add(", incomplete") }
        if work.isOwn { add(", for itself") }
    }

    private mutating func addCount(_ name: String, _ count: Int) {
        guard count != 0 else { return }
        add(name)
        add(count)
    }

    // MARK: Effects and reports

    mutating func add(_ effect: TrafficEffect, _ app: String) {
        switch effect {
        case .watchInput(let attempt, let onlyPeers):
            add(onlyPeers ? "watch for waiting peers of " : "watch for input of ", app)
            add(", attempt ")
            add(attempt)
        case .stopWatchingInput: add("stop watching ", app)
        case .measureWork(.first): add("measure the work of ", app)
        case .measureWork(.brief): add("measure the processor time in the moment of ", app)
        case .measureWork(.full): add("measure the work again of ", app)
        case .measureWork(.moment): add("measure the work at the end of the moment of ", app)
        }
    }

    mutating func addTraffic(_ report: Report) {
        switch report {
        case .inputArrived(let id, let input):
            add(id.name)
            add(": woken by ")
            add(input)
        case .inputNotWatched(let id, let watch):
            add(id.name)
            add(": watched: ")
            add(watch)
        case .wokenTooOften(let id, let time):
            add(id.name)
            add(": woken too often, stays awake for ")
            add(time)
        case .locksHeld(let id, let locks, let isSuspended):
            add(id.name)
            add(isSuspended ? ": suspended with file locks: " : ": not suspended, file locks: ")
            add(locks.count)
        default: break
        }
    }

    // MARK: Policies

    mutating func addTraffic(_ policy: AppPolicy) {
        if policy.role == .worker { add(", worker") }
        guard policy.wakesOnTraffic || policy.role == .worker else { return }
        if policy.wakesOnTraffic {
            add(", traffic from ")
            add(policy.wakeThreshold.bytes)
            if let time = policy.wakeThreshold.time {
                add(" or after ")
                add(time)
            }
        }
        add(", idle ")
        add(policy.idleTime)
        add(", awake for ")
        add(policy.keepAwake.rawValue)
        add(", request ")
        add(policy.requestTime)
        add(", share ")
        add(policy.idleProcessorShare)
    }
}
