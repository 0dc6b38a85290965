import Control
import JSON
import LifecycleCore
import Timeline

/// What `savings` prints.
struct SavingsDocument {
    /// Sorted by the time asleep, the longest first.
    let apps: [(id: AppID, account: SleepAccount.App)]
    let span: Duration
    var problems: [String]

    /// - Parameter isShown: whether an app was asked for.
    init(_ account: SleepAccount, problems: [String], isShown: (AppID) -> Bool) {
        apps = account.apps.filter { isShown($0.key) }.map { ($0.key, $0.value) }
            .sorted { ($1.account.asleep, $0.id) < ($0.account.asleep, $1.id) }
        span = account.span
        self.problems = problems
    }

    func text(_ session: Session) -> String {
        guard !apps.isEmpty else { return "No app had a process in the recorded \(words(span)).\n" }
        var table = Table(
            ["APP", "ASLEEP", "OF", "SLEEPS", "IDLE MEMORY", "WOKEN BY"], right: [1, 2, 3, 4], flexible: [5])
        table.isReport = true
        table.rows = apps.map { app in
            [
                Cell(app.id.name), Cell(words(app.account.asleep)), Cell(words(app.account.running)),
                Cell(String(app.account.sleeps)), Cell(formattedSize(idle(app.account))),
                Cell(wakes(app.account.wakes)),
            ]
        }
        return table.text(session.screen) + "\n" + summary + dryRuns(session)
    }

    /// What apps with `Suspend=dry-run` would have slept (L58).
    private func dryRuns(_ session: Session) -> String {
        let apps = apps.compactMap { app in app.account.dryRun.map { (id: app.id, account: app.account, dryRun: $0) } }
        guard !apps.isEmpty else { return "" }
        var table = Table(
            ["APP", "WOULD SLEEP", "OF", "SLEEPS", "IDLE MEMORY", "PROCESSOR TIME", "WOKEN BY"],
            right: [1, 2, 3, 4, 5],
            flexible: [6])
        table.isReport = true
        table.rows = apps.map { app in
            [
                Cell(app.id.name), Cell(words(app.dryRun.asleep)), Cell(words(app.account.running)),
                Cell(String(app.dryRun.sleeps)), Cell(formattedSize(average(app.dryRun.idleMemory))),
                Cell(app.dryRun.processorTime.timeSpan), Cell(wakes(app.dryRun.wakes)),
            ]
        }
        return "\nWith Suspend=dry-run, in which nothing is frozen:\n"
            + table.text(session.screen) + apps.map { Self.missedInput(of: $0.id, $0.dryRun) }.joined()
    }

    /// The sentence about input that would have waited for the app; empty without such input.
    static func missedInput(of app: AppID, _ dryRun: SleepAccount.DryRun) -> String {
        let (missed, sleeps) = (dryRun.missedInputs, dryRun.sleeps)
        guard missed > 0 else { return "" }
        let which =
            sleeps == 1
            ? "its only sleep" : missed == sleeps ? "each of its \(sleeps) sleeps" : "\(missed) of its \(sleeps) sleeps"
        return
            "Input that would not have woken \(app.name) came in \(which), and would have waited: consider Traffic=yes.\n"
    }

    private var summary: String {
        let asleep = apps.reduce(Duration.zero) { $0 + $1.account.asleep }
        let running = apps.reduce(Duration.zero) { $0 + $1.account.running }
        let share = running > .zero ? Int(100 * (asleep / running)) : 0
        let idle = apps.reduce(UInt64(0)) { $0 + self.idle($1.account) }
        let ends = apps.reduce(0) { $0 + $1.account.ends }
        return
            "In \(words(span)), \(apps.count == 1 ? "1 app" : "\(apps.count) apps") slept for \(share)% of the time, "
            + "with \(formattedSize(idle)) of memory on average.\n"
            + (ends > 0 ? "\(ends) suspended \(ends == 1 ? "app was" : "apps were") ended to free memory.\n" : "")
    }

    /// The footprint of the app while it slept, as an average over the whole span, in bytes.
    private func idle(_ account: SleepAccount.App) -> UInt64 { average(account.idleMemory) }

    /// - Parameter sum: bytes times seconds.
    private func average(_ sum: Double) -> UInt64 {
        let seconds = span / .seconds(1)
        return seconds > 0 ? UInt64(sum / seconds) : 0
    }

    private func words(_ time: Duration) -> String { Duration.seconds(time.components.seconds).timeSpan }

    private func wakes(_ wakes: [String: Int]) -> String {
        wakes.sorted { ($1.value, $0.key) < ($0.value, $1.key) }.map { "\($0.key) \($0.value)" }
            .joined(separator: ", ")
    }

    private func seconds(_ time: Duration) -> JSONValue { .number(time / .seconds(1)) }

    private func json(_ wakes: [String: Int]) -> JSONValue {
        .object(wakes.sorted { $0.key < $1.key }.map { ($0.key, .integer(Int64($0.value))) })
    }

    private func json(_ dryRun: SleepAccount.DryRun) -> JSONValue {
        .object([
            ("asleepSeconds", seconds(dryRun.asleep)), ("sleeps", .integer(Int64(dryRun.sleeps))),
            ("idleMemoryBytes", .integer(Int64(clamping: average(dryRun.idleMemory)))),
            ("processorSeconds", seconds(dryRun.processorTime)), ("wakes", json(dryRun.wakes)),
            ("missedInputs", .integer(Int64(dryRun.missedInputs))),
        ])
    }

    var json: JSONValue {
        .object([
            ("spanSeconds", seconds(span)),
            (
                "apps",
                .array(
                    apps.map { app in
                        .object(
                            [
                                ("id", .string(app.id.name)), ("asleepSeconds", seconds(app.account.asleep)),
                                ("runningSeconds", seconds(app.account.running)),
                                ("sleeps", .integer(Int64(app.account.sleeps))),
                                ("idleMemoryBytes", .integer(Int64(clamping: idle(app.account)))),
                                ("wakes", json(app.account.wakes)),
                                ("endedForMemory", .integer(Int64(app.account.ends))),
                            ] + (app.account.dryRun.map { [("dryRun", json($0))] } ?? []))
                    })
            ),
            ("problems", .array(problems.map(JSONValue.string))),
        ])
    }
}
