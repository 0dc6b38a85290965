import Glibc
import Linux
import Posix
import Testing

/// A simulated machine: a folder with ordinary files instead of cgroups.
final class Machine {
    let scratch: Scratch
    var selfCgroup = "0::/\n"
    var mountInfo = "30 23 0:26 / /sys/fs/cgroup rw,nosuid shared:9 - cgroup2 cgroup2 rw,nsdelegate\n"
    var isRoot = true
    var delegated: String?

    init() throws { scratch = try Scratch() }

    /// Creates a group with the files that detection reads.
    func group(_ path: String, type: String? = "domain", controllers: String = "", processes: String = "") throws {
        let folder = scratch.path + path
        try createDirectories(at: folder)
        func put(_ name: String, _ text: String) throws {
            try replaceFile(at: "\(folder)/\(name)", with: Array(text.utf8))
        }
        if let type { try put("cgroup.type", type + "\n") }
        try put("cgroup.controllers", controllers + "\n")
        try put("cgroup.subtree_control", "\n")
        try put("cgroup.procs", processes)
    }

    func detect(preferred: String? = nil, name: String = "greenroom") -> ContainmentMode {
        .detect(preferredRoot: preferred.map(whole), name: name, surroundings: surroundings)
    }

    func problem(ofGivenRoot path: String) -> String? {
        ContainmentMode.problem(ofGivenRoot: whole(path), surroundings: surroundings)
    }

    private func whole(_ path: String) -> String { path.hasPrefix("/") ? scratch.path + path : path }

    private var surroundings: CgroupSurroundings {
        let mark = delegated.map { scratch.path + $0 }
        return CgroupSurroundings(
            selfCgroup: Array(selfCgroup.utf8), mountInfo: Array(mountInfo.utf8), isRoot: isRoot, pid: 4711,
            prefix: scratch.path,
            attribute: { folder, name in folder == mark && name == "user.delegate" ? "1" : nil })
    }

    func contents(_ path: String) throws -> String {
        String(decoding: try readFile(at: scratch.path + path, limit: 1000), as: UTF8.self)
    }

    func cut(_ root: CgroupRoot) -> String { String(root.path.dropFirst(scratch.path.count)) }
}

@Suite("Detection of the containment mode")
struct DetectionTests {
    @Test("root without a delegated group creates its own at the root of the hierarchy")
    func ownGroup() throws {
        let machine = try Machine()
        machine.selfCgroup = "0::/user.slice/session-1.scope\n"
        try machine.group("/sys/fs/cgroup", type: nil, controllers: "cpuset cpu io memory pids")
        try machine.group("/sys/fs/cgroup/user.slice/session-1.scope", processes: "1\n")
        try machine.group("/sys/fs/cgroup/greenroom")
        let root = try #require(machine.detect().root)
        #expect(machine.cut(root) == "/sys/fs/cgroup/greenroom")
        #expect(root.ownership == .own)
        #expect(root.mount.kind == .unified)
        #expect(root.controllers == ["memory", "cpu", "io", "pids"])
        #expect(try machine.contents("/sys/fs/cgroup/greenroom/cgroup.subtree_control").hasPrefix("+pids"))
        // It must not be moved.
        #expect(access(machine.scratch.path + "/sys/fs/cgroup/supervisor", F_OK) != 0)
    }

    @Test("a hybrid machine's v2 mount is used, without controllers")
    func hybrid() throws {
        let machine = try Machine()
        machine.selfCgroup = "9:name=systemd:/\n4:memory:/a\n0::/\n"
        machine.mountInfo = """
            31 30 0:27 / /sys/fs/cgroup/memory rw shared:10 - cgroup cgroup rw,memory
            32 30 0:28 / /sys/fs/cgroup/unified rw shared:11 - cgroup2 cgroup2 rw

            """
        try machine.group("/sys/fs/cgroup/unified", type: nil)
        try machine.group("/sys/fs/cgroup/unified/greenroom")
        let root = try #require(machine.detect().root)
        #expect(machine.cut(root) == "/sys/fs/cgroup/unified/greenroom")
        #expect(root.mount.kind == .hybrid)
        #expect(!root.hasMemoryController)
        #expect(root.summary.contains("hybrid"))
        #expect(root.summary.contains("sizes are read from /proc"))
    }

    @Test("a service with a delegated group moves itself into a leaf and has controllers")
    func delegated() throws {
        let machine = try Machine()
        machine.selfCgroup = "0::/system.slice/greenroom.service\n"
        machine.delegated = "/sys/fs/cgroup/system.slice/greenroom.service"
        let base = "/sys/fs/cgroup/system.slice/greenroom.service"
        try machine.group("/sys/fs/cgroup", type: nil, controllers: "memory pids")
        try machine.group(base, controllers: "memory pids", processes: "4711\n")
        try machine.group(base + "/supervisor")
        try machine.group(base + "/greenroom")
        let root = try #require(machine.detect().root)
        #expect(machine.cut(root) == base + "/greenroom")
        #expect(root.ownership == .delegated)
        #expect(root.controllers == ["memory", "pids"])
        #expect(try machine.contents(base + "/supervisor/cgroup.procs") == "4711")
        #expect(try machine.contents(base + "/cgroup.subtree_control").hasPrefix("+pids"))
    }

    @Test("a service of root does not use a group that is not marked as delegated")
    func notDelegated() throws {
        let machine = try Machine()
        machine.selfCgroup = "0::/system.slice/greenroom.service\n"
        try machine.group("/sys/fs/cgroup", type: nil)
        try machine.group("/sys/fs/cgroup/system.slice/greenroom.service", processes: "4711\n")
        try machine.group("/sys/fs/cgroup/greenroom")
        #expect(machine.detect().root.map(machine.cut) == "/sys/fs/cgroup/greenroom")
    }

    @Test("after a re-exec the leaf is recognised and its parent used")
    func inTheLeaf() throws {
        let machine = try Machine()
        let base = "/sys/fs/cgroup/user.slice/greenroom.service"
        machine.selfCgroup = "0::/user.slice/greenroom.service/supervisor\n"
        machine.isRoot = false
        try machine.group(base, controllers: "memory")
        try machine.group(base + "/supervisor", processes: "4711\n")
        try machine.group(base + "/greenroom")
        let root = try #require(machine.detect().root)
        #expect(machine.cut(root) == base + "/greenroom")
        #expect(root.controllers == ["memory"])
    }

    @Test("with other processes in the group, cgroups are used without controllers")
    func shared() throws {
        let machine = try Machine()
        let base = "/sys/fs/cgroup/user.slice/term.scope"
        machine.selfCgroup = "0::/user.slice/term.scope\n"
        machine.isRoot = false
        try machine.group(base, controllers: "memory", processes: "4700\n4711\n")
        try machine.group(base + "/greenroom")
        let root = try #require(machine.detect().root)
        #expect(root.controllers == [])
        #expect(root.summary.contains("other processes share the group"))
        #expect(try machine.contents(base + "/cgroup.subtree_control") == "\n")
    }

    @Test("the root of a container's namespace counts as delegated to the container")
    func namespaceRoot() throws {
        let machine = try Machine()
        try machine.group("/sys/fs/cgroup", controllers: "memory", processes: "4711\n")
        try machine.group("/sys/fs/cgroup/supervisor")
        try machine.group("/sys/fs/cgroup/greenroom")
        let root = try #require(machine.detect().root)
        #expect(root.ownership == .delegated)
        #expect(root.controllers == ["memory"])
    }

    @Test("a group that is mounted alone is found by the rest of its path")
    func bindMount() throws {
        let machine = try Machine()
        machine.selfCgroup = "0::/docker/abc/inner\n"
        machine.mountInfo = "30 23 0:26 /docker/abc /mnt/my\\040cgroup rw - cgroup2 cgroup2 rw\n"
        machine.isRoot = false
        try machine.group("/mnt/my cgroup/inner", processes: "4711\n")
        try machine.group("/mnt/my cgroup/inner/greenroom")
        let root = try #require(machine.detect().root)
        #expect(machine.cut(root) == "/mnt/my cgroup/inner/greenroom")
        #expect(root.mount.group(ofFolder: root.path) == "/docker/abc/inner/greenroom")
    }

    @Test(
        "an ordinary user without a delegated group, and a machine without cgroup v2, use process groups, with a reason"
    )
    func processGroups() throws {
        let machine = try Machine()
        machine.isRoot = false
        try machine.group("/sys/fs/cgroup", type: nil)
        #expect(machine.detect() == .processGroup(reason: "no cgroup is delegated to this user"))
        #expect(machine.detect().summary.hasSuffix("because no cgroup is delegated to this user"))
        machine.mountInfo = "31 30 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory\n"
        #expect(machine.detect() == .processGroup(reason: "no cgroup v2 is mounted"))
        machine.mountInfo = "garbage\n - \n\0\n30 23 0:26 / /x rw -"
        #expect(machine.detect() == .processGroup(reason: "no cgroup v2 is mounted"))
    }

    @Test("if a preferred root is set, no other is tried")
    func preferred() throws {
        let machine = try Machine()
        try machine.group("/sys/fs/cgroup", type: nil)
        try machine.group("/sys/fs/cgroup/here")
        try machine.group("/sys/fs/cgroup/here/greenroom")
        #expect(
            machine.detect(preferred: "/sys/fs/cgroup/here/").root.map(machine.cut) == "/sys/fs/cgroup/here/greenroom")
        let missing = machine.detect(preferred: "/sys/fs/cgroup/nowhere")
        #expect(missing.summary.contains("No such file or directory"))
        #expect(missing.root == nil)
    }

    @Test("a named group that does not exist is an error; without cgroup v2 no group is looked for")
    func namedGroup() throws {
        let machine = try Machine()
        try machine.group("/sys/fs/cgroup", type: nil)
        try machine.group("/sys/fs/cgroup/here")
        #expect(machine.problem(ofGivenRoot: "/sys/fs/cgroup/here/") == nil)
        let sentence = machine.problem(ofGivenRoot: "/sys/fs/cgroup/nowhere")
        #expect(sentence?.hasSuffix("/sys/fs/cgroup/nowhere does not exist") == true, "\(sentence ?? "none")")
        machine.mountInfo = "garbage\n"
        #expect(machine.problem(ofGivenRoot: "/sys/fs/cgroup/nowhere") == nil)
    }

    @Test("a sibling's delegated group is used, and the one process that keeps it open moves into a leaf")
    func sibling() throws {
        let machine = try Machine()
        let base = "/sys/fs/cgroup/greenroom.slice/greenroom-apps.service"
        machine.selfCgroup = "0::/greenroom.slice/greenroomd.service\n"
        machine.delegated = base
        try machine.group("/sys/fs/cgroup", type: nil)
        try machine.group("/sys/fs/cgroup/greenroom.slice/greenroomd.service", processes: "4711\n")
        try machine.group(base, controllers: "memory pids", processes: "4700\n")
        try machine.group(base + "/supervisor")
        try machine.group(base + "/greenroom")
        let root = try #require(machine.detect(preferred: "../greenroom-apps.service/").root)
        #expect(machine.cut(root) == base + "/greenroom")
        #expect(root.ownership == .delegated)
        #expect(root.controllers == ["memory", "pids"])
        #expect(try machine.contents(base + "/supervisor/cgroup.procs") == "4700")
        // Several processes are not moved.
        try machine.group(base, controllers: "memory", processes: "4700\n4701\n")
        #expect(machine.detect(preferred: "../greenroom-apps.service").root?.controllers == [])
        // No process is moved out of a group that is not delegated.
        machine.delegated = nil
        try machine.group(base, controllers: "memory", processes: "4700\n")
        try machine.group(base + "/supervisor")
        let foreign = try #require(machine.detect(preferred: "../greenroom-apps.service").root)
        #expect(foreign.ownership == .own)
        #expect(foreign.summary.contains("other processes share the group"))
        #expect(try machine.contents(base + "/supervisor/cgroup.procs") == "")
        // No controllers are enabled: those that support threads would make the groups below "domain invalid".
        #expect(try machine.contents(base + "/cgroup.subtree_control") == "\n")
        // For another user than root, a group that can be written counts as delegated.
        machine.isRoot = false
        #expect(machine.detect(preferred: "../greenroom-apps.service").root?.controllers == ["memory"])
    }

    @Test("a path outside of the cgroup file system is refused")
    func outside() throws {
        let machine = try Machine()
        machine.selfCgroup = "0::/a.service\n"
        try machine.group("/sys/fs/cgroup", type: nil)
        #expect(machine.detect(preferred: "../../../etc").summary.contains("leads out of the cgroup file system"))
    }

    @Test("a group that can contain no processes is refused, and so is an invalid name")
    func refused() throws {
        let machine = try Machine()
        try machine.group("/sys/fs/cgroup", type: nil)
        try machine.group("/sys/fs/cgroup/greenroom", type: "domain invalid")
        #expect(machine.detect().summary.contains("domain invalid"))
        for name in ["", "a/b", "..", ".hidden"] { #expect(machine.detect(name: name).root == nil) }
    }
}
