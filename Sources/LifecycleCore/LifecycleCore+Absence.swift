/// Who looks at the foreground? Nobody while the machine sleeps, or the screen is locked (L15).
struct Absence: Hashable, Sendable {
    var isLocked = false
    var isSleeping = false
    /// `allowSleep` was said for this sleep.
    var isSleepAllowed = false

    var isAway: Bool { isLocked || isSleeping }
}

/// L15: before the machine sleeps, and when the screen is locked, every app in the foreground goes to the background. It
/// keeps its place there, held back, and takes it again when the user returns; unless somebody wanted something else
/// meanwhile, which counts as always.
extension LifecycleCore {
    mutating func sleepRequested(_ now: Instant) {
        // Asked once more (first to sleep, then to be switched off), it is answered once more.
        absence.isSleepAllowed = false
        if absence.isSleeping { return }
        if !absence.isAway { protectedDataChanges(isAvailable: false, now) }
        absence.isSleeping = true
        holdBack(.sleep, now)
    }

    mutating func awoke(_ now: Instant) {
        guard absence.isSleeping else { return }
        absence.isSleeping = false
        comeBack(.awoke, now)
    }

    mutating func locked(_ now: Instant) {
        guard !absence.isLocked else { return }
        if !absence.isAway { protectedDataChanges(isAvailable: false, now) }
        absence.isLocked = true
        holdBack(.locked, now)
    }

    mutating func unlocked(_ now: Instant) {
        guard absence.isLocked else { return }
        absence.isLocked = false
        comeBack(.unlocked, now)
    }

    /// Nobody is waited for that only just launches: it has nothing to put away yet, and is held back once it is ready.
    mutating func allowSleepIfDone() {
        guard absence.isSleeping, !absence.isSleepAllowed, visibleCount == 0 else { return }
        absence.isSleepAllowed = true
        effects.append(.allowSleep)
    }

    /// Whether an app that is on its way to the foreground gets there now. It has its place in any case.
    mutating func mayEnterForeground(_ slot: Int, _ now: Instant) -> Bool {
        if !hasPlace(slot) { takePlace(slot, now) }
        return !self[app: slot].isHeldBack
    }

    private mutating func holdBack(_ reason: StateReason, _ now: Instant) {
        for slot in foregroundPlaces {
            touch(slot)
            self[app: slot].isHeldBack = true
            // Those on their way are stopped at the door (`mayEnterForeground`).
            if case .foreground = self[app: slot].phase { enterBackground(slot, reason, now) }
        }
    }

    private mutating func comeBack(_ reason: StateReason, _ now: Instant) {
        guard !absence.isAway else { return }
        protectedDataChanges(isAvailable: true, now)
        guard shutdown == nil else { return }
        for slot in foregroundPlaces where self[app: slot].isHeldBack {
            touch(slot)
            self[app: slot].isHeldBack = false
            switch self[app: slot].phase {
            case .running: enterForeground(slot, reason, now)
            case .suspending, .suspended: wake(slot, wish: .foreground, for: nil, now)
            case .launching, .entering, .waking: setPendingRequest(slot, .foreground)
            case .foreground, .terminating, .ending, .notRunning: break
            }
        }
    }

    // MARK: Protected data

    static let protectedDataKind = "protectedData"

    private static func protectedData(isAvailable: Bool) -> Notification {
        guard let news = Notification(kind: protectedDataKind, payload: isAvailable ? "available" : "unavailable")
        else { preconditionFailure("“\(protectedDataKind)” is a kind of L33") }
        return news
    }

    /// Before the apps are told to leave the foreground, so that they can put away what they still can.
    private mutating func protectedDataChanges(isAvailable: Bool, _ now: Instant) {
        let news = Self.protectedData(isAvailable: isAvailable)
        for slot in apps.indices where apps[slot].policy.usesProtectedData && !apps[slot].isForgotten {
            switch self[app: slot].phase {
            case .notRunning, .terminating, .ending: break
            case .launching, .foreground, .entering, .running, .suspending, .suspended, .waking:
                touch(slot)
                notify(slot, news)
            }
        }
    }

    /// A new process takes its data to be there, unless it is told otherwise.
    mutating func tellProtectedData(_ slot: Int) {
        guard self[app: slot].policy.usesProtectedData else { return }
        self[app: slot].notifications.assume(Self.protectedData(isAvailable: true))
        if absence.isAway { file(slot, Self.protectedData(isAvailable: false)) }
    }
}
