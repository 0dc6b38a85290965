import Glibc
import Posix
import TestKit
import Testing

@testable import Linux

private let canLockSockets =
    access("/usr/bin/python3", X_OK) == 0
    && (try? run("/usr/bin/python3", "-c", socketLocker))?.status == .exited(0)

@Suite(
    "Looks at sockets whose lock a process holds (L51)",
    .enabled(if: canLockSockets, "needs python3, and root or vm.unprivileged_userfaultfd"), .timeLimit(.minutes(2)))
struct LockedSocketTests {
    @Test("a process that holds the lock of its socket delays no look at another one (L51)")
    func others() throws {
        let holder = try Subject(
            python: socketLocker + """
                c = socket.create_connection(l.getsockname()); a, _ = l.accept()
                hold(c)
                print(1, flush=True); signal.pause()
                """)
        _ = try holder.number()
        let isHeld = try holder.number()
        #expect(isHeld == 1)
        let server = try Subject(python: "c, _ = l.accept(); c.recv(9); signal.pause()")
        let client = try TCPClient(server.number())
        client.send("GET")
        // Each finds the new sockets in a dump of all.
        try eventually("the request is read") {
            let work = try server.look()
            return work.connections == 1 && work.unread == 0 && !work.isIncomplete
        }
        var baseline = WorkBaseline()
        for _ in 0..<2 {
            let work = try server.look(&baseline)
            #expect(work.connections == 1 && !work.isIncomplete)
        }
    }

    @Test("a look whose question is not answered ends without counters, and the next one has them (L51)")
    func own() throws {
        let holder = try Subject(
            python: socketLocker + """
                import threading
                def tick():
                    while True: time.sleep(1)
                threading.Thread(target=tick, daemon=True).start()
                signal.signal(signal.SIGUSR1, lambda *_: release())
                a, _ = l.accept(); a.recv(9); hold(a)
                print(1, flush=True)
                while True: signal.pause()
                """)
        let client = try TCPClient(holder.number())
        client.send("GET")
        let isHeld = try holder.number()
        #expect(isHeld == 1)
        let questions = try QuestionThread("locked-socket")
        // Of a program without ticks no counters are needed.
        var baseline = WorkBaseline()
        try eventually("its ticks are seen") {
            let work = try holder.look(&baseline)
            #expect(!work.isIncomplete)
            return baseline.countsTraffic
        }
        let look = holder.makeLook(baseline)
        while try look.advance(at: Subject.now) {}
        try questions.begin(try #require(look.question))
        try eventually("the thread waits for the lock") { questions.isBlocked }
        let answers = try questions.thread.collect()
        #expect(answers.isEmpty)
        look.giveUp()
        while try look.advance(at: Subject.now) {}
        #expect(look.question == nil)
        let counted = baseline
        let work = holder.judge(look, &baseline)
        #expect(work.isIncomplete && work.connections == 1 && work.unread == 0)
        // While the thread waits, no other one is asked.
        let second = holder.makeLook(counted, mayAsk: false)
        while try second.advance(at: Subject.now) {}
        #expect(second.question == nil)
        let without = holder.judge(second, &baseline)
        #expect(without.isIncomplete && without.connections == 1)
        try holder.process.signal(SIGUSR1)
        let size = try questions.answer()
        #expect(size > 0)
        // What was written from the memory.
        client.receive()
        try eventually("its output has arrived") {
            let after = try holder.look(&baseline)
            return !after.isIncomplete && after.connections == 1 && after.unsent == 0
        }
    }

    @Test("where the kernel carries out one request at a time, a helper thread makes all of them (L51)")
    func serialized() throws {
        let server = try Subject(
            python: """
                u, v = socket.socketpair(); u.send(b"12345")
                c, _ = l.accept(); c.recv(9); signal.pause()
                """)
        let client = try TCPClient(server.number())
        client.send("GET")
        let tables = SocketTables(isSerialized: true)
        var baseline = WorkBaseline()
        try eventually("the request is read") {
            let work = try server.look(&baseline, tables: tables)
            return work.connections == 1 && work.unread == 5
        }
        // Now all are known.
        let work = try server.look(&baseline, tables: SocketTables(isSerialized: true))
        #expect(work.unread == 5 && work.connections == 1 && !work.isIncomplete)
        // Without a helper thread, the tables of /proc have the queues.
        let look = server.makeLook(baseline, tables: SocketTables(isSerialized: true), mayAsk: false)
        while try look.advance(at: Subject.now) {}
        #expect(look.question == nil)
        let without = server.judge(look, &baseline)
        #expect(without.isIncomplete && without.connections == 1)
        // What was known before is still compared.
        let later = try server.look(&baseline, tables: SocketTables(isSerialized: true))
        #expect(later.connections == 1 && !later.isIncomplete)
    }

    @Test("a question that is given up before it is asked ends without its sockets (L51)")
    func givenUp() throws {
        let server = try Subject(python: "c, _ = l.accept(); c.recv(9); signal.pause()")
        let client = try TCPClient(server.number())
        client.send("GET")
        try eventually("the request is read") {
            let work = try server.look()
            return work.connections == 1 && work.unread == 0
        }
        let look = server.makeLook(WorkBaseline(), tables: SocketTables(isSerialized: true))
        while try look.advance(at: Subject.now) {}
        // That for a dump.
        #expect(look.question != nil)
        look.giveUp()
        while try look.advance(at: Subject.now) {}
        #expect(look.question == nil && look.findings.isIncomplete)
        var baseline = WorkBaseline()
        let work = server.judge(look, &baseline)
        #expect(work.isIncomplete && work.connections == 1)
    }
}
