/// A reason why an app in the background may keep running.
struct Assertion: Hashable, Sendable {
    enum Kind: Hashable, Sendable {
        /// L21: a background task.
        case task(name: String)
        /// L26: a wake, which grants time of its own.
        case wake(Wake)
    }
    /// The owner can end the assertion before its time.
    enum Owner: Hashable, Sendable {
        /// A process of the app.
        case process(Int32)
        /// The daemon, for `EXTEND_TIMEOUT_USEC=` and for wakes.
        case daemon
    }
    var kind: Kind
    var owner: Owner
    var began: Instant
    /// When it ends by itself: a task that `EXTEND_TIMEOUT_USEC=` opened while entering the background (L25).
    var end: Instant?
    /// The app may have ended it while there was no daemon.
    var isDoubtful = false
    /// A task that began while the app was in the foreground: the user asked for it.
    var isOfUser = false
    /// A user has cancelled the task.
    var isCancelled = false
    /// What the app has reported of the task; `nil`: nothing.
    @Rare var progress: OpenProgress? = nil

    init(kind: Kind, owner: Owner, began: Instant, end: Instant? = nil) {
        self.kind = kind
        self.owner = owner
        self.began = began
        self.end = end
    }

    init(_ wake: Wake) { self.init(kind: .wake(wake), owner: .daemon, began: wake.deadline.start) }

    /// The name of tasks that `EXTEND_TIMEOUT_USEC=` opens.
    static let extensionName = "EXTEND_TIMEOUT_USEC"

    var isTask: Bool {
        switch kind {
        case .task: true
        case .wake: false
        }
    }

    var taskName: String? {
        switch kind {
        case .task(let name): name
        case .wake: nil
        }
    }
}

/// L26: a wake grants an app in the background time of its own.
struct Wake: Hashable, Sendable {
    var reason: LaunchReason
    var deadline: Deadline
    /// L30: it is an error not to complete it.
    var mustComplete: Bool
    /// The number that names it; 0: it began in a release in which wakes had none.
    var id: UInt64 = 0
    /// No user asked for it (L53).
    var isUnrequested = false
}

/// All reasons why a run may stay awake in the background. Each wake has a time of its own, and its end ends no other.
struct AssertionList: Hashable, Sendable {
    /// All tasks and the oldest wake, oldest first.
    private(set) var all: [Assertion] = []
    /// The other wakes, oldest first. Empty if there is no wake in `all`.
    private(set) var laterWakes: [Wake] = []

    var isEmpty: Bool { all.isEmpty }

    // MARK: Tasks

    var tasks: [Assertion] { all.filter { $0.taskName != nil } }
    var taskNames: [String] { all.compactMap(\.taskName) }
    var hasTasks: Bool { all.contains(where: \.isTask) }

    /// - Returns: how many tasks there are now, if they are more than `limit`.
    mutating func beginTask(_ task: Assertion, limit: Int) -> Int? {
        all.append(task)
        // Counting them each time would make a thousand tasks a million steps.
        if all.count <= limit { return nil }
        let count = all.count(where: \.isTask)
        return count > limit ? count : nil
    }

    /// Removes the oldest task that meets a condition.
    mutating func removeTask(where isMeant: (Assertion) -> Bool) -> Assertion? {
        guard let index = all.firstIndex(where: { $0.isTask && isMeant($0) }) else { return nil }
        return all.remove(at: index)
    }

    mutating func removeTasks() { if !all.isEmpty { all.removeAll(where: \.isTask) } }

    /// Removes the tasks that the background time limits.
    mutating func removeLimitedTasks() { all.removeAll { $0.isTask && !$0.isContinued } }

    /// Changes the oldest task that meets a condition.
    mutating func updateTask<Result>(
        where isMeant: (Assertion) -> Bool, _ change: (inout Assertion) -> Result
    ) -> Result? {
        guard let index = all.firstIndex(where: { $0.isTask && isMeant($0) }) else { return nil }
        return change(&all[index])
    }

    /// Changes each task.
    mutating func updateTasks(_ change: (inout Assertion) -> Void) {
        for index in all.indices where all[index].isTask { change(&all[index]) }
    }

    /// Moves the end of the task that ends by itself, to `limit` after its begin at most.
    /// - Returns: whether there is one.
    mutating func moveExtension(to end: Instant, limit: Duration?) -> Bool {
        guard let index = all.firstIndex(where: { $0.isTask && $0.end != nil }) else { return false }
        all[index].end = limit.map { min(end, all[index].began + $0) } ?? end
        return true
    }

    // MARK: Wakes

    private var firstWake: (position: Int, wake: Wake)? {
        for (position, assertion) in all.enumerated() {
            if case .wake(let wake) = assertion.kind { return (position, wake) }
        }
        return nil
    }

    var hasWakes: Bool { all.contains { !$0.isTask } }
    /// Oldest first.
    var wakes: [Wake] { firstWake.map { [$0.wake] + laterWakes } ?? [] }

    /// Whether a wake meets a condition.
    func containsWake(_ isMeant: (Wake) -> Bool) -> Bool {
        for assertion in all {
            if case .wake(let wake) = assertion.kind, isMeant(wake) { return true }
        }
        return laterWakes.contains(where: isMeant)
    }

    mutating func beginWake(_ wake: Wake) {
        if hasWakes { laterWakes.append(wake) } else { all.append(Assertion(wake)) }
    }

    /// Removes the oldest wake that meets a condition.
    mutating func removeWake(where isMeant: (Wake) -> Bool) -> Wake? {
        guard let (position, first) = firstWake else { return nil }
        if isMeant(first) {
            all.remove(at: position)
            if !laterWakes.isEmpty { all.append(Assertion(laterWakes.removeFirst())) }
            return first
        }
        return laterWakes.firstIndex(where: isMeant).map { laterWakes.remove(at: $0) }
    }

    /// Changes each wake.
    mutating func updateWakes(_ change: (inout Wake) -> Void) {
        guard let found = firstWake else { return }
        var first = found.wake
        change(&first)
        all[found.position].kind = .wake(first)
        for index in laterWakes.indices { change(&laterWakes[index]) }
    }

    /// Replaces the deadline of the oldest wake that has this one.
    mutating func replaceWakeDeadline(_ deadline: Deadline, by other: Deadline) {
        var isDone = false
        updateWakes { wake in
            if isDone || wake.deadline != deadline { return }
            wake.deadline = other
            isDone = true
        }
    }

    /// As it was saved.
    init(saved: [Assertion]) { all = saved }

    mutating func restoreLaterWakes(_ wakes: [Wake]) { laterWakes = wakes }

    init() {}
}
