import CLinux
import Glibc

/// How a process ended.
package enum EndStatus: Equatable {
    case exited(Int32)
    case signaled(Int32, coreDumped: Bool)
}

/// What the kernel says of a child that ended.
package struct ExitReport: Equatable {
    package var status: EndStatus
    /// User and system time, of itself and of the children it waited for.
    package var cpu: Duration
    /// Its largest resident size, in bytes (of itself or of its largest child, and of what it was before execve(2): a copy
    /// of its parent).
    package var maxRSS: UInt64

    package init(status: EndStatus, cpu: Duration, maxRSS: UInt64) {
        self.status = status
        self.cpu = cpu
        self.maxRSS = maxRSS
    }
}

/// A child that changed but did not end.
package struct StopReport: Equatable {
    package enum Change: Equatable {
        case stopped(signal: Int32)
        case continued
    }
    package var pid: Int32
    package var change: Change

    package init(pid: Int32, change: Change) {
        self.pid = pid
        self.change = change
    }
}

/// What came of sending a signal.
package enum SignalResult: Equatable {
    case sent
    /// It has ended and was reaped, or is a zombie that can take no signal.
    case gone
    /// It belongs to another user now (a set-user-ID program).
    case notPermitted
}

/// A process known by its pidfd, never by a number that could have been given away.
package final class Process {
    package let pid: Int32
    private let pidfd: Descriptor

    package init(pid: Int32, pidfd: consuming Descriptor) {
        self.pid = pid
        self.pidfd = pidfd
    }

    /// Opens the process that has this number now; nil if there is none. Compare its start time with what is known of
    /// it before trusting the number.
    package static func open(_ pid: Int32) throws(SystemError) -> Process? {
        let result = clinux_pidfd_open(pid)
        // ENOENT: newer kernels (6.16) say so of a thread that is no process; EINVAL: older ones, and pid <= 0.
        if result == -ESRCH || result == -EINVAL || result == -ENOENT { return nil }
        return Process(pid: pid, pidfd: Descriptor(adopting: try check(result, "pidfd_open", "\(pid)")))
    }

    /// Readable when the process has ended.
    package var descriptor: Int32 { pidfd.raw }

    package func duplicateDescriptor() throws(SystemError) -> Descriptor { try pidfd.duplicate() }

    @discardableResult
    package func signal(_ signal: Int32) throws(SystemError) -> SignalResult {
        let result = clinux_pidfd_signal(pidfd.raw, signal)
        if result == -ESRCH { return .gone }
        if result == -EPERM { return .notPermitted }
        try check(result, "pidfd_send_signal", "\(pid)")
        return .sent
    }

    /// The end of a child of ours, once; nil while it runs, or when it is no child of ours or was reaped before.
    package func reap() throws(SystemError) -> ExitReport? {
        try Reaping.wait(type: Reaping.byPidfd, id: pidfd.raw, options: WEXITED)?.report
    }

    /// How it ended, whoever's child it was: since Linux 6.15, and once its parent has reaped it; `nil`: not known (yet).
    package func exitStatus() throws(SystemError) -> EndStatus? {
        var status: Int32 = 0
        guard try check(clinux_pidfd_exit(pidfd.raw, &status), "ioctl PIDFD_GET_INFO", "\(pid)") == 1 else {
            return nil
        }
        let signal = status & 0x7f
        return signal == 0 ? .exited((status >> 8) & 0xff) : .signaled(signal, coreDumped: status & 0x80 != 0)
    }

    /// Whether it has ended, whoever's child it is: asks its descriptor, as far as that is a process's.
    package var isOver: Bool {
        var polled = pollfd(fd: pidfd.raw, events: Int16(POLLIN), revents: 0)
        return poll(&polled, 1, 0) > 0
    }

    /// Whether this process, our child, has ended; leaves it to be reaped.
    package func hasEnded() throws(SystemError) -> Bool {
        try Reaping.wait(type: Reaping.byPidfd, id: pidfd.raw, options: WEXITED | WNOWAIT) != nil
    }
}

/// What the kernel says of this process.
package enum OwnProcess {
    /// Its largest resident size so far, in bytes.
    package static var peakBytes: UInt64 {
        var usage = rusage()
        let itself: Int32 = 0  // RUSAGE_SELF, an enum case that Swift does not take for the parameter's type
        return getrusage(itself, &usage) == 0 ? UInt64(max(0, usage.ru_maxrss)) * 1024 : .max
    }
}

/// Waiting for children without ever blocking.
package enum Reaping {
    static let byPidfd: Int32 = 3  // P_PIDFD, an enum case that Swift sees as another type in each libc

    /// All children that stopped or continued since the last call. Freezing in process-group mode stops processes too:
    /// the caller knows whom it froze. At most `limit` at a time, so that a child that stops itself in a loop cannot
    /// hold the daemon.
    package static func reapStops(limit: Int = 256) throws(SystemError) -> [StopReport] {
        var reports: [StopReport] = []
        while reports.count < limit, let change = try wait(type: 0, id: 0, options: WSTOPPED | WCONTINUED) {
            // A tracer's stop (CLD_TRAPPED) is none of ours to report.
            if change.code == 5 {
                reports.append(StopReport(pid: change.pid, change: .stopped(signal: change.status)))
            } else if change.code == 6 {
                reports.append(StopReport(pid: change.pid, change: .continued))
            } else {
                break
            }
        }
        return reports
    }

    /// Reaps children that nobody holds a `Process` of: orphans that the kernel handed to us because we are their
    /// subreaper, or process 1 of a container.
    ///
    /// A main process that has ended hides those behind it from this kind of wait: call again once it was reaped.
    /// - Parameter isMain: whether a pid is left to `Process.reap()`.
    package static func reapOrphans(
        sparing isMain: (Int32) -> Bool, limit: Int = 1024
    ) throws(SystemError) -> [(pid: Int32, report: ExitReport)] {
        var reaped: [(pid: Int32, report: ExitReport)] = []
        while reaped.count < limit, let next = try wait(type: 0, id: 0, options: WEXITED | WNOWAIT),
            !isMain(next.pid), let end = try wait(type: 1, id: next.pid, options: WEXITED)
        {
            reaped.append((next.pid, end.report))
        }
        return reaped
    }

    static func wait(type: Int32, id: Int32, options: Int32) throws(SystemError) -> ChildChange? {
        var change = ChildChange()
        let result = clinux_wait(type, id, options, &change)
        if result == -ECHILD { return nil }
        try check(result, "waitid")
        return change.pid == 0 ? nil : change
    }
}

typealias ChildChange = clinux_wait_result

extension clinux_wait_result {
    var report: ExitReport {
        let end: EndStatus =
            switch code {
            case 1: .exited(status)  // CLD_EXITED
            default: .signaled(status, coreDumped: code == 3)  // CLD_KILLED 2, CLD_DUMPED 3
            }
        return ExitReport(status: end, cpu: .microseconds(Int64(cpu_microseconds)), maxRSS: max_rss_bytes)
    }
}
