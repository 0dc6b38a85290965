import Control
import LifecycleCore
import Manifest
import Reports

/// Why an app is awake, and what wakes it (L50, L51).
extension ControlService {
    /// - Parameter status: has the time of the app's state already.
    func setWakefulness(_ status: inout AppStatus, _ view: AppView) {
        let now: (instant: Instant, time: Timestamp) = (driver.now, clock.now())
        let shown = view.awake.prefix(AwakeStatus.maximum)
        let times = awakeTimestamps.timestamps(of: view.id, since: shown.map(\.since), now: now)
        status.awake = zip(shown, times).map { reason, time in
            var awake = AwakeStatus(reason.reason, detail: reason.detail)
            // The time of the state was fixed when it was entered.
            awake.since = reason.since == view.since ? status.since : time
            if reason.reason == .launching, let hidden = view.hiddenSockets {
                awake.explanation = "it is launching, and has to listen (Type=listening); \(hidden.phrase)"
            }
            return awake
        }
        status.heldLocks = view.heldLocks.map(LockStatus.init)
        status.deferredWake = view.deferredWake.map { DeferredWakeStatus($0, of: view) }
        status.suspendsIn = view.suspendsIn
        status.shortestWait = view.shortestWait
        status.timerIn = view.timerIn
        status.pulseIn = view.pulseIn
        status.watch = view.watch.map { watchStatus($0, of: view.id) }
        if view.onlyRequestsWake { status.wakeProblem = context.manifests[view.id]?.policy.whyOnlyRequestsWake }
        status.throttle = view.processorExcess.map { use in
            var throttle = ThrottleStatus()
            throttle.explanation =
                "it used \(use.amount) in the background; the limit is \(use.limitText) (BackgroundCPULimit=)"
            throttle.since = view.throttledSince.map {
                throttleTimestamps.timestamp(of: view.id, since: $0, now: now)
            }
            return throttle
        }
        guard view.run != nil else { return }
        status.trafficWakes = UInt64(max(0, view.trafficWakes))
        status.lastInput = view.lastInput.map { input in
            var last = InputStatus(input)
            last.at = view.lastInputAt.map { inputTimestamps.timestamp(of: view.id, since: $0, now: now) }
            return last
        }
    }

    /// What a user who launches the app should know about its settings.
    func launchWarnings(of id: AppID) -> [String] {
        guard let policy = context.manifests[id]?.policy, policy.idleTime < longestTimeSpan else { return [] }
        guard policy.onlyRequestsWake || view(of: id)?.hadNoWaker ?? false else { return [] }
        return ["once it is suspended, \(policy.whyOnlyRequestsWake)"]
    }

    /// The watch, with the settings of the manifest that decide what wakes the app. A manifest that was removed has none left
    /// to show.
    private func watchStatus(_ watch: InputWatch, of id: AppID) -> WatchStatus {
        var status = WatchStatus(watch)
        guard let policy = context.manifests[id]?.policy else { return status }
        guard policy.wakesOnTraffic else {
            status.onlyPeers = true
            return status
        }
        let threshold = policy.wakeThreshold
        if threshold.bytes > 1 {
            status.thresholdBytes = threshold.bytes
            status.thresholdTime = threshold.time
        }
        return status
    }
}

extension AwakeStatus {
    /// - Parameter found: which thread does what; empty: not known.
    fileprivate init(_ reason: AwakeReason, detail found: String) {
        self.init()
        self.reason = reason.word
        detail = reason.detail ?? (found.isEmpty ? nil : found)
        explanation = reason.explanation + (found.isEmpty ? "" : ": \(found)")
    }
}

extension AwakeReason {
    /// The word of the control interface.
    var word: String {
        switch self {
        case .launching: "launching"
        case .foreground: "foreground"
        case .enteringBackground: "enteringBackground"
        case .task: "task"
        case .mode: "mode"
        case .inhibitor: "inhibitor"
        case .wake: "wake"
        case .hook: "hook"
        case .startUp: "startUp"
        case .work(let work): work.rawValue
        case .wokenTooOften: "wokenTooOften"
        case .notWatchable: "notWatchable"
        case .fileLock: "fileLock"
        case .resource: "resource"
        case .suspendDelay: "suspendDelay"
        case .neverSuspended: "neverSuspended"
        case .dryRun: "dryRun"
        case .suspending: "suspending"
        case .waking: "waking"
        case .terminating: "terminating"
        }
    }

    fileprivate var detail: String? {
        switch self {
        case .task(let name): name
        case .mode(let mode, _): mode.name
        case .inhibitor(let text): text
        case .wake(let reason): reason.rawValue
        case .fileLock(let file): file
        case .resource(let path): path
        case .hook(let kind): kind.rawValue
        case .launching, .foreground, .enteringBackground, .startUp, .work, .wokenTooOften, .notWatchable,
            .suspendDelay, .neverSuspended, .dryRun, .suspending, .waking, .terminating:
            nil
        }
    }

    /// For people. Follows "It is awake:".
    var explanation: String {
        switch self {
        case .launching: "it is launching"
        case .foreground: "it is in the foreground"
        case .enteringBackground: "it was notified that it is in the background, and has not answered yet"
        case .task(let name): "the task '\(name)' is open"
        case .mode(let mode, false): "it is in the mode '\(mode.name)' (BackgroundModes=)"
        case .mode(.audio, true): "it plays audio, as greenroom-session reports (BackgroundModes=audio)"
        case .mode(.recording, true): "it records, as greenroom-session reports (BackgroundModes=recording)"
        case .mode(.call, true):
            "it is in a call, as ModemManager or greenroom-session reports (BackgroundModes=call)"
        case .mode(.accessory, true): "it has an accessory open (BackgroundModes=accessory)"
        case .mode(let mode, true): "it is in the mode '\(mode.name)', as a client reports (BackgroundModes=)"
        case .inhibitor(let text): "a process of it holds an inhibitor of logind: \(text)"
        case .wake(let reason): "it was woken: \(reason.rawValue)"
        case .hook(let kind): "it runs \(kind.rawValue)="
        case .startUp: "it starts up (StartupSec=)"
        case .work(let work): work.explanation
        case .wokenTooOften: "it was woken within 1s of each of its last suspensions"
        case .notWatchable: "its descriptors cannot be watched: while it is suspended, no input would reach it"
        case .fileLock(let file): "it holds a lock on \(file)"
        case .resource(let path): "it holds \(path) (Releases=)"
        case .suspendDelay: "it has nothing to do"
        case .neverSuspended: "its manifest says Suspend=no, or Essential=yes"
        case .dryRun: "it would be suspended, but for Suspend=dry-run"
        case .suspending: "it is being suspended"
        case .waking: "it is being thawed"
        case .terminating: "it is terminating"
        }
    }
}

extension WorkReason {
    fileprivate var explanation: String {
        switch self {
        case .cpu: "it uses the processor"
        case .processes: "processes of it began or ended"
        case .unreadInput: "it has not read all of its input"
        case .unsentOutput: "its peers have not received all of its output"
        case .traffic: "it waits in ticks, and was at work for a connection, a pipe or a file within RequestSec="
        case .shortWait: "a thread waits for a short time"
        case .connection: "a client is connected (KeepAwake=connections)"
        case .timer: "it waits in ticks (KeepAwake=timers)"
        case .unwatchedCall: "a thread is in a call whose end cannot be seen while it is frozen"
        case .unreadable: "what a thread waits for cannot be read"
        case .timerSoon: "a timer of it is due within 2s"
        case .request: "it has not answered a request of its standard input (run --protocol=)"
        }
    }
}

extension LockStatus {
    init(_ locks: FileLocks) {
        self.init()
        count = UInt64(max(0, locks.count))
        file = locks.file
        if locks.isResource { isResource = true }
    }
}

extension DeferredWakeStatus {
    /// - Parameter view: of the app.
    init(_ wake: AppView.DeferredWake, of view: AppView) {
        self.init()
        reason = "backgroundTimeUsedUp"
        let limit = view.unrequestedTimeLimit.map { " of \($0.timeSpan)" } ?? ""
        explanation = "its background time\(limit) in an hour is used up (BackgroundTimePerHourSec=)"
        input = wake.input.map { InputStatus($0) }
        remaining = wake.remaining
    }
}
