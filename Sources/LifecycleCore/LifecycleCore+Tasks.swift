/// Background tasks (L21 … L27).
extension LifecycleCore {
    /// L27: a process with more is killed.
    static let maximumTasks = 1000

    mutating func taskBegan(_ slot: Int, _ name: String, _ owner: Int32, _ now: Instant) {
        begin(BackgroundTask(name: name, began: now, owner: owner, end: nil), slot, now)
    }

    private mutating func begin(_ task: BackgroundTask, _ slot: Int, _ now: Instant) {
        let id = self[app: slot].id
        switch self[app: slot].phase {
        case .terminating, .ending, .notRunning: return report(.taskRefused(id, name: task.name))
        case .launching, .foreground, .entering, .running, .suspending, .suspended, .waking: break
        }
        if self[run: slot].isBackgroundTimeOver || isTooLate(slot) {
            return report(.taskRefused(id, name: task.name))
        }
        self[run: slot].tasks.append(task)
        report(.taskBegan(id, name: task.name))
        if self[run: slot].tasks.count > Self.maximumTasks {
            return kill(slot, .tooManyTasks(self[run: slot].tasks.count), .tooManyTasks, now)
        }
        assertionBegan(slot, now)
    }

    /// A suspended app is not woken for a task that was begun before the freeze, but could only be warned (L22).
    private func isTooLate(_ slot: Int) -> Bool {
        guard case .suspended = self[app: slot].phase, let left = self[run: slot].backgroundTimeLeft else {
            return false
        }
        return left <= self[app: slot].policy.expirationNotice
    }

    /// Of several with one name, the oldest ends.
    mutating func taskEnded(_ slot: Int, _ name: String, _ now: Instant) {
        guard let index = self[run: slot].tasks.firstIndex(where: { $0.name == name }) else { return }
        endTask(slot, index, now)
    }

    private mutating func endTask(_ slot: Int, _ index: Int, _ now: Instant) {
        let task = self[run: slot].tasks.remove(at: index)
        report(.taskEnded(self[app: slot].id, name: task.name))
        // In time still: the app is being looked into for what is no longer open.
        if self[run: slot].tasks.isEmpty, self[run: slot].backgroundTime?.isInspected ?? false {
            backgroundTimeOver(slot, now)
        }
        assertionEnded(slot, now)
    }

    /// Tasks that end by themselves.
    mutating func endTasksDue(_ slot: Int, _ now: Instant) {
        while let index = self[run: slot].tasks.firstIndex(where: { $0.end.map { $0 <= now } ?? false }) {
            endTask(slot, index, now)
        }
    }

    /// L25.
    mutating func timeoutExtended(_ slot: Int, _ time: Duration, _ now: Instant) {
        let limit = self[app: slot].policy.extendedDeadlineMax
        switch self[app: slot].phase {
        case .launching(var launching):
            guard launching.deadline?.extend(by: time, at: now, limit: limit) ?? false else { return }
            self[app: slot].phase = .launching(launching)
            report(.deadlineExtended(self[app: slot].id, .launch, by: time))
        case .terminating(var terminating):
            guard terminating.deadline?.extend(by: time, at: now, limit: limit) ?? false else { return }
            self[app: slot].phase = .terminating(terminating)
            report(.deadlineExtended(self[app: slot].id, .terminate, by: time))
        case .entering: openExtension(slot, time, now)
        case .notRunning, .foreground, .running, .suspending, .suspended, .waking, .ending: break
        }
    }

    /// One at a time: asking again moves its end.
    private mutating func openExtension(_ slot: Int, _ time: Duration, _ now: Instant) {
        if let index = self[run: slot].tasks.firstIndex(where: { $0.end != nil }) {
            self[run: slot].tasks[index].end = now + time
            return
        }
        begin(BackgroundTask(name: BackgroundTask.extensionName, began: now, owner: 0, end: now + time), slot, now)
    }

    // MARK: The budget

    /// L22.
    mutating func giveExpirationNotice(_ slot: Int) {
        self[run: slot].noticeGiven = true
        let names = self[run: slot].tasks.map(\.name)
        report(.tasksExpiring(self[app: slot].id, names: names))
        effects.append(.notify(self[run: slot].id, .tasksExpiring))
    }

    /// L23: with a task open it is looked into and then killed; with none it is suspended without delay.
    mutating func backgroundTimeOver(_ slot: Int, _ now: Instant) {
        guard self[run: slot].tasks.isEmpty else {
            self[run: slot].backgroundTime?.isInspected = true
            effects.append(.inspect(self[run: slot].id))
            return
        }
        cancel(slot, self[run: slot].backgroundTime)
        self[run: slot].backgroundTime = nil
        self[run: slot].isBackgroundTimeOver = true
    }
}
