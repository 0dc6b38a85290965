import LifecycleCore

/// The words of the events of a run.
extension Line {
    mutating func add(_ event: RunEvent) {
        switch event {
        case .process(let event): add(event)
        case .transition(let event): add(event)
        case .deadline(let event): add(event)
        case .watchdog(let event): add(event)
        case .suspension(let event): add(event)
        case .memory(let event): add(event)
        case .traffic(let event): add(event)
        case .processor(let event): add(event)
        case .hookEnded(let number, let outcome): add("'s hook \(number) ended: \(outcome)")
        case .task(let event): add(event)
        case .mode(let event): add(event)
        case .scene(let event): add(event)
        case .wake(let event): add(event)
        case .connection(let event): add(event)
        }
    }

    private mutating func add(_ event: ProcessEvent) {
        switch event {
        case .spawned(let pid):
            add(" spawned as ")
            add(pid)
        case .executed: add(" executed")
        case .spawnFailed(let problem):
            add(" not spawned: ")
            add(problem.sentence)
        case .stopped: add(" stopped itself")
        case .continued: add(" was continued")
        case .mainProcessChanged(let pid):
            add(" has main process ")
            add(pid)
        case .exited(let status, _, let memory, let remaining):
            add(" exited ")
            add(status)
            add(", had ")
            add(bytes: memory)
            if let remaining {
                add(", remaining processes: ")
                add(remaining.count)
            }
        case .emptied: add(" emptied")
        case .reattached(let messagesKept, let noticesDelayed):
            add(" reattached" + (messagesKept ? "" : ", messages lost") + (noticesDelayed ? ", notices delayed" : ""))
        }
    }

    private mutating func add(_ event: TransitionEvent) {
        switch event {
        case .notified(let notice, let delivered, _):
            add(delivered ? " notified: " : " not notified: ")
            add(notice.word)
        case .ready: add(" is ready")
        case .backgroundEntered: add(" entered the background")
        case .stopping: add(" is about to end")
        case .terminationAnswered: add(" has finished")
        }
    }

    private mutating func add(_ event: DeadlineEvent) {
        switch event {
        case .inspected(let inspection):
            add(inspection.traced ? " inspected: traced, " : " inspected: ")
            add(bytes: inspection.memory)
            if inspection.waited > .zero {
                add(", waited ")
                add(inspection.waited)
            }
        case .activityMeasured(let activity):
            add(" used ")
            add(activity.cpu)
            add(", waited ")
            add(activity.waited)
            if activity.isRunnable { add(", runnable") }
            if let listens = activity.listens { add(listens ? ", listens" : ", does not listen") }
            if activity.hiddenSockets != nil { add(", sockets hidden") }
        case .extended(let time):
            add(" extends its timeout by ")
            add(time)
        }
    }

    private mutating func add(_ event: WatchdogEvent) {
        switch event {
        case .heartbeat: add(" sends a heartbeat")
        case .triggered: add(" gives up its heartbeat")
        case .timeChanged(let time): add(" sends a heartbeat from now on each ", time)
        }
    }

    private mutating func add(_ event: SuspensionEvent) {
        switch event {
        case .locksFound(let attempt, let locks):
            add(" holds ")
            add(locks.count)
            add(" file locks, attempt ")
            add(attempt)
        case .frozen(let attempt, let memory, _): add(" frozen", attempt: attempt, memory)
        case .footprintMeasured(let attempt, let memory): add(" measured", attempt: attempt, memory)
        case .freezeLost(let attempt): add(" was continued by others, attempt \(attempt)")
        case .thawed(let attempt):
            add(" thawed, attempt ")
            add(attempt)
        }
    }

    private mutating func add(_ event: RunMemoryEvent) {
        switch event {
        case .sizeMeasured(let bytes, _):
            add(" measured exactly: ")
            add(bytes)
        case .reclaimed(let attempt, let bytes): add(" pushed out", attempt: attempt, bytes)
        case .outOfMemory(let cause): add(cause == .limit ? " exceeded its memory limit" : " killed by the kernel")
        }
    }

    private mutating func add(_ what: String, attempt: Int, _ memory: UInt64) {
        add(what)
        add(", attempt ")
        add(attempt)
        add(", with ")
        add(bytes: memory)
    }

    private mutating func add(_ event: TaskEvent) {
        switch event {
        case .began(let name, _): add(" begins \(name)")
        case .ended(let name): add(" ends \(name)")
        case .progressed(let name, let progress):
            add(" has done \(progress.done) of \(progress.total) of \(name), “\(progress.title)”")
        }
    }

    private mutating func add(_ event: ModeEvent) {
        switch event {
        case .began(let mode):
            add(" begins the mode ")
            add(mode.name)
        case .ended(let mode):
            add(" ends the mode ")
            add(mode.name)
        case .inhibitorChanged(let inhibitor): add(inhibitor == nil ? " inhibits nothing" : " holds an inhibitor")
        case .shown(let modes): add(modes.isEmpty ? " is shown in no mode" : " is shown in a mode")
        case .unused(let modes): add(modes.isEmpty ? " uses its modes" : " does not use a mode")
        }
    }

    private mutating func add(_ event: SceneEvent) {
        switch event {
        case .began(let id, let role): add(" begins the scene \(id), \(role.rawValue)")
        case .ended(let id): add(" ends the scene \(id)")
        case .snapshotTaken(let id): add(" has taken the snapshot of its scene \(id)")
        }
    }

    private mutating func add(_ event: WakeEvent) {
        switch event {
        case .completed(let result, let id):
            add(" completed its wake: ")
            add(result.rawValue)
            if let id {
                add(", number ")
                add(id)
            }
        case .notificationDelayed(let wake): add(" cannot read what it is woken for by wake \(wake)")
        }
    }

    private mutating func add(_ event: ConnectionEvent) {
        switch event {
        case .attached(let handled): add(handled)
        case .snapshotTaken: add(" has taken its snapshot")
        case .withdrawn: add(" advertises nothing")
        }
    }
}
