/// What people ask for, and the answers they wait for: each request has exactly one.
extension LifecycleCore {
    /// How many may wait for one app.
    static let maximumWaiters = 64
    /// How deep interruptions nest.
    static let maximumInterruptions = 1000

    mutating func requested(_ request: RequestID, _ id: AppID, _ what: Request, _ now: Instant) {
        guard let slot = slots[id] else { return answer(request, .refused(.unknownApp)) }
        guard shutdown == nil else { return answer(request, .refused(.shuttingDown)) }
        guard self[app: slot].waiters.count < Self.maximumWaiters else {
            return answer(request, .refused(.tooMany("\(Self.maximumWaiters) requests wait for it already")))
        }
        touch(slot)
        switch what {
        case .launch(let state, let reason, let url):
            launchRequested(request, slot, Launch(state: state, reason: reason, url: url), now)
        case .activate: activateRequested(request, slot, Launch(state: .foreground, reason: .user), now)
        case .background: backgroundRequested(request, slot, now)
        case .interrupt: interruptRequested(request, slot, now)
        case .resume: resumeRequested(request, slot, now)
        case .terminate: terminateRequested(request, slot, now)
        case .remove: removeRequested(request, slot, now)
        case .push(let payload): pushRequested(request, slot, payload, now)
        case .send(let notification): sendRequested(request, slot, notification, now)
        }
    }

    mutating func requestAbandoned(_ request: RequestID) {
        guard let slot = requests.removeValue(forKey: request) else { return }
        self[app: slot].waiters.removeAll { $0.request == request }
    }

    mutating func answer(_ request: RequestID, _ answer: Answer) {
        requests[request] = nil
        effects.append(.answer(request, answer))
    }

    mutating func wait(_ request: RequestID, _ slot: Int, for goal: Waiter.Goal, afterEnd: Bool = false) {
        self[app: slot].waiters.append(Waiter(request: request, goal: goal, isAfterEnd: afterEnd))
        requests[request] = slot
    }

    /// Those who wait for what will not come now, as something else was wished for since.
    mutating func supersede(_ slot: Int, _ goal: Waiter.Goal, by state: AppState) {
        answerAll(slot, .superseded(by: state)) { $0.goal == goal }
    }

    /// Now that the app is to end, nobody else has their wish.
    mutating func supersedeAll(_ slot: Int) {
        answerAll(slot, .superseded(by: .terminating)) { $0.goal != .ended }
    }

    mutating func answerAll(_ slot: Int, _ reply: Answer, where isMeant: (Waiter) -> Bool) {
        let waiters = self[app: slot].waiters
        guard waiters.contains(where: isMeant) else { return }
        self[app: slot].waiters.removeAll(where: isMeant)
        for waiter in waiters where isMeant(waiter) { answer(waiter.request, reply) }
    }

    /// Answers whoever waited for the state that has come about.
    mutating func answerWaiters(_ slot: Int) {
        guard !self[app: slot].waiters.isEmpty else { return }
        let phase = self[app: slot].phase
        switch phase {
        case .foreground: answerAll(slot, .done(phase.state)) { $0.goal == .foreground || $0.goal == .awake }
        case .running, .suspending, .suspended:
            answerAll(slot, .done(phase.state)) { $0.goal == .background || $0.goal == .awake }
        case .notRunning: answerAll(slot, .done(.notRunning)) { _ in true }
        case .launching, .entering, .waking, .terminating, .ending: break
        }
    }

    // MARK: What is to come after (L5)

    /// What was wished for in the middle of the transition that is under way.
    private func wish(_ slot: Int) -> PendingRequest? {
        switch self[app: slot].phase {
        case .launching(let launching): launching.wish
        case .entering(let entering): entering.wish
        case .waking(let waking): waking.wish
        case .notRunning, .foreground, .running, .suspending, .suspended, .terminating, .ending: nil
        }
    }

    /// The latest wish: it is carried out after the transition.
    mutating func setPendingRequest(_ slot: Int, _ wish: PendingRequest) {
        switch self[app: slot].phase {
        case .launching(var launching):
            launching.wish = wish
            self[app: slot].phase = .launching(launching)
        case .entering(var entering):
            entering.wish = wish
            self[app: slot].phase = .entering(entering)
        case .waking(var waking):
            waking.wish = wish
            self[app: slot].phase = .waking(waking)
        case .notRunning, .foreground, .running, .suspending, .suspended, .terminating, .ending:
            preconditionFailure("no transition to wait for in \(self[app: slot].phase)")
        }
    }

    /// The launch that follows the end which is under way; `nil`: none does, not even by itself.
    mutating func setNext(_ slot: Int, _ next: Launch?) {
        switch self[app: slot].phase {
        case .terminating(var terminating):
            terminating.next = next
            self[app: slot].phase = .terminating(terminating)
        case .ending(var ending):
            ending.next = next
            if next == nil { ending.relaunch = nil }
            self[app: slot].phase = .ending(ending)
        case .notRunning, .launching, .foreground, .entering, .running, .suspending, .suspended, .waking:
            preconditionFailure("no end to wait for in \(self[app: slot].phase)")
        }
    }

    // MARK: Launch and activate

    private mutating func launchRequested(_ request: RequestID, _ slot: Int, _ launch: Launch, _ now: Instant) {
        // A URL reaches a process that is launched with it, and no other (L8).
        if launch.url != nil, hasProcessThatStays(slot) { return answer(request, .refused(.running)) }
        switch launch.state {
        case .foreground: activateRequested(request, slot, launch, now)
        case .background:
            if launch.reason.wakes { return wakeRequested(request, slot, launch, nil, now) }
            switch self[app: slot].phase {
            case .notRunning:
                wait(request, slot, for: .background)
                launchAsAsked(slot, launch, now)
            case .launching, .entering, .waking:
                if wish(slot) == .terminate {
                    self[run: slot].isEndWanted = false
                    setPendingRequest(slot, .background)
                    supersede(slot, .ended, by: .background)
                }
                wait(request, slot, for: .awake)
            case .foreground, .running, .suspending, .suspended:
                answer(request, .done(self[app: slot].phase.state))
            case .terminating, .ending:
                setNext(slot, launch)
                leavePlace(slot)
                supersede(slot, .foreground, by: .background)
                wait(request, slot, for: .background, afterEnd: true)
            }
        }
    }

    private mutating func activateRequested(_ request: RequestID, _ slot: Int, _ launch: Launch, _ now: Instant) {
        if case .notRunning = self[app: slot].phase, let time = heldBack(slot, launch, now) {
            return answer(request, .refused(.launchPostponed(by: time)))
        }
        supersede(slot, .background, by: .active)
        self[app: slot].run?.isEndWanted = false
        switch self[app: slot].phase {
        case .notRunning:
            wait(request, slot, for: .foreground)
            launchAsAsked(slot, launch, now)
            return takePlaceAsAsked(slot, now)
        case .launching, .entering, .waking:
            setPendingRequest(slot, .foreground)
            supersede(slot, .ended, by: .active)
        case .foreground: continueIfStopped(slot)
        case .running:
            takePlaceAsAsked(slot, now)
            if !absence.isSleeping { enterForeground(slot, .requested, now) }
        case .suspending, .suspended: if !absence.isSleeping { wake(slot, wish: .foreground, for: nil, now) }
        case .terminating, .ending: setNext(slot, launch)
        }
        wait(request, slot, for: .foreground, afterEnd: isEnding(slot))
        takePlaceAsAsked(slot, now)
    }

    private func hasProcessThatStays(_ slot: Int) -> Bool { self[app: slot].run != nil && !isEnding(slot) }

    private func isEnding(_ slot: Int) -> Bool {
        switch self[app: slot].phase {
        case .terminating, .ending: true
        case .notRunning, .launching, .foreground, .entering, .running, .suspending, .suspended, .waking: false
        }
    }

    // MARK: Background

    private mutating func backgroundRequested(_ request: RequestID, _ slot: Int, _ now: Instant) {
        switch self[app: slot].phase {
        case .notRunning: return answer(request, .refused(.notRunning))
        case .terminating, .ending: return answer(request, .refused(.ending))
        case .launching, .entering, .waking:
            setPendingRequest(slot, .background)
            supersede(slot, .ended, by: .background)
        case .foreground: enterBackground(slot, .requested, now)
        case .running, .suspending, .suspended: break
        }
        self[run: slot].isEndWanted = false
        leavePlace(slot)
        supersede(slot, .foreground, by: .background)
        wait(request, slot, for: .background)
    }

    // MARK: Interruptions (L13)

    private mutating func interruptRequested(_ request: RequestID, _ slot: Int, _ now: Instant) {
        guard self[app: slot].run != nil else { return answer(request, .refused(.notRunning)) }
        guard isInFront(slot), !isEnding(slot) else { return answer(request, .refused(.notInForeground)) }
        guard self[run: slot].interruptions < Self.maximumInterruptions else {
            return answer(request, .refused(.tooMany("\(Self.maximumInterruptions) interruptions have not ended")))
        }
        self[run: slot].interruptions += 1
        if case .foreground(var foreground) = self[app: slot].phase, foreground.isActive {
            foreground.isActive = false
            effects.append(.notify(self[run: slot].id, .willResignActive))
            move(slot, to: .foreground(foreground), .interrupted, now)
        }
        answer(request, .done(self[app: slot].phase.state))
    }

    private mutating func resumeRequested(_ request: RequestID, _ slot: Int, _ now: Instant) {
        guard self[app: slot].run != nil else { return answer(request, .refused(.notRunning)) }
        guard self[run: slot].interruptions > 0, !isEnding(slot) else {
            return answer(request, .refused(.notInterrupted))
        }
        self[run: slot].interruptions -= 1
        becomeActiveIfUninterrupted(slot, .interruptionEnded, now)
        answer(request, .done(self[app: slot].phase.state))
    }

    // MARK: Ends

    private mutating func terminateRequested(_ request: RequestID, _ slot: Int, _ now: Instant) {
        self[app: slot].run?.isEndWanted = true
        switch self[app: slot].phase {
        case .notRunning(let notRunning):
            guard notRunning.relaunch != nil else { return answer(request, .refused(.notRunning)) }
            self[app: slot].phase = .notRunning(NotRunning())
            return answer(request, .done(.notRunning))
        case .launching, .entering, .waking: setPendingRequest(slot, .terminate)
        case .foreground, .running: terminate(slot, .requested, now)
        case .suspending, .suspended: kill(slot, .terminatedWithoutNotice, .requested, now)
        case .terminating, .ending: setNext(slot, nil)
        }
        leavePlace(slot)
        supersedeAll(slot)
        wait(request, slot, for: .ended)
    }

    /// L42.
    private mutating func removeRequested(_ request: RequestID, _ slot: Int, _ now: Instant) {
        effects.append(.dropRestorationState(self[app: slot].id))
        self[app: slot].notifications.reset()
        self[app: slot].run?.isEndWanted = true
        switch self[app: slot].phase {
        case .notRunning:
            self[app: slot].phase = .notRunning(NotRunning())
            return answer(request, .done(.notRunning))
        case .ending: setNext(slot, nil)
        case .terminating:
            setNext(slot, nil)
            kill(slot, .removed, .requested, now)
        case .launching, .foreground, .entering, .running, .suspending, .suspended, .waking:
            kill(slot, .removed, .requested, now)
        }
        leavePlace(slot)
        supersedeAll(slot)
        wait(request, slot, for: .ended)
    }
}
