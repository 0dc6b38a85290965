import Glibc
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
        _ baseline: inout WorkBaseline, isFirst: Bool = false, isFrozen: Bool = false,
        tables: SocketTables = SocketTables(), at time: Duration? = nil
    ) throws -> WorkMeasurement {
        let look = makeLook(baseline, tables: tables, isFrozen: isFrozen, at: time)
        try look.finish(try QuestionThread()) { time ?? Self.now }
        return isFrozen ? baseline.judgeFrozen(look.findings) : judge(look, &baseline, isFirst: isFirst)
    }

    /// - Parameter time: `nil`: now.
    func makeLook(
        _ baseline: WorkBaseline, tables: SocketTables = SocketTables(), isFrozen: Bool = false, mayAsk: Bool = true,
        at time: Duration? = nil
    ) -> WorkLook {
        WorkLook(
            Enclosure.Members(processes: [process.pid], cpu: .zero), at: time ?? Self.now, baseline: baseline,
            tables: tables, isFrozen: isFrozen, mayAsk: mayAsk)
    }

    /// - Parameter look: is finished.
    func judge(_ look: WorkLook, _ baseline: inout WorkBaseline, isFirst: Bool = false) -> WorkMeasurement {
        baseline.judge(look.findings, isFirst: isFirst, IdleLimits(processorShare: 10, requestTime: .seconds(60)))
    }

    /// A look without another one before it.
    func look() throws -> WorkMeasurement {
        var baseline = WorkBaseline()
        return try look(&baseline, isFirst: true)
    }

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
    @Test(
        "a request whose server sleeps is in flight, and a thread without a timeout waits for ever",
        .enabled(if: hasPython))
    func held() throws {
        let server = try Subject(python: "c, _ = l.accept(); c.recv(9); signal.pause()")
        let client = try TCPClient(server.number())
        client.send("GET")
        try eventually("it has read the request and sleeps") {
            let work = try server.look()
            return work.requests == 1 && work.unread == 0 && !work.isRunnable
        }
        let work = try server.look()
        #expect(work.connections == 1 && work.shortestWait == nil && !work.hasUnusualWait && !work.isIncomplete)
        #expect(work.newestRequest < .seconds(120))
    }

    @Test("a connection whose request was answered is no request, and the next request is one", .enabled(if: hasPython))
    func answered() throws {
        let server = try Subject(python: "c, _ = l.accept(); c.recv(9); c.send(b'a'); c.recv(9); signal.pause()")
        let client = try TCPClient(server.number())
        client.send("GET")
        client.receive()
        var baseline = WorkBaseline()
        let idle = try server.look(&baseline, isFirst: true)
        #expect(idle.requests == 0 && idle.connections == 1)
        // At once, in the same tick perhaps.
        client.send("GET")
        try eventually("it has read the request") { try server.look(&baseline).unread == 0 }
        // Known sockets are asked for one by one.
        for _ in 1...2 {
            let work = try server.look(&baseline)
            #expect(work.requests == 1)
        }
    }

    @Test("a request that arrives while the server is stopped is found by its sockets", .enabled(if: hasPython))
    func frozen() throws {
        let server = try Subject(python: "c, _ = l.accept(); c.recv(9); c.send(b'a'); signal.pause()")
        let client = try TCPClient(server.number())
        client.send("GET")
        client.receive()
        var baseline = WorkBaseline()
        try eventually("it has answered") { try server.look(&baseline, isFirst: true).requests == 0 }
        try server.process.signal(SIGSTOP)
        client.send("GET")
        try eventually("the request has arrived") {
            let work = try server.look(&baseline, isFrozen: true)
            return work.requests == 1 && work.unread == 3
        }
        let work = try server.look(&baseline, isFrozen: true)
        #expect(work.requests == 1 && work.connections == 1)
        #expect(!work.isRunnable && !work.hasUnusualWait && !work.hasNewProcesses && work.shortestWait == nil)
    }

    @Test("the end of a stream that was not read is neither input nor a request", .enabled(if: hasPython))
    func end() throws {
        let server = try Subject(python: "c, _ = l.accept(); print(1, flush=True); signal.pause()")
        let client = try TCPClient(server.number())
        let accepted = try server.number()
        #expect(accepted == 1)
        client.shutDown()
        try eventually("the FIN has arrived") {
            let work = try server.look()
            return work.connections == 0 && work.unread == 0 && work.requests == 0
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

    @Test("a thread waits with a timeout, which is usual once two looks have seen it")
    func timeouts() throws {
        let subject = try Subject("/bin/sleep", "50")
        try eventually("it sleeps") { try subject.look().shortestWait != nil }
        var baseline = WorkBaseline()
        let first = try subject.look(&baseline, isFirst: true)
        let wait = try #require(first.shortestWait)
        #expect(wait > .seconds(1) && wait <= .seconds(50))
        #expect(first.hasUnusualWait && !first.isRunnable)
        let second = try subject.look(&baseline)
        #expect(!second.hasUnusualWait)
    }

    @Test("a wait that a stop has interrupted keeps its timeout")
    func restarted() throws {
        let subject = try Subject("/bin/sleep", "50")
        var baseline = WorkBaseline()
        try eventually("it sleeps") { try subject.look(&baseline).shortestWait != nil }
        let before = try subject.look(&baseline).shortestWait
        let (proc, pid) = (ProcFS(), subject.process.pid)
        try subject.process.signal(SIGSTOP)
        try eventually("it is stopped") { try proc.stat(of: pid)?.isStopped == true }
        try subject.process.signal(SIGCONT)
        try eventually("it sleeps again") { try proc.stat(of: pid)?.state == UInt8(ascii: "S") }
        let after = try subject.look(&baseline).shortestWait
        #expect(after == before)
    }

    @Test("a timeout of poll is read", .enabled(if: hasPython))
    func poll() throws {
        let subject = try Subject(python: "select.poll().poll(20000)")
        try eventually("it polls") { try subject.look().shortestWait == .seconds(20) }
    }

    @Test("a thread that computes is runnable")
    func spins() throws {
        let subject = try Subject("/bin/sh", "-c", "while :; do :; done")
        try eventually("it runs") { try subject.look().isRunnable }
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

    @Test(
        "without sock_diag the tables of /proc have the queues, and a connection makes the look incomplete",
        .enabled(if: hasPython))
    func unsupported() throws {
        let server = try Subject(python: "c, _ = l.accept(); print(1, flush=True); signal.pause()")
        let client = try TCPClient(server.number())
        let accepted = try server.number()
        #expect(accepted == 1)
        client.send("xyz")
        let tables = SocketTables()
        for kind in SocketKind.allCases { tables.setUnsupported(kind) }
        var baseline = WorkBaseline()
        for number in 0..<3 {
            let work = try server.look(&baseline, isFirst: number == 0, tables: tables)
            #expect(work.unread == 3 && work.connections == 1 && work.requests == 0 && work.isIncomplete)
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
        for number in 0..<3 {
            let work = try server.look(&baseline, isFirst: number == 0)
            #expect(work.unread == 3 && work.connections == 1 && work.isIncomplete)
        }
        let frozen = try server.look(&baseline, isFrozen: true)
        #expect(frozen.unread == 3 && frozen.connections == 1)
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
        #expect(!work.isRunnable && !work.isIncomplete && work.unread == 0 && work.shortestWait == nil)
    }
}
