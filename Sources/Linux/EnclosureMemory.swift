import CLinux
import Glibc
package import Posix

/// The kernel's OOM killer, and the limits of the memory controller.
extension Enclosure {
    /// Sets `oom_score_adj` of all processes; those that are created later inherit it (proc_pid_oom_score_adj(5)).
    ///
    /// Without CAP_SYS_RESOURCE a value can only be lowered to the one that a privileged process has set last, or that the
    /// process inherited: a daemon of a user can raise values and lower them again. A process that refuses (another user's, a
    /// setuid program) keeps its value.
    /// - Parameters:
    ///   - score: -1000 … 1000.
    ///   - isFrozen: no process is created meanwhile.
    ///   - isOwn: whether the daemon may have set this value before. A higher value that the process has chosen itself is left.
    package func setOOMScore(_ score: Int, isFrozen: Bool = false, isOwn: (Int) -> Bool) throws(SystemError) {
        try forEachProcess(isFrozen: isFrozen) { (pid) throws(SystemError) in
            guard let current = try oomScore(of: pid), current != score, current < score || isOwn(current) else {
                return false
            }
            try? writeControlFile("\(proc.root)/\(pid)/oom_score_adj", String(score))
            return true
        }
    }

    private func oomScore(of pid: Int32) throws(SystemError) -> Int? {
        guard let bytes = try proc.readRecord("oom_score_adj", of: pid, limit: 32) else { return nil }
        var scanner = ByteScanner(bytes)
        return scanner.number()
    }

    /// Makes the OOM killer end all processes of the app or none (`memory.oom.group`, since Linux 4.19), and takes the app from the
    /// choice of systemd-oomd(8), which selects among such groups and leaves. What `ManagedOOMPreference=omit` of the service means is an
    /// attribute of the service's own group, and does not hold for groups in it.
    package func killAtOnce() throws(SystemError) {
        guard let leaf = memoryLeaf, leaf.has("memory.oom.group") else { return }
        try leaf.write("1", to: "memory.oom.group")
        // systemd-oomd heeds it if root owns the group, or, for memory pressure, the owner of the group in which the pressure is. A kernel
        // without such attributes has none.
        _ = clinux_set_attribute(leaf.folder.raw, "user.oomd_omit", "1")
    }

    /// Sets the hard limit of the group (`memory.max`). It counts the page cache too, but the kernel evicts that before it kills.
    /// - Parameter bytes: `nil`: no limit.
    package func limitMemory(_ bytes: UInt64?) throws(SystemError) {
        guard let leaf = memoryLeaf else { return }
        try leaf.write(bytes.map { String($0) } ?? "max", to: "memory.max")
    }

    /// Sets how much of the group's memory the kernel reclaims only if nothing else is left (`memory.low`). It has an effect as
    /// far as the groups above are protected as well.
    package func protectMemory(_ bytes: UInt64) throws(SystemError) {
        try memoryLeaf?.write(String(bytes), to: "memory.low")
    }

    /// The `memory.pressure` of the group, which the app may watch (L37): a trigger is set by writing, so the file is given to the
    /// app's user, as systemd does.
    /// - Returns: `nil`: there is no group or no pressure stall information, or the user cannot get the file.
    package func pressureFile(for owner: Owner?) -> String? {
        guard case .cgroup(let leaf) = kind, leaf.has("memory.pressure") else { return nil }
        if let owner, fchownat(leaf.folder.raw, "memory.pressure", owner.uid, owner.gid, AT_SYMLINK_NOFOLLOW) < 0 {
            return nil
        }
        return leaf.path + "/memory.pressure"
    }

    /// Whether the app has a memory controller.
    package var hasMemoryController: Bool { memoryLeaf != nil }

    /// Whether the OOM killer has killed a process of the group (`memory.events`). Read it before the group is removed.
    /// - Returns: `nil`: the group has no memory controller.
    package func kernelKill() throws(SystemError) -> KernelKill? {
        guard let leaf = memoryLeaf else { return nil }
        guard let kills = try leaf.value("memory.events", "oom_kill"), kills > 0 else { return .nothing }
        // "oom" is counted in the group whose limit was reached, and above it, never below. The file without the groups below
        // exists since Linux 5.2.
        let file = leaf.has("memory.events.local") ? "memory.events.local" : "memory.events"
        return (try leaf.value(file, "oom") ?? 0) > 0 ? .ownLimit : .elsewhere
    }

    private var memoryLeaf: CgroupLeaf? {
        guard case .cgroup(let leaf) = kind, leaf.root.hasMemoryController else { return nil }
        return leaf
    }
}

/// What the OOM killer did to an app.
package enum KernelKill: Equatable {
    case nothing
    /// The app's own limit was reached.
    case ownLimit
    /// The memory of the machine, or a limit above the app's group, was used up.
    case elsewhere
}

extension Containment {
    /// Sets `memory.low` of the group that contains all apps, without which that of a single app has no effect.
    package func protectMemory(_ bytes: UInt64) throws(SystemError) {
        guard case .cgroup(let root) = mode, root.hasMemoryController else { return }
        try writeControlFile("\(root.path)/memory.low", String(bytes))
    }
}

/// How often the OOM killer has killed a process of the machine since the start (`oom_kill` of /proc/vmstat, since Linux 4.13).
package func machineOOMKills(_ proc: ProcFS = ProcFS()) -> UInt64? {
    guard let bytes = try? readFile(at: proc.root + "/vmstat", limit: 64 * 1024) else { return nil }
    return VMStatistics(parsing: bytes).oomKills
}

/// The value of `oom_score_adj` of this process.
package func ownOOMScore(_ proc: ProcFS = ProcFS()) -> Int {
    guard let bytes = try? readFile(at: proc.root + "/self/oom_score_adj", limit: 32) else { return 0 }
    var scanner = ByteScanner(bytes)
    return scanner.number() ?? 0
}
