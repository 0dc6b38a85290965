import Glibc
import Posix

/// Finds the sockets of one app in the kernel's tables, in pieces:
///
/// 1. those in a dump that was just made for another app;
/// 2. TCP sockets that an earlier look has found, and a few AF_UNIX sockets: one request each, about 3 µs;
/// 3. the others in a dump: of the sockets of the app's cgroup if there are many, else of all;
/// 4. those in other network namespaces in their tables of /proc.
final class SocketSearch {
    /// The most sockets that are asked for one by one.
    private static let mostTCP = 256
    private static let mostUnix = 32
    /// The most network namespaces that are searched.
    private static let mostNamespaces = 8

    fileprivate enum LookUp {
        case tcp(UInt64, KnownSocket)
        case unix(UInt64)
    }

    private let known: [UInt64: WorkBaseline.Known]
    /// When the app was looked at before: an older dump would show less than is known.
    private let lastLook: Duration
    /// Searches also for sockets that were in no table at the last look.
    private let isRepeated: Bool
    private let cgroup: UInt64?
    private let tables: SocketTables
    /// Uses dumps that were made before this search.
    private let usesOldTables: Bool
    private let proc: ProcFS

    private(set) var found: [UInt64: FoundSocket] = [:]
    private(set) var ports: Set<UInt16> = []
    private(set) var isIncomplete = false
    private var kinds: [UInt64: SocketKind] = [:]
    /// When the app's descriptors were listed.
    private var began = Duration.zero
    private var lookUps: ArraySlice<LookUp> = []
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

    init(
        baseline: WorkBaseline, cgroup: UInt64?, tables: SocketTables, usesOldTables: Bool = true, proc: ProcFS
    ) {
        self.usesOldTables = usesOldTables
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
        var askedUnix = kinds.values.count { $0 == .unix } <= Self.mostUnix
        askedUnix = askedUnix && !tables.unsupported.contains(.unix)
        var asked: [LookUp] = []
        var askedTCP = 0
        for (inode, kind) in kinds {
            if let socket = inTable(inode, kind, at: now) {
                found[inode] = socket
            } else if kind == .unix, askedUnix {
                asked.append(.unix(inode))
            } else if kind == .tcp, let identity = known[inode]?.identity, askedTCP < Self.mostTCP {
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
        if !lookUps.isEmpty {
            lookUp(limit)
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
            ports.formUnion(tables.ports)
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
        switch item {
        case .tcp(let inode, let identity):
            // Another socket has these addresses if several listen on one port.
            if let bytes = try socket.one(DiagnosticRequest.exact(identity)),
                let answer = InternetSocket(parsing: bytes), answer.inode == inode
            {
                found[inode] = .internet(answer, .tcp)
            } else {
                missing.insert(inode)
            }
        case .unix(let inode):
            if let bytes = try socket.one(DiagnosticRequest.unix(inode: inode)),
                let answer = UnixQueue(parsing: bytes), answer.inode == inode
            {
                found[inode] = .unix(answer)
            } else {
                // Of another network namespace.
                found[inode] = .absent(.unix)
            }
        }
    }

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
        dump = SocketDump(kind, cgroup: mayFilter ? cgroup : nil, at: now)
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
        if tables.unsupported.contains(kind) || failed.contains(kind) { return true }
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
        guard usesOldTables else { return nil }
        let since = max(lastLook, now - SocketTables.validity)
        for table in kind == .unknown ? [SocketKind.tcp, .udp, .unix] : [kind] {
            if let socket = tables.table(table, since: since)?.socket(inode, table) { return socket }
        }
        return nil
    }

    private func take(_ table: SocketTable, _ kind: SocketKind) {
        ports.formUnion(table.ports)
        for inode in missing where kinds[inode] == kind || kinds[inode] == .unknown {
            guard let socket = table.socket(inode, kind) else { continue }
            found[inode] = socket
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

extension SocketSearch.LookUp {
    fileprivate var inode: UInt64 {
        switch self {
        case .tcp(let inode, _), .unix(let inode): inode
        }
    }
}

extension SocketTable {
    fileprivate func socket(_ inode: UInt64, _ kind: SocketKind) -> FoundSocket? {
        internet[inode].map { .internet($0, kind) } ?? unix[inode].map { .unix($0) }
    }
}
