import LifecycleCore

/// `plot --perfetto`: a trace of TrackEvents, as ui.perfetto.dev opens it (https://perfetto.dev/docs/reference/trace-packet-proto).
/// The numbers of fields and enums below are those of Perfetto's `.proto` files.
package struct PerfettoTrace {
    private var bytes: [UInt8] = []
    private let timeline: Timeline
    private var nextTrack: UInt64 = 1
    private var tracks: [Timeline.Origin: UInt64] = [:]
    /// Events of all tracks. Those of the slices of a track are in their order, which writing by time keeps.
    private var events: [(at: Instant, packet: ProtobufWriter)] = []

    private enum Packet {
        static let clockSnapshot = 6
        static let timestamp = 8
        static let sequence = 10
        static let trackEvent = 11
        static let sequenceFlags = 13
        static let defaults = 59
        static let trackDescriptor = 60
    }
    private enum EventType: UInt64 { case begin = 1, end, instant, counter }
    /// `BUILTIN_CLOCK_REALTIME` and `BUILTIN_CLOCK_MONOTONIC`.
    private static let (realtime, monotonic): (UInt64, UInt64) = (1, 3)
    /// `SEQ_INCREMENTAL_STATE_CLEARED`.
    private static let cleared: UInt64 = 1

    package init(_ timeline: Timeline) { self.timeline = timeline }

    package mutating func serialized() -> [UInt8] {
        writeClocks()
        writeMachine()
        for lane in timeline.lanes { write(lane) }
        for (index, arrow) in timeline.arrows.enumerated() { write(arrow, flow: UInt64(index + 1)) }
        for (_, event) in events.enumerated().sorted(by: { ($0.element.at, $0.offset) < ($1.element.at, $1.offset) }) {
            var packet = event.packet
            packet.put(Packet.timestamp, UInt64(max(0, event.at.microseconds)) * 1000)
            append(packet)
        }
        return bytes
    }

    private mutating func append(_ packet: ProtobufWriter) {
        var packet = packet
        packet.put(Packet.sequence, 1)
        var trace = ProtobufWriter()
        trace.put(1, packet)
        bytes += trace.bytes
    }

    private mutating func writeClocks() {
        var defaults = ProtobufWriter()
        defaults.put(58, Self.monotonic)
        var first = ProtobufWriter()
        first.put(Packet.sequenceFlags, Self.cleared)
        first.put(Packet.defaults, defaults)
        if let time = timeline.time(timeline.start) {
            var snapshot = ProtobufWriter()
            let readings = [
                (Self.realtime, time), (Self.monotonic, UInt64(max(0, timeline.start.microseconds))),
            ]
            for (clock, microseconds) in readings {
                var reading = ProtobufWriter()
                reading.put(1, clock)
                reading.put(2, microseconds * 1000)
                snapshot.put(1, reading)
            }
            snapshot.put(2, Self.monotonic)
            first.put(Packet.clockSnapshot, snapshot)
        }
        append(first)
    }

    // MARK: Tracks

    private mutating func track(_ name: String, in parent: UInt64? = nil, rank: Int? = nil, counter unit: UInt64? = nil)
        -> UInt64
    {
        let id = nextTrack
        nextTrack += 1
        var descriptor = ProtobufWriter()
        descriptor.put(1, id)
        descriptor.put(2, name)
        if let parent { descriptor.put(5, parent) } else { descriptor.put(11, 3) }
        if let rank { descriptor.put(12, UInt64(rank)) }
        if let unit {
            var counter = ProtobufWriter()
            counter.put(3, unit)
            descriptor.put(8, counter)
        }
        var packet = ProtobufWriter()
        packet.put(Packet.trackDescriptor, descriptor)
        append(packet)
        return id
    }

    /// `UNIT_SIZE_BYTES` and `UNIT_COUNT`.
    private static let (sizeUnit, countUnit): (UInt64, UInt64) = (3, 2)

    private mutating func writeMachine() {
        let requests = track("requests")
        tracks[.requests] = requests
        for mark in timeline.requests {
            put(.instant, on: requests, mark.at, name: mark.kind, mark.sentence, "request")
        }
        tracks[.input] = track("input")
        let memory = track("memory level")
        tracks[.memory] = memory
        for bar in timeline.levels { put(bar, on: memory, "memory") }
        let available = track("available memory", counter: Self.sizeUnit)
        for sample in timeline.available { put(sample, on: available) }
        let stalls = track("stalled on memory (thousandths)", counter: Self.countUnit)
        for sample in timeline.stalls { put(sample, on: stalls) }
    }

    /// The track of an app has its runs, and in each run its states. What overlaps has tracks below.
    private mutating func write(_ lane: Timeline.Lane) {
        let app = track(lane.app)
        tracks[.app(lane.app)] = app
        for run in runs(of: lane.states) {
            guard let first = run.first, let last = run.last else { continue }
            put(.begin, on: app, first.start, name: "run", "", "run")
            for bar in run { put(bar, on: app, "state") }
            put(.end, on: app, last.end)
        }
        for mark in lane.marks { put(.instant, on: app, mark.at, name: mark.kind, mark.sentence, "event") }
        var rank = 0
        for (name, bars) in [("deadlines", lane.deadlines), ("tasks", lane.tasks)] {
            for row in rows(of: bars) {
                let below = track(name, in: app, rank: rank)
                rank += 1
                for bar in row { put(bar, on: below, name) }
            }
        }
        if lane.memory.isEmpty { return }
        let memory = track("footprint", in: app, rank: rank, counter: Self.sizeUnit)
        for sample in lane.memory { put(sample, on: memory) }
    }

    /// States that follow each other without a time in which the app did not run.
    private func runs(of states: [Timeline.Bar]) -> [[Timeline.Bar]] {
        var runs: [[Timeline.Bar]] = []
        for bar in states {
            if let last = runs.last?.last, last.end == bar.start {
                runs[runs.count - 1].append(bar)
            } else {
                runs.append([bar])
            }
        }
        return runs
    }

    // MARK: Events

    private mutating func put(_ bar: Timeline.Bar, on track: UInt64, _ category: String) {
        put(.begin, on: track, bar.start, name: bar.label, bar.sentence, category, outcome: bar.outcome)
        put(.end, on: track, bar.end)
    }

    private mutating func put(_ sample: Timeline.Sample, on track: UInt64) {
        put(.counter, on: track, sample.at) { $0.put(30, sample.value) }
    }

    private mutating func put(
        _ type: EventType, on track: UInt64, _ at: Instant, name: String = "", _ sentence: String = "",
        _ category: String = "", outcome: String = "", flow: (Int, UInt64)? = nil,
        _ add: (inout ProtobufWriter) -> Void = { _ in }
    ) {
        var event = ProtobufWriter()
        for (key, value) in [("sentence", sentence), ("outcome", outcome)] where !value.isEmpty {
            var note = ProtobufWriter()
            note.put(10, key)
            note.put(6, value)
            event.put(4, note)
        }
        event.put(9, type.rawValue)
        event.put(11, track)
        if !category.isEmpty { event.put(22, category) }
        if !name.isEmpty { event.put(23, name) }
        add(&event)
        if let (field, id) = flow { event.put(fixed: field, id) }
        var packet = ProtobufWriter()
        packet.put(Packet.trackEvent, event)
        events.append((at, packet))
    }

    /// A flow from an instant in the track of the cause to one in the track of the app.
    private mutating func write(_ arrow: Timeline.Arrow, flow: UInt64) {
        guard let to = tracks[.app(arrow.to)] else { return }
        // A cause of an app that is not shown begins in the track of requests.
        let from = tracks[arrow.from] ?? tracks[.requests] ?? to
        put(.instant, on: from, arrow.fromTime, name: "cause", arrow.sentence, "arrow", flow: (47, flow))
        put(.instant, on: to, arrow.toTime, name: "effect", arrow.sentence, "arrow", flow: (48, flow))
    }
}

/// Writes the wire format of Protocol Buffers.
struct ProtobufWriter {
    private(set) var bytes: [UInt8] = []

    /// A varint.
    mutating func put(_ field: Int, _ value: UInt64) {
        varint(UInt64(field) << 3)
        varint(value)
    }

    /// A fixed64.
    mutating func put(fixed field: Int, _ value: UInt64) {
        varint(UInt64(field) << 3 | 1)
        for shift in 0..<8 { bytes.append(UInt8(truncatingIfNeeded: value >> (8 * UInt64(shift)))) }
    }

    mutating func put(_ field: Int, _ text: String) { put(field, Array(text.utf8)) }
    mutating func put(_ field: Int, _ message: ProtobufWriter) { put(field, message.bytes) }

    private mutating func put(_ field: Int, _ content: [UInt8]) {
        varint(UInt64(field) << 3 | 2)
        varint(UInt64(content.count))
        bytes += content
    }

    private mutating func varint(_ value: UInt64) {
        var rest = value
        while rest >= 0x80 {
            bytes.append(UInt8(truncatingIfNeeded: rest) | 0x80)
            rest >>= 7
        }
        bytes.append(UInt8(rest))
    }
}
