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
        case .unwatched:
            let call = verdict.call ?? -1
            return "\(name) is in \(systemCallName(call))\(object(of: call, in: thread))"
        case .shortWait:
            let time = verdict.length?.inWords ?? "a short time"
            return "\(name) waits for \(time) in \(systemCallName(verdict.call ?? -1))"
        }
    }

    /// What the descriptor is that a call was given: ` on a pipe`; empty: it is not known, or the call has none.
    private func object(of call: Int, in thread: Int) -> String {
        let proc = ProcFS()
        guard let name = unwatchedCalls[call], callsOfDescriptors.contains(name), let pid = processOf[thread],
            let bytes = (try? proc.readRecord("task/\(thread)/syscall", of: pid, limit: 512)) ?? nil,
            case .call(let shown)? = ShownActivity(parsing: bytes), shown.number == call,
            let target = linkTarget(
                "\(proc.root)/\(pid)/fd/\(Int32(truncatingIfNeeded: shown.arguments[0]))", limit: 4097)
        else { return "" }
        if target.starts(with: "pipe:".utf8) { return " on a pipe" }
        if target.starts(with: "socket:".utf8) { return " on a socket" }
        return " on \(target.text.printable(upTo: 64))"
    }

    private func name(of thread: Int) -> String {
        guard thread > 0 else { return "timer descriptor \(-thread & 0xff_ffff) of process \(-thread >> 24)" }
        let comm =
            (processOf[thread].flatMap { try? ProcFS().readRecord("task/\(thread)/comm", of: $0, limit: 64) }) ?? nil
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

private func systemCallName(_ number: Int) -> String {
    if number == Wait.timerDescriptor { return "timerfd_settime(2)" }
    let name = WatchedCall.all[number]?.name ?? unwatchedCalls[number]
    return name.map { "\($0)(2)" } ?? "system call \(number)"
}

/// Those whose first argument is a descriptor.
private let callsOfDescriptors: Set<String> = [
    "connect", "fcntl", "fdatasync", "flock", "fsync", "pread64", "pwrite64", "sendfile", "sendmmsg", "sendmsg",
    "sendto",
    "splice", "tee", "write", "writev",
]

/// Names of other calls in which programs wait.
#if arch(x86_64)
    private let unwatchedCalls: [Int: String] = [
        1: "write", 2: "open", 17: "pread64", 18: "pwrite64", 20: "writev", 40: "sendfile", 42: "connect", 44: "sendto",
        46: "sendmsg", 65: "semop", 69: "msgsnd", 70: "msgrcv", 72: "fcntl", 73: "flock", 74: "fsync", 75: "fdatasync",
        220: "semtimedop", 242: "mq_timedsend", 257: "openat", 275: "splice", 276: "tee", 307: "sendmmsg",
        326: "copy_file_range", 426: "io_uring_enter", 449: "futex_waitv",
    ]
#elseif arch(arm64)
    private let unwatchedCalls: [Int: String] = [
        25: "fcntl", 32: "flock", 56: "openat", 64: "write", 66: "writev", 67: "pread64", 68: "pwrite64",
        71: "sendfile",
        76: "splice", 77: "tee", 82: "fsync", 83: "fdatasync", 182: "mq_timedsend", 188: "msgrcv", 189: "msgsnd",
        192: "semtimedop", 193: "semop", 203: "connect", 206: "sendto", 211: "sendmsg", 269: "sendmmsg",
        285: "copy_file_range", 426: "io_uring_enter", 449: "futex_waitv",
    ]
#else
    private let unwatchedCalls: [Int: String] = [:]
#endif
