import CLinux

/// A helper thread in a call that no signal ends: neither execve(2) nor the end of this process completes before that call.
package struct BlockedHelper: Hashable, Sendable {
    package enum Call: Hashable, Sendable {
        /// close(2) of a file: its file system does not answer.
        case closingFile
        /// close(2) of another descriptor, such as a pipe whose lock another process holds.
        case closing
        /// A question about a socket, a pipe or an epoll descriptor, whose lock another process holds.
        case examining
    }

    package let call: Call
    /// The app; empty: not known, or not one app.
    package let owner: String

    package init(_ call: Call, owner: String) {
        self.call = call
        self.owner = owner
    }

    /// The most that are named. Further ones are not.
    private static let most = 64

    /// All of this process. A call that just takes its time is among them: ask again.
    package static var all: [BlockedHelper] {
        var found = [clinux_blocked_worker](repeating: clinux_blocked_worker(), count: most)
        let count = min(most, clinux_workers_blocked(&found, most))
        return found.prefix(count).map { BlockedHelper($0) }
    }

    /// How many of an app examine something, up to `limit`. To look at all helpers, two for each app, takes longer than most
    /// suspensions, so it is only done if so many examine at all.
    package static func examining(for owner: String, limit: Int) -> Int {
        if clinux_workers_examining() < limit { return 0 }
        return min(limit, all.count { $0.call == .examining && $0.owner == owner })
    }

    private init(_ worker: clinux_blocked_worker) {
        call =
            switch UInt32(bitPattern: worker.use) {
            case CLINUX_WORKER_CLOSES_FILES.rawValue: .closingFile
            case CLINUX_WORKER_CLOSES.rawValue: .closing
            default: .examining
            }
        owner = withUnsafeBytes(of: worker.owner) { String(decoding: $0.prefix { $0 != 0 }, as: UTF8.self) }
    }
}
