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
    /// How many targets of an epoll descriptor one step compares.
    private static let targetsInStep = 512
    /// The longest list of targets in bytes, some 70 for each.
    private static let longestTargets = 4 << 20

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

    /// The write end of a pipe, in a process.
    private struct WriteEnd: Hashable {
        let process: Int
        let inode: UInt64
    }

    enum Stage { case listing, taking, covering, complete, closed }

    package let processes: [Process]
    let proc: ProcFS
    /// Only local peers that wait are of interest.
    let onlyPeers: Bool
    /// With so many bytes it makes no difference how full the buffer is.
    let fullnessMattersBelow: UInt64
    /// The own pipes that were not empty when the app was suspended before, see `fullPipes`.
    let seenFullPipes: Set<UInt64>
    private let limit: Int
    let budget: DescriptorBudget
    let closer: DescriptorCloser
    /// For the last close of what can block for long, so that it delays no other.
    private(set) lazy var slowCloser = DescriptorCloser()
    /// Examines sockets and pipes; made at the first use.
    var helper: HelperThread?
    var epoll: Epoll?
    var stage = Stage.listing
    /// By the position of the process.
    var hasEnded: [Bool]
    var duplicates: [WatchedDescriptor] = []
    private(set) package var unwatched: [Unwatched] = []
    /// The inodes of own pipes that were not empty when the watch was made. An own pipe is one of which the reader has the
    /// write end, too: no other program writes to it. What is in it before and after the app ran is no input but, for
    /// example, the token of a lock: libuv, and so Node, has such a pipe.
    package internal(set) var fullPipes: Set<UInt64> = []
    /// Asks for the queues of AF_UNIX sockets; made at the first use.
    var diagnostics: Descriptor?
    var hasDiagnostics = true

    // MARK: While the watch is made

    var list: DescriptorList?
    private var nextProcess = 0
    private var listed: [ListedDescriptor] = []
    private var writeEnds: Set<WriteEnd> = []
    /// Where the descriptors of each process begin in `listed`.
    private var starts: [Int] = []
    /// The duplicate of each file; -1: nothing can arrive there; -2: it is not watched.
    private var known: [ListedDescriptor.Key: Int] = [:]
    private var queue: [Int] = []
    private var nextInQueue = 0
    /// There are more descriptors than may be duplicated: listening sockets come first.
    private var onlyListeners = false
    /// The epoll descriptor whose targets are being compared: their text, and how far that is done.
    private var targets: (text: [UInt8], offset: Int)?
    private var hidesTarget = false
    private var hasSignals = false
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
    ///   - seenFullPipes: `fullPipes` of the watch before the app ran.
    ///   - limit: the most duplicates.
    ///   - closer: closes what may block.
    package init(
        _ processes: [Process], omitted: Int = 0, proc: ProcFS = ProcFS(), onlyPeers: Bool,
        fullnessMattersBelow: UInt64 = .max, seenFullPipes: Set<UInt64> = [],
        limit: Int = DescriptorWatch.maximum, budget: DescriptorBudget, closer: DescriptorCloser
    ) throws(SystemError) {
        let made = try Epoll()
        self.processes = processes
        self.proc = proc
        self.onlyPeers = onlyPeers
        self.fullnessMattersBelow = fullnessMattersBelow
        self.seenFullPipes = seenFullPipes
        self.limit = limit
        self.budget = budget
        self.closer = closer
        hasEnded = [Bool](repeating: false, count: processes.count)
        epoll = made
        budget.take(1 + processes.count)
        if omitted > 0 { count("process", .tooMany, omitted) }
    }

    deinit { close(isOver: true) }

    /// Readable when input may have arrived; `nil` after `close`.
    package var descriptor: SharedDescriptor? { epoll?.descriptor }
    /// How many descriptors are watched.
    package var watched: Int { duplicates.count { $0.number >= 0 } }
    package var isComplete: Bool { stage == .complete }
    package var isClosed: Bool { stage == .closed }

    // MARK: Making the watch

    /// Does the next step, of some 100 µs.
    /// - Returns: whether there is another one.
    package func advance() -> Bool {
        switch stage {
        case .listing: listNext()
        case .taking: takeNext()
        case .covering: coverNext()
        case .complete, .closed: return false
        }
        return stage != .complete
    }

    private func listNext() {
        guard nextProcess < processes.count, listed.count < Self.mostListed else {
            if nextProcess < processes.count { count("descriptor", .tooMany) }
            return beginTaking()
        }
        do throws(SystemError) {
            if list == nil {
                starts.append(listed.count)
                list = try DescriptorList(of: processes[nextProcess], at: nextProcess, proc)
            }
            let next = try list?.next() ?? []
            listed += next
            if !next.isEmpty { return }
            if listed.count == starts.last, hidesDescriptors(processes[nextProcess]) { count("process", .failed) }
        } catch {
            if error.errno == EACCES || error.errno == EPERM {
                count("process", .notPermitted)
            } else if !error.meansGone {
                count("process", error.problem)
            }
        }
        list = nil
        nextProcess += 1
    }

    /// Whether the first thread has ended and others run: /proc and pidfd_getfd(2) show only what the first thread has. Such
    /// an app is not to be suspended where nothing of it is watched.
    private func hidesDescriptors(_ process: Process) -> Bool {
        guard let stat = (try? proc.stat(of: process.pid)) ?? nil else { return false }
        return stat.isZombie && !stat.isDead && !process.isOver
    }

    private func beginTaking() {
        list = nil
        starts.append(listed.count)
        queue = listed.indices.filter { listed[$0].kind.isWatchable }
        onlyListeners = queue.count > space
        for item in listed where item.kind == .pipe && item.device == 0 && item.canWrite {
            writeEnds.insert(WriteEnd(process: item.process, inode: item.inode))
        }
        stage = .taking
    }

    /// Whether a process has both ends of the pipe that it reads from. A FIFO is none: other programs can open it.
    func isOwnPipe(_ item: ListedDescriptor) -> Bool {
        item.device == 0 && item.canRead && !item.canWrite
            && writeEnds.contains(WriteEnd(process: item.process, inode: item.inode))
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
        let number = clinux_pidfd_getfd(processes[item.process].descriptor.raw, item.number)
        guard number >= 0 else {
            let error = SystemError(call: "pidfd_getfd", errno: -number)
            // The process has ended. Its descriptors cannot change otherwise: it is frozen.
            return finish(index, error.meansGone || error.errno == EBADF ? .nothing : .refused(error.problem))
        }
        let verdict = judge(number, item, holder)
        if onlyListeners, !verdict.isListener { return discard(number, verdict) }
        finish(index, add(number, verdict))
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
    private func add(_ number: Int32, _ verdict: WatchedDescriptor.Verdict) -> WatchedDescriptor.Verdict {
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

    // MARK: What is not watched otherwise

    /// Looks at the next epoll descriptor, or io_uring.
    private func coverNext() {
        guard nextInQueue < queue.count else { return complete() }
        let item = listed[queue[nextInQueue]]
        if item.kind == .ioUring {
            // Files that are registered with the ring may have no descriptor any more.
            if hidesFiles(item) { count(item.what, .notSupported) }
            nextInQueue += 1
            return
        }
        if targets == nil {
            (hidesTarget, hasSignals) = (false, false)
            let path = "\(proc.root)/\(processes[item.process].pid)/fdinfo/\(item.number)"
            let text = (try? readFileIfPresent(at: path, limit: Self.longestTargets)) ?? nil
            targets = (text ?? [], 0)
            // Too long, or not permitted.
            hidesTarget = text == nil && !processes[item.process].isOver
        }
        if compareTargets(of: item) { return }
        targets = nil
        if hidesTarget { watchEpoll(item) }
        nextInQueue += 1
    }

    /// Compares targets of an epoll descriptor with what is watched.
    /// - Returns: whether there are more.
    private func compareTargets(of item: ListedDescriptor) -> Bool {
        guard let (text, offset) = targets, !hidesTarget || !hasSignals else { return false }
        var found = [clinux_epoll_target](repeating: clinux_epoll_target(), count: Self.targetsInStep)
        var used = 0
        let count = text.withUnsafeBufferPointer { buffer in
            guard let start = buffer.baseAddress else { return 0 }
            return clinux_parse_targets(start + offset, buffer.count - offset, &found, found.count, &used)
        }
        for target in found.prefix(count) { compare(target, of: item.process) }
        targets = (text, offset + used)
        return count == Self.targetsInStep
    }

    private func compare(_ target: clinux_epoll_target, of process: Int) {
        guard let other = find(target.number, of: process) else {
            // Closed, and still registered: another descriptor of the same file exists elsewhere.
            hidesTarget = true
            return
        }
        switch other.kind {
        case .signalfd: hasSignals = true
        // The targets of the other one are compared too. A descriptor of an unknown kind may always be ready.
        case .epoll, .unknown: break
        case .ignored, .socket, .pipe, .terminal, .timerfd, .eventfd, .inotify, .pidfd, .ioUring, .device, .maybeQueue,
            .notPermitted:
            // The number may belong to another file by now.
            let isSame = other.inode == 0 || target.inode == 0 || other.inode == target.inode
            if !isSame || !other.isCovered { hidesTarget = true }
        }
    }

    /// Finds a descriptor by its number. Those of a process are listed in ascending order.
    private func find(_ number: Int32, of process: Int) -> ListedDescriptor? {
        var (low, high) = (starts[process], starts[process + 1])
        while low < high {
            let middle = (low + high) / 2
            if listed[middle].number < number { low = middle + 1 } else { high = middle }
        }
        guard low < starts[process + 1], listed[low].number == number else { return nil }
        return listed[low]
    }

    /// The app's own epoll descriptor, as one of ours. It is never waited on itself: that would take its events away.
    private func watchEpoll(_ item: ListedDescriptor) {
        // A signalfd is ready if the process that asks has such a signal pending, and here the daemon asks.
        guard !hasSignals else { return count(item.what, .notSupported) }
        guard duplicates.count < limit, budget.available > 0 else { return count(item.what, .tooMany) }
        let number = clinux_pidfd_getfd(processes[item.process].descriptor.raw, item.number)
        guard number >= 0 else {
            let error = SystemError(call: "pidfd_getfd", errno: -number)
            if !error.meansGone { count(item.what, error.problem) }
            return
        }
        let holder = WatchedDescriptor.Holder(process: item.process, number: item.number)
        let verdict = add(number, .watched(WatchedDescriptor(number, .epoll, holder)))
        if case .refused(let problem) = verdict { count(item.what, problem) }
    }

    /// Whether an io_uring has registered files. If the list cannot be read, it may have.
    private func hidesFiles(_ item: ListedDescriptor) -> Bool {
        guard let bytes = (try? proc.read("fdinfo/\(item.number)", of: processes[item.process].pid)) ?? nil else {
            return !processes[item.process].isOver
        }
        var scanner = ByteScanner(bytes)
        while let line = scanner.line() {
            var words = ByteScanner(line)
            if words.word()?.elementsEqual("UserFiles:".utf8) == true { return words.number(UInt64.self) != 0 }
        }
        return true
    }

    private func complete() {
        stage = .complete
        (listed, starts, queue, known, targets, writeEnds) = ([], [], [], [:], nil, [])
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
