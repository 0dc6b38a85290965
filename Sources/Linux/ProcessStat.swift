/// /proc/PID/stat, as far as anyone here asks (proc_pid_stat(5)).
package struct ProcessStat: Equatable {
    package var pid: Int32
    /// The program's short name: at most 15 bytes, which may be blanks, parentheses or line ends.
    package var comm: String
    /// R, S, D, T (stopped), t (traced), Z, X …
    package var state: UInt8
    package var parent: Int32
    package var processGroup: Int32
    package var session: Int32
    package var flags: UInt32
    /// In clock ticks, of itself: utime + stime.
    package var ownTicks: UInt64
    /// In clock ticks, of children it waited for: cutime + cstime.
    package var childTicks: UInt64
    package var threads: Int
    /// In clock ticks since boot; with the pid it tells one process from all others.
    package var startTime: UInt64

    /// - Parameter bytes: the file; nil if it is not one.
    package init?(parsing bytes: [UInt8]) {
        // The name may hold anything, even ") R 1", so its end is the last parenthesis.
        guard let open = bytes.firstIndex(of: UInt8(ascii: "(")), let close = bytes.lastIndex(of: UInt8(ascii: ")")),
            open < close
        else { return nil }
        var head = ByteScanner(bytes[..<open])
        guard let pid: Int32 = head.number() else { return nil }
        var scanner = ByteScanner(bytes[(close + 1)...])
        guard let state = scanner.word(), state.count == 1, let letter = state.first else { return nil }
        // The third field was the state; fields count from 1 in the manual.
        var fields: [Int64] = []
        for _ in 4...22 {
            // Some are unsigned 64-bit numbers; those we use fit either way.
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
    }

    /// PF_FORKNOEXEC: born by fork or clone, no exec since.
    package var hasExecuted: Bool { flags & 0x40 == 0 }
    /// PF_KTHREAD
    package var isKernelThread: Bool { flags & 0x20_0000 != 0 }
    package var isZombie: Bool {
        state == UInt8(ascii: "Z") || state == UInt8(ascii: "X") || state == UInt8(ascii: "x")
    }
    /// A process whose first thread has ended is a zombie to look at, but not dead while others run.
    package var isDead: Bool { isZombie && threads <= 1 }
    /// By a signal or by a tracer: it runs no instruction.
    package var isStopped: Bool { state == UInt8(ascii: "T") || state == UInt8(ascii: "t") }
    /// D: in the kernel, where no signal but a deadly one reaches it before what it waits for has come.
    package var isUninterruptible: Bool { state == UInt8(ascii: "D") }
}
