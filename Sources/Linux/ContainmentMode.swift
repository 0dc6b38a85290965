/// How the processes of an app are held together on this machine.
package enum ContainmentMode: Equatable {
    case cgroup(CgroupRoot)
    /// No cgroup can be written: SIGSTOP and /proc. The reason completes "because".
    case processGroup(reason: String)

    /// One line for the daemon's start.
    package var summary: String {
        switch self {
        case .cgroup(let root): root.summary
        case .processGroup(let reason):
            "containing apps by process group (SIGSTOP and /proc), because \(reason)"
        }
    }
}

/// The group below which every run of an app has a leaf of its own.
package struct CgroupRoot: Equatable {
    package enum Ownership: Equatable {
        /// Given to us: systemd's Delegate=yes, a container's namespace, a user's own.
        case delegated
        /// Made by us at the top of the hierarchy, as root.
        case own
    }

    package var path: String
    package var place: CgroupPlace
    package var ownership: Ownership
    /// Those that the leaves have: of memory, cpu, io, pids.
    package var controllers: [String]
    /// What could not be had, a sentence each.
    package var notes: [String]

    package var hasMemoryController: Bool { controllers.contains("memory") }

    package init(
        path: String, place: CgroupPlace, ownership: Ownership, controllers: [String] = [], notes: [String] = []
    ) {
        self.path = path
        self.place = place
        self.ownership = ownership
        self.controllers = controllers
        self.notes = notes
    }

    package var summary: String {
        let kind = place.kind == .unified ? "cgroup v2" : "cgroup v2 on a hybrid machine"
        let owner = ownership == .delegated ? "delegated" : "own group"
        let has = controllers.isEmpty ? "no controllers" : "controllers \(controllers.joined(separator: " "))"
        let sizes = hasMemoryController ? "" : "; sizes are read from /proc"
        let notes = self.notes.map { "; " + $0 }.joined()
        return "containing apps in cgroups below \(path) (\(kind), \(owner), \(has)\(sizes)\(notes))"
    }
}
