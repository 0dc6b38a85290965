/// Input wakes suspended apps (L50).
extension LifecycleCore {
    /// An app that is woken this soon after it was suspended was suspended too early.
    static let quickWake = Duration.seconds(1)
    /// So many quick wakes in a row are tolerated. After the next ones the app stays awake, for twice as long each time.
    static let toleratedQuickWakes = 2
    static let shortestStay = Duration.seconds(2)
    static let longestStay = Duration.seconds(300)
    /// The ends of connections that arrive at many apps at once wake one app after the other, the last ones after `longestEndDelay`.
    static let endSpacing = Duration.milliseconds(33)
    static let longestEndDelay = Duration.seconds(10)
    /// When an app that could not be watched for lack of descriptors may be suspended again.
    static let watchRetry = Duration.seconds(60)

    // MARK: The watch

    /// The whole group is frozen: from now on its descriptors tell what arrives for it.
    mutating func beginWatch(_ index: AppIndex) {
        guard case .suspended(var suspended)? = apps[index].execution else { return }
        suspended.isWatching = true
        update(index, .suspended(suspended))
        effects.append(
            .run(
                self[run: index].id,
                .traffic(
                    .watchInput(attempt: self[run: index].freezeAttempt, onlyPeers: !apps[index].policy.wakesOnTraffic))
            ))
    }

    /// Comes before the thaw and before SIGKILL: the daemon must not hold descriptors of processes that run or end.
    mutating func endWatch(_ index: AppIndex) {
        endReclaim(index)
        guard case .suspended(var suspended)? = apps[index].execution, suspended.isWatching else { return }
        suspended.isWatching = false
        update(index, .suspended(suspended))
        effects.append(.run(self[run: index].id, .traffic(.stopWatchingInput)))
    }

    /// The manifest was read again: `Traffic=` may be another.
    mutating func renewWatch(_ index: AppIndex, _ before: AppPolicy, _ now: Instant) {
        let policy = apps[index].policy
        guard before.wakesOnTraffic != policy.wakesOnTraffic || before.wakeThreshold != policy.wakeThreshold else {
            return
        }
        if !policy.wakesOnTraffic { watchAgain(index, now) }
        guard case .suspended(var suspended)? = apps[index].execution else { return }
        (suspended.input, suspended.inputDue, suspended.watch) = (nil, nil, nil)
        // The watch finds all input again; a request was read already.
        if suspended.deferred?.input != nil { suspended.deferred = nil }
        update(index, .suspended(suspended))
        endWatch(index)
        beginWatch(index)
    }

    /// It may be possible now to watch an app that was left awake.
    mutating func watchAgain(_ index: AppIndex, _ now: Instant) {
        guard self[run: index].traffic.isUnwatchable else { return }
        self[run: index].traffic.isUnwatchable = false
        self[run: index].traffic.unwatchableSince = nil
        self[run: index].traffic.watchAgainAt = nil
        assertionEnded(index, now)
    }

    mutating func inputWatched(_ index: AppIndex, _ attempt: Int, _ watch: InputWatch, _ now: Instant) {
        guard case .suspended(var suspended)? = apps[index].execution, attempt == self[run: index].freezeAttempt,
            suspended.isWatching
        else { return }
        suspended.watch = watch
        update(index, .suspended(suspended))
        warnIfOnlyRequestsWake(index)
        guard apps[index].policy.wakesOnTraffic else { return }
        if watch.unwatched != self[run: index].traffic.unwatched {
            self[run: index].traffic.unwatched = watch.unwatched
            if !watch.unwatched.isEmpty { report(.inputNotWatched(apps[index].id, watch)) }
        }
        guard watch.isBlind, shutdown == nil else { return }
        // Suspended, it would be out of reach for its clients.
        self[run: index].traffic.isUnwatchable = true
        self[run: index].traffic.unwatchableSince = now
        if watch.isTransient { self[run: index].traffic.watchAgainAt = now + Self.watchRetry }
        wake(index, pending: nil, for: nil, because: .woken, now)
    }

    // MARK: Workers that nothing wakes

    /// Whether nothing but a request wakes a suspended worker: it waits for what no other program and no timer causes, such as a
    /// signal. While that is not known, something does.
    func onlyRequestsWake(_ index: AppIndex, _ suspended: Suspended) -> Bool {
        let policy = apps[index].policy
        guard policy.role == .worker, !policy.expectsRequests, suspended.look == nil, let watch = suspended.watch else {
            return false
        }
        let hasTimers = suspended.timerDue != nil || suspended.pulseDue != nil || suspended.hasSignalTimers
        if policy.keepsTimers, hasTimers { return false }
        return !policy.wakesOnTraffic || watch.silent == watch.watched && !watch.isBlind
    }

    /// Once in a run, when all is known of a suspended worker.
    mutating func warnIfOnlyRequestsWake(_ index: AppIndex) {
        guard case .suspended(let suspended)? = apps[index].execution, onlyRequestsWake(index, suspended),
            !self[run: index].traffic.hadNoWaker, shutdown == nil
        else { return }
        self[run: index].traffic.hadNoWaker = true
        effects.append(.run(self[run: index].id, .warn(.onlyRequestsWake)))
    }

    // MARK: Input

    mutating func inputArrived(_ index: AppIndex, _ attempt: Int, _ input: Input, _ now: Instant) {
        guard case .suspended(var suspended)? = apps[index].execution, attempt == self[run: index].freezeAttempt,
            shutdown == nil
        else { return }
        if isEnough(index, input) { return wake(index, by: input, now) }
        guard apps[index].policy.wakesOnTraffic else { return }
        if input.isEnd { return endArrived(index, suspended, input, now) }
        // What comes from outside is not limited, so it does not wait behind what the app has sent to itself.
        if let waiting = suspended.input, waiting.isFromOutside || !input.isFromOutside { return }
        suspended.input = input
        suspended.inputDue = suspended.inputDue ?? apps[index].policy.wakeThreshold.time.map { now + $0 }
        update(index, .suspended(suspended))
    }

    /// The end of a connection wakes the app at once, or after the ends that have woken other apps: the restart of one database ends the
    /// connections of hundreds.
    private mutating func endArrived(_ index: AppIndex, _ suspended: Suspended, _ input: Input, _ now: Instant) {
        var suspended = suspended
        // It is woken for another end.
        if suspended.input?.isEnd ?? false, suspended.inputDue != nil { return }
        let next = lastEndWake.map { max(now, $0 + Self.endSpacing) } ?? now
        let due = min(next, now + Self.longestEndDelay)
        lastEndWake = due
        if due <= now { return wake(index, by: input, now) }
        suspended.input = input
        suspended.inputDue = min(suspended.inputDue ?? due, due)
        update(index, .suspended(suspended))
    }

    /// Whether input wakes the app at once.
    private func isEnough(_ index: AppIndex, _ input: Input) -> Bool {
        // What an app has sent to itself keeps no other program waiting.
        if input.isHalfFull, input.isFromOutside { return true }
        guard apps[index].policy.wakesOnTraffic else { return false }
        // No more follows after these bytes. An end alone need not be read soon, unless a client waits for the end of the command.
        if input.isEnd { return input.bytes > 0 || apps[index].policy.isAttached }
        switch input.kind {
        // Of datagrams the kernel says the size of the first one only.
        case .listener, .timer, .event, .epoll, .datagram: return true
        // Without bytes there is space for output that the app waits to write.
        case .stream, .pipe, .terminal:
            return input.bytes == 0 || input.bytes >= apps[index].policy.wakeThreshold.bytes
        }
    }

    /// Input has waited for its time.
    mutating func inputIsDue(_ index: AppIndex, _ now: Instant) {
        guard case .suspended(var suspended)? = apps[index].execution else { return }
        var inputs: [Input] = []
        var hasRequest = false
        if let due = suspended.inputDue, due <= now {
            suspended.inputDue = nil
            if let input = suspended.input { inputs.append(input) }
        }
        if let deferred = suspended.deferred, deferred.due <= now {
            suspended.deferred = nil
            if let input = deferred.input { inputs.append(input) } else { hasRequest = true }
        }
        update(index, .suspended(suspended))
        for input in inputs where shutdown == nil && apps[index].phase == .suspended { wake(index, by: input, now) }
        if hasRequest, shutdown == nil, apps[index].phase == .suspended {
            wake(index, pending: nil, for: nil, isUnrequested: true, because: .woken, now)
        }
    }

    /// `isHeld`: at a socket that the daemon holds, which wakes the app whatever `Traffic=` says (L29).
    mutating func wake(_ index: AppIndex, by input: Input, isHeld: Bool = false, _ now: Instant) {
        let wakesOnTraffic = isHeld || apps[index].policy.wakesOnTraffic
        // What the app does for itself, and what it does only so that a peer is not blocked.
        let isOwnTimer = input.kind == .timer && apps[index].policy.role == .worker && wakesOnTraffic
        let isUnrequested = !isOwnTimer && (!input.isFromOutside || !wakesOnTraffic)
        if isUnrequested, deferWithoutTime(index, input, now) { return }
        let suspendedFor = now - apps[index].since
        let quickWakes = self[run: index].traffic.quickWakes
        let reason: LaunchReason? = wakesOnTraffic && apps[index].policy.role != .worker ? input.reason : nil
        if let reason {
            let id = apps[index].wakes.nextNumber()
            apps[index].wakes.add(PendingWake(reason: reason, id: id, isUnrequested: isUnrequested))
        }
        wake(index, pending: nil, for: reason, isUnrequested: isUnrequested, because: isOwnTimer ? .timer : .woken, now)
        // A peer that waits for space is no work for it.
        if !wakesOnTraffic { keepHooksAsleep(index) }
        report(.inputArrived(apps[index].id, input))
        self[run: index].traffic.quickWakes = quickWakes
        if isOwnTimer { self[run: index].traffic.momentSince = now }
        // What only drains a peer's buffer is limited by L53.
        countWake(index, input, isQuick: suspendedFor < Self.quickWake && wakesOnTraffic, now)
    }

    /// Defers a wake that no user asked for if the app has no background time left (L53). Of several one is shown.
    /// - Returns: whether it is deferred.
    private mutating func deferWithoutTime(_ index: AppIndex, _ input: Input, _ now: Instant) -> Bool {
        guard let available = unrequestedTimeAvailable(index, now) else { return false }
        guard case .suspended(var suspended)? = apps[index].execution else { return true }
        suspended.deferred = DeferredInput(input: input, due: available)
        update(index, .suspended(suspended))
        return true
    }

    private mutating func countWake(_ index: AppIndex, _ input: Input, isQuick: Bool, _ now: Instant) {
        var traffic = self[run: index].traffic
        traffic.wakes = min(traffic.wakes + 1, Traffic.maximumWakes)
        traffic.lastInput = input
        traffic.lastInputAt = now
        traffic.quickWakes = isQuick ? min(traffic.quickWakes + 1, Traffic.maximumQuickWakes) : 0
        traffic.awakeUntil = nil
        let excess = traffic.quickWakes - Self.toleratedQuickWakes
        if excess > 0 {
            let stay = min(Self.longestStay, Self.shortestStay * (1 << (excess - 1)))
            traffic.awakeUntil = now + stay
            report(.wokenTooOften(apps[index].id, staysAwake: stay))
        }
        self[run: index].traffic = traffic
    }
}

extension Traffic {
    static let maximumWakes = 1 << 50
    /// With so many the stay is the longest.
    static let maximumQuickWakes = 16
}

extension Input {
    fileprivate var reason: LaunchReason { kind.isFromOutside ? .socket : .timer }
}
