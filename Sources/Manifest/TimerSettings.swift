import LifecycleCore
import Schedule

/// The settings about timers and fetch (L30), with the names and the meaning of systemd.timer(5).
extension AppManifest {
    static func timerSettings(_ specifiers: Specifiers) -> [Setting<AppManifest>] {
        [
            Setting(section: "Wake", key: "OnCalendar", expected: CalendarEvent.expected) {
                manifest, text throws(ValueError) in
                guard let event = CalendarEvent(try specifiers.expanded(text)) else { throw ValueError() }
                try manifest.addTime { $0.calendar.append(event) }
            } reset: { manifest, _ in
                manifest.resetTimes()
            },
            span("OnUnitActiveSec", least: 1_000_000, \.sinceActive),
            span("OnBootSec", least: 0, \.sinceBoot),
            .flag("Wake", "Persistent", \.timers.isPersistent),
            .value("Wake", "AccuracySec", "a time span such as 1min, 1s or 1us", \.timers.accuracy) {
                microseconds($0).map { max(1, $0) }
            },
            .value("Wake", "RandomizedDelaySec", "a time span such as 1h", \.timers.randomizedDelay, microseconds),
            .value(
                "Wake", "FetchIntervalSec", "a time span of at least 1s such as 1h, or infinity",
                \.timers.fetchInterval
            ) { text -> Int?? in
                guard let span = parseTimeSpan(text) else { return nil }
                guard let span else { return .some(nil) }
                return span >= .seconds(1) ? .some(Int(span / .microseconds(1))) : nil
            },
        ]
    }

    /// `infinity` is never.
    private static func span(
        _ key: String, least: Int, _ path: WritableKeyPath<TimerSettings, [Int]>
    ) -> Setting<AppManifest> {
        let bound = least > 0 ? " of at least 1s" : ""
        return Setting(section: "Wake", key: key, expected: "a time span\(bound) such as 15min, 1h 30min or infinity") {
            manifest, text throws(ValueError) in
            guard let span = parseTimeSpan(text) else { throw ValueError() }
            guard let span else { return }
            let time = Int(span / .microseconds(1))
            guard time >= least else { throw ValueError() }
            try manifest.addTime { $0[keyPath: path].append(time) }
        } reset: { manifest, _ in
            manifest.resetTimes()
        }
    }

    private mutating func addTime(_ add: (inout TimerSettings) -> Void) throws(ValueError) {
        guard self.timers.count < TimerSettings.maximumTimes else {
            throw ValueError(problem: "more than \(TimerSettings.maximumTimes) times")
        }
        add(&self.timers)
    }

    /// As in systemd, an empty value of one of these settings removes the times of all.
    private mutating func resetTimes() {
        self.timers.calendar = []
        self.timers.sinceActive = []
        self.timers.sinceBoot = []
    }

    /// Whether its manifest says that the daemon wakes it for a fetch.
    var fetches: Bool { self.timers.fetchInterval != nil && policy.backgroundModes.contains(.fetch) }

    /// Warns of settings of timers that have no effect.
    func checkTimers(_ reader: SettingsReader<AppManifest>, _ file: String, _ diagnostics: inout DiagnosticList) {
        func warn(_ key: String, _ reason: String) {
            guard reader.assignedKeys.contains(key) else { return }
            diagnostics.warn(reader.locations[key] ?? .whole(file), "\(key)= has no effect: \(reason)")
        }
        if self.timers.fetchInterval != nil, !fetches {
            warn("FetchIntervalSec", "BackgroundModes= does not contain fetch")
        }
        if self.timers.calendar.isEmpty { warn("Persistent", "there is no OnCalendar=") }
        if !self.timers.hasTimers {
            warn("RandomizedDelaySec", "there is no OnCalendar=, OnUnitActiveSec= or OnBootSec=")
            if !fetches {
                warn("AccuracySec", "there is no OnCalendar=, OnUnitActiveSec=, OnBootSec= or FetchIntervalSec=")
            }
        }
    }
}

private func microseconds(_ text: String) -> Int? {
    guard let span = parseTimeSpan(text), let span else { return nil }
    return Int(span / .microseconds(1))
}
