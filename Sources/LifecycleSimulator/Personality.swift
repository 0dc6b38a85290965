import LifecycleCore

/// How an app goes about what it owes.
enum Manner: Int, CaseIterable {
    case prompt, slow, atDeadline, late, never, crashing
}

/// What an app does of its own accord.
enum Whim: Int, CaseIterable {
    case nothing, beginTask, endTask, endAllTasks, beginStorm, grow, shrink, fork, stop, crash, exit, extend, chatter
    case changeMainProcess, block, giveUpHeartbeat, announceEnd
}

/// What a fake app is like. The weights are relative to each other.
struct Personality {
    let name: String
    /// By `Manner`.
    let manners: [Int]
    /// By `Whim`.
    let whims: [Int]
    /// From one whim to the next.
    let tempo: ClosedRange<Microseconds>
    /// It catches signals, or speaks the contract: it can be told something.
    var isAware = true
    /// It answers `didEnterBackground` by stopping itself.
    var stops = false
    /// SIGTERM does not end it.
    var isDeaf = false

    private static let anytime: ClosedRange<Microseconds> = 200 * .millisecond...20 * .second

    /// In the order of `Whim`: nothing, begin, end, end all, storm, grow, shrink, fork, stop, crash, exit, extend, chatter,
    /// main process, block, give up, announce.
    static let cast: [Personality] = [
        Personality(
            name: "prompt", manners: [1, 0, 0, 0, 0, 0], whims: [8, 2, 6, 2, 0, 2, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0],
            tempo: anytime),
        Personality(
            name: "slow", manners: [2, 7, 1, 0, 0, 0], whims: [8, 3, 3, 1, 0, 2, 2, 0, 0, 0, 0, 2, 0, 0, 0, 0, 0],
            tempo: anytime),
        Personality(
            name: "hanging", manners: [4, 1, 0, 2, 4, 0], whims: [8, 1, 1, 1, 0, 2, 1, 0, 1, 0, 0, 1, 0, 0, 1, 0, 0],
            tempo: anytime),
        Personality(
            name: "leaky", manners: [6, 2, 0, 0, 0, 0], whims: [3, 8, 1, 1, 1, 4, 1, 0, 0, 0, 0, 1, 0, 0, 0, 0, 0],
            tempo: 100 * .millisecond...15 * .second),
        Personality(
            name: "stormy", manners: [6, 1, 0, 0, 0, 0], whims: [2, 6, 6, 4, 4, 1, 1, 1, 0, 0, 0, 2, 4, 0, 0, 0, 0],
            tempo: 1 * .millisecond...8 * .second),
        Personality(
            name: "crashy", manners: [4, 1, 1, 0, 0, 4], whims: [6, 2, 2, 1, 0, 1, 1, 1, 0, 3, 2, 0, 0, 0, 0, 1, 1],
            tempo: anytime),
        Personality(
            name: "unaware", manners: [1, 0, 0, 0, 0, 0], whims: [8, 0, 0, 0, 0, 2, 2, 1, 1, 0, 1, 0, 0, 0, 0, 0, 0],
            tempo: anytime, isAware: false),
        Personality(
            name: "forking", manners: [6, 1, 0, 0, 1, 1], whims: [4, 2, 2, 1, 0, 2, 1, 8, 0, 1, 1, 0, 0, 2, 3, 0, 0],
            tempo: anytime),
        Personality(
            name: "stopping", manners: [6, 1, 1, 1, 0, 0], whims: [6, 2, 3, 1, 0, 1, 1, 0, 2, 0, 0, 0, 1, 0, 0, 0, 0],
            tempo: anytime, stops: true),
        Personality(
            name: "deaf", manners: [6, 1, 0, 0, 0, 0], whims: [6, 2, 3, 1, 0, 1, 1, 0, 0, 0, 0, 1, 0, 0, 1, 0, 0],
            tempo: anytime, isDeaf: true),
        Personality(
            name: "extending", manners: [1, 5, 2, 3, 0, 0], whims: [3, 2, 3, 1, 0, 1, 1, 0, 0, 0, 0, 8, 1, 0, 0, 0, 1],
            tempo: 50 * .millisecond...4 * .second),
        Personality(
            name: "brinkman", manners: [1, 0, 8, 1, 0, 2], whims: [4, 4, 3, 2, 0, 1, 1, 0, 0, 1, 1, 1, 2, 0, 0, 1, 1],
            tempo: anytime),
    ]

    static let prompt = cast[0]
}
