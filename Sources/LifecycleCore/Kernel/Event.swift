/// Everything that can happen, as the daemon reports it to the core. Cases are named in the past tense. The large ones are on the
/// heap, so that every event is small to pass.
///
/// Adding an event of a run changes three lists: `RunEvent`, its codec (`Saving/SavedEvents.swift`) and the words of
/// the simulator's trace.
package enum Event: Hashable, Sendable {
    /// Something happened to one run of one app. Ignored once that run is over.
    case run(RunID, RunEvent)

    // MARK: Configuration

    /// A manifest was read, for the first time or again. `launches`: how often the app was launched before (L9).
    indirect case registered(AppID, AppPolicy, launches: Int)
    /// The manifest was removed. A running app keeps running and is removed at its end.
    case unregistered(AppID)
    indirect case configured(ManagerPolicy)
    /// All manifests are known: apps with `LaunchAtStart=` are launched.
    case started
    /// This daemon recovered the state of an instance that died. Comes before any other event.
    case recovered

    // MARK: Requests

    case requested(RequestID, AppID, Request, by: Requester = .user)
    /// The requester disconnected. The request is carried out all the same. If it was `interruptWhileConnected` and was
    /// answered already, the interruption ends.
    case requestAbandoned(RequestID)
    /// All apps are to end. `immediately`: without notice.
    case shutdownRequested(immediately: Bool)

    // MARK: The machine

    /// The machine is about to sleep or to power off, and waits for `Effect.allowSleep` (L15).
    case sleepRequested
    /// The machine woke up, or did not sleep after all.
    case awoke
    /// The screen was locked (L15).
    case locked
    case unlocked
    /// The instant of `LifecycleCore.nextDeadline` was reached.
    case deadlineReached
    indirect case memoryMeasured(MemoryReading)
    /// A PSI trigger fired: tasks stall because memory is short. It makes the core look: `measureMemory`.
    case pressureStalled(MemoryLevel)
    case pressureSimulated(RequestID, MemoryLevel)

    // MARK: Held sockets

    /// A connection or a datagram waits at a socket that the daemon holds for the app (L29). Comes once for each
    /// `Effect.watchSockets`. `input.pid` is 0, `input.descriptor` the number that the app gets for the socket (3 is the first),
    /// and `input.peer` the address of the socket.
    indirect case socketsReady(AppID, Input)

    // MARK: Timers

    /// Something happened to the timers of the app (L30).
    indirect case timer(AppID, TimerEvent)

    // MARK: Changes outside the apps

    /// A source of notifications has read what the machine is like now, or reports a moment (L33). It may have been read before.
    /// `of`: the app that it concerns; `nil`: all that want the kind.
    indirect case observed(Notification, of: AppID? = nil)
}

extension Event {
    /// The run that the event is about, if it is about one.
    package var run: RunID? {
        if case .run(let run, _) = self { run } else { nil }
    }
}

/// What can happen to one run: outcomes of effects, and what the app's processes say.
package enum RunEvent: Hashable, Sendable {
    // MARK: Outcomes of effects

    /// The process exists. Its program is not executed yet.
    case spawned(pid: Int32)
    /// `execve` succeeded.
    case executed
    /// No program runs and nothing is left of the attempt: neither `exited` nor `emptied` follows.
    case spawnFailed(SpawnProblem)
    /// A notice with a deadline was sent. `delivered` is false if the program declares no signal for it or does not catch
    /// that signal: then it has nothing to finish (L17). `cpu`: processor time that the app had used so far.
    case notified(Notice, delivered: Bool, cpu: Duration)
    /// The whole cgroup is frozen. `memory`: what killing it would give back, in bytes. It cannot change until the thaw.
    /// `uncertainty`: by how many bytes that may be too large.
    case frozen(attempt: Int, memory: UInt64, uncertainty: UInt64 = 0)
    /// Of an app whose processes share memory, the size in `frozen` is an estimate. This is the exact one, in bytes.
    case footprintMeasured(attempt: Int, memory: UInt64)
    /// The exact size in bytes; of processes that the daemon may not examine, the least that they can have. `estimate`: the estimate
    /// of the same time.
    case sizeMeasured(bytes: UInt64, estimate: UInt64)
    case thawed(attempt: Int)
    /// Nothing more is pushed out of the suspended run (L37). `bytes`: what was.
    case reclaimed(attempt: Int, bytes: UInt64)
    /// The file of an event could not be written, because there is no space, for example. It is written later, perhaps when its
    /// wake is over: the wake need not be completed (L30). `wake`: its number.
    case notificationDelayed(wake: UInt64)
    /// After `frozen`: a process outside the daemon has continued a process of the run (SIGCONT, process-group mode).
    case freezeLost(attempt: Int)
    indirect case inspected(Inspection)
    case activityMeasured(RunActivity)
    /// Before `frozen`: processes of the run hold file locks (L43).
    case locksFound(attempt: Int, FileLocks)
    /// After `frozen`: what is watched, and what cannot be (L50).
    case inputWatched(attempt: Int, InputWatch)
    /// Input arrived at the suspended run. Comes once for each change at a descriptor, at bounded intervals.
    case inputArrived(attempt: Int, Input)
    indirect case workMeasured(RunWork)
    /// Since its launch the run has used so much processor time, and was ready to run for so long without a processor (L44).
    case processorMeasured(used: Duration, waited: Duration)
    /// Processes of the run have used a GPU since the watch began (L43), for so long; zero: the driver does not say for how long.
    case gpuUsed(Duration)
    /// The commands of the hook with this number ended, or the next daemon cannot find out how.
    case hookEnded(number: Int, HookOutcome)
    /// The main process ended. The status is `.unknown` if the kernel does not report it, because the process is not a
    /// child of this daemon. `cpu`: of the whole run. `memory`: peak in bytes, for runs too short to be measured; 0:
    /// unknown. `remaining`: the processes that it left behind.
    case exited(ExitStatus, cpu: Duration, memory: UInt64, remaining: RemainingProcesses? = nil)
    /// The kernel's OOM killer killed the main process, or all processes. Comes before `exited`.
    case outOfMemory(OutOfMemory)
    /// No process of the run is left (L47). Comes once in a run.
    case emptied
    /// After `Event.recovered`: the run was found and is under control again. `messagesKept`: no notify message was lost
    /// while there was no daemon. `noticesDelayed`: this daemon sends notices that the previous one had decided on but not
    /// sent.
    case reattached(messagesKept: Bool, noticesDelayed: Bool = false)

    // MARK: What the app says

    case ready
    case backgroundEntered
    /// The main process stopped itself (L17).
    case stopped
    case continued
    /// `owner`: the pid of the sender.
    case taskBegan(name: String, owner: Int32)
    case taskEnded(name: String)
    indirect case taskProgressed(name: String, TaskProgress)
    /// The app begins or ends a single mode (L28).
    case modeBegan(BackgroundModes)
    case modeEnded(BackgroundModes)
    /// What processes of the run inhibit with logind, and why; `nil`: nothing any more (L28).
    case inhibitorChanged(String?)
    /// The modes that sources outside the program show of it, all of them: an audible stream of PipeWire, a player that plays (L28).
    case modesShown(BackgroundModes)
    /// Of the modes that the app asserts, those that it does not use, all of them, as a service says that would have to know: they do not
    /// keep it awake (L28).
    case modesUnused(BackgroundModes)
    /// The app begins or ends a scene (L34).
    case scene(SceneEvent)
    case timeoutExtended(by: Duration)
    /// `id`: the number of the wake; `nil`: the oldest one that is open.
    case wakeCompleted(WakeResult, id: UInt64? = nil)
    case heartbeat
    /// `WATCHDOG=trigger`: the app asks to be treated as if it had missed a heartbeat.
    case heartbeatGivenUp
    /// `WATCHDOG_USEC=`: the time between heartbeats for the rest of the run, instead of `WatchdogSec=`; zero: none is expected.
    case heartbeatTimeChanged(to: Duration)
    /// `STOPPING=1`: the app is about to end by itself.
    case stopping
    /// `MAINPID=`: another process of the app is the main process now.
    case mainProcessChanged(pid: Int32)
    /// A process of the app has connected, or a connection has ended: what all connections of the run handle together.
    case attached(HandledNotices)
    /// The app has finished what it does after `willTerminate`: what is left of it may be killed at once (L46).
    case terminationAnswered
    /// The app says that it has nothing to do until something arrives, or takes that back (L51).
    case idleHinted(Bool)
    /// After `Notice.takeSnapshot`: the snapshot is stored, or there is none (L18).
    case snapshotTaken
    /// After `Notice.takeSceneSnapshot`: the same for a scene (L34).
    case sceneSnapshotTaken(SceneID)
    /// After `Notice.withdraw`: it advertises nothing any more (L43).
    case withdrawn
}

/// The origin of a request (L53): a request is a user's if it comes from outside every app.
package enum Requester: Hashable, Sendable {
    case user
    /// A process of an app. `nil`: the app is not known.
    case app(AppID?)
}

/// What a client can ask of an app.
package enum Request: Hashable, Sendable {
    /// `environment`: variables for this launch alone, as `NAME=value`.
    indirect case launch(LaunchState, reason: LaunchReason, url: String?, environment: [String] = [])
    case activate
    case background
    /// L13: an interruption begins.
    case interrupt
    /// L13: an interruption begins. It ends with the connection of the requester at the latest (`requestAbandoned`).
    case interruptWhileConnected
    /// L13: an interruption ends.
    case endInterruption
    /// L46.
    case terminate
    /// L42: the user removed it.
    case remove
    /// L30.
    case push(payload: String)
    /// L31.
    case send(Notification)
    /// L8: brings the app to the foreground, or launches it there, and gives it the URL.
    case open(url: String)
    /// L21: a user wants the tasks of this name to end.
    case cancelTask(name: String)
    /// L34: of one of its scenes.
    case scene(SceneID, SceneRequest)
}

/// Why a program could not be started.
package struct SpawnProblem: Hashable, Sendable {
    /// One sentence, without the full stop.
    package var sentence: String
    /// The number that systemd.exec(5) gives to what failed: 203 is EXEC.
    package var exitStatus: Int32

    package init(sentence: String, exitStatus: Int32) {
        self.sentence = sentence
        self.exitStatus = exitStatus
    }
}

/// How a process ended.
package enum ExitStatus: Hashable, Sendable {
    case exited(Int32)
    case signaled(Int32, coreDumped: Bool)
    /// The kernel does not report it: the process was not a child of this daemon, or ended while there was no daemon.
    case unknown
    /// The process ended with the machine.
    case lost

    static let sigkill: Int32 = 9

    var isKill: Bool {
        switch self {
        case .signaled(Self.sigkill, coreDumped: _): true
        case .signaled, .exited, .unknown, .lost: false
        }
    }
}

/// Processes of a run whose main process has exited.
package struct RemainingProcesses: Hashable, Sendable {
    package static let maximumNames = 3

    package var count: Int
    /// Different names (comm) of some of them, at most `maximumNames`.
    package var names: [String]

    package init(count: Int, names: [String]) {
        self.count = count
        self.names = Array(names.prefix(Self.maximumNames))
    }
}

/// What is measured before a missed deadline kills.
package struct Inspection: Hashable, Sendable {
    /// A debugger is attached (L48).
    package var traced: Bool
    /// Processor time that the run has used.
    package var cpu: Duration
    /// Its size in bytes.
    package var memory: UInt64
    /// By how many bytes `memory` may be too large.
    package var uncertainty: UInt64 = 0
    /// Its processes, if the main process has exited.
    package var remaining: RemainingProcesses?
    /// For how long it was ready to run and got no processor, since its launch or its last notice with a deadline (L48).
    package var waited: Duration
    /// What a launch waits for, as the end of a sentence, with at most `maximumObstacle` bytes: `the PID file /run/x.pid does not exist`.
    package var obstacle: String?

    package static let maximumObstacle = 512

    package init(
        traced: Bool, cpu: Duration, memory: UInt64, remaining: RemainingProcesses? = nil, waited: Duration = .zero
    ) {
        self.traced = traced
        self.cpu = cpu
        self.memory = memory
        self.remaining = remaining
        self.waited = waited
    }
}

/// What a run has done since its launch.
package struct RunActivity: Hashable, Sendable {
    /// Processor time that it has used.
    package var cpu: Duration
    /// For how long it was ready to run and got no processor.
    package var waited: Duration
    /// Its main process runs, or is ready to run. The kernel adds the time on a run queue only when the process gets a processor
    /// (kernel: scheduler/sched-stats.rst), so one that got none since it was measured last has otherwise done nothing.
    package var isRunnable = false
    /// Whether one of its processes listens on a socket; `nil`: that was not measured.
    package var listens: Bool?
    /// No process was found that listens, and these could not be examined. Only of an app of `Type=listening`.
    package var hiddenSockets: HiddenSockets?

    package init(cpu: Duration, waited: Duration, listens: Bool? = nil, hiddenSockets: HiddenSockets? = nil) {
        self.cpu = cpu
        self.waited = waited
        self.listens = listens
        self.hiddenSockets = hiddenSockets
    }
}

/// The outcome of a wake, as the app reports it (L30).
package enum WakeResult: String, CaseIterable, Hashable, Sendable {
    case newData = "new-data"
    case noData = "no-data"
    case failed
}

/// L36.
package enum MemoryLevel: Int, Comparable, CaseIterable, Hashable, Sendable {
    case normal, warning, critical
    package static func < (a: MemoryLevel, b: MemoryLevel) -> Bool { a.rawValue < b.rawValue }
}

/// The machine's memory and the sizes of apps. Sizes are in bytes.
package struct MemoryReading: Hashable, Sendable {
    package struct Size: Hashable, Sendable {
        package var run: RunID
        package var bytes: UInt64
        /// By how much `bytes` may be too large: pages that processes share after a fork are counted for each.
        package var uncertainty: UInt64
        package init(run: RunID, bytes: UInt64, uncertainty: UInt64 = 0) {
            self.run = run
            self.bytes = bytes
            self.uncertainty = uncertainty
        }
    }

    /// The tightest limit that counts for the apps: of a container, or of the service (`MemoryMax=`), on the way up from the
    /// apps' group to the root.
    package struct Limit: Hashable, Sendable {
        /// The group that has the limit, as /proc/self/cgroup names it.
        package var group: String
        package var total: UInt64
        /// What programs can allocate below the limit without a kill: page cache and reclaimable slab count as available.
        package var available: UInt64
        /// How often the kernel's OOM killer has killed below this limit (`oom_kill` of memory.events).
        package var kills: UInt64

        package init(group: String, total: UInt64, available: UInt64, kills: UInt64 = 0) {
            self.group = group
            self.total = total
            self.available = available
            self.kills = kills
        }
    }

    /// How long tasks have stalled on memory since the machine, or the group that has the limit, was started (PSI `total=`).
    package struct Stalls: Hashable, Sendable {
        /// At least one task.
        package var some: Duration
        /// All tasks that could run.
        package var full: Duration

        package init(some: Duration, full: Duration) {
            self.some = some
            self.full = full
        }
    }

    package var total: UInt64
    package var available: UInt64
    /// 0: the machine has no swap.
    package var swapTotal: UInt64 = 0
    package var swapFree: UInt64 = 0
    /// What was read again from disk or swap soon after it was evicted, since the machine was started
    /// (`workingset_refault_*` of /proc/vmstat, in bytes).
    package var refaulted: UInt64 = 0
    /// `nil`: no limit below the machine's memory.
    package var limit: Limit?
    /// `nil`: the kernel has no pressure stall information.
    package var stalls: Stalls?
    /// What apps without a process have stored in memory for their next launch (`FDSTORE=1`).
    package var stored: UInt64 = 0
    package var sizes: [Size]

    package init(total: UInt64, available: UInt64, sizes: [Size]) {
        self.total = total
        self.available = available
        self.sizes = sizes
    }
}
