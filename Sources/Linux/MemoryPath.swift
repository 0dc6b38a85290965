/// The groups whose memory limits count for the apps: the apps' group and those above it, the lowest first.
///
/// With cgroup v2 that is the group below which the apps' groups are; in process-group mode the apps are in the daemon's own
/// group. The daemon creates no group in a v1 hierarchy: if that has the memory controller, the apps are in the daemon's own
/// group of it.
package struct MemoryPath: Equatable {
    package struct Group: Equatable {
        /// As /proc/self/cgroup names it.
        package var name: String
        package var folder: String

        package init(name: String, folder: String) {
            self.name = name
            self.folder = folder
        }
    }

    /// Which version of cgroups has the memory controller (kernel: cgroup-v2.rst, cgroup-v1/memory.rst).
    package enum Version { case one, two }

    package var version: Version
    package var groups: [Group]
    /// The apps' group in the v2 hierarchy, which counts their stalls; `nil`: they have none of their own.
    package var appsFolder: String?
    /// Whether the groups are the daemon's own: it can be moved to another one.
    package var isOwnGroup: Bool

    /// Groups above so many are ignored.
    package static let mostGroups = 64

    /// - Parameters:
    ///   - apps: the group of the apps; `nil` in process-group mode.
    ///   - selfCgroup: /proc/self/cgroup
    ///   - mountInfo: /proc/self/mountinfo (proc_pid_mountinfo(5))
    ///   - prefix: a prefix of every path in the two texts, in tests. The paths of `apps` have it already.
    /// - Returns: `nil` if the group that counts is not mounted here, such as in a container without a cgroup file system.
    package init?(apps: CgroupRoot?, selfCgroup: [UInt8], mountInfo: [UInt8], prefix: String = "") {
        appsFolder = apps?.path
        var mount: CgroupMount
        let folder: String?
        if CgroupMembership(parsing: selfCgroup).memory != nil {
            guard let version1 = CgroupMount(memoryOf: selfCgroup, mountInfo: mountInfo) else { return nil }
            (version, isOwnGroup, mount) = (.one, true, version1)
            mount.mountPoint = prefix + mount.mountPoint
            folder = mount.ownFolder
        } else if let apps {
            (version, isOwnGroup, mount, folder) = (.two, false, apps.mount, apps.path)
        } else {
            guard let version2 = CgroupMount(selfCgroup: selfCgroup, mountInfo: mountInfo) else { return nil }
            (version, isOwnGroup, mount) = (.two, true, version2)
            mount.mountPoint = prefix + mount.mountPoint
            folder = mount.ownFolder
        }
        guard let folder else { return nil }
        groups = Self.groups(from: folder, mount)
    }

    /// What is mounted may be a group below the root: its own limits count as well.
    private static func groups(from folder: String, _ mount: CgroupMount) -> [Group] {
        var groups: [Group] = []
        var next = folder
        while groups.count < mostGroups, let name = mount.group(ofFolder: next) {
            groups.append(Group(name: name, folder: next))
            guard next != mount.mountPoint, let slash = next.lastIndex(of: "/") else { break }
            next = String(next[..<slash])
        }
        return groups
    }
}
