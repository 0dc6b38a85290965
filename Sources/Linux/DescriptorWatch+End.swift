import CLinux
package import Posix

/// What is ready, and the end of the watch.
extension DescriptorWatch {
    /// What is ready now, at most 64 descriptors. `data` is for `look`.
    package func ready() throws(SystemError) -> [Epoll.Ready] { try epoll?.take() ?? [] }

    /// Watches the app's own epoll descriptors no more.
    /// - Returns: whether there were any.
    package func removeEpolls() -> Bool {
        let found = duplicates.indices.filter { duplicates[$0].kind == .epoll && duplicates[$0].number >= 0 }
        for index in found {
            removeFromSet(index)
            closeLater(Descriptor(adopting: duplicates[index].number))
            duplicates[index].number = -1
            count("epoll", .notSupported)
        }
        budget.giveBack(found.count)
        return !found.isEmpty
    }

    /// - Returns: `nil` if the system has nothing left for one.
    func answeringThread() -> HelperThread? {
        if let helper { return helper }
        guard !isBlocked, let made = try? HelperThread(name: "input", .examines, owner: owner), let epoll,
            let answers = made.completions,
            epoll.add(answers.raw, [.readable], data: Self.answersData) == 0
        else { return nil }
        budget.take(Self.descriptorsOfHelper)
        helper = made
        return made
    }

    /// The two ends of the pipe of its completions, and the duplicate that it examines.
    private static let descriptorsOfHelper = 3

    func removeFromSet(_ index: Int) { epoll?.remove(duplicates[index].number) }

    /// Adds a descriptor to the set again.
    /// - Returns: false if the system has no memory for it now.
    func addToSet(_ index: Int) -> Bool {
        epoll?.add(duplicates[index].number, duplicates[index].events, data: UInt64(index)) ?? 0 == 0
    }

    /// Closes all duplicates before it returns. The processes are frozen and hold the same descriptors, so each close is
    /// instant. Those that could block, if a process was killed in this moment, are closed on a helper thread.
    /// - Parameter isOver: the processes have ended.
    package func close(isOver: Bool = false) {
        guard stage != .closed else { return }
        // Another program may have killed some: the close of their duplicates is the last one.
        if !isOver { for index in processes.indices where processes[index].isOver { processEnded(index) } }
        stage = .closed
        // Its entries go with the duplicates. It takes longer to close than they do, so that is left for the end of this object.
        (closedEpoll, epoll) = (epoll, nil)
        list = nil
        origins = nil
        if helper != nil { budget.giveBack(Self.descriptorsOfHelper) }
        helper = nil
        threadSearch = nil
        closeTargets()
        closeTables()
        budget.giveBack(2 + processes.count)
        if isOver {
            let open = duplicates.filter { $0.number >= 0 }
            duplicates = []
            return closeLast(open)
        }
        // Their memory is left for the end of this object, too: a client waits.
        var numbers: [Int32] = []
        numbers.reserveCapacity(duplicates.count)
        var closed = 0
        for index in duplicates.indices where duplicates[index].number >= 0 {
            closed += 1
            if duplicates[index].mayBlock {
                closeLater(Descriptor(adopting: duplicates[index].number))
            } else {
                numbers.append(duplicates[index].number)
            }
            duplicates[index].number = -1
        }
        // Numbers that follow each other are closed with one call.
        numbers.sort()
        clinux_close_all(numbers, numbers.count)
        budget.giveBack(closed)
    }

    /// The most duplicates of a process that has ended that are closed in the turn of its end: the last close of a
    /// connection sends its end, which takes some 10 µs. A helper thread closes more.
    private static let closedInTurn = 64

    /// The process has ended: closes the duplicates that no other process of the app holds.
    /// - Parameter index: its position in the list of processes.
    package func processEnded(_ index: Int) {
        guard stage != .closed, !hasEnded[index] else { return }
        hasEnded[index] = true
        var closed: [WatchedDescriptor] = []
        for position in duplicates.indices where duplicates[position].number >= 0 {
            guard duplicates[position].remove(holdersIn: index) else { continue }
            // The file may have descriptors elsewhere, so it would stay in the set.
            removeFromSet(position)
            closed.append(duplicates[position])
            duplicates[position].number = -1
        }
        closeLast(closed)
    }

    /// Closes duplicates that no process of the app holds any more.
    private func closeLast(_ closed: [WatchedDescriptor]) {
        var (now, later, last): ([Int32], [Int32], [Int32]) = ([], [], [])
        for duplicate in closed {
            if duplicate.lingersNow {
                last.append(duplicate.number)
            } else if now.count < Self.closedInTurn, duplicate.closesAtOnce {
                now.append(duplicate.number)
            } else {
                later.append(duplicate.number)
            }
        }
        budget.giveBack(closed.count)
        clinux_close_all(now, now.count)
        for number in later { closeLater(Descriptor(adopting: number)) }
        guard !last.isEmpty else { return }
        // Those that can block for long do not delay the others.
        budget.wait(for: slowCloser)
        for number in last { slowCloser.close(Descriptor(adopting: number)) }
    }
}
