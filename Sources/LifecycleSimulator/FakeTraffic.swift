import Idleness
import LifecycleCore

/// What an app has to do with its peers (L50, L51). It is drawn once for each app: a manifest that is read again is the same
/// in this, unless `World.reload` changes it.
struct TrafficSettings {
    var isWorker = false
    var wakes = false
    var threshold = AppPolicy.WakeThreshold()
    var idleTime = Duration.seconds(10)
    var keepAwake: AppPolicy.KeepAwake = [.cpu, .requests]
    var requestTime = Duration.seconds(90)
    var idleProcessorShare = 10
    /// An unmodified program, which catches no signal of its notices.
    var isServer = false
    /// A local program that sends something soon after each suspension.
    var isPestered = false
    /// What arrives soon after a suspension, and datagrams, it has sent to itself.
    var sendsToItself = false
    var holdsLocks = false
    /// A thread of it waits for so long again and again.
    var tick: Duration?
    /// What can be watched of it.
    var watch = InputWatch(watched: 4)
}

/// Input of a run that its processes have not read, the work that follows from it, and who watches for it.
struct RunTraffic {
    struct Unread {
        /// All that arrived at this descriptor.
        var input: Input
        /// How many ends of streams are among it.
        var ends: Int
    }

    /// What a thread of the app waits for until it answers.
    struct Request {
        /// The thread.
        let number: Int
        /// When the app read it, or sent the last piece.
        var since: Microseconds
        var until: Microseconds
        /// In a call that cannot be watched; otherwise it waits for a time.
        let isUnwatched: Bool
        /// What events were late by when it began, in all.
        var lateness: Microseconds
        /// What freezes were reported late by until then, in all.
        var lateFreezes: Microseconds = 0
        /// It is a blocked write: it ends when its peer reads.
        var isWrite = false
        var stream: PieceStream?

        /// A shorter wait is work.
        var isShort: Bool { (stream?.rest ?? until - since) < 5 * .second }
    }
    /// What the daemon has measured, and what the app had to do then.
    struct Measured {
        let work: RunWork
        let kind: WorkLookKind
        let isInUnwatchedCall: Bool
        let isInShortWait: Bool
    }
    /// A timer of 5 s or more was served.
    struct Served {
        enum Kind { case timer, piece, write }
        let kind: Kind
        let run: Int
        let since: Microseconds
        let due: Microseconds
        let at: Microseconds
        let lateness: Microseconds
        /// What the kernel has held it up for.
        let excuse: Microseconds
    }

    /// The duplicates of the descriptors, and the thread that looks at them.
    struct Watch {
        let attempt: Int
        let onlyPeers: Bool
        var isOpen = false
        /// The daemon has died since, and its duplicates with it.
        var isLost = false
        /// By descriptor: when input was last reported.
        var reported: [Int32: Microseconds] = [:]
        /// Descriptors that are armed again later.
        var waiting: Set<Int32> = []
    }

    /// Many descriptors that become readable at once, with a byte each. They follow on those with numbers of their own.
    struct Burst {
        static let first: Int32 = 100
        /// So many looks at one app in `World.rearmTime`.
        static let piece: Int32 = 256
        /// The first one that the daemon has not looked at.
        var next = Burst.first
        var end: Int32
        var count: Int { Int(end - Self.first) }
    }

    var watch: Watch?
    /// What else is readable.
    var burst: Burst?
    /// It was found that nothing of the run can be watched, or that a process cannot be.
    var isBlind = false
    /// It is awake because of that.
    var isLeftAwake = false
    var unread: [Unread] = []
    var requests: [Request] = []
    var connections = 0
    /// When it last stopped itself: then it serves no timers.
    var lastStop: Microseconds = -1
    /// When something held it up that the daemon cannot help: a freeze that never completes.
    var heldUpAt: Microseconds = -1
    /// What its freezes were reported late by, in all.
    var lateFreezes: Microseconds = 0
    /// Threads whose kept rests the daemon has found in this freeze.
    var keptRests: Set<Int> = []
    /// The number of the last request.
    var lastNumber = 0
    /// When bytes last went over a connection.
    var lastTransfer: Microseconds = 0
    /// What the daemon knows about its waits. It is lost with the daemon.
    var waits = WaitHistory()
    var isReadPlanned = false
    var locks: FileLocks?

    /// It uses the processor from then until then, and has used it for `used` before.
    var busyFrom: Microseconds = 0
    var busyUntil: Microseconds = 0
    var used: Microseconds = 0
    /// When its peers will have got all output.
    var unsentUntil: Microseconds = 0
    /// When it last had something to do, as far as that is over.
    var lastWork: Microseconds = 0
    /// The number of its processes at the last measurement.
    var children = 0
    /// Each measurement that is not delivered.
    var measured: [Measured] = []
    /// When it was last delivered that the run has nothing to do.
    var hintedAt: Microseconds?
    var measuredAt: Microseconds = 0
    /// Whether the run surely had something to do at the measurement that was delivered last.
    var hadWork = false

    /// Each stream is sent over a connection of its own.
    var openConnections: Int { connections + requests.count { $0.stream != nil } }

    /// Whether something is unread that is not the end of a stream only.
    var hasUnread: Bool { burst != nil || unread.contains { !$0.input.isEnd } }

    mutating func use(_ time: Microseconds, at now: Microseconds) {
        if busyUntil > now {
            busyUntil += time
        } else {
            used += busyUntil - busyFrom
            (busyFrom, busyUntil) = (now, now + time)
        }
    }

    /// Processor time: what it used, and 0.05% of one processor at rest.
    func processorTime(at now: Microseconds) -> Microseconds { used + min(now, busyUntil) - busyFrom + now / 2000 }
}

/// The peers of all apps. They have a random stream of their own.
struct FakeTraffic {
    var random: Random
    /// What only some of these seeds have.
    var more: Random
    /// What happens between a look and a freeze.
    var race: Random
    /// By app; empty: no app has peers in this seed.
    private(set) var settings: [TrafficSettings] = []
    /// The daemon may not take duplicates of descriptors.
    var isDaemonBlind = false
    /// Bursts that are still to come.
    var burstsLeft: Int
    /// By run.
    var runs: [RunTraffic] = []
    /// Timers that were served in this event, pieces that were sent, and writes that have ended.
    var served: [RunTraffic.Served] = []
    /// Runs with something unread.
    var waiting: [Int] = []

    init(_ scenario: Scenario) {
        random = Random(seed: scenario.seed ^ 0x7472_6166_6669)
        more = Random(seed: scenario.seed ^ 0x6d6f_7265)
        race = Random(seed: scenario.seed ^ 0x7261_6365)
        burstsLeft = scenario.hasMoreTraffic ? 4 : 0
        guard scenario.hasTraffic else { return }
        for index in scenario.apps.indices {
            let drawn = drawSettings(index, scenario.seed)
            settings.append(drawn)
        }
    }

    private static let thresholds = [
        AppPolicy.WakeThreshold(), AppPolicy.WakeThreshold(), AppPolicy.WakeThreshold(bytes: 300),
        AppPolicy.WakeThreshold(bytes: 300, time: .seconds(2)),
        AppPolicy.WakeThreshold(bytes: 4096, time: .seconds(20)),
    ]
    private static let idleTimes: [Duration] = [.seconds(1), .seconds(1), .milliseconds(300), .seconds(10)]

    func isServer(_ app: Int) -> Bool { app < settings.count && settings[app].isServer }

    /// Another manifest: `Traffic=`, `WakeThreshold=`, `Role=` or `IdleSec=` changes.
    mutating func changeSettings(of app: Int) {
        switch more.below(8) {
        case 0, 1, 2: settings[app].wakes.toggle()
        case 3: settings[app].threshold = more.pick(Self.thresholds)
        case 4, 5: settings[app].idleTime = more.pick(Self.idleTimes)
        case 6:
            settings[app].wakes.toggle()
            settings[app].isWorker.toggle()
        default: settings[app].isWorker.toggle()
        }
    }

    private mutating func drawSettings(_ app: Int, _ seed: UInt64) -> TrafficSettings {
        var drawn = TrafficSettings()
        let number = seed &+ UInt64(app)
        drawn.isWorker = number % 4 == 0
        drawn.wakes = number % 4 == 1 || number % 4 == 0 && number % 32 != 28
        drawn.sendsToItself = (number / 4) % 3 == 0
        drawn.threshold = random.pick(Self.thresholds)
        drawn.idleTime = random.pick(Self.idleTimes)
        drawn.keepAwake = random.pick([
            [.cpu, .requests], [.cpu, .requests], [.cpu, .requests], [.cpu, .requests, .connections],
            [.cpu, .requests, .timers], [.cpu],
        ])
        drawn.requestTime = random.pick([.seconds(90), .seconds(60), .seconds(5)])
        drawn.idleProcessorShare = random.pick([10, 10, 5, 100])
        drawn.isServer = random.chance(500)
        if number % 6 == 0 { drawn.tick = random.pick([.milliseconds(100), .seconds(1), .seconds(3)]) }
        drawn.isPestered = random.chance(400)
        drawn.holdsLocks = random.chance(drawn.isServer ? 700 : 150)
        drawn.watch.watched = 3 + random.below(5)
        switch random.below(16) {
        case 0:
            drawn.watch = InputWatch(unwatched: [.init(what: "socket", problem: .notPermitted, count: 3)])
        case 1, 2: drawn.watch.unwatched = [.init(what: "signalfd", problem: .notSupported, count: 1)]
        case 3:
            drawn.watch = InputWatch(
                watched: 10_000, unwatched: [.init(what: "socket", problem: .tooMany, count: 500)])
        // One of its processes is not dumpable, or another user's.
        case 4: drawn.watch.unwatched = [.init(what: "process", problem: .notPermitted, count: 1)]
        default: break
        }
        return drawn
    }
}
