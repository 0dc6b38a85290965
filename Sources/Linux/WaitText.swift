import Idleness
import Posix

extension WorkFindings {
    /// Which thread keeps an app awake, in which call, as `status` shows it: `thread 4711 (worker) waits in write(2)`. Empty: none does.
    func text(of verdict: WaitVerdict) -> String {
        guard let work = verdict.work, let thread = verdict.thread else {
            return verdict.tick.map { "its threads wait for \($0.inWords) at a time" } ?? ""
        }
        let name = self.name(of: thread)
        switch work {
        case .running: return "\(name) runs"
        case .uninterruptible: return "\(name) waits for a device or a page"
        case .unreadable: return "what \(name) waits for cannot be read"
        case .unwatched: return "\(name) is in \(systemCallName(verdict.call ?? -1))"
        case .shortWait:
            let time = verdict.length?.inWords ?? "a short time"
            return "\(name) waits for \(time) in \(systemCallName(verdict.call ?? -1))"
        }
    }

    private func name(of thread: Int) -> String {
        guard thread > 0 else { return "timer descriptor \(-thread & 0xff_ffff) of process \(-thread >> 24)" }
        let comm = (processOf[thread].flatMap { try? ProcFS().read("task/\(thread)/comm", of: $0, limit: 64) }) ?? nil
        guard let comm else { return "thread \(thread)" }
        return "thread \(thread) (\(comm.dropLast().text.printable(upTo: 24)))"
    }
}

extension Duration {
    /// `500ms`, `2.4s`, `30s`
    fileprivate var inWords: String {
        let milliseconds = components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
        if milliseconds < 1000 { return "\(milliseconds)ms" }
        return milliseconds % 1000 == 0
            ? "\(milliseconds / 1000)s" : "\(milliseconds / 1000).\(milliseconds % 1000 / 100)s"
    }
}

/// Names of system calls in which threads sleep.
private func systemCallName(_ number: Int) -> String {
    if number == Wait.timerDescriptor { return "timerfd_settime(2)" }
    return systemCallNames[number].map { "\($0)(2)" } ?? "system call \(number)"
}

#if arch(x86_64)
    private let systemCallNames: [Int: String] = [
        0: "read", 1: "write", 2: "open", 7: "poll", 17: "pread64", 18: "pwrite64", 19: "readv", 20: "writev",
        23: "select",
        35: "nanosleep", 40: "sendfile", 42: "connect", 43: "accept", 44: "sendto", 45: "recvfrom", 46: "sendmsg",
        47: "recvmsg", 61: "wait4", 64: "semget", 65: "semop", 69: "msgsnd", 70: "msgrcv", 72: "fcntl", 73: "flock",
        74: "fsync", 75: "fdatasync", 128: "rt_sigtimedwait", 202: "futex", 208: "io_getevents", 220: "semtimedop",
        230: "clock_nanosleep", 232: "epoll_wait", 242: "mq_timedsend", 243: "mq_timedreceive", 247: "waitid",
        257: "openat", 270: "pselect6", 271: "ppoll", 275: "splice", 276: "tee", 281: "epoll_pwait", 288: "accept4",
        299: "recvmmsg", 307: "sendmmsg", 326: "copy_file_range", 426: "io_uring_enter", 441: "epoll_pwait2",
        449: "futex_waitv",
    ]
#elseif arch(arm64)
    private let systemCallNames: [Int: String] = [
        4: "io_getevents", 22: "epoll_pwait", 25: "fcntl", 32: "flock", 56: "openat", 63: "read", 64: "write",
        65: "readv",
        66: "writev", 67: "pread64", 68: "pwrite64", 71: "sendfile", 72: "pselect6", 73: "ppoll", 76: "splice",
        77: "tee",
        82: "fsync", 83: "fdatasync", 95: "waitid", 98: "futex", 101: "nanosleep", 115: "clock_nanosleep",
        137: "rt_sigtimedwait", 182: "mq_timedsend", 183: "mq_timedreceive", 188: "msgrcv", 189: "msgsnd",
        192: "semtimedop", 193: "semop", 202: "accept", 203: "connect", 206: "sendto", 207: "recvfrom", 211: "sendmsg",
        212: "recvmsg", 242: "accept4", 243: "recvmmsg", 260: "wait4", 269: "sendmmsg", 285: "copy_file_range",
        426: "io_uring_enter", 441: "epoll_pwait2", 449: "futex_waitv",
    ]
#else
    private let systemCallNames: [Int: String] = [:]
#endif
