import Glibc
import Posix
import Testing

@testable import Linux

/// A process that holds a lock or a socket, and prints a pid when it does.
final class Holder {
    let process: Process
    /// The process that holds the lock, the same or a child.
    let pid: Int32

    /// - Parameter script: a program in Python; `f` is the file, which is open for writing.
    init(_ path: String, _ script: String) throws {
        let start = "import fcntl, os, signal, struct, sys\nf = open(sys.argv[1], 'w')\n"
        let end = "\nprint(os.getpid(), flush=True)\nsignal.pause()\n"
        let pipe = try Pipe()
        try pipe.read.setNonBlocking(false)
        try pipe.write.setNonBlocking(false)
        var request = SpawnRequest(
            executable: "/usr/bin/python3", arguments: ["-c", start + script + end, path],
            environment: ["PATH=/usr/bin:/bin"])
        request.standardOutput = SharedDescriptor(try pipe.write.duplicate())
        var starting = try startProcess(request)
        request.standardOutput = nil
        process = starting.process
        let output = pipe.closingWrite()
        let outcome = try starting.finalOutcome()
        var bytes: [UInt8] = []
        var byte: UInt8 = 0
        while read(output.raw, &byte, 1) == 1, byte != 0x0a { bytes.append(byte) }
        pid = Int32(String(decoding: bytes, as: UTF8.self)) ?? 0
        #expect(outcome == .executed && pid > 0)
    }

    var locks: HeldLocks? {
        get throws {
            let search = LockSearch(ProcFS(), [pid])
            while try search.advance() {}
            return search.held
        }
    }

    deinit {
        if pid > 0, let holder = try? Process.open(pid) { _ = try? holder.signal(SIGKILL) }
        _ = try? process.signal(SIGKILL)
        _ = try? wait(for: process.descriptor)
        _ = try? process.reap()
    }
}

private let hasPython = access("/usr/bin/python3", X_OK) == 0

@Suite("File locks of an app (L43)", .timeLimit(.minutes(2)))
struct HeldLockTests {
    private func lock(_ line: String) -> LockLine? { LockLine(parsing: Array(line.utf8)[...]) }

    @Test("a lock is read with its process and its file")
    func parse() throws {
        let posix = try #require(lock("12: POSIX  ADVISORY  WRITE 1234 08:1f:4711 0 EOF"))
        #expect(posix.kind == .posix && posix.pid == 1234 && posix.file == "08:1f:4711")
        #expect(posix.fileName == "inode 4711 on device 8:31")
        #expect(lock("1: FLOCK  ADVISORY  READ  5 00:13:1 0 EOF")?.kind == .flock)
        #expect(lock("1: OFDLCK ADVISORY  WRITE -1 00:13:1 3 9")?.pid == -1)
        let none = [
            "", "1:", "1: POSIX", "1: -> FLOCK ADVISORY WRITE 5 00:13:1 0 EOF",
            "1: LEASE  ACTIVE    WRITE 5 00:13:1 0 EOF", "1: POSIX  *NOINODE* WRITE 5 <none>:0 0 EOF",
            "POSIX ADVISORY WRITE 5 00:13:1 0 EOF", "1: POSIX ADVISORY WRITE x 00:13:1 0 EOF",
            "1: POSIX ADVISORY WRITE 5 \(String(repeating: "0", count: 99)):13:1 0 EOF",
        ]
        for line in none { #expect(lock(line) == nil, "\(line)") }
        let info = "pos:\t0\nflags:\t02\nlock:\t1: FLOCK  ADVISORY  WRITE 359 00:13:11691 0 EOF\n"
        #expect(lockLines(Array(info.utf8), isDescriptor: true).map(\.pid) == [359])
        #expect(lockLines(Array(info.utf8)).isEmpty)
    }

    @Test(
        "what the manifest names counts while it is open or mapped, and a lock of any kind on it (L43)",
        .enabled(if: hasPython))
    func resources() throws {
        let scratch = try Scratch()
        let path = scratch.path + "/video0"
        func held(_ script: String, _ resources: SharedResources) throws -> HeldLocks? {
            let holder = try Holder(path, script)
            let search = LockSearch(ProcFS(), [holder.pid], resources)
            while try search.advance() {}
            return search.held
        }
        let all = SharedResources(paths: [scratch.path + "/vid*"])
        let expected = HeldLocks(count: 1, isResource: true, file: path)
        #expect(try held("", all) == expected)
        #expect(try held("", SharedResources(paths: ["/dev/video*", scratch.path, "*"])) == nil)
        // A mapping without a descriptor.
        let mapped = "import mmap\nf.truncate(4096)\ng = open(sys.argv[1], 'r+b')\nm = mmap.mmap(g.fileno(), 4096)\n"
        #expect(try held(mapped + "g.close(); f.close()", all) == expected)
        // A device that is removed while it is held.
        let removed = try held("os.unlink(sys.argv[1])", all)
        #expect(removed?.isResource == true && removed?.file == path + " (deleted)")
        // A lock that keeps no program waiting, because no other one has the file open.
        let locked = SharedResources(locks: [path])
        #expect(try held("fcntl.flock(f, fcntl.LOCK_EX)", SharedResources()) == nil)
        #expect(try held("fcntl.flock(f, fcntl.LOCK_EX)", locked) == expected)
        #expect(try held("", locked) == nil)
    }

    @Test("a wildcard names no device that most programs have open (L43)")
    func commonDevices() {
        let common = ["/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom", "/dev/tty", "/dev/pts/3"]
        let wildcards = SharedResources(paths: ["/dev/*", "/dev/pts/*"])
        for path in common {
            #expect(!wildcards.containsHeld(path), "\(path)")
            #expect(SharedResources(paths: [path]).containsHeld(path), "\(path)")
        }
        #expect(wildcards.containsHeld("/dev/video0"))
    }

    @Test("a mapping among thousands is found, in pieces of bounded size (L43)")
    func manyMappings() throws {
        let scratch = try Scratch()
        let line = "7f0000000000-7f0000001000 r--p 00000000 08:01 1234                       /usr/lib/other.so\n"
        let camera = "7f0000002000-7f0000003000 rw-s 00000000 00:05 77                         /dev/video 0\n"
        let lines = String(repeating: line, count: 2000)
        for (pid, text) in [(7, lines + camera + lines), (8, lines), (9, camera)] {
            try createDirectories(at: "\(scratch.path)/\(pid)/fd")
            try replaceFile(at: "\(scratch.path)/\(pid)/maps", with: Array(text.utf8))
        }
        func held(_ pids: Int32...) throws -> (HeldLocks?, steps: Int) {
            let search = LockSearch(ProcFS(root: scratch.path), pids, SharedResources(paths: ["/dev/video*"]))
            var steps = 1
            while try search.advance() { steps += 1 }
            return (search.held, steps)
        }
        let expected = HeldLocks(count: 1, isResource: true, file: "/dev/video 0")
        #expect(try held(7, 8).0 == expected)
        #expect(try held(8, 9).0 == expected)
        #expect(try held(8).0 == nil)
        #expect(try held(8).steps > 10)
    }

    @Test("a process holds a lock of flock, fcntl, or of its descriptor", .enabled(if: hasPython))
    func held() throws {
        let scratch = try Scratch()
        let scripts = [
            "fcntl.flock(f, fcntl.LOCK_EX)", "fcntl.flock(f, fcntl.LOCK_SH)", "fcntl.lockf(f, fcntl.LOCK_EX)",
            // F_OFD_SETLK
            "fcntl.fcntl(f, 37, struct.pack('hhxxxxqqixxxx', fcntl.F_WRLCK, 0, 0, 0, 0))",
        ]
        for (index, script) in scripts.enumerated() {
            let path = scratch.path + "/\(index)"
            let holder = try Holder(path, script)
            let user = try Descriptor.open(path, O_RDONLY)
            let locks = try holder.locks
            #expect(locks == HeldLocks(count: 1, isShared: index == 1, file: path), "\(script)")
            withExtendedLifetime(user) {}
        }
    }

    @Test("a lock whose taker has ended belongs to the process that has its descriptor", .enabled(if: hasPython))
    func orphaned() throws {
        let scratch = try Scratch()
        let path = scratch.path + "/file"
        let holder = try Holder(
            path, "fcntl.lockf(f, fcntl.LOCK_EX, 9)\nfcntl.flock(f, fcntl.LOCK_SH)\nif os.fork(): os._exit(0)")
        try wait(for: holder.process.descriptor)
        // Until it is reaped, its pid is not free.
        _ = try holder.process.reap()
        let locks = try holder.locks
        #expect(locks == HeldLocks(count: 1, isShared: true, file: path))
    }

    @Test(
        "an exclusive lock on a whole file counts only if another program has the file open (L43)",
        .enabled(if: hasPython))
    func ownFile() throws {
        let scratch = try Scratch()
        for (index, lock) in ["fcntl.flock(f, fcntl.LOCK_EX)", "fcntl.lockf(f, fcntl.LOCK_EX)"].enumerated() {
            let path = scratch.path + "/\(index)"
            let holder = try Holder(path, lock)
            let own = try holder.locks
            #expect(own == nil, "\(lock)")
            let user = try Descriptor.open(path, O_RDONLY)
            let locks = try holder.locks
            #expect(locks == HeldLocks(count: 1, file: path), "\(lock)")
            withExtendedLifetime(user) {}
        }
        if geteuid() == 0 {
            // CLONE_NEWNS. Each mount is another one there.
            let other =
                "import ctypes\nassert ctypes.CDLL(None).unshare(0x20000) == 0\nf.close()\nf = open(sys.argv[1], 'r+b')\n"
            let path = scratch.path + "/namespace"
            let holder = try Holder(path, other + "fcntl.flock(f, fcntl.LOCK_EX)")
            #expect(try holder.locks == nil)
            let user = try Descriptor.open(path, O_RDONLY)
            #expect(try holder.locks == HeldLocks(count: 1, file: path))
            withExtendedLifetime(user) {}
        }
        let part = try Holder(scratch.path + "/part", "fcntl.lockf(f, fcntl.LOCK_EX, 1, 120)")
        #expect(try part.locks?.isShared == false)
    }

    @Test("SQLite's locks of WAL mode do not count, those of a transaction do (L43)", .enabled(if: hasPython))
    func wal() throws {
        let scratch = try Scratch()
        let begin = "import sqlite3\np = sys.argv[1] + '.db'\nd = sqlite3.connect(p, isolation_level=None)\n"
        let table = "d.execute('pragma journal_mode=wal')\nd.execute('create table t(a)')\n"
        let reading = "d.execute('insert into t values (1), (2)')\nc = d.execute('select * from t')\nc.fetchone()"
        let writing = "d.execute('begin immediate')"
        let rollback = "d.execute('create table t(a)')\n"
        for (index, (script, expected)) in [
            (table, nil), (table + reading, nil), (table + writing, false), (rollback, nil), (rollback + reading, true),
        ].enumerated() {
            let holder = try Holder(scratch.path + "/\(index)", begin + script)
            let locks = try holder.locks
            #expect(locks?.isShared == expected, "\(script)")
        }
    }

    @Test("a shared lock that a program waits for is not a shared one (L43)", .enabled(if: hasPython))
    func waiting() throws {
        let scratch = try Scratch()
        let path = scratch.path + "/file"
        let holder = try Holder(path, "fcntl.flock(f, fcntl.LOCK_SH)")
        let alone = try holder.locks
        #expect(alone == HeldLocks(count: 1, isShared: true, file: path))
        // It prints its pid before it waits.
        let waiter = try Holder(
            path, "print(os.getpid(), flush=True)\nfcntl.flock(open(sys.argv[1]), fcntl.LOCK_EX)\nsignal.pause()")
        try eventually("it waits") { try isInFlock(waiter.pid) }
        let locks = try holder.locks
        #expect(locks == HeldLocks(count: 1, file: path))
        let unread = LockSearch(ProcFS(), [holder.pid], mayFindWaiters: { false })
        while try unread.advance() {}
        #expect(unread.held?.isShared == true)
    }

    /// Whether the process waits in flock(2).
    private func isInFlock(_ pid: Int32) throws -> Bool {
        let locks = String(decoding: try readFile(at: "/proc/locks", limit: 1 << 20), as: UTF8.self)
        return locks.contains("-> FLOCK  ADVISORY  WRITE \(pid) ")
    }

    @Test("leases, locks on files without a name, and locks of other processes do not count", .enabled(if: hasPython))
    func others() throws {
        let scratch = try Scratch()
        let scripts = [
            "pass", "try: fcntl.fcntl(f, fcntl.F_SETLEASE, fcntl.F_WRLCK)\nexcept OSError: pass",
            "m = os.memfd_create('m'); fcntl.flock(m, fcntl.LOCK_EX)",
            "os.unlink(sys.argv[1]); fcntl.lockf(f, fcntl.LOCK_EX)",
        ]
        let other = try Holder(scratch.path + "/other", "fcntl.flock(f, fcntl.LOCK_EX)")
        for (index, script) in scripts.enumerated() {
            let holder = try Holder(scratch.path + "/\(index)", script)
            let locks = try holder.locks
            #expect(locks == nil, "\(script)")
        }
        withExtendedLifetime(other) {}
    }

    /// A folder as /proc, with a process 42 that has a socket and two files, of which the second has a lock.
    private func makeProc(_ scratch: Scratch) throws -> ProcFS {
        let process = scratch.path + "/42"
        for folder in ["/fd", "/fdinfo"] { try createDirectories(at: process + folder) }
        let lock = "POSIX  ADVISORY  WRITE 42 00:13:7 0 EOF\n"
        for (number, target, info) in [
            ("0", "socket:[9]", "lock:\t1: FLOCK  ADVISORY  WRITE 42 00:13:8 0 EOF\n"), ("1", "/dev/null", ""),
            ("2", "/etc/passwd", "lock:\t1: \(lock)"),
        ] {
            try #require(symlink(target, "\(process)/fd/\(number)") == 0)
            try replaceFile(at: "\(process)/fdinfo/\(number)", with: Array("pos:\t0\n\(info)".utf8))
        }
        try replaceFile(
            at: scratch.path + "/locks", with: Array("1: \(lock)2: POSIX  ADVISORY  WRITE 42 00:13:9 0 EOF\n".utf8))
        return ProcFS(root: scratch.path)
    }

    @Test("/proc/locks, which takes long to open, is read only if not all descriptors can be examined")
    func locksOfMachine() throws {
        let scratch = try Scratch()
        let proc = try makeProc(scratch)
        let complete = LockSearch(proc, [42])
        while try complete.advance() {}
        #expect(complete.held == HeldLocks(count: 1, file: "/etc/passwd"))
        let limited = LockSearch(proc, [42], limit: 0)
        while try limited.advance() {}
        #expect(limited.held == HeldLocks(count: 2, file: "inode 7 on device 0:19"))
        let other = LockSearch(proc, [43])
        while try other.advance() {}
        #expect(other.held == nil)
    }
}
