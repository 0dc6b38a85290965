import Glibc
import LifecycleCore
import Linux
import Posix
import Systemd

extension Requester {
    /// Finds out whether a call comes from a process of an app (L53). A caller that no longer exists counts as one: a process
    /// of an app could pass its connection on and end.
    init(of call: MethodCall, _ containment: Containment) {
        // The pid is 0 if the process is in a pid namespace that is not visible here, so it is outside of every app.
        guard let caller = call.credentials, caller.pid > 0 else {
            self = .user
            return
        }
        // The apps of an unprivileged daemon run as its user. Processes of other users may be invisible to it.
        if geteuid() != 0, caller.uid != geteuid() {
            self = .user
            return
        }
        let connected = call.sender == nil ? call.peer.connected : nil
        if let connected, Self.isYounger(caller.pid, than: connected) {
            self = .app(nil)
            return
        }
        switch (try? containment.owner(of: caller.pid)) ?? .ended {
        case .app(let name): self = .app(AppID(name))
        case .ended: self = .app(nil)
        case .other: self = .user
        }
    }

    /// Whether a process started after its connection began, so that it has the pid of another one.
    private static func isYounger(_ pid: Int32, than connected: Duration) -> Bool {
        guard let start = (try? ProcFS().stat(of: pid))?.startTime else { return false }
        return isYounger(start: start, ticksPerSecond: UInt64(max(sysconf(Int32(_SC_CLK_TCK)), 1)), than: connected)
    }

    /// Whether a process started after its connection began. Both times are of CLOCK_BOOTTIME: CLOCK_MONOTONIC stops while the
    /// machine sleeps, and the start times of processes do not.
    /// - Parameter start: in ticks since boot, rounded down (`starttime` in proc_pid_stat(5)), so a process is never taken for
    ///   younger than it is.
    static func isYounger(start: UInt64, ticksPerSecond: UInt64, than connected: Duration) -> Bool {
        Duration.milliseconds(Int64(clamping: start &* 1000 / ticksPerSecond)) > connected
    }
}
