import LifecycleCore

/// Simulates sleep and the lock screen (L15).
extension World {
    mutating func changeAbsence() {
        if isQuiet { return }
        queue.push(.absence, at: now + absenceRandom.within(20 * .millisecond...3 * scenario.pace))
        if absenceRandom.chance(500) {
            if isLocked { unlock() } else if injects(.locks) { lock() }
        } else if sleep == nil, injects(.sleeps) {
            fallAsleep()
        }
    }

    private mutating func lock() {
        isLocked = true
        deliver(.absence(.locked), after: 0)
    }

    mutating func unlock() {
        isLocked = false
        deliver(.absence(.unlocked), after: 0)
    }

    /// Requests sleep. logind waits for 5s and then sleeps in any case (InhibitDelayMaxSec=), or the machine fails to
    /// sleep and logind reports that it is awake.
    private mutating func fallAsleep() {
        sleeps += 1
        sleep = sleeps
        deliver(.absence(.sleepRequested), after: 0)
        queue.push(.wakeUp(sleeps), at: now + absenceRandom.within(0...8 * .second))
    }

    mutating func awake(from number: Int) {
        guard sleep == number else { return }
        sleep = nil
        deliver(.absence(.awoke), after: 0)
    }

    /// Ends the sleep soon. No time passes while the machine sleeps (L48).
    mutating func performSleep() -> String? {
        // The machine may be awake again: then the effect comes too late and does nothing.
        guard let sleep else { return nil }
        queue.push(.wakeUp(sleep), at: now + absenceRandom.within(1 * .millisecond...200 * .millisecond))
        return nil
    }
}
