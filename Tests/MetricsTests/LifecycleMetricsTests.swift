import Control
import Glibc
import Metrics
import Testing

@Suite("Counters of lifecycle events")
struct LifecycleMetricsTests {
    /// Microseconds of CLOCK_MONOTONIC.
    private static let start: UInt64 = 1_000_000_000

    private static func event(
        _ kind: LifecycleEvent.Kind, _ app: String = "a", at seconds: Double = 0,
        _ set: (inout LifecycleEvent) -> Void = { _ in }
    ) -> LifecycleEvent {
        var event = LifecycleEvent(kind, app: app)
        event.monotonic = start + UInt64(seconds * 1e6)
        // The system clock steps back with each event.
        event.time = Timestamp(microseconds: 2 * start - UInt64(seconds * 1e6))
        set(&event)
        return event
    }

    private static func change(
        _ from: String, _ to: String, _ reason: String, _ app: String = "a", at seconds: Double, took: Duration? = nil
    ) -> LifecycleEvent {
        event(.stateChanged, app, at: seconds) {
            ($0.previousState, $0.state, $0.reason, $0.took) = (from, to, reason, took)
        }
    }

    private static func deadline(
        _ kind: LifecycleEvent.Kind, _ what: String, at seconds: Double, wake: UInt64? = nil,
        _ set: (inout DeadlineStatus) -> Void = { _ in }
    ) -> LifecycleEvent {
        event(kind, at: seconds) {
            var status = DeadlineStatus()
            status.what = what
            set(&status)
            $0.deadline = status
            $0.wake = wake
        }
    }

    private static func snapshot(_ apps: [(id: String, state: String)]) -> Snapshot {
        var snapshot = Snapshot()
        snapshot.apps = apps.map { app in
            var status = AppStatus()
            status.id = app.id
            status.state = app.state
            status.memoryBytes = 100
            status.swappedBytes = 40
            if app.state == "suspended" { status.savedBytes = 40 }
            return Snapshot.App(status)
        }
        return snapshot
    }

    /// The samples after these events, without comments.
    private func samples(
        _ events: [LifecycleEvent], _ apps: [(id: String, state: String)] = [("a", "active")], at seconds: Double = 100
    ) -> Set<String> {
        var metrics = LifecycleMetrics()
        for event in events { metrics.count(event, now: 0) }
        let now = Self.start + UInt64(seconds * 1e6)
        let snapshot = Self.snapshot(apps)
        metrics.update(snapshot, now: now)
        return Self.lines(metrics.exposition(.prometheus, snapshot, now: now))
    }

    private static func lines(_ text: [UInt8]) -> Set<String> {
        Set(String(decoding: text, as: UTF8.self).split(separator: "\n").filter { $0.first != "#" }.map { String($0) })
    }

    @Test("launches, suspensions, wakes and the time in suspension are counted, whatever the system clock does")
    func lifecycle() {
        let found = samples(
            [
                Self.change("notRunning", "launching", "launched", at: 1),
                Self.change("launching", "active", "ready", at: 1.2),
                Self.change("active", "background", "requested", at: 2),
                Self.change("background", "suspended", "idle", at: 3, took: .microseconds(300)),
                Self.deadline(.deadlineStarted, "thaw", at: 13) { $0.allowed = .seconds(5) },
                Self.change("suspended", "background", "woken", at: 13),
                Self.event(.inputArrived, at: 13),
                Self.deadline(.deadlineMet, "thaw", at: 13.002) { $0.wall = .milliseconds(2) },
                Self.event(.freezeTakesLong, at: 22),
                Self.change("background", "suspended", "idle", at: 23, took: .seconds(3)),
                Self.change("suspended", "background", "requested", at: 25),
                Self.change("background", "suspended", "idle", at: 90),
            ], [("a", "suspended")])
        for line in [
            "greenroom_app_launch_duration_seconds_bucket{outcome=\"done\",le=\"0.1\"} 0",
            "greenroom_app_launch_duration_seconds_bucket{outcome=\"done\",le=\"0.25\"} 1",
            "greenroom_app_suspend_duration_seconds_sum{outcome=\"done\"} 0.0003",
            "greenroom_app_suspend_duration_seconds_count{outcome=\"done\"} 1",
            "greenroom_app_suspend_duration_seconds_count{outcome=\"late\"} 1",
            "greenroom_app_wake_duration_seconds_sum{outcome=\"done\"} 0.002",
            "greenroom_app_suspended_seconds_total{app=\"a\"} 22",
            "greenroom_app_wakes_total{app=\"a\",reason=\"input\"} 1",
            "greenroom_app_wakes_total{app=\"a\",reason=\"requested\"} 1",
            "greenroom_app_deadline_margin_seconds_sum{deadline=\"thaw\"} 4.998",
            "greenroom_apps{state=\"suspended\"} 1", "greenroom_app_memory_saved_bytes{app=\"a\"} 40",
        ] { #expect(found.contains(line), "\(line) is not in \(found.sorted())") }
    }

    @Test(
        "missed deadlines, kills by reason, the time until their memory is free, and margins of several wakes are counted"
    )
    func deadlines() {
        let found = samples([
            Self.deadline(.deadlineStarted, "wake", at: 1, wake: 1) { $0.allowed = .seconds(30) },
            Self.deadline(.deadlineStarted, "wake", at: 2, wake: 2) { $0.allowed = .seconds(20) },
            Self.deadline(.deadlineExtended, "launch", at: 2) { $0.extended = .seconds(20) },
            Self.deadline(.deadlineMet, "wake", at: 5, wake: 2) { $0.wall = .seconds(3) },
            Self.deadline(.deadlineMissed, "wake", at: 31, wake: 1),
            Self.change("background", "terminating", "missedDeadline", at: 31),
            Self.event(.ended, at: 31.1) { ($0.namespace, $0.code) = ("watchdog", "0x2182bad4") },
            Self.change("terminating", "notRunning", "ended", at: 31.2, took: .milliseconds(200)),
            Self.change("notRunning", "launching", "launched", at: 40),
            Self.change("launching", "terminating", "missedDeadline", at: 45),
            Self.event(.ended, at: 45) { ($0.namespace, $0.code) = ("watchdog", "0x8badf00d") },
            Self.change("notRunning", "launching", "launched", at: 50),
            Self.event(.ended, at: 51) { ($0.namespace, $0.code) = ("exit", "0") },
            Self.change("launching", "notRunning", "ended", at: 51),
            Self.event(.hookFailed, at: 52), Self.event(.hookKilled, at: 53),
            Self.event(.hookKilled, at: 54),
        ])
        for line in [
            "greenroom_app_hook_failures_total{app=\"a\",reason=\"failed\"} 1",
            "greenroom_app_hook_failures_total{app=\"a\",reason=\"killed\"} 2",
            "greenroom_app_deadlines_missed_total{app=\"a\",deadline=\"wake\"} 1",
            "greenroom_app_deadline_margin_seconds_sum{deadline=\"wake\"} 17",
            "greenroom_app_kills_total{app=\"a\",reason=\"wakeNotCompleted\"} 1",
            "greenroom_app_kills_total{app=\"a\",reason=\"missedDeadline\"} 1",
            "greenroom_app_kill_to_free_seconds_sum 0.2",
            "greenroom_app_launch_duration_seconds_sum{outcome=\"missed\"} 5",
            "greenroom_app_launch_duration_seconds_sum{outcome=\"cancelled\"} 1",
        ] { #expect(found.contains(line), "\(line) is not in \(found.sorted())") }
        #expect(found.count { $0.hasPrefix("greenroom_app_kills_total") } == 2)
    }

    @Test("what an app saves is that of its status, and not known of a suspended one that was not measured")
    func saved() {
        func saved(_ state: String, _ bytes: UInt64?) -> UInt64? {
            var status = AppStatus()
            (status.state, status.savedBytes) = (state, bytes)
            return Snapshot.App(status).saved
        }
        #expect(saved("notRunning", 7) == 7 && saved("suspended", 9) == 9)
        #expect(saved("notRunning", nil) == 0 && saved("active", nil) == 0 && saved("suspended", nil) == nil)
        var snapshot = Self.snapshot([("a", "notRunning"), ("b", "suspended")])
        (snapshot.apps[0].saved, snapshot.apps[1].saved) = (7, nil)
        var metrics = LifecycleMetrics()
        metrics.update(snapshot, now: 0)
        let found = Self.lines(metrics.exposition(.prometheus, snapshot, now: 0)).filter { $0.contains("saved_bytes") }
        #expect(found == ["greenroom_app_memory_saved_bytes{app=\"a\"} 7"])
    }

    @Test("of 10,000 apps 2,000 have series of their own, and the others are summed")
    func bound() {
        var metrics = LifecycleMetrics()
        let names = (0..<10_000).map { "app\($0)" }
        for name in names { metrics.count(Self.change("suspended", "active", "requested", name, at: 1), now: 0) }
        let snapshot = Self.snapshot(names.map { ($0, "active") })
        metrics.update(snapshot, now: 0)
        let found = Self.lines(metrics.exposition(.prometheus, snapshot, now: 0))
        #expect(found.contains("greenroom_app_wakes_total{app=\"(other)\",reason=\"requested\"} 8000"))
        #expect(found.contains("greenroom_app_memory_footprint_bytes{app=\"(other)\"} 800000"))
        #expect(found.contains("greenroom_exporter_apps_in_other 8000"))
        #expect(found.count { $0.hasPrefix("greenroom_app_wakes_total") } == LifecycleMetrics.mostApps + 1)
        #expect(found.count < 15_000)
    }

    @Test("the series of an app that does not exist any more end, and another app gets them")
    func removed() {
        var metrics = LifecycleMetrics()
        metrics.count(Self.change("suspended", "active", "requested", "old", at: 1), now: 0)
        metrics.update(Self.snapshot([("new", "active")]), now: 0)
        let found = Self.lines(metrics.exposition(.prometheus, nil, now: 0))
        #expect(!found.contains { $0.contains("old") })
        #expect(found.contains("greenroom_app_suspended_seconds_total{app=\"new\"} 0"))
        #expect(found.contains("greenroom_up 0"))
    }

    @Test("words that this version does not know make no new series")
    func words() {
        let found = samples(
            (0..<100).flatMap { number in
                [
                    Self.change("suspended", "active", "reason\(number)", at: 1),
                    Self.deadline(.deadlineMissed, "deadline\(number)", at: 1),
                    Self.event(.ended) { ($0.namespace, $0.code) = ("new", "\(number)") },
                ]
            })
        for line in [
            "greenroom_app_wakes_total{app=\"a\",reason=\"other\"} 100",
            "greenroom_app_deadlines_missed_total{app=\"a\",deadline=\"other\"} 100",
            "greenroom_app_kills_total{app=\"a\",reason=\"other\"} 100",
        ] { #expect(found.contains(line), "\(line) is not in \(found.sorted())") }
    }

    @Test("after missed events nothing is counted that began before, and a suspended app counts from then on")
    func gap() {
        var metrics = LifecycleMetrics()
        metrics.count(Self.change("background", "suspended", "idle", at: 0), now: 0)
        metrics.countGap()
        metrics.update(Self.snapshot([("a", "suspended")]), now: Self.start + 50_000_000)
        metrics.count(Self.change("suspended", "background", "woken", at: 60), now: 0)
        let found = Self.lines(metrics.exposition(.prometheus, nil, now: Self.start + 70_000_000))
        #expect(found.contains("greenroom_app_suspended_seconds_total{app=\"a\"} 10"), "\(found.sorted())")
        #expect(found.contains("greenroom_exporter_event_gaps_total 1"))
    }

    @Test("the answer about an app that is older than its last event changes nothing")
    func oldAnswer() {
        let found = samples([Self.change("suspended", "background", "woken", at: 1)], [("a", "suspended")])
        #expect(found.contains("greenroom_app_suspended_seconds_total{app=\"a\"} 0"))
    }

    @Test("docs/METRICS.md has each family with its type and labels, and no others")
    func documented() throws {
        let rows = try Self.lines(of: "docs/METRICS.md").filter { $0.hasPrefix("| `greenroom_") }
            .map { $0.split(separator: "|").prefix(3).joined(separator: "|") }
        #expect(
            rows
                == Metric.allCases.map { metric in
                    let labels = metric.description.labels.map { "`\($0)`" }.joined(separator: ", ")
                    let cell = labels.isEmpty ? " " : " \(labels) "
                    return " `\(metric.sampleName)` | \(metric.description.kind.rawValue) |\(cell)"
                })
    }

    @Test("the dashboard asks for metrics that there are")
    func dashboard() throws {
        let suffixes = ["", "_bucket", "_sum", "_count"]
        let known = Set(Metric.allCases.flatMap { metric in suffixes.map { metric.sampleName + $0 } })
        var asked: Set<String> = []
        for line in try Self.lines(of: "docs/examples/greenroom-dashboard.json") where line.contains("\"expr\"") {
            let words = line.split { !($0.isLetter || $0 == "_") }.map { String($0) }
            asked.formUnion(words.filter { $0.hasPrefix("greenroom_") })
        }
        #expect(asked.count > 10)
        #expect(asked.subtracting(known) == [])
    }

    /// - Parameter path: in the source tree.
    private static func lines(of path: String) throws -> [String] {
        let root = #filePath.split(separator: "/").dropLast(3).map { "/" + $0 }.joined()
        let file = try #require(fopen("\(root)/\(path)", "r"))
        defer { fclose(file) }
        var lines: [String] = []
        var buffer = [CChar](repeating: 0, count: 4096)
        while fgets(&buffer, Int32(buffer.count), file) != nil {
            lines.append(String(decoding: buffer.prefix { $0 != 0 }.map { UInt8(bitPattern: $0) }, as: UTF8.self))
        }
        return lines
    }
}
