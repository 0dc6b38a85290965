package import Control

/// The keys by which apps are sorted, in the order of `s`.
package enum SortKey: String, CaseIterable, Sendable {
    case name, state, memory, resident, swapped, saved, cpu, wakes, left
}

/// The apps, which of them are shown and in which order, and which one is selected. It does no I/O and reads no clock.
package struct TopModel: Sendable {
    /// The states, those in which an app uses the machine most first.
    package static let states = [
        "active", "inactive", "launching", "background", "suspended", "terminating", "notRunning",
    ]

    package private(set) var apps: [String: AppRow] = [:]
    /// The IDs of the apps that are shown, in their order.
    package private(set) var shown: [String] = []
    package private(set) var selected: String?
    /// The position of the selected app in `shown`; 0 where none is shown.
    package private(set) var position = 0
    /// How many apps are in each state, in the order of `states`.
    package private(set) var counts: [(state: String, count: Int)] = []
    package var memory = MemoryStatus()

    package var sort = SortKey.state { didSet { arrange() } }
    package var isReversed = false { didSet { arrange() } }
    /// Apps whose ID, name or state contains this text are shown, whatever the case.
    package var filter = "" { didSet { arrange() } }

    package init() {}

    package var selectedRow: AppRow? { selected.flatMap { apps[$0] } }

    // MARK: What the daemon says

    /// Takes the list of all apps.
    package mutating func replace(_ list: [AppStatus], at now: Duration, processor: [String: Double] = [:]) {
        var next: [String: AppRow] = [:]
        next.reserveCapacity(list.count)
        for status in list { next[status.id] = AppRow(status, received: now, processor: processor[status.id]) }
        apps = next
        arrange()
    }

    /// Takes the record of one app, which the list already has. The caller calls `arrange` after the last one.
    package mutating func update(_ status: AppStatus, at now: Duration) {
        guard let old = apps[status.id] else { return }
        let isFrozen = status.state == "suspended" || status.state == "notRunning"
        apps[status.id] = AppRow(status, received: now, processor: isFrozen ? nil : old.processor)
    }

    /// Takes an event. The caller calls `arrange` after the last one.
    /// - Returns: the app whose record it has changed.
    package mutating func apply(_ event: LifecycleEvent, at now: Duration) -> String? {
        guard let id = event.app, apps[id] != nil else { return nil }
        if event.kind == LifecycleEvent.Kind.stateChanged.rawValue, let state = event.state {
            apps[id]?.enter(state, since: event.time, at: now)
        }
        return id
    }

    /// Counts, filters and sorts again.
    package mutating func arrange() {
        var found: [String: Int] = [:]
        for app in apps.values { found[app.status.state, default: 0] += 1 }
        counts = Self.states.compactMap { state in found[state].map { (state, $0) } }
        shown = apps.values.filter(isShown).map { (key: key($0), id: $0.status.id) }
            .sorted { a, b in
                if a.key != b.key { return (a.key < b.key) != isReversed }
                return a.id < b.id
            }
            .map(\.id)
        if sort == .name, isReversed { shown.reverse() }
        select(nearest: selected.flatMap { shown.firstIndex(of: $0) } ?? position)
    }

    private func isShown(_ app: AppRow) -> Bool {
        if filter.isEmpty { return true }
        let text = filter.lowercased()
        return [app.status.id, app.status.name, app.status.state].contains { $0.lowercased().contains(text) }
    }

    /// The number that an app is sorted by: the smallest first. Apps with the same one are sorted by their IDs.
    private func key(_ app: AppRow) -> Double {
        switch sort {
        case .name: 0
        case .state: Double(Self.states.firstIndex(of: app.status.state) ?? Self.states.count)
        // The largest first; apps without a value last.
        case .memory: app.isRunning ? -Double(app.status.memoryBytes) : 1
        case .resident: app.status.residentBytes.map { -Double($0) } ?? 1
        case .swapped: app.status.swappedBytes.map { -Double($0) } ?? 1
        case .saved: app.status.savedBytes.map { -Double($0) } ?? 1
        case .cpu: app.processor.map { -$0 } ?? 1
        case .wakes: app.status.trafficWakes.map { -Double($0) } ?? 1
        case .left: app.nearestEnd.map { $0 / .seconds(1) } ?? .infinity
        }
    }

    // MARK: Lines

    /// How many lines of the table all apps that are shown take.
    package var lines: Int { shown.reduce(0) { $0 + (apps[$1]?.lines ?? 1) } }

    /// The first app of as many as so many lines have room for, if the last one is at `position`.
    func first(showing position: Int, in visible: Int) -> Int {
        guard shown.indices.contains(position) else { return 0 }
        var first = position
        var left = visible - (apps[shown[position]]?.lines ?? 1)
        while first > 0 {
            left -= apps[shown[first - 1]]?.lines ?? 1
            if left < 0 { break }
            first -= 1
        }
        return first
    }

    // MARK: The selection

    /// Moves the selection; it stops at the ends.
    package mutating func move(by count: Int) { select(nearest: position + count) }

    private mutating func select(nearest wanted: Int) {
        position = max(0, min(wanted, shown.count - 1))
        selected = shown.indices.contains(position) ? shown[position] : nil
    }
}
