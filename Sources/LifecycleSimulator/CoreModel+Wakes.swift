import LifecycleCore

/// A wake that a request asked for.
struct ModelWake {
    var reason: LaunchReason
    /// It came from outside every app, for something that is not the app's own work.
    var isForOthers: Bool
    /// The number of a push; 0: it is none.
    var id: UInt64 = 0
    /// It may have been completed while there was no daemon.
    var isDoubtful = false
}

/// The wakes of an app that have not ended, derived from requests and from what the app says.
struct ModelWakes {
    /// Open, or to begin when the launch or the thaw is complete. Oldest first.
    private(set) var list: [ModelWake] = []
    /// For the process that follows the end which is under way.
    private var afterEnd: [ModelWake] = []
    /// The list may be wrong until all wakes have ended: what ended a wake does not say which.
    private(set) var isUncertain = false
    /// The last process ended in the event that is being handled.
    var hasJustEnded = false

    /// The app must run freely while a wake is open.
    var isForOthers: Bool { !isUncertain && list.contains { $0.isForOthers } }

    /// The app has completed all of them.
    var isComplete: Bool { !isUncertain && list.isEmpty }

    mutating func add(_ wake: ModelWake) { list.append(wake) }
    mutating func addForNext(_ wake: ModelWake) { afterEnd.append(wake) }

    /// As the core completes a wake: the one with the number, or the oldest one that is not in doubt.
    mutating func complete(_ id: UInt64?) {
        let index: Int? =
            if let id {
                list.firstIndex { $0.id == id }
            } else {
                list.firstIndex { !$0.isDoubtful } ?? list.indices.first
            }
        if let index { list.remove(at: index) }
    }

    /// The time of a wake is over that need not be completed, or that may have been.
    mutating func endByTime() {
        let ends = { (wake: ModelWake) in wake.reason != .push && wake.reason != .fetch }
        if list.contains(where: \.isDoubtful) || !list.contains(where: ends) { isUncertain = true }
        if let index = list.firstIndex(where: ends) ?? list.indices.first { list.remove(at: index) }
    }

    mutating func doubt() { for index in list.indices { list[index].isDoubtful = true } }

    /// No wake is open and none is to begin in this process.
    mutating func clear() {
        list = []
        isUncertain = false
    }

    // MARK: With the process

    /// A process is launched.
    mutating func begin(_ launch: Launch) {
        list += afterEnd
        // The launch after the end may have been refused before.
        if !afterEnd.isEmpty, !hasJustEnded { isUncertain = true }
        afterEnd = []
        // A launch into the foreground begins a wake if the app cannot enter the foreground.
        let wakes: [LaunchReason] = [.push, .fetch, .socket, .timer, .accessory, .location]
        if launch.state == .foreground, wakes.contains(launch.reason) { isUncertain = true }
    }

    mutating func end() {
        clear()
        hasJustEnded = true
    }

    /// The app is to end, or is not to be launched.
    mutating func discard(hasRun: Bool) {
        dropNext()
        if !hasRun { clear() }
    }

    mutating func dropNext() { afterEnd = [] }
}
