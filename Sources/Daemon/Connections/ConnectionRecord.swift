import Control
import LifecycleCore

/// What the next daemon needs of the connections of a run, beside its events and tasks.
struct ConnectionRecord: Defaulted, Hashable {
    var lastSerial: UInt64 = 1
    /// The last effect of the core that led to an event.
    var lastEffect = EffectID.none
    /// The kinds that the connections handle together. After a death of the daemon their clients connect again.
    var handled: Set<EventKind> = []
    /// The kinds that the app handles with a process for each event: they wait while none is connected.
    var kept: Set<EventKind> = []
}

/// The launch of a run, as its processes learn it.
struct LaunchRecord: Hashable {
    var state = ""
    var reason = ""
    var url: String?
    var isFirst = false
    /// When it began, in the time of the loop.
    var began = Duration.zero

    init() {}

    init(_ launch: Launch, at now: Duration) {
        state = launch.state == .foreground ? "inactive" : "background"
        reason = launch.reason.rawValue
        url = launch.url
        isFirst = launch.isFirst
        began = now
    }
}

extension LaunchRecord: SavedRecord {
    static var blank: LaunchRecord { LaunchRecord() }

    mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.field(1, &state)
        try coder.field(2, &reason)
        try coder.optional(3, &url)
        try coder.flag(4, &isFirst)
        try coder.field(5, &began)
    }
}

extension ConnectionRecord: SavedRecord {
    static var blank: ConnectionRecord { ConnectionRecord() }

    mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.field(1, &lastSerial)
        try coder.field(2, &lastEffect.event)
        try coder.field(3, &lastEffect.index)
        try Self.code(4, &handled, &coder)
        try Self.code(5, &kept, &coder)
    }

    private static func code<Coder: RecordCoder>(
        _ number: Int, _ kinds: inout Set<EventKind>, _ coder: inout Coder
    ) throws(Coder.Failure) {
        var names = kinds.map(\.rawValue).sorted()
        try coder.list(number, &names, upTo: 2 * EventKind.allCases.count)
        kinds = Set(names.compactMap(EventKind.init(rawValue:)))
    }
}

/// The records of the connections of runs in the logbook: `self/RUN`, `launch/RUN`, `event/RUN/SERIAL` and `task/RUN/TOKEN`.
/// Each event and task has one of its own: to rewrite all at each change would take longer the more there are.
enum ConnectionRecords {
    static func state(_ run: RunID) -> String { "self/\(run)" }
    static func launch(_ run: RunID) -> String { "launch/\(run)" }
    static func event(_ run: RunID, _ serial: UInt64) -> String { "event/\(run)/\(serial)" }
    static func task(_ run: RunID, _ token: String) -> String { "task/\(run)/\(token)" }

    private static let prefixes = ["self/", "launch/", "event/", "task/"]

    /// The run that a record of this name belongs to; `nil`: it is a record of another kind.
    static func run(named name: String) -> RunID? { parts(name)?.run }

    private static func parts(_ name: String) -> (prefix: String, run: RunID, rest: Substring)? {
        guard let prefix = prefixes.first(where: { name.hasPrefix($0) }) else { return nil }
        let rest = name.dropFirst(prefix.count)
        let end = rest.firstIndex(of: "/") ?? rest.endIndex
        guard let number = UInt64(rest[..<end]) else { return nil }
        return (prefix, RunID(number), end == rest.endIndex ? "" : rest[rest.index(after: end)...])
    }

    /// What the previous daemon recorded of one run.
    struct Recovered {
        var state = ConnectionRecord()
        var events: [AppEvent] = []
        /// The names of open tasks, by token.
        var tasks: [String: String] = [:]
        /// The launch, the connections or an event were recorded: the run was launched by a release that has them.
        var isFound = false
    }

    /// Reads the records of all runs. One that cannot be read is left out.
    static func all(in records: [String: [UInt8]]) -> [RunID: Recovered] {
        var found: [RunID: Recovered] = [:]
        for (name, bytes) in records {
            guard let (prefix, run, rest) = parts(name) else { continue }
            found[run, default: Recovered()].isFound = true
            switch prefix {
            case "self/":
                if let state = try? ConnectionRecord(reading: bytes) { found[run]?.state = state }
            // It stays in the logbook until it is needed.
            case "launch/": break
            case "event/":
                if let event = try? AppEvent(reading: bytes) { found[run]?.events.append(event) }
            default: found[run]?.tasks[String(rest)] = String(decoding: bytes, as: UTF8.self)
            }
        }
        return found
    }
}
