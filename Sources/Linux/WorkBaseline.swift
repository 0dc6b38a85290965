import Idleness

/// What the looks at one run have found so far, with which the next one is compared.
package struct WorkBaseline {
    /// The most sockets that are kept.
    package static let mostSockets = 4096
    /// The most ports that are kept.
    static let mostPorts = 1024
    /// A socket that was in no table is searched for again at each look of this number.
    static let missingInterval: UInt64 = 4
    /// Processes with ticks that have written less to their pipes and files were not at work for that.
    static let leastWritten: UInt64 = 4096

    struct Known {
        var kind: SocketKind
        /// TCP only: with it the kernel finds the socket.
        var identity: KnownSocket?
        /// TCP only: it is connected.
        var isConnection = false
        /// TCP only: the app has made the connection.
        var isOutgoing = false
        /// It was found in a table of /proc, so no request finds it.
        var isListed = false
        /// AF_UNIX: when it was opened, or when input was last seen there. The kernel counts no bytes.
        var active: Duration?
    }

    private(set) var sockets: [UInt64: Known] = [:]
    /// How many looks there were.
    private(set) var looks: UInt64 = 0
    /// A thread waits in ticks, or did or may. What else the program does may hide behind them, so its traffic counts.
    private(set) var countsTraffic = false
    /// The ports on which the app listens or has listened: the process that accepts may not be the one that listens.
    private var ports: Set<UInt16> = []
    /// At the last look, or when its stay in the background began; `nil`: there is nothing to compare with.
    private var processes: Set<Int32>?
    private var lastUnsent: UInt64 = 0
    private(set) var waits = WaitHistory()
    private var pipes: Set<UInt64> = []
    private var transfers: Transfers?
    /// How much read(2) had returned at the last look; `nil`: that is not known.
    private var received: UInt64?
    /// When something was last read from pipes of others, or written.
    private var transferred: Duration?
    /// When a connection that the app had made was last found to be gone.
    private var lostConnection: Duration?
    /// When the last look began (CLOCK_MONOTONIC).
    private(set) var lastLook: Duration?
    /// Timers whose rest the kernel keeps in the app's memory while it is frozen.
    package private(set) var keptRests: [KeptRest] = []

    /// - Parameter keptRests: of a frozen app, as the previous daemon has found them.
    package init(keptRests: [KeptRest] = []) { self.keptRests = keptRests }

    /// Compares a look with the ones before, and becomes the baseline of the next one.
    /// - Parameter idleTime: `IdleSec=`.
    package mutating func judge(_ findings: WorkFindings, idleTime: Duration) -> WorkMeasurement {
        var work = WorkMeasurement(cpu: findings.cpu)
        work.isIncomplete = findings.isIncomplete
        work.hasNewProcesses = processes.map { $0 != findings.processes } ?? false
        let wasCounted = countsTraffic
        work.waits = waits.judge(findings.threads, at: findings.began, idleTime: idleTime)
        work.detail = findings.text(of: work.waits)
        // Ticks come and go, as those of PostgreSQL's background writer. Each first one would find no counters.
        countsTraffic = work.waits.hasShortWait || waits.hasTicks
        judgeSockets(findings, &work)
        if wasCounted { judgeTransfers(findings, &work) } else { transfers = nil }
        // The counters of this look were not asked for.
        if countsTraffic, !wasCounted { work.traffic = .zero }
        processes = findings.processes
        received = findings.transfers.received
        lastLook = findings.began
        looks += 1
        return work
    }

    /// Judges a look at the threads of a frozen app. What is known about its sockets and processes stays for the look after the thaw.
    package mutating func judgeFrozen(_ findings: WorkFindings, idleTime: Duration) -> WorkMeasurement {
        var work = WorkMeasurement(cpu: findings.cpu)
        work.waits = waits.judge(findings.threads, at: findings.began, idleTime: idleTime, isFrozen: true)
        work.detail = findings.text(of: work.waits)
        // A thread that the freeze has stopped at the end of read(2) looks as if it waited there. What it has read would lie until
        // something else arrives.
        if let received, received != findings.transfers.received, work.waits.work == nil { work.waits.work = .running }
        keptRests = waits.timedWaits.filter { $0.wait.keepsRest }.compactMap { thread, wait in
            findings.processOf[thread].map { KeptRest(process: $0, thread: thread, wait: wait) }
        }
        return work
    }

    /// Replaces the first look after a launch or a thaw: while the app was frozen, only its sockets could change. So the client that has
    /// woken the app does not wait for a look at all its descriptors and threads.
    /// - Parameter now: the time (CLOCK_MONOTONIC).
    package mutating func resume(_ members: Enclosure.Members, at now: Duration) -> WorkMeasurement {
        processes = Set(members.processes)
        waits.begin(at: now)
        keptRests = []
        received = nil
        var work = WorkMeasurement(cpu: members.cpu)
        work.isBrief = true
        work.unsent = lastUnsent
        return work
    }

    /// The timer descriptors among the ticks.
    package var timerTicks: Set<TimerTick> {
        Set(
            waits.tickingThreads.filter { $0 < 0 }.map {
                TimerTick(process: Int32(-$0 >> 24), number: Int32(-$0 & 0xff_ffff))
            })
    }

    /// Returns the timers to correct before a thaw, once: after it they are others.
    package mutating func takeKeptRests() -> [KeptRest] {
        defer { keptRests = [] }
        return keptRests
    }

    // MARK: Sockets

    private mutating func judgeSockets(_ findings: WorkFindings, _ work: inout WorkMeasurement) {
        learnPorts(findings)
        let listening = ListeningPorts(own: ports, others: findings.ports)
        let own = findings.ownConnections
        var known: [UInt64: Known] = [:]
        var busy: [FoundSocket] = []
        for (inode, found) in findings.sockets {
            if found.unread > 0 { busy.append(found) }
            work.unread &+= found.unread
            work.unsent &+= found.unsent
            var entry = Known(kind: found.kind)
            entry.active = sockets[inode]?.active
            switch found {
            case .internet(let socket, .tcp):
                entry.identity = KnownSocket(family: socket.family, identity: socket.identity)
                entry.isConnection = socket.isConnected
                // What the app does for itself is shown by its threads.
                guard socket.state == InternetSocket.State.established, own?.isOwn(socket) != true else { break }
                if listening.contains(socket.localPort) { work.connections += 1 } else { entry.isOutgoing = true }
                if let info = socket.info {
                    work.addTraffic(.milliseconds(Int64(min(info.lastSent, info.lastReceived))))
                } else if countsTraffic {
                    work.addTraffic(.zero)
                }
            case .unix(let queue):
                guard !queue.isListening, queue.peer != 0, !queue.isOwn({ findings.sockets[$0] != nil }) else { break }
                if processes != nil, sockets[inode] == nil || queue.unread > 0 { entry.active = findings.began }
                // An answer may come in pieces, which nothing counts.
                if queue.hasName {
                    work.connections += 1
                    work.addTraffic(.zero)
                } else if let active = entry.active {
                    work.addTraffic(findings.began - active)
                }
            case .listed(let socket, let kind):
                entry.isListed = true
                if kind == .tcp, let before = sockets[inode] { entry.identity = before.identity }
                guard kind == .tcp, socket.state == InternetSocket.State.established else { break }
                if listening.contains(socket.localPort) { work.connections += 1 }
                // Its table does not count.
                work.addTraffic(.zero)
            case .internet, .absent: break
            }
            if known.count < Self.mostSockets { known[inode] = entry }
        }
        recordLost(known, findings)
        if let lostConnection { work.addTraffic(findings.began - lostConnection) }
        sockets = known
        lastUnsent = work.unsent
        // What could not be examined may come from outside.
        work.isOwn = !busy.isEmpty && !work.isIncomplete && findings.areOwn(busy)
    }

    /// A client whose server has gone will try again, and what it does until then may look like ticks.
    private mutating func recordLost(_ known: [UInt64: Known], _ findings: WorkFindings) {
        guard !findings.isIncomplete else { return }
        let isLost = sockets.contains { inode, before in before.isOutgoing && known[inode]?.isOutgoing != true }
        if isLost { lostConnection = findings.began }
    }

    private mutating func learnPorts(_ findings: WorkFindings) {
        for found in findings.sockets.values where ports.count < Self.mostPorts {
            if case .internet(let socket, .tcp) = found, socket.isListening { ports.insert(socket.localPort) }
            if case .listed(let socket, .tcp) = found, socket.state == InternetSocket.State.listening {
                ports.insert(socket.localPort)
            }
        }
    }

    // MARK: Pipes

    /// Pipes have no counters, but the processes that read and write have.
    private mutating func judgeTransfers(_ findings: WorkFindings, _ work: inout WorkMeasurement) {
        defer { (transfers, pipes) = (findings.transfers, findings.outsidePipes) }
        if let before = transfers {
            let hasCalled = !findings.outsidePipes.isEmpty && findings.transfers.calls != before.calls
            let hasWritten = written(findings, since: before) >= Self.leastWritten
            if hasCalled || hasWritten || !findings.outsidePipes.isSubset(of: pipes) { transferred = findings.began }
        }
        if let transferred { work.addTraffic(findings.began - transferred) }
    }

    /// What processes with ticks have written, or all until the ticks are learned. The waits of the others are exact: the autovacuum of
    /// PostgreSQL writes each minute, for a timer that thaws it.
    private func written(_ findings: WorkFindings, since before: Transfers) -> UInt64 {
        let ticking = Set(waits.tickingThreads.compactMap { findings.processOf[$0] })
        let counted = findings.transfers.written.filter { ticking.isEmpty || ticking.contains($0.key) }
        return counted.reduce(0) { sum, process in sum &+ process.value &- (before.written[process.key] ?? 0) }
    }
}

extension WorkMeasurement {
    /// The newest counts.
    fileprivate mutating func addTraffic(_ age: Duration) { traffic = min(traffic ?? age, age) }
}

/// The ports on which TCP sockets listen: those of the app, and those of the whole namespace, without a copy for each look.
struct ListeningPorts {
    let own: Set<UInt16>
    let others: Set<UInt16>

    func contains(_ port: UInt16) -> Bool { own.contains(port) || others.contains(port) }
}
