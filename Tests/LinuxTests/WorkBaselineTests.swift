import Testing

@testable import Linux

@Suite("What an app has to do, from one look to the next (L51)")
struct WorkBaselineTests {
    private static let limits = IdleLimits(processorShare: 10, requestTime: .seconds(60))

    private func makeFindings(
        _ sockets: [[UInt8]] = [], at second: Int = 0, cpu: Duration = .zero, processes: [Int32] = [9],
        ports: Set<UInt16> = [80]
    ) throws -> WorkFindings {
        var findings = WorkFindings(began: .seconds(second), processes: processes, cpu: cpu)
        findings.ports = ports
        for bytes in sockets {
            let socket = try internetSocket(bytes)
            findings.sockets[socket.inode] = .internet(socket, .tcp)
        }
        return findings
    }

    @Test("a connection whose last data came from the client has a request")
    func ages() throws {
        let cases: [(received: UInt64, sent: UInt64, lastReceived: UInt32, lastSent: UInt32, requests: Int)] = [
            (0, 0, 0, 0, 0), (0, 5, 9, 3, 0), (5, 0, 3, 9, 1), (5, 0, 9, 9, 1), (5, 5, 3, 9, 1), (5, 5, 9, 3, 0),
            // The same tick says nothing.
            (5, 5, 3, 3, 0),
        ]
        for one in cases {
            var baseline = WorkBaseline()
            let work = baseline.judge(
                try makeFindings([
                    internetMessage(
                        received: one.received, sent: one.sent, lastReceived: one.lastReceived, lastSent: one.lastSent)
                ]), isFirst: true, Self.limits)
            #expect(work.requests == one.requests, "\(one)")
            #expect(work.newestRequest == (one.requests > 0 ? .milliseconds(Int64(one.lastReceived)) : .zero))
            #expect(work.connections == 1)
        }
    }

    @Test("the counters of the last look decide where the ages say nothing")
    func counters() throws {
        let cases: [(received: UInt64, sent: UInt64, requests: Int)] = [(5, 5, 0), (9, 5, 1), (5, 9, 0), (9, 9, 0)]
        for one in cases {
            var baseline = WorkBaseline()
            _ = baseline.judge(
                try makeFindings([internetMessage(received: 5, sent: 5, lastReceived: 7, lastSent: 7)]), isFirst: true,
                Self.limits)
            let next = try makeFindings(
                [internetMessage(received: one.received, sent: one.sent, lastReceived: 7, lastSent: 7)], at: 10)
            // The second time nothing changes, and neither does the result.
            for _ in 1...2 {
                let work = baseline.judge(next, isFirst: false, Self.limits)
                #expect(work.requests == one.requests, "\(one)")
            }
        }
    }

    /// Looks at a connection once for each number of bytes that it has received, in equal intervals.
    /// - Returns: for how many seconds its request had waited at each look; `nil`: there was none.
    private func ages(
        of received: [UInt64], sent: [UInt64] = [], every interval: Int, first: Set<Int> = [0]
    ) throws -> [Int64?] {
        var baseline = WorkBaseline()
        return try received.enumerated().map { index, bytes in
            let answered = index < sent.count ? sent[index] : 1
            let message = internetMessage(received: bytes, sent: answered, lastReceived: 0, lastSent: 1)
            let findings = try makeFindings([message], at: interval * index)
            let work = baseline.judge(findings, isFirst: first.contains(index), Self.limits)
            return work.requests == 0 ? nil : work.newestRequest.components.seconds
        }
    }

    @Test("a request that arrives slowly waits since its first bytes, and one that makes progress since its last ones")
    func progress() throws {
        // One byte a second, 1 KiB a second, and a byte less.
        #expect(try ages(of: [1, 11, 21, 31], every: 10) == [0, 10, 20, 30])
        #expect(try ages(of: [1, 10_241, 20_481], every: 10) == [0, 0, 0])
        #expect(try ages(of: [1, 10_240, 20_480], every: 10) == [0, 10, 0])
        // A pause, and more of it.
        #expect(try ages(of: [1, 100_001, 100_001, 100_002, 200_002], every: 10) == [0, 0, 10, 20, 0])
        // A server that computes.
        #expect(try ages(of: [500, 500, 500], every: 10) == [0, 10, 20])
    }

    @Test("an answer ends a request, and what arrives after it is another one")
    func renewed() throws {
        #expect(try ages(of: [1, 2, 3, 4], sent: [0, 0, 7, 7], every: 10) == [0, 10, 0, 10])
        #expect(try ages(of: [1, 2, 2, 3, 4], sent: [0, 0, 7, 7, 7], every: 10) == [0, 10, nil, 0, 10])
    }

    @Test("the time in which an app may have been frozen does not count for the progress of a request")
    func progressAfterFreeze() throws {
        #expect(try ages(of: [1, 1025, 1035], every: 3600) == [0, 3600, 7200])
        #expect(try ages(of: [1, 1025, 1035], every: 3600, first: [0, 1]) == [0, 0, 3600])
        #expect(try ages(of: [1, 1024, 1034], every: 3600, first: [0, 1]) == [0, 3600, 7200])
    }

    @Test("looks that follow each other soon count the bytes of a request together, until a second is over")
    func shortLooks() throws {
        var baseline = WorkBaseline()
        // 4 KiB a second, in looks of 100 ms; then one byte in each.
        let ages = try (0...40).map { index -> Duration in
            let bytes = 1 + UInt64(min(index, 20)) * 410 + UInt64(max(0, index - 20))
            let message = internetMessage(received: bytes, sent: 1, lastReceived: 0, lastSent: 1)
            var findings = WorkFindings(began: .milliseconds(100 * index), processes: [9], cpu: .zero)
            findings.ports = [80]
            let socket = try internetSocket(message)
            findings.sockets[socket.inode] = .internet(socket, .tcp)
            return baseline.judge(findings, isFirst: index == 0, Self.limits).newestRequest
        }
        #expect(ages[9] == .milliseconds(900) && ages[10] == .zero && ages[19] == .milliseconds(900))
        #expect(ages[20] == .zero && ages[30] == .seconds(1) && ages[40] == .seconds(2))
    }

    @Test("what arrives between the last look and the freeze is new, however old its request is")
    func beforeFreeze() throws {
        var baseline = WorkBaseline()
        func message(_ received: UInt64) -> [UInt8] {
            internetMessage(received: received, sent: 1, lastReceived: 5, lastSent: 9)
        }
        _ = baseline.judge(try makeFindings([message(1)]), isFirst: true, Self.limits)
        _ = baseline.judge(try makeFindings([message(2)], at: 90), isFirst: false, Self.limits)
        let old = baseline.judgeFrozen(try makeFindings([message(2)], at: 91))
        #expect(old.requests == 1 && old.newestRequest > .seconds(90))
        let fresh = baseline.judgeFrozen(try makeFindings([message(3)], at: 92))
        #expect(fresh.requests == 1 && fresh.newestRequest == .milliseconds(5))
    }

    @Test("what a frozen app has not read is no request: its threshold holds for that (L50)")
    func unreadWhileFrozen() throws {
        func requests(unread: UInt32) throws -> Int {
            var baseline = WorkBaseline()
            func message(_ received: UInt64, unread: UInt32 = 0) -> [UInt8] {
                internetMessage(readQueue: unread, received: received, sent: 1, lastReceived: 5, lastSent: 9)
            }
            _ = baseline.judge(try makeFindings([message(1)]), isFirst: true, Self.limits)
            let work = baseline.judgeFrozen(try makeFindings([message(4, unread: unread)], at: 1))
            #expect(work.unread == UInt64(unread))
            // After the thaw it is one.
            let awake = baseline.judge(try makeFindings([message(4)], at: 2), isFirst: false, Self.limits)
            #expect(awake.requests == 1)
            return work.requests
        }
        #expect(try requests(unread: 3) == 0)
        #expect(try requests(unread: 2) == 1)
        #expect(try requests(unread: 0) == 1)
    }

    @Test("a connection that the app made itself is no request, and no client")
    func outgoing() throws {
        var baseline = WorkBaseline()
        let message = internetMessage(port: 40_000, received: 5, lastReceived: 1, lastSent: 5)
        let work = baseline.judge(try makeFindings([message]), isFirst: true, Self.limits)
        #expect(work.requests == 0 && work.connections == 0)
    }

    @Test("a connection stays an accepted one when its listener is closed")
    func closedListener() throws {
        var baseline = WorkBaseline()
        let listener = internetMessage(state: 10, port: 81, inode: 1)
        let connection = internetMessage(port: 81, inode: 2, received: 5, lastReceived: 1, lastSent: 5)
        // The last one is made on a port on which the app listened before.
        let later = internetMessage(port: 81, inode: 3, received: 5, lastReceived: 1, lastSent: 5)
        for sockets in [[listener, connection], [connection], [later]] {
            let work = baseline.judge(try makeFindings(sockets, ports: []), isFirst: false, Self.limits)
            #expect(work.requests == 1)
        }
    }

    @Test("a connection whose counters were not read is a client, and is compared with what was known before")
    func uncounted() throws {
        func message(_ received: UInt64) -> [UInt8] {
            internetMessage(received: received, sent: 5, lastReceived: 7, lastSent: 7)
        }
        // Only the first attribute.
        let without = Array(message(9)[..<80])
        var new = WorkBaseline()
        let client = new.judge(try makeFindings([without]), isFirst: true, Self.limits)
        #expect(client.connections == 1 && client.requests == 0)
        let outgoing = new.judge(try makeFindings([without], ports: [81]), isFirst: false, Self.limits)
        #expect(outgoing.connections == 0)
        var baseline = WorkBaseline()
        let requests = try [message(5), without, message(9), without, message(9)].map { bytes in
            let work = baseline.judge(try makeFindings([bytes]), isFirst: false, Self.limits)
            #expect(work.connections == 1)
            return work.requests
        }
        #expect(requests == [0, 0, 1, 0, 1])
    }

    @Test("input and output of all sockets count")
    func queues() throws {
        var baseline = WorkBaseline()
        let work = baseline.judge(
            try makeFindings([
                internetMessage(inode: 1, readQueue: 3, writeQueue: 4), internetMessage(inode: 2, writeQueue: 5),
                internetMessage(state: 10, inode: 3, readQueue: 1, writeQueue: 128),
            ]), isFirst: true, Self.limits)
        #expect(work.unread == 4 && work.unsent == 9)
    }

    @Test("a process that began or ended is reported by the next look, but not by a first one")
    func processes() throws {
        var baseline = WorkBaseline()
        func look(_ processes: [Int32], isFirst: Bool = false) throws -> Bool {
            baseline.judge(try makeFindings(processes: processes), isFirst: isFirst, Self.limits).hasNewProcesses
        }
        #expect(try !look([9], isFirst: true))
        #expect(try !look([9]))
        #expect(try look([9, 10]))
        #expect(try !look([10, 9]))
        #expect(try look([10]))
        #expect(try !look([11], isFirst: true))
    }

    @Test("after a thaw only the processor time and the processes are taken, and the next look is compared with them")
    func resumed() throws {
        func look(
            received: UInt64, sent: UInt64 = 5, cpu: Duration = .seconds(5), processes: [Int32] = [10]
        ) throws -> WorkMeasurement {
            var baseline = WorkBaseline()
            func message(_ received: UInt64, _ sent: UInt64) -> [UInt8] {
                internetMessage(received: received, sent: sent, lastReceived: 7, lastSent: 7)
            }
            _ = baseline.judge(try makeFindings([message(5, 5)]), isFirst: true, Self.limits)
            _ = baseline.judgeFrozen(try makeFindings([message(5, 5)], at: 1))
            let brief = baseline.resume(Enclosure.Members(processes: [10], cpu: .seconds(5)), at: .seconds(90))
            #expect(brief.isBrief && brief.cpu == .seconds(5) && !brief.hasNewProcesses && brief.requests == 0)
            return baseline.judge(
                try makeFindings([message(received, sent)], at: 91, cpu: cpu, processes: processes), isFirst: false,
                Self.limits)
        }
        #expect(try look(received: 5).requests == 0)
        #expect(try look(received: 9).requests == 1)
        #expect(try look(received: 9, sent: 9).requests == 0)
        #expect(try !look(received: 5).hasNewProcesses)
        #expect(try look(received: 5, processes: [10, 11]).hasNewProcesses)
        #expect(try !look(received: 5).isBrief)
    }

    @Test("the time in which the app was frozen does not count for the progress of a request")
    func resumedProgress() throws {
        for bytes in [UInt64(1023), 1024] {
            var baseline = WorkBaseline()
            func look(_ received: UInt64, at second: Int) throws -> WorkFindings {
                try makeFindings(
                    [internetMessage(received: received, sent: 0, lastReceived: 0, lastSent: 1)], at: second)
            }
            _ = baseline.judge(try look(5, at: 0), isFirst: true, Self.limits)
            _ = baseline.resume(Enclosure.Members(processes: [9], cpu: .zero), at: .seconds(50))
            let work = baseline.judge(try look(5 + bytes, at: 51), isFirst: false, Self.limits)
            #expect(work.requests == 1 && work.newestRequest == .seconds(bytes == 1024 ? 0 : 51), "\(bytes)")
            // Time passes as before then.
            let next = baseline.judge(try look(5 + bytes + 1024, at: 60), isFirst: false, Self.limits)
            #expect(next.newestRequest == .seconds(bytes == 1024 ? 9 : 60), "\(bytes)")
        }
    }

    @Test("what peers had not got, and the shortest wait, are those of the look before the thaw")
    func keptAfterFreeze() throws {
        var baseline = WorkBaseline()
        var findings = try makeFindings([internetMessage(writeQueue: 7)])
        findings.threads = [ParkedThread(thread: 9, call: 35, stackPointer: 1, timeout: .relative(.seconds(30)))]
        let work = baseline.judge(findings, isFirst: true, Self.limits)
        let brief = baseline.resume(Enclosure.Members(processes: [9], cpu: .zero), at: .seconds(50))
        #expect(work.unsent == 7 && brief.unsent == 7 && brief.shortestWait == .seconds(30))
    }

    @Test("a wait is learned only by looks without work")
    func habits() throws {
        let wait = ParkedThread(thread: 9, call: 35, stackPointer: 1, timeout: .relative(.seconds(30)))
        func unusual(cpu: [Duration], _ sockets: [[UInt8]] = []) throws -> [Bool] {
            var baseline = WorkBaseline()
            return try cpu.enumerated().map { index, used in
                var findings = try makeFindings(sockets, at: 10 * index, cpu: used)
                findings.threads = [wait]
                return baseline.judge(findings, isFirst: index == 0, Self.limits).hasUnusualWait
            }
        }
        #expect(try unusual(cpu: [.zero, .zero, .zero]) == [true, false, false])
        // 1 % of a processor in 10 s is 100 ms.
        let used: [Duration] = [.zero, .milliseconds(99), .milliseconds(198)]
        #expect(try unusual(cpu: used) == [true, false, false])
        #expect(try unusual(cpu: [.zero, .milliseconds(100), .milliseconds(200)]) == [true, true, true])
        let idleClient = internetMessage(received: 5, sent: 5, lastReceived: 9, lastSent: 3)
        let looks = try unusual(cpu: Array(repeating: .zero, count: 8), [idleClient])
        #expect(looks == [true, true, true, true, true, true, true, false])
        #expect(try unusual(cpu: [.zero, .zero, .zero], [internetMessage(readQueue: 1)]) == [true, true, true])
    }

    @Test("in another network namespace a connection makes the look incomplete")
    func listed() throws {
        var findings = try makeFindings()
        let line = "1: 0100007F:0050 0100007F:A000 01 0000000A:00000003 00:0 0 0 0 12"
        let socket = try #require(ListedSocket(parsing: Array(line.utf8)[...]))
        findings.sockets[12] = .listed(socket, .tcp)
        var baseline = WorkBaseline()
        let work = baseline.judge(findings, isFirst: true, Self.limits)
        #expect(work.isIncomplete && work.connections == 1 && work.unread == 3 && work.unsent == 10)
        findings.ports = []
        var other = WorkBaseline()
        let without = other.judge(findings, isFirst: true, Self.limits)
        #expect(!without.isIncomplete)
    }

    @Test("the counters of no more than 4,096 sockets are kept")
    func bounded() throws {
        var baseline = WorkBaseline()
        let messages = (1...(WorkBaseline.mostSockets + 100)).map { internetMessage(inode: UInt32($0), received: 1) }
        let work = baseline.judge(try makeFindings(messages), isFirst: true, Self.limits)
        #expect(work.requests == messages.count)
        #expect(baseline.sockets.count == WorkBaseline.mostSockets)
    }
}
