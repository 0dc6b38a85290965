package import Control

/// What the daemon has answered about all apps and itself.
package struct Snapshot {
    /// What the metrics need of an `AppStatus`, which has much more.
    package struct App {
        package var id: String
        package var state: String
        package var footprint: UInt64
        package var resident: UInt64?
        package var swapped: UInt64?
        package var saved: UInt64?

        package init(_ status: AppStatus) {
            id = status.id
            state = status.state
            footprint = status.memoryBytes
            resident = status.residentBytes
            swapped = status.swappedBytes
            saved = status.savedBytes ?? (state == "suspended" ? nil : 0)
        }
    }

    package var apps: [App] = []
    package var memory = MemoryStatus()
    package var loopTurns: UInt64?
    /// Microseconds.
    package var longestTurn: UInt64?
    /// How long the daemon took to answer.
    package var queryTime = Duration.zero

    package init() {}
}

extension LifecycleMetrics {
    /// The text of a scrape.
    /// - Parameters:
    ///   - snapshot: `nil`: the daemon does not answer. Counters are known nevertheless.
    ///   - now: microseconds of CLOCK_MONOTONIC.
    package func exposition(_ format: ExpositionFormat, _ snapshot: Snapshot?, now: UInt64) -> [UInt8] {
        var text = Exposition(format)
        text.begin(.up)
        text.add(snapshot == nil ? 0 : 1)
        addHistograms(&text)
        addCounters(&text, now: now)
        if let snapshot {
            addApps(&text, snapshot)
            addDaemon(&text, snapshot)
        }
        text.begin(.eventGaps)
        text.add(Double(gaps))
        text.finish()
        return text.bytes
    }

    private func addHistograms(_ text: inout Exposition) {
        let families: [(Metric, String, [String: Histogram])] = [
            (.launchDuration, "outcome", launches), (.suspendDuration, "outcome", suspensions),
            (.wakeDuration, "outcome", thaws), (.deadlineMargin, "deadline", margins),
        ]
        for (metric, label, histograms) in families {
            text.begin(metric)
            for (value, histogram) in histograms.sorted(by: { $0.key < $1.key }) {
                text.add([(label, value)], histogram)
            }
        }
        text.begin(.killToFree)
        text.add(killsToFree)
    }

    private func addCounters(_ text: inout Exposition, now: UInt64) {
        let all = counters(now: now)
        text.begin(.suspendedSeconds)
        for (app, counters) in all { text.add([("app", app)], counters.suspended) }
        let families: [(Metric, String, KeyPath<AppCounters, [String: UInt64]>)] = [
            (.wakes, "reason", \.wakes), (.deadlinesMissed, "deadline", \.deadlinesMissed), (.kills, "reason", \.kills),
            (.hookFailures, "reason", \.hookFailures),
        ]
        for (metric, label, path) in families {
            text.begin(metric)
            for (app, counters) in all {
                for (value, count) in counters[keyPath: path].sorted(by: { $0.key < $1.key }) {
                    text.add([("app", app), (label, value)], Double(count))
                }
            }
        }
    }

    private func addApps(_ text: inout Exposition, _ snapshot: Snapshot) {
        text.begin(.apps)
        for state in LabelWords.states {
            text.add([("state", state)], Double(snapshot.apps.count { $0.state == state }))
        }
        let families: [(Metric, (Snapshot.App) -> UInt64?)] = [
            (.footprint, \.footprint), (.resident, \.resident), (.swapped, \.swapped), (.saved, \.saved),
        ]
        for (metric, value) in families {
            text.begin(metric)
            var others: UInt64?
            for app in snapshot.apps {
                guard let bytes = value(app) else { continue }
                if hasOwnSeries(app.id) {
                    text.add([("app", app.id)], Double(bytes))
                } else {
                    others = (others ?? 0) + bytes
                }
            }
            if let others { text.add([("app", Self.otherApps)], Double(others)) }
        }
        text.begin(.appsInOther)
        text.add(Double(snapshot.apps.count { !hasOwnSeries($0.id) }))
    }

    private func addDaemon(_ text: inout Exposition, _ snapshot: Snapshot) {
        text.begin(.memoryLevel)
        text.add(Double(["normal", "warning", "critical"].firstIndex(of: snapshot.memory.level) ?? 0))
        text.begin(.memoryAvailable)
        text.add(Double(snapshot.memory.availableBytes))
        text.begin(.memoryOfApps)
        text.add(Double(snapshot.memory.appsBytes))
        if let turns = snapshot.loopTurns {
            text.begin(.loopTurns)
            text.add(Double(turns))
        }
        if let longest = snapshot.longestTurn {
            text.begin(.longestTurn)
            text.add(Double(longest) / 1e6)
        }
        text.begin(.queryDuration)
        text.add(snapshot.queryTime / .seconds(1))
    }
}
