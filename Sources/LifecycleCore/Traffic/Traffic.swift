/// What kind of descriptor input arrives at (L50).
package enum InputKind: String, CaseIterable, Hashable, Sendable {
    /// A socket that listens: a connection waits.
    case listener
    /// A connected stream or seqpacket socket.
    case stream
    case datagram
    /// A pipe or FIFO.
    case pipe
    case terminal
    /// timerfd_create(2): the app's own doing.
    case timer
    /// eventfd(2), inotify(7), a message queue, a pidfd.
    case event
    /// An epoll descriptor of the app: something that it waits for.
    case epoll

    /// Whether what arrives comes from outside the app. Timers are its own; an eventfd or a pidfd may have been ready when it was
    /// frozen.
    package var isFromOutside: Bool { self != .timer && self != .event }
}

/// Where input comes from (L53).
package enum InputSource: Hashable, Sendable {
    /// A process outside the app, or that is not known.
    case outside
    /// The app itself, before it was frozen: through its own pipe, socket pair, or connection to itself.
    case own
}

/// Input that arrived at a suspended app (L50).
package struct Input: Hashable, Sendable {
    /// The most bytes of `peer`.
    package static let maximumPeer = 128

    package var kind: InputKind
    /// The process that has the descriptor, and its number there.
    package var pid: Int32
    package var descriptor: Int32
    /// How many bytes can be read; 0: none, or the kernel does not say.
    package var bytes: UInt64
    /// The other end, as `status` shows it: `192.0.2.7:50123`, `/run/app.sock`; empty: not known.
    package var peer: String
    /// Nothing but the end of the stream has arrived (FIN, a hang-up).
    package var isEnd = false
    /// The peer is on this machine, and waits or will soon wait: the buffer towards the app is more than half full.
    package var isHalfFull = false
    package var source = InputSource.outside

    /// Whether it comes from outside the app: a timer of the app does not, even if another process reads it.
    package var isFromOutside: Bool {
        switch source {
        case .outside: kind.isFromOutside
        case .own: false
        }
    }

    package init(
        kind: InputKind, pid: Int32, descriptor: Int32, bytes: UInt64, peer: String = "", isEnd: Bool = false,
        isHalfFull: Bool = false, source: InputSource = .outside
    ) {
        self.kind = kind
        self.pid = pid
        self.descriptor = descriptor
        self.bytes = bytes
        self.peer = peer
        self.isEnd = isEnd
        self.isHalfFull = isHalfFull
        self.source = source
    }
}

/// The descriptors of a suspended app that are watched for input, and those that are not (L50).
package struct InputWatch: Hashable, Sendable {
    /// Why input at a descriptor does not wake the app.
    package enum Problem: String, CaseIterable, Hashable, Sendable {
        /// EPERM: a program that is not dumpable, another user, Yama.
        case notPermitted
        /// A kind that cannot be watched: signalfd, io_uring, an unknown one.
        case notSupported
        /// The app has more than the watch holds.
        case tooMany
        /// Another failure of the system.
        case failed
    }
    package struct Unwatched: Hashable, Sendable {
        /// Processes whose descriptors cannot be listed.
        package static let process = "process"
        /// Threads with a descriptor table of their own, which cannot be listed.
        package static let thread = "thread"

        /// What it is, as `status` shows it: `socket`, `signalfd`, `io_uring`, or `process` and `thread`.
        package var what: String
        package var problem: Problem
        package var count: Int

        package init(what: String, problem: Problem, count: Int) {
            self.what = what
            self.problem = problem
            self.count = count
        }

        /// Whether none of the descriptors is known: a listening socket may be among them.
        var isWhole: Bool { what == Self.process || what == Self.thread }
    }
    /// The most entries of `unwatched`, and the most bytes of what one of them is.
    package static let maximumUnwatched = 8
    package static let maximumWhat = 32

    /// How many descriptors are watched.
    package var watched = 0
    /// Those among them at which nothing arrives from another program: an event descriptor, a pipe of which the app has both ends, a
    /// stream that has ended.
    package var silent = 0
    package var unwatched: [Unwatched] = []
    /// Nothing is watched, although there is something to watch, or a whole process is not watched. Such an app is not left where
    /// its clients do not reach it.
    package var isBlind: Bool { unwatched.contains { $0.problem != .notSupported && (watched == 0 || $0.isWhole) } }
    /// That may be otherwise later: descriptors were short.
    package var isTransient: Bool { !unwatched.contains { $0.problem == .notPermitted } }

    package init(watched: Int = 0, silent: Int = 0, unwatched: [Unwatched] = []) {
        self.watched = watched
        self.silent = silent
        self.unwatched = unwatched
    }
}

/// What an app in the background has to do (L51), as it was measured. Changes are counted from the measurement before.
package struct RunWork: Hashable, Sendable {
    /// What one of its threads does whose end would not be visible while the app is frozen.
    package enum Wait: CaseIterable, Hashable, Sendable {
        /// A system call that cannot be watched: a blocked write, the opening of a FIFO, a semaphore.
        case unwatchedCall
        /// It cannot be read what a thread does: the app belongs to another user, for example.
        case unreadable
        /// It waits for less than 5 s, which it has not done for long enough to be a tick.
        case short
        /// It has not answered a request of its standard input (`run --protocol=`).
        case request
    }
    /// The most bytes of `detail`.
    package static let maximumDetail = 96

    /// Processor time of the run since its launch.
    package var cpu: Duration
    /// A thread runs or is ready to run.
    package var isRunnable = false
    /// A process began or ended since the last measurement.
    package var hasNewProcesses = false
    /// Bytes that the app has not read.
    package var unread: UInt64 = 0
    /// Bytes of output that its peers have not got.
    package var unsent: UInt64 = 0
    /// Established connections that the app accepted.
    package var connections = 0
    /// Why it may not be frozen, as far as its waits show; `nil`: all threads wait for something that is watched.
    package var wait: Wait?
    /// For `wait`, `isRunnable` and `tick`: which thread, in which call, for how long; at most `maximumDetail` bytes.
    package var detail = ""
    /// The shortest wait of a thread that waits in ticks; `nil`: none does.
    package var tick: Duration?
    /// How long ago bytes went over a connection that is still open; `nil`: that is not known to have happened. Measured only of an
    /// app with ticks.
    package var traffic: Duration?
    /// When the next timer of 5 s or more is due.
    package var due: Instant?
    /// Something but its threads could not be measured: a network namespace that is gone, a socket.
    package var isIncomplete = false
    /// There is unread input, and all of it comes from the app itself (L53).
    package var isOwn = false
    /// Only the processor time was measured (`WorkLookKind.first` and `.brief`).
    package var isBrief = false
    /// It may have a timer that is due by a signal (setitimer(2), alarm(2), timer_create(2)), at a time that the kernel does not show.
    /// Found of a frozen app only.
    package var hasSignalTimers = false

    package init(cpu: Duration) { self.cpu = cpu }
}

/// How much of a run is measured.
package enum WorkLookKind: CaseIterable, Hashable, Sendable {
    /// Its processor time and its processes, at the beginning of a stay in the background: the next look is compared with them.
    case first
    case full
    /// Its processor time, in the moment for which a timer has thawed it.
    case brief
    /// All of it, at the end of that moment.
    case moment
}

/// Why an app that measures idleness is awake (L51).
package enum WorkReason: String, CaseIterable, Hashable, Sendable {
    /// It uses the processor, or a thread is ready to run.
    case cpu
    case processes
    case unreadInput
    case unsentOutput
    /// It has ticks, and bytes went over a connection within `RequestSec=`.
    case traffic
    /// A thread waits for a short time, which it does not repeat.
    case shortWait
    case connection
    /// It has ticks (`KeepAwake=timers`).
    case timer
    /// A thread is in a call that cannot be watched.
    case unwatchedCall
    case unreadable
    /// A timer is due soon.
    case timerSoon
    /// A request of its standard input has no answer yet (`run --protocol=`).
    case request

    /// Whether the detail of a look says more about it.
    var hasDetail: Bool {
        switch self {
        case .cpu, .shortWait, .unwatchedCall, .unreadable, .timer, .traffic: true
        case .processes, .unreadInput, .unsentOutput, .connection, .timerSoon, .request: false
        }
    }
}

/// File locks that processes of an app hold, or what its manifest says that it lets go of (L43).
package struct FileLocks: Hashable, Sendable {
    package static let maximumFile = 256

    package var count: Int
    /// One of the files, as far as its path is known; at most `maximumFile` bytes.
    package var file: String
    /// All are shared, and no program is known to wait for one: they keep programs from writing, which may poll.
    package var isShared = false

    /// They are named by `Releases=`: devices, files, or locks on files.
    package var isResource = false

    package init(count: Int, file: String, isShared: Bool = false, isResource: Bool = false) {
        self.count = count
        self.file = file
        self.isShared = isShared
        self.isResource = isResource
    }
}
