import CLinux
import Glibc
package import Posix

/// How a process ended.
package enum EndStatus: Equatable {
    case exited(Int32)
    case signaled(Int32, coreDumped: Bool)
}

extension EndStatus {
    /// As wait(2) encodes it.
    package init(waitStatus: Int32) {
        let signal = waitStatus & 0x7f
        self = signal == 0 ? .exited((waitStatus >> 8) & 0xff) : .signaled(signal, coreDumped: waitStatus & 0x80 != 0)
    }
}

/// What the kernel reports about a child that has ended.
package struct ExitReport: Equatable {
    package var status: EndStatus
    /// User and system time of the process and of the children that it waited for.
    package var cpu: Duration
    /// The largest resident size in bytes, of the process or of its largest child. It includes the time before execve(2), when
    /// the process was a copy of its parent.
    package var maxRSS: UInt64

    package init(status: EndStatus, cpu: Duration, maxRSS: UInt64) {
        self.status = status
        self.cpu = cpu
        self.maxRSS = maxRSS
    }
}

/// A child that has stopped or continued.
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

/// The result of sending a signal.
package enum SignalResult: Equatable {
    case sent
    /// The process has ended and was reaped, or is a zombie.
    case gone
    /// The process belongs to another user now (a set-user-ID program).
    case notPermitted
}

/// A process, identified by its pidfd: its pid may belong to another process later.
package final class Process {
    package let pid: Int32
    /// The pidfd, readable when the process has ended.
    package let descriptor: SharedDescriptor

    package init(pid: Int32, pidfd: consuming Descriptor) {
        self.pid = pid
        descriptor = SharedDescriptor(pidfd)
    }

    /// Opens the process that has this pid now; `nil` without one. The caller compares its start time to be sure that it is the
    /// process it means.
    package static func open(_ pid: Int32) throws(SystemError) -> Process? {
        let result = clinux_pidfd_open(pid)
        // A thread that is not a process gives ENOENT since Linux 6.16, before EINVAL, as does pid <= 0.
        if result == -ESRCH || result == -EINVAL || result == -ENOENT { return nil }
        return Process(pid: pid, pidfd: Descriptor(adopting: try check(result, "pidfd_open", "\(pid)")))
    }

    /// The process of a pidfd that another program has sent; `nil`: it is none, the process is not visible here, or was reaped.
    package static func of(_ pidfd: consuming Descriptor) throws(SystemError) -> Process? {
        // "Pid:	4711"; 0 outside of this pid namespace, -1 once it was reaped. Files of other kinds have no such line.
        let bytes = try readFile(at: "/proc/self/fdinfo/\(pidfd.raw)", limit: 4096)
        var scanner = ByteScanner(bytes)
        while let line = scanner.line() {
            guard line.starts(with: "Pid:".utf8) else { continue }
            var words = ByteScanner(line.dropFirst(4))
            guard let pid: Int32 = words.number(), pid > 0 else { return nil }
            return Process(pid: pid, pidfd: pidfd)
        }
        return nil
    }

    @discardableResult
    package func signal(_ signal: Int32) throws(SystemError) -> SignalResult {
        let result = clinux_pidfd_signal(descriptor.raw, signal)
        if result == -ESRCH { return .gone }
        if result == -EPERM { return .notPermitted }
        try check(result, "pidfd_send_signal", "\(pid)")
        return .sent
    }

    /// Reaps the process. `nil` while it runs, and if it is not a child of this process or has been reaped.
    package func reap() throws(SystemError) -> ExitReport? {
        try Reaping.wait(type: Reaping.byPidfd, id: descriptor.raw, options: WEXITED)?.report
    }

    /// Returns how the process ended, also if it is not a child: until its parent has reaped it, and since Linux 6.15 afterwards.
    /// `nil`: it runs, this process may not know, or the kernel does not know any more.
    package func exitStatus() throws(SystemError) -> EndStatus? {
        var status: Int32 = 0
        if try check(clinux_pidfd_exit(descriptor.raw, &status), "ioctl PIDFD_GET_INFO", "\(pid)") == 1 {
            return EndStatus(waitStatus: status)
        }
        guard let found = try ProcFS().exitStatus(ofZombie: pid) else { return nil }
        // Once it is reaped, another process may have its pid.
        return clinux_pidfd_signal(descriptor.raw, 0) == -ESRCH ? nil : found
    }

    /// Whether the process has ended, also if it is not a child.
    package var isOver: Bool {
        var polled = pollfd(fd: descriptor.raw, events: Int16(POLLIN), revents: 0)
        return poll(&polled, 1, 0) > 0
    }

    /// Whether the process, a child of this one, has ended. It is not reaped.
    package func hasEnded() throws(SystemError) -> Bool {
        try Reaping.wait(type: Reaping.byPidfd, id: descriptor.raw, options: WEXITED | WNOWAIT) != nil
    }
}

/// What the kernel reports about this process.
package enum OwnProcess {
    /// The largest resident size so far, in bytes.
    package static var peakBytes: UInt64 {
        var usage = rusage()
        let itself: Int32 = 0  // RUSAGE_SELF, which Swift imports with another type than the parameter's
        return getrusage(itself, &usage) == 0 ? UInt64(max(0, usage.ru_maxrss)) * 1024 : .max
    }
}

/// Waits for children without blocking.
package enum Reaping {
    static let byPidfd: Int32 = 3  // P_PIDFD, whose Swift type differs between libcs

    /// Returns the children that have stopped or continued since the last call, at most `limit`, so that a child that stops
    /// itself in a loop cannot block the daemon. In process-group mode the processes that `freeze` stops are among them.
    package static func reapStops(limit: Int = 256) throws(SystemError) -> [StopReport] {
        var reports: [StopReport] = []
        while reports.count < limit, let change = try wait(type: 0, id: 0, options: WSTOPPED | WCONTINUED) {
            // The stop of a traced process (CLD_TRAPPED) is not reported.
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

    /// Reaps children without a `Process`: orphans that became children of this process because it is a subreaper, or process
    /// 1 of a container.
    ///
    /// A main process that has ended hides the children behind it from this wait: call again after it has been reaped.
    /// - Parameter isMain: whether a pid is left for `Process.reap()`.
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
