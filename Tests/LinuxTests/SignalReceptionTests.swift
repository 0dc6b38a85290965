import Glibc
import Linux
import Posix
import Testing

@Suite("Signals that a program receives")
struct SignalReceptionTests {
    /// Signals 32 and 33, SIGUSR1.
    private static let reserved = "180000000"
    private static let user = "200"
    private static let all = "fffffffffffbfeff"

    /// A process 9 with these values of SigBlk, one for each thread. The first is that of the main thread.
    private func reception(_ blocked: [String], caught: String = "0") throws -> SignalReception {
        let scratch = try Scratch()
        var statuses: [String] = []
        for (index, mask) in blocked.enumerated() {
            let folder = "9/task/\(9 + index)"
            try createDirectories(at: scratch.path + "/" + folder)
            let text = "State:\tS\nTracerPid:\t0\nUid:\t0\t0\t0\t0\nSigBlk:\t\(mask)\nSigIgn:\t0\nSigCgt:\t\(caught)\n"
            _ = try scratch.file(folder + "/status", text)
            statuses.append(text)
        }
        let status = try #require(ProcessStatus(parsing: Array(statuses[0].utf8)))
        return try ProcFS(root: scratch.path).reception(of: SIGUSR1, by: 9, status)
    }

    @Test("a signal that one thread does not block is not received (L3)")
    func threads() throws {
        #expect(try reception([Self.user]) == .received)
        #expect(try reception([Self.user, Self.user, "a00"]) == .received)
        #expect(try reception(["0"]) == .notReceived)
        #expect(try reception(["0", Self.user]) == .notReceived)
        #expect(try reception([Self.user, Self.user, "800"]) == .notReceived)
        #expect(try reception(["0", "0"], caught: Self.user) == .received)
    }

    @Test("while the C library blocks all signals of a thread it is not known whether the program blocks one")
    func reserved() throws {
        #expect(try reception([Self.all]) == .undecided)
        #expect(try reception([Self.user, Self.all]) == .undecided)
        #expect(try reception([Self.all, "0"]) == .notReceived)
        #expect(try reception([Self.reserved]) == .notReceived)
    }

    @Test("of a program with too many threads a signal counts as not blocked")
    func many() throws {
        let most = Array(repeating: Self.user, count: ProcFS.mostBlockingThreads)
        #expect(try reception(most) == .received)
        #expect(try reception(most + [Self.user]) == .notReceived)
    }

    @Test("a signal that all threads block, or wait for with sigwait, is received (L3)")
    func waiting() throws {
        // A program that waits unblocks what it waits for, and blocks the other.
        let script = """
            import signal
            signal.pthread_sigmask(signal.SIG_BLOCK, [signal.SIGUSR1, signal.SIGUSR2])
            signal.sigwait([signal.SIGUSR1])
            """
        var starting = try startProcess(SpawnRequest(executable: "/usr/bin/python3", arguments: ["-c", script]))
        _ = try starting.finalOutcome()
        let proc = ProcFS()
        let pid = starting.pid
        try eventually("it waits") {
            guard let status = try proc.status(of: pid) else { return false }
            return status.blocks(SIGUSR2) && !status.blocks(SIGUSR1)
        }
        let status = try #require(try proc.status(of: pid))
        #expect(try proc.reception(of: SIGUSR1, by: pid, status) == .received)
        #expect(try proc.reception(of: SIGUSR2, by: pid, status) == .received)
        #expect(try proc.reception(of: SIGALRM, by: pid, status) == .notReceived)
        try starting.process.signal(SIGUSR1)
        #expect(try starting.process.waitForEnd().status == .exited(0))
    }
}
