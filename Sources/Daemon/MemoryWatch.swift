import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// The machine's memory: how much is available, and the kernel's reports that tasks stall because it is short (PSI).
final class MemoryWatch {
    private let loop: EventLoop
    private let journal: Journal
    private unowned let events: any EventSink
    private var triggers: [Trigger] = []
    private let info: MemoryInfoReader?

    init(loop: EventLoop, journal: Journal, events: any EventSink) {
        self.loop = loop
        self.journal = journal
        self.events = events
        info = try? MemoryInfoReader()
        if info == nil { journal.logWarning("/proc/meminfo cannot be read: only Budget= and PSI limit memory") }
    }

    /// Total and available memory in bytes; 0: unknown. Pages on the per-CPU lists are free as well, but MemAvailable
    /// includes them only some time after a process was killed.
    func read() -> (total: UInt64, available: UInt64) {
        guard info != nil, let reading = try? info?.read() else { return (0, 0) }
        let lists = (try? info?.perCPUPages()) ?? 0
        return (reading.total, min(reading.total, reading.available + lists))
    }

    /// Replaces the PSI triggers.
    func watch(_ thresholds: [(MemoryLevel, PressureThreshold)]) {
        triggers = []
        for (level, threshold) in thresholds {
            do {
                let trigger = Trigger(try PressureTrigger(threshold))
                trigger.source = try loop.addDescriptor(trigger.descriptor, events: .priority) {
                    [weak self, weak trigger] in
                    guard let self, let trigger else { return }
                    self.fired(trigger, level, $0)
                }
                triggers.append(trigger)
            } catch {
                log("no PSI trigger for the memory level \(level.name): \(error); MemAvailable and Budget= still count")
            }
        }
    }

    private func fired(_ trigger: Trigger, _ level: MemoryLevel, _ happened: DescriptorEvents) {
        guard happened.contains(.error) else { return events.send(.pressureStalled(level)) }
        triggers.removeAll { $0 === trigger }
        log("the PSI trigger for the memory level \(level.name) was removed by the kernel")
    }

    private func log(_ sentence: String) { journal.log(.notice, MessageID.warning, sentence) }
}

/// A PSI trigger and the source that waits for it.
private final class Trigger {
    private let trigger: PressureTrigger
    var source: EventSource?

    init(_ trigger: consuming PressureTrigger) { self.trigger = trigger }
    var descriptor: SharedDescriptor { trigger.descriptor }

    /// The source goes before the descriptor is closed.
    deinit { source?.cancel() }
}

extension PressureTrigger {
    /// The percentage of a window of one second. Unprivileged processes may only set windows that are multiples of two
    /// seconds (Documentation/accounting/psi.rst).
    fileprivate init(_ threshold: PressureThreshold) throws {
        try self.init(
            threshold.kind == .some ? .some : .full, stall: .milliseconds(10 * threshold.percent), window: .seconds(1))
    }
}
