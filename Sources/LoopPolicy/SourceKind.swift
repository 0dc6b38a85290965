/// The urgency of a source. sd-event serves the pending sources of the most urgent level only (strict priorities), and those of one
/// level in the order in which they became pending.
///
/// So that a level cannot starve those below it, all but `urgent` have a budget (`LoopPolicy.budget`): once a level has used it,
/// its sources wait until a *round* is over, that is, until everything less urgent that was pending was served or has used its own
/// budget. A round therefore takes at most the sum of the budgets and one more turn of each level. While nothing else is pending
/// a round ends at once, so the budgets cost an otherwise idle loop nothing.
package enum LoopLevel: Int, CaseIterable, Sendable {
    /// Bounded by what makes them ready, see the table: deadlines, the service manager's heartbeat, stop signals, memory pressure.
    case urgent
    /// The control interface.
    case control
    /// Events that the core has not handled, and effects that are not performed: what the levels below have caused is finished
    /// before more is read from them.
    case decisions
    /// What apps, and the clients of their sockets, can make ready.
    case apps
    /// Work in small pieces.
    case work
    /// The end of a round.
    case rounds
}

/// Every kind of source of the daemon's event loop.
package enum SourceKind: CaseIterable, Sendable {
    case deadline, heartbeat, machineTimer, stopSignal, memoryPressure, execOutcome
    case controlListener, controlClient, controlTimer, controlWork
    case decisions
    case childSignal, processEnd, appDescriptors, notifySocket, appListener, appClient, appTimer, input, inputAnswer,
        heldSockets,
        memoryLimit, later, helperAnswer
    case folderChange, timer, wakeTimer, systemEvent, work
    case round

    package var level: LoopLevel {
        switch self {
        case .deadline, .heartbeat, .machineTimer, .stopSignal, .memoryPressure, .execOutcome: .urgent
        case .controlListener, .controlClient, .controlTimer, .controlWork: .control
        case .decisions: .decisions
        case .childSignal, .processEnd, .appDescriptors, .notifySocket, .appListener, .appClient, .appTimer, .input,
            .inputAnswer,
            .heldSockets, .memoryLimit, .later, .helperAnswer:
            .apps
        case .folderChange, .timer, .wakeTimer, .systemEvent, .work: .work
        case .round: .rounds
        }
    }

    /// Whether the loop has one source for all descriptors of the kind (`appDescriptors`). `input` is none of them: it is itself a set
    /// of descriptors, with sets of the app in it, and the kernel limits how deeply such sets are nested and in how many ways they
    /// wake each other (epoll_ctl(2)).
    package var isPart: Bool { self == .notifySocket || self == .appListener }

    /// Whether the kernel reports a source of the kind once for each turn (EPOLLONESHOT). Otherwise each look of the loop asks all that are
    /// ready and not served yet again, and of `input`, sets of descriptors, that takes some microseconds each: a thousand apps whose
    /// clients come at once would wait for a second.
    package var isReportedOnce: Bool { self == .input }

    /// What is known of the sources of a kind.
    package struct Row: Sendable {
        package let kind: SourceKind
        /// What makes a source ready.
        package let readiedBy: String
        /// How often at most.
        package let rate: String
        /// What one turn does at most.
        package let turn: String
        /// Whether an app can make it ready: then it is less urgent than the control interface, and each app has a share
        /// (`LoopShare`) of the daemon's time.
        package let isOfApp: Bool

        init(_ kind: SourceKind, by readiedBy: String, rate: String, turn: String, isOfApp: Bool = false) {
            self.kind = kind
            self.readiedBy = readiedBy
            self.rate = rate
            self.turn = turn
            self.isOfApp = isOfApp
        }
    }

    /// The table of all sources: what can make each ready, how often, and what a turn does. Why the levels below do not starve:
    /// `urgent` is bounded by the rates here, every other level by its budget.
    package static let table: [Row] = [
        Row(
            .deadline, by: "the core, for its nearest deadline",
            rate: "once for each deadline", turn: "one event, for all deadlines that are due"),
        Row(
            .heartbeat, by: "the clock",
            rate: "three times in WatchdogSec=", turn: "begins a round, whose end sends WATCHDOG=1"),
        Row(
            .machineTimer, by: "the clock, while the machine is about to sleep",
            rate: "once a sleep", turn: "one event"),
        Row(
            .stopSignal, by: "root, the daemon's user, the kernel",
            rate: "50 in 100ms (EventLoop)", turn: "one event: stop, restart or reload"),
        Row(
            .memoryPressure, by: "the kernel (PSI triggers)",
            rate: "once in each window of a trigger", turn: "one event"),
        Row(
            .execOutcome, by: "the kernel, after execve(2) of a launch",
            rate: "once a launch, and launches are admitted (L52)", turn: "one event"),
        Row(
            .controlListener, by: "root, the daemon's user",
            rate: "1,280 connections (BusServer.Limits), 1,280 relays (RelayServer)", turn: "one connection"),
        Row(
            .controlClient, by: "root, the daemon's user; every user through the message bus",
            rate: "not bounded: the level's budget", turn: "one message"),
        Row(
            .controlTimer, by: "the clock, for a call, a handshake, a pause or an attempt",
            rate: "once each", turn: "ends what is late"),
        Row(
            .controlWork, by: "a call with a long answer",
            rate: "1,024 calls wait at most", turn: "pieces, up to the turn's budget"),
        Row(
            .decisions, by: "the driver of the core, while events wait",
            rate: "4,096 events wait at most (CoreDriver)", turn: "events and effects, up to the turn's budget"),
        Row(
            .childSignal, by: "processes that end, stop or continue",
            rate: "50 in 100ms (EventLoop)", turn: "the children that have changed"),
        Row(
            .processEnd, by: "the end of a process, and the execve(2) of a hook",
            rate: "twice a process", turn: "ends, up to the turn's budget"),
        Row(
            .appDescriptors, by: "what makes a notify socket or an app's listener ready",
            rate: "not bounded: the level's budget, and each app's share", turn: "one of them"),
        Row(
            .notifySocket, by: "processes of the app's user",
            rate: "1,000 lines a second (NotifySocket)", turn: "64 datagrams", isOfApp: true),
        Row(
            .appListener, by: "processes of the app",
            rate: "not bounded: the app's share", turn: "one connection", isOfApp: true),
        Row(
            .appClient, by: "processes of the app",
            rate: "1,000 messages a second (MessageLimiter)", turn: "one message", isOfApp: true),
        Row(
            .appTimer, by: "the clock, for a pause, a warning or a wait of an app",
            rate: "once a second and app", turn: "one step"),
        Row(
            .input, by: "clients and peers of a suspended app",
            rate: "256 looks in 100ms and app (RunInput)", turn: "64 descriptors", isOfApp: true),
        Row(
            .inputAnswer, by: "a helper thread that was asked about a socket or a pipe",
            rate: "once a question", turn: "steps, up to the turn's budget"),
        Row(
            .heldSockets, by: "clients of the sockets that the daemon holds",
            rate: "once for each launch or wake", turn: "sockets, up to the turn's budget"),
        Row(
            .memoryLimit, by: "the kernel (memory.events of an app's group)",
            rate: "once a second and app (LimitEvents)", turn: "one file is read"),
        Row(
            .later, by: "handlers that continue in a later turn",
            rate: "once for each such turn", turn: "calls, up to the turn's budget"),
        Row(
            .helperAnswer, by: "a helper thread that has done its job",
            rate: "once a job", turn: "the answers that have arrived"),
        Row(
            .folderChange, by: "users that may write in a watched folder",
            rate: "not bounded: the level's budget", turn: "64 KiB of events"),
        Row(
            .timer, by: "the clock, for what is tried again",
            rate: "once an attempt", turn: "one attempt"),
        Row(
            .wakeTimer, by: "the clock, for timers and fetches of apps, and a change of it",
            rate: "once a moment, for all apps that it wakes", turn: "a scan of the plans; the apps follow as work"),
        Row(
            .systemEvent,
            by: "the kernel, for devices, and users that may write in a folder with a file that apps want to know of",
            rate: "five times a second and source (ReadingSource)",
            turn: "64 KiB of events; what they are about is read later"),
        Row(
            .work, by: "handlers with long work",
            rate: "not bounded: the level's budget", turn: "pieces of all jobs in rotation, up to the turn's budget"),
        Row(
            .round, by: "a level that has used its budget, and the heartbeat",
            rate: "once a round", turn: "every level has its budget again"),
    ]
}
