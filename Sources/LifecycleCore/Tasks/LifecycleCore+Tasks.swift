/// Background tasks (L21 … L27).
extension LifecycleCore {
    /// L27: an app with more is killed.
    package static let maximumTasks = 1000

    mutating func taskBegan(_ index: AppIndex, _ name: String, _ owner: Int32, _ now: Instant) {
        var task = Assertion(kind: .task(name: name), owner: .process(owner), began: now)
        let phase = apps[index].phase
        task.isOfUser = phase == .foreground || phase == .launching && isInFront(index)
        begin(task, index, now)
    }

    private mutating func begin(_ task: Assertion, _ index: AppIndex, _ now: Instant) {
        let id = apps[index].id
        let name = task.taskName ?? ""
        switch apps[index].phase {
        case .terminating, .ending, .notRunning: return report(.taskRefused(id, name: name))
        case .launching, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking: break
        }
        // In the foreground it takes no background time.
        let hasNoTime = !task.isOfUser && isUnrequestedTimeUsedUp(index, now)
        if self[run: index].budget == .spent || isTooLate(index, task) || hasNoTime {
            return report(.taskRefused(id, name: name))
        }
        let excess = self[run: index].assertions.beginTask(task, limit: Self.maximumTasks)
        report(.taskBegan(id, name: name))
        if let excess { return kill(index, .tooManyTasks(excess), .tooManyTasks, now) }
        assertionBegan(index, now)
        if self[run: index].budget.isNoticeGiven { notifyOfExpiration(index) }
    }

    /// L22: an app whose tasks have ended in time after the notice would be killed for the next one, which it begins without knowing
    /// that the time ends. A suspended app is not woken for a task that was begun before the freeze and would get no more than the
    /// notice.
    private func isTooLate(_ index: AppIndex, _ task: Assertion) -> Bool {
        switch self[run: index].budget {
        case .counting(let counting):
            counting.isNoticeGiven && task.owner != .daemon && !self[run: index].assertions.hasLimitedTasks
        case .paused(let paused):
            apps[index].phase == .suspended && paused.left <= apps[index].policy.expirationNotice
        case .idle, .spent: false
        }
    }

    /// Of several tasks with one name the oldest ends. Tasks that may have ended while there was no daemon come last: if the
    /// app has ended them before, this is the end of another one, which must not stay open for ever.
    mutating func taskEnded(_ index: AppIndex, _ name: String, _ now: Instant) {
        if endTask(index, now, where: { $0.taskName == name && !$0.isDoubtful }) { return }
        if endTask(index, now, where: { $0.taskName == name }) || apps[index].execution == nil { return }
        effects.append(.run(self[run: index].id, .warn(.taskNotOpen(name: name))))
    }

    /// Whether there was a task that meets the condition.
    private mutating func endTask(_ index: AppIndex, _ now: Instant, where isMeant: (Assertion) -> Bool) -> Bool {
        guard let task = self[run: index].assertions.removeTask(where: isMeant) else { return false }
        report(.taskEnded(apps[index].id, name: task.taskName ?? "", isCancelled: task.isCancelled))
        // The last task ends while the app is inspected for tasks that are still open: in time.
        if !self[run: index].assertions.hasLimitedTasks, self[run: index].budget.deadline?.isInspected ?? false {
            backgroundTimeEnded(index, now)
        }
        assertionEnded(index, now)
        return true
    }

    /// Ends the tasks that end by themselves.
    mutating func endTasksDue(_ index: AppIndex, _ now: Instant) {
        while endTask(index, now, where: { $0.end.map { $0 <= now } ?? false }) {}
    }

    /// L25.
    mutating func timeoutExtended(_ index: AppIndex, _ time: Duration, _ now: Instant) {
        let limit = apps[index].policy.extendedDeadlineMax
        switch apps[index].execution {
        case .launching(var launching)?:
            guard launching.deadline?.extend(by: time, at: now, limit: limit) ?? false else { return }
            update(index, .launching(launching))
            report(.deadlineExtended(apps[index].id, .launch, by: time))
        case .terminating(let terminating)? where terminating.cause.isJetsam: break
        case .terminating(var terminating)?:
            guard terminating.deadline?.extend(by: time, at: now, limit: limit) ?? false else { return }
            update(index, .terminating(terminating))
            report(.deadlineExtended(apps[index].id, .terminate, by: time))
        case .enteringBackground?: openExtension(index, time, now)
        case nil, .foreground?, .background?, .suspending?,
            .suspended?, .waking?:
            break
        }
    }

    /// One at a time: another request moves its end. The manifest's limit holds for it too: a worker, which has no
    /// background budget, would be awake for as long as it likes.
    private mutating func openExtension(_ index: AppIndex, _ time: Duration, _ now: Instant) {
        let limit = apps[index].policy.extendedDeadlineMax
        if self[run: index].assertions.moveExtension(to: now + time, limit: limit) { return }
        let end = now + (limit.map { min(time, $0) } ?? time)
        begin(Assertion(kind: .task(name: Assertion.extensionName), owner: .daemon, began: now, end: end), index, now)
    }

    // MARK: The budget

    /// L22. `due`: when the notice was to be given. A daemon that is late gives the app the whole time of the notice; a task
    /// that began after `due` gains nothing.
    mutating func giveExpirationNotice(_ index: AppIndex, due: Instant, _ now: Instant) {
        let isLate = now - due > Self.toleratedDelay
        if isLate, self[run: index].assertions.all.contains(where: { $0.isTask && !$0.isContinued && $0.began <= due })
        {
            giveTimeForNotice(index, .noticeDelayed, now)
        }
        guard let deadline = self[run: index].budget.deadline else { return }
        self[run: index].budget = .counting(.init(deadline: deadline, isNoticeGiven: true))
        notifyOfExpiration(index)
    }

    private mutating func notifyOfExpiration(_ index: AppIndex) {
        report(.tasksExpiring(apps[index].id, names: self[run: index].assertions.limitedTaskNames))
        notify(index, .tasksExpiring)
    }

    /// L23: with a task open the app is inspected and then killed; with none it is suspended without delay. Continued tasks continue.
    mutating func backgroundTimeEnded(_ index: AppIndex, _ now: Instant) {
        if self[run: index].assertions.hasLimitedTasks {
            self[run: index].budget.deadline?.isInspected = true
            effects.append(.run(self[run: index].id, .deadline(.inspect)))
            return
        }
        cancel(index, self[run: index].budget.deadline)
        self[run: index].budget = .spent
    }
}
