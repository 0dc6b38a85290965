import Control
import JSON

/// The commands of `greenroomctl run` that one process has started (L54).
struct ClientGroup {
    var client: ClientStatus
    var apps: [AppStatus] = []

    var memory: UInt64 { apps.reduce(0) { $0 + $1.memoryBytes } }
    var suspended: Int { apps.count { $0.state == "suspended" } }

    /// The sum of what is known; `nil`: it is not known of any of them.
    func sum(_ path: KeyPath<AppStatus, UInt64?>) -> UInt64? {
        let known = apps.compactMap { $0[keyPath: path] }
        return known.isEmpty ? nil : known.reduce(0, +)
    }

    /// The groups of these apps, the one with the most memory first. Apps that no client has started belong to none.
    static func groups(of apps: [AppStatus]) -> [ClientGroup] {
        var groups: [ClientStatus: ClientGroup] = [:]
        for app in apps {
            if let client = app.client { groups[client, default: ClientGroup(client: client)].apps.append(app) }
        }
        return groups.values.map { ($0, $0.memory) }.sorted {
            ($1.1, $0.0.client.label, $0.0.client.pid ?? 0) < ($0.1, $1.0.client.label, $1.0.client.pid ?? 0)
        }.map(\.0)
    }

    var json: JSONValue {
        var members: [(String, JSONValue)] = [
            ("client", client.json), ("commands", .integer(Int64(apps.count))),
            ("suspended", .integer(Int64(suspended))), ("memoryBytes", memory.json),
        ]
        if let resident = sum(\.residentBytes) { members.append(("residentBytes", resident.json)) }
        if let swapped = sum(\.swappedBytes) { members.append(("swappedBytes", swapped.json)) }
        members.append(("apps", .array(apps.map { .string($0.id) })))
        return .object(members)
    }
}

/// `list --clients`.
extension Session {
    func clientsJSON(_ apps: [AppStatus]) -> JSONValue { .array(ClientGroup.groups(of: apps).map(\.json)) }

    /// A line for each process that has started commands of `greenroomctl run`.
    func clientTable(_ apps: [AppStatus]) -> String {
        let groups = ClientGroup.groups(of: apps)
        var table = Table(
            ["CLIENT", "PID", "COMMANDS", "SUSPENDED", "MEMORY", "RESIDENT", "SWAPPED"], right: [1, 2, 3, 4, 5, 6])
        table.isFull = invocation.has(.full)
        table.rows = groups.map { group in
            [
                Cell(group.client.label, .bold), Cell(group.client.pid.map { String($0) }),
                Cell(String(group.apps.count)), Cell(String(group.suspended)), Cell(formattedSize(group.memory)),
                Cell(group.sum(\.residentBytes).map(formattedSize)),
                Cell(group.sum(\.swappedBytes).map(formattedSize)),
            ]
        }
        return groups.isEmpty ? noClients : table.text(screen) + (screen.isTerminal ? summary(of: groups) : "")
    }

    private var noClients: String { screen.isTerminal ? "No command of 'greenroomctl run' runs.\n" : "" }

    /// `189 commands of 12 clients, 170 of them suspended.`
    private func summary(of groups: [ClientGroup]) -> String {
        let commands = groups.reduce(0) { $0 + $1.apps.count }
        let suspended = groups.reduce(0) { $0 + $1.suspended }
        let text =
            "\(commands) \(commands == 1 ? "command" : "commands") of \(groups.count) "
            + "\(groups.count == 1 ? "client" : "clients"), \(suspended) suspended."
        return "\n" + screen.paint(text, .faint) + "\n"
    }
}
