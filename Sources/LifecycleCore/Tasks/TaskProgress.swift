/// How far a background task is, as its app reports it (L21).
package struct TaskProgress: Hashable, Sendable {
    /// Bytes of a title.
    package static let maximumTitle = 128
    /// The largest number that JSON has exactly.
    package static let largest: UInt64 = 1 << 53
    /// What a report has to be, as the end of a sentence.
    package static let rule =
        "DONE and TOTAL from 0 to \(largest), DONE not above TOTAL unless TOTAL is 0 (not known), and a title of at most "
        + "\(maximumTitle) bytes without control characters"

    package private(set) var done: UInt64
    /// 0: not known.
    package private(set) var total: UInt64
    /// What the user reads; empty: the app has given none.
    package internal(set) var title: String

    /// `nil`: it breaks the rule.
    package init?(done: UInt64, total: UInt64, title: String = "") {
        guard max(done, total) <= Self.largest, total == 0 || done <= total, title.utf8.count <= Self.maximumTitle,
            !title.unicodeScalars.contains(where: { $0.properties.generalCategory == .control })
        else { return nil }
        self.done = done
        self.total = total
        self.title = title
    }

    /// As it was saved.
    init(trusted done: UInt64, _ total: UInt64, _ title: String) {
        (self.done, self.total, self.title) = (done, total, title)
    }
}

/// Why a task expires before the others of its app. The raw values are the words of the control interface.
package enum TaskExpiry: String, CaseIterable, Hashable, Sendable {
    /// It made no progress for `TaskProgressSec=`.
    case stalled
    /// More than `ContinuedTasks=` continue, and it made no progress for longest.
    case limit
    /// A user cancelled it.
    case cancelled
}

/// What the core knows of the progress of an open task.
struct OpenProgress: Hashable, Sendable {
    enum Continuation: CaseIterable, Hashable, Sendable {
        /// The background time limits it.
        case no
        /// It may run for as long as it advances.
        case yes
        /// It was a continued task in this stay in the background, and is one no more.
        case over
    }
    var report: TaskProgress
    /// When the app reported first, or `done` grew last.
    var advanced: Instant
    /// When observers were notified of it last.
    var published: Instant
    var continuation = Continuation.no
}

/// The key of an app that has continued tasks in the background: the one without progress for longest goes first.
struct ContinuedRank: Comparable, Hashable, Sendable {
    /// When its task without progress for longest advanced last.
    var advanced: Instant
    /// How many it has.
    var count: Int

    static func < (a: ContinuedRank, b: ContinuedRank) -> Bool {
        a.advanced == b.advanced ? a.count < b.count : a.advanced < b.advanced
    }
}
