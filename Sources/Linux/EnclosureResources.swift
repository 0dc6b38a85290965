import CLinux
package import Posix

extension Enclosure {
    /// Sets the CPU and I/O weights of an app for the background or the foreground (L19), and the slack of its timers.
    ///
    /// Without CAP_SYS_NICE only the weights of the cgroup are set: a thread could not leave the idle class again.
    /// - Parameter timerSlack: how late timers may fire, in nanoseconds, so that the kernel can handle several in one wakeup
    ///   (PR_SET_TIMERSLACK, prctl(2)). `nil`: the daemon's own, with which the app was started. New threads and processes
    ///   inherit it.
    @discardableResult
    package func setWeights(background: Bool, timerSlack: UInt64? = nil) throws(SystemError) -> WeightMeans {
        let isInGroup = try setGroupWeights(background: background)
        guard canChangeThreads else { return isInGroup ? .cgroup : .none }
        let slack = String(timerSlack ?? Self.ownTimerSlack(proc))
        try forEachProcess { (pid) throws(SystemError) in
            for thread in try proc.threads(of: pid) {
                // ESRCH: the thread has ended. EPERM: a security module refuses. Both are ignored.
                if !isInGroup { _ = clinux_set_idle(thread, background) }
                // "0" would restore each thread's default, which for a process is its parent's value at the fork: a process
                // that was created in the background would keep the background's.
                try? writeControlFile("\(proc.root)/\(thread)/timerslack_ns", slack)
            }
            return true
        }
        return isInGroup ? .cgroup : .threads
    }

    /// The most searches for processes that were created meanwhile: a fork bomb must not occupy the daemon. Without a cgroup there
    /// is one, because each is a search of /proc.
    private var mostSearches: Int { path == nil ? 1 : 8 }

    /// Calls `body` for each process, with a cgroup also for those that are created meanwhile. A new process inherits what is set
    /// from the one that creates it, so after a search that finds none, or none that lacked it, all have it.
    /// - Parameters:
    ///   - isFrozen: no process is created meanwhile.
    ///   - body: returns whether something was set.
    func forEachProcess(isFrozen: Bool = false, _ body: (Int32) throws(SystemError) -> Bool) throws(SystemError) {
        var done: Set<Int32> = []
        for _ in 0..<(isFrozen ? 1 : mostSearches) {
            let found = try pids().filter { done.insert($0).inserted }
            var hasSet = false
            for pid in found where try body(pid) { hasSet = true }
            if !hasSet { return }
        }
    }

    /// Sets cpu.idle (since Linux 5.15), with which the group runs only on idle CPUs, or else cpu.weight, and io.weight: 1 to
    /// 10,000, by default 100 (kernel: cgroup-v2.rst).
    /// - Returns: false without a cpu controller.
    private func setGroupWeights(background: Bool) throws(SystemError) -> Bool {
        guard case .cgroup(let leaf) = kind, leaf.root.controllers.contains("cpu") else { return false }
        if leaf.has("cpu.idle") {
            try leaf.write(background ? "1" : "0", to: "cpu.idle")
        } else {
            try leaf.write(background ? "1" : "100", to: "cpu.weight")
        }
        for file in ["io.weight", "io.bfq.weight"] where leaf.root.controllers.contains("io") && leaf.has(file) {
            try leaf.write(background ? "default 10" : "default 100", to: file)
        }
        return true
    }

    /// Limits the processor time of all processes together (cpu.max; kernel: cgroup-v2.rst, sched-bwc.rst).
    /// - Parameter share: thousandths of one processor, at least 10: the kernel accepts no quota below 1 ms. `nil`: no limit.
    /// - Returns: false without a cpu controller.
    @discardableResult
    package func limitProcessor(_ share: Int?) throws(SystemError) -> Bool {
        guard case .cgroup(let leaf) = kind, leaf.root.controllers.contains("cpu"), leaf.has("cpu.max") else {
            return false
        }
        let quota = share.map { String(max(1000, $0 * 100)) } ?? "max"
        try leaf.write("\(quota) 100000", to: "cpu.max")
        return true
    }

    /// Reads the capability once: the daemon's privileges do not change.
    static func findOutWhetherThreadsCanBeChanged(_ proc: ProcFS) -> Bool {
        guard let bytes = try? proc.readOwnStatus() else { return false }
        return ProcessStatus(parsing: bytes)?.hasCapability(23) ?? false  // CAP_SYS_NICE
    }

    /// Returns the daemon's timer slack in nanoseconds; the kernel's default if it cannot be read.
    private static func ownTimerSlack(_ proc: ProcFS) -> UInt64 {
        guard let bytes = try? readFile(at: "\(proc.root)/self/timerslack_ns", limit: 32) else { return 50_000 }
        var scanner = ByteScanner(bytes)
        return scanner.number() ?? 50_000
    }
}
