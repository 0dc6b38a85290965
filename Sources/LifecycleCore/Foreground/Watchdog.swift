/// What the app says to the watchdog of the foreground, as with systemd.
package enum WatchdogEvent: Hashable, Sendable {
    case heartbeat
    /// `WATCHDOG=trigger`: the app asks to be treated as if it had missed a heartbeat.
    case triggered
    /// `WATCHDOG_USEC=`: the time between heartbeats for the rest of the run, instead of `WatchdogSec=`; zero: none is expected.
    case timeChanged(to: Duration)
}

extension LifecycleCore {
    mutating func handle(_ event: WatchdogEvent, _ index: AppIndex, _ now: Instant) {
        switch event {
        case .heartbeat: heartbeat(index, now)
        case .triggered: watchdogTriggered(index, now)
        case .timeChanged(let time): heartbeatTimeChanged(index, time, now)
        }
    }

    private mutating func heartbeat(_ index: AppIndex, _ now: Instant) {
        guard case .foreground(var foreground)? = apps[index].execution, foreground.watchdog != nil else { return }
        foreground.watchdog?.restart(at: now)
        update(index, .foreground(foreground))
    }

    /// How long the app may be in the foreground without a heartbeat; `nil`: for any time.
    func heartbeatTime(_ index: AppIndex) -> Duration? {
        let time = storage(index).run.heartbeatTime ?? apps[index].policy.watchdog
        return time == .zero ? nil : time
    }

    /// As with systemd, the time counts from the message on.
    private mutating func heartbeatTimeChanged(_ index: AppIndex, _ time: Duration, _ now: Instant) {
        guard apps[index].ending == nil else { return }
        self[run: index].heartbeatTime = time
        guard case .foreground(var foreground)? = apps[index].execution else { return }
        if foreground.watchdog?.allowed == time { return heartbeat(index, now) }
        cancel(index, foreground.watchdog)
        foreground.watchdog = begin(index, .watchdog, heartbeatTime(index), now)
        update(index, .foreground(foreground))
    }

    /// Whether or not heartbeats are expected, and in every state in which the app is to run on.
    private mutating func watchdogTriggered(_ index: AppIndex, _ now: Instant) {
        switch apps[index].phase {
        case .notRunning, .terminating, .ending: return
        case .launching, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking: break
        }
        if case .foreground(var foreground)? = apps[index].execution {
            cancel(index, foreground.watchdog)
            foreground.watchdog = nil
            update(index, .foreground(foreground))
        }
        guard let deadline = begin(index, .watchdog, .zero, now) else { return }
        let use = deadlineUse(index, deadline, cpu: nil, now)
        kill(
            index, .missedDeadline(use), .missedDeadline, reporting: .deadlineMissed(apps[index].id, .watchdog), now)
    }
}

extension WatchdogEvent: SavedUnion {
    package func save(to writer: inout ByteWriter) {
        switch self {
        case .heartbeat: writer.put(case: 19)
        case .triggered: writer.put(case: 20)
        case .timeChanged(let time): writer.put(case: 62, time)
        }
    }

    package init?(case number: UInt64, _ values: inout RecordReader) throws(SavedError) {
        switch number {
        case 19: self = .heartbeat
        case 20: self = .triggered
        case 62: self = .timeChanged(to: try values.next())
        default: return nil
        }
    }
}
