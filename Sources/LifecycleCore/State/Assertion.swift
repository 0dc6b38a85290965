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
}

/// All reasons why a run may stay awake in the background, oldest first. At most one of them is a wake.
struct AssertionList: Hashable, Sendable {
    private(set) var all: [Assertion] = []

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

    /// Changes each task.
    mutating func updateTasks(_ change: (inout Assertion) -> Void) {
        for index in all.indices where all[index].isTask { change(&all[index]) }
    }

    /// Moves the end of the task that ends by itself. Whether there is one.
    mutating func moveExtension(to end: Instant) -> Bool {
        guard let index = all.firstIndex(where: { $0.isTask && $0.end != nil }) else { return false }
        all[index].end = end
        return true
    }

    // MARK: The wake

    var wake: Wake? {
        get {
            for assertion in all { if case .wake(let wake) = assertion.kind { return wake } }
            return nil
        }
        set {
            if all.isEmpty, newValue == nil { return }
            let index = all.firstIndex { !$0.isTask }
            switch (index, newValue) {
            case (nil, nil): break
            case (let index?, nil): all.remove(at: index)
            case (let index?, let wake?): all[index].kind = .wake(wake)
            case (nil, let wake?):
                all.append(Assertion(kind: .wake(wake), owner: .daemon, began: wake.deadline.start))
            }
        }
    }

    /// As it was saved.
    init(saved: [Assertion]) { all = saved }

    init() {}
}
