import Glibc
package import Posix

/// The processes of one run that may be outside its cgroup: a process that may write to another group can move itself or its
/// children there. They are found by the run's marker in their environment, by the session of the first process, and by
/// descent.
///
/// Not found: a process that has cleared its environment and left the session, after its parents have ended.
final class RunRelatives {
    /// "GREENROOM_RUN=name:app:run:random". The random part is a secret: only processes of the same user and root can read it.
    var marker: String { "\(ProcessTable.variable)=\(markerValue)" }
    private let markerValue: String
    /// The first process, which leads a session of its own.
    private var leader: ProcessKey?
    /// When the leader was reaped, in clock ticks since boot; `nil`: it was not. From then on the number of the session can
    /// belong to another one.
    private var leaderEnd: UInt64?
    /// Each once. For the one process that most apps have, a set takes twice as much memory.
    private var known: [ProcessKey] = []
    /// When no process of the run was outside its group, and which pids were in it: one that is outside now was among them, or
    /// is newer.
    private var complete: (moment: ProcessMoment, members: [Int32])?

    /// - Parameter moment: before the first process of the run is created, when none was outside; `nil`: not known.
    init(markerValue: String, before moment: ProcessMoment? = nil) {
        self.markerValue = markerValue
        complete = moment.map { ($0, []) }
    }

    func started(_ stat: ProcessStat) {
        if !known.contains(stat.key) { known.append(stat.key) }
        if leader == nil { leader = stat.key }
    }

    /// The main process is about to be reaped, or is not watched any more.
    func mainProcessEnded() {
        if leaderEnd == nil { leaderEnd = bootTicks() }
    }

    /// Returns the processes of the run in a complete search. `members`: the pids in its group.
    func all(in scan: ProcessScan, members: Set<Int32>) -> [ProcessStat] {
        var found: Set<ProcessKey> = []
        var queue: [ProcessStat] = []
        func add(_ stat: ProcessStat) { if found.insert(stat.key).inserted { queue.append(stat) } }
        if !scan.isPartial { known = known.filter { scan[$0] != nil || $0.startTime >= scan.start } }
        for key in known { if let stat = scan[key] { add(stat) } }
        for stat in scan.marked(markerValue) { add(stat) }
        if let leader {
            // The session of a process whose pid is this number now is another one.
            let isReused = scan.session(leader.pid).contains { $0.pid == leader.pid && $0.key != leader }
            for stat in scan.session(leader.pid) where !isReused && stat.startTime <= leaderEnd ?? .max { add(stat) }
        }
        // A process that an administrator has moved into the group belongs to it, but its session does not.
        for pid in members { for child in scan.children(of: pid) { add(child) } }
        while let next = queue.popLast() {
            for child in scan.children(of: next.pid) { add(child) }
        }
        known = Array(found.union(known))
        return found.compactMap { scan[$0] }.sorted { $0.pid < $1.pid }
    }
}

extension RunRelatives {
    /// Returns the processes outside the group.
    /// - Parameter members: the pids in the group.
    func outside(in scan: ProcessScan, members: Set<Int32>) -> [ProcessStat] {
        let outside = all(in: scan, members: members).filter { !members.contains($0.pid) }
        complete = outside.isEmpty ? scan.moment.map { ($0, Array(members)) } : nil
        return outside
    }

    /// A search of the processes that can be outside the group now. `nil`: all have to be searched.
    func partialScan(_ table: ProcessTable, members: Set<Int32>) -> ProcessScan? {
        guard let complete, let now = ProcessMoment(table.proc), let new = now.pids(since: complete.moment) else {
            return nil
        }
        var pids = Set(complete.members).subtracting(members).union(new)
        // Its pid may belong to another process by now.
        if let leader { pids.insert(leader.pid) }
        guard pids.count <= 2 * now.mostNew else { return nil }
        return ProcessScan(table, pids: pids.sorted(), moment: now)
    }
}

/// A process outside the cgroup of its run.
package struct EscapedProcess {
    package let process: Process
    /// The name of its program.
    package let name: String
    /// The group that it is in; `nil`: it cannot be read.
    package let group: String?
}

extension Enclosure {
    /// The main process is about to be reaped, or is not watched any more.
    package func mainProcessEnded() { relatives?.mainProcessEnded() }

    /// A search of those processes alone that can be outside the group, if it is known that there were none before; `nil`: all
    /// have to be searched.
    package func beginSearch(in containment: Containment) -> ProcessScan? {
        guard let relatives, case .cgroup(let leaf) = kind, let members = try? leaf.pids() else { return nil }
        return relatives.partialScan(containment.table, members: Set(members))
    }

    /// Returns the processes of the run outside its group. In process-group mode there are none.
    /// - Parameter scan: a complete search of /proc, or one that `beginSearch` has made.
    package func escaped(in scan: ProcessScan) throws(SystemError) -> [EscapedProcess] {
        guard let relatives, case .cgroup(let leaf) = kind else { return [] }
        let members = Set(try leaf.pids())
        var escaped: [EscapedProcess] = []
        for stat in relatives.outside(in: scan, members: members) {
            // It may have ended, or returned, since the search.
            guard let process = try Process.open(stat.pid), try proc.stat(of: stat.pid)?.key == stat.key,
                !process.isOver, try !contains(stat.pid)
            else { continue }
            escaped.append(
                EscapedProcess(
                    process: process, name: stat.comm, group: try proc.cgroup(of: stat.pid)?.unified))
        }
        return escaped
    }
}

/// The time since boot in clock ticks, as in the start times of processes.
func bootTicks() -> UInt64 {
    var time = timespec()
    clock_gettime(CLOCK_BOOTTIME, &time)
    let perSecond = UInt64(max(sysconf(Int32(_SC_CLK_TCK)), 1))
    return UInt64(time.tv_sec) * perSecond + UInt64(time.tv_nsec) / (1_000_000_000 / perSecond)
}
