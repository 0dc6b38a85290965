import CLinux
import Glibc
package import Posix

/// Whether the program of a process receives a signal.
package enum SignalReception: Equatable, Sendable {
    /// It has a handler, or all its threads block the signal: then it may receive it with sigwait(3) or signalfd(2), and the
    /// signal ends nothing.
    case received
    /// A thread is in a function of the C library that blocks all signals for a moment, or for which signals it waits
    /// could not be
    /// read in time. It is to be looked at again.
    case undecided
    /// The signal would have its default action, which is the end of the process for most, or be ignored.
    case notReceived
}

extension ProcFS {
    /// The most threads that are looked at. Of a program with more, a signal counts as not blocked.
    package static let mostBlockingThreads = 256
    /// How often a thread is looked at that may have left or entered sigwait(3) between two files of it.
    private static let mostLooks = 3

    /// Finds out whether a program receives a signal. Files of its threads are read only if it has no handler.
    /// - Parameter status: of the process, as it was just read.
    package func reception(
        of signal: Int32, by pid: Int32, _ status: ProcessStatus
    ) throws(SystemError) -> SignalReception {
        if status.catches(signal) { return .received }
        // The main thread first: most programs that do not catch a signal do not block it either.
        let main = try reception(of: signal, thread: pid, of: pid)
        if main == .notReceived { return .notReceived }
        let all = try threads(of: pid)
        guard all.count <= Self.mostBlockingThreads else { return .notReceived }
        var result = main
        for thread in all where thread != pid {
            switch try reception(of: signal, thread: thread, of: pid) {
            case .received: break
            case .undecided: result = .undecided
            case .notReceived: return .notReceived
            }
        }
        return result
    }

    /// `received`: the thread blocks the signal, or waits for it, or has ended.
    private func reception(
        of signal: Int32, thread: Int32, of pid: Int32
    ) throws(SystemError) -> SignalReception {
        for _ in 0..<Self.mostLooks {
            guard let bytes = try read("task/\(thread)/status", of: pid), let status = ProcessStatus(parsing: bytes)
            else { return thread == pid ? .notReceived : .received }
            if status.state == UInt8(ascii: "Z") { return .received }
            if status.blocks(signal) { return status.blocksReserved ? .undecided : .received }
            let waiting = waits(thread, of: pid, for: signal)
            if waiting != .notReceived { return waiting }
        }
        return .notReceived
    }

    /// Whether a thread waits for a signal with sigwait(3) and the like. The kernel unblocks the signals that a thread waits
    /// for (do_sigtimedwait in kernel/signal.c), so SigBlk does not contain them.
    private func waits(_ thread: Int32, of pid: Int32, for signal: Int32) -> SignalReception {
        // "128 0x7ffe16ade90 …", or "running". Without permission (ptrace(2)) it is not known.
        guard let bytes = try? read("task/\(thread)/syscall", of: pid) else { return .notReceived }
        let words = bytes.split(separator: UInt8(ascii: " ")).prefix(2).map { String(decoding: $0, as: UTF8.self) }
        guard words.count == 2, Int(words[0]) == clinux_sigtimedwait_number(),
            let address = UInt(words[1].dropFirst(2), radix: 16)
        else { return .notReceived }
        var set: UInt64 = 0
        let result = clinux_read_signal_set(pid, address, &set)
        if result == -ETIMEDOUT || result == -EBUSY { return .undecided }
        return result == 0 && set.hasBit(signal - 1) ? .received : .notReceived
    }
}
