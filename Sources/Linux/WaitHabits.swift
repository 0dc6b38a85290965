/// With which timeouts the threads of one app wait when it has nothing to do, learned from looks that found no work. A wait
/// with another timeout may be work: a request that sleeps.
struct WaitHabits {
    /// The most timeouts that are kept, and of each other kind of waits; the oldest timeouts are removed.
    static let mostTimeouts = 64
    static let mostDeadlines = 256
    /// Waits outside of these bounds are never unusual. Shorter ones are tickers, longer ones intervals.
    private static let shortest = Duration.seconds(1)
    private static let longest = Duration.seconds(60)

    /// Where a thread waits.
    private struct Site: Hashable {
        var thread: Int32
        var stackPointer: UInt64
    }

    private var timeouts: [Duration] = []
    /// Of a wait until a time only the rest is known. The longest one that was seen is the habit of its site.
    private var deadlines: [Site: Duration] = [:]
    /// Where threads wait at rest whose timeouts cannot be read.
    private var unknown: Set<Site> = []
    /// The threads at the last look.
    private var last: [Int32: ParkedThread] = [:]
    /// The waits at the last look, if it found no work.
    private var candidates: [Int32: ParkedThread] = [:]
    /// Since when no look has found work.
    private var quietSince: Duration?

    /// Replaces what the kernel hides: after a freeze a thread continues the call in which it was seen before. A
    /// timeout that could
    /// not be read this time counts as the one that was read last.
    mutating func resolve(_ threads: [ParkedThread]) -> [ParkedThread] {
        var resolved = threads
        for index in resolved.indices {
            let thread = resolved[index]
            guard let before = last[thread.thread], before.stackPointer == thread.stackPointer else { continue }
            switch (thread.timeout, before.timeout) {
            case (.restarted, .relative), (.restarted, .unknown): resolved[index] = before
            case (.unknown, .relative) where before.call == thread.call: resolved[index] = before
            case (.none, _), (.relative, _), (.remaining, _), (.restarted, _), (.unknown, _): break
            }
        }
        last = Dictionary(resolved.map { ($0.thread, $0) }) { first, _ in first }
        return resolved
    }

    /// Learns the waits of a look that found no work, if the look before has seen them too.
    /// - Parameters:
    ///   - isQuiet: the look found no work.
    ///   - hasClients: then a wait may be a request, and is only learned if there was no work for `requestTime`.
    ///   - now: the time of the look.
    mutating func learn(
        _ threads: [ParkedThread], isQuiet: Bool, hasClients: Bool, at now: Duration, after requestTime: Duration
    ) {
        guard isQuiet else {
            candidates = [:]
            quietSince = nil
            return
        }
        let since = quietSince ?? now
        quietSince = since
        let timed = threads.filter { Self.isExamined($0.timeout) }
        if !hasClients || now - since >= requestTime {
            for thread in timed { if let before = candidates[thread.thread] { insert(thread, before) } }
        }
        candidates = Dictionary(timed.map { ($0.thread, $0) }) { first, _ in first }
    }

    private mutating func insert(_ thread: ParkedThread, _ before: ParkedThread) {
        guard thread.stackPointer == before.stackPointer else { return }
        switch (thread.timeout, before.timeout) {
        case (.relative(let timeout), .relative(let earlier)):
            guard Self.isSimilar(timeout, earlier), !timeouts.contains(where: { Self.isSimilar(timeout, $0) }) else {
                return
            }
            if timeouts.count == Self.mostTimeouts { timeouts.removeFirst() }
            timeouts.append(timeout)
        case (.remaining(let rest), .remaining(let earlier)):
            let site = Site(thread: thread.thread, stackPointer: thread.stackPointer)
            guard deadlines[site] != nil || deadlines.count < Self.mostDeadlines else { return }
            deadlines[site] = max(deadlines[site] ?? .zero, rest, earlier)
        case (.unknown, .unknown):
            if unknown.count < Self.mostDeadlines {
                unknown.insert(Site(thread: thread.thread, stackPointer: thread.stackPointer))
            }
        case (.none, _), (.relative, _), (.remaining, _), (.restarted, _), (.unknown, _): break
        }
    }

    /// Whether a thread waits for 1 s to 60 s, or for a time that cannot be read, as it does not at rest.
    func isUnusual(_ thread: ParkedThread) -> Bool {
        switch thread.timeout {
        case .relative(let timeout):
            return Self.isExamined(thread.timeout) && !timeouts.contains { Self.isSimilar(timeout, $0) }
        case .remaining(let rest):
            guard rest > Self.shortest, rest <= Self.longest else { return false }
            let site = Site(thread: thread.thread, stackPointer: thread.stackPointer)
            guard let habit = deadlines[site] else { return true }
            return rest * 5 > habit * 6
        case .unknown: return !unknown.contains(Site(thread: thread.thread, stackPointer: thread.stackPointer))
        case .none, .restarted: return false
        }
    }

    /// A deadline that is far away comes nearer.
    private static func isExamined(_ timeout: WaitTimeout) -> Bool {
        switch timeout {
        case .relative(let timeout): timeout > shortest && timeout <= longest
        case .remaining, .unknown: true
        case .none, .restarted: false
        }
    }

    /// By no more than 20 %.
    private static func isSimilar(_ one: Duration, _ other: Duration) -> Bool {
        one * 5 > other * 4 && one * 5 < other * 6
    }
}
