import LifecycleCore
import Schedule

/// A day of a handheld: its apps, and what its user and its servers do.
struct DayScenario {
    struct App {
        let id: AppID
        /// What it has allocated once it runs, in bytes.
        let size: UInt64
        var policy = AppPolicy()
        var timers = TimerSettings()
        /// How long it works for a wake.
        var work: Microseconds = 2 * .second

        init(_ name: String, megabytes: UInt64, _ modes: BackgroundModes = []) {
            guard let id = AppID(name) else { preconditionFailure("\(name) is no name of an app") }
            self.id = id
            size = megabytes << 20
            policy.backgroundModes = modes
            policy.hasTimers = true
        }
    }

    enum Step {
        case unlock, lock
        case open(Int)
        case push(Int)
        /// An app begins a mode, or ends it.
        case mode(Int, BackgroundModes, isOn: Bool)
        /// The machine sleeps for so long.
        case sleep(Microseconds)
    }

    private enum Name: Int { case music, chat, maps, game, notes }

    static let minute = 60 * Microseconds.second
    static let total: UInt64 = 4 << 30
    /// What everything beside the apps uses.
    static let others: UInt64 = 1200 << 20
    /// From midnight on: when the day begins and ends.
    static let start = 390 * minute
    static let end = start + 24 * 60 * minute

    var apps = [
        App("music", megabytes: 150, .audio), App("chat", megabytes: 280, [.push, .fetch]),
        App("maps", megabytes: 700, .location), App("game", megabytes: 1800), App("notes", megabytes: 120),
    ]
    private(set) var steps: [(at: Microseconds, step: Step)] = []

    init() {
        apps[1].timers.fetchInterval = 30 * 60 * CalendarEvent.second
        apps[4].timers.calendar = [CalendarEvent("*-*-* 03,13:00 UTC")].compactMap { $0 }
        apps[4].work = 20 * .second
        // Two ways with the screen locked: one with music and navigation, the other with music alone.
        stay(7, 40, minutes: 2, [.music], in: .audio, for: 49)
        stay(7, 44, minutes: 3, [.maps], in: .location, for: 35)
        stay(17, 30, minutes: 2, [.music], in: .audio, for: 39)
        for hour in [7, 9, 10, 13, 15, 18, 19, 22] { stay(hour, 10, minutes: 3, [.chat]) }
        for hour in [9, 11, 14, 16] { stay(hour, 40, minutes: 4, [.notes, .chat]) }
        stay(12, 20, minutes: 25, [.game])
        stay(20, 0, minutes: 55, [.game])
        // No server reaches the machine while it sleeps.
        for number in 0..<66 { add(.push(Name.chat.rawValue), at: 425 + 15 * number) }
        add(.sleep(7 * 60 * Self.minute), at: 23 * 60 + 30)
    }

    private mutating func add(_ step: Step, at minute: Int, and second: Microseconds = 0) {
        steps.append((Microseconds(minute) * Self.minute + second * .second, step))
    }

    /// The user unlocks the screen, opens apps one after the other, and locks the screen. The last app may stay in a mode.
    private mutating func stay(
        _ hour: Int, _ minute: Int, minutes: Int, _ names: [Name], in mode: BackgroundModes? = nil, for time: Int = 0
    ) {
        let start = hour * 60 + minute
        add(.unlock, at: start)
        for (number, name) in names.enumerated() {
            add(.open(name.rawValue), at: start + number * minutes / names.count, and: 1)
            guard let mode else { continue }
            add(.mode(name.rawValue, mode, isOn: true), at: start + 1)
            add(.mode(name.rawValue, mode, isOn: false), at: start + 1 + time)
        }
        add(.lock, at: start + minutes)
    }
}
