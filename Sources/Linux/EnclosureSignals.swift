import Glibc
package import Posix

/// Signals to all processes of an enclosure, and the way back into it.
extension Enclosure {
    /// The most processes that one call signals: it takes some 20 µs for each of them.
    package static let mostSignaled = 4096
    /// The most searches for processes that were created meanwhile. A signal that a program catches does not stop it from
    /// forking, so without a limit a fork bomb would occupy the daemon.
    static let mostSearches = 8

    /// Sends a signal to all processes except one, and SIGCONT to those that are stopped, which could not react otherwise.
    /// Processes that are created meanwhile are found by searching again.
    /// - Returns: how many processes the signal was sent to.
    @discardableResult
    package func signalAll(_ signal: Int32, except exception: Int32? = nil) throws(SystemError) -> Int {
        var done: Set<Int32> = []
        if let exception { done.insert(exception) }
        var sent = 0
        for _ in 0..<Self.mostSearches {
            let targets = try members().filter { done.insert($0.pid).inserted }
            if targets.isEmpty { break }
            for target in targets {
                if sent >= Self.mostSignaled { return sent }
                if try send(signal, to: target) { sent += 1 }
            }
        }
        return sent
    }

    /// A process of the enclosure. `key` identifies it if the enclosure is a family.
    private struct Member {
        var pid: Int32
        var key: ProcessKey?
    }

    private func members() throws(SystemError) -> [Member] {
        switch kind {
        case .cgroup(let leaf): try leaf.pids().map { Member(pid: $0, key: nil) }
        case .family(let family): try family.members().map { Member(pid: $0.pid, key: $0.key) }
        }
    }

    private func send(_ signal: Int32, to member: Member) throws(SystemError) -> Bool {
        // The pid may belong to another process by now. After the open it is certain which one gets the signal.
        guard let process = try Process.open(member.pid) else { return false }
        let isMember =
            if let key = member.key { try proc.stat(of: member.pid)?.key == key } else { try contains(member.pid) }
        guard isMember, try process.signal(signal) == .sent else { return false }
        if try proc.stat(of: member.pid)?.isStopped ?? false { try process.signal(SIGCONT) }
        return true
    }

    /// Returns how many processes there are, and the different names (comm) of the first ones.
    package func summary(names limit: Int) throws(SystemError) -> (count: Int, names: [String]) {
        let pids = try pids()
        var names: [String] = []
        for pid in pids.prefix(4 * limit) where names.count < limit {
            guard let name = try proc.stat(of: pid)?.comm, !names.contains(name) else { continue }
            names.append(name)
        }
        return (pids.count, names)
    }

    /// Moves a process into the cgroup. A family has nothing to move it to: there it belongs to the family by descent.
    package func take(_ pid: Int32) throws(SystemError) {
        switch kind {
        case .cgroup(let leaf): try leaf.write("\(pid)", to: "cgroup.procs")
        case .family: break
        }
    }
}
