/// The mount point of a cgroup hierarchy, usually that of v2, and this process's group in it. It is read from two texts, so that a test can
/// describe any machine.
package struct CgroupMount: Equatable {
    package enum Kind: Equatable {
        /// Only v2.
        case unified
        /// v2 together with v1 hierarchies, which have some or all controllers.
        case hybrid
    }

    package var kind: Kind
    /// "/sys/fs/cgroup" or "/sys/fs/cgroup/unified".
    package var mountPoint: String
    /// The group that is mounted there: "/", except for a bind mount or a cgroup namespace.
    package var mountRoot: String
    /// This process's group in /proc/self/cgroup.
    package var ownGroup: String

    /// - Parameters:
    ///   - selfCgroup: /proc/self/cgroup
    ///   - mountInfo: /proc/self/mountinfo (proc_pid_mountinfo(5))
    /// - Returns: `nil` without cgroup v2.
    package init?(selfCgroup: [UInt8], mountInfo: [UInt8]) {
        guard let own = CgroupMembership(parsing: selfCgroup).unified else { return nil }
        let mounts = MountedCgroup.all(mountInfo)
        // The first is the system's own; others are bind mounts.
        guard let unified = mounts.first(where: { $0.type == "cgroup2" }) else { return nil }
        mountPoint = unified.point
        mountRoot = unified.root
        ownGroup = own
        kind = mounts.contains { $0.type == "cgroup" } ? .hybrid : .unified
    }

    /// The v1 hierarchy that has the memory controller; `nil`: there is none, or it is not mounted.
    package init?(memoryOf selfCgroup: [UInt8], mountInfo: [UInt8]) {
        guard let own = CgroupMembership(parsing: selfCgroup).memory,
            let mount = MountedCgroup.all(mountInfo).first(where: { $0.type == "cgroup" && $0.hasMemory })
        else { return nil }
        mountPoint = mount.point
        mountRoot = mount.root
        ownGroup = own
        kind = .hybrid
    }

    /// Returns the folder of a group; `nil` if the group is not below what is mounted.
    package func folder(ofGroup group: String) -> String? {
        // The group of a process outside of this cgroup namespace reads "/../…".
        if group.split(separator: "/").contains("..") { return nil }
        if mountRoot == "/" { return mountPoint + (group == "/" ? "" : group) }
        if group == mountRoot { return mountPoint }
        guard group.hasPrefix(mountRoot + "/") else { return nil }
        return mountPoint + group.dropFirst(mountRoot.count)
    }

    /// Returns the group of a folder, as /proc/PID/cgroup names it.
    package func group(ofFolder folder: String) -> String? {
        let root = mountRoot == "/" ? "" : mountRoot
        if folder == mountPoint { return mountRoot }
        guard folder.hasPrefix(mountPoint + "/") else { return nil }
        return root + folder.dropFirst(mountPoint.count)
    }

    package var ownFolder: String? { folder(ofGroup: ownGroup) }
}

/// /proc/PID/cgroup (cgroups(7)).
package struct CgroupMembership: Equatable {
    /// The group in the v2 hierarchy. The name of a removed group ends in " (deleted)".
    package var unified: String?
    /// The group in the v1 hierarchy that has the memory controller; `nil`: v2 has it.
    package var memory: String?

    package init(parsing bytes: [UInt8]) {
        var scanner = ByteScanner(bytes)
        while let line = scanner.line() {
            if line.starts(with: Array("0::/".utf8)) { unified = line.dropFirst(3).text }
            // "4:memory:/group": the names of controllers are separated by commas. A path may contain colons.
            let parts = line.split(separator: UInt8(ascii: ":"), maxSplits: 2, omittingEmptySubsequences: false)
            if parts.count == 3, parts[2].first == UInt8(ascii: "/"), parts[1].hasWord("memory") {
                memory = parts[2].text
            }
        }
    }
}

/// A line of /proc/self/mountinfo about a cgroup hierarchy.
private struct MountedCgroup {
    /// `cgroup2`, or `cgroup` for v1.
    var type: String
    var point: String
    /// The group that is mounted there.
    var root: String
    /// v1: whether the hierarchy has the memory controller.
    var hasMemory: Bool

    static func all(_ mountInfo: [UInt8]) -> [MountedCgroup] {
        var found: [MountedCgroup] = []
        var scanner = ByteScanner(mountInfo)
        while let line = scanner.line() {
            let words = line.split(separator: 0x20)
            // "36 35 98:0 /root /mount/point options optional… - type source super-options"
            guard let dash = words.firstIndex(of: [UInt8(ascii: "-")]), words.count > dash + 1, words.count > 5
            else { continue }
            let type = words[dash + 1].text
            guard type == "cgroup" || type == "cgroup2" else { continue }
            found.append(
                MountedCgroup(
                    type: type, point: unescapeMount(words[4]), root: unescapeMount(words[3]),
                    hasMemory: words.last?.hasWord("memory") ?? false))
        }
        return found
    }
}

extension ArraySlice<UInt8> {
    /// Whether one of the words that commas separate is this one.
    fileprivate func hasWord(_ word: StaticString) -> Bool {
        split(separator: UInt8(ascii: ",")).contains { part in word.withUTF8Buffer { part.elementsEqual($0) } }
    }
}

/// Decodes mountinfo's octal escapes of blank, tab, line end and backslash (\040 and so on).
private func unescapeMount(_ word: ArraySlice<UInt8>) -> String {
    var bytes: [UInt8] = []
    var rest = word
    while let byte = rest.popFirst() {
        let digits = rest.prefix(3)
        if byte == UInt8(ascii: "\\"), digits.count == 3, let code: UInt8 = parseNumber(digits, radix: 8) {
            bytes.append(code)
            rest = rest.dropFirst(3)
        } else {
            bytes.append(byte)
        }
    }
    return bytes.text
}
