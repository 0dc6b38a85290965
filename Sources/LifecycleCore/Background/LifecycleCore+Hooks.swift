/// Hooks (L57). A hook never decides about the life of an app: one that fails or hangs is logged, and the app continues.
extension LifecycleCore {
    /// How long a hook may run if `BackgroundDeadlineSec=` is infinite: no hook keeps an app awake for ever.
    static let longestHook = Duration.seconds(60)

    /// From the end of `ExecBeforeSuspend=` to the freeze. A server has to see the end of the connection over which the hook has
    /// spoken to it: frozen before, it would be woken for it at once.
    static let settleTime = Duration.milliseconds(100)

    /// Runs a hook if the manifest has it: at once, or after the one that runs.
    mutating func addHook(_ index: AppIndex, _ hook: Hook, _ now: Instant) {
        // The app may have been sent to the foreground and the background several times meanwhile: only the last one counts.
        if hook.kind.isOfTransition { self[run: index].hooks?.waiting.removeAll { $0.kind.isOfTransition } }
        guard apps[index].policy.hooks.contains(hook.kind), shutdown == nil else { return }
        var hooks = self[run: index].hooks ?? Hooks()
        // What was shut before the sleep is opened before anything else.
        hooks.waiting.insert(hook, at: hook.kind == .afterResume ? 0 : hooks.waiting.count)
        self[run: index].hooks = hooks
        startNextHook(index, now)
    }

    private mutating func startNextHook(_ index: AppIndex, _ now: Instant) {
        guard var hooks = self[run: index].hooks, hooks.running == nil, !hooks.waiting.isEmpty else { return }
        // The manifest may be another one now.
        let kinds = apps[index].policy.hooks
        hooks.waiting.removeAll { !kinds.contains($0.kind) }
        self[run: index].hooks?.waiting = hooks.waiting
        guard !hooks.waiting.isEmpty else { return }
        let hook = hooks.waiting.removeFirst()
        let time = apps[index].policy.backgroundDeadline ?? Self.longestHook
        hooks.number += 1
        hooks.running = Hooks.Running(hook: hook, began: now, due: now + time)
        self[run: index].hooks = hooks
        if case .background(var background)? = apps[index].execution, hooks.holdAwake {
            background.idleSince = nil
            update(index, .background(background))
        }
        effects.append(.run(self[run: index].id, .hook(.run(hook, number: hooks.number))))
    }

    // MARK: The end of a hook

    mutating func hookEnded(_ index: AppIndex, _ number: Int, _ outcome: HookOutcome, _ now: Instant) {
        guard let hooks = self[run: index].hooks, let running = hooks.running, number == hooks.number else { return }
        let mayRefuse = running.hook.kind == .beforeSuspend && !hooks.hasRefused
        if outcome.isFailure, outcome != .refusal || !mayRefuse {
            report(.hookFailed(apps[index].id, running.hook.kind, outcome))
        }
        hookIsOver(index, isRefusal: outcome == .refusal && mayRefuse, now)
    }

    /// Its time is over. Only the hook is killed: the app has done nothing wrong.
    mutating func hookIsDue(_ index: AppIndex, _ now: Instant) {
        guard let hooks = self[run: index].hooks, let running = hooks.running else { return }
        effects.append(.run(self[run: index].id, .hook(.kill(number: hooks.number))))
        report(.hookKilled(apps[index].id, running.hook.kind, after: now - running.began))
        hookIsOver(index, isRefusal: false, now)
    }

    private mutating func hookIsOver(_ index: AppIndex, isRefusal: Bool, _ now: Instant) {
        let ended = self[run: index].hooks?.running
        self[run: index].hooks?.running = nil
        if let ended, ended.hook.kind == .beforeSuspend {
            beforeSuspendIsOver(index, began: ended.began, isRefusal: isRefusal, now)
        }
        startNextHook(index, now)
        guard self[run: index].hooks?.running == nil else { return }
        switch apps[index].execution {
        case .enteringBackground(let entering)?: if entering.isAnswered { answeredBackground(index, now) }
        case .background?: assertionEnded(index, now)
        case nil, .launching?, .foreground?, .suspending?, .suspended?, .waking?, .terminating?: break
        }
    }

    /// Whether a transition waits for a hook. The others wait behind it.
    func hookRuns(_ index: AppIndex) -> Bool { storage(index).run.hooks?.running != nil }

    // MARK: Sleep

    /// The app has nothing to do, and is to be frozen.
    /// - Returns: whether a hook runs before.
    mutating func runsHookBeforeSuspension(_ index: AppIndex, _ now: Instant) -> Bool {
        if hookRuns(index) { return true }
        if self[run: index].hooks?.freezeAt != nil { self[run: index].hooks?.freezeAt = nil }
        let kinds = apps[index].policy.hooks
        guard !kinds.isDisjoint(with: [HookKinds(.beforeSuspend), HookKinds(.afterResume)]), shutdown == nil else {
            return false
        }
        var hooks = self[run: index].hooks ?? Hooks()
        // A timer had woken it for a moment, or it is tried again because of file locks.
        if hooks.asleepSince != nil { return false }
        if kinds.contains(.beforeSuspend) {
            addHook(index, Hook(.beforeSuspend, entering: .suspended, .idle), now)
            return true
        }
        hooks.asleepSince = now
        self[run: index].hooks = hooks
        return false
    }

    private mutating func beforeSuspendIsOver(_ index: AppIndex, began: Instant, isRefusal: Bool, _ now: Instant) {
        guard case .background(var background)? = apps[index].execution, let idleSince = background.idleSince,
            !isHeldAwake(index), shutdown == nil
        else {
            // Something has arrived meanwhile. What the hook has shut is opened again.
            if !isRefusal { self[run: index].hooks?.asleepSince = now }
            return endSleepOfHooks(index, .woken, now)
        }
        // A task or a wake began and ended meanwhile. Once: it may be the hook's own.
        if idleSince > began, !(self[run: index].hooks?.hasRefused ?? false) {
            self[run: index].hooks?.hasRefused = true
            if !isRefusal { self[run: index].hooks?.asleepSince = now }
            return endSleepOfHooks(index, .woken, now)
        }
        if isRefusal {
            self[run: index].hooks?.hasRefused = true
            report(.suspensionRefused(apps[index].id))
            background.idleSince = now
            // A new look: what the hook has done is not what the app does.
            background.look = nil
            return update(index, .background(background))
        }
        self[run: index].hooks?.hasRefused = false
        self[run: index].hooks?.asleepSince = now
        self[run: index].hooks?.freezeAt = now + Self.settleTime
    }

    /// The app is thawed. A timer, a second attempt because of file locks and a peer that waits for space do not end the sleep.
    mutating func recordResumeReason(_ index: AppIndex, _ stated: StateReason?, _ cause: StateReason) {
        guard self[run: index].hooks?.asleepSince != nil else { return }
        let endsSleep = stated != .timer && stated != .idle
        self[run: index].hooks?.resumeReason = endsSleep ? stated ?? cause : nil
    }

    /// This thaw does not end the sleep.
    mutating func keepHooksAsleep(_ index: AppIndex) {
        if self[run: index].hooks != nil { self[run: index].hooks?.resumeReason = nil }
    }

    /// The thaw is complete, and the app is not in the foreground or about to end.
    mutating func thawedForHooks(_ index: AppIndex, _ now: Instant) {
        guard let hooks = self[run: index].hooks else { return }
        self[run: index].hooks?.resumeReason = nil
        guard let reason = hooks.resumeReason ?? (isHeldAwake(index) ? .woken : nil) else { return }
        endSleepOfHooks(index, reason, now)
    }

    /// The app works again, or is about to.
    mutating func endSleepOfHooks(_ index: AppIndex, _ reason: StateReason, _ now: Instant) {
        guard let since = self[run: index].hooks?.asleepSince else { return }
        self[run: index].hooks?.asleepSince = nil
        self[run: index].hooks?.freezeAt = nil
        self[run: index].hooks?.resumeReason = nil
        let state: AppState = apps[index].state.isForeground ? .inactive : .background
        addHook(index, Hook(.afterResume, entering: state, reason, slept: now - since), now)
    }
}

extension HookKind {
    /// Whether it belongs to a transition to the foreground or the background.
    fileprivate var isOfTransition: Bool {
        switch self {
        case .enterBackground, .enterForeground: true
        case .beforeSuspend, .afterResume: false
        }
    }
}

extension AppState {
    fileprivate var isForeground: Bool {
        switch self {
        case .inactive, .active: true
        case .notRunning, .launching, .background, .suspended, .terminating: false
        }
    }
}
