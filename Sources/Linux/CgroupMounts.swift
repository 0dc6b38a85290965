/// Where the cgroup v2 hierarchy is mounted, and where in it this process is: read from two texts, so that any machine
/// can be described in a test.
package struct CgroupPlace: Equatable {
    package enum Kind: Equatable {
        /// v2 alone.
        case unified
        /// v2 beside v1 hierarchies, which hold some or all controllers.
        case hybrid
    }

    package var kind: Kind
    /// "/sys/fs/cgroup" or "/sys/fs/cgroup/unified".
    package var mountPoint: String
    /// Which group of the hierarchy is mounted there: "/" unless it is a bind mount or a namespace's.
    package var mountRoot: String
    /// This process's group as /proc/self/cgroup names it.
    package var ownGroup: String

    /// - Parameters:
    ///   - selfCgroup: /proc/self/cgroup
    ///   - mountInfo: /proc/self/mountinfo (proc_pid_mountinfo(5))
    /// - Returns: nil where there is no cgroup v2.
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
                // Of several the first is the system's own; others are bind mounts.
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

    /// The folder of a group, nil if it lies outside of what is mounted.
    package func folder(ofGroup group: String) -> String? {
        // A process outside of our cgroup namespace reads as "/../…".
        if group.split(separator: "/").contains("..") { return nil }
        if mountRoot == "/" { return mountPoint + (group == "/" ? "" : group) }
        if group == mountRoot { return mountPoint }
        guard group.hasPrefix(mountRoot + "/") else { return nil }
        return mountPoint + group.dropFirst(mountRoot.count)
    }

    /// The reverse: what /proc/PID/cgroup says of a process in this folder.
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
    /// The group in the v2 hierarchy; a removed one ends in " (deleted)".
    package var unified: String?

    package init(parsing bytes: [UInt8]) {
        var scanner = ByteScanner(bytes)
        while let line = scanner.line() {
            if line.starts(with: Array("0::/".utf8)) { unified = line.dropFirst(3).text }
        }
    }
}

/// mountinfo writes blank, tab, line end and backslash as \040 and so on.
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
