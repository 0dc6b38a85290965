package import LifecycleCore

/// What a recording shows: an app a lane, with bars, marks, and arrows from causes to effects.
package struct Timeline: Equatable, Sendable {
    /// Something that lasted.
    package struct Bar: Equatable, Sendable {
        package var start: Instant
        package var end: Instant
        /// A short word: a state, a deadline, the name of a task.
        package var label: String
        /// What happened, for people.
        package var sentence: String
        /// How it ended: `met`, `missed`, …; empty: it had not ended, or that follows from the next bar.
        package var outcome = ""
    }

    /// Something that happened at one moment.
    package struct Mark: Equatable, Sendable {
        package var at: Instant
        /// A `LifecycleEvent.Kind`, or `request`.
        package var kind: String
        package var sentence: String
    }

    package struct Sample: Equatable, Sendable {
        package var at: Instant
        package var value: UInt64
    }

    package struct Lane: Equatable, Sendable {
        package var app: String
        /// One after the other, without `notRunning`.
        package var states: [Bar] = []
        /// These may overlap.
        package var deadlines: [Bar] = []
        package var tasks: [Bar] = []
        package var marks: [Mark] = []
        /// The footprint in bytes: it stays until the next sample.
        package var memory: [Sample] = []

        package var bars: Int { states.count + deadlines.count + tasks.count }
    }

    /// Where an arrow begins or ends.
    package enum Origin: Hashable, Sendable {
        case app(String)
        /// Users and clients outside all apps.
        case requests
        /// Input from outside the app: a connection, bytes, a timer.
        case input
        /// Jetsam.
        case memory
    }

    package struct Arrow: Equatable, Sendable {
        package var from: Origin
        package var fromTime: Instant
        package var to: String
        package var toTime: Instant
        package var sentence: String
    }

    package var start = Instant.origin
    package var end = Instant.origin
    /// CLOCK_REALTIME less CLOCK_MONOTONIC in microseconds; `nil`: not known.
    package var clock: Int64?
    package var lanes: [Lane] = []
    package var levels: [Bar] = []
    package var requests: [Mark] = []
    /// Available memory, and the size of all apps, in bytes.
    package var available: [Sample] = []
    package var total: UInt64 = 0
    /// In which share of the time at least one task has stalled on memory, in thousandths.
    package var stalls: [Sample] = []
    package var arrows: [Arrow] = []
    /// What is missing, in sentences.
    package var problems: [String] = []

    package init() {}

    package var bars: Int { lanes.reduce(levels.count) { $0 + $1.bars } }

    /// Microseconds since 1970 at an instant; `nil`: not known.
    package func time(_ instant: Instant) -> UInt64? {
        clock.map { UInt64(max(0, $0 + instant.microseconds)) }
    }

    /// The instant of a time for people.
    package func instant(microseconds: UInt64) -> Instant? {
        clock.map { Instant(sinceOrigin: .microseconds(Int64(clamping: microseconds) - $0)) }
    }

    /// Only some apps, and only what lasted or happened since an instant.
    package func selection(since: Instant?, apps: ((String) -> Bool)?) -> Timeline {
        var part = self
        if let apps {
            part.lanes.removeAll { !apps($0.app) }
            part.arrows.removeAll { !apps($0.to) }
        }
        guard let since, since > start else { return part }
        func bars(_ bars: [Bar]) -> [Bar] {
            bars.filter { $0.end >= since }.map {
                var bar = $0
                bar.start = max(bar.start, since)
                return bar
            }
        }
        func samples(_ samples: [Sample]) -> [Sample] {
            let first = samples.lastIndex { $0.at <= since } ?? 0
            return samples.dropFirst(first).map { Sample(at: max($0.at, since), value: $0.value) }
        }
        part.start = min(since, end)
        part.lanes = part.lanes.map { lane in
            Lane(
                app: lane.app, states: bars(lane.states), deadlines: bars(lane.deadlines), tasks: bars(lane.tasks),
                marks: lane.marks.filter { $0.at >= since }, memory: samples(lane.memory))
        }
        part.levels = bars(levels)
        part.requests = requests.filter { $0.at >= since }
        part.available = samples(available)
        part.stalls = samples(stalls)
        part.arrows.removeAll { $0.fromTime < since }
        return part
    }
}

extension Instant {
    /// Whole microseconds since the origin.
    package var microseconds: Int64 { sinceOrigin.microseconds }
}

extension Duration {
    /// Whole microseconds.
    var microseconds: Int64 {
        let (seconds, attoseconds) = components
        return seconds * 1_000_000 + attoseconds / 1_000_000_000_000
    }
}

/// Rows for bars that overlap: each bar is in the first row in which it overlaps none.
///
/// - Parameter bars: in the order of their starts.
package func rows(of bars: [Timeline.Bar]) -> [[Timeline.Bar]] {
    var rows: [[Timeline.Bar]] = []
    for bar in bars.sorted(by: { $0.start < $1.start }) {
        if let row = rows.firstIndex(where: { ($0.last?.end ?? .origin) <= bar.start }) {
            rows[row].append(bar)
        } else {
            rows.append([bar])
        }
    }
    return rows
}
