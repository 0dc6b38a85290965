import CLinux
import Glibc
import Idleness
import Posix

/// What a look at a thread finds.
enum ThreadLook: Equatable {
    case found(ThreadSighting)
    case gone
}

/// Reads what the threads of processes wait for. That requires the permission to trace them (ptrace(2)).
struct ThreadReader {
    let proc: ProcFS
    let clocks: SchedulerClocks
    /// CLOCK_MONOTONIC
    let now: Duration
    /// Of earlier looks.
    var history = WaitHistory()

    /// Looks at a thread: 3 µs, and 10 µs if its wait has a timeout.
    func look(atThread thread: Int32, of pid: Int32) throws(SystemError) -> ThreadLook {
        let bytes: [UInt8]
        do {
            guard let read = try proc.readRecord("task/\(thread)/syscall", of: pid, limit: 512) else { return .gone }
            bytes = read
        } catch {
            if error.errno == EPERM || error.errno == EACCES { return found(thread, .unreadable) }
            throw error
        }
        guard let shown = ShownActivity(parsing: bytes) else { return .gone }
        switch shown {
        case .running: return found(thread, .running)
        case .outside: return found(thread, try outside(thread, of: pid))
        case .call(let call): return found(thread, try activity(of: thread, in: call, of: pid))
        }
    }

    private func found(_ thread: Int32, _ activity: ThreadActivity) -> ThreadLook {
        .found(ThreadSighting(thread: Int(thread), activity: activity))
    }

    /// It sleeps in no system call.
    private func outside(_ thread: Int32, of pid: Int32) throws(SystemError) -> ThreadActivity {
        guard let stat = try proc.thread(thread, of: pid) else { return .stopped }
        switch stat.state {
        case UInt8(ascii: "R"): return .running
        case UInt8(ascii: "T"), UInt8(ascii: "t"), UInt8(ascii: "Z"), UInt8(ascii: "X"): return .stopped
        default: return .uninterruptible
        }
    }

    private func activity(of thread: Int32, in call: ShownCall, of pid: Int32) throws(SystemError) -> ThreadActivity {
        if call.number == WatchedCall.restart {
            let isKnown = history.knows(Int(thread), call.arguments)
            let wait = isKnown ? nil : continuedWait(thread, call.arguments, of: pid)
            return .restarted(arguments: call.arguments, wait: wait)
        }
        guard let watched = WatchedCall.all[call.number], isWatched(call, watched, of: pid) else {
            if let stat = try proc.thread(thread, of: pid), stat.isUninterruptible { return .uninterruptible }
            return .unwatched(call: call.number)
        }
        // It does not wait: the freeze has stopped it at its end, and what it has read would lie until something else arrives.
        if isNonBlocking(call, watched, of: pid) { return .running }
        let reader = TimeoutReader(memory: { readMemory(of: pid, $0, $1) }, clock: { clockTime($0) })
        var wait = Wait(call: call.number, arguments: call.arguments)
        wait.keepsRest = watched.keepsRest
        let timeout = reader.timeout(of: call, watched.timeout)
        if timeout == .none { return .waiting(wait) }
        guard timeout != .unknown, let began = try began(thread, of: pid) else { return .unreadable }
        wait.stamp = began.stamp
        switch timeout {
        case .relative(let length): (wait.length, wait.due) = (length, began.time + length)
        case .remaining(let rest):
            wait.isUntilTime = true
            (wait.length, wait.due) = (max(.zero, now + rest - began.time), now + rest)
        case .none, .unknown: break
        }
        return .waiting(wait)
    }

    /// The wait that a thread continues, for a daemon that has not seen its beginning. Where it sleeps in the kernel shows which call it is
    /// in (proc_pid_wchan(5)). That is enough where the call has no timeout, or one that is a time.
    private func continuedWait(_ thread: Int32, _ arguments: [UInt64], of pid: Int32) -> Wait? {
        guard let function = (try? proc.readRecord("task/\(thread)/wchan", of: pid, limit: 64)).flatMap({ $0 }),
            let number = WatchedCall.continued(in: function),
            let found = try? activity(of: thread, in: ShownCall(number: number, arguments: arguments), of: pid),
            case .waiting(let wait) = found, wait.due == nil || wait.isUntilTime
        else { return nil }
        return wait
    }

    /// Whether the end of a wait can be seen from outside.
    private func isWatched(_ call: ShownCall, _ watched: WatchedCall, of pid: Int32) -> Bool {
        if call.number == WatchedCall.futexCall {
            // FUTEX_PRIVATE_FLAG. Without it another program may end the wait, if the word is in shared memory: pthread_join(3) has
            // its word in the program's own.
            return call.arguments[1] & 128 != 0 || isPrivateMemory(call.arguments[0], of: pid)
        }
        guard let position = watched.descriptor else { return true }
        return kind(of: Int32(truncatingIfNeeded: call.arguments[position]), in: pid)?.endsWaits ?? true
    }

    /// Whether the call, which reads from a descriptor, returns at once in any case.
    private func isNonBlocking(_ call: ShownCall, _ watched: WatchedCall, of pid: Int32) -> Bool {
        guard let position = watched.descriptor else { return false }
        if let flags = watched.flags, call.arguments[flags] & UInt64(MSG_DONTWAIT) != 0 { return true }
        let descriptor = Int32(truncatingIfNeeded: call.arguments[position])
        guard let file = try? Descriptor.open("\(proc.root)/\(pid)/fdinfo/\(descriptor)", O_RDONLY) else {
            return false
        }
        // "pos:	0", "flags:	02004002"; what follows can be long.
        let (raw, size) = (file.raw, 128)
        var scanner = ByteScanner((try? readBuffer(size, "read", nil, { read(raw, $0, size) })) ?? [])
        while let line = scanner.line() {
            var words = ByteScanner(line)
            guard words.word()?.text == "flags:" else { continue }
            let flags: Int32? = words.word().flatMap { parseNumber($0, radix: 8) }
            return flags.map { $0 & O_NONBLOCK != 0 } ?? false
        }
        return false
    }

    /// `nil`: it is closed.
    private func kind(of descriptor: Int32, in pid: Int32) -> ListedKind? {
        guard let folder = try? Descriptor.open("\(proc.root)/\(pid)/fd", O_RDONLY | O_DIRECTORY) else { return nil }
        var entry = clinux_descriptor_entry()
        return clinux_describe_descriptor(folder.raw, descriptor, &entry) == 0 ? ListedKind(entry.kind) : nil
    }

    /// Whether memory of the process is its own: no other program writes to it.
    private func isPrivateMemory(_ address: UInt64, of pid: Int32) -> Bool {
        let found = clinux_find_mapping(pid, UInt(address))
        return found == Int32(CLINUX_MAPPING_PRIVATE.rawValue) || found == Int32(CLINUX_MAPPING_ANONYMOUS.rawValue)
    }

    /// When the thread was on a processor last: the beginning of its wait. `stamp` 0: that is not known.
    private func began(_ thread: Int32, of pid: Int32) throws(SystemError) -> (time: Duration, stamp: UInt64)? {
        guard let stat = try proc.thread(thread, of: pid),
            let bytes = try proc.readRecord("task/\(thread)/sched", of: pid),
            let stamp = executionStart(in: bytes)
        else { return nil }
        if stamp == 0 { return (now, 0) }
        guard let offset = clocks.offset(of: stat.processor, at: now) else { return nil }
        return (.nanoseconds(Int64(clamping: stamp)) + offset, stamp)
    }
}

/// The line `se.exec_start` of /proc/PID/sched: when the thread was on a processor last, in nanoseconds of that processor's clock.
func executionStart(in bytes: [UInt8]) -> UInt64? {
    let value = (bytes.map { CChar(bitPattern: $0) } + [0]).withUnsafeBufferPointer { text in
        text.baseAddress.map { clinux_execution_start($0) } ?? -1
    }
    return value < 0 ? nil : UInt64(value)
}

/// The clocks of the processors on which `se.exec_start` is counted: each has an offset of its own against CLOCK_MONOTONIC, and drifts by
/// some 10 ms in a minute.
package final class SchedulerClocks {
    private struct Reading {
        var offset: Duration?
        /// When it is read again.
        var next: Duration
    }
    private static let validity = Duration.seconds(30)
    /// A processor that was too busy to be asked may soon be free; asking it may take 100 ms. Until then the last offset is good enough.
    private static let retryTime = Duration.seconds(5)

    private var readings: [Int32: Reading] = [:]
    private let read: (Int32) -> Duration?

    /// - Parameter read: what is added to a processor's clock; `nil`: it cannot be read.
    init(read: @escaping (Int32) -> Duration?) { self.read = read }

    package convenience init() {
        self.init { processor in
            var offset: Int64 = 0
            return clinux_clock_offset(processor, &offset) == 0 ? .nanoseconds(offset) : nil
        }
    }

    /// - Parameter now: CLOCK_MONOTONIC.
    func offset(of processor: Int32, at now: Duration) -> Duration? {
        var reading = readings[processor] ?? Reading(offset: nil, next: now)
        if now < reading.next { return reading.offset }
        let offset = read(processor)
        reading.offset = offset ?? reading.offset
        reading.next = now + (offset == nil ? Self.retryTime : Self.validity)
        readings[processor] = reading
        return reading.offset
    }
}

/// Reads up to 32 bytes of a process's memory; `nil`: they cannot be read, or not in time.
func readMemory(of pid: Int32, _ address: UInt64, _ count: Int) -> [UInt8]? {
    var bytes = [UInt8](repeating: 0, count: count)
    let result = bytes.withUnsafeMutableBytes {
        clinux_read_memory(pid, UInt(address), $0.baseAddress, $0.count)
    }
    return result == 0 ? bytes : nil
}

/// Returns the time of a clock that does not count processor time.
private func clockTime(_ number: Int32) -> Duration? {
    // CLOCK_REALTIME, _MONOTONIC, _BOOTTIME, _REALTIME_ALARM, _BOOTTIME_ALARM, _TAI
    guard [0, 1, 7, 8, 9, 11].contains(number) else { return nil }
    var time = timespec()
    guard clock_gettime(number, &time) == 0 else { return nil }
    return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
}
