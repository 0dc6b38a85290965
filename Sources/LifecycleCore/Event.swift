/// Everything that can happen to the house, as the core hears of it. Named in the past tense. Those that carry a
/// `RunID` concern one run of one app; what comes for a run that is over is ignored.
package enum Event: Hashable, Sendable {
    // MARK: Configuration

    /// A manifest was read, for the first time or anew. `launches`: how often the app was launched before (L9).
    indirect case registered(AppID, AppPolicy, launches: Int)
    /// The manifest is gone. A running app runs on and is forgotten at its end.
    case unregistered(AppID)
    indirect case configured(ManagerPolicy)
    /// All manifests are known: what is to be launched at start is launched.
    case started
    /// This daemon goes on where another ended without a word: the core is as it was then. Before anything else.
    case recovered

    // MARK: Requests

    case requested(RequestID, AppID, Request)
    /// Whoever waited for the answer is gone. What was asked for is carried out all the same.
    case requestAbandoned(RequestID)
    /// Every app is ended in order; `immediately`: without a word.
    case shutdownRequested(immediately: Bool)

    // MARK: Outcomes of effects

    /// The process exists; its program is not executed yet.
    case spawned(RunID, pid: Int32)
    /// `execve` has succeeded.
    case executed(RunID)
    /// No program runs, and nothing is left of the attempt: neither `exited` nor `emptied` will follow.
    case spawnFailed(RunID, SpawnProblem)
    /// A notice with a deadline went out, or could not be given (`delivered`: false), as the program declares no signal for
    /// it or does not catch it: then it has nothing to finish (L17). `cpu`: what the app had used of the processor.
    case told(RunID, Notice, delivered: Bool, cpu: Duration)
    /// The whole group is frozen. `memory`: its size in bytes, which cannot change from here on.
    case frozen(RunID, attempt: Int, memory: UInt64)
    case thawed(RunID, attempt: Int)
    case inspected(RunID, Inspection)
    /// The main process has ended. The status is `.unknown` where nobody tells how: it was no child of ours.
    /// `cpu`: of the whole run; `memory`: its peak in bytes, for a life too short to have been measured; 0: not known.
    case exited(RunID, ExitStatus, cpu: Duration, memory: UInt64)
    /// No process of the run is left (L47).
    case emptied(RunID)

    /// After `recovered`: the run is there and in hand again. `heard`: nothing is lost of what it said meanwhile. `late`:
    /// something that was decided before is told to it only now.
    case reattached(RunID, heard: Bool, late: Bool = false)

    // MARK: What an app says

    case ready(RunID)
    case backgroundEntered(RunID)
    /// Its main process has stopped itself (L17).
    case stopped(RunID)
    case continued(RunID)
    /// `owner`: the pid that said so.
    case taskBegan(RunID, name: String, owner: Int32)
    case taskEnded(RunID, name: String)
    case timeoutExtended(RunID, by: Duration)
    case wakeCompleted(RunID, WakeResult)
    case heartbeat(RunID)
    /// `WATCHDOG=trigger`: the app asks for what a missed heartbeat would bring.
    case heartbeatGivenUp(RunID)
    /// `STOPPING=1`: it is about to end by itself.
    case stopping(RunID)
    /// `MAINPID=`: another of its processes is the main one now.
    case mainProcessChanged(RunID, pid: Int32)

    // MARK: The machine

    /// The machine is about to sleep or to be switched off, and waits for `allowSleep` (L15).
    case sleepRequested
    /// It has slept, or does not sleep after all.
    case awoke
    /// Nobody looks any more, until `unlocked` (L15).
    case locked
    case unlocked
    /// The time of `LifecycleCore.nextDeadline` has come.
    case deadlineReached
    case memoryMeasured(MemoryReading)
    /// A PSI trigger fired: the machine stalls for want of memory.
    case pressureStalled(MemoryLevel)
    case pressureSimulated(RequestID, MemoryLevel)
}

/// What can be asked for an app.
package enum Request: Hashable, Sendable {
    case launch(LaunchState, reason: LaunchReason, url: String?)
    case activate
    case background
    /// L13: an interruption begins.
    case interrupt
    /// L13: an interruption ends.
    case resume
    /// L46.
    case terminate
    /// L42: the user removed it.
    case remove
    /// L30.
    case push(payload: String)
    /// L31.
    case send(Notification)
}

/// Why no program runs.
package struct SpawnProblem: Hashable, Sendable {
    /// One sentence, without the full stop.
    package var sentence: String
    /// As systemd.exec(5) numbers what failed: 203 is EXEC.
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
    /// Nobody tells: it was no child of this daemon, or ended while there was none.
    case unknown
    /// The machine went down under it.
    case lost

    /// The signal that nothing survives.
    static let sigkill: Int32 = 9
    static let sigterm: Int32 = 15

    var isKill: Bool {
        switch self {
        case .signaled(Self.sigkill, coreDumped: _): true
        case .signaled, .exited, .unknown, .lost: false
        }
    }
}

/// What is looked up before a missed deadline kills.
package struct Inspection: Hashable, Sendable {
    /// A debugger is attached (L48).
    package var traced: Bool
    /// What the app has used of the processor since its launch.
    package var cpu: Duration
    /// Its size in bytes.
    package var memory: UInt64

    package init(traced: Bool, cpu: Duration, memory: UInt64) {
        self.traced = traced
        self.cpu = cpu
        self.memory = memory
    }
}

/// What came of a wake (L30).
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

/// The machine's memory and that of the apps which are not suspended, in bytes.
package struct MemoryReading: Hashable, Sendable {
    package struct Size: Hashable, Sendable {
        package var run: RunID
        package var bytes: UInt64
        package init(run: RunID, bytes: UInt64) {
            self.run = run
            self.bytes = bytes
        }
    }
    package var total: UInt64
    package var available: UInt64
    package var sizes: [Size]

    package init(total: UInt64, available: UInt64, sizes: [Size]) {
        self.total = total
        self.available = available
        self.sizes = sizes
    }
}
