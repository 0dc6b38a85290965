import LifecycleCore

/// What happens in each millisecond in which memory moves.
extension MemorySimulation {
    /// Who waited for memory in a step.
    private struct Waiting {
        var some = false
        /// Nothing that could run made progress.
        var full = false
        var wanted = 0
        var got = 0
    }

    mutating func tick() {
        machine.begin(at: now)
        recordFill()
        let ended = endProcesses()
        var waiting = Waiting()
        growOthers(&waiting)
        for app in processes.indices { grow(app, &waiting) }
        reclaim()
        if machine.refault() { waiting.some = true }
        waiting.full = waiting.wanted > 0 && waiting.got * 10 < waiting.wanted
        machine.stall(some: waiting.some || waiting.full, full: waiting.full)
        let isStuck = waiting.wanted > 0 && waiting.got == 0 && ended.isEmpty && !hasKernelVictim
        stuckTicks = isStuck ? stuckTicks + 1 : 0
        if stuckTicks >= 10 {
            stuckTicks = 0
            killForKernel()
        }
        for (run, status, size) in ended {
            handle(.run(run, .process(.exited(status, cpu: .zero, memory: UInt64(size)))))
            handle(.run(run, .process(.emptied)))
        }
        reportPressure()
    }

    /// The kernel waits for its own victims, and not for those of others (oom_evaluate_task in mm/oom_kill.c).
    private var hasKernelVictim: Bool { processes.contains { $0?.endsAt != nil && $0?.isKilledByKernel == true } }

    /// Frees the memory of processes that end. Returns those that are gone.
    private mutating func endProcesses() -> [(RunID, ExitStatus, Int)] {
        var gone: [(RunID, ExitStatus, Int)] = []
        for app in processes.indices {
            guard let process = processes[app], let endsAt = process.endsAt, endsAt <= now else { continue }
            let freed = min(process.resident, scenario.hardware.exitRate)
            machine.release(freed, at: now)
            processes[app]?.resident -= freed
            guard freed == process.resident else { continue }
            machine.swapped -= process.swapped
            processes[app] = nil
            gone.append((process.run, process.status, process.size))
        }
        return gone
    }

    private mutating func growOthers(_ waiting: inout Waiting) {
        if machine.others > othersTarget {
            machine.others = max(othersTarget, machine.others - scenario.hardware.exitRate)
        } else if machine.others < othersTarget {
            let bytes = min(othersTarget - machine.others, scenario.othersRate)
            machine.others += allocate(bytes, &waiting)
        }
    }

    private mutating func grow(_ app: Int, _ waiting: inout Waiting) {
        guard let process = processes[app], !process.isFrozen, process.wanted > 0,
            process.endsAt.map({ $0 > now }) ?? true
        else { return }
        if process.missing > 0 {
            let read = machine.swapIn(process.missing)
            processes[app]?.swapped -= read
            processes[app]?.resident += read
            waiting.some = true
        }
        let bytes = min(process.wanted - process.size, scenario.apps[app].rate)
        guard bytes > 0 else { return }
        let got = allocate(bytes, &waiting)
        processes[app]?.resident += got
        machine.resident += got
    }

    /// Pushes memory of a frozen app out, as fast as the swap allows (L37).
    private mutating func reclaim() {
        guard var reclaim = reclaiming else { return }
        let resident = processes[reclaim.app].map { $0.run == reclaim.run && $0.isFrozen ? $0.resident : 0 } ?? 0
        let out = machine.swapOut(min(reclaim.left, resident))
        processes[reclaim.app]?.resident -= out
        processes[reclaim.app]?.swapped += out
        reclaim.left -= out
        reclaim.bytes += out
        reclaiming = reclaim
        guard reclaim.left == 0 || out == 0 else { return }
        reclaiming = nil
        queue.push(
            .deliver(.run(reclaim.run, .memory(.reclaimed(attempt: reclaim.attempt, bytes: UInt64(reclaim.bytes))))),
            at: now)
    }

    private mutating func allocate(_ bytes: Int, _ waiting: inout Waiting) -> Int {
        var (machine, processes) = (machine, processes)
        let got = machine.allocate(bytes) { Self.swapOut($0, &processes) }
        (self.machine, self.processes) = (machine, processes)
        waiting.wanted += bytes
        waiting.got += got
        if got < bytes { waiting.some = true }
        return got
    }

    /// Swaps pages of frozen apps, those first that were frozen first, then of apps that run: what they do not use, and then what they do.
    private static func swapOut(_ bytes: Int, _ processes: inout [Process?]) -> Int {
        var left = max(0, bytes)
        while left > 0 {
            var next: (app: Int, process: Process)?
            for (app, process) in processes.enumerated() {
                guard let process, process.swappable > 0 else { continue }
                if let best = next?.process, (best.swapRank, best.frozenAt) <= (process.swapRank, process.frozenAt) {
                    continue
                }
                next = (app, process)
            }
            guard let (app, process) = next else { break }
            let out = min(left, process.swappable)
            processes[app]?.resident -= out
            processes[app]?.swapped += out
            left -= out
        }
        return max(0, bytes) - left
    }

    /// The triggers of pressure stall information: `some 7%` and `full 10%` of a second.
    private mutating func reportPressure() {
        if now - window.start >= .second { window = (now, machine.someStalls, machine.fullStalls) }
        let (some, full) = (machine.someStalls - window.some, machine.fullStalls - window.full)
        let level: MemoryLevel? =
            full >= 100 * .millisecond ? .critical : some >= 70 * .millisecond ? .warning : nil
        guard let level else { return }
        window = (now, machine.someStalls, machine.fullStalls)
        queue.push(.deliver(.memory(.pressureStalled(level))), at: now)
    }
}
