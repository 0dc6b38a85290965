extension LifecycleCore {
    /// All apps, by name.
    package var appIDs: [AppID] { slots.keys.sorted() }

    /// Those in the foreground or on their way there, the longest ago activated first.
    package var foregroundApps: [AppID] { foregroundPlaces.map { self[app: $0].id } }

    package func app(of run: RunID) -> AppID? { runs[run].map { self[app: $0].id } }

    package func run(of app: AppID) -> RunID? { slots[app].flatMap { self[app: $0].run?.id } }

    package func state(of app: AppID) -> AppState? { slots[app].map { self[app: $0].phase.state } }

    /// Whether all have ended after `shutdownRequested`.
    package var isFinished: Bool { shutdown?.isFinished ?? false }

    package func view(of id: AppID, at now: Instant) -> AppView? {
        guard let slot = slots[id] else { return nil }
        let app = self[app: slot]
        return AppView(
            id: id, state: app.phase.state, run: app.run?.id, pid: app.run?.pid, since: app.since,
            memory: app.run?.memory ?? 0, tasks: taskViews(app, now), deadline: deadlineView(app, now),
            backgroundTimeRemaining: app.run.flatMap { backgroundTimeRemaining(app, $0, now) },
            isForeground: isInFront(slot), interruptions: app.run?.interruptions ?? 0,
            launches: app.launches, lastReceipt: app.lastReceipt,
            launchPostponed: app.postponedUntil.flatMap { $0 > now ? $0 - now : nil })
    }

    package var memory: MemoryView {
        MemoryView(
            level: memoryState.level, cause: memoryState.cause, total: memoryState.total,
            available: memoryState.available, apps: memoryState.apps, budget: manager.budget)
    }

    /// L24: infinite (`nil`) in the foreground.
    private func backgroundTimeRemaining(_ app: App, _ run: Run, _ now: Instant) -> Duration? {
        if run.isBackgroundTimeOver { return .zero }
        return run.backgroundTime?.remaining(at: now) ?? run.backgroundTimeLeft
    }

    private func taskViews(_ app: App, _ now: Instant) -> [AppView.Task] {
        guard let run = app.run else { return [] }
        let budget = backgroundTimeRemaining(app, run, now)
        return run.tasks.map { task in
            let own = task.end.map { max(.zero, $0 - now) }
            let remaining = [own, budget].compactMap { $0 }.min()
            return AppView.Task(name: task.name, age: now - task.began, remaining: remaining, owner: task.owner)
        }
    }

    /// The nearest of the deadlines that count for the app now.
    private func deadlineView(_ app: App, _ now: Instant) -> AppView.Deadline? {
        guard let run = app.run else { return nil }
        var all = [phaseDeadline(app.phase), run.wake?.deadline]
        if !run.tasks.isEmpty { all.append(run.backgroundTime) }
        return all.compactMap { $0 }.min { $0.end < $1.end }
            .map { AppView.Deadline(what: $0.kind, remaining: $0.remaining(at: now)) }
    }
}
