import Glibc
import Posix

/// The processes of one run of one app without a cgroup: the first process, the descendants of members, the processes in the
/// session of a member, and those with the run's marker in their environment. The marker finds a child that forked twice and
/// left the session between two searches.
final class ProcessFamily {
    /// "GREENROOM_RUN=name:app:run:random".
    var marker: String { "\(ProcessTable.variable)=\(markerValue)" }
    private let markerValue: String
    private let table: ProcessTable
    private var known: Set<ProcessKey> = []
    private var highestCPU = Duration.zero

    init(markerValue: String, table: ProcessTable) {
        self.markerValue = markerValue
        self.table = table
    }

    func started(_ pid: Int32) throws(SystemError) {
        if let stat = try table.proc.stat(of: pid) { known.insert(stat.key) }
    }

    func isKnown(_ stat: ProcessStat) -> Bool { known.contains(stat.key) }

    /// The pids of those that the last search has found and that still live.
    func knownPids() throws(SystemError) -> [Int32] {
        var pids: [Int32] = []
        for key in known where try table.proc.stat(of: key.pid)?.key == key { pids.append(key.pid) }
        return pids
    }

    /// Returns the live members, parents before their children.
    func members() throws(SystemError) -> [ProcessStat] {
        let scan = ProcessScan(table)
        while try scan.advance() {}
        return members(in: scan)
    }

    /// Returns the members in a complete search, which may have begun before the last known member started.
    func members(in scan: ProcessScan) -> [ProcessStat] {
        var members = known.compactMap { scan[$0] }
        var found = Set(members.map(\.key))
        for stat in scan.marked(markerValue) where found.insert(stat.key).inserted { members.append(stat) }
        members.sort { $0.pid < $1.pid }
        // Between clone and setsid a first process is still in the daemon's session, whose other members are not apps.
        let ownSession = getsid(0)
        var index = 0
        while index < members.count {
            let member = members[index]
            // Session and parent numbers are valid only while a member of the session or the parent lives, so both are
            // taken from one search.
            let companions = member.session > 0 && member.session != ownSession ? scan.session(member.session) : []
            for relative in scan.children(of: member.pid) + companions where found.insert(relative.key).inserted {
                members.append(relative)
            }
            index += 1
        }
        known = found.union(known.filter { $0.startTime >= scan.start })
        return members
    }

    /// The most ancestors of a process that are examined before all processes are searched.
    static let mostAncestors = 16

    /// Whether a process is a member. All processes are searched only if neither it nor an ancestor is a known member or has
    /// the marker.
    func contains(_ pid: Int32) throws(SystemError) -> Bool {
        var next = pid
        for _ in 0..<Self.mostAncestors where next > 1 && next != getpid() {
            guard let stat = try table.proc.stat(of: next) else { break }
            if known.contains(stat.key) { return true }
            if try table.marker(of: stat) == markerValue { return true }
            next = stat.parent
        }
        return try members().contains { $0.pid == pid }
    }

    /// The most searches of `signalAll`. A process with a pending SIGSTOP or SIGKILL cannot fork, so a growing family needs
    /// fewer.
    static let mostRounds = 64

    /// Sends a signal to all members and searches again until a search finds no new one.
    /// - Parameter limit: how many of the processes are returned.
    @discardableResult
    func signalAll(_ signal: Int32, returning limit: Int = 0) throws(SystemError) -> [Process] {
        var signaled: [Process] = []
        var done: Set<ProcessKey> = []
        for _ in 0..<Self.mostRounds {
            var targets = try members().filter { !done.contains($0.key) }
            if signal == SIGCONT {
                // Children first: a parent that waits for stops must not see one that has ended already. A process that runs
                // needs no SIGCONT. One that is uninterruptible may have a pending stop, which SIGCONT removes.
                targets = targets.reversed().filter { $0.isStopped || $0.isUninterruptible }
            }
            if targets.isEmpty { break }
            for target in targets {
                if let process = try send(signal, to: target.key), signaled.count < limit { signaled.append(process) }
                done.insert(target.key)
            }
        }
        return signaled
    }

    private func send(_ signal: Int32, to key: ProcessKey) throws(SystemError) -> Process? {
        guard let process = try Process.open(key.pid), try table.proc.stat(of: key.pid)?.key == key else { return nil }
        try process.signal(signal)
        return process
    }

    /// Whether no thread of any member runs, or will run before SIGCONT.
    func isStopped() throws(SystemError) -> Bool { try isStopped(members()) }

    /// The same of the members in a complete search.
    func isStopped(in scan: ProcessScan) throws(SystemError) -> Bool { try isStopped(members(in: scan)) }

    private func isStopped(_ members: [ProcessStat]) throws(SystemError) -> Bool {
        let parentsOfStopped = Set(members.filter(\.isStopped).map(\.parent))
        for member in members {
            // A process that has called vfork(2) is uninterruptible until its child executes a program, and the child is
            // stopped. The process stops before its next instruction.
            let waitsForStopped = parentsOfStopped.contains(member.pid)
            func rests(_ thread: ProcessStat) -> Bool {
                thread.isStopped || thread.isUninterruptible && waitsForStopped
            }
            if member.threads == 1 {
                if !rests(member) { return false }
                continue
            }
            // The stat file of the process describes its first thread, which may have ended before the others.
            for thread in try table.proc.threads(of: member.pid) {
                guard let stat = try table.proc.thread(thread, of: member.pid) else { continue }
                if !rests(stat) && !stat.isZombie { return false }
            }
        }
        return true
    }

    func cpuTime() throws(SystemError) -> Duration { cpuTime(of: try members()) }

    /// - Parameter members: all members.
    func cpuTime(of members: [ProcessStat]) -> Duration {
        let ticks = members.reduce(UInt64(0)) { $0 &+ $1.ownTicks &+ $1.childTicks }
        let perSecond = UInt64(max(sysconf(Int32(_SC_CLK_TCK)), 1))
        // The result never decreases, although the time of a member that has ended is missing.
        highestCPU = max(highestCPU, .milliseconds(Int64(clamping: ticks &* 1000 / perSecond)))
        return highestCPU
    }
}
