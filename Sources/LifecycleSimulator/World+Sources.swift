import LifecycleCore

/// What the sources of notifications read (L33): batteries that flap, readings that no app wants, and the same again and again.
struct FakeSources {
    /// The kinds that sources have; of the others clients alone send notifications.
    static let kinds = [
        "accessory", "battery", "display", "locale", "orientation", "proximity", "pushEndpoint", "settings",
        "time",
    ]
    var random: Random
    let isPresent: Bool
    /// The last reading of each kind.
    var readings: [String: Notification] = [:]

    init(_ scenario: Scenario) {
        random = Random(seed: scenario.seed ^ 0x73_6f75_7263_65)
        isPresent = random.chance(300)
    }

    /// A reading, often the same as before.
    mutating func read(_ kind: String) -> Notification? {
        if random.chance(300), let last = readings[kind] { return last }
        let reading = Notification(kind: kind, payload: ["on", "off", "dim"][random.below(3)])
        if kind != "time" { readings[kind] = reading }
        return reading
    }
}

extension World {
    mutating func addSources(to index: Int) {
        guard sources.isPresent else { return }
        apps[index].policy.notifications = NotificationKinds(
            rawValue: UInt16(sources.random.below(1 << Notification.kinds.count)))
    }

    /// A source reads something, for all apps or for one.
    mutating func actAsSource() {
        if isQuiet { return }
        queue.push(.source, at: now + sources.random.within(scenario.pace / 4...scenario.pace * 4))
        guard let reading = sources.read(sources.random.pick(FakeSources.kinds)) else { return }
        let app = apps[sources.random.below(apps.count)].id
        deliver(.observed(reading, of: ["pushEndpoint", "settings"].contains(reading.kind) ? app : nil), after: 0)
    }

    /// The daemon reports what the sources have read already to an app that wants to know it.
    mutating func subscribed(_ app: Int, _ kinds: NotificationKinds) {
        for name in FakeSources.kinds where NotificationKinds(named: name).map(kinds.contains) ?? false {
            guard let reading = sources.readings[name] else { continue }
            deliver(.observed(reading, of: apps[app].id), after: sources.random.within(0...1 * .millisecond))
        }
    }
}
