import LifecycleCore
import Linux
import Manifest
import Posix
import Systemd

/// The machine's memory: what there is, and the kernel's word when it stalls for want of it.
final class MemoryWatch {
    private let loop: EventLoop
    private let log: (String) -> Void
    private var triggers: [Trigger] = []
    private let info: MemoryInfoReader?

    init(loop: EventLoop, log: @escaping (String) -> Void) {
        self.loop = loop
        self.log = log
        info = try? MemoryInfoReader()
        if info == nil { log("/proc/meminfo cannot be read: the machine's own memory is not watched") }
    }

    /// Bytes. What lies on the processors' own lists right after a kill is free too, though MemAvailable does not know yet.
    func read() -> (total: UInt64, available: UInt64) {
        guard info != nil, let reading = try? info?.read() else { return (0, 0) }
        let lists = (try? info?.perCPUPages()) ?? 0
        return (reading.total, min(reading.total, reading.available + lists))
    }

    /// Sets the triggers anew.
    func watch(_ thresholds: [(MemoryLevel, PressureThreshold)], send: @escaping (Event) -> Void) {
        triggers = []
        for (level, threshold) in thresholds {
            do {
                let trigger = Trigger(try PressureTrigger(threshold))
                trigger.source = try loop.addDescriptor(trigger.descriptor, events: .priority) {
                    [weak self, weak trigger] events in
                    guard events.contains(.error) else { return send(.pressureStalled(level)) }
                    self?.triggers.removeAll { $0 === trigger }
                    self?.log("the pressure trigger for \(level.name) is gone")
                }
                triggers.append(trigger)
            } catch {
                log("no pressure trigger for \(level.name): \(error); MemAvailable and Budget= still count")
            }
        }
    }
}

/// A trigger, and who waits for it.
private final class Trigger {
    private let trigger: PressureTrigger
    var source: EventSource?

    init(_ trigger: consuming PressureTrigger) { self.trigger = trigger }
    var descriptor: SharedDescriptor { trigger.descriptor }

    /// The source goes before the descriptor is closed.
    deinit { source?.cancel() }
}

extension PressureTrigger {
    /// Of a second; the kernel may grant multiples of two seconds only, then of those.
    fileprivate init(_ threshold: PressureThreshold) throws {
        try self.init(
            threshold.kind == .some ? .some : .full, stall: .milliseconds(10 * threshold.percent), window: .seconds(1))
    }
}
