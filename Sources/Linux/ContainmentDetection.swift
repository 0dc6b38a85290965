import CLinux
import Glibc
package import Posix

/// What detection examines. In tests: a simulated machine whose cgroup file systems are ordinary folders.
package struct CgroupSurroundings {
    package var selfCgroup: [UInt8]
    package var mountInfo: [UInt8]
    package var isRoot: Bool
    package var pid: Int32
    /// A prefix of every path in the two texts.
    package var prefix: String
    /// An extended attribute of a folder; systemd marks delegated groups with one (systemd's CGROUP_DELEGATION.md).
    package var attribute: (_ folder: String, _ name: String) -> String?

    package init(
        selfCgroup: [UInt8], mountInfo: [UInt8], isRoot: Bool, pid: Int32, prefix: String,
        attribute: @escaping (_ folder: String, _ name: String) -> String?
    ) {
        self.selfCgroup = selfCgroup
        self.mountInfo = mountInfo
        self.isRoot = isRoot
        self.pid = pid
        self.prefix = prefix
        self.attribute = attribute
    }

    /// This machine.
    package static func current() throws(SystemError) -> CgroupSurroundings {
        CgroupSurroundings(
            selfCgroup: try readFile(at: "/proc/self/cgroup", limit: 64 * 1024),
            mountInfo: try readFile(at: "/proc/self/mountinfo", limit: 4 << 20), isRoot: geteuid() == 0,
            pid: getpid(), prefix: "", attribute: extendedAttribute)
    }
}

private func extendedAttribute(_ folder: String, _ name: String) -> String? {
    var value = [UInt8](repeating: 0, count: 64)
    let length = clinux_get_attribute(folder, name, &value, value.count)
    return length < 0 ? nil : value[..<length].text
}

extension ContainmentMode {
    /// Finds the best way to contain apps and prepares it: creates the group and enables controllers. If a delegated group
    /// requires it, this process moves into the leaf `supervisor`: a group that enables controllers for its children may not
    /// contain processes itself (cgroups(7), "no internal processes").
    /// - Parameters:
    ///   - preferredRoot: a folder of the v2 hierarchy for the group; no other is tried then. Without a leading slash it is
    ///     relative to this process's own group: `../greenroom-apps.service`.
    ///   - name: the name of the group, unique for each runtime folder, so that two daemons do not share a group.
    package static func detect(
        preferredRoot: String? = nil, name: String, surroundings: CgroupSurroundings? = nil
    ) -> ContainmentMode {
        do {
            let around = try surroundings ?? .current()
            return try ContainmentDetection(around: around, name: name).detect(preferredRoot)
        } catch let refusal as ContainmentDetection.Refusal {
            return .processGroup(reason: refusal.reason)
        } catch {
            return .processGroup(reason: "\(error)")
        }
    }

    /// Why a group that the user named cannot contain apps, although this machine has cgroup v2: it does not exist.
    /// - Parameter path: as `preferredRoot` of `detect`.
    /// - Returns: `nil` if it exists, and without a cgroup v2: then no group contains apps.
    package static func problem(ofGivenRoot path: String, surroundings: CgroupSurroundings? = nil) -> String? {
        guard let around = try? surroundings ?? .current() else { return nil }
        return ContainmentDetection(around: around, name: "").missingFolder(path)
    }
}

private struct ContainmentDetection {
    struct Refusal: Error { var reason: String }

    let around: CgroupSurroundings
    let name: String

    /// The leaf for the daemon itself in a delegated group.
    static let supervisor = "supervisor"
    static let controllers = ["memory", "cpu", "io", "pids"]

    func detect(_ preferredRoot: String?) throws -> ContainmentMode {
        guard !name.isEmpty, !name.contains("/"), !name.hasPrefix("."), name.utf8.count <= 200, !name.utf8.contains(0)
        else { throw Refusal(reason: "\"\(name.printable())\" cannot be the name of a cgroup") }
        guard var mount = CgroupMount(selfCgroup: around.selfCgroup, mountInfo: around.mountInfo) else {
            throw Refusal(reason: "no cgroup v2 is mounted")
        }
        mount.mountPoint = around.prefix + mount.mountPoint
        if let preferredRoot {
            let parent = try folder(preferredRoot, mount)
            // Another user than root can write only to a delegated group. systemd can mark groups only as root.
            let isDelegated = isMarked(parent) || (!around.isRoot && isWritable(parent + "/cgroup.procs"))
            return try .cgroup(prepare(below: parent, mount, isDelegated ? .delegated : .own))
        }
        if let base = delegatedBase(mount) { return try .cgroup(prepare(below: base, mount, .delegated)) }
        if !around.isRoot { throw Refusal(reason: "no cgroup is delegated to this user") }
        return try .cgroup(prepare(below: mount.mountPoint, mount, .own))
    }

    /// Resolves a folder, relative to this process's group unless it begins with a slash.
    private func folder(_ path: String, _ mount: CgroupMount) throws -> String {
        let names = path.split(separator: "/")
        if path.hasPrefix("/") { return "/" + names.joined(separator: "/") }
        guard let own = mount.ownFolder else {
            throw Refusal(reason: "\(path.printable()) is relative to a group that is not mounted here")
        }
        var below = own.dropFirst(mount.mountPoint.count).split(separator: "/")
        for name in names where name != "." {
            if name != ".." {
                below.append(name)
            } else if below.popLast() == nil {
                throw Refusal(reason: "\(path.printable()) leads out of the cgroup file system")
            }
        }
        return mount.mountPoint + below.map { "/" + $0 }.joined()
    }

    /// The sentence about a named group that does not exist; `nil` if it does, or cannot be looked for.
    func missingFolder(_ path: String) -> String? {
        guard var mount = CgroupMount(selfCgroup: around.selfCgroup, mountInfo: around.mountInfo) else { return nil }
        mount.mountPoint = around.prefix + mount.mountPoint
        guard let group = try? folder(path, mount), !fileExists(group) else { return nil }
        return "the cgroup \(group.printable()) does not exist"
    }

    /// Returns this process's group if it is delegated to this process.
    private func delegatedBase(_ mount: CgroupMount) -> String? {
        guard var base = mount.ownFolder else { return nil }
        // After a re-exec, or with systemd's DelegateSubgroup=, this process is in the leaf already.
        if base.hasSuffix("/" + Self.supervisor), base != mount.mountPoint {
            base = String(base.dropLast(Self.supervisor.count + 1))
        }
        // The root of the hierarchy has no cgroup.type; the root of a namespace has one.
        guard fileExists(base + "/cgroup.type"), isWritable(base), isWritable(base + "/cgroup.procs") else {
            return nil
        }
        if !around.isRoot || base == mount.mountPoint { return base }
        // Root can write to every group, so for root only the mark counts.
        return isMarked(base) ? base : nil
    }

    private func isMarked(_ group: String) -> Bool {
        ["trusted.delegate", "user.delegate"].contains { around.attribute(group, $0) == "1" }
    }

    private func prepare(
        below base: String, _ mount: CgroupMount, _ ownership: CgroupRoot.Ownership
    ) throws -> CgroupRoot {
        let path = "\(base)/\(name)"
        if mkdir(path, 0o755) < 0, errno != EEXIST {
            throw Refusal(reason: "\(path) cannot be created: \(SystemError.text(of: errno))")
        }
        for file in ["cgroup.procs", "cgroup.freeze", "cgroup.kill", "cgroup.events"]
        where around.prefix.isEmpty && !fileExists("\(path)/\(file)") {
            _ = rmdir(path)
            throw Refusal(reason: "\(path) has no \(file): no cgroup v2, or a kernel before 5.14")
        }
        let type = words(of: path + "/cgroup.type").joined(separator: " ")
        if type == "threaded" || type == "domain invalid" {
            _ = rmdir(path)
            throw Refusal(reason: "\(path) is of type \(type) and can hold no processes of its own")
        }
        let (controllers, notes) = enableControllers(base: base, path, mount, ownership)
        return CgroupRoot(path: path, mount: mount, ownership: ownership, controllers: controllers, notes: notes)
    }

    /// Enables each controller that is available. Freezing and killing need none, so a failure is only noted.
    private func enableControllers(
        base: String, _ path: String, _ mount: CgroupMount, _ ownership: CgroupRoot.Ownership
    ) -> (controllers: [String], notes: [String]) {
        let available = words(of: base + "/cgroup.controllers")
        let wanted = Self.controllers.filter { available.contains($0) }
        if wanted.isEmpty { return ([], []) }
        let enabled = words(of: base + "/cgroup.subtree_control")
        let missing = wanted.filter { !enabled.contains($0) }
        if !missing.isEmpty, let note = empty(base, mount, ownership) { return ([], [note]) }
        var (controllers, notes): ([String], [String]) = ([], [])
        for controller in wanted {
            do {
                if missing.contains(controller) {
                    try writeControlFile(base + "/cgroup.subtree_control", "+\(controller)")
                }
                try writeControlFile(path + "/cgroup.subtree_control", "+\(controller)")
                controllers.append(controller)
            } catch {
                notes.append("no \(controller) controller: \(SystemError.text(of: error.errno))")
            }
        }
        return (controllers, notes)
    }

    /// Moves the only process of a delegated group into a leaf: this process, or the process that keeps another service's
    /// group open. Controllers must not be enabled while the group contains processes: those that support threads would be
    /// enabled and make every group below "domain invalid" (cgroups(7)).
    /// - Returns: why the group could not be emptied; `nil` if it is empty.
    private func empty(_ base: String, _ mount: CgroupMount, _ ownership: CgroupRoot.Ownership) -> String? {
        // The root of the hierarchy is exempt from the rule, and has no cgroup.type.
        guard fileExists(base + "/cgroup.type") else { return nil }
        let inside = words(of: base + "/cgroup.procs")
        guard let pid = inside.first else { return nil }
        // Processes that the daemon does not own, such as a shell in the same container, are not moved.
        guard ownership == .delegated, inside.count == 1,
            base != mount.ownFolder || pid == String(around.pid)
        else { return "no controllers, since other processes share the group \(base)" }
        do {
            if mkdir("\(base)/\(Self.supervisor)", 0o755) < 0, errno != EEXIST {
                throw SystemError(call: "mkdir", errno: errno, path: "\(base)/\(Self.supervisor)")
            }
            try writeControlFile("\(base)/\(Self.supervisor)/cgroup.procs", pid)
            return nil
        } catch {
            return "no controllers, since \(base) cannot be emptied into a leaf: \(error)"
        }
    }

    private func fileExists(_ path: String) -> Bool { access(path, F_OK) == 0 }
    private func isWritable(_ path: String) -> Bool { access(path, W_OK) == 0 }

    private func words(of path: String) -> [String] {
        guard let bytes = try? readFileIfPresent(at: path, limit: 64 * 1024) else { return [] }
        return bytes.split { $0 == 0x20 || $0 == 0x0a }.map(\.text)
    }
}
