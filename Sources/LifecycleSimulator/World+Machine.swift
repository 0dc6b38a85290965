import LifecycleCore

/// Simulates memory, pressure stalls and delays.
extension World {
    var available: UInt64 {
        let back = returning.reduce(0) { $0 + $1.bytes }
        let taken = usedMemory + otherMemory + back
        return scenario.totalMemory - min(scenario.totalMemory, taken)
    }

    mutating func setMemory(_ run: Int, _ bytes: UInt64) {
        usedMemory -= runs[run].memory
        usedMemory += bytes
        runs[run].memory = bytes
    }

    /// Frees the memory of a run. A part of it becomes available later: the kernel frees pages in batches for each
    /// processor.
    mutating func giveUpMemory(_ run: Int) {
        usedMemory -= runs[run].memory
        let part = runs[run].memory / 4
        if part > 0 { returning.append((part, now + machineRandom.within(0...3 * .second))) }
        runs[run].memory = 0
    }

    /// Lets an app allocate memory. Only running apps call it.
    mutating func grow(_ run: Int) {
        let app = runs[run].app
        let size = runs[run].memory
        let isLarge = apps[app].random.chance(scenario.rates[Fault.memoryGrows.rawValue]) && allows(.memoryGrows)
        let most = isLarge || scenario.isMemoryTight ? scenario.totalMemory / 3 : 100 << 20
        setMemory(run, min(scenario.totalMemory, size + UInt64(apps[app].random.below(Int(most)))))
        if available == 0 { runOutOfMemory() }
    }

    mutating func shrink(_ run: Int) {
        guard runs[run].freezer != .frozen, !runs[run].isEmpty else { return }
        setMemory(run, runs[run].memory / 2)
    }

    /// Kills an app of the first OOM class that has one, the largest there, as the kernel's OOM killer does.
    private mutating func runOutOfMemory() {
        guard injects(.outOfMemory) else { return }
        let alive = apps.compactMap(\.run).filter { !runs[$0].isEmpty }
        let last = alive.min {
            let (a, b) = (runs[$0].oomClass, runs[$1].oomClass)
            return a == b ? runs[$0].memory > runs[$1].memory : a.rawValue < b.rawValue
        }
        guard let victim = last else { return }
        countKill()
        schedule(.outOfMemory, for: victim, after: 0)
    }

    mutating func measure() {
        isMeasuring = true
        returning.removeAll { $0.at <= now }
        var sizes: [MemoryReading.Size] = []
        for case let run? in apps.map(\.run)
        where !runs[run].isEmpty && (runs[run].freezer != .frozen || isMeasuredFrozen(run)) {
            sizes.append(MemoryReading.Size(run: runs[run].id, bytes: runs[run].memory))
        }
        let reading = memoryReading(sizes)
        let extraDelay = injects(.measuredLate) ? kernelRandom.within(0...2 * .second) : 0
        deliver(.memory(.measured(reading)), after: kernelRandom.within(50...2000) + extraDelay)
    }

    /// Changes the memory use of other programs and reports stalls, at random intervals.
    mutating func actAsMachine() {
        if isQuiet { return }
        queue.push(.machine, at: now + machineRandom.within(50 * .millisecond...2 * .second))
        if injects(.machineFills) {
            otherMemory = UInt64(machineRandom.below(Int(scenario.totalMemory)))
            // Other programs can be faster than the daemon, too.
            if scenario.seed % 4 == 1, available == 0 { runOutOfMemory() }
        } else if machineRandom.chance(100) {
            otherMemory = scenario.totalMemory / UInt64(2 + machineRandom.below(10))
        }
        stall()
        if available < scenario.totalMemory / 6, machineRandom.chance(500) {
            deliver(.memory(.pressureStalled(machineRandom.chance(700) ? .warning : .critical)), after: 0)
        } else if injects(.pressureSpike) {
            deliver(.memory(.pressureStalled(machineRandom.pick(MemoryLevel.allCases))), after: 0)
        }
        if injects(.killedByOthers), let run = apps[machineRandom.below(apps.count)].run {
            schedule(.die(.kill), for: run, after: 0)
        }
        if injects(.timerSpurious) { deliver(.deadlineReached, after: 0) }
    }

    /// Unmounts the file system that has the programs, or mounts it again.
    mutating func changeFileSystem() {
        if isQuiet { return }
        isUnmounted.toggle()
        let pause = scenario.pace * (isUnmounted ? 30 : 60)
        queue.push(.fileSystem, at: now + outageRandom.within(scenario.pace / 2...pause))
    }

    /// Delays the daemon: it is not scheduled, or the clock jumps.
    private mutating func stall() {
        guard injects(.clockJumps) else { return }
        let time =
            machineRandom.chance(800)
            ? machineRandom.within(10 * .millisecond...6 * .second) : machineRandom.within(6 * .second...120 * .second)
        let until = max(stalledUntil, now + time)
        lateness += until - max(stalledUntil, now)
        stalledUntil = until
    }

    /// The delay of the daemon's timer.
    mutating func timerDelay() -> Microseconds {
        timerLateness = 0
        if injects(.timerLate) {
            timerLateness = kernelRandom.within(1 * .millisecond...3 * .second)
            lateness += timerLateness
            return timerLateness
        }
        return kernelRandom.chance(500) ? 0 : kernelRandom.within(0...100)
    }
}
