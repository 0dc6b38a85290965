import LifecycleCore
import Linux
import Systemd

/// Measures the sizes of all apps that are not frozen, and the machine's memory (`Effect.measureMemory`). It is done in
/// pieces: 1,000 apps take some 50ms.
final class MemorySampler {
    private unowned let context: DaemonContext
    private var isMeasuring = false
    private var runs: ArraySlice<RunID> = []
    /// In process-group mode: the frozen runs, in which another process may have continued one.
    private var frozen: ArraySlice<RunID> = []
    private var sizes: [MemoryReading.Size] = []
    /// In process-group mode: one search of /proc for all apps.
    private var scan: ProcessScan?
    private var isScanned = false
    private var current: (run: RunID, measurement: FootprintMeasurement)?

    init(_ context: DaemonContext) { self.context = context }

    /// Begins to measure, unless a measurement is under way. `memoryMeasured` follows.
    func measure() {
        if isMeasuring { return }
        isMeasuring = true
        runs = context.runs.awake[...]
        sizes = []
        scan = runs.isEmpty ? nil : context.containment.makeScan()
        isScanned = scan == nil
        frozen = scan == nil ? [] : context.runs.frozen[...]
        context.loop.work.add { [weak self] in self?.step() ?? false }
    }

    /// - Returns: whether there is more to measure.
    private func step() -> Bool {
        if !isScanned {
            // If /proc cannot be read, each app is searched for by itself.
            do { isScanned = try scan?.advance() != true } catch { (scan, isScanned) = (nil, true) }
        } else if current != nil {
            advance()
        } else if let id = runs.popFirst() {
            begin(id)
        } else if let id = frozen.popFirst() {
            context.runs[id]?.checkFrozen(in: scan)
        } else {
            finish()
            return false
        }
        return true
    }

    private func begin(_ id: RunID) {
        // It may have been frozen or removed meanwhile.
        guard let run = context.runs[id], !run.isFrozen else { return }
        context.output.bound(id)
        // A group that cannot be read counts as removed.
        guard let measurement = try? run.enclosure.beginMeasurement(in: scan) else { return add(id, nil) }
        current = (id, measurement)
        advance()
    }

    private func advance() {
        guard let id = current?.run else { return }
        let hasMore = (try? current?.measurement.advance()) ?? false
        if hasMore == true { return }
        add(id, current?.measurement)
        current = nil
    }

    private func add(_ id: RunID, _ measurement: FootprintMeasurement?) {
        sizes.append(
            MemoryReading.Size(
                run: id, bytes: measurement?.footprint.bytes ?? 0, uncertainty: measurement?.uncertainty ?? 0))
    }

    private func finish() {
        var reading = context.memory.read().reading(sizes)
        reading.stored = context.stored.bytes { context.runs[$0] == nil }
        isMeasuring = false
        scan = nil
        sizes = []
        context.events.send(.memoryMeasured(reading))
    }
}
