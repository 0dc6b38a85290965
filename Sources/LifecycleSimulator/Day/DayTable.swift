import LifecycleCore

/// The table of `greenroom-sim day`.
package struct DayTable {
    package private(set) var lines: [String] = []

    /// - Parameter isTraced: each wake is listed first.
    package init(isTraced: Bool = false) {
        let day = DaySimulation()
        if isTraced {
            lines = day.wakes.map { wake in
                let name = day.apps[wake.app].settings.id.name
                let verb = wake.isLaunch ? "launched" : "woken"
                return "\(Self.clock(wake.time))  \(name) \(verb) by \(wake.cause), awake for \(Self.text(wake.cost))"
            }
            lines.append("")
        }
        add(["app", "launches", "foreground", "background", "suspended", "asleep", "kills", "woken by"])
        for app in day.apps {
            let foreground = (app.times[.active] ?? 0) + (app.times[.inactive] ?? 0)
            let (background, suspended) = (app.times[.background] ?? 0, app.times[.suspended] ?? 0)
            let share = suspended * 1000 / max(1, foreground + background + suspended)
            let wakes = day.wakes.filter { day.apps[$0.app].settings.id == app.settings.id }
            let causes = DaySimulation.Cause.allCases.compactMap { cause in
                let count = wakes.count { $0.cause == cause }
                return count == 0 ? nil : "\(cause) \(count)"
            }
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

    private static func clock(_ time: Microseconds) -> String {
        let minutes = time / DayScenario.minute
        return [minutes / 60 % 24, minutes % 60, time / .second % 60].map { $0 < 10 ? "0\($0)" : "\($0)" }
            .joined(separator: ":")
    }

    /// In whole seconds.
    private static func text(_ time: Microseconds) -> String {
        Duration.seconds((time + .second / 2) / .second).timeSpan
    }
}
