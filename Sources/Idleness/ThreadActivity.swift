/// What a thread was found doing when it was looked at (L51).
package struct ThreadSighting: Hashable, Sendable {
    /// Its ID in the daemon's PID namespace.
    package var thread: Int
    package var activity: ThreadActivity

    package init(thread: Int, activity: ThreadActivity) {
        self.thread = thread
        self.activity = activity
    }
}

package enum ThreadActivity: Hashable, Sendable {
    /// It runs, or is ready to run.
    case running
    /// It waits for a device or a page (state D).
    case uninterruptible
    /// By a signal or a debugger, or it has ended.
    case stopped
    case waiting(Wait)
    /// It continues a call that a freeze has interrupted. The kernel shows the call's arguments, but not which call it is
    /// (restart_syscall(2)). `wait`: what it waits for as far as it shows now; `nil`: when it is due follows only from an earlier look.
    case restarted(arguments: [UInt64], wait: Wait? = nil)
    /// In a call whose end is not visible while the program is frozen: a blocked write, open(2) of a FIFO, a semaphore.
    case unwatched(call: Int)
    /// What it does, or for how long, cannot be read: the program of another user, for example.
    case unreadable
}

/// A wait for something that is watched: input, space to write, another thread, a child, a signal, or a time.
package struct Wait: Hashable, Sendable {
    /// The number of the system call.
    package var call: Int
    package var arguments: [UInt64]
    /// From the beginning of the call to its timeout; `nil`: it has none.
    package var length: Duration?
    /// When it times out (CLOCK_MONOTONIC); `nil`: never.
    package var due: Duration?
    /// What the kernel says about the time since which the thread has waited, as it says it: the same number means the same wait.
    /// 0: it does not say it (`hasBeginning`).
    package var stamp: UInt64
    /// The kernel counts what was left at a freeze from the thaw (select, pselect6, ppoll).
    package var keepsRest = false
    /// The call waits until a time: what is left is known, and `length` only as well as the beginning of the call.
    package var isUntilTime = false
    /// A timer descriptor: only what is left of it is known.
    package var isTimer: Bool { call == Self.timerDescriptor }

    /// Whether it is known when it began. Some sleeping threads show 0, probably those that the kernel has moved to another processor
    /// while they were still in the queue of one (docs/decisions/idleness.md).
    package var hasBeginning: Bool { isTimer || length == nil || stamp > 0 }

    /// In place of the number of a system call.
    package static let timerDescriptor = -1

    package init(call: Int, arguments: [UInt64] = [], length: Duration? = nil, due: Duration? = nil, stamp: UInt64 = 0)
    {
        self.call = call
        self.arguments = arguments
        self.length = length
        self.due = due
        self.stamp = stamp
    }
}

/// Why a program may not be frozen, as far as its threads show.
package enum ThreadWork: Hashable, Sendable {
    case running, uninterruptible, unwatched, unreadable
    /// It waits for less than `WaitHistory.shortestTimer`, and has not done so for long enough to call it a tick.
    case shortWait
}

/// What the waits of a program's threads say about its next act (L51).
package struct WaitVerdict: Hashable, Sendable {
    /// Why it may not be frozen; `nil`: all its threads wait for something that is watched.
    package var work: ThreadWork?
    /// The thread that shows it, and its system call.
    package var thread: Int?
    package var call: Int?
    /// Until when that thread waits at most, from the beginning of its call.
    package var length: Duration?
    /// When the next timer of 5 s or more is due (CLOCK_MONOTONIC); `nil`: there is none.
    package var due: Duration?
    /// A thread waits for a short time: in ticks, or not yet.
    package var hasShortWait = false
    /// The shortest tick at this look; `nil`: no thread waits in ticks.
    package var tick: Duration?

    package init() {}
}
