import CLinux

/// What the memory controller did to an enclosure (memory.events of cgroup v2).
package struct MemoryEvents: Equatable {
    /// Times the memory was throttled at memory.high.
    package var high: UInt64
    /// Times memory.max was about to be exceeded.
    package var max: UInt64
    /// Processes that the kernel's OOM killer took.
    package var oomKills: UInt64
}

extension Enclosure {
    /// CPU and I/O for an app in the background or the foreground (L19), and how late its timers may fire, in nanoseconds, so
    /// that the kernel can wake several at once (nil: what they were started with, which is our own). Threads and processes born later inherit that
    /// (prctl(2), PR_SET_TIMERSLACK).
    ///
    /// Threads of others are changed only with CAP_SYS_NICE: without it a thread could not come back from the idle class, so
    /// none is sent there, and the timers stay as they are.
    @discardableResult
    package func setWeights(background: Bool, timerSlack: UInt64? = nil) throws(SystemError) -> WeightMeans {
        let isInGroup = try setGroupWeights(background: background)
        guard canChangeThreads else { return isInGroup ? .cgroup : .none }
        let slack = String(timerSlack ?? Self.ownTimerSlack(proc))
        for pid in try pids() {
            for thread in try proc.threads(of: pid) {
                // ESRCH: gone meanwhile. EPERM: a security module's choice. Neither is worth more than the attempt.
                if !isInGroup { _ = clinux_set_idle(thread, background) }
                // "0" would restore the default of each, and that of a process is what its parent had when it forked: who
                // was born in the background would keep the background's.
                try? writeControlFile("\(proc.root)/\(thread)/timerslack_ns", slack)
            }
        }
        return isInGroup ? .cgroup : .threads
    }

    /// cpu.idle (kernel 5.15) makes the group run only when nothing else wants to; io.weight goes from 1 to 10,000, default
    /// 100 (kernel: cgroup-v2.rst).
    /// - Returns: false where there is no cpu controller.
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

    /// Asked once, as our own privileges stay what they are; on the way back to the foreground every read counts.
    static func findOutWhetherThreadsCanBeChanged(_ proc: ProcFS) -> Bool {
        guard let bytes = try? proc.readOwnStatus() else { return false }
        return ProcessStatus(parsing: bytes)?.hasCapability(23) ?? false  // CAP_SYS_NICE
    }

    /// In nanoseconds; the kernel's default where it can't be read.
    private static func ownTimerSlack(_ proc: ProcFS) -> UInt64 {
        guard let bytes = try? readFile(at: "\(proc.root)/self/timerslack_ns", limit: 32) else { return 50_000 }
        var scanner = ByteScanner(bytes)
        return scanner.number() ?? 50_000
    }

    /// Hard and soft limit in bytes; nil: none. False where there is no memory controller. A limit below what is in use
    /// makes the kernel reclaim, before 6.16 on the caller's time, and for the hard one kill: see `MemoryReaper.reclaim`
    /// to go there gently first.
    package func setMemoryLimits(max: UInt64?, high: UInt64?) throws(SystemError) -> Bool {
        guard case .cgroup(let leaf) = kind, leaf.root.hasMemoryController else { return false }
        try leaf.write(high.map(String.init) ?? "max", to: "memory.high")
        try leaf.write(max.map(String.init) ?? "max", to: "memory.max")
        return true
    }

    /// nil where there is no memory controller.
    package func memoryEvents() throws(SystemError) -> MemoryEvents? {
        guard case .cgroup(let leaf) = kind, leaf.root.hasMemoryController,
            let bytes = try readFileIfPresent(at: "memory.events", in: leaf.folder.raw, limit: 4096)
        else { return nil }
        return MemoryEvents(
            high: flatKeyed(bytes, "high") ?? 0, max: flatKeyed(bytes, "max") ?? 0,
            oomKills: flatKeyed(bytes, "oom_kill") ?? 0)
    }
}
