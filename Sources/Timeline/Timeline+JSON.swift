import Control
package import JSON
import LifecycleCore

/// `plot --json`: times are microseconds since `start`.
extension Timeline {
    /// The form of the document. Members may be added to it.
    static let jsonVersion: Int64 = 1

    package var json: JSONValue {
        .object([
            ("version", .integer(Self.jsonVersion)),
            ("start", time(start).map { .string(Timestamp(microseconds: $0).rfc3339) } ?? .null),
            ("startMicroseconds", time(start).map { .integer(Int64(clamping: $0)) } ?? .null),
            ("startMonotonicMicroseconds", .integer(start.microseconds)),
            ("duration", .integer(offset(end))),
            ("problems", .array(problems.map(JSONValue.string))),
            (
                "machine",
                .object([
                    ("totalBytes", integer(total)),
                    ("levels", .array(levels.map(json))),
                    ("availableBytes", .array(available.map(json))),
                    ("stalls", .array(stalls.map(json))),
                ])
            ),
            ("requests", .array(requests.map(json))),
            ("apps", .array(lanes.map(json))),
            ("arrows", .array(arrows.map(json))),
        ])
    }

    private func json(_ lane: Lane) -> JSONValue {
        .object([
            ("app", .string(lane.app)),
            ("states", .array(lane.states.map(json))),
            ("deadlines", .array(lane.deadlines.map(json))),
            ("tasks", .array(lane.tasks.map(json))),
            ("marks", .array(lane.marks.map(json))),
            ("memoryBytes", .array(lane.memory.map(json))),
        ])
    }

    private func json(_ bar: Bar) -> JSONValue {
        .object(
            [
                ("from", .integer(offset(bar.start))), ("to", .integer(offset(bar.end))), ("label", .string(bar.label)),
                ("sentence", .string(bar.sentence)),
            ] + (bar.outcome.isEmpty ? [] : [("outcome", .string(bar.outcome))]))
    }

    private func json(_ mark: Mark) -> JSONValue {
        .object([("at", .integer(offset(mark.at))), ("kind", .string(mark.kind)), ("sentence", .string(mark.sentence))])
    }

    private func json(_ sample: Sample) -> JSONValue { .array([.integer(offset(sample.at)), integer(sample.value)]) }

    private func json(_ arrow: Arrow) -> JSONValue {
        let (origin, app): (String, JSONValue) =
            switch arrow.from {
            case .app(let name): ("app", .string(name))
            case .requests: ("requests", .null)
            case .input: ("input", .null)
            case .memory: ("memory", .null)
            }
        return .object([
            ("from", .string(origin)), ("fromApp", app), ("fromAt", .integer(offset(arrow.fromTime))),
            ("toApp", .string(arrow.to)), ("toAt", .integer(offset(arrow.toTime))),
            ("sentence", .string(arrow.sentence)),
        ])
    }

    private func integer(_ value: UInt64) -> JSONValue { .integer(Int64(clamping: value)) }

    /// Microseconds since the start.
    func offset(_ instant: Instant) -> Int64 { instant.microseconds - start.microseconds }
}
