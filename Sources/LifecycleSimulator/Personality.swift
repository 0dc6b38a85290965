import LifecycleCore

/// When an app sends an answer that is due.
enum AnswerTiming: Int, CaseIterable {
    case prompt, slow, atDeadline, late, never, crashing
}

/// What an app does without a cause.
enum SpontaneousAction: Int, CaseIterable {
    case nothing, beginTask, endTask, endAllTasks, beginManyTasks, grow, shrink, fork, stop, crash, exit, extend,
        sendUnexpected
    case changeMainProcess, block, giveUpHeartbeat, announceEnd, askForApp
}

/// The behaviour of a simulated app. Weights are relative to each other.
struct Personality {
    let name: String
    /// Weights of `AnswerTiming`.
    let timings: [Int]
    /// Weights of `SpontaneousAction`.
    let spontaneous: [Int]
    /// Time between spontaneous actions.
    let interval: ClosedRange<Microseconds>
    /// Whether it catches signals or uses the library, so that notices reach it.
    var isAware = true
    /// Whether it answers `didEnterBackground` by stopping itself.
    var stops = false
    /// Whether it ignores SIGTERM.
    var ignoresSIGTERM = false
    /// Whether it tries to get more background time than it is allowed (L53).
    var evades = false

    private static let anytime: ClosedRange<Microseconds> = 200 * .millisecond...20 * .second

    /// In the order of `SpontaneousAction`: nothing, begin, end, end all, begin many, grow, shrink, fork, stop, crash,
    /// exit, extend, unexpected message, main process, block, give up, announce.
    static let all: [Personality] = [
        Personality(
            name: "prompt", timings: [1, 0, 0, 0, 0, 0],
            spontaneous: [8, 2, 6, 2, 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            interval: anytime),
        Personality(
            name: "slow", timings: [2, 7, 1, 0, 0, 0],
            spontaneous: [8, 3, 3, 1, 0, 2, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0],
            interval: anytime),
        Personality(
            name: "hanging", timings: [4, 1, 0, 2, 4, 0],
            spontaneous: [8, 1, 1, 1, 0, 2, 1, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0],
            interval: anytime),
        Personality(
            name: "leaking", timings: [6, 2, 0, 0, 0, 0],
            spontaneous: [3, 8, 1, 1, 1, 4, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0],
            interval: 100 * .millisecond...15 * .second),
        Personality(
            name: "many tasks", timings: [6, 1, 0, 0, 0, 0],
            spontaneous: [2, 6, 6, 4, 4, 1, 1, 1, 0, 0, 0, 2, 4, 0, 0, 0, 0],
            interval: 1 * .millisecond...8 * .second),
        Personality(
            name: "crashing", timings: [4, 1, 1, 0, 0, 4],
            spontaneous: [6, 2, 2, 1, 0, 1, 1, 1, 0, 3, 2, 0, 0, 0, 0, 1, 1],
            interval: anytime),
        Personality(
            name: "unaware", timings: [1, 0, 0, 0, 0, 0],
            spontaneous: [8, 0, 0, 0, 0, 2, 2, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0],
            interval: anytime, isAware: false),
        Personality(
            name: "forking", timings: [6, 1, 0, 0, 1, 1],
            spontaneous: [4, 2, 2, 1, 0, 2, 1, 8, 0, 1, 1, 0, 0, 2, 3, 0, 0],
            interval: anytime),
        Personality(
            name: "stopping", timings: [6, 1, 1, 1, 0, 0],
            spontaneous: [6, 2, 3, 1, 0, 1, 1, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0],
            interval: anytime, stops: true),
        Personality(
            name: "ignoring", timings: [6, 1, 0, 0, 0, 0],
            spontaneous: [6, 2, 3, 1, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0],
            interval: anytime, ignoresSIGTERM: true),
        Personality(
            name: "extending", timings: [1, 5, 2, 3, 0, 0],
            spontaneous: [3, 2, 3, 1, 0, 1, 1, 0, 0, 0, 0, 8, 1, 0, 0, 0, 1],
            interval: 50 * .millisecond...4 * .second),
        Personality(
            name: "at deadline", timings: [1, 0, 8, 1, 0, 2],
            spontaneous: [4, 4, 3, 2, 0, 1, 1, 0, 0, 1, 1, 1, 2, 0, 0, 1, 1],
            interval: anytime),
    ]

    static let prompt = all[0]

    /// Leaks tasks, ends and is relaunched, and asks the daemon to wake and launch apps.
    static let evading = Personality(
        name: "evading", timings: [1, 0, 0, 0, 0, 0],
        spontaneous: [2, 8, 0, 0, 0, 0, 0, 1, 0, 1, 1, 2, 0, 0, 0, 0, 1, 16],
        interval: 500 * .millisecond...8 * .second,
        evades: true)
}
