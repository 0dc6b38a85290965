/// Everything that can happen, as the daemon reports it to the core. Cases are named in the past tense. The large ones are on the
/// heap, so that every event is small to pass.
///
/// Each topic has its events in a file of its folder, with the methods that handle them and their saved form.
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

/// What can happen to one run, by topic: outcomes of effects, and what the app's processes say.
package enum RunEvent: Hashable, Sendable {
    case process(ProcessEvent)
    case transition(TransitionEvent)
    case deadline(DeadlineEvent)
    case watchdog(WatchdogEvent)
    case suspension(SuspensionEvent)
    case memory(RunMemoryEvent)
    case traffic(TrafficEvent)
    case processor(ProcessorEvent)
    /// The commands of the hook with this number ended, or the next daemon cannot find out how.
    case hookEnded(number: Int, HookOutcome)
    case task(TaskEvent)
    case mode(ModeEvent)
    case scene(SceneEvent)
    case wake(WakeEvent)
    case connection(ConnectionEvent)
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
