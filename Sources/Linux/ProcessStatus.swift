import Glibc
package import Posix

/// The fields of /proc/PID/status that the daemon uses (proc_pid_status(5)).
package struct ProcessStatus: Equatable {
    /// R, S, D, T …
    package var state: UInt8
    /// 0: the process is not traced.
    package var tracerPid: Int32
    /// Real, effective, saved and file system user.
    package var uids: [UInt32]
    /// Signal n is bit n-1.
    package var ignoredSignals: UInt64
    package var caughtSignals: UInt64
    /// Those that the thread blocks: of /proc/PID/status, the first thread. One that it waits for with sigwait(3) is not among
    /// them.
    package var blockedSignals: UInt64
    /// Pending signals of the process and of its first thread.
    package var pendingSignals: UInt64
    package var effectiveCapabilities: UInt64

    package init?(parsing bytes: [UInt8]) {
        var fields: [String: ArraySlice<UInt8>] = [:]
        var scanner = ByteScanner(bytes)
        while let line = scanner.line() {
            guard let colon = line.firstIndex(of: UInt8(ascii: ":")) else { continue }
            let name = line[..<colon].text
            // The first line of a name counts. The kernel escapes the name of the program.
            if fields[name] == nil { fields[name] = line[(colon + 1)...] }
        }
        func mask(_ name: String) -> UInt64? {
            guard let field = fields[name] else { return nil }
            var words = ByteScanner(field)
            return words.number(radix: 16)
        }
        guard let stateField = fields["State"], let tracerField = fields["TracerPid"], let uidField = fields["Uid"]
        else { return nil }
        var state = ByteScanner(stateField)
        var tracer = ByteScanner(tracerField)
        var uids = ByteScanner(uidField)
        guard let letter = state.word()?.first, let tracerPid: Int32 = tracer.number() else { return nil }
        self.state = letter
        self.tracerPid = tracerPid
        self.uids = []
        while let uid: UInt32 = uids.number() { self.uids.append(uid) }
        guard self.uids.count == 4, let ignored = mask("SigIgn"), let caught = mask("SigCgt") else { return nil }
        ignoredSignals = ignored
        caughtSignals = caught
        blockedSignals = mask("SigBlk") ?? 0
        pendingSignals = (mask("SigPnd") ?? 0) | (mask("ShdPnd") ?? 0)
        effectiveCapabilities = mask("CapEff") ?? 0
    }

    /// Whether the process has a handler for the signal.
    package func catches(_ signal: Int32) -> Bool { caughtSignals.hasBit(signal - 1) }
    package func hasPending(_ signal: Int32) -> Bool { pendingSignals.hasBit(signal - 1) }
    package func blocks(_ signal: Int32) -> Bool { blockedSignals.hasBit(signal - 1) }
    /// Whether the thread blocks the two signals of the C library, which it does not let programs block: it is in a function
    /// of the library that blocks all signals for a moment, such as posix_spawn(3).
    package var blocksReserved: Bool { blocks(32) && blocks(33) }
    package func ignores(_ signal: Int32) -> Bool { ignoredSignals.hasBit(signal - 1) }
    /// `number`: as in linux/capability.h.
    package func hasCapability(_ number: Int32) -> Bool { effectiveCapabilities.hasBit(number) }
}

extension UInt64 {
    func hasBit(_ number: Int32) -> Bool {
        (0..<64).contains(number) && self & (1 << UInt64(number)) != 0
    }
}

extension ProcFS {
    package func status(of pid: Int32) throws(SystemError) -> ProcessStatus? {
        try read("status", of: pid).flatMap { ProcessStatus(parsing: $0) }
    }

    func readOwnStatus() throws(SystemError) -> [UInt8] {
        try readFile(at: root + "/self/status", limit: Self.limit)
    }

    /// Returns the thread IDs of a process; none if it has ended.
    package func threads(of pid: Int32) throws(SystemError) -> [Int32] {
        do {
            return try folderEntries(at: "\(root)/\(pid)/task").compactMap { Int32($0) }
        } catch {
            if error.meansGone { return [] }
            throw error
        }
    }

    /// Returns the arguments of the command line. Bytes beyond `limit` are cut off.
    package func commandLine(of pid: Int32, limit: Int = 4096) throws(SystemError) -> [String]? {
        try readStart("cmdline", of: pid, limit: limit).map { nulSeparated($0).map(\.text) }
    }

    /// Returns the environment with which the program was executed, up to `limit` bytes; `nil` also without permission.
    package func environment(of pid: Int32, limit: Int = 256 * 1024) throws(SystemError) -> [ArraySlice<UInt8>]? {
        do {
            return try readStart("environ", of: pid, limit: limit).map { nulSeparated($0) }
        } catch  where error.isRefusal {
            return nil
        }
    }

    package func cgroup(of pid: Int32) throws(SystemError) -> CgroupMembership? {
        try read("cgroup", of: pid).map { CgroupMembership(parsing: $0) }
    }

    /// Reads the first `limit` bytes of a file that may be longer.
    private func readStart(_ name: String, of pid: Int32, limit: Int) throws(SystemError) -> [UInt8]? {
        do {
            return try KeptFile("\(root)/\(pid)/\(name)").readIfPresent(limit: limit)
        } catch {
            if error.meansGone { return nil }
            throw error
        }
    }
}

/// Splits elements that each end in a NUL.
func nulSeparated(_ bytes: [UInt8]) -> [ArraySlice<UInt8>] {
    var elements = bytes.split(separator: 0, omittingEmptySubsequences: false)
    if elements.last?.isEmpty == true { elements.removeLast() }
    return elements
}
