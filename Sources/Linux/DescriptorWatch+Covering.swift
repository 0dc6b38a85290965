import CLinux
import Glibc
package import Posix

/// The targets of an epoll descriptor of the app.
///
/// The kernel makes their list at once, however long it is, and takes the lock of the epoll descriptor for it. Another
/// process that has the descriptor holds that lock while it asks a file of a FUSE server whether it is ready. So a helper
/// thread lists them.
struct EpollTargets {
    /// The file in memory that contains them (`clinux_epoll_target`).
    let file: SharedDescriptor
    var isListed = false
}

extension DescriptorWatch {
    /// How many targets one step compares.
    private static let targetsInStep = 512
    /// The two ends of the pipe of the helper thread's completions, the list of an epoll descriptor, and the file for its
    /// targets, which the thread has too.
    static let descriptorsOfTargets = 5
    /// The most helper threads of one app that wait for a lock. With so many no further one is started.
    static let mostBlocked = 4

    // MARK: The helper thread

    /// Readable when the helper thread has answered; `nil`: no answer is expected. Until then `advance` has nothing to do.
    package var pendingAnswer: SharedDescriptor? { isWaiting ? targetHelper?.completions : nil }

    /// The helper thread does not answer: what it was to list is not watched. `advance` does the rest.
    package func giveUpWaiting() {
        guard isWaiting, !isClosed else { return }
        isWaiting = false
        isGivenUp = true
        closeTargets()
    }

    /// Ends the helper thread, once its call returns.
    func closeTargets() {
        targets = nil
        guard targetHelper != nil else { return }
        targetHelper = nil
        budget.giveBack(Self.descriptorsOfTargets)
    }

    /// Whether so many helper threads of the app wait for a lock that no further one is started.
    var isBlocked: Bool {
        guard !owner.isEmpty else { return false }
        return BlockedHelper.examining(for: owner, limit: Self.mostBlocked) == Self.mostBlocked
    }

    private func startTargetHelper() -> HelperThread? {
        if let targetHelper { return targetHelper }
        guard !isGivenUp, budget.available > Self.descriptorsOfTargets, !isBlocked,
            let made = try? HelperThread(name: "epoll-targets", .examines, owner: owner)
        else { return nil }
        budget.take(Self.descriptorsOfTargets)
        targetHelper = made
        return made
    }

    /// Asks for the targets.
    /// - Returns: why that is impossible, or `nil`.
    private func problemOfAsking(_ item: ListedDescriptor) -> Problem? {
        do throws(SystemError) {
            if try askForTargets(of: item) { return nil }
            return isGivenUp ? .failed : .tooMany
        } catch {
            return error.problem
        }
    }

    private func askForTargets(of item: ListedDescriptor) throws(SystemError) -> Bool {
        guard let helper = startTargetHelper() else { return false }
        let path = folder(of: item) + "/fdinfo/\(item.number)"
        let list = try Descriptor.open(path, O_RDONLY)
        let file = SharedDescriptor(try MemoryFile.empty("greenroom-epoll"))
        let output = try file.descriptor.duplicate()
        let thread = tables[item.table].thread
        guard
            try helper.listTargets(
                of: list, thread: thread, number: item.number, output: output, token: UInt64(nextInQueue))
        else { return false }
        targets = EpollTargets(file: file)
        isWaiting = true
        return true
    }

    /// - Returns: whether the helper thread has answered.
    private func takeAnswer() -> Bool {
        let answers = (try? targetHelper?.collect()) ?? []
        guard let answer = answers.first(where: { $0.token == UInt64(nextInQueue) }) else { return false }
        isWaiting = false
        targets?.isListed = true
        let error = SystemError(call: "read", errno: answer.errno)
        if answer.errno != 0, !error.meansGone {
            // There may be anything among them.
            (hidesTarget, canBlock) = (true, true)
            targetProblem = answer.errno == E2BIG ? .tooMany : error.problem
        }
        return true
    }

    // MARK: What is not watched otherwise

    /// Looks at the next epoll descriptor, or io_uring.
    func coverNext() {
        guard nextInQueue < queue.count else { return coverNextCandidate() }
        let item = listed[queue[nextInQueue]]
        if item.kind == .ioUring {
            // Files that are registered with the ring may have no descriptor any more.
            if hidesFiles(item) { count(item.what, .notSupported) }
            nextInQueue += 1
            return
        }
        guard let targets else {
            (hidesTarget, hasSignals, canBlock, hasEpolls) = (false, false, false, false)
            targetProblem = nil
            guard let problem = problemOfAsking(item) else { return }
            if !processes[item.process].isOver { count(item.what, problem) }
            nextInQueue += 1
            return
        }
        if !targets.isListed, !takeAnswer() { return }
        if compareTargets(of: item, targets.file) { return }
        self.targets = nil
        if canBlock { blockingEpolls = true }
        if hidesTarget { candidates.append(Candidate(index: queue[nextInQueue], self)) }
        nextInQueue += 1
    }

    /// An epoll descriptor with a target that is not watched otherwise.
    struct Candidate {
        let index: Int
        let hasSignals: Bool
        let canBlock: Bool
        let hasEpolls: Bool
        /// Why its targets are not known; `nil`: they are.
        let problem: Problem?

        fileprivate init(index: Int, _ watch: DescriptorWatch) {
            self.index = index
            hasSignals = watch.hasSignals
            canBlock = watch.canBlock
            hasEpolls = watch.hasEpolls
            problem = watch.targetProblem
        }
    }

    /// The targets of all epoll descriptors are known.
    private func coverNextCandidate() {
        guard let candidate = candidates.popLast() else { return complete() }
        let item = listed[candidate.index]
        // A signalfd is ready if the process that asks has such a signal pending, and here the daemon asks. It would also
        // wait for the server of a target's file (FUSE).
        let isRefused = candidate.hasSignals || candidate.canBlock || candidate.hasEpolls && blockingEpolls
        if isRefused { count(item.what, candidate.problem ?? .notSupported) } else { watchEpoll(item) }
    }

    /// Compares targets of an epoll descriptor with what is watched.
    /// - Returns: whether there are more.
    private func compareTargets(of item: ListedDescriptor, _ file: SharedDescriptor) -> Bool {
        if hidesTarget, hasSignals || canBlock { return false }
        let size = MemoryLayout<clinux_epoll_target>.stride
        var found = [clinux_epoll_target](repeating: clinux_epoll_target(), count: Self.targetsInStep)
        let length = found.withUnsafeMutableBytes { Glibc.read(file.raw, $0.baseAddress, $0.count) }
        guard length > 0 else { return false }
        for target in found.prefix(length / size) { compare(target, of: item.table) }
        return length == size * Self.targetsInStep
    }

    private func compare(_ target: clinux_epoll_target, of table: Int) {
        let isInKernel = target.flags & CLINUX_TARGET_IN_KERNEL.rawValue != 0
        guard let other = find(target.number, of: table) else {
            // Closed, and still registered: another descriptor of the same file exists elsewhere.
            hidesTarget = true
            if !isInKernel { canBlock = true }
            return
        }
        let isProven = isInKernel || target.flags & CLINUX_TARGET_IS_SAME.rawValue != 0
        if !isProven { canBlock = true }
        switch other.kind {
        case .signalfd: hasSignals = true
        // The targets of the other one are compared too.
        case .epoll: hasEpolls = true
        // A descriptor of an unknown kind may always be ready.
        case .unknown: break
        case .ignored, .maybeQueue:
            // It may be a file of a FUSE server.
            if !isInKernel { canBlock = true }
            if !other.isCovered { hidesTarget = true }
        case .socket, .pipe, .terminal, .timerfd, .eventfd, .inotify, .pidfd, .ioUring, .device, .notPermitted:
            // The number may belong to another file by now.
            let isSame = other.inode == 0 || target.inode == 0 || other.inode == target.inode
            if !isSame || !other.isCovered { hidesTarget = true }
        }
    }

    /// Finds a descriptor by its number. Those of a table are listed in ascending order.
    private func find(_ number: Int32, of table: Int) -> ListedDescriptor? {
        var (low, high) = (starts[table], starts[table + 1])
        while low < high {
            let middle = (low + high) / 2
            if listed[middle].number < number { low = middle + 1 } else { high = middle }
        }
        guard low < starts[table + 1], listed[low].number == number else { return nil }
        return listed[low]
    }

    /// The app's own epoll descriptor, as one of ours. It is never waited on itself: that would take its events away.
    private func watchEpoll(_ item: ListedDescriptor) {
        if hasEnded[item.process] { return }
        guard duplicates.count < limit, budget.available > 0 else { return count(item.what, .tooMany) }
        let number = duplicate(item)
        guard number >= 0 else {
            let error = SystemError(call: "pidfd_getfd", errno: -number)
            if !error.meansGone { count(item.what, error.problem) }
            return
        }
        if let problem = problemOfNesting(number) {
            clinux_close_all([number], 1)
            return count(item.what, problem)
        }
        let holder = WatchedDescriptor.Holder(process: item.process, number: item.number)
        let verdict = add(number, .watched(WatchedDescriptor(number, .epoll, holder)))
        if case .refused(let problem) = verdict { count(item.what, problem) }
    }

    /// Whether the kernel permits as many levels as the loop, this watch, and the app's epoll descriptor with its own levels
    /// have (epoll_ctl(2), ELOOP). It is tried, so that one that is too deep is not found only when the whole watch is added.
    private func problemOfNesting(_ number: Int32) -> Problem? {
        do throws(SystemError) {
            let (loop, watch) = (try Epoll(), try Epoll())
            try watch.tryToAdd(number)
            try loop.tryToAdd(watch.descriptor.raw)
            return nil
        } catch {
            return error.errno == ELOOP ? .notSupported : error.problem
        }
    }

    /// Whether an io_uring has registered files. If the list cannot be read, it may have.
    private func hidesFiles(_ item: ListedDescriptor) -> Bool {
        let path = folder(of: item) + "/fdinfo/\(item.number)"
        guard let bytes = (try? readFileIfPresent(at: path, limit: ProcFS.limit)) ?? nil else {
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
        origins = InputOrigins(of: duplicates, listed, cgroup: cgroup, known: knownSocket)
        stage = origins == nil ? .complete : .origins
        closeTargets()
        closeTables()
        (listed, starts, queue, known, candidates) = ([], [], [], [:], [])
    }
}

extension Epoll {
    fileprivate func tryToAdd(_ number: Int32) throws(SystemError) {
        let failure = add(number, [.readable, .edge], data: 0)
        if failure != 0 { throw SystemError(call: "epoll_ctl", errno: failure) }
    }
}
