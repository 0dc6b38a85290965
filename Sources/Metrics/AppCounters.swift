/// What is counted of one app, or of all apps beyond the limit together.
struct AppCounters {
    /// Seconds of suspensions that are over.
    var suspended = 0.0
    var wakes: [String: UInt64] = [:]
    var deadlinesMissed: [String: UInt64] = [:]
    var kills: [String: UInt64] = [:]
    var hookFailures: [String: UInt64] = [:]
}

/// What is under way with one app. Times are microseconds of CLOCK_MONOTONIC.
struct AppProgress {
    var launchingSince: UInt64?
    var suspendedSince: UInt64?
    var thawSince: UInt64?
    /// It was woken, and the next event says whether by input.
    var isWoken = false
    /// Its freeze takes more than 2s.
    var isFreezeLate = false
    /// The deadlines that run, and the seconds that the app has for each.
    var deadlines: [DeadlineKey: Double] = [:]

    /// The most deadlines that are followed: an app may have many wakes open.
    static let mostDeadlines = 64
}

struct DeadlineKey: Hashable {
    var what: String
    var wake: UInt64?
}

/// The words of labels. A word that this version does not know is `other`, so that the number of series has a bound.
enum LabelWords {
    static let other = "other"

    static let states = ["notRunning", "launching", "inactive", "active", "background", "suspended", "terminating"]

    /// `input` is no reason of a change of state: the event `inputArrived` tells it from a push or a fetch.
    static let wakeReasons: Set<String> = [
        "input", "woken", "requested", "taskBegan", "timer", "continued", "shutdown", "unloaded",
    ]
    static let deadlines: Set<String> = [
        "launch", "background", "terminate", "backgroundTime", "wake", "watchdog", "thaw",
    ]

    static func word(_ text: String?, in words: Set<String>) -> String {
        text.flatMap { words.contains($0) ? $0 : nil } ?? other
    }

    /// Why an app was killed, by its receipt (the table of L45 in docs/RULES.md); `nil`: it was not killed for a fault or for memory.
    static func killReason(namespace: String?, code: String?) -> String? {
        switch (namespace ?? "", code ?? "") {
        case ("watchdog", "0x8badf00d"): "missedDeadline"
        case ("watchdog", "0x2182bad2"): "leakedTask"
        case ("watchdog", "0x2182bad4"): "wakeNotCompleted"
        case ("lifecycle", "0xbada5e47"): "tooManyTasks"
        case ("lifecycle", "0xdead10cc"): "heldLock"
        case ("user", "0xdeadfa11"): "removed"
        case ("resource", "0xc51bad01"): "backgroundCPU"
        case ("resource", "0xbad69000"): "backgroundGPU"
        case ("jetsam", "1"): "jetsam"
        case ("jetsam", "7"): "memoryLimit"
        case ("exit", _), ("signal", _), ("", _): nil
        default: other
        }
    }
}
