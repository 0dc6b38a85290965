import LifecycleCore

/// A wake that a request asked for, or a launch without one.
struct ModelWake {
    /// It came from outside every app, for something that is not the app's own work.
    var isForOthers: Bool
    /// Its number; 0: it is not known before the wake begins.
    var number: UInt64 = 0
    /// Its time counts.
    var hasBegun = false
    /// It may have been completed while there was no daemon.
    var isDoubtful = false
}

/// The wakes of an app that have not ended, derived from requests, and from the reports of when they begin and end.
struct ModelWakes {
    /// Open, or to begin when the launch or the thaw is complete. Oldest first.
    private(set) var list: [ModelWake] = []
    /// For the process that follows the end which is under way.
    private var afterEnd: [ModelWake] = []
    /// The last process ended in the event that is being handled.
    var hasJustEnded = false

    /// The app must run freely while such a wake is open.
    var isForOthers: Bool { list.contains { $0.hasBegun && $0.isForOthers } }

    mutating func add(_ wake: ModelWake) { list.append(wake) }
    mutating func addForNext(_ wake: ModelWake) { afterEnd.append(wake) }

    /// Whether the app has completed all wakes if it completes one now: that with the number, or the oldest one. One that may have
    /// been completed before comes last.
    func isComplete(with number: UInt64?) -> Bool {
        let meant: Int? =
            if let number {
                list.firstIndex { $0.number == number }
            } else {
                list.firstIndex { $0.hasBegun && !$0.isDoubtful } ?? list.firstIndex { $0.hasBegun }
                    ?? list.indices.first
            }
        return list.isEmpty || (list.count == 1 && meant != nil)
    }

    mutating func doubt() { for index in list.indices where list[index].hasBegun { list[index].isDoubtful = true } }

    // MARK: Reports

    /// The time of a wake counts from now. Wakes begin in their order.
    mutating func began(_ number: UInt64) {
        let index =
            list.firstIndex { $0.number == number && !$0.hasBegun }
            ?? list.firstIndex { $0.number == 0 && !$0.hasBegun }
        if let index {
            list[index].number = number
            list[index].hasBegun = true
        } else {
            // Nothing but the launch asked for it.
            list.append(ModelWake(isForOthers: false, number: number, hasBegun: true))
        }
    }

    mutating func ended(_ number: UInt64) { list.removeAll { $0.hasBegun && $0.number == number } }

    /// The app has completed a wake, perhaps before it began.
    mutating func completed(_ number: UInt64) {
        let index =
            list.firstIndex { !$0.hasBegun && $0.number == number }
            ?? list.firstIndex { !$0.hasBegun && $0.number == 0 }
        if let index { list.remove(at: index) }
    }

    /// No wake is open and none is to begin in this process.
    mutating func clear() { list = [] }

    // MARK: With the process

    /// A process is launched.
    mutating func begin() {
        // The launch after the end may have been refused before, and those without a number cannot be distinguished.
        if !hasJustEnded {
            for index in afterEnd.indices where afterEnd[index].number == 0 { afterEnd[index].isForOthers = false }
        }
        list += afterEnd
        afterEnd = []
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
