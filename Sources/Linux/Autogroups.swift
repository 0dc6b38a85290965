import Glibc
package import Posix

/// A session as the scheduler sees it. With `sched_autogroup_enabled` and without a cpu controller, processor time is shared
/// among sessions first: the weight of a session counts against other sessions, that of a thread only inside its own (sched(7),
/// "The autogroup feature").
package struct Autogroup: Hashable {
    package var number: UInt64
    /// -20 … 19.
    package var nice: Int

    package init(number: UInt64, nice: Int) {
        self.number = number
        self.nice = nice
    }

    /// - Returns: `nil` if the bytes are not such a file: `/autogroup-25 nice 0`.
    package init?(parsing bytes: [UInt8]) {
        var scanner = ByteScanner(bytes)
        let prefix = Array("/autogroup-".utf8)
        guard let name = scanner.word(), name.starts(with: prefix),
            let number: UInt64 = parseNumber(name.dropFirst(prefix.count)),
            scanner.word()?.elementsEqual("nice".utf8) == true, let nice: Int = scanner.number(),
            (-20...19).contains(nice)
        else { return nil }
        self.number = number
        self.nice = nice
    }
}

/// An autogroup and a process in it, by which its weight is set.
package struct AutogroupMember: Hashable {
    package var group: Autogroup
    package var pid: Int32
}

extension ProcFS {
    /// Whether processor time is shared among sessions.
    package var hasAutogroups: Bool {
        (try? readFile(at: root + "/sys/kernel/sched_autogroup_enabled", limit: 16))?.first == UInt8(ascii: "1")
    }

    package func autogroup(of pid: Int32) throws(SystemError) -> Autogroup? {
        do {
            return try read("autogroup", of: pid, limit: 64).flatMap { Autogroup(parsing: $0) }
        } catch {
            // Zombies have none: EINVAL, or nothing.
            if error.meansGone || error.errno == EINVAL { return nil }
            throw error
        }
    }

    /// Sets the weight of the autogroup of a process.
    /// - Returns: false if the kernel accepts no change yet: without CAP_SYS_ADMIN one in 100 ms (EAGAIN).
    package func setAutogroup(of pid: Int32, nice: Int) throws(SystemError) -> Bool {
        do {
            try writeControlFile("\(root)/\(pid)/autogroup", String(nice))
            return true
        } catch {
            if error.errno == EAGAIN { return false }
            if error.meansGone { return true }
            throw error
        }
    }
}

extension Enclosure {
    /// The most sessions of an app whose weight is set.
    package static let mostSessions = 64

    /// The autogroups of the app's own sessions: a process of the app leads the session, or its leader has ended, and it is not
    /// the daemon's. Others may share a session that the app did not begin, such as that of a terminal.
    package func ownAutogroups() throws(SystemError) -> [AutogroupMember] {
        let daemon = try proc.stat(of: getpid())?.session
        var found: [AutogroupMember] = []
        let members = Set(try pids())
        var sessions: Set<Int32> = []
        for pid in members.sorted() where found.count < Self.mostSessions {
            guard let session = try proc.stat(of: pid)?.session, session > 0, session != daemon else { continue }
            guard sessions.insert(session).inserted else { continue }
            if !members.contains(session), try proc.stat(of: session) != nil { continue }
            guard let group = try proc.autogroup(of: pid) else { continue }
            found.append(AutogroupMember(group: group, pid: pid))
        }
        return found
    }
}
