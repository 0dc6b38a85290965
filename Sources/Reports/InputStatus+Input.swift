package import Control
package import LifecycleCore

extension InputStatus {
    /// Input without the time at which it arrived.
    package init(_ input: Input) {
        self.init()
        kind = input.kind.rawValue
        peer = input.peer.isEmpty ? nil : input.peer
        bytes = input.bytes
        // 0: a socket that the daemon holds.
        pid = input.pid == 0 ? nil : input.pid
        descriptor = input.descriptor
        isEnd = input.isEnd ? true : nil
        isHalfFull = input.isHalfFull ? true : nil
        switch input.source {
        case .outside: isOwn = nil
        case .own: isOwn = true
        }
    }
}

extension WatchStatus {
    /// What is watched, without the settings that decide what wakes the app.
    package init(_ watch: InputWatch) {
        self.init()
        watched = UInt64(max(0, watch.watched))
        unwatched = watch.unwatched.map(UnwatchedStatus.init)
    }
}

extension UnwatchedStatus {
    fileprivate init(_ unwatched: InputWatch.Unwatched) {
        self.init()
        what = unwatched.what
        problem = unwatched.problem.rawValue
        count = UInt64(max(0, unwatched.count))
    }
}
