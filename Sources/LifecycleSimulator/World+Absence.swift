import LifecycleCore

/// Sleep and the screen's lock (L15).
extension World {
    mutating func comeAndGo() {
        if isQuiet { return }
        queue.push(.absence, at: now + absenceRandom.within(20 * .millisecond...3 * scenario.pace))
        if absenceRandom.chance(500) {
            if isLocked { unlock() } else if strikes(.locks) { lock() }
        } else if sleep == nil, strikes(.sleeps) {
            fallAsleep()
        }
    }

    private mutating func lock() {
        isLocked = true
        deliver(.locked, after: 0)
    }

    mutating func unlock() {
        isLocked = false
        deliver(.unlocked, after: 0)
    }

    /// logind waits for 5 s and then sleeps all the same (InhibitDelayMaxSec=); or it fails to, and says that it is awake.
    private mutating func fallAsleep() {
        sleeps += 1
        sleep = sleeps
        deliver(.sleepRequested, after: 0)
        queue.push(.awaking(sleeps), at: now + absenceRandom.within(0...8 * .second))
    }

    mutating func awake(from number: Int) {
        guard sleep == number else { return }
        sleep = nil
        deliver(.awoke, after: 0)
    }

    /// No time passes while the machine sleeps (L48).
    mutating func performSleep() -> String? {
        // It may have been told meanwhile that the machine is awake; then nobody waits for this.
        guard let sleep else { return nil }
        queue.push(.awaking(sleep), at: now + absenceRandom.within(1 * .millisecond...200 * .millisecond))
        return nil
    }
}
