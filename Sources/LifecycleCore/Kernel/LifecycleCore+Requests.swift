/// What clients ask for, and the answers they wait for. Each request has exactly one answer.
extension LifecycleCore {
    /// How many requests may wait at one app. A request to end the app is never refused for it: see `waitForEnd`.
    static let maximumWaiters = 64
    /// How deep interruptions nest.
    static let maximumInterruptions = 1000

    mutating func requested(
        _ request: RequestID, _ id: AppID, _ what: Request, _ requester: Requester, _ now: Instant
    ) {
        guard let index = indices[id] else { return answer(request, .refused(.unknownApp)) }
        instanceRequested(index)
        guard !isShuttingDown else { return answer(request, .refused(.shuttingDown)) }
        guard apps[index].waiters.count < Self.maximumWaiters || what.endsApp else {
            return answer(request, .refused(.tooMany("\(Self.maximumWaiters) requests are pending")))
        }
        touch(index)
        let isUnrequested = requester != .user
        if what.isForForeground, apps[index].policy.role != .worker, !mayBringToForeground(requester) {
            return answer(request, .refused(.requesterNotInForeground))
        }
        switch what {
        case .launch(let state, let reason, let url, let environment):
            let reached = apps[index].policy.reached(from: state)
            let launch = Launch(
                state: reached, reason: reason, url: url, isUnrequested: isUnrequested, environment: environment)
            launchRequested(request, index, launch, now)
        case .activate where apps[index].policy.role == .worker:
            wakeWorkerRequested(request, index, isUnrequested: isUnrequested, now)
        case .activate:
            let launch = Launch(state: .foreground, reason: .user, isUnrequested: isUnrequested)
            activateRequested(request, index, launch, now)
        case .background: backgroundRequested(request, index, now)
        case .interrupt: interruptRequested(request, index, isTied: false, now)
        case .interruptWhileConnected: interruptRequested(request, index, isTied: true, now)
        case .endInterruption: endInterruptionRequested(request, index, now)
        case .terminate: terminateRequested(request, index, now)
        case .remove: removeRequested(request, index, now)
        case .push(let payload): pushRequested(request, index, payload, isUnrequested: isUnrequested, now)
        case .send(let notification): sendRequested(request, index, notification, now)
        case .open(let url):
            let reached = apps[index].policy.reached(from: .foreground)
            let launch = Launch(state: reached, reason: .url, url: url, isUnrequested: isUnrequested)
            launchRequested(request, index, launch, now)
        case .cancelTask(let name): cancelTaskRequested(request, index, name, now)
        case .scene(let scene, let what):
            sceneRequested(request, index, scene, what, isUnrequested: isUnrequested, now)
        }
    }

    mutating func requestAbandoned(_ request: RequestID, _ now: Instant) {
        guard let index = requests[request.number] else { return }
        requests[request.number] = nil
        apps[index].waiters.removeAll { $0.request == request }
        touch(index)
        endTiedInterruption(index, of: request, now)
    }

    mutating func answer(_ request: RequestID, _ answer: Answer) {
        requests[request.number] = nil
        effects.append(.answer(request, answer))
    }

    mutating func wait(_ request: RequestID, _ index: AppIndex, for goal: Waiter.Goal, afterEnd: Bool = false) {
        invariant(requests[request.number] == nil, "a request waits twice", index)
        apps[index].waiters.append(Waiter(request: request, goal: goal, isAfterEnd: afterEnd))
        requests[request.number] = index
    }

    /// Waits for the end that was requested. If as many requests as may wait do so already, the request is carried out like
    /// the others and answered at once with the state that the app has now.
    private mutating func waitForEnd(_ request: RequestID, _ index: AppIndex) {
        guard apps[index].waiters.count < Self.maximumWaiters else {
            return answer(request, .done(apps[index].state))
        }
        wait(request, index, for: .ended)
    }

    /// Answers clients that wait for a state which will not come, because a later request asked for another one.
    mutating func supersede(_ index: AppIndex, _ goal: Waiter.Goal, by state: AppState) {
        answerAll(index, .superseded(by: state)) { $0.goal == goal }
    }

    /// The app is to end: answers all clients that wait for anything else.
    mutating func supersedeAll(_ index: AppIndex) {
        answerAll(index, .superseded(by: .terminating)) { $0.goal != .ended }
    }

    mutating func answerAll(_ index: AppIndex, _ reply: @autoclosure () -> Answer, where isMeant: (Waiter) -> Bool) {
        // Most of the time no client waits: then the answer is not made, and an empty array keeps its memory.
        guard apps[index].waiters.contains(where: isMeant) else { return }
        let (waiters, reply) = (apps[index].waiters, reply())
        apps[index].waiters = waiters.filter { !isMeant($0) }
        for waiter in waiters where isMeant(waiter) { answer(waiter.request, reply) }
    }

    /// Answers clients that waited for the state which the app is in now.
    mutating func answerWaiters(_ index: AppIndex) {
        if apps[index].waiters.isEmpty { return }
        let state = apps[index].state
        switch apps[index].phase {
        case .foreground: answerAll(index, .done(state)) { $0.goal == .foreground || $0.goal == .awake }
        case .background, .suspending, .suspended:
            answerAll(index, .done(state)) { $0.goal == .background || $0.goal == .awake }
        case .notRunning:
            if apps[index].queuedLaunch == nil { answerAll(index, .done(.notRunning)) { _ in true } }
        case .launching, .enteringBackground, .waking, .terminating, .ending: break
        }
    }

    // MARK: What comes next (L5)

    /// Replaces the request that is carried out after the transition which is under way. Traps if none is.
    mutating func setPending(_ index: AppIndex, _ pending: PendingRequest) {
        guard var execution = apps[index].execution else {
            preconditionFailure("no transition is under way in \(apps[index].phase)")
        }
        execution.setPending(pending)
        update(index, execution)
    }

    /// Sets the launch that follows the end which is under way; `nil`: none does, not even a relaunch. Traps if the app is
    /// not ending.
    mutating func setNext(_ index: AppIndex, _ next: Launch?) {
        if case .terminating(var terminating)? = apps[index].execution {
            terminating.next = next
            update(index, .terminating(terminating))
        } else if var ending = apps[index].ending {
            ending.next = next
            if next == nil { ending.relaunch = nil }
            apps[index].life = .ending(ending)
        } else {
            preconditionFailure("no end is under way in \(apps[index].phase)")
        }
        if next == nil { dropNextDeliveries(index) }
    }

    /// The launch that follows the end which is under way.
    private func nextLaunch(_ index: AppIndex) -> Launch? {
        if case .terminating(let terminating)? = apps[index].execution { return terminating.next }
        return apps[index].ending?.next
    }

    /// A launch for after the end which is under way, with the variables of one that was requested before if it has none.
    private func withEnvironment(_ launch: Launch, _ index: AppIndex) -> Launch {
        var launch = launch
        if launch.environment.isEmpty { launch.environment = nextLaunch(index)?.environment ?? [] }
        return launch
    }

    /// Wakes an app after the end which is under way. A launch into the foreground that was requested before stays.
    mutating func wakeAfterEnd(_ index: AppIndex, _ launch: Launch, _ wake: PendingWake, _ notification: Notification?)
    {
        if let notification { apps[index].notifications.fileForNext(notification) }
        apps[index].wakes.addForNext(wake)
        guard let next = nextLaunch(index) else { return setNext(index, launch) }
        if next.state == .foreground { return }
        var joined = next.reason.yields(to: launch.reason) ? launch : next
        joined.url = launch.url ?? next.url
        joined.environment = launch.environment.isEmpty ? next.environment : launch.environment
        joined.isUnrequested = next.isUnrequested && launch.isUnrequested
        setNext(index, joined)
    }

    /// A request wants the app to run: its end is no longer wanted.
    private mutating func withdrawTermination(_ index: AppIndex) {
        guard apps[index].phase != .notRunning, storage(index).run.isTerminationRequested else { return }
        self[run: index].isTerminationRequested = false
    }

    // MARK: Launch and activate

    private mutating func launchRequested(_ request: RequestID, _ index: AppIndex, _ launch: Launch, _ now: Instant) {
        // Variables reach only the process that is launched with them.
        if !launch.environment.isEmpty, hasProcessThatStays(index) { return answer(request, .refused(.running)) }
        var launch = launch
        if let url = launch.url {
            if let refusal = urlRefusal(index, url, launch, now) { return answer(request, .refused(refusal)) }
            fileURL(index, url, request)
            launch.url = nil
        }
        switch launch.state {
        case .foreground: activateRequested(request, index, launch, now)
        case .background:
            if launch.reason.wakes { return wakeRequested(request, index, launch, nil, now) }
            launchInBackgroundRequested(request, index, launch, now)
        }
    }

    private mutating func launchInBackgroundRequested(
        _ request: RequestID, _ index: AppIndex, _ launch: Launch, _ now: Instant
    ) {
        switch apps[index].phase {
        case .notRunning:
            if let refusal = refusal(of: launch, index, now) { return answer(request, .refused(refusal)) }
            sentAway(index)
            wait(request, index, for: .background)
            launchOnRequest(index, launch, now)
        case .launching, .enteringBackground, .waking:
            if apps[index].execution?.pending == .terminate {
                withdrawTermination(index)
                setPending(index, .background)
                supersede(index, .ended, by: .background)
            }
            wait(request, index, for: .awake)
        case .foreground, .background, .suspending, .suspended: answer(request, .done(apps[index].state))
        case .terminating, .ending:
            setNext(index, withEnvironment(launch, index))
            leaveForegroundSlot(index)
            sentAway(index)
            supersede(index, .foreground, by: .background)
            wait(request, index, for: .background, afterEnd: true)
        }
    }

    mutating func activateRequested(
        _ request: RequestID, _ index: AppIndex, _ launch: Launch, scene: SceneID? = nil, _ now: Instant
    ) {
        let phase = apps[index].phase
        if phase == .notRunning, let refusal = refusal(of: launch, index, now) {
            return answer(request, .refused(refusal))
        }
        supersede(index, .background, by: .active)
        withdrawTermination(index)
        switch phase {
        case .notRunning:
            wait(request, index, for: .foreground)
            launchOnRequest(index, launch, now)
            return takeForegroundSlotOnRequest(index, now)
        case .launching, .enteringBackground, .waking:
            setPending(index, .foreground)
            supersede(index, .ended, by: .active)
        case .foreground:
            continueIfStopped(index)
            openURLs(index)
        case .background:
            takeForegroundSlotOnRequest(index, for: scene, now)
            if !absence.isSleeping { enterForeground(index, .requested, now) }
        case .suspending, .suspended: if !absence.isSleeping { wake(index, pending: .foreground, for: nil, now) }
        case .terminating, .ending: setNext(index, withEnvironment(launch, index))
        }
        wait(request, index, for: .foreground, afterEnd: isEnding(index))
        takeForegroundSlotOnRequest(index, for: scene, now)
    }

    /// Its clients can reach a worker without it; this is for a user who wants to see it run.
    private mutating func wakeWorkerRequested(
        _ request: RequestID, _ index: AppIndex, isUnrequested: Bool, _ now: Instant
    ) {
        let launch = Launch(state: .background, reason: .user, isUnrequested: isUnrequested)
        switch apps[index].phase {
        case .suspending, .suspended:
            if isUnrequested, let refusal = unrequestedTimeRefusal(index, now) {
                return answer(request, .refused(refusal))
            }
            withdrawTermination(index)
            wake(index, pending: nil, for: nil, isUnrequested: isUnrequested, because: .requested, now)
            wait(request, index, for: .awake)
        case .notRunning, .launching, .foreground, .enteringBackground, .background, .waking, .terminating, .ending:
            launchInBackgroundRequested(request, index, launch, now)
        }
    }

    private func hasProcessThatStays(_ index: AppIndex) -> Bool {
        apps[index].phase != .notRunning && !isEnding(index)
    }

    private func isEnding(_ index: AppIndex) -> Bool {
        switch apps[index].phase {
        case .terminating, .ending: true
        case .notRunning, .launching, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking:
            false
        }
    }

    // MARK: Background

    mutating func backgroundRequested(_ request: RequestID, _ index: AppIndex, _ now: Instant) {
        switch apps[index].phase {
        case .notRunning:
            guard apps[index].queuedLaunch != nil else { return answer(request, .refused(.notRunning)) }
            return wait(request, index, for: .background)
        case .terminating, .ending: return answer(request, .refused(.ending))
        case .launching, .enteringBackground, .waking:
            setPending(index, .background)
            supersede(index, .ended, by: .background)
        case .foreground: enterBackground(index, .requested, now)
        case .background, .suspending, .suspended: break
        }
        withdrawTermination(index)
        leaveForegroundSlot(index)
        sentAway(index)
        supersede(index, .foreground, by: .background)
        wait(request, index, for: .background)
    }

    // MARK: Interruptions (L13)

    private mutating func interruptRequested(_ request: RequestID, _ index: AppIndex, isTied: Bool, _ now: Instant) {
        guard apps[index].phase != .notRunning else { return answer(request, .refused(.notRunning)) }
        guard isInFront(index), !isEnding(index) else { return answer(request, .refused(.notInForeground)) }
        guard self[run: index].interruptions < Self.maximumInterruptions else {
            return answer(request, .refused(.tooMany("\(Self.maximumInterruptions) interruptions have not ended")))
        }
        self[run: index].interruptions += 1
        resignActive(index, .interrupted, now)
        answer(request, .done(apps[index].state))
        guard isTied else { return }
        self[run: index].tiedInterruptions.append(request)
        requests[request.number] = index
    }

    /// The requester of an interruption has disconnected.
    private mutating func endTiedInterruption(_ index: AppIndex, of request: RequestID, _ now: Instant) {
        guard apps[index].phase != .notRunning,
            let position = self[run: index].tiedInterruptions.firstIndex(of: request)
        else { return }
        self[run: index].tiedInterruptions.remove(at: position)
        self[run: index].interruptions -= 1
        becomeActiveIfUninterrupted(index, .interruptionEnded, now)
    }

    /// All interruptions of a run are over: it has left the foreground, or ended.
    mutating func dropInterruptions(_ index: AppIndex) {
        // There are no tied ones without it.
        guard storage(index).run.interruptions > 0 else { return }
        for request in storage(index).run.tiedInterruptions { requests[request.number] = nil }
        self[run: index].tiedInterruptions = []
        self[run: index].interruptions = 0
    }

    private mutating func endInterruptionRequested(_ request: RequestID, _ index: AppIndex, _ now: Instant) {
        guard apps[index].phase != .notRunning else { return answer(request, .refused(.notRunning)) }
        guard self[run: index].interruptions > 0, !isEnding(index) else {
            return answer(request, .refused(.notInterrupted))
        }
        self[run: index].interruptions -= 1
        // Those of clients that are connected end with them, so they are the last ones to end by another request.
        if self[run: index].tiedInterruptions.count > self[run: index].interruptions {
            let request = self[run: index].tiedInterruptions.removeFirst()
            requests[request.number] = nil
        }
        becomeActiveIfUninterrupted(index, .interruptionEnded, now)
        answer(request, .done(apps[index].state))
    }

    // MARK: Wakes

    /// For a push, or a launch for a reason that is not a user's.
    private mutating func wakeRequested(
        _ request: RequestID, _ index: AppIndex, _ launch: Launch, _ notification: Notification?, _ now: Instant
    ) {
        let outcome = wakeOrLaunch(index, launch, notification, now)
        if case .refused(let refusal) = outcome {
            withdrawURL(index, of: request)
            return answer(request, .refused(refusal))
        }
        effects.append(.identify(request, event: apps[index].wakes.lastNumber))
        switch outcome {
        case .awake: answer(request, .done(apps[index].state))
        case .coming: wait(request, index, for: .awake, afterEnd: isEnding(index))
        case .refused: break
        }
    }

    /// L30.
    private mutating func pushRequested(
        _ request: RequestID, _ index: AppIndex, _ payload: String, isUnrequested: Bool, _ now: Instant
    ) {
        guard apps[index].policy.backgroundModes.contains(.push) else {
            return answer(request, .refused(.modeNotDeclared("push")))
        }
        let launch = Launch(state: .background, reason: .push, isUnrequested: isUnrequested)
        wakeRequested(request, index, launch, Notification(pushed: payload), now)
    }

    // MARK: Ends

    private mutating func terminateRequested(_ request: RequestID, _ index: AppIndex, _ now: Instant) {
        switch apps[index].life {
        case .notRunning(let notRunning):
            guard notRunning.isToLaunch else { return answer(request, .refused(.notRunning)) }
            sentAway(index)
            cancelQueuedLaunch(index)
            apps[index].life = .notRunning(NotRunning())
            return answer(request, .done(.notRunning))
        case .running, .ending: self[run: index].isTerminationRequested = true
        }
        switch apps[index].phase {
        case .notRunning: break
        case .launching, .enteringBackground, .waking: setPending(index, .terminate)
        case .foreground, .background: terminate(index, .requested, now)
        case .suspending, .suspended:
            if isNotifiedOfEnd(index) {
                wake(index, pending: .terminate, for: nil, now)
            } else {
                kill(index, .terminatedWithoutNotice, .requested, now)
            }
        case .terminating, .ending: setNext(index, nil)
        }
        leaveForegroundSlot(index)
        sentAway(index)
        supersedeAll(index)
        waitForEnd(request, index)
    }

    /// L42.
    private mutating func removeRequested(_ request: RequestID, _ index: AppIndex, _ now: Instant) {
        sentAway(index)
        apps[index].isToRemove = apps[index].policy.isTransient
        effects.append(.dropRestorationState(apps[index].id, .everything))
        resetDeliveries(index)
        apps[index].urls = URLQueue()
        defer { dropScenes(index) }
        if apps[index].phase == .notRunning {
            cancelQueuedLaunch(index)
            apps[index].life = .notRunning(NotRunning())
            return answer(request, .done(.notRunning))
        }
        self[run: index].isTerminationRequested = true
        switch apps[index].phase {
        case .notRunning: break
        case .ending: setNext(index, nil)
        case .terminating:
            setNext(index, nil)
            kill(index, .removed, .requested, now)
        case .launching, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking:
            kill(index, .removed, .requested, now)
        }
        leaveForegroundSlot(index)
        supersedeAll(index)
        waitForEnd(request, index)
    }
}

extension Request {
    /// Whether it brings the app to the foreground.
    fileprivate var isForForeground: Bool {
        switch self {
        case .activate, .open, .launch(.foreground, reason: _, url: _, environment: _), .scene(_, .activate): true
        case .launch, .background, .interrupt, .interruptWhileConnected, .endInterruption, .terminate, .remove, .push,
            .send, .cancelTask, .scene(_, .background), .scene(_, .close):
            false
        }
    }

    /// Whether it ends the app. However many requests wait, it is carried out.
    fileprivate var endsApp: Bool {
        switch self {
        case .terminate, .remove: true
        case .launch, .activate, .background, .interrupt, .interruptWhileConnected, .endInterruption, .push, .send,
            .open, .cancelTask, .scene:
            false
        }
    }
}
