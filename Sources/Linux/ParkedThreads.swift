import CLinux
import Glibc
import Posix

/// A thread that waits in a system call, at one look.
package struct ParkedThread: Equatable, Sendable {
    var thread: Int32
    /// The number of the system call.
    var call: Int
    /// Where in its program it waits.
    var stackPointer: UInt64
    package var timeout: WaitTimeout
}

/// What a look at a thread finds.
enum ThreadLook: Equatable {
    /// It runs, is ready to run, or waits for a device.
    case runnable
    /// It waits; `nil`: it is stopped, or waits outside of system calls.
    case parked(ParkedThread?)
    case refused
    case gone
}

extension ProcFS {
    /// Looks at a thread by `syscall`, some 7 µs. That requires the permission to trace it (ptrace(2)).
    func look(atThread thread: Int32, of pid: Int32) throws(SystemError) -> ThreadLook {
        let bytes: [UInt8]
        do {
            guard let found = try read("task/\(thread)/syscall", of: pid, limit: 512) else { return .gone }
            bytes = found
        } catch {
            if error.errno == EPERM || error.errno == EACCES { return .refused }
            throw error
        }
        guard let activity = ThreadActivity(parsing: bytes) else { return .gone }
        switch activity {
        case .running: return .runnable
        case .outside: return try isBusy(thread, of: pid) ? .runnable : .parked(nil)
        case .parked(let call):
            let timeout: WaitTimeout
            if let kind = WaitingCall.all[call.number] {
                let reader = TimeoutReader(
                    memory: { readMemory(of: pid, $0, $1) }, clock: { clockTime($0) })
                timeout = reader.timeout(of: call, kind)
            } else {
                if try isBusy(thread, of: pid) { return .runnable }
                timeout = .none
            }
            return .parked(
                ParkedThread(
                    thread: thread, call: call.number, stackPointer: call.stackPointer, timeout: timeout))
        }
    }

    /// Whether the state of a thread is R, or D: it waits for a device, or for a page.
    private func isBusy(_ thread: Int32, of pid: Int32) throws(SystemError) -> Bool {
        guard let stat = try self.thread(thread, of: pid) else { return false }
        return stat.isUninterruptible || stat.state == UInt8(ascii: "R")
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
