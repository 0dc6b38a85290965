import LifecycleCore
import Manifest

/// What is known of an instance without a file of its own. The core knows the rest.
struct TransientInstance: Hashable {
    /// Whether its last valid manifest names sockets: then it is kept while an error disables it.
    var holdsSockets = false
    /// Of a command of `greenroomctl run` (L54): it has no template either. `nil`: it is an instance of a template.
    var command: RunSettings?
}

extension TransientInstance: SavedRecord {
    static var blank: TransientInstance { TransientInstance() }

    mutating func code<Coder: RecordCoder>(_ coder: inout Coder) throws(Coder.Failure) {
        try coder.flag(1, &holdsSockets)
        var name = command?.command
        try coder.optional(2, &name)
        var assignments = command?.assignments ?? []
        try coder.list(3, &assignments, upTo: RunSettings.maximumAssignments)
        command = name.map { RunSettings(command: $0, assignments: assignments) }
    }

    private static let prefix = "instance/"
    /// The name of its record in the logbook.
    static func recordName(_ id: AppID) -> String { prefix + id.name }

    /// The instances in the records of the previous daemon.
    static func all(in records: [String: [UInt8]]) -> [AppID: TransientInstance] {
        var all: [AppID: TransientInstance] = [:]
        for (name, bytes) in records where name.hasPrefix(prefix) {
            guard let id = AppID(String(name.dropFirst(prefix.count))), id.template != nil else { continue }
            // An instance with a damaged record is an instance nevertheless.
            all[id] = (try? TransientInstance(reading: bytes)) ?? TransientInstance()
        }
        return all
    }
}
