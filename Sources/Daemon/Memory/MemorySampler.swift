import LifecycleCore
import Linux
import Systemd

/// Measures the sizes of all apps that are not frozen, and the machine's memory (`Effect.measureMemory`). It is done in
/// pieces: 1,000 apps take some 50ms.
final class MemorySampler {
    private let loop: EventLoop
    private let runs: RunTable
    private let containment: Containment
    private let memory: MemoryWatch
    private let protection: MemoryProtection
    private let kernelKills: KernelKills
    private let output: OutputFiles
    private let stored: StoredDescriptors
    private unowned let events: any EventSink
    private var isMeasuring = false
    private var awake: ArraySlice<RunID> = []
    /// In process-group mode: the frozen runs, in which another process may have continued one.
    private var frozen: ArraySlice<RunID> = []
    private var sizes: [MemoryReading.Size] = []
    /// In process-group mode: one search of /proc for all apps.
    private var scan: ProcessScan?
    private var isScanned = false
    private var current: (run: RunID, measurement: FootprintMeasurement)?

    init(
        loop: EventLoop, runs: RunTable, containment: Containment, memory: MemoryWatch, protection: MemoryProtection,
        kernelKills: KernelKills, output: OutputFiles, stored: StoredDescriptors, events: any EventSink
    ) {
        (self.loop, self.runs, self.containment, self.memory) = (loop, runs, containment, memory)
        (self.protection, self.kernelKills) = (protection, kernelKills)
        (self.output, self.stored, self.events) = (output, stored, events)
    }

    /// Begins to measure, unless a measurement is under way. `memoryMeasured` follows.
    func measure() {
        if isMeasuring { return }
        isMeasuring = true
        awake = runs.awake[...]
        sizes = []
        scan = awake.isEmpty ? nil : containment.makeScan()
        isScanned = scan == nil
        frozen = scan == nil ? [] : runs.frozen[...]
        loop.work.add { [weak self] in self?.step() ?? false }
    }

    /// - Returns: whether there is more to measure.
    private func step() -> Bool {
        if !isScanned {
            // If /proc cannot be read, each app is searched for by itself.
            do { isScanned = try scan?.advance() != true } catch { (scan, isScanned) = (nil, true) }
        } else if current != nil {
            advance()
        } else if let id = awake.popFirst() {
            begin(id)
        } else if let id = frozen.popFirst() {
            runs[id]?.checkFrozen(in: scan)
        } else {
            finish()
            return false
        }
        return true
    }

    private func begin(_ id: RunID) {
        // It may have been frozen or removed meanwhile.
        guard let run = runs[id], !run.isFrozen else { return }
        output.bound(id)
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
        let numbers = memory.read()
        kernelKills.measured(numbers.counters.oomKills, at: EventLoop.now())
        protection.measured(sizes, total: numbers.total)
        var reading = numbers.reading(sizes)
        reading.stored = stored.bytes { runs[$0] == nil }
        isMeasuring = false
        scan = nil
        sizes = []
        events.send(.memory(.measured(reading)))
    }
}
