/// The mount point of the cgroup v2 hierarchy, and this process's group in it. It is read from two texts, so that a test can
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
        var unified: (point: String, root: String)?
        var hasVersion1 = false
        var scanner = ByteScanner(mountInfo)
        while let line = scanner.line() {
            let words = line.split(separator: 0x20)
            // "36 35 98:0 /root /mount/point options optional… - type source super-options"
            guard let dash = words.firstIndex(of: [UInt8(ascii: "-")]), words.count > dash + 1, words.count > 5
            else { continue }
            switch words[dash + 1].text {
            case "cgroup2":
                // The first is the system's own; others are bind mounts.
                if unified == nil { unified = (unescapeMount(words[4]), unescapeMount(words[3])) }
            case "cgroup": hasVersion1 = true
            default: break
            }
        }
        guard let unified else { return nil }
        mountPoint = unified.point
        mountRoot = unified.root
        ownGroup = own
        kind = hasVersion1 ? .hybrid : .unified
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

    package init(parsing bytes: [UInt8]) {
        var scanner = ByteScanner(bytes)
        while let line = scanner.line() {
            if line.starts(with: Array("0::/".utf8)) { unified = line.dropFirst(3).text }
        }
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
