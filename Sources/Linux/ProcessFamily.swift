import Glibc

/// The processes of one run of one app where there is no cgroup to hold them: its first process, whoever descends from
/// a member or shares a session with one, and whoever carries the run's marker in its environment. The last finds a
/// child that forked twice and left the session between two looks.
final class ProcessFamily {
    /// "GREENROOM_RUN=name:app:run:random".
    let marker: String
    private let markerValue: String
    private let table: ProcessTable
    private var known: Set<ProcessKey> = []
    private var highestCPU = Duration.zero

    init(markerValue: String, table: ProcessTable) {
        self.markerValue = markerValue
        marker = "\(ProcessTable.variable)=\(markerValue)"
        self.table = table
    }

    func started(_ pid: Int32) throws(SystemError) {
        if let stat = try table.proc.stat(of: pid) { known.insert(stat.key) }
    }

    /// Live members, parents before their children.
    func members() throws(SystemError) -> [ProcessStat] {
        let all = try table.scan()
        var unplaced: [ProcessStat] = []
        var members: [ProcessStat] = []
        for stat in all where stat.pid != getpid() && stat.pid != 1 {
            var isMember = known.contains(stat.key)
            if !isMember { isMember = try table.marker(of: stat) == markerValue }
            if isMember {
                members.append(stat)
            } else {
                unplaced.append(stat)
            }
        }
        // A session or a parent number means something only while one of its members lives, which is why both come from
        // this look and not from memory.
        let byParent = Dictionary(grouping: unplaced, by: \.parent)
        let bySession = Dictionary(grouping: unplaced, by: \.session)
        var found = Set(members.map(\.key))
        // Between clone and setsid a first process is in our own session still, and its other members are no app's.
        let ownSession = getsid(0)
        var index = 0
        while index < members.count {
            let member = members[index]
            let companions = member.session > 0 && member.session != ownSession ? bySession[member.session] : nil
            for relative in (byParent[member.pid] ?? []) + (companions ?? [])
            where found.insert(relative.key).inserted {
                members.append(relative)
            }
            index += 1
        }
        known = found
        return members
    }

    /// More rounds than a family that grows by forking needs: whoever has SIGSTOP or SIGKILL pending cannot fork.
    static let mostRounds = 64

    /// Sends to all, looking again until a look finds nobody new.
    func signalAll(_ signal: Int32) throws(SystemError) {
        var done: Set<ProcessKey> = []
        for _ in 0..<Self.mostRounds {
            var targets = try members().filter { !done.contains($0.key) }
            if signal == SIGCONT {
                // Children first: a parent that waits for stops must not see one that is over. Whoever does not stand
                // still needs no nudge, and those who run may fork as they like. Who is in the kernel may have its stop
                // before it, and SIGCONT takes that away.
                targets = targets.reversed().filter { $0.isStopped || $0.isUninterruptible }
            }
            if targets.isEmpty { return }
            for target in targets {
                try send(signal, to: target.key)
                done.insert(target.key)
            }
        }
    }

    private func send(_ signal: Int32, to key: ProcessKey) throws(SystemError) {
        guard let process = try Process.open(key.pid), try table.proc.stat(of: key.pid)?.key == key else { return }
        try process.signal(signal)
    }

    /// Whether no thread of any member runs, nor will before SIGCONT.
    func isStopped() throws(SystemError) -> Bool {
        let members = try members()
        let parentsOfStopped = Set(members.filter(\.isStopped).map(\.parent))
        for member in members {
            // Whoever called vfork(2) is in the kernel until its child executes, and that one is stopped. Its own stop comes
            // before its next instruction.
            let waitsForStopped = parentsOfStopped.contains(member.pid)
            func rests(_ thread: ProcessStat) -> Bool {
                thread.isStopped || thread.isUninterruptible && waitsForStopped
            }
            if member.threads == 1 {
                if !rests(member) { return false }
                continue
            }
            // The file of the process speaks for its first thread, which may even have ended before the others.
            for thread in try table.proc.threads(of: member.pid) {
                guard let stat = try table.proc.thread(thread, of: member.pid) else { continue }
                if !rests(stat) && !stat.isZombie { return false }
            }
        }
        return true
    }

    func cpuTime() throws(SystemError) -> Duration {
        let ticks = try members().reduce(UInt64(0)) { $0 &+ $1.ownTicks &+ $1.childTicks }
        let perSecond = UInt64(max(sysconf(Int32(_SC_CLK_TCK)), 1))
        // It never goes back, though a member that ended takes its share away.
        highestCPU = max(highestCPU, .milliseconds(Int64(clamping: ticks &* 1000 / perSecond)))
        return highestCPU
    }
}
