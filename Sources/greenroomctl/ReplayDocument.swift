import Control
import JSON
import LifecycleCore
import Timeline

/// What `replay` prints.
struct ReplayDocument {
    var decisions: [JetsamReplay.Decision]
    /// `nil`: only what was recorded is shown.
    var order: ManagerPolicy.JetsamOrder?
    var recordedOrder: ManagerPolicy.JetsamOrder?
    /// CLOCK_REALTIME less CLOCK_MONOTONIC in microseconds; `nil`: not known.
    var clock: Int64?
    var events: Int
    var problems: [String]

    private typealias Victim = JetsamReplay.Decision.Victim

    func text(_ session: Session) -> String {
        let counted = "\(events) events"
        guard !decisions.isEmpty else {
            return order.map {
                "No app was killed for memory in \(counted), and none would have been with \($0.name).\n"
            }
                ?? "No app was killed for memory in \(counted).\n"
        }
        var table = Table(["TIME", "KILLED", "WITH \((order?.name ?? "").uppercased())"], kept: 2)
        if order == nil { table = Table(["TIME", "KILLED"], kept: 2) }
        table.isReport = true
        table.rows = decisions.map { decision in
            let cells = [Cell(when(decision.at, session)), Cell(words(decision.recorded), .bold)]
            return order == nil ? cells : cells + [Cell(words(decision.other))]
        }
        return table.text(session.screen) + "\n" + summary(counted)
    }

    private func summary(_ counted: String) -> String {
        let killed = decisions.reduce(0) { $0 + $1.recorded.count }
        let recorded = recordedOrder.map { " with \($0.name)" } ?? ""
        let head = "In \(counted), \(killed) \(killed == 1 ? "app was" : "apps were") killed for memory\(recorded)"
        guard let order else { return head + ".\n" }
        let other = decisions.reduce(0) { $0 + $1.other.count }
        let same = decisions.count { Set($0.recorded.map(\.app)) == Set($0.other.map(\.app)) }
        return head
            + "; with \(order.name) it would have been \(other), the same in \(same) of \(decisions.count) decisions.\n"
            + "Each decision is judged by what was recorded until then.\n"
    }

    private func words(_ victims: [Victim]) -> String {
        victims.map { "\($0.app) (\(formattedSize($0.memory)), \($0.state.rawValue))" }.joined(separator: ", ")
    }

    private func time(_ at: Instant) -> Timestamp? {
        clock.map { Timestamp(microseconds: UInt64(max(0, $0 + at.microseconds))) }
    }

    private func when(_ at: Instant, _ session: Session) -> String {
        time(at).map { session.screen.isTerminal ? $0.local("%F %T") : $0.rfc3339 } ?? at.sinceOrigin.timeSpan
    }

    var json: JSONValue {
        func victims(_ list: [Victim]) -> JSONValue {
            .array(
                list.map {
                    .object([
                        ("app", .string($0.app.name)), ("state", .string($0.state.rawValue)),
                        ("memoryBytes", .integer(Int64(clamping: $0.memory))),
                    ])
                })
        }
        return .object([
            ("events", .integer(Int64(events))),
            ("recordedOrder", recordedOrder.map { .string($0.name) } ?? .null),
            ("order", order.map { .string($0.name) } ?? .null),
            (
                "decisions",
                .array(
                    decisions.map { decision in
                        .object([
                            ("time", time(decision.at).map { .string($0.rfc3339) } ?? .null),
                            ("killed", victims(decision.recorded)),
                            ("other", order == nil ? .null : victims(decision.other)),
                        ])
                    })
            ),
            ("problems", .array(problems.map(JSONValue.string))),
        ])
    }
}
