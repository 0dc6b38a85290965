import Control
import LifecycleCore
import Reports

/// What the core reported while it handled an event.
extension TimelineBuilder {
    mutating func take(_ report: Report, _ event: Event, _ now: Instant) {
        let entry = LogEntry(report)
        switch report {
        case .stateChanged(let app, from: _, let to, let reason):
            changed(app, to, reason, entry.message, event, now)
        case .deadlineStarted(let app, let kind, let time, let wake):
            let key = DeadlineKey(app: app, kind: kind, wake: wake)
            close(key, "restarted", "restarted", now)
            deadlines[key] = Bar(
                start: now, end: now, label: kind.rawValue, sentence: "\(app): \(time.timeSpan) for \(kind.rawValue)")
        case .deadlineExtended(let app, let kind, let time), .deadlineCredited(let app, let kind, let time):
            for key in deadlines.keys where key.app == app && key.kind == kind {
                deadlines[key]?.sentence += "; extended by \(time.timeSpan)"
            }
        case .deadlineMet(let app, let kind, used: _, let wake):
            close(DeadlineKey(app: app, kind: kind, wake: wake), "met", "met", now)
        case .deadlineCancelled(let app, let kind, let wake):
            close(DeadlineKey(app: app, kind: kind, wake: wake), "cancelled", "cancelled", now)
        case .deadlineMissed(let app, let kind, let wake):
            close(DeadlineKey(app: app, kind: kind, wake: wake), "missed", "missed", now)
            mark(app, entry, now)
        case .taskBegan(let app, let name):
            close(TaskKey(app: app, name: name), "begun again", now)
            openTask(app, name, "\(app): background task '\(name)'", now)
        case .taskEnded(let app, let name, let isCancelled):
            close(TaskKey(app: app, name: name), isCancelled ? "ended, cancelled" : "ended", now)
        case .taskProgressed(let app, let name, let progress):
            tasks[TaskKey(app: app, name: name)]?.sentence =
                "\(app): background task '\(name)', \(TaskStatus(name, progress).progressText)"
        case .modeBegan(let app, let mode):
            openTask(app, "mode \(mode.name)", "\(app): mode '\(mode.name)'", now)
        case .modeEnded(let app, let mode): close(TaskKey(app: app, name: "mode \(mode.name)"), "ended", now)
        case .wouldSuspend(let app): openTask(app, "dry run", entry.message, now)
        case .wouldResume(let app, _): close(TaskKey(app: app, name: "dry run"), "ended", now)
        case .memoryLevelChanged(let level, _): openLevel(level, entry.message, now)
        case .ended(let receipt):
            // Tasks end with their app, without a report.
            for key in tasks.keys where key.app == receipt.app { close(key, "the app ended", now) }
            mark(receipt.app, entry, now)
        case .deadlineDeferred(let app, _, _, _), .taskRefused(let app, _), .tasksExpiring(let app, _),
            .taskExpires(let app, _, _),
            .freezeTakesLong(let app), .killTakesLong(let app), .stoppedItself(let app, _),
            .wakeCompleted(let app, _, _),
            .relaunchScheduled(let app, _, _), .memoryAwaited(let app, _), .unrequestedTimeUsedUp(let app, _),
            .inputArrived(let app, _), .inputNotWatched(let app, _), .wokenTooOften(let app, _),
            .locksHeld(let app, _, _),
            .processorUseHigh(let app, _), .processorThrottled(let app, _), .processorThrottleEnded(let app),
            .connectionsRejected(let app, _), .hookFailed(let app, _, _), .hookKilled(let app, _, _),
            .suspensionRefused(let app), .memoryReclaimed(let app, _), .sceneChanged(let app, _, _, _):
            mark(app, entry, now)
        }
    }

    private mutating func mark(_ app: AppID, _ entry: LogEntry, _ now: Instant) {
        _ = lane(app)
        lanes[app]?.marks.append(Timeline.Mark(at: now, kind: entry.event.kind, sentence: entry.message))
    }

    private mutating func changed(
        _ app: AppID, _ state: AppState, _ reason: StateReason, _ sentence: String, _ event: Event, _ now: Instant
    ) {
        closeState(app, now)
        if state == .notRunning {
            lanes[app]?.memory.append(Timeline.Sample(at: now, value: 0))
        } else {
            openState(app, state, sentence, now)
        }
        if reason == .jetsam {
            causes[app] = Cause(origin: .memory, at: now, sentence: sentence)
        } else if reason == .displaced, case .requested(_, let other, _, _) = event, other != app {
            causes[app] = Cause(origin: .app(other.name), at: now, sentence: sentence)
        } else if reason == .timer, causes[app]?.at != now {
            // A timer descriptor is input, and the cause already.
            causes[app] = Cause(
                origin: .input, at: now, sentence: "\(app): a timer of its own was due, or a pulse (PulseSec=)")
        }
        drawArrow(to: app, now)
    }
}

extension Requester {
    var words: String {
        switch self {
        case .user: "a user"
        case .app(let app?): "the app \(app)"
        case .app(nil): "an app"
        }
    }
}

extension Request {
    /// The verb of greenroomctl as a noun.
    var words: String {
        switch self {
        case .launch(let state, let reason, url: _, environment: _):
            "launch (\(reason.rawValue))\(state == .background ? " into the background" : "")"
        case .activate: "activation"
        case .background: "move to the background"
        case .interrupt, .interruptWhileConnected: "interruption"
        case .endInterruption: "end of an interruption"
        case .terminate: "termination"
        case .remove: "removal"
        case .push: "push"
        case .send: "notification"
        case .open: "opening of a URL"
        case .cancelTask(let name): "cancellation of the task '\(name)'"
        case .scene(let scene, .activate): "activation of the scene '\(scene)'"
        case .scene(let scene, .background): "move of the scene '\(scene)' to the background"
        case .scene(let scene, .close): "closing of the scene '\(scene)'"
        }
    }
}
