import LifecycleCore

extension Line {
    /// Adds an effect in words. `app`: the app of the run.
    mutating func add(_ effect: Effect, of app: AppID?) {
        switch effect {
        case .report(let report): add(report)
        case .answer(let request, let answer):
            add("answer request ")
            add(request.number)
            add(": ")
            add(answer)
        case .identify(let request, let event):
            add("number of request ")
            add(request.number)
            add(": ")
            add(event)
        case .writeReceipt(let receipt):
            add("receipt ")
            add(receipt.id)
            add(": ")
            add(receipt)
        case .sockets(let id, .watch): add("watch the sockets of ", id.name)
        case .sockets(let id, .stopWatching): add("stop watching the sockets of ", id.name)
        case .sockets(let id, .reject): add("reject the connections of ", id.name)
        case .removeInstance(let id): add("remove the instance ", id.name)
        case .scheduleTimers(let id): add("schedule the timers of ", id.name)
        case .subscribe(let id, let kinds):
            add("subscribe to ", kinds.isEmpty ? "nothing" : kinds.names.joined(separator: " "))
            add(" for ", id.name)
        case .measureMemory: add("measure memory")
        case .allowSleep: add("allow sleep")
        case .finish: add("finish")
        case .spawn(let id, let run, let launch):
            add("spawn ")
            add(id.name)
            add(" as run ")
            add(run.number)
            add(launch.state == .foreground ? " into the foreground (" : " into the background (")
            add(launch.reason.rawValue)
            add(launch.isFirst ? "), its first" : ")")
        case .recordLaunch(let id, let count):
            add("record launch ")
            add(count)
            add(" of ")
            add(id.name)
        case .dropRestorationState(let id, let what):
            switch what {
            case .restoration: add("drop the restoration state of ")
            case .everything: add("drop all that is stored of ")
            case .scene(let scene):
                add("drop what is stored of the scene ")
                add(scene.name)
                add(" of ")
            }
            add(id.name)
        case .run(_, let effect): add(effect, app?.name ?? "?")
        }
    }

    private mutating func add(_ effect: RunEffect, _ app: String) {
        switch effect {
        case .notify(let notice):
            add("notify ", app)
            add(" ", notice.word)
        case .deliver(let notifications):
            add("deliver to ", app)
            for notification in notifications {
                add(" ")
                add(notification)
            }
        case .warn(let warning):
            add("warn of ", app)
            add(": ", String(describing: warning))
        case .kill: add("kill ", app)
        case .continueStopped: add("continue ", app)
        case .deadline(.inspect): add("inspect ", app)
        case .deadline(.measureActivity): add("measure the activity of ", app)
        case .suspension(.freeze(let attempt)):
            add("freeze ", app)
            add(", attempt ")
            add(attempt)
        case .suspension(.thaw(let attempt)):
            add("thaw ", app)
            add(", attempt ")
            add(attempt)
        case .traffic(let effect): add(effect, app)
        case .processor(let effect): add(effect, app)
        case .hook(let effect): add(effect, app)
        case .memory(let effect): add(effect, app)
        }
    }

    private mutating func add(_ effect: RunMemoryEffect, _ app: String) {
        switch effect {
        case .setOOMClass(let oomClass):
            add("OOM class of ", app)
            add(": ", String(describing: oomClass))
        case .measureSize: add("measure the exact size of ", app)
        case .reclaim(_, let bytes):
            add("push out ")
            add(bytes: bytes)
            add(" of ", app)
        case .stopReclaim: add("push out no more of ", app)
        case .bringBack: add("bring back ", app)
        }
    }

    mutating func add(_ verb: String, _ object: String) {
        add(verb)
        add(object)
    }

    private mutating func add(_ receipt: Receipt) {
        add(receipt.app.name)
        add(" ended ")
        add(receipt.exit)
        add(", was ")
        add(receipt.state.rawValue)
        add("; ")
        add(receipt.namespace.rawValue)
        add(" 0x")
        add(String(receipt.code, radix: 16))
        add(", ")
        add(receipt.explanation)
        for candidate in receipt.candidates {
            add("; ")
            add(candidate.app.name)
            add(" ")
            add(candidate.state.rawValue)
            add(" ")
            add(bytes: candidate.memory)
        }
    }

    private mutating func add(_ answer: Answer) {
        switch answer {
        case .done(let state): add("done, ", state.rawValue)
        case .superseded(let state): add("superseded by ", state.rawValue)
        case .ended(let receipt):
            add("ended, receipt ")
            add(receipt.id)
        case .simulated(let victim): add("simulated, victim ", victim?.name ?? "none")
        case .refused(let refusal):
            add("refused, ")
            switch refusal {
            case .unknownApp: add("unknown app")
            case .notRunning: add("not running")
            case .running: add("already running")
            case .ending: add("ending")
            case .opensNoURLs: add("opens no URLs")
            case .notInForeground: add("not in the foreground")
            case .notInterrupted: add("not interrupted")
            case .modeNotDeclared(let mode): add("no mode ", mode)
            case .noTask(let name): add("no task ", name)
            case .noScene(let id), .noSuchScene(let id): add("no scene ", id.name)
            case .lastScene: add("the last scene")
            case .launchPostponed(let time):
                add("postponed by ")
                add(time)
            case .backgroundTimeUsedUp(let time):
                add("background time used up for ")
                add(time)
            case .requesterNotInForeground: add("the requester is not in the foreground")
            case .shuttingDown: add("shutting down")
            case .tooMany(let sentence): add(sentence)
            }
        }
    }
}

// MARK: Reports

extension Line {
    private mutating func add(_ report: Report) {
        switch report {
        case .deadlineStarted, .deadlineExtended, .deadlineCredited, .deadlineMet, .deadlineCancelled, .deadlineMissed,
            .deadlineDeferred:
            addDeadline(report)
        case .stateChanged(let id, let from, let to, let reason):
            add(id.name, ": ")
            add(from.rawValue, " → ")
            add(to.rawValue, " (")
            add(reason.rawValue, ")")
        case .taskBegan(let id, let name): add(id.name, ": task ", name, " began")
        case .taskEnded(let id, let name, let isCancelled):
            add(id.name, ": task ", name, isCancelled ? " ended, cancelled" : " ended")
        case .modeBegan(let id, let mode): add(id.name, ": mode ", mode.name, " began")
        case .modeEnded(let id, let mode): add(id.name, ": mode ", mode.name, " ended")
        case .sceneChanged(let id, let scene, let from, let to):
            add(id.name, ": scene \(scene): ", from.name, " → \(to.name)")
        case .taskRefused(let id, let name): add(id.name, ": task ", name, " refused")
        case .tasksExpiring(let id, let names):
            add(id.name, ": ")
            add(names.count)
            add(" tasks expire: ", names.first ?? "none")
        case .taskProgressed(let id, let name, let progress):
            add(id.name, ": task ", name, " has done \(progress.done) of \(progress.total)")
        case .taskExpires(let id, let name, let cause): add(id.name, ": task ", name, " expires, \(cause.rawValue)")
        case .freezeTakesLong(let id): add(id.name, ": freeze takes long")
        case .killTakesLong(let id): add(id.name, ": processes survive SIGKILL")
        case .stoppedItself(let id, let state): add(id.name, ": stopped itself while ", state.rawValue, "")
        case .wakeCompleted(let id, let result, let wake):
            add(id.name, ": wake ")
            add(wake)
            add(" completed, ", result.rawValue)
        case .relaunchScheduled(let id, let time, let deaths):
            add(id.name, ": relaunch after ")
            add(time)
            add(", early ends: ")
            add(deaths)
        case .unrequestedTimeUsedUp(let id, let limit):
            add(id.name, ": unrequested background time used up: ")
            add(limit)
        case .memoryAwaited(let id, let bytes):
            add(id.name, ": comes back when there is memory: ")
            add(bytes: bytes)
        case .inputArrived, .inputNotWatched, .wokenTooOften, .locksHeld: addTraffic(report)
        case .processorUseHigh, .processorThrottled, .processorThrottleEnded: addProcessor(report)
        case .hookFailed, .hookKilled, .suspensionRefused: addHook(report)
        case .connectionsRejected(let id, let time):
            add(id.name, ": connections rejected after ")
            add(time)
        case .wouldSuspend(let id): add(id.name, ": would be suspended")
        case .wouldResume(let id, let result):
            add(id.name, ": would have slept for ")
            add(result.slept)
            add(", ", result.reason.rawValue)
        case .memoryReclaimed(let id, let bytes):
            add(id.name, ": pushed out: ")
            add(bytes: bytes)
        case .memoryLevelChanged(let level, let cause):
            add("memory level ", level.word)
            add(", ", cause.rawValue)
        case .ended(let receipt):
            add("run ")
            add(receipt.run.number)
            add(" ended")
        }
    }

    private mutating func addDeadline(_ report: Report) {
        switch report {
        case .deadlineStarted(let id, let kind, let time, let wake): addDeadline(id, kind, wake, " starts, ", time)
        case .deadlineExtended(let id, let kind, let time): addDeadline(id, kind, 0, " extended by ", time)
        case .deadlineCredited(let id, let kind, let time):
            addDeadline(id, kind, 0, " credited with time without a processor: ", time)
        case .deadlineMet(let id, let kind, let time, let wake): addDeadline(id, kind, wake, " met after ", time)
        case .deadlineCancelled(let id, let kind, let wake): addDeadline(id, kind, wake, " cancelled", nil)
        case .deadlineMissed(let id, let kind, let wake): addDeadline(id, kind, wake, " missed", nil)
        case .deadlineDeferred(let id, let kind, _, let wake): addDeadline(id, kind, wake, " starts again", nil)
        default: break
        }
    }

    /// - Parameter wake: 0: it is no wake's.
    private mutating func addDeadline(
        _ id: AppID, _ kind: DeadlineKind, _ wake: UInt64, _ what: String, _ time: Duration?
    ) {
        add(id.name, ": deadline ", kind.rawValue, "")
        if wake != 0 {
            add(" ")
            add(wake)
        }
        add(what)
        if let time { add(time) }
    }

    private mutating func add(_ a: String, _ b: String, _ c: String, _ d: String) {
        add(a, b)
        add(c, d)
    }
}
