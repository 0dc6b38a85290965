/// A system call that a thread is parked in, as /proc/PID/task/TID/syscall shows it (proc_pid_syscall(5)).
struct ParkedCall: Equatable {
    var number: Int
    var arguments: [UInt64]
    var stackPointer: UInt64
}

/// What a thread does, as /proc/PID/task/TID/syscall shows it.
enum ThreadActivity: Equatable {
    /// On a processor, or ready.
    case running
    /// It sleeps in no system call: in a page fault, stopped, or it has ended.
    case outside
    case parked(ParkedCall)

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
        self = .parked(ParkedCall(number: number, arguments: Array(values[..<6]), stackPointer: values[6]))
    }
}

/// For how long a thread waits in its system call, if nothing happens.
package enum WaitTimeout: Equatable, Sendable {
    case none
    /// So long, from the beginning of the call.
    case relative(Duration)
    /// Until a time: what is left of it.
    case remaining(Duration)
    /// The kernel restarts a call that a stop or a freeze has interrupted: which one is not shown.
    case restarted
    /// It cannot be read.
    case unknown

    package var duration: Duration? {
        switch self {
        case .relative(let duration), .remaining(let duration): duration
        case .none, .restarted, .unknown: nil
        }
    }
}

/// How a system call says for how long it waits. The positions are those of its arguments, from 0.
enum WaitingCall: Equatable {
    case untimed
    /// A number of milliseconds; negative: without end.
    case milliseconds(Int)
    /// The address of a `timespec`; 0: without end.
    case timespec(Int)
    case timeval(Int)
    /// The address of a `timespec` that is a time of a clock; the clock's number is another argument, or CLOCK_REALTIME.
    case deadline(Int, clock: Int?)
    case clockNanosleep
    case futex
    /// io_uring_enter(2), with IORING_ENTER_EXT_ARG.
    case ring
    /// restart_syscall(2)
    case restart

    /// The calls in which threads wait. In others a thread may wait for a device.
    static let all = common.merging(own) { $1 }

    /// The same numbers on all architectures.
    private static let common: [Int: WaitingCall] = [
        441: .timespec(3),  // epoll_pwait2
        426: .ring,
        449: .deadline(3, clock: 4),  // futex_waitv
        455: .deadline(4, clock: 5),  // futex_wait
    ]

    #if arch(x86_64)
        private static let own: [Int: WaitingCall] = [
            7: .milliseconds(2), 271: .timespec(2),  // poll, ppoll
            23: .timeval(4), 270: .timespec(4),  // select, pselect6
            232: .milliseconds(3), 281: .milliseconds(3),  // epoll_wait, epoll_pwait
            202: .futex, 35: .timespec(0), 230: .clockNanosleep,
            299: .timespec(4), 220: .timespec(3), 128: .timespec(2),  // recvmmsg, semtimedop, rt_sigtimedwait
            243: .deadline(4, clock: nil),  // mq_timedreceive
            208: .timespec(4), 333: .timespec(4),  // io_getevents, io_pgetevents
            219: .restart,
            // accept, accept4, recvfrom, recvmsg, wait4, waitid, pause, rt_sigsuspend, msgrcv
            43: .untimed, 288: .untimed, 45: .untimed, 47: .untimed, 61: .untimed, 247: .untimed, 34: .untimed,
            130: .untimed, 70: .untimed,
        ]
    #elseif arch(arm64)
        private static let own: [Int: WaitingCall] = [
            73: .timespec(2), 72: .timespec(4),  // ppoll, pselect6
            22: .milliseconds(3),  // epoll_pwait
            98: .futex, 101: .timespec(0), 115: .clockNanosleep,
            243: .timespec(4), 192: .timespec(3), 137: .timespec(2),  // recvmmsg, semtimedop, rt_sigtimedwait
            183: .deadline(4, clock: nil),  // mq_timedreceive
            4: .timespec(4), 292: .timespec(4),  // io_getevents, io_pgetevents
            128: .restart,
            // accept, accept4, recvfrom, recvmsg, wait4, waitid, rt_sigsuspend, msgrcv
            202: .untimed, 242: .untimed, 207: .untimed, 212: .untimed, 260: .untimed, 95: .untimed,
            133: .untimed, 188: .untimed,
        ]
    #else
        private static let own: [Int: WaitingCall] = [:]
    #endif
}

/// Reads the timeouts of parked threads.
struct TimeoutReader {
    /// Reads memory of the process; `nil`: it cannot be read.
    var memory: (_ address: UInt64, _ count: Int) -> [UInt8]?
    /// The time of a clock (clock_gettime(2)).
    var clock: (_ number: Int32) -> Duration?

    /// Longer waits are without end, as far as anything here is concerned.
    private static let longest = Duration.seconds(366 * 86_400)

    func timeout(of call: ParkedCall, _ kind: WaitingCall) -> WaitTimeout {
        func argument(_ position: Int) -> UInt64 {
            call.arguments.indices.contains(position) ? call.arguments[position] : 0
        }
        switch kind {
        case .untimed: return .none
        case .restart: return .restarted
        case .milliseconds(let position):
            let value = Int32(truncatingIfNeeded: argument(position))
            return value < 0 ? .none : .relative(.milliseconds(Int64(value)))
        case .timespec(let position): return relative(argument(position), unit: 1)
        case .timeval(let position): return relative(argument(position), unit: 1000)
        case .deadline(let position, let clock):
            return remaining(argument(position), clock: clock.map { Int32(truncatingIfNeeded: argument($0)) } ?? 0)
        case .clockNanosleep:
            // TIMER_ABSTIME
            if argument(1) & 1 == 0 { return relative(argument(2), unit: 1) }
            return remaining(argument(2), clock: Int32(truncatingIfNeeded: argument(0)))
        case .futex: return futex(operation: argument(1), argument(3))
        case .ring: return ring(flags: argument(3), argument(4))
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

    /// `struct io_uring_getevents_arg`: the address of a `timespec` is at offset 16.
    private func ring(flags: UInt64, _ address: UInt64) -> WaitTimeout {
        guard flags & 8 != 0, address != 0 else { return .none }
        // IORING_ENTER_EXT_ARG_REG: not an address.
        if flags & 64 != 0 { return .unknown }
        guard let bytes = memory(address, 24), let pointer: UInt64 = nativeNumber(bytes[...], at: 16) else {
            return .unknown
        }
        return relative(pointer, unit: 1)
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
