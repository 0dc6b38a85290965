import Glibc
package import Posix

/// The fields of /proc/PID/stat that the daemon uses (proc_pid_stat(5)).
package struct ProcessStat: Equatable {
    package var pid: Int32
    /// The short name of the program: at most 15 bytes, which can be any.
    package var comm: String
    /// R, S, D, T (stopped), t (traced), Z, X …
    package var state: UInt8
    package var parent: Int32
    package var processGroup: Int32
    package var session: Int32
    package var flags: UInt32
    /// The time of the process in clock ticks: utime + stime.
    package var ownTicks: UInt64
    /// The time of children that it waited for in clock ticks: cutime + cstime.
    package var childTicks: UInt64
    package var threads: Int
    /// The start time in clock ticks since boot. Together with the pid it identifies the process.
    package var startTime: UInt64
    /// On which it ran last; -1: not known.
    var processor: Int32

    /// - Returns: `nil` if the bytes are not such a file.
    package init?(parsing bytes: [UInt8]) {
        // The name can contain ") R 1", so it ends at the last parenthesis.
        guard let open = bytes.firstIndex(of: UInt8(ascii: "(")), let close = bytes.lastIndex(of: UInt8(ascii: ")")),
            open < close
        else { return nil }
        var head = ByteScanner(bytes[..<open])
        guard let pid: Int32 = head.number() else { return nil }
        var scanner = ByteScanner(bytes[(close + 1)...])
        guard let state = scanner.word(), state.count == 1, let letter = state.first else { return nil }
        // The manual numbers the fields from 1; the state is field 3.
        var fields: [Int64] = []
        for _ in 4...22 {
            // Some are unsigned 64-bit numbers; those used here fit both types.
            guard let word = scanner.word() else { return nil }
            guard let value: Int64 = parseNumber(word) ?? (parseNumber(word) as UInt64?).map({ Int64(bitPattern: $0) })
            else { return nil }
            fields.append(value)
        }
        func field(_ number: Int) -> Int64 { fields[number - 4] }
        self.pid = pid
        comm = bytes[(open + 1)..<close].text
        self.state = letter
        parent = Int32(truncatingIfNeeded: field(4))
        processGroup = Int32(truncatingIfNeeded: field(5))
        session = Int32(truncatingIfNeeded: field(6))
        flags = UInt32(truncatingIfNeeded: field(9))
        ownTicks = UInt64(bitPattern: field(14)) &+ UInt64(bitPattern: field(15))
        childTicks = UInt64(bitPattern: field(16)) &+ UInt64(bitPattern: field(17))
        threads = Int(field(20))
        startTime = UInt64(bitPattern: field(22))
        // Field 39.
        for _ in 23..<39 { _ = scanner.word() }
        processor = scanner.number() ?? -1
    }

    /// Whether the process has executed a program since fork or clone (PF_FORKNOEXEC).
    package var hasExecuted: Bool { flags & 0x40 == 0 }
    /// PF_KTHREAD
    package var isKernelThread: Bool { flags & 0x20_0000 != 0 }
    package var isZombie: Bool {
        state == UInt8(ascii: "Z") || state == UInt8(ascii: "X") || state == UInt8(ascii: "x")
    }
    /// Whether all threads have ended. A process whose first thread has ended reads as a zombie while others run.
    package var isDead: Bool { isZombie && threads <= 1 }
    /// Whether a signal or a tracer has stopped the process.
    package var isStopped: Bool { state == UInt8(ascii: "T") || state == UInt8(ascii: "t") }
    /// Whether the process runs, or waits for a processor.
    package var isRunnable: Bool { state == UInt8(ascii: "R") }
    /// Whether the process is in uninterruptible sleep (D), where only a fatal signal reaches it.
    package var isUninterruptible: Bool { state == UInt8(ascii: "D") }
}

extension ProcFS {
    /// How a process has ended that its parent has not reaped yet: field 52 of its stat (proc_pid_stat(5)).
    /// - Returns: `nil` if it is no zombie, or if this process may not look into it: the field reads as 0 then.
    package func exitStatus(ofZombie pid: Int32) throws(SystemError) -> EndStatus? {
        guard let bytes = try read("stat", of: pid), let stat = ProcessStat(parsing: bytes), stat.isDead,
            let close = bytes.lastIndex(of: UInt8(ascii: ")")), mayLook(intoZombie: pid)
        else { return nil }
        let fields = bytes[(close + 1)...].split { $0 == UInt8(ascii: " ") || $0 == UInt8(ascii: "\n") }
        guard fields.count > 49, let status: Int32 = parseNumber(fields[49]) else { return nil }
        return EndStatus(waitStatus: status)
    }

    /// The name of the file that a process executes, without its folder; `nil`: it has ended, or this process may not look into it.
    package func programName(of pid: Int32) -> String? {
        var target = [CChar](repeating: 0, count: Int(PATH_MAX))
        let length = readlink("\(root)/\(pid)/exe", &target, target.count)
        guard length > 0 else { return nil }
        let name = target[..<length].split(separator: CChar(bitPattern: UInt8(ascii: "/"))).last ?? []
        return String(decoding: name.map { UInt8(bitPattern: $0) }, as: UTF8.self)
    }

    /// The same permission is needed to read which program it executes. A zombie executes none.
    private func mayLook(intoZombie pid: Int32) -> Bool {
        var target: CChar = 0
        return readlink("\(root)/\(pid)/exe", &target, 1) < 0 && errno == ENOENT
    }
}
