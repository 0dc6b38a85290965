/// What the looks at one run have found so far, with which the next one is compared.
package struct WorkBaseline {
    /// The most sockets whose counters are kept. Those of others are judged by their ages alone.
    package static let mostSockets = 4096
    /// The most ports that are kept.
    static let mostPorts = 1024
    /// A socket that was in no table is searched for again at each look of this number.
    static let missingInterval: UInt64 = 4
    /// The time of a request begins again as long as so many bytes of it arrive in a second, on average since a look at
    /// least `progressTime` before. An upload over a slow mobile network is faster. A client that sends a byte a second is
    /// slower, and so is one that sends a header line every few seconds.
    static let progressRate: UInt64 = 1024
    static let progressTime = Duration.seconds(1)

    /// A connection at the last look.
    struct Connection: Equatable {
        var received: UInt64
        var sent: UInt64
        var isAccepted: Bool
        /// The request that waits for an answer; `nil`: none does.
        var request: Request?
    }
    /// A request without its answer.
    struct Request: Equatable {
        /// When its first bytes arrived, or the last bytes before the last look that found progress (CLOCK_MONOTONIC).
        var since: Duration
        /// Progress is counted from here: the time of a look, and the bytes that the connection had received by then.
        var countedAt: Duration
        var counted: UInt64
    }
    /// What the sockets of one look are compared with.
    struct Comparison {
        /// When the look began (CLOCK_MONOTONIC).
        let began: Duration
        /// Ports on which connections are accepted.
        let listening: ListeningPorts
        /// The first look of a stay in the background: the app may have been frozen since the one before, so the time between
        /// them does not count.
        let isFirst: Bool
    }
    struct Known {
        var kind: SocketKind
        /// TCP only: with it the kernel finds the socket.
        var identity: KnownSocket?
        var connection: Connection?
        /// It was found in a table of /proc, so no request finds it.
        var isListed = false
    }

    private(set) var sockets: [UInt64: Known] = [:]
    /// How many looks there were.
    private(set) var looks: UInt64 = 0
    /// The ports on which the app listens or has listened: the process that accepts may not be the one that listens.
    private var ports: Set<UInt16> = []
    private var processes: Set<Int32> = []
    private var last: (at: Duration, cpu: Duration)?
    private var lastUnsent: UInt64 = 0
    private var lastWait: Duration?
    /// The run was thawed since its sockets were looked at.
    private var isResumed = false
    private var waits = WaitHabits()
    /// When the last look began (CLOCK_MONOTONIC).
    var lastLook: Duration? { last?.at }

    package init() {}

    /// Compares a look with the ones before, and becomes the baseline of the next one.
    /// - Parameter isFirst: the first look in this stay in the background: processes that began before are not new.
    package mutating func judge(_ findings: WorkFindings, isFirst: Bool, _ limits: IdleLimits) -> WorkMeasurement {
        var work = WorkMeasurement(cpu: findings.cpu)
        work.isRunnable = findings.isRunnable
        work.isIncomplete = findings.isIncomplete
        work.hasNewProcesses = !isFirst && looks > 0 && processes != findings.processes
        let hasTraffic = judgeSockets(findings, isFirst: isFirst || isResumed, &work)
        isResumed = false
        let isQuiet =
            !hasTraffic && !work.isRunnable && !work.hasNewProcesses && work.unread == 0 && work.unsent == 0
            && work.requests == 0 && isIdle(findings, limits)
        let threads = waits.resolve(findings.threads)
        waits.learn(
            threads, isQuiet: isQuiet, hasClients: work.connections > 0, at: findings.began, after: limits.requestTime)
        work.hasUnusualWait = threads.contains { waits.isUnusual($0) }
        work.shortestWait = threads.lazy.compactMap(\.timeout.duration).min()
        lastWait = work.shortestWait
        processes = findings.processes
        last = (findings.began, findings.cpu)
        looks += 1
        return work
    }

    /// Compares a look at a frozen app: only what its sockets have counted has changed. What is known about its threads and
    /// processes stays for the look after the thaw.
    package mutating func judgeFrozen(_ findings: WorkFindings) -> WorkMeasurement {
        var work = WorkMeasurement(cpu: findings.cpu)
        work.isIncomplete = findings.isIncomplete
        _ = judgeSockets(findings, isFrozen: true, &work)
        last = (findings.began, findings.cpu)
        return work
    }

    /// Replaces the first look after a thaw: while the app was frozen, only its sockets could change, and what they have counted before
    /// is known. So the client that has woken the app does not wait for a look at all its descriptors and threads.
    /// - Parameter now: the time (CLOCK_MONOTONIC).
    package mutating func resume(_ members: Enclosure.Members, at now: Duration) -> WorkMeasurement {
        processes = Set(members.processes)
        last = (now, members.cpu)
        isResumed = true
        var work = WorkMeasurement(cpu: members.cpu)
        work.isBrief = true
        (work.unsent, work.shortestWait) = (lastUnsent, lastWait)
        return work
    }

    /// Whether the app has used little of a processor since the last look.
    private func isIdle(_ findings: WorkFindings, _ limits: IdleLimits) -> Bool {
        guard let last else { return true }
        return (findings.cpu - last.cpu) * 1000 < (findings.began - last.at) * max(1, limits.processorShare)
    }

    /// - Returns: whether a connection is new, or bytes went over one.
    private mutating func judgeSockets(
        _ findings: WorkFindings, isFirst: Bool = false, isFrozen: Bool = false, _ work: inout WorkMeasurement
    ) -> Bool {
        learnPorts(findings)
        let listening = ListeningPorts(own: ports, others: findings.ports)
        let comparison = Comparison(began: findings.began, listening: listening, isFirst: isFirst)
        var known: [UInt64: Known] = [:]
        var hasTraffic = false
        var newest: Duration?
        var busy: [FoundSocket] = []
        for (inode, found) in findings.sockets {
            if found.unread > 0 { busy.append(found) }
            work.unread &+= found.unread
            work.unsent &+= found.unsent
            var entry = Known(kind: found.kind)
            if case .internet(let socket, .tcp) = found {
                let before = sockets[inode]?.connection
                entry.identity = KnownSocket(family: socket.family, identity: socket.identity)
                entry.connection = Connection(socket, before: before, comparison)
                if entry.connection == nil, socket.isConnected {
                    // Its counters were not read. What was known is compared with those that the next look reads.
                    entry.connection = before
                    let isClient = before == nil && listening.contains(socket.localPort)
                    if isClient, socket.state == InternetSocket.State.established { work.connections += 1 }
                }
                if let connection = entry.connection, connection.isAccepted {
                    hasTraffic =
                        hasTraffic || connection.received != before?.received || connection.sent != before?.sent
                    if socket.state == InternetSocket.State.established { work.connections += 1 }
                    let new = connection.received &- (before?.received ?? 0)
                    let isFresh = isFrozen && new > 0
                    // A frozen app is woken by what it has not read, if that reaches the threshold; this look is for what it has read.
                    let isUnread = isFresh && found.unread >= new
                    if let request = connection.request, let info = socket.info, !isUnread {
                        work.requests += 1
                        if found.unread == 0 { busy.append(found) }
                        // It has come between the last look and the freeze, however old the request is.
                        let age = isFresh ? info.receivedAgo : findings.began - request.since
                        newest = min(newest ?? age, age)
                    }
                }
            }
            if case .listed = found { entry.isListed = true }
            if case .listed(_, .tcp) = found, let before = sockets[inode] {
                (entry.identity, entry.connection) = (before.identity, before.connection)
            }
            if case .listed(let socket, .tcp) = found, socket.state == InternetSocket.State.established,
                listening.contains(socket.localPort)
            {
                work.connections += 1
                // Its table does not say whether a request waits.
                work.isIncomplete = true
            }
            if known.count < Self.mostSockets { known[inode] = entry }
        }
        sockets = known
        lastUnsent = work.unsent
        // What could not be examined may come from outside.
        work.isOwn = !busy.isEmpty && !work.isIncomplete && findings.areOwn(busy)
        work.newestRequest = newest ?? .zero
        return hasTraffic
    }

    private mutating func learnPorts(_ findings: WorkFindings) {
        for found in findings.sockets.values where ports.count < Self.mostPorts {
            if case .internet(let socket, .tcp) = found, socket.isListening { ports.insert(socket.localPort) }
            if case .listed(let socket, .tcp) = found, socket.state == InternetSocket.State.listening {
                ports.insert(socket.localPort)
            }
        }
    }
}

/// The ports on which TCP sockets listen: those of the app, and those of the whole namespace, without a copy for each look.
struct ListeningPorts {
    let own: Set<UInt16>
    let others: Set<UInt16>

    func contains(_ port: UInt16) -> Bool { own.contains(port) || others.contains(port) }
}

extension WorkBaseline.Connection {
    /// - Returns: `nil` if the socket is not connected, or its kernel does not count.
    fileprivate init?(_ socket: InternetSocket, before: Self?, _ look: WorkBaseline.Comparison) {
        guard socket.isConnected, let info = socket.info else { return nil }
        received = info.received
        sent = info.sent
        isAccepted = before?.isAccepted == true || look.listening.contains(socket.localPort)
        // In the ages, the same tick says nothing.
        let isLastReceived = info.lastReceived < info.lastSent
        let new = WorkBaseline.Request(
            since: look.began - info.receivedAgo, countedAt: look.began, counted: info.received)
        guard let before else {
            request = info.received > 0 && (info.sent == 0 || isLastReceived) ? new : nil
            return
        }
        switch (info.received != before.received, info.sent != before.sent) {
        case (let isReceived, false):
            request = before.request ?? (isReceived ? new : nil)
            request?.count(info, look)
        case (false, true): request = nil
        case (true, true): request = isLastReceived ? new : nil
        }
    }
}

extension WorkBaseline.Request {
    /// Whatever arrives is part of the same request until the app answers. Its time begins again only if enough bytes
    /// arrive: otherwise a client that sends one byte a second would keep the app awake without end.
    fileprivate mutating func count(_ info: TCPInfo, _ look: WorkBaseline.Comparison) {
        let passed = look.began - countedAt
        guard look.isFirst || passed >= WorkBaseline.progressTime else { return }
        let time = look.isFirst ? WorkBaseline.progressTime : passed
        if info.received &- counted >= time.wholeBytes(perSecond: WorkBaseline.progressRate) {
            since = look.began - info.receivedAgo
        }
        (countedAt, counted) = (look.began, info.received)
    }
}

extension TCPInfo {
    /// How long ago the last data arrived.
    fileprivate var receivedAgo: Duration { .milliseconds(Int64(lastReceived)) }
}

extension Duration {
    /// How many bytes arrive in this time.
    fileprivate func wholeBytes(perSecond rate: UInt64) -> UInt64 {
        let milliseconds = components.seconds * 1000 + components.attoseconds / 1_000_000_000_000_000
        return UInt64(max(0, milliseconds)) * rate / 1000
    }
}
