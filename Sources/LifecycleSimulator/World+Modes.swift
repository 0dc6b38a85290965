import LifecycleCore

/// Background modes (L28): apps that begin and end them, or never end them, and sources that show them, flap, lie and vanish. They
/// have a random stream of their own.
struct FakeModes {
    /// What is true of a run, whatever the daemon knows of it.
    struct Run {
        /// All that it has begun. It ends each of them once more in the end: a message may have been lost with a daemon.
        var begun: BackgroundModes = []
        var shown: BackgroundModes = []
        /// When the last report of its sources comes: they come in order.
        var lastReport: Microseconds = 0
        /// Neither it nor its sources ever end what has begun.
        var neverEnds = false
    }

    var random: Random
    /// Apps have modes in this seed.
    let areUsed: Bool
    var runs: [Run] = []

    init(_ scenario: Scenario) {
        // A number that leaves the worlds of the saved seeds as they were.
        var random = Random(seed: scenario.seed ^ 0x6d6f_6465_731f_9c6d)
        let isDrawn = random.chance(250)
        areUsed = isDrawn && scenario.storm == nil
        self.random = random
    }

    fileprivate static let all = BackgroundModes.named.map(\.mode)

    /// Some modes, those that no app can assert among them.
    fileprivate mutating func some() -> BackgroundModes {
        BackgroundModes(rawValue: UInt8(random.below(256)) & UInt8(random.below(256)))
    }

    /// One that the manifest declares, or at times any.
    fileprivate mutating func one(of declared: BackgroundModes) -> BackgroundModes {
        let candidates = Self.all.filter { BackgroundModes.assertable.intersection(declared).contains($0) }
        return candidates.isEmpty || random.chance(150) ? random.pick(Self.all) : random.pick(candidates)
    }
}

extension World {
    private enum ModeAction: Int { case begin, end, show, flap, lie, vanish, unused, inhibit }

    /// `BackgroundModes=`: some apps declare none.
    mutating func addModes(to index: Int) {
        guard modes.areUsed else { return }
        var declared = apps[index].policy.backgroundModes.subtracting(.assertable)
        if modes.random.chance(800) { declared.formUnion(modes.some().intersection(.assertable)) }
        if modes.random.chance(400) { declared.formUnion([.audio, .processing]) }
        apps[index].policy.backgroundModes = declared
    }

    mutating func spawnModes() {
        modes.runs.append(FakeModes.Run())
        modes.runs[modes.runs.count - 1].neverEnds = modes.areUsed && modes.random.chance(100)
    }

    /// Something happens to the modes of an app, at random intervals.
    mutating func actAsMode() {
        if isQuiet { return }
        queue.push(.mode, at: now + 1 + modes.random.within(0...2 * scenario.pace))
        let candidates = modes.random.chance(500) ? min(2, apps.count) : apps.count
        let app = modes.random.below(candidates)
        let drawn = ModeAction(rawValue: modes.random.weighted([30, 14, 12, 5, 4, 1, 6, 8]))
        // Of runs that are over, only sources that lie know.
        guard let run = apps[app].run, let drawn, drawn == .lie || !runs[run].delivered.isOver else { return }
        let declared = apps[app].policy.backgroundModes
        switch drawn {
        case .begin: planMode(run)
        case .end:
            plan(.endMode(modes.random.chance(700) ? modes.one(of: modes.runs[run].begun) : .audio), by: run, after: 0)
        case .show: show(modes.random.chance(500) ? modes.one(of: declared) : modes.some(), of: run, after: 0)
        case .flap: flap(run, modes.one(of: declared))
        case .lie: lie(run)
        case .vanish:
            for case let run? in apps.map(\.run) { if !modes.runs[run].shown.isEmpty { show([], of: run, after: 0) } }
        case .unused:
            deliver(.run(runs[run].id, .mode(.unused(modes.random.chance(500) ? modes.some() : []))), after: 0)
        case .inhibit:
            let inhibitor = modes.random.pick(["sleep, by backup: copies", "idle, by player: plays", nil, nil])
            reportMode(.inhibitorChanged(inhibitor), of: run, after: 0)
        }
    }

    // MARK: Apps

    /// The app begins a mode soon, or as soon as it runs again, and ends it after a while. An unmodified program has only sources.
    private mutating func planMode(_ run: Int) {
        guard runs[run].isAware else { return }
        let mode = modes.one(of: apps[runs[run].app].policy.backgroundModes)
        let time: Microseconds = modes.random.pick([
            1 * .millisecond, 30 * .millisecond, 500 * .millisecond, 3 * .second, 20 * .second, 150 * .second,
        ])
        let delay = modes.random.within(0...2 * .millisecond)
        // However often it is begun, it is on or off.
        for _ in 0..<(modes.random.chance(200) ? 2 : 1) { plan(.beginMode(mode, for: time), by: run, after: delay) }
    }

    mutating func beginMode(_ run: Int, _ mode: BackgroundModes, for time: Microseconds) {
        if isQuiet { return }
        modes.runs[run].begun.formUnion(mode)
        send(run, .run(runs[run].id, .mode(.began(mode))))
        if !modes.runs[run].neverEnds { plan(.endMode(mode), by: run, after: time) }
    }

    // MARK: Sources

    private mutating func show(_ shown: BackgroundModes, of run: Int, after delay: Microseconds) {
        modes.runs[run].shown = shown
        reportMode(.shown(shown), of: run, after: delay)
    }

    private mutating func reportMode(_ event: ModeEvent, of run: Int, after delay: Microseconds) {
        let time = max(modes.runs[run].lastReport, now + delay)
        modes.runs[run].lastReport = time
        queue.push(.deliver(.run(runs[run].id, .mode(event))), at: time)
    }

    /// A stream begins and ends again and again within milliseconds.
    private mutating func flap(_ run: Int, _ mode: BackgroundModes) {
        var delay: Microseconds = 0
        for _ in 0..<modes.random.within(2...12) {
            let isOn = modes.runs[run].shown.contains(mode)
            show(isOn ? [] : mode, of: run, after: delay)
            delay += modes.random.chance(300) ? 0 : modes.random.within(0...4 * .millisecond)
        }
    }

    /// A source shows a mode of a run that may be over, or of a process that has ended meanwhile.
    private mutating func lie(_ run: Int) {
        let shown = modes.some()
        let named = modes.random.chance(700) ? modes.random.below(runs.count) : run
        show(shown, of: named, after: modes.random.within(0...2 * .second))
    }

    /// The daemon looks for open devices while it freezes the app.
    mutating func showAtFreeze(_ run: Int) {
        guard modes.areUsed, !isQuiet, modes.random.chance(60) else { return }
        let shown = modes.runs[run].shown.union(.accessory)
        show(shown, of: run, after: modes.random.within(0...6 * .millisecond))
    }

    /// The daemon has died, and what was reported to it with it. The next one keeps that for 30 s: some clients report again, some
    /// have vanished.
    mutating func loseModeReports() {
        guard modes.areUsed else { return }
        for case let run? in apps.map(\.run) where !modes.runs[run].shown.isEmpty {
            let delay: Microseconds = modes.random.pick([10 * .millisecond, 2 * .second, 30 * .second])
            if modes.random.chance(500) { show([], of: run, after: delay) }
        }
    }

    // MARK: Quiet

    /// What is bounded ends. What never ends keeps its app awake for ever.
    mutating func endModes(of run: Int) {
        guard modes.areUsed, !modes.runs[run].neverEnds else { return }
        show([], of: run, after: 1 * .millisecond)
        reportMode(.inhibitorChanged(nil), of: run, after: 0)
        for mode in FakeModes.all where modes.runs[run].begun.contains(mode) {
            plan(.endMode(mode), by: run, after: 2200)
        }
    }
}
