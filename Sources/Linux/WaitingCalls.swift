/// A system call in which a thread sleeps, as /proc/PID/task/TID/syscall shows it (proc_pid_syscall(5)).
struct ShownCall: Equatable {
    var number: Int
    var arguments: [UInt64]
}

/// What /proc/PID/task/TID/syscall shows.
enum ShownActivity: Equatable {
    /// On a processor, or ready.
    case running
    /// It sleeps in no system call: in a page fault, stopped, or it has ended.
    case outside
    case call(ShownCall)

    /// - Returns: `nil` if the bytes are not such a file.
    init?(parsing bytes: [UInt8]) {
        var scanner = ByteScanner(bytes)
        guard let first = scanner.word() else { return nil }
        if first.elementsEqual("running".utf8) {
            self = .running
            return
        }
        guard let number: Int = parseNumber(first) else { return nil }
        if number < 0 {
            self = .outside
            return
        }
        // Six arguments, the stack pointer and the program counter, as 0x….
        var values: [UInt64] = []
        while values.count < 8, let word = scanner.word() {
            guard word.starts(with: "0x".utf8), let value: UInt64 = parseNumber(word.dropFirst(2), radix: 16)
            else { return nil }
            values.append(value)
        }
        guard values.count == 8 else { return nil }
        self = .call(ShownCall(number: number, arguments: Array(values[..<6])))
    }
}

/// A system call in which a thread may wait while its program is frozen, because what ends it is watched.
struct WatchedCall {
    /// How the call says for how long it waits. The positions are those of its arguments, from 0.
    enum Timeout: Equatable {
        case none
        /// A number of milliseconds; negative: without end.
        case milliseconds(Int)
        /// The address of a `timespec`; 0: without end.
        case timespec(Int)
        case timeval(Int)
        /// The address of a `timespec` that is a time of CLOCK_REALTIME.
        case realTime(Int)
        case clockNanosleep
        case futex
    }

    let name: String
    let timeout: Timeout
    /// The argument that is a descriptor: if it is a file, a device, or of an unknown kind, nothing shows the end of the wait.
    var descriptor: Int?
    /// The argument with the flags of recv(2): with MSG_DONTWAIT the call does not wait.
    var flags: Int?
    /// The kernel writes what is left of the timeout into the program's memory when it is interrupted, and counts from there
    /// when the program runs again.
    var keepsRest = false

    init(
        _ name: String, _ timeout: Timeout = .none, descriptor: Int? = nil, flags: Int? = nil, keepsRest: Bool = false
    ) {
        self.name = name
        self.timeout = timeout
        self.descriptor = descriptor
        self.flags = flags
        self.keepsRest = keepsRest
    }

    /// The call that a thread continues which sleeps in a function of the kernel. Of the calls that are continued with restart_syscall(2) the
    /// others are not known by it: nanosleep and clock_nanosleep have their arguments in different positions.
    static func continued(in function: [UInt8]) -> Int? {
        if function.starts(with: "futex_".utf8) { return futexCall }
        let isPoll = ["poll_schedule_timeout", "do_sys_poll", "do_poll"].contains { function.starts(with: $0.utf8) }
        return isPoll ? pollCall : nil
    }

    /// The same numbers on all architectures.
    private static let common: [Int: WatchedCall] = [441: WatchedCall("epoll_pwait2", .timespec(3))]

    // Not among them, although programs wait in them: msgrcv, semop and semtimedop (System V objects are shared with other programs),
    // io_uring_enter and futex_waitv.
    #if arch(x86_64)
        static let restart = 219
        static let futexCall = 202
        static let pollCall: Int? = 7
        private static let own: [Int: WatchedCall] = [
            0: WatchedCall("read", descriptor: 0), 19: WatchedCall("readv", descriptor: 0),
            43: WatchedCall("accept", descriptor: 0), 288: WatchedCall("accept4", descriptor: 0),
            45: WatchedCall("recvfrom", descriptor: 0, flags: 3), 47: WatchedCall("recvmsg", descriptor: 0, flags: 2),
            299: WatchedCall("recvmmsg", .timespec(4), descriptor: 0, flags: 3),
            243: WatchedCall("mq_timedreceive", .realTime(4), descriptor: 0),
            7: WatchedCall("poll", .milliseconds(2)), 271: WatchedCall("ppoll", .timespec(2), keepsRest: true),
            23: WatchedCall("select", .timeval(4), keepsRest: true),
            270: WatchedCall("pselect6", .timespec(4), keepsRest: true),
            232: WatchedCall("epoll_wait", .milliseconds(3)), 281: WatchedCall("epoll_pwait", .milliseconds(3)),
            202: WatchedCall("futex", .futex), 35: WatchedCall("nanosleep", .timespec(0)),
            230: WatchedCall("clock_nanosleep", .clockNanosleep), 128: WatchedCall("rt_sigtimedwait", .timespec(2)),
            208: WatchedCall("io_getevents", .timespec(4)), 333: WatchedCall("io_pgetevents", .timespec(4)),
            61: WatchedCall("wait4"), 247: WatchedCall("waitid"), 34: WatchedCall("pause"),
            130: WatchedCall("rt_sigsuspend"),
        ]
    #elseif arch(arm64)
        static let restart = 128
        static let futexCall = 98
        static let pollCall: Int? = nil
        private static let own: [Int: WatchedCall] = [
            63: WatchedCall("read", descriptor: 0), 65: WatchedCall("readv", descriptor: 0),
            202: WatchedCall("accept", descriptor: 0), 242: WatchedCall("accept4", descriptor: 0),
            207: WatchedCall("recvfrom", descriptor: 0, flags: 3), 212: WatchedCall("recvmsg", descriptor: 0, flags: 2),
            243: WatchedCall("recvmmsg", .timespec(4), descriptor: 0, flags: 3),
            183: WatchedCall("mq_timedreceive", .realTime(4), descriptor: 0),
            73: WatchedCall("ppoll", .timespec(2), keepsRest: true),
            72: WatchedCall("pselect6", .timespec(4), keepsRest: true),
            22: WatchedCall("epoll_pwait", .milliseconds(3)), 98: WatchedCall("futex", .futex),
            101: WatchedCall("nanosleep", .timespec(0)), 115: WatchedCall("clock_nanosleep", .clockNanosleep),
            137: WatchedCall("rt_sigtimedwait", .timespec(2)), 4: WatchedCall("io_getevents", .timespec(4)),
            292: WatchedCall("io_pgetevents", .timespec(4)), 260: WatchedCall("wait4"), 95: WatchedCall("waitid"),
            133: WatchedCall("rt_sigsuspend"),
        ]
    #else
        static let restart = -2
        static let futexCall = -2
        private static let own: [Int: WatchedCall] = [:]
    #endif

    static let all = common.merging(own) { $1 }
}

/// For how long a thread waits in its system call, if nothing happens.
enum WaitTimeout: Equatable {
    case none
    /// So long, from the beginning of the call.
    case relative(Duration)
    /// Until a time: what is left of it.
    case remaining(Duration)
    /// It cannot be read.
    case unknown
}

/// Reads the timeouts of threads that wait.
struct TimeoutReader {
    /// Reads memory of the process; `nil`: it cannot be read.
    var memory: (_ address: UInt64, _ count: Int) -> [UInt8]?
    /// The time of a clock (clock_gettime(2)).
    var clock: (_ number: Int32) -> Duration?

    /// Longer waits are without end, as far as anything here is concerned.
    private static let longest = Duration.seconds(366 * 86_400)

    func timeout(of call: ShownCall, _ kind: WatchedCall.Timeout) -> WaitTimeout {
        func argument(_ position: Int) -> UInt64 {
            call.arguments.indices.contains(position) ? call.arguments[position] : 0
        }
        switch kind {
        case .none: return .none
        case .milliseconds(let position):
            let value = Int32(truncatingIfNeeded: argument(position))
            return value < 0 ? .none : .relative(.milliseconds(Int64(value)))
        case .timespec(let position): return relative(argument(position), unit: 1)
        case .timeval(let position): return relative(argument(position), unit: 1000)
        case .realTime(let position): return remaining(argument(position), clock: 0)
        case .clockNanosleep:
            // TIMER_ABSTIME
            if argument(1) & 1 == 0 { return relative(argument(2), unit: 1) }
            return remaining(argument(2), clock: Int32(truncatingIfNeeded: argument(0)))
        case .futex: return futex(operation: argument(1), argument(3))
        }
    }

    /// The argument that is the address of the rest, and the unit of its second part in nanoseconds; `nil`: there is none.
    static func rest(of kind: WatchedCall.Timeout) -> (argument: Int, unit: Int64)? {
        switch kind {
        case .timespec(let position): (position, 1)
        case .timeval(let position): (position, 1000)
        case .none, .milliseconds, .realTime, .clockNanosleep, .futex: nil
        }
    }

    /// futex(2): FUTEX_WAIT has a relative timeout, the others an absolute one.
    private func futex(operation: UInt64, _ address: UInt64) -> WaitTimeout {
        let realtime: Int32 = operation & 256 != 0 ? 0 : 1
        switch operation & 127 {
        case 0: return relative(address, unit: 1)
        case 6: return remaining(address, clock: 0)  // FUTEX_LOCK_PI
        case 9, 11, 13: return remaining(address, clock: realtime)  // FUTEX_WAIT_BITSET, _WAIT_REQUEUE_PI, _LOCK_PI2
        default: return .none
        }
    }

    private func relative(_ address: UInt64, unit: Int64) -> WaitTimeout {
        if address == 0 { return .none }
        guard let time = time(address, unit: unit) else { return .unknown }
        return time > Self.longest ? .none : .relative(time)
    }

    private func remaining(_ address: UInt64, clock number: Int32) -> WaitTimeout {
        if address == 0 { return .none }
        guard let time = time(address, unit: 1), let now = clock(number) else { return .unknown }
        let left = time - now
        return left > Self.longest ? .none : .remaining(max(.zero, left))
    }

    /// Reads seconds and a part of a second, in `unit` nanoseconds.
    private func time(_ address: UInt64, unit: Int64) -> Duration? {
        guard let bytes = memory(address, 16), let seconds: Int64 = nativeNumber(bytes[...], at: 0),
            let part: Int64 = nativeNumber(bytes[...], at: 8), seconds >= 0, part >= 0, part < 1_000_000_000 / unit
        else { return nil }
        // Bounded, so that no sum overflows.
        return .seconds(min(seconds, 1 << 40)) + .nanoseconds(part * unit)
    }
}
