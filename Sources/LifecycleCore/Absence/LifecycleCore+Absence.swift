/// Whether the user is away: the machine sleeps, or the screen is locked (L15).
struct Absence: Hashable, Sendable {
    var isLocked = false
    var isSleeping = false
    /// `allowSleep` was sent for this sleep.
    var isSleepAllowed = false

    var isAway: Bool { isLocked || isSleeping }
}

/// L15: before the machine sleeps, and when the screen is locked, every foreground app enters the background. It keeps its
/// foreground slot, deferred, and returns when the user does, unless a later request moved it.
extension LifecycleCore {
    mutating func sleepRequested(_ now: Instant) {
        // A second request (first sleep, then power-off) has an answer of its own.
        absence.isSleepAllowed = false
        if absence.isSleeping { return }
        if !absence.isAway { protectedDataChanges(isAvailable: false, now) }
        absence.isSleeping = true
        deferForeground(.sleep, now)
    }

    mutating func awoke(_ now: Instant) {
        guard absence.isSleeping else { return }
        absence.isSleeping = false
        returnToForeground(.awoke, now)
    }

    mutating func locked(_ now: Instant) {
        guard !absence.isLocked else { return }
        if !absence.isAway { protectedDataChanges(isAvailable: false, now) }
        absence.isLocked = true
        deferForeground(.locked, now)
    }

    mutating func unlocked(_ now: Instant) {
        guard absence.isLocked else { return }
        absence.isLocked = false
        returnToForeground(.unlocked, now)
    }

    package var isLocked: Bool { absence.isLocked }
    /// Whether the screen is locked, and no app is visible any more: each has entered the background, or is being ended.
    package var isLockSettled: Bool { absence.isLocked && visibleCount == 0 }

    /// An app that is launching does not hold up sleep: it has nothing to save yet, and is deferred once it is ready.
    mutating func allowSleepIfDone() {
        guard absence.isSleeping, !absence.isSleepAllowed, visibleCount == 0 else { return }
        absence.isSleepAllowed = true
        effects.append(.allowSleep)
    }

    /// Whether an app on its way to the foreground gets there now. It has its slot in any case.
    mutating func mayEnterForeground(_ index: AppIndex, _ now: Instant) -> Bool {
        if !hasForegroundSlot(index) { takeForegroundSlot(index, now) }
        return !isDeferred(index)
    }

    private mutating func deferForeground(_ reason: StateReason, _ now: Instant) {
        for slot in foregroundSlots {
            touch(slot.app)
            setDeferred(slot.app, true)
            // Apps on their way there are stopped by `mayEnterForeground`.
            if apps[slot.app].phase == .foreground { enterBackground(slot.app, reason, now) }
        }
    }

    private mutating func returnToForeground(_ reason: StateReason, _ now: Instant) {
        guard !absence.isAway else { return }
        protectedDataChanges(isAvailable: true, now)
        guard shutdown == nil else { return }
        for slot in foregroundSlots where isDeferred(slot.app) {
            touch(slot.app)
            setDeferred(slot.app, false)
            switch apps[slot.app].phase {
            case .background: enterForeground(slot.app, reason, now)
            case .suspending, .suspended: wake(slot.app, pending: .foreground, for: nil, now)
            case .launching, .enteringBackground, .waking: setPending(slot.app, .foreground)
            case .foreground, .terminating, .ending, .notRunning: break
            }
        }
        continueRelaunches(now)
    }

    /// A relaunch into the foreground needs no background time any more (L53).
    private mutating func continueRelaunches(_ now: Instant) {
        for index in apps.indices {
            guard case .notRunning(let notRunning) = apps[index].life, let relaunch = notRunning.relaunch,
                relaunch.state == .foreground
            else { continue }
            let at = max(now, earliestRelaunch(index) ?? now)
            guard at < relaunch.at else { continue }
            touch(index)
            apps[index].life = .notRunning(NotRunning(relaunch: .init(at: at, state: .foreground)))
            report(.relaunchScheduled(apps[index].id, after: at - now, deaths: apps[index].earlyEnds))
        }
    }

    // MARK: Protected data

    /// Before the apps leave the foreground, so that they can still save what they have.
    private mutating func protectedDataChanges(isAvailable: Bool, _ now: Instant) {
        let notification = Notification(protectedDataIsAvailable: isAvailable)
        for index in apps.indices where apps[index].policy.usesProtectedData && !apps[index].isRemoved {
            switch apps[index].phase {
            case .notRunning, .terminating, .ending: break
            case .launching, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking:
                touch(index)
                notify(index, notification)
            }
        }
    }

    /// A new process takes its data to be available, unless it is notified otherwise.
    mutating func assumeProtectedData(_ index: AppIndex) {
        guard apps[index].policy.usesProtectedData else { return }
        apps[index].notifications.assume(Notification(protectedDataIsAvailable: true))
        if absence.isAway { file(index, Notification(protectedDataIsAvailable: false)) }
    }
}
