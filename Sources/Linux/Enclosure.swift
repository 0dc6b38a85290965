import Glibc
package import Posix

/// The result of removing an enclosure.
package enum RemovalResult: Equatable {
    case removed
    /// It still contains a process.
    case busy
}

/// What an app's weights were applied to (L19).
package enum WeightMeans: Equatable {
    /// The weights of its cgroup.
    case cgroup
    /// The scheduling class of every thread: the group has no cpu controller.
    case threads
    /// Nothing: to leave the idle class again requires CAP_SYS_NICE.
    case none
}

/// All processes of one run of one app, however they fork: a cgroup, or a family that is found in /proc.
///
/// No method blocks. After `freeze` the caller checks `isFrozen` at once, and again after about 1 ms: the kernel delays the event of
/// `cgroup.events` by about 14 ms.
package final class Enclosure {
    package let app: String
    /// The number of the run, chosen by the caller. Each run has an enclosure of its own.
    package let run: UInt64
    enum Kind {
        case cgroup(CgroupLeaf)
        case family(ProcessFamily)
    }
    let kind: Kind
    let proc: ProcFS
    /// Whether this process may change the scheduling class and timer slack of other processes' threads.
    lazy var canChangeThreads = Self.findOutWhetherThreadsCanBeChanged(proc)

    init(app: String, run: UInt64, kind: Kind, proc: ProcFS) {
        self.app = app
        self.run = run
        self.kind = kind
        self.proc = proc
    }

    /// The cgroup's folder, for `SpawnRequest.cgroup`; `nil` in process-group mode.
    package var cgroupDescriptor: SharedDescriptor? {
        switch kind {
        case .cgroup(let leaf): leaf.folder
        case .family: nil
        }
    }

    /// The path of the cgroup's folder, for messages and memory.pressure; `nil` in process-group mode.
    package var path: String? {
        switch kind {
        case .cgroup(let leaf): leaf.path
        case .family: nil
        }
    }

    /// "GREENROOM_RUN=…" for the environment. It identifies processes that have left the session and lost their parent; `nil` with a
    /// cgroup, which no process leaves in this way.
    package var environmentMarker: String? {
        switch kind {
        case .cgroup: nil
        case .family(let family): family.marker
        }
    }

    /// Records the first process, directly after `startProcess`.
    package func started(_ process: Process) throws(SystemError) {
        switch kind {
        case .cgroup: break
        case .family(let family): try family.started(process.pid)
        }
    }

    /// Starts to freeze all processes. A cgroup also freezes processes that join it later; a family is searched until a
    /// search finds no new process.
    package func freeze() throws(SystemError) {
        switch kind {
        case .cgroup(let leaf): try leaf.freeze()
        case .family(let family): try family.signalAll(SIGSTOP)
        }
    }

    /// Whether no process in the enclosure runs. True without processes.
    package func isFrozen() throws(SystemError) -> Bool {
        switch kind {
        case .cgroup(let leaf): try leaf.event("frozen")
        case .family(let family): try family.isStopped()
        }
    }

    /// Whether all processes are stopped, as a complete search of /proc shows them (process-group mode). True with a cgroup.
    package func isStopped(in scan: ProcessScan) throws(SystemError) -> Bool {
        switch kind {
        case .cgroup: true
        case .family(let family): try family.isStopped(in: scan)
        }
    }

    /// Opens a file of the group for writing, for another process: the kernel checks permissions at the open. `nil` without cgroups.
    package func openControl(_ name: String) throws(SystemError) -> SharedDescriptor? {
        guard case .cgroup(let leaf) = kind else { return nil }
        return SharedDescriptor(try openFile(name, O_WRONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW, in: leaf.folder))
    }

    /// Thaws all processes; in process-group mode also those that had stopped themselves.
    package func thaw() throws(SystemError) {
        switch kind {
        case .cgroup(let leaf): try leaf.thaw()
        case .family(let family): try family.signalAll(SIGCONT)
        }
    }

    /// Sends SIGKILL to all processes, frozen or not, without waiting for their end: `isPopulated` reports it.
    /// - Parameter limit: how many of the processes are returned.
    @discardableResult
    package func killAll(returning limit: Int = 0) throws(SystemError) -> [Process] {
        switch kind {
        case .cgroup(let leaf):
            // Opened before the kill: afterwards the pids may belong to other processes.
            let pids = limit > 0 ? (try? leaf.pids()) ?? [] : []
            let processes = pids.prefix(limit).compactMap { try? Process.open($0) }
            try leaf.write("1", to: "cgroup.kill")
            return processes
        case .family(let family): return try family.signalAll(SIGKILL, returning: limit)
        }
    }

    /// Whether the enclosure contains a process that has not ended. Zombies have ended.
    package func isPopulated() throws(SystemError) -> Bool {
        switch kind {
        case .cgroup(let leaf): try leaf.event("populated")
        case .family(let family): try !family.members().isEmpty
        }
    }

    /// Returns the pids of live processes, unsorted.
    package func pids() throws(SystemError) -> [Int32] {
        switch kind {
        case .cgroup(let leaf): try leaf.pids()
        case .family(let family): try family.members().map(\.pid)
        }
    }

    package func contains(_ pid: Int32) throws(SystemError) -> Bool {
        switch kind {
        case .cgroup(let leaf):
            guard let own = leaf.root.mount.group(ofFolder: leaf.path),
                let bytes = try proc.readRecord("cgroup", of: pid),
                let group = CgroupMembership(parsing: bytes).unified
            else { return false }
            return group == own || group.hasPrefix(own + "/")
        case .family(let family): return try family.contains(pid)
        }
    }

    /// Whether a process was a member at the last search (process-group mode).
    package func isKnown(_ stat: ProcessStat) -> Bool {
        switch kind {
        case .cgroup: false
        case .family(let family): family.isKnown(stat)
        }
    }

    package func footprint() throws(SystemError) -> Footprint {
        var measurement = try beginMeasurement()
        while try measurement.advance() {}
        return measurement.footprint
    }

    /// Begins to measure the memory in steps: by the memory controller, else by /proc.
    /// - Parameter scan: a complete search of /proc (process-group mode); `nil`: a new one is made.
    package func beginMeasurement(in scan: ProcessScan? = nil) throws(SystemError) -> FootprintMeasurement {
        switch kind {
        case .cgroup(let leaf):
            if let counted = try leaf.footprint() {
                // Only shared memory needs a look at the processes.
                let pids = counted.shared >= 1 << 20 ? try leaf.pids() : []
                return FootprintMeasurement(counted: counted, pids: pids, proc: proc)
            }
            return FootprintMeasurement(pids: try leaf.pids(), proc: proc)
        case .family(let family):
            let members = if let scan { family.members(in: scan) } else { try family.members() }
            return FootprintMeasurement(pids: members.map(\.pid), proc: proc)
        }
    }

    /// Returns user and system time since the start of the run. In process-group mode the time of orphans that have ended is
    /// missing, and the unit is a clock tick (10 ms).
    package func cpuTime() throws(SystemError) -> Duration {
        switch kind {
        case .cgroup(let leaf):
            .microseconds(Int64(clamping: try leaf.value("cpu.stat", "usage_usec") ?? 0))
        case .family(let family): try family.cpuTime()
        }
    }

    /// Removes the cgroup and those that the app created in it. A family has nothing to remove.
    package func remove() throws(SystemError) -> RemovalResult {
        switch kind {
        case .cgroup(let leaf): try leaf.remove() ? .removed : .busy
        case .family(let family): try family.members().isEmpty ? .removed : .busy
        }
    }
}
