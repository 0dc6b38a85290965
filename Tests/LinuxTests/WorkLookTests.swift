import Glibc
import Idleness
import Posix
import TestKit
import Testing

@testable import Linux

/// A process that has something to do, or nothing.
final class Subject {
    let process: Process
    private let output: SharedDescriptor

    init(_ executable: String, _ arguments: String...) throws {
        let pipe = try Pipe()
        try pipe.read.setNonBlocking(false)
        try pipe.write.setNonBlocking(false)
        var request = SpawnRequest(
            executable: executable, arguments: arguments, environment: ["PATH=/usr/bin:/bin"])
        request.standardOutput = SharedDescriptor(try pipe.write.duplicate())
        var starting = try startProcess(request)
        request.standardOutput = nil
        output = SharedDescriptor(pipe.closingWrite())
        process = starting.process
        let outcome = try starting.finalOutcome()
        #expect(outcome == .executed)
    }

    /// A program in Python, with a socket `l` that listens on a port, which is printed.
    convenience init(python script: String) throws {
        let start = """
            import os, select, signal, socket, sys, time
            l = socket.socket(); l.bind(("127.0.0.1", 0)); l.listen()
            print(l.getsockname()[1], flush=True)

            """
        try self.init("/usr/bin/python3", "-c", start + script)
    }

    deinit {
        _ = try? process.signal(SIGKILL)
        _ = try? wait(for: process.descriptor)
        _ = try? process.reap()
    }

    /// Returns the first number that the process writes.
    func number() throws -> UInt16 {
        var bytes: [UInt8] = []
        var byte: UInt8 = 0
        while read(output.raw, &byte, 1) == 1, byte != 0x0a { bytes.append(byte) }
        return try #require(UInt16(String(decoding: bytes, as: UTF8.self)))
    }

    /// - Parameter time: `nil`: now.
    func look(
        _ baseline: inout WorkBaseline, isFrozen: Bool = false, tables: SocketTables = SocketTables(),
        at time: Duration? = nil
    ) throws -> WorkMeasurement {
        let look = makeLook(baseline, tables: tables, isFrozen: isFrozen, at: time)
        try look.finish(try QuestionThread()) { time ?? Self.now }
        return isFrozen
            ? baseline.judgeFrozen(look.findings, idleTime: Self.idleTime) : judge(look, &baseline)
    }

    /// - Parameter time: `nil`: now.
    func makeLook(
        _ baseline: WorkBaseline, tables: SocketTables = SocketTables(), isFrozen: Bool = false, mayAsk: Bool = true,
        at time: Duration? = nil
    ) -> WorkLook {
        WorkLook(
            Enclosure.Members(processes: [process.pid], cpu: .zero), at: time ?? Self.now, baseline: baseline,
            tables: tables, clocks: SchedulerClocks(), isFrozen: isFrozen, mayAsk: mayAsk)
    }

    /// - Parameter look: is finished.
    func judge(_ look: WorkLook, _ baseline: inout WorkBaseline) -> WorkMeasurement {
        baseline.judge(look.findings, idleTime: Self.idleTime)
    }

    /// A look without another one before it.
    func look() throws -> WorkMeasurement {
        var baseline = WorkBaseline()
        return try look(&baseline)
    }

    /// Stops the process, and waits until it is. On a busy machine it may still be on its processor then, and be seen to run.
    func stop() throws {
        try process.signal(SIGSTOP)
        try eventually("it is stopped") { try ProcFS().stat(of: process.pid)?.isStopped == true }
    }

    /// Waits until the process writes; fails after ten seconds.
    func waitForOutput() throws { try wait(for: output) }

    private static let idleTime = Duration.seconds(2)

    /// CLOCK_MONOTONIC
    static var now: Duration {
        var time = timespec()
        clock_gettime(CLOCK_MONOTONIC, &time)
        return .seconds(time.tv_sec) + .nanoseconds(time.tv_nsec)
    }
}

/// A TCP connection to this machine.
final class TCPClient {
    let descriptor: SharedDescriptor

    init(_ port: UInt16) throws {
        descriptor = SharedDescriptor(
            Descriptor(adopting: try checkErrno(socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0), "socket")))
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        let size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let number = descriptor.raw
        let result = withUnsafePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { connect(number, $0, size) }
        }
        try checkErrno(result, "connect")
    }

    func send(_ text: String) {
        let sent = Glibc.send(descriptor.raw, text, text.utf8.count, 0)
        #expect(sent == text.utf8.count)
    }

    func receive() {
        var byte: UInt8 = 0
        let received = recv(descriptor.raw, &byte, 1, 0)
        #expect(received == 1)
    }

    func shutDown() { shutdown(descriptor.raw, Int32(SHUT_WR)) }
}

private let hasPython = access("/usr/bin/python3", X_OK) == 0
private let hasNamespaces =
    hasPython && access("/usr/bin/unshare", X_OK) == 0
    && (try? run("/usr/bin/unshare", "-n", "/bin/true"))?.status == .exited(0)

@Suite("A look at what real processes have to do (L51)", .timeLimit(.minutes(2)))
struct WorkLookTests {
    /// What a program does, and what of it a look shows.
    struct Situation: Sendable, CustomTestStringConvertible {
        /// In Python.
        let program: String
        var work: ThreadWork?
        /// The call that `status` names.
        var call: String?
        /// It has a timer, of 1000 s.
        var hasTimer = false

        var testDescription: String { program }
    }

    private static let libc = "import ctypes, mmap, threading; libc = ctypes.CDLL(None)\n"

    static let situations: [Situation] = [
        Situation(program: "select.select([l], [], [])"),
        Situation(program: "select.select([l], [], [], 1000)", hasTimer: true),
        Situation(program: "p = select.poll(); p.register(l); p.poll()"),
        Situation(program: "select.poll().poll(1000000)", hasTimer: true),
        Situation(program: "p = select.epoll(); p.register(l, 1); p.poll(1000)", hasTimer: true),
        Situation(program: "time.sleep(1000)", hasTimer: true),
        Situation(program: "signal.sigtimedwait([signal.SIGUSR2], 1000)", hasTimer: true),
        Situation(program: "signal.pause()"),
        Situation(program: "l.accept()"),
        Situation(program: "os.read(os.pipe()[0], 1)"),
        // Its end is that of its parent.
        Situation(
            program: """
                r, w = os.pipe()
                if os.fork() == 0: os.close(w); os.read(r, 1); os._exit(0)
                os.wait()
                """),
        Situation(program: libc + "threading.Thread(target=l.accept).start(); threading.Event().wait()"),
        // pthread_join(3) waits for a word in the memory of the program, without FUTEX_PRIVATE_FLAG.
        Situation(
            program: libc + """
                t = threading.Thread(target=l.accept); t.start()
                libc.pthread_join(ctypes.c_ulong(t.ident), None)
                """),
        Situation(
            program: libc + """
                t = libc.timerfd_create(1, 0)
                libc.timerfd_settime(t, 0, ctypes.byref((ctypes.c_long * 4)(0, 0, 1000, 0)), None)
                os.read(t, 8)
                """, hasTimer: true),
        Situation(
            program: "r, w = os.pipe(); os.write(w, bytes(1 << 20))", work: .unwatched, call: "write(2) on a pipe"),
        Situation(
            program: "n = '/tmp/greenroom-fifo-%d' % os.getpid(); os.mkfifo(n); open(n)",
            work: .unwatched, call: "openat(2)"),
        Situation(
            program: libc + """
                m = mmap.mmap(-1, 4096); a = ctypes.addressof(ctypes.c_int.from_buffer(m))
                n = 202 if os.uname().machine == "x86_64" else 98
                libc.syscall(n, ctypes.c_void_p(a), 0, 0, None, None, 0)
                """, work: .unwatched, call: "futex(2)"),
        Situation(
            program: libc + "q = libc.msgget(0, 0o600); libc.msgrcv(q, ctypes.create_string_buffer(16), 8, 0, 0)",
            work: .unwatched, call: "msgrcv(2)"),
        Situation(
            program: libc + """
                s = libc.semget(0, 1, 0o600)
                libc.semop(s, ctypes.byref((ctypes.c_short * 3)(0, -1, 0)), 1)
                """, work: .unwatched, call: "sem"),
        Situation(program: "while True: pass", work: .running),
        Situation(program: "while True: time.sleep(1)", work: .shortWait, call: "clock_nanosleep(2)"),
    ]

    @Test(
        "a program whose threads wait for what is watched may be frozen, and another one may not (L51)",
        .enabled(if: hasPython), arguments: situations)
    func waits(_ situation: Situation) throws {
        let subject = try Subject(python: situation.program)
        _ = try subject.number()
        defer { unlink("/tmp/greenroom-fifo-\(subject.process.pid)") }
        var found = WorkMeasurement(cpu: .zero)
        // While it starts, it runs.
        try eventually("it waits: \(found)") {
            found = try subject.look()
            return found.waits.work == situation.work && (found.waits.due != nil) == situation.hasTimer
                && (situation.call.map { found.detail.contains($0) } ?? true)
        }
        #expect(found.detail.isEmpty == (situation.work == nil))
        if situation.work != nil { #expect(found.detail.hasPrefix("thread ") && found.detail.contains("(python3")) }
        let now = Subject.now
        if let due = found.waits.due { #expect(due > now && due <= now + .seconds(1001)) }
        #expect(!found.isIncomplete)
    }

    @Test("the time at which a wait ends is known as it was, after a stop too", arguments: ["sleep", "select", "poll"])
    func restarted(_ kind: String) throws {
        let program =
            switch kind {
            case "select": "select.select([l], [], [], 1000)"
            case "poll": "select.poll().poll(1000000)"
            default: "time.sleep(1000)"
            }
        let subject = try Subject(python: program)
        _ = try subject.number()
        var baseline = WorkBaseline()
        // Its memory and the processors' clocks are read by a thread, which has 100 ms for it.
        var due: Duration?
        try eventually("it waits") {
            let work = try subject.look(&baseline)
            due = work.waits.due
            return work.waits.work == nil && due != nil
        }
        try subject.stop()
        try eventually("it is seen to wait as before") {
            let frozen = try subject.look(&baseline, isFrozen: true)
            return frozen.waits.work == nil && frozen.waits.due == due
        }
        try subject.process.signal(SIGCONT)
        try eventually("it waits again") { try ProcFS().stat(of: subject.process.pid)?.state == UInt8(ascii: "S") }
        try eventually("it waits as before") {
            let after = try subject.look(&baseline)
            return after.waits.work == nil && after.waits.due == due
        }
    }

    @Test(
        "a wait that was stopped is known without an earlier look, if its end is a time or does not come by itself (L51)",
        .enabled(if: hasPython),
        arguments: [("threading.Event().wait(1000)", true), ("select.poll().poll()", false)])
    func continued(_ program: String, hasTimer: Bool) throws {
        let subject = try Subject(python: "import threading; " + program)
        _ = try subject.number()
        try eventually("it waits") { try subject.look().waits.work == nil }
        try subject.stop()
        try subject.process.signal(SIGCONT)
        try eventually("it waits again") { try ProcFS().stat(of: subject.process.pid)?.state == UInt8(ascii: "S") }
        try eventually("it is seen to wait") {
            let waits = try subject.look().waits
            return waits.work == nil && (waits.due != nil) == hasTimer
        }
    }

    @Test(
        "the rest of a timeout that the kernel would begin anew is written before a thaw (L51)",
        .enabled(if: hasPython), arguments: ["select.select([l], [], [], 1000)", "signal.pause()"])
    func keptRest(_ program: String) throws {
        let subject = try Subject(python: program + "; print(1, flush=True); signal.pause()")
        _ = try subject.number()
        var baseline = WorkBaseline()
        let isTimed = program.hasPrefix("select")
        try eventually("it waits") {
            let work = try subject.look(&baseline)
            return work.waits.work == nil && (work.waits.due != nil) == isTimed
        }
        try subject.stop()
        try eventually("it is seen to wait") {
            let frozen = try subject.look(&baseline, isFrozen: true)
            return frozen.waits.work == nil && baseline.keptRests.count == (isTimed ? 1 : 0)
        }
        guard let rest = baseline.keptRests.first else { return }
        // Nothing is written for a thread that is in another call now.
        var other = rest.wait
        other.arguments[0] += 1
        #expect(!KeptRest(process: rest.process, thread: rest.thread, wait: other).restore(at: Subject.now))
        // As if it had been frozen for an hour.
        try eventually("its rest is written") { rest.restore(at: Subject.now + .seconds(3600)) }
        try subject.process.signal(SIGCONT)
        try subject.waitForOutput()
        let answer = try subject.number()
        #expect(answer == 1)
    }

    @Test(
        "a signal that arrives for a stopped program which catches SIGALRM is a timer that is due (L51)",
        .enabled(if: hasPython))
    func signalTimer() throws {
        let proc = ProcFS()
        let without = try Subject(python: "signal.pause()")
        _ = try without.number()
        #expect(try SignalTimer(of: without.process.pid, proc) == nil)
        let subject = try Subject(
            python: "signal.signal(signal.SIGALRM, lambda *_: None); print(1, flush=True)\nwhile True: signal.pause()")
        _ = try subject.number()
        _ = try subject.number()
        try subject.stop()
        let timer = try #require(try SignalTimer(of: subject.process.pid, proc))
        #expect(!timer.isDue())
        try subject.process.signal(SIGALRM)
        try eventually("the signal waits") { timer.isDue() }
        // One that arrived between the freeze and the look was not served either.
        let late = try #require(try SignalTimer(of: subject.process.pid, proc))
        #expect(late.isDue())
    }

    @Test("what a program with ticks does over its pipes and connections is counted (L51)", .enabled(if: hasPython))
    func traffic() throws {
        let server = try Subject(
            python: """
                import threading
                def tick():
                    while True: time.sleep(1)
                threading.Thread(target=tick, daemon=True).start()
                c, _ = l.accept(); c.recv(9); print(1, flush=True); signal.pause()
                """)
        let client = try TCPClient(server.number())
        client.send("GET")
        let received = try server.number()
        #expect(received == 1)
        var baseline = WorkBaseline()
        try eventually("its counters are asked for") {
            _ = try server.look(&baseline)
            return baseline.countsTraffic
        }
        let work = try server.look(&baseline)
        #expect(work.connections == 1 && !work.isIncomplete)
        #expect(work.traffic.map { $0 < .seconds(120) } == true)
    }

    @Test("the end of a stream that was not read is no input, and no connection", .enabled(if: hasPython))
    func end() throws {
        let server = try Subject(python: "c, _ = l.accept(); print(1, flush=True); signal.pause()")
        let client = try TCPClient(server.number())
        let accepted = try server.number()
        #expect(accepted == 1)
        client.shutDown()
        try eventually("the FIN has arrived") {
            let work = try server.look()
            return work.connections == 0 && work.unread == 0
        }
    }

    @Test("what was not read and not received counts", .enabled(if: hasPython))
    func queues() throws {
        let server = try Subject(
            python: """
                u = socket.socket(socket.AF_INET, socket.SOCK_DGRAM); u.bind(("127.0.0.1", 0))
                u.sendto(b"datagram", u.getsockname())
                a, b = socket.socketpair(); a.send(b"12345")
                c, _ = l.accept(); c.setblocking(False)
                try:
                    while True: c.send(bytes(65536))
                except BlockingIOError: pass
                print(1, flush=True); signal.pause()
                """)
        let client = try TCPClient(server.number())
        let accepted = try server.number()
        #expect(accepted == 1)
        let before = try server.look()
        #expect(before.unsent > 0)
        // Of the datagram the kernel counts the buffer.
        #expect(before.unread >= 5 + 8)
        client.send("xyz")
        try eventually("three bytes more wait") { try server.look().unread == before.unread + 3 }
        let second = try TCPClient(try Self.port(of: client))
        try eventually("a connection waits") { try server.look().unread == before.unread + 4 }
        withExtendedLifetime(second) {}
    }

    /// The port to which a client is connected.
    private static func port(of client: TCPClient) throws -> UInt16 {
        var address = sockaddr_in()
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let number = client.descriptor.raw
        let result = withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) { getpeername(number, $0, &size) }
        }
        try checkErrno(result, "getpeername")
        return UInt16(bigEndian: address.sin_port)
    }

    @Test("looks that follow each other share one dump, and known sockets need none", .enabled(if: hasPython))
    func shared() throws {
        let servers = try (1...2).map { _ in try Subject(python: "signal.pause()") }
        for server in servers { _ = try server.number() }
        let tables = SocketTables()
        var baselines = [WorkBaseline(), WorkBaseline()]
        func look(at milliseconds: Int) throws {
            for (index, server) in servers.enumerated() {
                _ = try server.look(&baselines[index], tables: tables, at: .milliseconds(milliseconds))
            }
        }
        try look(at: 1000)
        #expect(tables.dumps == 1)
        #expect(baselines.allSatisfy { $0.sockets.values.contains { $0.identity != nil } })
        try look(at: 2000)
        #expect(tables.dumps == 1)
        baselines = [WorkBaseline(), WorkBaseline()]
        try look(at: 2001)
        #expect(tables.dumps == 2)
    }

    @Test("without sock_diag the tables of /proc have the queues", .enabled(if: hasPython))
    func unsupported() throws {
        let server = try Subject(python: "c, _ = l.accept(); print(1, flush=True); signal.pause()")
        let client = try TCPClient(server.number())
        let accepted = try server.number()
        #expect(accepted == 1)
        client.send("xyz")
        let tables = SocketTables()
        for kind in SocketKind.allCases { tables.setUnsupported(kind) }
        var baseline = WorkBaseline()
        for _ in 0..<3 {
            let work = try server.look(&baseline, tables: tables)
            #expect(work.unread == 3 && work.connections == 1 && work.traffic == .zero)
        }
    }

    @Test("sockets of another network namespace are found in its tables, by each look", .enabled(if: hasNamespaces))
    func namespace() throws {
        let script = """
            import fcntl, signal, socket, struct
            l = socket.socket()
            fcntl.ioctl(l, 0x8914, struct.pack("16sh14x", b"lo", 1))  # SIOCSIFFLAGS, IFF_UP
            l.bind(("127.0.0.1", 0)); l.listen()
            c = socket.create_connection(l.getsockname()); a, _ = l.accept(); c.send(b"xyz")
            print(1, flush=True)
            signal.pause()
            """
        let server = try Subject("/usr/bin/unshare", "-n", "/usr/bin/python3", "-c", script)
        let answer = try server.number()
        #expect(answer == 1)
        var baseline = WorkBaseline()
        for _ in 0..<3 {
            let work = try server.look(&baseline)
            #expect(work.unread == 3 && work.connections == 1 && work.traffic == .zero)
        }
    }

    @Test(
        "what a program has sent to itself is its own, and what comes from outside is not (L53)",
        .enabled(if: hasPython), arguments: ["unix", "unix-listener", "tcp", "listener"])
    func own(_ kind: String) throws {
        let subject = try Subject(python: OwnInputTests.script(kind))
        let port = try subject.number()
        let ready = try subject.number()
        #expect(ready == 1)
        let work = try subject.look()
        #expect(work.unread > 0 && work.isOwn)
        // A connection that waits: it may be the one that counts.
        let client = try TCPClient(port)
        try eventually("the connection waits") { try !subject.look().isOwn }
        client.shutDown()
    }

    @Test("a process that has ended has nothing to do")
    func gone() throws {
        let subject = try Subject("/bin/true")
        try wait(for: subject.process.descriptor)
        let work = try subject.look()
        #expect(work.waits == WaitVerdict() && !work.isIncomplete && work.unread == 0)
    }
}
