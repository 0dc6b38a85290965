import Glibc
import Posix

/// Finds the sockets of one app in the kernel's tables, in pieces:
///
/// 1. those in a dump that was just made for another app;
/// 2. TCP sockets that an earlier look has found, and a few AF_UNIX sockets: one request each, about 3 µs;
/// 3. the others in a dump: of the sockets of the app's cgroup if there are many, else of all;
/// 4. those in other network namespaces in their tables of /proc.
///
/// The counters of TCP connections are the answers to a `question`, with which the search waits for a helper thread.
final class SocketSearch {
    /// The most TCP sockets without counters that are asked for one by one.
    private static let mostTCP = 256
    private static let mostUnix = 32
    /// The most network namespaces that are searched.
    private static let mostNamespaces = 8

    /// A request for one socket.
    private enum LookUp {
        case tcp(UInt64, KnownSocket)
        /// With its counters.
        case counters(UInt64, KnownSocket)
        case unix(UInt64)

        var inode: UInt64 {
            switch self {
            case .tcp(let inode, _), .counters(let inode, _), .unix(let inode): inode
            }
        }
        var withoutCounters: LookUp {
            switch self {
            case .counters(let inode, let identity): .tcp(inode, identity)
            case .tcp, .unix: self
            }
        }
        var request: [UInt8] {
            switch self {
            case .tcp(_, let identity): DiagnosticRequest.brief(identity)
            case .counters(_, let identity): DiagnosticRequest.exact(identity)
            case .unix(let inode): DiagnosticRequest.unix(inode: inode)
            }
        }
    }
    /// What a question is for.
    private enum Subject {
        case sockets([LookUp])
        case dump(SocketDump)
    }

    /// The most sockets of one question: some 3 ms for the helper thread.
    private static let mostAsked = 1024

    private let known: [UInt64: WorkBaseline.Known]
    /// When the app was looked at before: an older dump would show less than is known.
    private let lastLook: Duration
    /// Searches also for sockets that were in no table at the last look.
    private let isRepeated: Bool
    private let cgroup: UInt64?
    private let tables: SocketTables
    private let proc: ProcFS
    /// A helper thread can be asked.
    private var mayAsk: Bool
    /// Whether connections are counted: only of programs with ticks.
    private let counts: Bool

    private(set) var found: [UInt64: FoundSocket] = [:]
    private(set) var ports: Set<UInt16> = []
    private(set) var isIncomplete = false
    private var kinds: [UInt64: SocketKind] = [:]
    /// When the app's descriptors were listed.
    private var began = Duration.zero
    private var lookUps: ArraySlice<LookUp> = []
    /// Connections whose counters are not known yet.
    private var uncounted: [LookUp] = []
    /// Those whose counters were asked for.
    private var counted: Set<UInt64> = []
    /// What a helper thread is to ask before the search continues.
    private(set) var question: SocketQuestion?
    private var subject: Subject?
    /// What it has received.
    private var answers: DiagnosticAnswers?
    private var socket: DiagnosticSocket?
    /// Those that are to be searched for in dumps.
    private var missing: Set<UInt64> = []
    /// Those that an earlier look has found in a table of /proc. No dump has them.
    private var listed: Set<UInt64> = []
    private var dump: SocketDump?
    private var isFiltered = false
    /// Processes whose tables are to be searched.
    private var texts: [Int32] = []
    private var text: SocketTextSearch?
    private var isDumped = false
    /// One of the app's processes.
    private var process: Int32?
    /// Dumps that failed for another reason than that they are not supported.
    private var failed: Set<SocketKind> = []

    /// - Parameter mayAsk: false: without counters, so with an established connection the search is incomplete.
    init(
        baseline: WorkBaseline, cgroup: UInt64?, tables: SocketTables, mayAsk: Bool,
        proc: ProcFS
    ) {
        self.mayAsk = mayAsk
        counts = baseline.countsTraffic
        known = baseline.sockets
        lastLook = baseline.lastLook ?? .zero
        isRepeated = baseline.looks % WorkBaseline.missingInterval == 0
        self.cgroup = cgroup
        self.tables = tables
        self.proc = proc
    }

    /// - Parameters:
    ///   - kinds: the app's sockets.
    ///   - namespaces: a process in each other network namespace.
    ///   - process: one of the app's processes, in the daemon's namespace if there are no others.
    func begin(_ kinds: [UInt64: SocketKind], namespaces: [String: Int32], process: Int32?, at now: Duration) {
        self.kinds = kinds
        began = now
        texts = namespaces.values.sorted()
        if texts.count > Self.mostNamespaces {
            texts = Array(texts.prefix(Self.mostNamespaces))
            isIncomplete = true
        }
        self.process = process
        if !tables.unsupported.isEmpty { searchOwnTexts() }
        if hasNoDiagnostics, !kinds.isEmpty { loseDiagnostics() }
        var askedUnix = kinds.values.count { $0 == .unix } <= Self.mostUnix
        askedUnix = askedUnix && !tables.unsupported.contains(.unix) && !hasNoDiagnostics
        var asked: [LookUp] = []
        var askedTCP = 0
        for (inode, kind) in kinds {
            let entry = known[inode]
            if let socket = inTable(inode, kind, at: now) {
                take(socket, inode)
            } else if kind == .unix, askedUnix {
                asked.append(.unix(inode))
            } else if kind == .tcp, counts, mayAsk, let identity = entry?.identity, entry?.isConnection ?? false {
                uncounted.append(.counters(inode, identity))
            } else if kind == .tcp, !hasNoDiagnostics, let identity = entry?.identity, askedTCP < Self.mostTCP {
                asked.append(.tcp(inode, identity))
                askedTCP += 1
            } else if known[inode]?.isListed == true, !texts.isEmpty {
                listed.insert(inode)
            } else if let entry = known[inode], entry.identity == nil, !entry.isListed,
                kind == .tcp || kind == .unknown, !isRepeated
            {
                found[inode] = .absent(kind)
            } else {
                missing.insert(inode)
            }
        }
        lookUps = asked[...]
    }

    /// Does the next piece.
    /// - Returns: whether there is more.
    func advance(at now: Duration, limit: Int) throws(SystemError) -> Bool {
        if question != nil { return true }
        if let answers, let subject {
            read(answers, subject)
        } else if !lookUps.isEmpty, !tables.isSerialized {
            lookUp(limit)
        } else if !lookUps.isEmpty || !uncounted.isEmpty {
            askForSockets()
        } else if !isDumped {
            if !advanceDumps(at: now) {
                isDumped = true
                missing.formUnion(listed)
            }
        } else if let text {
            if try !text.advance() { take(text) }
        } else if !missing.isEmpty, let pid = texts.popLast() {
            text = SocketTextSearch(
                missing, process: pid, kinds: Set(missing.map { kinds[$0] ?? .unknown }), proc: proc)
        } else {
            for inode in missing { found[inode] = .absent(kinds[inode] ?? .unknown) }
            missing = []
            addPorts(tables.ports)
            return false
        }
        return true
    }

    // MARK: One by one

    private func lookUp(_ limit: Int) {
        for item in lookUps.prefix(limit) {
            do throws(SystemError) {
                try lookUp(item)
            } catch {
                // Without this way a dump finds them.
                missing.formUnion(lookUps.map(\.inode))
                lookUps = []
                socket = nil
                return
            }
        }
        lookUps = lookUps.dropFirst(limit)
        if lookUps.isEmpty { socket = nil }
    }

    private func lookUp(_ item: LookUp) throws(SystemError) {
        let socket: DiagnosticSocket
        if let open = self.socket { socket = open } else { socket = try DiagnosticSocket() }
        self.socket = socket
        if let bytes = try socket.one(item.request) { take(bytes) }
        settle(item)
    }

    /// Takes the answer to a request for one socket. Another socket has these addresses if several listen on one port.
    private func take(_ bytes: ArraySlice<UInt8>) {
        // AF_UNIX
        if bytes.first == 1 {
            if let queue = UnixQueue(parsing: bytes), kinds[queue.inode] != nil { found[queue.inode] = .unix(queue) }
        } else if let socket = InternetSocket(parsing: bytes), kinds[socket.inode] != nil {
            take(.internet(socket, .tcp), socket.inode)
        }
    }

    private func take(_ socket: FoundSocket, _ inode: UInt64) {
        found[inode] = socket
        // A kernel without these counters does not answer with them.
        guard counts, let identity = socket.uncounted, !counted.contains(inode) else { return }
        if mayAsk { uncounted.append(.counters(inode, identity)) } else { isIncomplete = true }
    }

    /// The kernel has answered the request for a socket.
    private func settle(_ item: LookUp) {
        guard found[item.inode] == nil else { return }
        switch item {
        case .tcp, .counters: missing.insert(item.inode)
        // Of another network namespace.
        case .unix: found[item.inode] = .absent(.unix)
        }
    }

    // MARK: Questions

    /// Without a helper thread, a kernel that serializes requests is asked nothing.
    private var hasNoDiagnostics: Bool { !mayAsk && tables.isSerialized }

    private func loseDiagnostics() {
        isIncomplete = true
        searchOwnTexts()
    }

    private func askForSockets() {
        // There are some only if the kernel serializes requests.
        uncounted += lookUps
        lookUps = []
        let asked = Array(uncounted.prefix(Self.mostAsked))
        uncounted.removeFirst(asked.count)
        for case .counters(let inode, _) in asked { counted.insert(inode) }
        ask(asked.flatMap(\.request), .sockets(asked))
    }

    private func ask(_ requests: [UInt8], _ subject: Subject) {
        self.subject = subject
        question = try? SocketQuestion(requests)
        if question == nil { giveUp() }
    }

    /// Continues with the answers to `question`.
    /// - Parameter bytes: their size.
    func answered(_ bytes: UInt64) {
        answers = question?.answers(bytes)
        question = nil
    }

    /// Continues without answers, and without further questions.
    func giveUp() {
        var unanswered = uncounted
        if case .sockets(let asked)? = subject { unanswered += asked }
        (question, subject, answers, uncounted) = (nil, nil, nil, [])
        mayAsk = false
        isIncomplete = true
        // The queues of the others are known already.
        unanswered.removeAll { found[$0.inode] != nil }
        if hasNoDiagnostics {
            missing.formUnion(unanswered.map(\.inode))
            loseDiagnostics()
        } else {
            lookUps += unanswered.prefix(Self.mostTCP).map(\.withoutCounters)
            missing.formUnion(unanswered.dropFirst(Self.mostTCP).map(\.inode))
        }
    }

    /// Reads the next piece of the answers.
    private func read(_ answers: DiagnosticAnswers, _ subject: Subject) {
        switch subject {
        case .sockets(let asked):
            // What cannot be read was not answered.
            let messages = (try? answers.next()) ?? []
            for case .socket(let bytes) in messages { take(bytes) }
            guard messages.isEmpty else { return }
            endQuestion()
            for item in asked { settle(item) }
        case .dump(let dump):
            do throws(SystemError) {
                if try dump.advance(answers) { return }
                endQuestion()
                finish(dump)
            } catch {
                endQuestion()
                fail(dump, error)
            }
        }
    }

    private func endQuestion() { (answers, subject) = (nil, nil) }

    // MARK: Dumps

    /// - Returns: whether there is more.
    private func advanceDumps(at now: Duration) -> Bool {
        if let current = dump {
            do throws(SystemError) {
                if try current.advance() { return true }
                finish(current)
            } catch {
                dump = nil
                fail(current, error)
            }
            return true
        }
        guard let kind = [SocketKind.tcp, .udp, .unix].first(where: { isMissing($0) && !isDone($0) }) else {
            return false
        }
        let mayFilter = cgroup != nil && kind == .tcp && !isFiltered && !tables.cannotFilter && tables.isLarge(kind)
        if mayFilter { isFiltered = true }
        let made = SocketDump(kind, cgroup: mayFilter ? cgroup : nil, at: now)
        if tables.isSerialized { ask(made.requests.flatMap { $0 }, .dump(made)) } else { dump = made }
        return true
    }

    private func fail(_ dump: SocketDump, _ error: SystemError) {
        if dump.cgroup != nil {
            tables.cannotFilter = true
        } else if [ENOENT, EOPNOTSUPP, EPROTONOSUPPORT, EINVAL].contains(error.errno) {
            // The kernel cannot list them, or a module is missing.
            tables.setUnsupported(dump.kind)
            searchOwnTexts()
        } else {
            failed.insert(dump.kind)
            isIncomplete = true
        }
    }

    /// Searches the tables of the daemon's own network namespace too.
    private func searchOwnTexts() {
        if let process, !texts.contains(process) { texts.append(process) }
    }

    private func isMissing(_ kind: SocketKind) -> Bool {
        missing.contains { kinds[$0] == kind || kinds[$0] == .unknown }
    }

    /// Whether a dump that began after the app's descriptors were listed has not found what is missing.
    private func isDone(_ kind: SocketKind) -> Bool {
        if hasNoDiagnostics || tables.unsupported.contains(kind) || failed.contains(kind) { return true }
        guard let table = tables.table(kind, since: began) else { return false }
        take(table, kind)
        return true
    }

    private func finish(_ finished: SocketDump) {
        dump = nil
        take(finished.table, finished.kind)
        if finished.cgroup == nil { tables.insert(finished.table, finished.kind) }
        if finished.table.isCut, isMissing(finished.kind) { isIncomplete = true }
    }

    private func inTable(_ inode: UInt64, _ kind: SocketKind, at now: Duration) -> FoundSocket? {
        let since = max(lastLook, now - SocketTables.validity)
        for table in kind == .unknown ? [SocketKind.tcp, .udp, .unix] : [kind] {
            if let socket = tables.table(table, since: since)?.socket(inode, table) { return socket }
        }
        return nil
    }

    private func addPorts(_ more: Set<UInt16>) {
        // Usually there are none yet. A copy shares the storage, and a machine has thousands of ports.
        if ports.isEmpty { ports = more } else { ports.formUnion(more) }
    }

    private func take(_ table: SocketTable, _ kind: SocketKind) {
        addPorts(table.ports)
        for inode in missing where kinds[inode] == kind || kinds[inode] == .unknown {
            guard let socket = table.socket(inode, kind) else { continue }
            take(socket, inode)
            missing.remove(inode)
        }
    }

    // MARK: Tables of /proc

    private func take(_ finished: SocketTextSearch) {
        text = nil
        if finished.isCut { isIncomplete = true }
        for (socket, kind) in finished.found {
            found[socket.inode] = .listed(socket, kind)
            missing.remove(socket.inode)
        }
    }
}

extension FoundSocket {
    /// A connection of which the counters are not known.
    fileprivate var uncounted: KnownSocket? {
        guard case .internet(let socket, .tcp) = self, socket.isConnected, socket.info == nil else { return nil }
        return KnownSocket(family: socket.family, identity: socket.identity)
    }
}

extension SocketTable {
    fileprivate func socket(_ inode: UInt64, _ kind: SocketKind) -> FoundSocket? {
        internet[inode].map { .internet($0, kind) } ?? unix[inode].map { .unix($0) }
    }
}
