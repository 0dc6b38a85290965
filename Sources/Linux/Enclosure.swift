import Glibc

/// What removing an enclosure came to.
package enum RemovalResult: Equatable {
    case removed
    /// Something still lives in it.
    case busy
}

/// What was done for an app in the background (L19).
package enum WeightMeans: Equatable {
    /// The group's own weights.
    case cgroup
    /// Every thread's scheduling class, since the group has no cpu controller.
    case threads
    /// Nothing could be done: taking the idle class back needs CAP_SYS_NICE.
    case none
}

/// All processes of one run of one app, however they fork: as a cgroup, or as a family found in /proc.
///
/// Everything here returns at once. Whoever freezes asks `isFrozen` now, again after about a millisecond, and only then
/// polls `eventsDescriptor`, because the kernel holds that event back for about 14 ms.
package final class Enclosure {
    package let app: String
    /// Which run of the app, counted by the caller; an app's runs never share an enclosure.
    package let run: UInt64
    enum Kind {
        case cgroup(CgroupLeaf)
        case family(ProcessFamily)
    }
    let kind: Kind
    let proc: ProcFS
    /// Whether threads of other processes can be given another class and timer slack.
    lazy var canChangeThreads = Self.findOutWhetherThreadsCanBeChanged(proc)

    init(app: String, run: UInt64, kind: Kind, proc: ProcFS) {
        self.app = app
        self.run = run
        self.kind = kind
        self.proc = proc
    }

    /// For `SpawnRequest.cgroup`; nil in process-group mode.
    package var cgroupDescriptor: Int32? {
        switch kind {
        case .cgroup(let leaf): leaf.folder.raw
        case .family: nil
        }
    }

    /// The cgroup's folder, for people and for memory.pressure; nil in process-group mode.
    package var path: String? {
        switch kind {
        case .cgroup(let leaf): leaf.path
        case .family: nil
        }
    }

    /// "GREENROOM_RUN=…" for the environment; by it a family knows children that left its session and lost their parent.
    package var environmentMarker: String? {
        switch kind {
        case .cgroup: nil
        case .family(let family): family.marker
        }
    }

    /// Tells the enclosure its first process, right after `startProcess`. A cgroup knows by itself.
    package func started(_ process: Process) throws(SystemError) {
        switch kind {
        case .cgroup: break
        case .family(let family): try family.started(process.pid)
        }
    }

    /// Asks for everything in here to stop. A cgroup stops what joins it later, too; a family is searched until a search
    /// finds nobody new.
    package func freeze() throws(SystemError) {
        switch kind {
        case .cgroup(let leaf): try leaf.write("1", to: "cgroup.freeze")
        case .family(let family): try family.signalAll(SIGSTOP)
        }
    }

    /// Whether nothing in here runs. An enclosure without processes does not either.
    package func isFrozen() throws(SystemError) -> Bool {
        switch kind {
        case .cgroup(let leaf): try leaf.event("frozen")
        case .family(let family): try family.isStopped()
        }
    }

    /// Lets everything run again; in process-group mode also what had stopped itself.
    package func thaw() throws(SystemError) {
        switch kind {
        case .cgroup(let leaf): try leaf.write("0", to: "cgroup.freeze")
        case .family(let family): try family.signalAll(SIGCONT)
        }
    }

    /// SIGKILL to everything in here, frozen or not. The dying are not waited for: `isPopulated` says when they are gone.
    package func killAll() throws(SystemError) {
        switch kind {
        case .cgroup(let leaf): try leaf.write("1", to: "cgroup.kill")
        case .family(let family): try family.signalAll(SIGKILL)
        }
    }

    /// Whether there is a process in here that has not ended; zombies have.
    package func isPopulated() throws(SystemError) -> Bool {
        switch kind {
        case .cgroup(let leaf): try leaf.event("populated")
        case .family(let family): try !family.members().isEmpty
        }
    }

    /// Poll it for POLLPRI (EPOLLPRI): "populated" or "frozen" may have changed. Read one of them to arm it anew. nil in
    /// process-group mode, where only looking helps.
    package var eventsDescriptor: Int32? {
        switch kind {
        case .cgroup(let leaf): leaf.eventsDescriptor
        case .family: nil
        }
    }

    /// Live processes, in no order.
    package func pids() throws(SystemError) -> [Int32] {
        switch kind {
        case .cgroup(let leaf): try leaf.pids()
        case .family(let family): try family.members().map(\.pid)
        }
    }

    package func contains(_ pid: Int32) throws(SystemError) -> Bool {
        switch kind {
        case .cgroup(let leaf):
            guard let own = leaf.root.place.group(ofFolder: leaf.path), let bytes = try proc.read("cgroup", of: pid),
                let group = CgroupMembership(parsing: bytes).unified
            else { return false }
            return group == own || group.hasPrefix(own + "/")
        case .family(let family): return try family.members().contains { $0.pid == pid }
        }
    }

    /// memory.current where there is a memory controller: with page cache and kernel memory, what a limit would count.
    /// Elsewhere the anonymous memory of all processes (see `ProcessMemory.anonymous`).
    package func memoryBytes() throws(SystemError) -> UInt64 {
        if case .cgroup(let leaf) = kind, let current = try leaf.memoryCurrent() { return current }
        var sum: UInt64 = 0
        for pid in try pids() { sum += try proc.memory(of: pid)?.anonymous ?? 0 }
        return sum
    }

    /// User and system time since the run began. In process-group mode it lacks what orphans used that have ended, and
    /// counts in clock ticks (10 ms).
    package func cpuTime() throws(SystemError) -> Duration {
        switch kind {
        case .cgroup(let leaf):
            .microseconds(Int64(clamping: try leaf.value("cpu.stat", "usage_usec") ?? 0))
        case .family(let family): try family.cpuTime()
        }
    }

    /// Removes the cgroup and those that the app made in it. A family has nothing to remove.
    package func remove() throws(SystemError) -> RemovalResult {
        switch kind {
        case .cgroup(let leaf): try leaf.remove() ? .removed : .busy
        case .family(let family): try family.members().isEmpty ? .removed : .busy
        }
    }
}
