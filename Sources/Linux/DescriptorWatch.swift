import CLinux
import Glibc
package import Posix

/// Watches the descriptors of all processes of a frozen app for input: with duplicates (pidfd_getfd(2)) in an epoll
/// descriptor of its own. The readiness of a descriptor is state of the kernel, so nothing is lost between the freeze and
/// the duplicates, and the app finds everything after the thaw. Nothing is read.
///
/// A duplicate keeps its file open. So the owner closes all of them before it thaws the app, and those of a process in the
/// turn in which the process has ended: otherwise its clients would wait for a process that no longer exists.
package final class DescriptorWatch {
    /// The most duplicates of one app. A server with more connections is watched by its listening sockets and as many of the
    /// connections; to close 16,384 duplicates before a thaw takes some 15 ms.
    package static let maximum = 16_384
    /// The most processes of one app.
    package static let maximumProcesses = 1024
    /// The most descriptors of one app that are looked at.
    static let mostListed = 65_536
    /// How many of the duplicates are left for epoll descriptors, which cover what is not duplicated.
    static let reservedForEpolls = 64
    /// How many descriptors one step duplicates: some 3 µs each.
    static let takenInStep = 32

    /// Why descriptors are not watched.
    package enum Problem: Equatable {
        /// EPERM: a process that is not dumpable, another user's, or Yama.
        case notPermitted
        case notSupported
        case tooMany
        case failed
    }
    package struct Unwatched: Equatable {
        /// "socket", "io_uring"
        package var what: String
        package var problem: Problem
        package var count: Int
    }
    /// The most entries of `unwatched`. Further kinds are counted in the last one, as "other".
    package static let maximumUnwatched = 8
    /// The most bytes of `Unwatched.what`.
    package static let maximumWhat = 32

    enum Stage { case listing, taking, covering, origins, complete, closed }

    package let processes: [Process]
    let proc: ProcFS
    /// Only local peers that wait are of interest.
    let onlyPeers: Bool
    /// With so many bytes it makes no difference how full the buffer is.
    let fullnessMattersBelow: UInt64
    let limit: Int
    let cgroup: UInt64?
    let budget: DescriptorBudget
    let closer: DescriptorCloser
    /// The app, for the helper threads; empty: not known.
    let owner: String
    /// What the daemon tells the app over connections to this socket is no input.
    let ignoredSocket: String?
    /// For the last close of what can block for long, so that it delays no other.
    private(set) lazy var slowCloser = DescriptorCloser()
    /// Describes a TCP socket at which bytes wait, by its inode, without its lock; `nil`: it is not known. Then a helper thread
    /// asks the socket itself.
    package var describe: (UInt64) -> SocketDescriber.Description? = { _ in nil }
    /// A TCP socket of the app as the last look at its work has found it, by its inode.
    package var knownSocket: (UInt64) -> KnownSocket? = { _ in nil }
    /// Timer descriptors with which the app waits in ticks: they do not wake it.
    package var ignoredTimers: Set<TimerTick> = []
    /// The end of a stream that arrived before the watch, and after the freeze before, is input too: the caller of a command closes the
    /// command's input and waits for it to end (L54). Other programs may have connections that were shut down from the start.
    package var wakesOnEnds = false
    /// Examines sockets and pipes; made at the first use.
    var helper: HelperThread?
    var epoll: Epoll?
    var closedEpoll: Epoll?
    var stage = Stage.listing
    /// By the position of the process.
    var hasEnded: [Bool]
    var duplicates: [WatchedDescriptor] = []
    private(set) package var unwatched: [Unwatched] = []
    /// Asks for the queues of AF_UNIX sockets; made at the first use.
    var diagnostics: Descriptor?
    var hasDiagnostics = true
    /// What the watch before has found in own pipes (OwnPipes.swift), and what this one has found.
    package let leftBefore: LeftInput
    package private(set) var left = LeftInput()
    /// Their inodes.
    private(set) var ownPipes: Set<UInt64> = []
    /// Pipes of which a process of the app has the end for writing.
    private(set) var writtenPipes: Set<UInt64> = []

    // MARK: While the watch is made

    var list: DescriptorList?
    /// Which input was there before; `nil`: none, or that is done.
    var origins: InputOrigins?
    /// Those of the processes, and then those of threads that have tables of their own.
    var tables: [DescriptorTable] = []
    private var nextTable = 0
    /// The threads of the process whose table was listed last.
    var threadSearch: ThreadSearch?
    var lookedAtThreads = 0
    /// How many threads have a table of their own that is open here.
    var threadTables = 0
    var listed: [ListedDescriptor] = []
    /// Where the descriptors of each table begin in `listed`.
    var starts: [Int] = []
    /// The duplicate of each file; -1: nothing can arrive there; -2: it is not watched.
    var known: [ListedDescriptor.Key: Int] = [:]
    var queue: [Int] = []
    var nextInQueue = 0
    /// There are more descriptors than may be duplicated: listening sockets come first.
    private var onlyListeners = false
    /// Lists targets of epoll descriptors; made at the first use.
    var targetHelper: HelperThread?
    /// The helper thread was asked.
    var isWaiting = false
    /// It did not answer in time.
    var isGivenUp = false
    /// The epoll descriptor whose targets are being compared.
    var targets: EpollTargets?
    /// A target is not watched otherwise.
    var hidesTarget = false
    /// A target is a signalfd.
    var hasSignals = false
    /// A target may be a file of a FUSE server.
    var canBlock = false
    /// A target is an epoll descriptor.
    var hasEpolls = false
    /// Why its targets are not known; `nil`: they are.
    var targetProblem: Problem?
    var candidates: [Candidate] = []
    /// An epoll descriptor of the app may have a file of a FUSE server as its target.
    var blockingEpolls = false
    /// How many files were duplicated because they may be message queues.
    private var probes = 0
    /// Each close of such a file asks its file system, so it occupies the helper thread.
    private static let mostProbes = 64

    private static let nothingArrives = -1
    private static let notWatched = -2

    /// - Parameters:
    ///   - processes: as `Enclosure.openProcesses` returns them.
    ///   - omitted: how many processes are not among them.
    ///   - onlyPeers: watch only for local peers that wait, because the buffer towards the app is more than half full.
    ///   - fullnessMattersBelow: with so many bytes it makes no difference whether the buffer is half full.
    ///   - leftBefore: what the watch at the freeze before has found in own pipes.
    ///   - limit: the most duplicates.
    ///   - cgroup: the ID of the app's cgroup, if it has one.
    ///   - closer: closes what may block.
    ///   - owner: the app.
    ///   - ignoredSocket: the path of a socket whose connections are no input.
    package init(
        _ processes: [Process], omitted: Int = 0, proc: ProcFS = ProcFS(), onlyPeers: Bool,
        fullnessMattersBelow: UInt64 = .max, leftBefore: LeftInput = LeftInput(),
        limit: Int = DescriptorWatch.maximum, cgroup: UInt64? = nil, budget: DescriptorBudget,
        closer: DescriptorCloser, owner: String = "", ignoredSocket: String? = nil
    ) throws(SystemError) {
        let made = try Epoll()
        self.processes = processes
        self.proc = proc
        self.onlyPeers = onlyPeers
        self.fullnessMattersBelow = fullnessMattersBelow
        self.leftBefore = leftBefore
        self.limit = limit
        self.cgroup = cgroup
        self.budget = budget
        self.closer = closer
        self.owner = owner
        self.ignoredSocket = ignoredSocket
        tables = processes.indices.map { DescriptorTable(process: $0, thread: processes[$0].pid) }
        hasEnded = [Bool](repeating: false, count: processes.count)
        epoll = made
        // With the set, and cgroup.freeze, which is open as long.
        budget.take(2 + processes.count)
        if omitted > 0 { count("process", .tooMany, omitted) }
    }

    deinit { close(isOver: true) }

    /// Readable when input may have arrived; `nil` after `close`.
    package var descriptor: SharedDescriptor? { epoll?.descriptor }
    /// How many descriptors are watched.
    package var watched: Int { duplicates.count { $0.number >= 0 } }
    /// Those among them at which nothing will arrive from another program.
    package var silent: Int { duplicates.count { $0.number >= 0 && $0.isSilent } }
    package var isComplete: Bool { stage == .complete }
    package var isClosed: Bool { stage == .closed }

    // MARK: Making the watch

    /// Does the next step, of some 100 µs.
    /// - Returns: whether there is another one now. If not, and the watch is not complete, it continues after `pendingAnswer`.
    package func advance() -> Bool {
        switch stage {
        case .listing: listNext()
        case .taking: takeNext()
        case .covering: coverNext()
        case .origins: findOrigins()
        case .complete, .closed: return false
        }
        return stage != .complete && !isWaiting
    }

    private func listNext() {
        if let threadSearch {
            if !searchThreads(threadSearch, of: nextTable - 1) { endSearch() }
            return
        }
        guard nextTable < tables.count, listed.count < Self.mostListed else {
            countUnlisted()
            return beginTaking()
        }
        let table = tables[nextTable]
        do throws(SystemError) {
            if list == nil {
                starts.append(listed.count)
                list = try DescriptorList(
                    in: folder(of: table), of: processes[table.process], process: table.process, table: nextTable)
            }
            let next = try list?.next() ?? []
            listed += next
            if !next.isEmpty { return }
            nextTable += 1
            list = nil
            if table.own == nil { beginSearch(of: processes[table.process]) }
        } catch {
            count(error, of: table)
            nextTable += 1
            list = nil
        }
    }

    /// A table cannot be listed.
    private func count(_ error: SystemError, of table: DescriptorTable) {
        if !error.meansGone, !processes[table.process].isOver { count(table.what, error.problem) }
    }

    /// There are more descriptors than are looked at.
    private func countUnlisted() {
        if list != nil { count("descriptor", .tooMany) }
        for table in tables.dropFirst(nextTable + (list == nil ? 0 : 1)) { count(table.what, .tooMany) }
    }

    /// Threads may have tables of their own.
    private func beginSearch(of process: Process) {
        threadSearch = lookedAtThreads < Self.maximumThreads ? ThreadSearch(of: process, proc) : nil
        if threadSearch == nil { endSearch() }
    }

    /// An app of which nothing is shown is not to be suspended.
    private func endSearch() {
        threadSearch = nil
        let index = nextTable - 1
        let isShown = listed.count > (starts.last ?? 0) || tables.contains { $0.process == index && $0.own != nil }
        if !isShown, hidesDescriptors(processes[index]) { count("process", .failed) }
    }

    private func beginTaking() {
        list = nil
        // Also those that are not listed any more.
        while starts.count <= tables.count { starts.append(listed.count) }
        ownPipes = Self.ownPipes(in: listed)
        writtenPipes = Set(listed.lazy.filter { $0.kind == .pipe && $0.device == 0 && $0.canWrite }.map(\.inode))
        queue = listed.indices.filter { listed[$0].kind.isWatchable }
        onlyListeners = queue.count > space
        stage = .taking
    }

    /// How many more may be duplicated.
    private var space: Int {
        min(limit - duplicates.count, budget.available) - min(Self.reservedForEpolls, limit / 8)
    }

    private func takeNext() {
        let end = min(queue.count, nextInQueue + Self.takenInStep)
        while nextInQueue < end {
            take(queue[nextInQueue])
            nextInQueue += 1
        }
        guard nextInQueue == queue.count else { return }
        nextInQueue = 0
        if onlyListeners {
            onlyListeners = false
        } else {
            queue = onlyPeers ? [] : listed.indices.filter { listed[$0].kind == .epoll || listed[$0].kind == .ioUring }
            stage = .covering
        }
    }

    /// Duplicates a descriptor and watches it.
    private func take(_ index: Int) {
        let item = listed[index]
        // The first pass has taken the listening sockets.
        if hasEnded[item.process] || listed[index].isCovered { return }
        if item.kind == .timerfd, isTick(item) {
            listed[index].isCovered = true
            return
        }
        switch item.kind {
        case .socket: break
        case .pipe: if onlyListeners { return }
        case .notPermitted:
            if !onlyListeners { count("descriptor", .notPermitted) }
            return
        case .ignored, .terminal, .timerfd, .eventfd, .inotify, .pidfd, .epoll, .signalfd, .ioUring, .device,
            .maybeQueue, .unknown:
            if onlyListeners || onlyPeers { return }
        }
        let holder = WatchedDescriptor.Holder(process: item.process, number: item.number)
        if let found = item.key.flatMap({ known[$0] }) {
            if found >= 0 { duplicates[found].add(holder) }
            listed[index].isCovered = found != Self.notWatched
            return
        }
        if item.kind == .maybeQueue { probes += 1 }
        guard space > 0, probes <= Self.mostProbes else { return finish(index, .refused(.tooMany)) }
        let number = duplicate(item)
        guard number >= 0 else {
            let error = SystemError(call: "pidfd_getfd", errno: -number)
            // The process has ended. Its descriptors cannot change otherwise: it is frozen.
            return finish(index, error.meansGone || error.errno == EBADF ? .nothing : .refused(error.problem))
        }
        let judged = judge(number, item, holder)
        let verdict = isIgnored(number, judged) ? .nothing : judged
        if onlyListeners, !verdict.isListener { return discard(number, verdict) }
        finish(index, add(number, verdict))
    }

    /// Whether it is a connection to the ignored socket, also if the other end is closed.
    private func isIgnored(_ number: Int32, _ verdict: WatchedDescriptor.Verdict) -> Bool {
        guard let ignoredSocket, case .watched(let duplicate) = verdict, duplicate.domain == AF_UNIX else {
            return false
        }
        var peer = clinux_peer()
        clinux_describe_peer(number, duplicate.domain, &peer)
        return withUnsafeBytes(of: &peer.text) { $0.prefix(peer.length).elementsEqual(ignoredSocket.utf8) }
    }

    private func isTick(_ item: ListedDescriptor) -> Bool {
        ignoredTimers.contains(TimerTick(process: processes[item.process].pid, number: item.number))
    }

    private func finish(_ index: Int, _ verdict: WatchedDescriptor.Verdict) {
        let key = listed[index].key
        switch verdict {
        case .watched:
            listed[index].isCovered = true
            if let key { known[key] = duplicates.count - 1 }
        case .ignored:
            listed[index].isCovered = true
            if let key { known[key] = Self.nothingArrives }
        case .refused(let problem):
            count(listed[index].what, problem)
            if let key { known[key] = Self.notWatched }
        }
    }

    /// Adds a duplicate to the set, or closes it.
    func add(_ number: Int32, _ verdict: WatchedDescriptor.Verdict) -> WatchedDescriptor.Verdict {
        guard case .watched(let duplicate) = verdict, let epoll else {
            discard(number, verdict)
            return verdict
        }
        let failure = epoll.add(number, duplicate.events, data: UInt64(duplicates.count))
        if failure == 0 {
            duplicates.append(duplicate)
            budget.take()
            return verdict
        }
        discard(number, verdict)
        // EPERM: it cannot be polled, so the app cannot wait for it either.
        return failure == EPERM ? .nothing : .refused(SystemError(call: "epoll_ctl", errno: failure).problem)
    }

    /// Closes a duplicate that is not kept.
    private func discard(_ number: Int32, _ verdict: WatchedDescriptor.Verdict) {
        let mayBlock =
            switch verdict {
            case .watched(let duplicate): duplicate.lingers
            case .ignored(let mayBlock): mayBlock
            case .refused: false
            }
        if mayBlock { closeLater(Descriptor(adopting: number)) } else { clinux_close_all([number], 1) }
    }

    func closeLater(_ descriptor: consuming Descriptor) {
        budget.wait(for: closer)
        closer.close(descriptor)
    }

    /// Records how many bytes an own pipe has.
    func recordLeft(_ bytes: UInt64, in duplicate: WatchedDescriptor) { left.bytes[duplicate.inode] = bytes }

    func recordLeft(_ event: EventDescriptor) { left.events.insert(event) }

    func recordEnd(of duplicate: WatchedDescriptor) { left.ends.insert(duplicate.inode) }

    /// Counts descriptors that are not watched.
    func count(_ what: String, _ problem: Problem, _ number: Int = 1) {
        let name = what.printable(upTo: Self.maximumWhat)
        if let known = unwatched.firstIndex(where: { $0.what == name && $0.problem == problem }) {
            unwatched[known].count += number
        } else if unwatched.count < Self.maximumUnwatched {
            let isLast = unwatched.count == Self.maximumUnwatched - 1
            unwatched.append(Unwatched(what: isLast ? "other" : name, problem: problem, count: number))
        } else {
            unwatched[Self.maximumUnwatched - 1].count += number
        }
    }
}

extension SystemError {
    /// Why a descriptor is not watched.
    var problem: DescriptorWatch.Problem {
        switch errno {
        case EPERM, EACCES: .notPermitted
        case EMFILE, ENFILE, ENOSPC: .tooMany
        default: .failed
        }
    }
}
