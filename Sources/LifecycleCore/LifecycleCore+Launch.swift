/// From the wish to launch to ready (L6, L7, L9, L11).
extension LifecycleCore {
    /// L11: 10 s, doubling, up to 5 min.
    static let firstPostponement = Duration.seconds(10)
    static let longestPostponement = Duration.seconds(300)
    /// A run that ends within this time of its creation has not got anywhere: launching it again at once would only spin,
    /// whatever its exit status, and whether or not it had said that it is ready (L11).
    static let earlyEnd = Duration.seconds(10)

    /// An explicit launch by the user resets what held automatic ones back (L11).
    mutating func launchByUser(_ slot: Int, _ launch: Launch, _ now: Instant) {
        self[app: slot].earlyEnds = 0
        self[app: slot].postponedUntil = nil
        self.launch(slot, launch, now)
    }

    mutating func launch(_ slot: Int, _ launch: Launch, _ now: Instant) {
        var launch = launch
        launch.isFirst = self[app: slot].launches == 0
        let id = RunID(nextRun)
        nextRun += 1
        runs[id] = slot
        self[app: slot].run = Run(id: id, created: now)
        self[app: slot].notifications.reset()
        tellProtectedData(slot)
        let wake = launch.reason.wakes ? launch.reason : nil
        move(slot, to: .launching(Launching(launch: launch, wake: wake)), .launched, now)
        effects.append(.spawn(self[app: slot].id, id, launch))
        let deadline = begin(slot, .launch, self[app: slot].policy.launchDeadline, now)
        self[app: slot].phase = .launching(Launching(launch: launch, deadline: deadline, wake: wake))
        if launch.state == .foreground { takePlace(slot, now) }
        memoryState.checkSoon(now)
    }

    mutating func spawned(_ slot: Int, _ pid: Int32) {
        self[run: slot].pid = pid
        self[app: slot].launches += 1
        effects.append(.recordLaunch(self[app: slot].id, count: self[app: slot].launches))
    }

    mutating func executed(_ slot: Int, _ now: Instant) {
        switch self[app: slot].policy.readiness {
        case .executed: becameReady(slot, now)
        case .notified: break
        }
    }

    /// L4: only the first time in a process means anything.
    mutating func becameReady(_ slot: Int, _ now: Instant) {
        guard case .launching(let launching) = self[app: slot].phase else { return }
        metPhaseDeadline(slot, now)
        switch launching.wish {
        case .terminate: return terminate(slot, .requested, now)
        case .foreground: if mayEnterForeground(slot, now) { return enterForeground(slot, .ready, now) }
        case .background: break
        case nil:
            if launching.launch.state == .foreground, mayEnterForeground(slot, now) {
                return enterForeground(slot, .ready, now)
            }
        }
        if let wake = launching.wake { beginWake(slot, wake, now) }
        enterBackground(slot, .ready, now)
        // L3: told where it is, then the event that it was launched for.
        deliverNotifications(slot, inForeground: false)
    }

    /// Whatever it was taken to be meanwhile, and whatever was about to end it: nothing of it runs.
    mutating func spawnFailed(_ slot: Int, _ problem: SpawnProblem, _ now: Instant) {
        let sentence = "could not be launched: \(problem.sentence)"
        endRun(slot, .exited(problem.exitStatus), cpu: .zero, now, explanation: sentence)
        emptied(slot, now)
    }
}

extension LaunchReason {
    /// It wakes an app for something to do, in time of its own (L26), rather than because somebody wants to see it.
    var wakes: Bool {
        switch self {
        case .push, .fetch, .socket, .timer, .accessory, .location: true
        case .user, .url, .relaunch: false
        }
    }

    /// The mode that makes not completing such a wake an error (L30).
    var completedMode: BackgroundModes? {
        switch self {
        case .push: .push
        case .fetch: .fetch
        case .user, .url, .socket, .timer, .accessory, .location, .relaunch: nil
        }
    }
}
