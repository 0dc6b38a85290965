import Glibc
import Linux
import Posix

/// A server process that is measured.
final class Server {
    let process: Linux.Process
    private var isOver = false

    /// - Parameters:
    ///   - environment: variables in addition to PATH and HOME.
    ///   - log: the file for its output.
    ///   - channel: its standard input and output, instead of /dev/null and the log.
    init(
        _ executable: String, _ arguments: [String], environment: [String] = [], log: String,
        channel: SharedDescriptor? = nil
    ) throws {
        let output = SharedDescriptor(try Descriptor.open(log, O_WRONLY | O_CREAT | O_APPEND, mode: 0o600))
        // The server gets SIGTERM when this program dies.
        let request = SpawnRequest(
            executable: "/usr/bin/setpriv", arguments: ["--pdeathsig", "TERM", executable] + arguments,
            environment: ["PATH=/usr/bin:/bin", "HOME=/", "SWIFT_BACKTRACE=enable=no"] + environment,
            standardInput: channel, standardOutput: channel ?? output, standardError: output)
        var starting = try startProcess(request)
        process = starting.process
        try eventually("\(executable) is executed") { try starting.outcome() != .pending }
    }

    deinit { stop() }

    var hasEnded: Bool { (try? process.hasEnded()) ?? true }

    /// Sends SIGTERM, after 8 s a second one, and after 8 s more SIGKILL.
    func stop() {
        guard !isOver else { return }
        isOver = true
        for signal in [SIGTERM, SIGTERM, SIGKILL] {
            _ = try? process.signal(signal)
            var polled = pollfd(fd: process.descriptor.raw, events: Int16(POLLIN), revents: 0)
            if poll(&polled, 1, 8000) > 0 { break }
        }
        _ = try? process.reap()
    }

    // MARK: Costs

    /// The proportional set size (PSS) in bytes: shared memory is divided among the processes that share it.
    func pss() throws -> Double {
        guard let rollup = try ProcFS().memoryRollup(of: process.pid) else {
            throw BenchFailure("process \(process.pid) has no smaps_rollup")
        }
        return Double(rollup.pss)
    }

    /// The context switches of all threads.
    func switches() throws -> ContextSwitches {
        var counts: [String: UInt64] = [:]
        for thread in try folderEntries(at: "/proc/\(process.pid)/task") {
            let path = "/proc/\(process.pid)/task/\(thread)/status"
            guard let bytes = try readFileIfPresent(at: path, limit: 1 << 16) else { continue }
            for line in String(decoding: bytes, as: UTF8.self).split(separator: "\n") {
                guard line.hasPrefix("voluntary_ctxt") || line.hasPrefix("nonvoluntary_ctxt") else { continue }
                counts[thread, default: 0] += line.split(separator: "\t").last.flatMap { UInt64($0) } ?? 0
            }
        }
        return ContextSwitches(counts: counts)
    }

    /// Waits until the threads that greenroomd keeps for the next work have ended, 5s after the last work.
    func awaitEndOfHelpers() throws {
        try eventually("the idle helper threads end", everyMicroseconds: 50_000) {
            try folderEntries(at: "/proc/\(process.pid)/task").allSatisfy { thread in
                let name = try readFileIfPresent(at: "/proc/\(process.pid)/task/\(thread)/comm", limit: 64)
                return name.map { String(decoding: $0, as: UTF8.self) } != "idle-helper\n"
            }
        }
    }
}

/// The context switches of a process, by thread.
struct ContextSwitches {
    fileprivate let counts: [String: UInt64]

    /// How often a thread has run since then. A thread that has ended meanwhile has run at least once.
    func wakeups(since before: ContextSwitches) -> UInt64 {
        let ended = before.counts.keys.count { counts[$0] == nil }
        return counts.reduce(UInt64(ended)) { $0 + ($1.value - (before.counts[$1.key] ?? 0)) }
    }
}

/// Counts wakeups in a time of rest. If the first server had one, it counts again, twice at most: one that does not recur has its cause
/// elsewhere, such as memory pressure of the machine.
///
/// - Parameter servers: read the context switches of a server each.
/// - Returns: the counts of the time with the fewest wakeups of the first server.
func fewestWakeups(inSeconds seconds: Int, _ servers: [() throws -> ContextSwitches]) throws -> [UInt64] {
    var fewest: [UInt64] = []
    for _ in 0..<3 where fewest.first != 0 {
        let before = try servers.map { try $0() }
        rest(microseconds: seconds * 1_000_000)
        let counts = try zip(servers, before).map { try $0().wakeups(since: $1) }
        if fewest.isEmpty || counts[0] < fewest[0] { fewest = counts }
    }
    return fewest
}

/// Starts a program with posix_spawn(3).
func spawnChild(_ arguments: [String]) throws -> pid_t {
    var pid: pid_t = 0
    let strings = arguments.map { strdup($0) } + [nil]
    defer { for string in strings { free(string) } }
    let result = posix_spawn(&pid, arguments[0], nil, nil, strings, environ)
    guard result == 0 else { throw BenchFailure("posix_spawn \(arguments[0]): error \(result)") }
    return pid
}

/// Waits until a child process has ended.
func waitForChild(_ pid: pid_t) {
    var status: Int32 = 0
    while waitpid(pid, &status, 0) < 0, errno == EINTR {}
}
