import LifecycleCore

extension Line {
    /// Adds an event in words. `app`: the app of the run, since runs have numbers only.
    mutating func add(_ event: Event, of app: AppID?) {
        switch event {
        case .run(_, let what):
            add(app?.name ?? "?")
            add(what)
        case .configuration(.registered(let id, let policy, let launches)):
            add("registered ")
            add(id.name)
            add(", launched ")
            add(launches)
            add(" times: ")
            add(policy)
        case .configuration(.unregistered(let id)):
            add("unregistered ")
            add(id.name)
        case .configuration(.configured(let policy)): add(policy)
        case .configuration(.started): add("started")
        case .recovered: add("recovered")
        case .requested(let request, let id, let what, let requester):
            add("request ")
            add(request.number)
            add(": ")
            add(what)
            add(" ")
            add(id.name)
            switch requester {
            case .user: break
            case .app(let app):
                add(", asked by the app ")
                add(app?.name ?? "?")
            }
        case .requestAbandoned(let request):
            add("abandoned request ")
            add(request.number)
        case .shutdownRequested(let immediately): add(immediately ? "shut down immediately" : "shut down")
        case .absence(.sleepRequested): add("sleep requested")
        case .absence(.awoke): add("the machine awoke")
        case .absence(.locked): add("the screen was locked")
        case .absence(.unlocked): add("the screen was unlocked")
        case .deadlineReached: add("deadline reached")
        case .memory(.measured(let reading)): add(reading)
        case .memory(.pressureStalled(let level)):
            add("stalls for memory: ")
            add(level.word)
        case .memory(.pressureSimulated(let request, let level)):
            add("request ")
            add(request.number)
            add(": simulate level ")
            add(level.word)
        case .timer(let id, let what):
            add("timers of ")
            add(id.name)
            add(": \(what)")
        case .observed(let notification, let id):
            add(id.map { "for \($0.name): " } ?? "for all: ")
            add(notification)
        case .socketsReady(let id, _):
            add("a held socket is ready: ")
            add(id.name)
        }
    }

    private mutating func add(_ reading: MemoryReading) {
        add("measured: ")
        add(bytes: reading.available)
        add(" available, ")
        if let limit = reading.limit {
            add(bytes: limit.available)
            add(" below the limit of ")
            add(bytes: limit.total)
            add(", ")
        }
        if reading.swapTotal > 0 {
            add(bytes: reading.swapFree)
            add(" of swap, ")
        }
        add(reading.sizes.count)
        add(" apps")
        for size in reading.sizes.prefix(8) {
            add(", ")
            add(size.run.number)
            add(" has ")
            add(bytes: size.bytes)
        }
    }

    private mutating func add(_ request: Request) {
        switch request {
        case .launch(let state, let reason, let url, _):
            add(state == .foreground ? "launch (" : "launch in the background (")
            add(reason.rawValue)
            add(")")
            if let url {
                add(" “")
                add(url)
                add("” with")
            }
        case .activate: add("activate")
        case .background: add("background")
        case .interrupt: add("interrupt")
        case .interruptWhileConnected: add("interrupt while connected:")
        case .endInterruption: add("end the interruption of")
        case .terminate: add("terminate")
        case .remove: add("remove")
        case .push(let payload):
            add("push “")
            add(payload)
            add("” to")
        case .open(let url):
            add("open “")
            add(url)
            add("” with")
        case .cancelTask(let name): add("cancel \(name) of")
        case .scene(let id, .activate): add("activate \(id) of")
        case .scene(let id, .background): add("send \(id) to the background of")
        case .scene(let id, .close): add("close \(id) of")
        case .send(let notification):
            add("send ")
            add(notification)
            add(" to")
        }
    }

    mutating func add(_ notification: Notification) {
        add(notification.kind)
        add(" “")
        add(notification.payload)
        add("”")
    }
}

// MARK: Policies

extension Line {
    mutating func add(_ name: String, _ time: Duration?) {
        add(name)
        if let time { add(time) } else { add("infinity") }
    }

    private mutating func add(_ name: String, bytes: UInt64?) {
        guard let bytes else { return }
        add(name)
        add(bytes: bytes)
    }

    mutating func add(_ policy: AppPolicy) {
        switch policy.readiness {
        case .executed: add("simple")
        case .listening: add("listening")
        case .notified, .forked: add("notify")
        }
        if let state = policy.launchAtStart {
            add(state == .foreground ? ", at start" : ", at start in the background")
        }
        switch policy.relaunch {
        case .no: break
        case .onFailure: add(", relaunch on failure")
        case .always: add(", relaunch always")
        }
        if policy.role == .home { add(", home") }
        addTraffic(policy)
        addProcessor(policy)
        add(", launch ", policy.launchDeadline)
        add(", background ", policy.backgroundDeadline)
        add(", terminate ", policy.terminateDeadline)
        add(", ")
        add(policy.killMode.rawValue)
        add(", suspended ")
        add(policy.terminateSuspended.rawValue)
        add(", at most ", policy.extendedDeadlineMax)
        add(", budget ", policy.backgroundTime)
        add(", notice ", policy.expirationNotice)
        add(", delay ", policy.suspendDelay)
        add(", watchdog ", policy.watchdog)
        if policy.startUpTime != .zero { add(", start-up ", policy.startUpTime) }
        if policy.suspension != .yes { add(", Suspend=\(policy.suspension.rawValue)") }
        if policy.isEssential { add(", Essential=yes") }
        if let seat = policy.seat { add(", \(seat)") }
        if policy.exitsOnSuspend { add(", exits on suspend") }
        if policy.hidesSnapshot { add(", hides its snapshot") }
        if policy.waitsForRelease { add(", stays awake for locks") }
        if policy.forbidsBackgroundGPU { add(", uses no GPU in the background") }
        add(", modes ")
        add(policy.backgroundModes.rawValue)
        add(", priority ")
        add(policy.jetsamPriority)
        add(", high ", bytes: policy.memoryHigh)
        add(", high suspended ", bytes: policy.suspendedMemoryHigh)
        if let limit = policy.memoryMax { add(", max ", bytes: limit) }
        if let limit = policy.suspendedMemoryMax { add(", max suspended ", bytes: limit) }
    }

    mutating func add(_ policy: ManagerPolicy) {
        add("configured: ")
        add(policy.foregroundLimit)
        switch policy.jetsamOrder {
        case .largest: add(" in the foreground, largest first")
        case .lru: add(" in the foreground, lru")
        case .balanced: add(" in the foreground, balanced")
        }
        if let limit = policy.launchesAtOnce {
            add(", launches at once: ")
            add(limit)
        }
        add(", budget ", bytes: policy.budget)
        add(", warning below ", policy.warningAvailable)
        add(", critical below ", policy.criticalAvailable)
    }

    private mutating func add(_ name: String, _ amount: MemoryAmount?) {
        add(name)
        switch amount {
        case nil: add("the default")
        case .bytes(let bytes): add(bytes: bytes)
        case .percent(let percent):
            add(percent)
            add(" %")
        }
    }
}

extension MemoryLevel {
    var word: String {
        switch self {
        case .normal: "normal"
        case .warning: "warning"
        case .critical: "critical"
        }
    }
}
