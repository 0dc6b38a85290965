import Control
import Linux

/// What the kernel offers. Every check reads files and decides nothing else, so that tests can make up a machine.
extension Machine {
    var kernelChecks: [Check] {
        [
            kernel, cgroups, controllers, stalls, swap, compressedSwap, multiGenerationalLRU, tracing, openFiles,
            processes, mounting,
        ]
        .compactMap { $0 }
    }

    // MARK: The version

    private var kernel: Check {
        let name = "kernel"
        guard let release = word("/proc/sys/kernel/osrelease") else {
            return Check(
                name, .prevents, "/proc is not mounted", cost: "greenroomd does not run",
                remedy: "mount -t proc proc /proc")
        }
        let parts = release.split(whereSeparator: { !$0.isNumber }).prefix(2).compactMap { Int($0) }
        guard parts.count == 2 else { return Check(name, .note, "Linux \(release)") }
        let version = (parts[0], parts[1])
        if version < (5, 9) {
            // close_range(2), with which every app is launched.
            return Check(
                name, .prevents, "Linux \(release); 5.9 or later is needed", cost: "no app can be launched",
                remedy: "upgrade the kernel")
        }
        if version < (5, 14) {
            return Check(
                name, .costs, "Linux \(release), without cgroup.kill",
                cost: "apps are contained with SIGSTOP and /proc instead of cgroups, which is less exact",
                remedy: "upgrade to Linux 5.14 or later")
        }
        return Check(name, .fine, "Linux \(release)")
    }

    // MARK: cgroups

    private var mount: CgroupMount? {
        guard let own = bytes("/proc/self/cgroup"), let mounts = bytes("/proc/self/mountinfo") else { return nil }
        return CgroupMount(selfCgroup: own, mountInfo: mounts)
    }

    private var cgroups: Check {
        let name = "cgroups"
        let cost = "apps are contained with SIGSTOP and /proc, which is less exact, and has no limits for apps"
        guard let mount else {
            let old = Array(" - cgroup ".utf8)
            let hasOld = bytes("/proc/self/mountinfo").map { $0.firstRange(of: old) != nil } ?? false
            return Check(
                name, .costs, hasOld ? "only cgroup v1 is mounted" : "no cgroup file system is mounted", cost: cost,
                remedy: hasSystemd
                    ? "boot with systemd.unified_cgroup_hierarchy=1" : "mount -t cgroup2 cgroup2 /sys/fs/cgroup")
        }
        if !isForRoot {
            let own = mount.ownFolder.map { isWritable($0) && isWritable($0 + "/cgroup.procs") } ?? false
            guard own else {
                return Check(
                    name, .costs, "cgroup v2, but no group is delegated to this user", cost: cost,
                    remedy: hasSystemd ? "systemctl --user start greenroomd" : nil)
            }
        } else if !isWritable(mount.mountPoint) {
            // As in most containers.
            return Check(
                name, .costs, "cgroup v2 at \(escaped(mount.mountPoint)), which cannot be written", cost: cost,
                remedy: "mount it writable, with a group that is delegated to the container")
        }
        guard mount.kind == .unified else {
            // What that costs, the next check says.
            return Check(name, .note, "cgroup v2 on a hybrid machine, at \(escaped(mount.mountPoint))")
        }
        return Check(name, .fine, "cgroup v2 at \(escaped(mount.mountPoint))")
    }

    private var controllers: Check? {
        guard let mount else { return nil }
        // Root may use those of the whole machine, a user those that were delegated with the user's group.
        let folder = isForRoot ? mount.mountPoint : mount.ownFolder ?? mount.mountPoint
        let found = (text(folder + "/cgroup.controllers") ?? "").split(whereSeparator: { $0 == " " || $0 == "\n" }).map(
            String.init)
        let uses = [
            ("memory", "MemoryMax=, and exact sizes of apps"),
            ("cpu", "less processor time for apps in the background"),
            ("io", "less input and output for apps in the background"),
        ]
        let missing = uses.filter { !found.contains($0.0) }
        let shown = found.isEmpty ? "none" : found.sorted().joined(separator: " ")
        guard !missing.isEmpty else { return Check("controllers", .fine, shown) }
        let remedy =
            !isForRoot
            ? "as root: systemctl edit user@.service, with Delegate=cpu io memory pids in [Service]"
            : mount.kind == .hybrid
                ? "boot with systemd.unified_cgroup_hierarchy=1, or without cgroup v1"
                : "boot with cgroup_enable=\(missing[0].0)"
        return Check(
            "controllers", .costs, "\(shown); missing: \(missing.map(\.0).joined(separator: " "))",
            cost: missing.map { "\($0.0): \($0.1)" }.joined(separator: "; "), remedy: remedy)
    }

    // MARK: Memory

    private var stalls: Check {
        let name = "memory stalls"
        guard text("/proc/pressure/memory")?.hasPrefix("some ") ?? false else {
            return Check(
                name, .costs, "the kernel reports none (PSI)",
                cost: "a shortage of memory is found by measuring alone, and later", remedy: "boot with psi=1")
        }
        return Check(name, .fine, "reported (PSI)")
    }

    /// The areas of swap: file, size and use in bytes.
    private var swapAreas: [(file: String, size: UInt64, used: UInt64)] {
        lines("/proc/swaps").dropFirst().prefix(64).compactMap { line in
            let words = line.split(whereSeparator: { $0 == " " || $0 == "\t" })
            guard words.count >= 5, let size = UInt64(words[2]), let used = UInt64(words[3]), size < 1 << 50 else {
                return nil
            }
            return (String(words[0]), size << 10, min(used, size) << 10)
        }
    }

    private var swap: Check {
        let name = "swap"
        let size = swapAreas.reduce(0) { $0 + $1.size }
        guard size > 0 else {
            return Check(
                name, .costs, "none", cost: "memory of suspended apps is freed only by ending them",
                remedy: "apt-get install systemd-zram-generator, or swapon")
        }
        let used = swapAreas.reduce(0) { $0 + $1.used }
        let percent = Int(Double(used) / Double(size) * 100)
        let finding = "\(formattedSize(used)) of \(formattedSize(size)) used (\(percent)%)"
        // Below a tenth of free space the thresholds of memory are the higher ones (greenroom.conf(5)).
        guard percent > 90 else { return Check(name, .fine, finding) }
        return Check(name, .costs, finding, cost: "apps are ended for memory sooner", remedy: "add swap with swapon")
    }

    private var compressedSwap: Check? {
        // Without any swap its own check says what to do.
        guard !swapAreas.isEmpty else { return nil }
        let devices = swapAreas.map(\.file).filter { $0.hasPrefix("/dev/zram") }.map { String($0.dropFirst(5)) }
        guard let device = devices.first else {
            return Check("zram", .note, "none: what is swapped out is on a disk, which is slower to read")
        }
        let algorithm =
            (text("/sys/block/\(device)/comp_algorithm") ?? "").split(separator: " ")
            .first { $0.hasPrefix("[") }.map { " (\($0.dropFirst().prefix { $0 != "]" }))" } ?? ""
        // mm_stat: the size of what is stored, compressed, and with all overhead.
        let numbers = (text("/sys/block/\(device)/mm_stat") ?? "").split(whereSeparator: { $0 == " " || $0 == "\n" })
            .compactMap { UInt64($0) }
        let fill =
            numbers.count >= 3 ? ": \(formattedSize(numbers[0])) take \(formattedSize(numbers[2])) of memory" : ""
        return Check("zram", .fine, devices.joined(separator: " ") + algorithm + fill)
    }

    private var multiGenerationalLRU: Check {
        let name = "multi-gen LRU"
        let word = word("/sys/kernel/mm/lru_gen/enabled") ?? "0x0000"
        let isOn = (UInt64(word.hasPrefix("0x") ? String(word.dropFirst(2)) : word, radix: 16) ?? 0) & 1 == 1
        guard isOn else {
            return Check(
                name, .note, exists("/sys/kernel/mm/lru_gen") ? "off" : "not in this kernel",
                cost: "the kernel finds the memory of suspended apps less well",
                remedy: exists("/sys/kernel/mm/lru_gen") ? "echo y > /sys/kernel/mm/lru_gen/enabled" : nil)
        }
        let time = number("/sys/kernel/mm/lru_gen/min_ttl_ms") ?? 0
        guard time == 0 else { return Check(name, .fine, "on, min_ttl_ms is \(time)") }
        return Check(
            name, .note, "on, min_ttl_ms is 0",
            cost: "nothing protects what was used within the last second from thrashing",
            remedy: "echo 1000 > /sys/kernel/mm/lru_gen/min_ttl_ms")
    }

    // MARK: Processes

    /// Watching the input of suspended apps needs pidfd_getfd(2), which is a ptrace(2) access.
    private var tracing: Check {
        let name = "ptrace"
        let scope = number("/proc/sys/kernel/yama/ptrace_scope") ?? 0
        let remedy = "sysctl kernel.yama.ptrace_scope=\(isForRoot ? 2 : 0)"
        let cost = "input at descriptors wakes no suspended app; such apps stay awake"
        switch (scope, isForRoot) {
        case (0, _): return Check(name, .fine, "not restricted")
        case (1, true), (2, true):
            return Check(name, .fine, "restricted by Yama (ptrace_scope \(scope)), not for this daemon")
        case (1, false):
            return Check(
                name, .costs, "restricted by Yama to descendants (ptrace_scope 1)",
                cost:
                    "after a restart of the daemon, apps that were running are thawed, and stay awake if input could not wake them",
                remedy: remedy)
        case (2, false):
            return Check(
                name, .costs, "restricted by Yama to administrators (ptrace_scope 2)", cost: cost, remedy: remedy)
        default:
            // 3 cannot be changed until the machine is started again.
            return Check(
                name, .costs, "forbidden by Yama (ptrace_scope \(scope))", cost: cost,
                remedy: "kernel.yama.ptrace_scope=\(isForRoot ? 2 : 0) in /etc/sysctl.d, and a restart of the machine")
        }
    }

    private var openFiles: Check {
        let name = "open files"
        let line = lines("/proc/\(process)/limits").first { $0.hasPrefix("Max open files") }
        let words = line?.split(whereSeparator: { $0 == " " || $0 == "\t" }) ?? []
        // The daemon raises its soft limit to the hard one.
        guard words.count >= 5, let limit = words[4] == "unlimited" ? UInt64.max : UInt64(words[4]) else {
            return Check(name, .note, "the limit cannot be read")
        }
        let remedy =
            hasSystemd ? "systemctl edit greenroomd, with LimitNOFILE=524288 in [Service]" : "ulimit -Hn 524288"
        let finding = limit == UInt64.max ? "not limited" : "at most \(limit)"
        // `leastDescriptors` of the daemon, and what all its connections need (DBUS.md).
        if limit < 128 {
            return Check(
                name, .prevents, finding + "; 128 are needed", cost: "greenroomd does not start", remedy: remedy)
        }
        guard limit < 20_480 else { return Check(name, .fine, finding) }
        return Check(
            name, .costs, finding, cost: "fewer clients, held sockets and suspended apps whose input is watched",
            remedy: remedy)
    }

    private var processes: Check {
        let name = "processes"
        let pids = mount?.ownFolder.flatMap { number($0 + "/pids.max") }
        let limits = [
            number("/proc/sys/kernel/pid_max").map { ("kernel.pid_max", $0) },
            pids.map { ("pids.max of this group", $0) },
        ].compactMap { $0 }
        guard let least = limits.min(by: { $0.1 < $1.1 }) else { return Check(name, .note, "the limit cannot be read") }
        let finding = "at most \(least.1) (\(least.0))"
        guard least.1 < 1024 else { return Check(name, .fine, finding) }
        return Check(name, .costs, finding, cost: "apps cannot start processes and threads", remedy: "raise \(least.0)")
    }

    /// Of the daemon that runs: the unit of its service has fewer capabilities than root.
    private var mounting: Check? {
        guard isForRoot, process != "self",
            let line = lines("/proc/\(process)/status").first(where: { $0.hasPrefix("CapEff:") }),
            let capabilities = UInt64(line.dropFirst(7).filter { $0 != "\t" }, radix: 16)
        else { return nil }
        let name = "mounts"
        let administrator: UInt64 = 1 << 21
        if capabilities & administrator != 0 {
            return Check(name, .fine, "the daemon may mount: ReadOnlyProgram= is possible")
        }
        return Check(
            name, .note, "the daemon may not mount", cost: "apps with ReadOnlyProgram=yes are not launched",
            remedy: hasSystemd
                ? "systemctl edit greenroomd, with CapabilityBoundingSet=CAP_SYS_ADMIN in [Service]"
                : "start greenroomd with CAP_SYS_ADMIN")
    }
}
