/// What happens to an app that uses too much processor time in the background (L44).
extension AppPolicy {
    /// `BackgroundCPU=`.
    package enum BackgroundCPU: String, CaseIterable, Hashable, Sendable {
        /// It is killed.
        case kill
        /// It gets less of the processor until it uses less.
        case throttle
        /// Nothing: its use is not measured.
        case ignore
    }

    /// The largest `BackgroundCPULimit=`: that of 1,000 processors.
    package static let largestBackgroundCPULimit = 1_000_000

    /// `BackgroundCPU=`, or what follows from the role: workers serve others, who would lose their connections.
    package var backgroundCPUAction: BackgroundCPU {
        // Inlined: a call copies the policy.
        @inline(__always) get { backgroundCPU ?? (role == .worker ? .throttle : .kill) }
    }
}

/// The processor time that an app has used in the background (L44).
package struct BackgroundUse: Hashable, Sendable {
    /// Of all its processes, on all processors.
    package var used: Duration
    /// The time in which it used that.
    package var within: Duration
    /// `BackgroundCPULimit=` then, in thousandths of one processor.
    package var limit: Int

    package init(used: Duration, within: Duration, limit: Int) {
        self.used = used
        self.within = within
        self.limit = limit
    }

    /// `58s of CPU time within 1min`.
    package var amount: String { "\(used.timeSpan) of CPU time within \(within.timeSpan)" }

    /// `80% of one processor`.
    package var limitText: String {
        let tenth = limit % 10 == 0 ? "" : ".\(limit % 10)"
        return "\(limit / 10)\(tenth)% of one processor"
    }
}
