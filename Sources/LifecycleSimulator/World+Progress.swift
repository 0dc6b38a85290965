import LifecycleCore

/// Apps that report the progress of their tasks, and users who cancel some (L21). They have a random stream of their own.
struct FakeProgress {
    var random: Random
    /// Apps report progress in this seed.
    let isReported: Bool

    init(_ scenario: Scenario) {
        // A number that leaves the worlds of the saved seeds as they were.
        var random = Random(seed: scenario.seed ^ 0x7072_6f67_78e0)
        let isDrawn = random.chance(150)
        isReported = isDrawn && scenario.storm == nil
        self.random = random
    }
}

extension World {
    mutating func limitProgress(of index: Int) {
        guard progress.isReported else { return }
        apps[index].policy.taskProgressTime = progress.random.pick([
            .seconds(5), .seconds(5), .seconds(30), .seconds(90), .milliseconds(1), .zero,
        ])
        // Not much time is allowed beside that of continued tasks.
        if progress.random.chance(700) {
            apps[index].policy.backgroundTime = progress.random.pick([.seconds(1), .seconds(5)])
        }
    }

    mutating func limitContinuedTasks() {
        guard progress.isReported else { return }
        manager.continuedTasks = progress.random.pick([4, 4, 4, 1, 0, nil])
    }

    /// A user begins something in the foreground, which the app does not end with its other tasks.
    mutating func beginExport(_ run: Int) {
        guard progress.isReported, !isQuiet, runs[run].exports.count < 3, progress.random.chance(500) else { return }
        let name = "export-\(runs[run].exports.count)"
        runs[run].exports.append(name)
        send(run, .run(runs[run].id, .task(.began(name: name, owner: runs[run].pid))))
        reportProgress(run, name)
    }

    mutating func endExports(_ run: Int) {
        for name in runs[run].exports { send(run, .run(runs[run].id, .task(.ended(name: name)))) }
        runs[run].exports = []
    }

    /// A task begins: it may advance for a while, stall, and report less than before.
    mutating func planProgress(_ run: Int, _ task: String) {
        if progress.isReported, progress.random.chance(600) { reportProgress(run, task) }
    }

    private mutating func reportProgress(_ run: Int, _ task: String) {
        var (time, done): (Microseconds, UInt64) = (0, 0)
        let longest: Microseconds = progress.random.pick([50 * .millisecond, 4 * .second, 28 * .second, 40 * .second])
        for _ in 0..<progress.random.within(1...6) {
            time += progress.random.within(0...longest)
            done = progress.random.chance(850) ? done + UInt64(progress.random.below(9)) : done / 2
            let title = progress.random.chance(900) ? "Exporting" : ""
            guard let report = TaskProgress(done: done, total: 100, title: title) else { return }
            plan(.send(.run(runs[run].id, .task(.progressed(name: task, report)))), by: run, after: time)
        }
    }

    /// Whether an app would report the progress of a task that it has ended, when the end may have been lost with a daemon: nothing
    /// ends the task of a worker that does.
    func isOfLostEnd(_ event: Event, _ run: Int) -> Bool {
        guard case .run(_, .task(.progressed(let name, _))) = event, runs[run].hasLostMessages else { return false }
        return !runs[run].openTasks.contains(name) && !runs[run].exports.contains(name)
    }

    mutating func cancelTask() {
        guard progress.isReported, progress.random.chance(200) else { return }
        let app = progress.random.below(progress.random.chance(500) ? min(2, apps.count) : apps.count)
        let open = runs.last { $0.app == app }?.openTasks.last
        lastRequest += 1
        deliver(.requested(RequestID(lastRequest), apps[app].id, .cancelTask(name: open ?? "sync")), after: 0)
    }
}
