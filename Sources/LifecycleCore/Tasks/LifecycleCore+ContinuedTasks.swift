/// Continued tasks (L21): a task that began in the foreground and reports its progress may run in the background for as long as it
/// advances. One that stalls, is cancelled, or is one of too many is limited by the background time, like any other.
extension LifecycleCore {
    /// Continued tasks of one app. The progress of a further one is shown, and it has the background time.
    static let maximumContinuedTasks = 16
    /// The least time between two reports to observers about one task.
    static let progressInterval = Duration.milliseconds(100)

    // MARK: Progress

    /// Of several tasks with one name the oldest is meant, as for the end of one.
    mutating func taskProgressed(_ index: AppIndex, _ name: String, _ progress: TaskProgress, _ now: Instant) {
        switch apps[index].phase {
        case .terminating, .ending, .notRunning: return
        case .launching, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking: break
        }
        let mayContinue = mayContinueTasks(index)
        let reported = self[run: index].assertions.updateTask(where: { $0.taskName == name }) { task in
            task.record(progress, now)
            if mayContinue { task.continueIfPossible() }
            return task.publish(now)
        }
        guard let reported else {
            return effects.append(.run(self[run: index].id, .warn(.progressNotOpen(name: name))))
        }
        if let reported { report(.taskProgressed(apps[index].id, name: name, reported)) }
    }

    /// Whether one more task of an app in the background may be a continued one.
    private func mayContinueTasks(_ index: AppIndex) -> Bool {
        switch apps[index].phase {
        case .enteringBackground, .background: break
        case .notRunning, .launching, .foreground, .suspending, .suspended, .waking, .terminating, .ending: return false
        }
        return apps[index].policy.taskProgressTime != .zero
            && self[run: index].assertions.continuedCount < Self.maximumContinuedTasks
    }

    /// The app enters the background: the time without progress counts from now on.
    mutating func continueTasks(_ index: AppIndex, _ now: Instant) {
        guard apps[index].policy.taskProgressTime != .zero else { return }
        var count = 0
        self[run: index].assertions.updateTasks { task in
            guard task.progress != nil else { return }
            task.progress?.advanced = now
            task.progress?.continuation = .no
            if count < Self.maximumContinuedTasks { task.continueIfPossible() }
            count += task.isContinued ? 1 : 0
        }
    }

    /// The app was not to blame for the time without progress: it counts from now on.
    mutating func renewProgress(_ index: AppIndex, _ now: Instant) {
        self[run: index].assertions.updateTasks { if $0.isContinued { $0.progress?.advanced = now } }
    }

    // MARK: The end of a continuation

    /// Some of its tasks have made no progress for the time that they have. `due`: since when. What the app has sent while the daemon
    /// did not run may not have been read.
    mutating func progressStalled(_ index: AppIndex, due: Instant, _ now: Instant) {
        if now - due > Self.toleratedDelay { return renewProgress(index, now) }
        guard let time = apps[index].policy.taskProgressTime else { return }
        limitTasks(index, .stalled, now) { $0.advanced + time <= now }
    }

    /// Limits continued tasks by the background time. If that is over, they have the time of the notice.
    private mutating func limitTasks(
        _ index: AppIndex, _ cause: TaskExpiry, _ now: Instant, where isMeant: (OpenProgress) -> Bool
    ) {
        var names: [String] = []
        self[run: index].assertions.updateTasks { task in
            guard task.isContinued, let progress = task.progress, isMeant(progress) else { return }
            task.progress?.continuation = .over
            names.append(task.taskName ?? "")
        }
        for name in names { report(.taskExpires(apps[index].id, name: name, cause)) }
        switch self[run: index].budget {
        case .idle, .paused: break
        case .spent: startBudget(index, apps[index].policy.expirationNotice, now)
        case .counting(let counting):
            guard counting.isNoticeGiven else { return }
            // That notice did not name them.
            self[run: index].budget = .counting(.init(deadline: counting.deadline, isNoticeGiven: false))
            giveTimeForNotice(index, .noticeDelayed, now)
        }
    }

    /// A user cancels the open tasks of this name: the app is notified that they expire. In the background they have at least the time of
    /// the notice.
    mutating func cancelTaskRequested(_ request: RequestID, _ index: AppIndex, _ name: String, _ now: Instant) {
        switch apps[index].phase {
        case .notRunning: return answer(request, .refused(.notRunning))
        case .terminating, .ending: return answer(request, .refused(.ending))
        case .launching, .foreground, .enteringBackground, .background, .suspending, .suspended, .waking: break
        }
        let tasks = self[run: index].assertions.tasks.filter { $0.taskName == name }
        guard !tasks.isEmpty else { return answer(request, .refused(.noTask(name))) }
        if tasks.contains(where: { !$0.isCancelled }) { cancelTasks(index, name, now) }
        answer(request, .done(apps[index].state))
    }

    private mutating func cancelTasks(_ index: AppIndex, _ name: String, _ now: Instant) {
        self[run: index].assertions.updateTasks { task in
            guard task.taskName == name else { return }
            task.isCancelled = true
            task.progress?.continuation = .over
        }
        switch self[run: index].budget {
        case .idle, .paused: break
        case .counting: giveTimeForNotice(index, .noticeDelayed, now)
        case .spent: startBudget(index, apps[index].policy.expirationNotice, isNoticeGiven: true, now)
        }
        report(.taskExpires(apps[index].id, name: name, .cancelled))
        notify(index, .tasksExpiring)
    }

    // MARK: All apps

    /// How many tasks may continue now; `nil`: any number. While memory is nearly used up, one: an app whose last task ends is suspended,
    /// and is what jetsam takes first.
    private var continuedLimit: Int? {
        memoryState.level == .critical ? min(1, manager.continuedTasks ?? 1) : manager.continuedTasks
    }

    /// Of too many continued tasks, those without progress for longest expire.
    mutating func limitContinuedTasks(_ now: Instant) {
        guard let limit = continuedLimit else { return }
        while continuedTaskCount > limit, let (rank, index) = continuedTasks.first {
            var isFound = false
            limitTasks(index, .limit, now) { progress in
                defer { isFound = isFound || progress.advanced == rank.advanced }
                return !isFound && progress.advanced == rank.advanced
            }
            touch(index)
            enter(index, ranks(index))
        }
    }

    /// `nil`: the app has none in the background.
    @inline(__always)
    func continuedRank(_ stored: RunStorage, _ execution: Execution) -> ContinuedRank? {
        if stored.run.assertions.isEmpty { return nil }
        switch execution {
        case .enteringBackground, .background: return stored.run.assertions.continuedRank
        case .launching, .foreground, .suspending, .suspended, .waking, .terminating: return nil
        }
    }
}

extension Assertion {
    /// The background time does not limit it.
    var isContinued: Bool { progress?.continuation == .yes }

    /// When a continued task expires if it makes no progress; `nil`: never, or not while the background time of its app is unlimited.
    /// - Parameter time: `TaskProgressSec=`.
    func stalls(_ budget: BackgroundBudget, _ time: Duration?) -> Instant? {
        guard budget != .idle, let progress, let time else { return nil }
        return progress.advanced + time
    }

    /// Only work that is done is progress. The app lives: the task has not ended while there was no daemon.
    fileprivate mutating func record(_ report: TaskProgress, _ now: Instant) {
        if isDoubtful { (isDoubtful, end) = (false, nil) }
        var progress = self.progress ?? OpenProgress(report: report, advanced: now, published: .origin)
        if report.done > progress.report.done { progress.advanced = now }
        let title = report.title.isEmpty ? progress.report.title : report.title
        progress.report = report
        progress.report.title = title
        self.progress = progress
    }

    fileprivate mutating func continueIfPossible() {
        guard let progress, progress.continuation == .no, isOfUser, !isCancelled, !progress.report.title.isEmpty else {
            return
        }
        self.progress?.continuation = .yes
    }

    /// What observers are notified of now; `nil`: nothing.
    fileprivate mutating func publish(_ now: Instant) -> TaskProgress? {
        guard let progress,
            progress.published == .origin || now - progress.published >= LifecycleCore.progressInterval
        else { return nil }
        self.progress?.published = now
        return progress.report
    }
}

extension AssertionList {
    var continuedCount: Int { all.count(where: \.isContinued) }
    var hasContinuedTasks: Bool { all.contains(where: \.isContinued) }
    /// Tasks that the background time limits.
    var hasLimitedTasks: Bool { all.contains { $0.isTask && !$0.isContinued } }
    var limitedTaskNames: [String] { all.compactMap { $0.isContinued ? nil : $0.taskName } }

    var continuedRank: ContinuedRank? {
        var rank: ContinuedRank?
        for task in all where task.isContinued {
            guard let advanced = task.progress?.advanced else { continue }
            rank = ContinuedRank(advanced: min(rank?.advanced ?? advanced, advanced), count: (rank?.count ?? 0) + 1)
        }
        return rank
    }
}
