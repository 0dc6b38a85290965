import CLinux
package import Idleness
import Posix

/// The wait of a frozen thread in select(2), pselect6 or ppoll(2). At the freeze the kernel has written what was left of its timeout into the
/// program's memory, and after the thaw it begins to wait for as long once more. So a program that is often frozen would never see
/// the end. Before a thaw the daemon writes what is really left, as the kernel itself would with a later freeze.
package struct KeptRest: Hashable, Sendable {
    package let process: Int32
    package let thread: Int
    /// Its call, the arguments of the call, and when it is due.
    package let wait: Wait

    package init(process: Int32, thread: Int, wait: Wait) {
        self.process = process
        self.thread = thread
        self.wait = wait
    }

    /// Writes what is left. The process is frozen.
    ///
    /// Only memory that no other program shares is written, and only if the thread is still in that call: the program may have been thawed and frozen
    /// by another program. What cannot be written makes the timeout late.
    /// - Parameter now: CLOCK_MONOTONIC.
    /// - Returns: whether it was written, and the thread was in the call all the time.
    @discardableResult
    package func restore(at now: Duration, proc: ProcFS = ProcFS()) -> Bool {
        guard let due = wait.due, let call = WatchedCall.all[wait.call],
            let rest = TimeoutReader.rest(of: call.timeout), isInCall(proc)
        else { return false }
        let address = UInt(wait.arguments[rest.argument])
        guard clinux_find_mapping(process, address) == Int32(CLINUX_MAPPING_ANONYMOUS.rawValue) else { return false }
        // With 0 the call would not wait at all, but it would not sleep either: that is what a timeout that is over does.
        let (seconds, attoseconds) = max(.microseconds(1), due - now).components
        let part = attoseconds / 1_000_000_000 / rest.unit
        let value = nativeBytes(Int64(seconds)) + nativeBytes(part)
        let isWritten = value.withUnsafeBytes { clinux_write_memory(process, address, $0.baseAddress, $0.count) } == 0
        // Another program that has thawed it meanwhile could have let it use that memory for something else.
        return isWritten && isInCall(proc)
    }

    private func isInCall(_ proc: ProcFS) -> Bool {
        let bytes = (try? proc.readRecord("task/\(thread)/syscall", of: process, limit: 512)) ?? nil
        return bytes.flatMap { ShownActivity(parsing: $0) }
            == .call(ShownCall(number: wait.call, arguments: wait.arguments))
    }
}
