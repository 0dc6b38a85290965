import Control
import LifecycleCore

/// The events of a run: those that wait for a connection, those that wait for their answer, and the last ones that were sent.
///
/// Each is recorded before it is sent, with a serial that is never used again in the run. So a client that connects again, to
/// this daemon or the next, names the last one that it has got, and gets the rest once.
///
/// ```
/// add ──▶ waiting ──▶ sent ──▶ answered, displaced, or closed by a later transition
///            recorded             removed
/// ```
final class EventQueue {
    /// The most events that are kept. With more, the oldest are dropped: first those that were sent and need no answer.
    static let capacity = 256
    /// Of those that were sent and need no answer, so many are kept for a client that connects again.
    static let keptSent = 32
    /// The most bytes of URLs and payloads.
    static let maximumBytes = 1 << 20

    /// In the order of their serials.
    private(set) var events: [AppEvent]
    /// The serial 1 stands for the launch: so a client that has got no event yet can name what it has got.
    private(set) var lastSerial: UInt64
    /// Records an event; `nil`: removes the record.
    private let record: (UInt64, AppEvent?) -> Void

    init(
        _ events: [AppEvent] = [], lastSerial: UInt64 = 1, record: @escaping (UInt64, AppEvent?) -> Void = { _, _ in }
    ) {
        self.events = events.sorted { $0.serial < $1.serial }
        self.lastSerial = max(lastSerial, self.events.last?.serial ?? 0)
        self.record = record
    }

    /// Gives an event the next serial and records it.
    /// - Parameter content: the rest of the event; its serial is replaced.
    /// - Returns: the event, and the kinds of events that were dropped for it without having been sent.
    func add(_ content: AppEvent) -> (event: AppEvent, lost: [EventKind]) {
        lastSerial += 1
        var event = content
        event.serial = lastSerial
        if let state = event.state { remove { $0.state == state && !$0.isSent } }
        events.append(event)
        record(event.serial, event)
        return (event, limit())
    }

    private func limit() -> [EventKind] {
        var sent = events.count { $0.isSent && !$0.kind.isAnswered }
        if sent > Self.keptSent {
            remove { event in
                guard sent > Self.keptSent, event.isSent, !event.kind.isAnswered else { return false }
                sent -= 1
                return true
            }
        }
        var lost: [EventKind] = []
        var bytes = events.reduce(0) { $0 + $1.size }
        while events.count > 1, events.count > Self.capacity || bytes > Self.maximumBytes {
            let index = events.firstIndex { $0.isSent && !$0.kind.isAnswered } ?? 0
            let event = events.remove(at: index)
            bytes -= event.size
            record(event.serial, nil)
            if !event.isSent { lost.append(event.kind) }
        }
        return lost
    }

    /// The event that waits for its answer; `nil`: there is none of this serial.
    func open(_ serial: UInt64) -> AppEvent? { events.first { $0.serial == serial && $0.kind.isAnswered } }

    /// Removes events: they are answered, or count no more.
    func remove(where isRemoved: (AppEvent) -> Bool) {
        events.removeAll { event in
            guard isRemoved(event) else { return false }
            record(event.serial, nil)
            return true
        }
    }

    /// The events that a client gets which connects.
    /// - Parameters:
    ///   - serial: of the last one that it has got; 0: it connects for the first time. Then it gets only those that wait: for
    ///     their answer, or for any connection.
    ///   - kinds: those that it handles.
    func due(after serial: UInt64, _ kinds: Set<EventKind>) -> [AppEvent] {
        events.filter { event in
            event.serial > serial && kinds.contains(event.kind)
                && (serial > 0 || event.kind.isAnswered || !event.isSent)
        }
    }

    /// The events were sent for the first time.
    func markSent(_ serials: Set<UInt64>) {
        for index in events.indices where !events[index].isSent && serials.contains(events[index].serial) {
            events[index].isSent = true
            record(events[index].serial, events[index])
        }
    }
}
