import Glibc
import Linux
import Posix
import TestKit
import Testing

/// What docs/FREEZE-MAP.md says about system calls.
@Suite("What a freeze does to system calls")
struct FrozenCallTests {
    /// How each call ends that was frozen while it waited.
    static let calls: [(name: String, outcome: String)] =
        [
            ("nanosleep", "complete"), ("clock_nanosleep", "complete"), ("clock_nanosleep until", "complete"),
            ("ppoll", "complete"), ("pselect6", "complete"), ("epoll_pwait", "EINTR"), ("futex", "ETIMEDOUT"),
            ("futex until", "ETIMEDOUT"), ("rt_sigtimedwait", "EINTR"), ("semtimedop", "EINTR"),
            ("read of a timerfd", "complete"), ("rt_sigsuspend with setitimer", "EINTR"), ("wait4", "complete"),
            ("write to a pipe", "short"), ("write to a socket", "short"), ("read from a pipe", "complete"),
            ("recvfrom", "complete"), ("recvfrom with SO_RCVTIMEO", "EINTR"), ("epoll_pwait2", "EINTR"),
            ("readv from a pipe", "complete"), ("recvmsg", "complete"), ("recvmmsg", "complete"),
            ("splice from a pipe", "complete"), ("waitid", "complete"), ("accept", "complete"), ("connect", "complete"),
            ("read of an eventfd", "complete"), ("read of a terminal", "complete"), ("open of a FIFO", "complete"),
            ("flock", "complete"), ("fcntl for a lock", "complete"), ("mq_timedreceive", "complete"),
            ("msgrcv", "complete"), ("msgsnd", "complete"), ("semop", "EINTR"), ("writev to a pipe", "short"),
            ("writev to a socket", "short"), ("sendto a socket", "short"), ("sendmsg to a socket", "short"),
            ("sendfile to a socket", "short"),
        ] + onlyOnX86

    #if arch(x86_64)
        private static let onlyOnX86 = [("poll", "complete"), ("select", "complete"), ("epoll_wait", "EINTR")]
    #else
        private static let onlyOnX86: [(String, String)] = []
    #endif

    /// By cgroup.freeze, or by SIGSTOP: without control groups.
    private static let hasGroups = TestContainment.isPossible ? [true, false] : [false]

    @Test(
        "a call that is frozen while it waits continues, ends with EINTR, or is short", arguments: calls, hasGroups)
    func frozen(call: (name: String, outcome: String), hasGroup: Bool) throws {
        // A call takes a second: on a busy machine it may be over before the freeze.
        var outcome: String?
        for _ in 0..<5 where outcome != call.outcome { outcome = try ending(of: call.name, hasGroup) }
        #expect(outcome == call.outcome)
    }

    /// How a call ends that is frozen while it waits.
    private func ending(of call: String, _ hasGroup: Bool) throws -> String? {
        let test = hasGroup ? try TestContainment("frozen-\(call.filter { $0 != " " })") : nil
        defer { test?.end() }
        let enclosure = try test?.containment.create(app: "frozen", run: 1)
        let pipe = try Pipe()
        try pipe.read.setNonBlocking(false)
        try pipe.write.setNonBlocking(false)
        var request = SpawnRequest(
            executable: programFolder() + "/greenroom-testapp", arguments: ["frozen", call],
            environment: ["PATH=/usr/bin:/bin"], cgroup: enclosure?.cgroupDescriptor)
        request.standardOutput = SharedDescriptor(try pipe.write.duplicate())
        var starting = try startProcess(request)
        request.standardOutput = nil
        let output = SharedDescriptor(pipe.closingWrite())
        let process = starting.process
        try enclosure?.started(process)
        #expect(try starting.finalOutcome() == .executed)
        let number = try line(output)
        try eventually("\(call) waits") { process.isOver || shown(process.pid).first == Substring(number) }
        if let enclosure {
            try enclosure.freeze()
            try eventually("it is frozen") { try process.isOver || enclosure.isFrozen() }
            try enclosure.thaw()
        } else {
            try process.signal(SIGSTOP)
            try eventually("it is stopped") { try process.isOver || ProcFS().stat(of: process.pid)?.isStopped == true }
            try process.signal(SIGCONT)
        }
        defer { _ = try? process.waitForEnd() }
        return try line(output)
    }

    private func shown(_ pid: Int32) -> [Substring] {
        let bytes = (try? ProcFS().read("syscall", of: pid)) ?? nil
        return String(decoding: bytes ?? [], as: UTF8.self).split(separator: " ")
    }

    private func line(_ output: SharedDescriptor) throws -> String {
        var bytes: [UInt8] = []
        var byte: UInt8 = 0
        while read(output.raw, &byte, 1) == 1, byte != 0x0a { bytes.append(byte) }
        return String(decoding: bytes, as: UTF8.self)
    }
}
