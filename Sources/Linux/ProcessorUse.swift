import CLinux
import Glibc
package import Posix

/// What a run has had of the processors since its start.
package struct ProcessorUse: Equatable {
    /// Time that it has used.
    package var used: Duration
    /// Time in which it was ready to run and none of its threads ran.
    package var waited: Duration

    package init(used: Duration, waited: Duration) {
        self.used = used
        self.waited = waited
    }
}

extension Enclosure {
    /// Measures the processor time of the run. A cgroup counts all of its processes: cpu.stat, and the line "full" of
    /// cpu.pressure, which is the time in which all tasks that were ready to run waited (kernel: accounting/psi.rst). Without
    /// cpu.pressure, and in process-group mode, the threads of the main process count (/proc/PID/task/TID/schedstat).
    package func processorUse(mainProcess: Int32?) throws(SystemError) -> ProcessorUse {
        switch kind {
        case .cgroup(let leaf):
            let used = Duration.microseconds(Int64(clamping: try leaf.value("cpu.stat", "usage_usec") ?? 0))
            if let starved = leaf.starvedTime() { return ProcessorUse(used: used, waited: starved) }
            return ProcessorUse(used: used, waited: try proc.processorUse(of: mainProcess).waited)
        case .family: return try proc.processorUse(of: mainProcess)
        }
    }
}

extension Enclosure {
    /// Measures what all processes of the run have used. In process-group mode the unit is a clock tick (10 ms), and the time of
    /// orphans that have ended is missing.
    package func wholeProcessorUse(mainProcess: Int32?) throws(SystemError) -> ProcessorUse {
        switch kind {
        case .cgroup: try processorUse(mainProcess: mainProcess)
        case .family(let family):
            ProcessorUse(used: try family.cpuTime(), waited: try proc.processorUse(of: mainProcess).waited)
        }
    }
}

extension CgroupLeaf {
    /// Returns the total of "full" in cpu.pressure; `nil` if the kernel does not report it.
    fileprivate func starvedTime() -> Duration? {
        guard let bytes = try? readFileIfPresent(at: "cpu.pressure", in: folder, limit: 4096) else { return nil }
        return fullStallTime(bytes)
    }
}

/// Returns the total of the line "full avg10=… avg60=… avg300=… total=MICROSECONDS"; `nil` without one.
func fullStallTime(_ bytes: [UInt8]) -> Duration? {
    var scanner = ByteScanner(bytes)
    while let line = scanner.line() {
        var words = ByteScanner(line)
        guard words.word()?.elementsEqual("full".utf8) == true else { continue }
        while let word = words.word() {
            guard word.starts(with: "total=".utf8) else { continue }
            let total: Int64? = parseNumber(word.dropFirst("total=".utf8.count))
            return total.map { .microseconds($0) }
        }
    }
    return nil
}

extension ProcFS {
    /// How many threads are read. Of a program with more, the first ones are as good a sample.
    private static let mostThreads = 64

    /// Sums up the time that the threads of a process have used, and takes the longest wait of one thread: they wait at the
    /// same time. Without such a process or file nothing was used.
    func processorUse(of pid: Int32?) throws(SystemError) -> ProcessorUse {
        var use = ProcessorUse(used: .zero, waited: .zero)
        guard let pid else { return use }
        for thread in try threads(of: pid).prefix(Self.mostThreads) {
            guard let bytes = try read("task/\(thread)/schedstat", of: pid) else { continue }
            // Time on a processor and time on a run queue, in nanoseconds (kernel: scheduler/sched-stats.rst).
            var fields = ByteScanner(bytes)
            guard let used: Int64 = fields.number(), let waited: Int64 = fields.number() else { continue }
            use.used += .nanoseconds(used)
            use.waited = max(use.waited, .nanoseconds(waited))
        }
        return use
    }
}

/// Returns how many processors this process may use (sched_getaffinity(2)), at least 1.
package func usableProcessors() -> Int {
    let count = Int(clinux_usable_processors())
    // It fails if there are more processors than its set has bits.
    return count > 0 ? count : max(1, sysconf(Int32(_SC_NPROCESSORS_ONLN)))
}
