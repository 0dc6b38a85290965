import LifecycleCore
import Linux
import LoopPolicy
import Manifest
import Posix
import Reports
import Systemd

/// The PSI triggers of the machine or of one group.
final class StallTriggers {
    private let path: String
    private let loop: EventLoop
    private unowned let events: any EventSink
    private let journal: Journal
    private var triggers: [Trigger] = []
    /// What was logged last.
    private var problem: String?

    /// - Parameter path: a memory.pressure file.
    init(_ path: String, _ loop: EventLoop, _ events: any EventSink, _ journal: Journal) {
        self.path = path
        self.loop = loop
        self.events = events
        self.journal = journal
    }

    /// Replaces the triggers. What fails is logged in one line, once until its reason changes.
    func set(_ thresholds: [(MemoryLevel, PressureThreshold)]) {
        triggers = []
        var failures: [(level: String, reason: String)] = []
        for (level, threshold) in thresholds {
            do { try add(level, threshold) } catch { failures.append((level.name, "\(error)")) }
        }
        guard let first = failures.first else {
            problem = nil
            return
        }
        let levels = failures.count == 1 ? "level \(first.level)" : "levels warning and critical"
        let sentence =
            "no PSI trigger of \(path.printable()) for the memory \(levels): \(first.reason); available memory, limits of "
            + "cgroups and Budget= still count"
        if sentence != problem { log(sentence) }
        problem = sentence
    }

    private func add(_ level: MemoryLevel, _ threshold: PressureThreshold) throws {
        let trigger = Trigger(try PressureTrigger(path, threshold))
        trigger.source = try loop.addDescriptor(trigger.descriptor, events: .priority, kind: .memoryPressure) {
            [weak self, weak trigger] in
            guard let self, let trigger else { return .nothing }
            self.fired(trigger, level, $0)
            return .progress
        }
        triggers.append(trigger)
    }

    private func fired(_ trigger: Trigger, _ level: MemoryLevel, _ happened: EpollEvents) {
        guard happened.contains(.error) else { return events.send(.memory(.pressureStalled(level))) }
        triggers.removeAll { $0 === trigger }
        log("the PSI trigger of \(path.printable()) for the memory level \(level.name) was removed by the kernel")
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
    fileprivate init(_ path: String, _ threshold: PressureThreshold) throws {
        try self.init(
            path: path, threshold.kind == .some ? .some : .full, stall: .milliseconds(10 * threshold.percent),
            window: .seconds(1))
    }
}
