import Idleness
import Testing

@testable import Linux

@Suite("What an app has to do, from one look to the next (L51)")
struct WorkBaselineTests {
    private static let idleTime = Duration.seconds(10)

    private func makeFindings(
        _ sockets: [[UInt8]] = [], at second: Int = 0, cpu: Duration = .zero, processes: [Int32] = [9],
        ports: Set<UInt16> = [80], threads: [ThreadSighting] = []
    ) throws -> WorkFindings {
        var findings = WorkFindings(began: .seconds(second), processes: processes, cpu: cpu)
        findings.ports = ports
        findings.threads = threads
        for thread in threads { findings.processOf[thread.thread] = 9 }
        for bytes in sockets {
            let socket = try internetSocket(bytes)
            findings.sockets[socket.inode] = .internet(socket, .tcp)
        }
        return findings
    }

    /// A thread that waits for so long again and again: a tick, or what may become one.
    private func tick(_ length: Duration = .seconds(1), thread: Int = 9, at second: Int = 0) -> ThreadSighting {
        let wait = Wait(call: 35, arguments: [1], length: length, due: .seconds(second) + length, stamp: UInt64(second))
        return ThreadSighting(thread: thread, activity: .waiting(wait))
    }

    private func judge(_ baseline: inout WorkBaseline, _ findings: WorkFindings) -> WorkMeasurement {
        baseline.judge(findings, idleTime: Self.idleTime)
    }

    // MARK: Sockets

    @Test("what went over a connection last is as old as the kernel says, in either direction")
    func ages() throws {
        var baseline = WorkBaseline()
        let message = internetMessage(received: 5, sent: 5, lastReceived: 3000, lastSent: 9000)
        let outgoing = internetMessage(port: 40_000, inode: 8, received: 5, lastReceived: 7000, lastSent: 2000)
        let one = judge(&baseline, try makeFindings([message]))
        #expect(one.traffic == .seconds(3) && one.connections == 1)
        let both = judge(&baseline, try makeFindings([message, outgoing]))
        #expect(both.traffic == .seconds(2) && both.connections == 1)
        let none = judge(&baseline, try makeFindings(at: 1))
        #expect(none.traffic == .zero && none.connections == 0)
    }

    @Test(
        "a connection that the app had made counts from when it is gone: the app will try again, after a pause like a tick"
    )
    func lostConnection() throws {
        var baseline = WorkBaseline()
        let outgoing = internetMessage(port: 40_000, inode: 8, lastReceived: 60_000, lastSent: 60_000)
        let accepted = internetMessage(lastReceived: 60_000, lastSent: 60_000)
        _ = judge(&baseline, try makeFindings([accepted, outgoing]))
        // A client that has gone leaves nothing to do.
        #expect(judge(&baseline, try makeFindings([outgoing], at: 10)).traffic == .seconds(60))
        #expect(judge(&baseline, try makeFindings(at: 20)).traffic == .zero)
        #expect(judge(&baseline, try makeFindings(at: 30)).traffic == .seconds(10))
    }

    @Test("traffic of a program whose ticks come and go is counted all the time, once they are learned")
    func rareTicks() throws {
        var baseline = WorkBaseline()
        let message = internetMessage(lastReceived: 600_000, lastSent: 600_000)
        for second in stride(from: 0, through: 70, by: 10) {
            _ = judge(&baseline, try makeFindings([message], at: second, threads: [tick(at: second)]))
        }
        _ = judge(&baseline, try makeFindings([message], at: 80))
        #expect(baseline.countsTraffic)
        let again = judge(&baseline, try makeFindings([message], at: 90, threads: [tick(at: 90)]))
        #expect(again.waits.tick == .seconds(1) && again.traffic == .seconds(600))
    }

    @Test("what goes over a connection of the app to itself is no traffic, and its end is no client")
    func ownConnection() throws {
        var baseline = WorkBaseline()
        let accepted = internetMessage(port: 80, peerPort: 40_000, inode: 7, lastReceived: 1000, lastSent: 1000)
        let made = internetMessage(port: 40_000, peerPort: 80, inode: 8, lastReceived: 1000, lastSent: 1000)
        let own = judge(&baseline, try makeFindings([accepted, made]))
        #expect(own.traffic == nil && own.connections == 0)
        let other = judge(&baseline, try makeFindings([accepted]))
        #expect(other.traffic == .seconds(1) && other.connections == 1)
    }

    @Test("a connection whose counters were not read may carry anything beside ticks, and is a client")
    func uncounted() throws {
        // Only the first attribute.
        let without = Array(internetMessage(received: 9)[..<80])
        var calm = WorkBaseline()
        let first = judge(&calm, try makeFindings([without]))
        #expect(first.traffic == nil && first.connections == 1)
        var ticking = WorkBaseline()
        for second in [0, 10] {
            let work = judge(&ticking, try makeFindings([without], at: second, threads: [tick(at: second)]))
            #expect(work.traffic == .zero && work.connections == 1)
        }
    }

    @Test(
        "the look that finds short waits first has not asked for counters, so something may have gone over connections")
    func firstTick() throws {
        var baseline = WorkBaseline()
        let message = internetMessage(lastReceived: 60_000, lastSent: 60_000)
        #expect(judge(&baseline, try makeFindings([message])).traffic == .seconds(60))
        #expect(!baseline.countsTraffic)
        #expect(judge(&baseline, try makeFindings([message], at: 10, threads: [tick(at: 10)])).traffic == .zero)
        #expect(baseline.countsTraffic)
        #expect(judge(&baseline, try makeFindings([message], at: 20, threads: [tick(at: 20)])).traffic == .seconds(60))
        #expect(judge(&baseline, try makeFindings([message], at: 30)).traffic == .seconds(60))
        #expect(!baseline.countsTraffic)
    }

    private func unix(unread: UInt32 = 0, peer: UInt32 = 7, isNamed: Bool = false) throws -> FoundSocket {
        func attribute(_ kind: UInt16, _ payload: [UInt8]) -> [UInt8] {
            nativeBytes(UInt16(4 + payload.count)) + nativeBytes(kind) + payload
        }
        var bytes: [UInt8] = [1, 1, 1, 0] + nativeBytes(UInt32(99)) + nativeBytes(UInt64(3))
        if isNamed { bytes += attribute(0, Array("/run".utf8)) }
        bytes += attribute(2, nativeBytes(peer)) + attribute(4, nativeBytes(unread) + nativeBytes(UInt32(0)))
        return .unix(try #require(UnixQueue(parsing: bytes[...])))
    }

    @Test(
        "of a Unix connection counts when it was opened, and when input was seen there; an accepted one counts always")
    func unixConnections() throws {
        var baseline = WorkBaseline()
        func look(at second: Int, _ socket: FoundSocket?) throws -> WorkMeasurement {
            var findings = try makeFindings(at: second)
            if let socket { findings.sockets[99] = socket }
            return judge(&baseline, findings)
        }
        #expect(try look(at: 0, nil).traffic == nil)
        #expect(try look(at: 10, try unix()).traffic == .zero)
        #expect(try look(at: 30, try unix()).traffic == .seconds(20))
        #expect(try look(at: 40, try unix(unread: 3)).traffic == .zero)
        #expect(try look(at: 45, try unix()).traffic == .seconds(5))
        #expect(try look(at: 50, try unix(peer: 99)).traffic == nil)
        let accepted = try look(at: 60, try unix(isNamed: true))
        #expect(accepted.traffic == .zero && accepted.connections == 1)
        #expect(try look(at: 70, try unix(peer: 0, isNamed: true)).connections == 0)
    }

    @Test("a connection stays an accepted one when its listener is closed")
    func closedListener() throws {
        var baseline = WorkBaseline()
        let listener = internetMessage(state: 10, port: 81, inode: 1)
        let connection = internetMessage(port: 81, inode: 2, received: 5, lastReceived: 1, lastSent: 5)
        // The last one is made on a port on which the app listened before.
        let later = internetMessage(port: 81, inode: 3, received: 5, lastReceived: 1, lastSent: 5)
        for sockets in [[listener, connection], [connection], [later]] {
            let work = judge(&baseline, try makeFindings(sockets, ports: []))
            #expect(work.connections == 1)
        }
    }

    @Test("input and output of all sockets count")
    func queues() throws {
        var baseline = WorkBaseline()
        let work = judge(
            &baseline,
            try makeFindings([
                internetMessage(inode: 1, readQueue: 3, writeQueue: 4), internetMessage(inode: 2, writeQueue: 5),
                internetMessage(state: 10, inode: 3, readQueue: 1, writeQueue: 128),
            ]))
        #expect(work.unread == 4 && work.unsent == 9)
    }

    @Test("in another network namespace what goes over a connection is not known")
    func listed() throws {
        var findings = try makeFindings()
        let line = "1: 0100007F:0050 0100007F:A000 01 0000000A:00000003 00:0 0 0 0 12"
        let socket = try #require(ListedSocket(parsing: Array(line.utf8)[...]))
        findings.sockets[12] = .listed(socket, .tcp)
        var baseline = WorkBaseline()
        let work = judge(&baseline, findings)
        #expect(work.traffic == .zero && work.connections == 1 && work.unread == 3 && work.unsent == 10)
    }

    @Test("no more than 4,096 sockets are kept")
    func bounded() throws {
        var baseline = WorkBaseline()
        let messages = (1...(WorkBaseline.mostSockets + 100)).map { internetMessage(inode: UInt32($0), received: 1) }
        let work = judge(&baseline, try makeFindings(messages))
        #expect(work.connections == messages.count)
        #expect(baseline.sockets.count == WorkBaseline.mostSockets)
    }

    // MARK: Pipes and files

    @Test("beside ticks, calls count where there are pipes of others, and so do 4 KiB that were written, and new pipes")
    func transfers() throws {
        func ages(_ looks: [(calls: UInt64, written: UInt64, pipes: Set<UInt64>)]) throws -> [Int64?] {
            var baseline = WorkBaseline()
            return try looks.enumerated().map { index, look in
                var findings = try makeFindings(at: 10 * index, threads: [tick(at: 10 * index)])
                findings.transfers = Transfers(calls: look.calls, written: [9: look.written])
                findings.outsidePipes = look.pipes
                return judge(&baseline, findings).traffic?.components.seconds
            }
        }
        // The first look was made without counters, and the next one is compared with nothing.
        #expect(try ages([(1, 1, []), (2, 1, []), (9, 4000, [])]) == [0, nil, nil])
        #expect(try ages([(1, 1, []), (2, 1, []), (2, 4097, []), (2, 4098, [])]) == [0, nil, 0, 10])
        #expect(try ages([(1, 1, [5]), (2, 1, [5]), (3, 1, [5]), (3, 1, [5])]) == [0, nil, 0, 10])
        #expect(try ages([(1, 1, []), (1, 1, []), (1, 1, [5]), (1, 1, [5]), (1, 1, [])]) == [0, nil, 0, 10, 20])
    }

    @Test("what a process without ticks writes does not count: its waits are exact")
    func writtenByOthers() throws {
        for (writer, age) in [(9, 0), (10, nil)] as [(Int32, Int64?)] {
            var baseline = WorkBaseline()
            var ages: [Int64?] = []
            for second in stride(from: 0, through: 90, by: 10) {
                var findings = try makeFindings(at: second, processes: [9, 10], threads: [tick(at: second)])
                findings.transfers.written = [9: 1, 10: 1]
                if second == 90 { findings.transfers.written[writer] = 8192 }
                ages.append(judge(&baseline, findings).traffic?.components.seconds)
            }
            #expect(ages.dropFirst(1).dropLast(1).allSatisfy { $0 == nil } && ages.last == age)
        }
    }

    // MARK: Processes, freezes

    @Test("a process that began or ended is reported by the next look, but not by a first one")
    func processes() throws {
        var baseline = WorkBaseline()
        func look(_ processes: [Int32]) throws -> Bool {
            judge(&baseline, try makeFindings(processes: processes)).hasNewProcesses
        }
        #expect(try !look([9]))
        #expect(try !look([9]))
        #expect(try look([9, 10]))
        #expect(try !look([10, 9]))
        #expect(try look([10]))
    }

    @Test(
        "after a launch or a thaw only the processor time and the processes are taken, and the next look is compared with them"
    )
    func resumed() throws {
        for isKnown in [true, false] {
            var baseline = WorkBaseline()
            if isKnown {
                _ = judge(&baseline, try makeFindings([internetMessage(writeQueue: 7)]))
                _ = baseline.judgeFrozen(try makeFindings(at: 1), idleTime: Self.idleTime)
            }
            let brief = baseline.resume(Enclosure.Members(processes: [10], cpu: .seconds(5)), at: .seconds(90))
            #expect(brief.isBrief && brief.cpu == .seconds(5) && !brief.hasNewProcesses && brief.unread == 0)
            // What peers had not got is that of the look before.
            #expect(brief.unsent == (isKnown ? 7 : 0))
            let same = judge(&baseline, try makeFindings(at: 91, cpu: .seconds(6), processes: [10]))
            #expect(!same.isBrief && !same.hasNewProcesses && same.cpu == .seconds(6))
            #expect(judge(&baseline, try makeFindings(at: 92, processes: [10, 11])).hasNewProcesses)
        }
    }

    @Test("what is unread, and which processes there are, is not judged while an app is frozen")
    func frozen() throws {
        var baseline = WorkBaseline()
        _ = judge(&baseline, try makeFindings([internetMessage(inode: 1)]))
        let frozen = baseline.judgeFrozen(try makeFindings(at: 1, processes: []), idleTime: Self.idleTime)
        #expect(!frozen.hasNewProcesses && frozen.unread == 0 && frozen.waits == WaitVerdict())
        #expect(baseline.sockets.count == 1)
        #expect(!judge(&baseline, try makeFindings([internetMessage(inode: 1)], at: 2)).hasNewProcesses)
    }

    @Test("of a frozen app the waits are kept whose rest the kernel keeps in its memory, until it is thawed")
    func rests() throws {
        func thread(_ number: Int, keepsRest: Bool, length: Duration? = .seconds(30)) -> ThreadSighting {
            var wait = Wait(call: 23, arguments: [1, 0, 0, 0, 16, 0], length: length, due: length, stamp: 5)
            wait.keepsRest = keepsRest
            return ThreadSighting(thread: number, activity: .waiting(wait))
        }
        let threads = [
            thread(11, keepsRest: true), thread(12, keepsRest: false), thread(13, keepsRest: true, length: nil),
        ]
        var baseline = WorkBaseline()
        _ = judge(&baseline, try makeFindings(threads: threads))
        #expect(baseline.keptRests.isEmpty)
        let work = baseline.judgeFrozen(try makeFindings(at: 1, threads: threads), idleTime: Self.idleTime)
        #expect(work.waits.due == .seconds(30))
        #expect(baseline.keptRests.map(\.thread) == [11] && baseline.keptRests.map(\.process) == [9])
        _ = baseline.resume(Enclosure.Members(processes: [9], cpu: .zero), at: .seconds(2))
        #expect(baseline.keptRests.isEmpty)
    }

    @Test("a frozen app that has read something since the last look is at work, wherever its threads are (L51)")
    func readBeforeFreeze() throws {
        for (more, work) in [(0, nil), (2, ThreadWork.running)] as [(UInt64, ThreadWork?)] {
            var baseline = WorkBaseline()
            var findings = try makeFindings(at: 0)
            findings.transfers.received = 100
            _ = baseline.judge(findings, idleTime: Self.idleTime)
            findings = try makeFindings(at: 1)
            findings.transfers.received = 100 + more
            #expect(baseline.judgeFrozen(findings, idleTime: Self.idleTime).waits.work == work)
        }
        // The previous daemon has made the last look.
        var unknown = WorkBaseline()
        var findings = try makeFindings(at: 1)
        findings.transfers.received = 100
        #expect(unknown.judgeFrozen(findings, idleTime: Self.idleTime).waits.work == nil)
    }

    @Test("timer descriptors with which an app waits in ticks are known, by process and number")
    func timerTicks() throws {
        var baseline = WorkBaseline()
        let id = -(9 << 24 | 4)
        for second in stride(from: 0, through: 70, by: 10) {
            var wait = Wait(call: Wait.timerDescriptor, arguments: [9, 4])
            (wait.length, wait.due) = (.seconds(1), .seconds(second + 1))
            let timer = ThreadSighting(thread: id, activity: .waiting(wait))
            _ = judge(&baseline, try makeFindings(at: second, threads: [timer, tick(at: second)]))
        }
        #expect(baseline.timerTicks == [TimerTick(process: 9, number: 4)])
    }
}
