import LifecycleCore

/// The table of `greenroom-sim day`.
package struct DayTable {
    package private(set) var lines: [String] = []

    package init() {
        let day = DaySimulation()
        add(["app", "launches", "foreground", "background", "suspended", "asleep", "kills", "woken by"])
        for app in day.apps {
            let foreground = (app.times[.active] ?? 0) + (app.times[.inactive] ?? 0)
            let (background, suspended) = (app.times[.background] ?? 0, app.times[.suspended] ?? 0)
            let share = suspended * 1000 / max(1, foreground + background + suspended)
            let causes = DaySimulation.Cause.allCases.compactMap { cause in app.wakes[cause].map { "\(cause) \($0)" } }
            add([
                app.settings.id.name, "\(app.launches)", Self.text(foreground), Self.text(background),
                Self.text(suspended), "\(share / 10).\(share % 10)%", "\(app.kills)", causes.joined(separator: ", "),
            ])
        }
        let awake = Self.text(DayScenario.end - DayScenario.start - day.slept)
        lines += ["", "The machine was awake for \(awake), and slept for \(Self.text(day.slept))."]
    }

    private mutating func add(_ columns: [String]) {
        let cells = zip(columns, [0, 14, 12, 12, 13, 8, 7, 0]).enumerated().map { number, cell in
            let space = String(
                repeating: " ", count: max(0, cell.1 - cell.0.utf8.count - (number == 1 ? columns[0].utf8.count : 0)))
            return number == 7 ? "  " + cell.0 : space + cell.0
        }
        lines.append(cells.joined())
    }

    /// In whole seconds.
    private static func text(_ time: Microseconds) -> String {
        Duration.seconds((time + .second / 2) / .second).timeSpan
    }
}
