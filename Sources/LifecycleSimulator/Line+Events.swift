import LifecycleCore

extension Line {
    /// Adds an event in words. `app`: the app of the run, since runs have numbers only.
    mutating func add(_ event: Event, of app: AppID?) {
        switch event {
        case .run(_, let what):
            add(app?.name ?? "?")
            add(what)
        case .registered(let id, let policy, let launches):
            add("registered ")
            add(id.name)
            add(", launched ")
            add(launches)
            add(" times: ")
            add(policy)
        case .unregistered(let id):
            add("unregistered ")
            add(id.name)
        case .configured(let policy): add(policy)
        case .started: add("started")
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
        case .sleepRequested: add("sleep requested")
        case .awoke: add("the machine awoke")
        case .locked: add("the screen was locked")
        case .unlocked: add("the screen was unlocked")
        case .deadlineReached: add("deadline reached")
        case .memoryMeasured(let reading): add(reading)
        case .pressureStalled(let level):
            add("stalls for memory: ")
            add(level.word)
        case .pressureSimulated(let request, let level):
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

    private mutating func add(_ event: RunEvent) {
        switch event {
        case .spawned(let pid):
            add(" spawned as ")
            add(pid)
        case .executed: add(" executed")
        case .spawnFailed(let problem):
            add(" not spawned: ")
            add(problem.sentence)
        case .notified(let notice, let delivered, _):
            add(delivered ? " notified: " : " not notified: ")
            add(notice.word)
        case .frozen(let attempt, let memory, _):
            add(" frozen", attempt: attempt, memory)
        case .footprintMeasured(let attempt, let memory):
            add(" measured", attempt: attempt, memory)
        case .sizeMeasured(let bytes, _):
            add(" measured exactly: ")
            add(bytes)
        case .reclaimed(let attempt, let bytes):
            add(" pushed out", attempt: attempt, bytes)
        case .thawed(let attempt):
            add(" thawed, attempt ")
            add(attempt)
        case .freezeLost(let attempt): add(" was continued by others, attempt \(attempt)")
        case .inspected(let inspection): add(inspection)
        case .activityMeasured(let activity): add(activity)
        case .locksFound, .inputWatched, .inputArrived, .workMeasured: addTraffic(event)
        case .processorMeasured(let used, let waited): addProcessor(used, waited)
        case .gpuUsed(let time): add(" has used a GPU for ", time)
        case .exited(let status, _, let memory, let remaining):
            add(" exited ")
            add(status)
            add(", had ")
            add(bytes: memory)
            if let remaining {
                add(", remaining processes: ")
                add(remaining.count)
            }
        case .hookEnded(let number, let outcome): addHookEnd(number, outcome)
        case .outOfMemory(let cause): add(cause == .limit ? " exceeded its memory limit" : " killed by the kernel")
        case .notificationDelayed(let wake): add(" cannot read what it is woken for by wake \(wake)")
        case .emptied: add(" emptied")
        case .reattached(let messagesKept, let noticesDelayed):
            add(" reattached" + (messagesKept ? "" : ", messages lost") + (noticesDelayed ? ", notices delayed" : ""))
        case .ready: add(" is ready")
        case .backgroundEntered: add(" entered the background")
        case .stopped: add(" stopped itself")
        case .continued: add(" was continued")
        case .taskBegan(let name, _): add(" begins \(name)")
        case .taskEnded(let name): add(" ends \(name)")
        case .taskProgressed(let name, let progress):
            add(" has done \(progress.done) of \(progress.total) of \(name), “\(progress.title)”")
        case .modeBegan, .modeEnded, .inhibitorChanged, .modesShown, .modesUnused, .scene: addMode(event)
        case .timeoutExtended(let time):
            add(" extends its timeout by ")
            add(time)
        case .wakeCompleted(let result, let id): addCompletion(result.rawValue, id)
        case .heartbeat: add(" sends a heartbeat")
        case .heartbeatGivenUp: add(" gives up its heartbeat")
        case .heartbeatTimeChanged(let time): add(" sends a heartbeat from now on each ", time)
        case .stopping: add(" is about to end")
        case .mainProcessChanged(let pid):
            add(" has main process ")
            add(pid)
        case .attached, .terminationAnswered, .idleHinted, .snapshotTaken, .sceneSnapshotTaken, .withdrawn:
            addConnection(event)
        }
    }

    private mutating func addConnection(_ event: RunEvent) {
        switch event {
        case .attached(let handled): add(handled)
        case .terminationAnswered: add(" has finished")
        case .idleHinted(let isIdle): add(isIdle ? " has nothing to do" : " has something to do")
        case .snapshotTaken: add(" has taken its snapshot")
        case .sceneSnapshotTaken(let scene): add(" has taken the snapshot of its scene \(scene)")
        case .withdrawn: add(" advertises nothing")
        default: break
        }
    }

    private mutating func addMode(_ event: RunEvent) {
        switch event {
        case .modeBegan(let mode):
            add(" begins the mode ")
            add(mode.name)
        case .modeEnded(let mode):
            add(" ends the mode ")
            add(mode.name)
        case .scene(.began(let id, let role)): add(" begins the scene \(id), \(role.rawValue)")
        case .scene(.ended(let id)): add(" ends the scene \(id)")
        case .modesShown(let modes): add(modes.isEmpty ? " is shown in no mode" : " is shown in a mode")
        case .modesUnused(let modes): add(modes.isEmpty ? " uses its modes" : " does not use a mode")
        case .inhibitorChanged(let inhibitor): add(inhibitor == nil ? " inhibits nothing" : " holds an inhibitor")
        default: break
        }
    }

    private mutating func addCompletion(_ result: String, _ id: UInt64?) {
        add(" completed its wake: ")
        add(result)
        if let id {
            add(", number ")
            add(id)
        }
    }

    private mutating func add(_ what: String, attempt: Int, _ memory: UInt64) {
        add(what)
        add(", attempt ")
        add(attempt)
        add(", with ")
        add(bytes: memory)
    }

    private mutating func add(_ inspection: Inspection) {
        add(inspection.traced ? " inspected: traced, " : " inspected: ")
        add(bytes: inspection.memory)
        if inspection.waited > .zero {
            add(", waited ")
            add(inspection.waited)
        }
    }

    private mutating func add(_ activity: RunActivity) {
        add(" used ")
        add(activity.cpu)
        add(", waited ")
        add(activity.waited)
        if activity.isRunnable { add(", runnable") }
        if let listens = activity.listens { add(listens ? ", listens" : ", does not listen") }
        if activity.hiddenSockets != nil { add(", sockets hidden") }
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
    private mutating func add(_ name: String, _ time: Duration?) {
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
