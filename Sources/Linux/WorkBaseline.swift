/// What the looks at one run have found so far, with which the next one is compared.
package struct WorkBaseline {
    /// The most sockets whose counters are kept. Those of others are judged by their ages alone.
    package static let mostSockets = 4096
    /// The most ports that are kept.
    static let mostPorts = 1024
    /// A socket that was in no table is searched for again at each look of this number.
    static let missingInterval: UInt64 = 4

    /// A connection at the last look.
    struct Connection: Equatable {
        var received: UInt64
        var sent: UInt64
        var isAccepted: Bool
        var isInFlight: Bool
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
        let hasTraffic = judgeSockets(findings, &work)
        let isQuiet =
            !hasTraffic && !work.isRunnable && !work.hasNewProcesses && work.unread == 0 && work.unsent == 0
            && work.requests == 0 && isIdle(findings, limits)
        let threads = waits.resolve(findings.threads)
        waits.learn(
            threads, isQuiet: isQuiet, hasClients: work.connections > 0, at: findings.began, after: limits.requestTime)
        work.hasUnusualWait = threads.contains { waits.isUnusual($0) }
        work.shortestWait = threads.lazy.compactMap(\.timeout.duration).min()
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
        _ = judgeSockets(findings, &work)
        last = (findings.began, findings.cpu)
        return work
    }

    /// Whether the app has used little of a processor since the last look.
    private func isIdle(_ findings: WorkFindings, _ limits: IdleLimits) -> Bool {
        guard let last else { return true }
        return (findings.cpu - last.cpu) * 1000 < (findings.began - last.at) * max(1, limits.processorShare)
    }

    /// - Returns: whether a connection is new, or bytes went over one.
    private mutating func judgeSockets(_ findings: WorkFindings, _ work: inout WorkMeasurement) -> Bool {
        for found in findings.sockets.values where ports.count < Self.mostPorts {
            if case .internet(let socket, .tcp) = found, socket.isListening { ports.insert(socket.localPort) }
            if case .listed(let socket, .tcp) = found, socket.state == InternetSocket.State.listening {
                ports.insert(socket.localPort)
            }
        }
        let listening = ports.union(findings.ports)
        var known: [UInt64: Known] = [:]
        var hasTraffic = false
        var newest: UInt32?
        var busy: [FoundSocket] = []
        for (inode, found) in findings.sockets {
            if found.unread > 0 { busy.append(found) }
            work.unread &+= found.unread
            work.unsent &+= found.unsent
            var entry = Known(kind: found.kind)
            if case .internet(let socket, .tcp) = found {
                let before = sockets[inode]?.connection
                entry.identity = KnownSocket(family: socket.family, identity: socket.identity)
                entry.connection = Connection(socket, before: before, listening: listening)
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
                    if connection.isInFlight, let age = socket.info?.lastReceived {
                        work.requests += 1
                        if found.unread == 0 { busy.append(found) }
                        newest = min(newest ?? .max, age)
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
        // What could not be examined may come from outside.
        work.isOwn = !busy.isEmpty && !work.isIncomplete && findings.areOwn(busy)
        work.newestRequest = newest.map { .milliseconds(Int64($0)) } ?? .zero
        return hasTraffic
    }
}

extension WorkBaseline.Connection {
    /// - Returns: `nil` if the socket is not connected, or its kernel does not count.
    fileprivate init?(_ socket: InternetSocket, before: Self?, listening: Set<UInt16>) {
        guard socket.isConnected, let info = socket.info else { return nil }
        received = info.received
        sent = info.sent
        isAccepted = before?.isAccepted == true || listening.contains(socket.localPort)
        // In the ages, the same tick says nothing.
        let isLastReceived = info.lastReceived < info.lastSent
        guard let before else {
            isInFlight = info.received > 0 && (info.sent == 0 || isLastReceived)
            return
        }
        switch (info.received != before.received, info.sent != before.sent) {
        case (false, false): isInFlight = before.isInFlight
        case (true, false): isInFlight = true
        case (false, true): isInFlight = false
        case (true, true): isInFlight = isLastReceived
        }
    }
}
