/// How the processes of an app are grouped on this machine.
package enum ContainmentMode: Equatable {
    case cgroup(CgroupRoot)
    /// No cgroup can be written: apps are stopped with SIGSTOP and found in /proc. The reason completes "because".
    case processGroup(reason: String)

    /// The group of all apps; `nil` in process-group mode.
    package var root: CgroupRoot? {
        switch self {
        case .cgroup(let root): root
        case .processGroup: nil
        }
    }

    /// One line for the log at start.
    package var summary: String {
        switch self {
        case .cgroup(let root): root.summary
        case .processGroup(let reason):
            "containing apps by process group (SIGSTOP and /proc), because \(reason)"
        }
    }
}

/// The group that contains a leaf for each run of an app.
package final class CgroupRoot: Equatable, Sendable {
    package enum Ownership: Equatable {
        /// Delegated to this process: systemd's Delegate=yes, a container's namespace, a user's own.
        case delegated
        /// Created by this process at the top of the hierarchy, as root.
        case own
    }

    package let path: String
    package let mount: CgroupMount
    package let ownership: Ownership
    /// The controllers of the leaves, out of memory, cpu, io and pids.
    package let controllers: [String]
    /// One sentence for each controller that could not be enabled.
    package let notes: [String]

    package var hasMemoryController: Bool { controllers.contains("memory") }

    package init(
        path: String, mount: CgroupMount, ownership: Ownership, controllers: [String] = [], notes: [String] = []
    ) {
        self.path = path
        self.mount = mount
        self.ownership = ownership
        self.controllers = controllers
        self.notes = notes
    }

    package static func == (a: CgroupRoot, b: CgroupRoot) -> Bool {
        a.path == b.path && a.mount == b.mount && a.ownership == b.ownership && a.controllers == b.controllers
            && a.notes == b.notes
    }

    package var summary: String {
        let kind = mount.kind == .unified ? "cgroup v2" : "cgroup v2 on a hybrid machine"
        let owner = ownership == .delegated ? "delegated" : "own group"
        let has = controllers.isEmpty ? "no controllers" : "controllers \(controllers.joined(separator: " "))"
        let sizes = hasMemoryController ? "" : "; sizes are read from /proc"
        let notes = self.notes.map { "; " + $0 }.joined()
        return "containing apps in cgroups below \(path) (\(kind), \(owner), \(has)\(sizes)\(notes))"
    }
}
