import LifecycleCore
import Linux
import Manifest
import Systemd

/// The machine's memory: what there is, and the kernel's word when it stalls for want of it.
final class MemoryWatch {
    private let loop: EventLoop
    private let log: (String) -> Void
    private var triggers: [(trigger: PressureTrigger, source: EventSource)] = []
    private let info: MemoryInfoReader?

    init(loop: EventLoop, log: @escaping (String) -> Void) {
        self.loop = loop
        self.log = log
        info = try? MemoryInfoReader()
        if info == nil { log("/proc/meminfo cannot be read: the machine's own memory is not watched") }
    }

    /// Bytes. What lies on the processors' own lists right after a kill is free too, though MemAvailable does not know yet.
    func read() -> (total: UInt64, available: UInt64) {
        guard let info, let reading = try? info.read() else { return (0, 0) }
        return (reading.total, min(reading.total, reading.available + perCPUFreeBytes()))
    }

    /// Sets the triggers anew.
    func watch(_ thresholds: [(MemoryLevel, PressureThreshold)], send: @escaping (Event) -> Void) {
        triggers = []
        for (level, threshold) in thresholds {
            do {
                let trigger = try PressureTrigger.open(
                    kind: threshold.kind == .some ? .some : .full, percent: threshold.percent)
                let source = try loop.addDescriptor(trigger.descriptor, events: .priority) { [weak self] events in
                    if events.contains(.error) {
                        self?.triggers.removeAll { $0.trigger === trigger }
                        self?.log("the pressure trigger for \(level.name) is gone")
                    } else {
                        send(.pressureStalled(level))
                    }
                }
                triggers.append((trigger, source))
            } catch {
                log("no pressure trigger for \(level.name): \(error); MemAvailable and Budget= still count")
            }
        }
    }
}
