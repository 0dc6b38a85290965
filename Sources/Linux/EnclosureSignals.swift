import Glibc
package import Posix

/// A signal to all processes of an enclosure except one, sent in steps: it takes some 20 µs for each of them. Processes that
/// are stopped get SIGCONT too, as they could not react otherwise. Processes that are created meanwhile are found by searching
/// again.
package final class GroupSignal {
    /// The most processes that are signaled.
    package static let mostSignaled = 4096
    /// How many processes a step signals.
    package static let step = 32
    /// The most searches for processes that were created meanwhile. A signal that a program catches does not stop it from
    /// forking, so without a limit a fork bomb would occupy the daemon.
    private static let mostSearches = 8

    private let enclosure: Enclosure
    private let signal: Int32
    private var searches = 0
    private var done: Set<Int32> = []
    private var targets: ArraySlice<Enclosure.Member> = []
    /// How many processes the signal was sent to.
    package private(set) var sent = 0

    fileprivate init(_ enclosure: Enclosure, _ signal: Int32, except exception: Int32?) {
        self.enclosure = enclosure
        self.signal = signal
        if let exception { done.insert(exception) }
    }

    /// Searches, or signals the next processes.
    /// - Returns: whether there may be more.
    package func advance() throws(SystemError) -> Bool {
        guard !targets.isEmpty else {
            guard searches < Self.mostSearches, sent < Self.mostSignaled else { return false }
            searches += 1
            targets = try enclosure.members().filter { done.insert($0.pid).inserted }[...]
            return !targets.isEmpty
        }
        for target in targets.prefix(min(Self.step, Self.mostSignaled - sent)) {
            if try enclosure.send(signal, to: target) { sent += 1 }
        }
        targets = sent < Self.mostSignaled ? targets.dropFirst(Self.step) : []
        return true
    }
}

/// Signals to all processes of an enclosure, and the way back into it.
extension Enclosure {
    /// Begins to send a signal to all processes except one.
    package func beginSignal(_ signal: Int32, except exception: Int32? = nil) -> GroupSignal {
        GroupSignal(self, signal, except: exception)
    }

    /// Sends a signal to all processes except one, at once.
    /// - Returns: how many processes the signal was sent to.
    @discardableResult
    package func signalAll(_ signal: Int32, except exception: Int32? = nil) throws(SystemError) -> Int {
        let signal = beginSignal(signal, except: exception)
        while try signal.advance() {}
        return signal.sent
    }

    /// A process of the enclosure. `key` identifies it if the enclosure is a family.
    fileprivate struct Member {
        var pid: Int32
        var key: ProcessKey?
    }

    fileprivate func members() throws(SystemError) -> [Member] {
        switch kind {
        case .cgroup(let leaf): try leaf.pids().map { Member(pid: $0, key: nil) }
        case .family(let family): try family.members().map { Member(pid: $0.pid, key: $0.key) }
        }
    }

    fileprivate func send(_ signal: Int32, to member: Member) throws(SystemError) -> Bool {
        // The pid may belong to another process by now. After the open it is certain which one gets the signal.
        guard let process = try Process.open(member.pid) else { return false }
        let isMember =
            if let key = member.key { try proc.stat(of: member.pid)?.key == key } else { try contains(member.pid) }
        guard isMember, try process.signal(signal) == .sent else { return false }
        if try proc.stat(of: member.pid)?.isStopped ?? false { try process.signal(SIGCONT) }
        return true
    }

    /// What is left of a run whose main process has ended.
    package struct Remains {
        /// How many processes there are.
        package let count: Int
        /// The different names (comm) of the first ones.
        package let names: [String]
        /// As `Enclosure.cpuTime`.
        package let cpuTime: Duration
    }

    /// Returns the processes and the processor time. In process-group mode /proc is searched once.
    package func remains(names limit: Int) throws(SystemError) -> Remains {
        let (pids, cpuTime): ([Int32], Duration)
        switch kind {
        case .cgroup(let leaf): (pids, cpuTime) = (try leaf.pids(), (try? self.cpuTime()) ?? .zero)
        case .family(let family):
            let members = try family.members()
            (pids, cpuTime) = (members.map(\.pid), family.cpuTime(of: members))
        }
        var names: [String] = []
        for pid in pids.prefix(4 * limit) where names.count < limit {
            guard let name = try proc.stat(of: pid)?.comm, !names.contains(name) else { continue }
            names.append(name)
        }
        return Remains(count: pids.count, names: names, cpuTime: cpuTime)
    }
}
