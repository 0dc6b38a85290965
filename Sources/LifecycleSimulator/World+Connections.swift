import LifecycleCore

/// Apps that connect to the daemon, and what they say and get by that. They have a random stream of their own.
struct FakeConnections {
    var random: Random
    /// Apps connect in this seed.
    let areUsed: Bool
    /// Some of them are asked for snapshots. They are drawn from numbers of their own.
    let takeSnapshots: Bool
    var snapshots: Random
    var withdrawals: Random

    init(_ scenario: Scenario) {
        var random = Random(seed: scenario.seed ^ 0x62_7573_6573)
        let isDrawn = random.chance(600)
        areUsed = isDrawn && scenario.storm == nil
        var snapshots = Random(seed: scenario.seed ^ 0x70_6963_7475_7265)
        takeSnapshots = snapshots.chance(500)
        self.snapshots = snapshots
        withdrawals = Random(seed: scenario.seed ^ 0x6164_7665_7274)
        self.random = random
    }

    /// How long a snapshot takes; `nil`: it never comes.
    fileprivate static func snapshotTime(isQuiet: Bool, _ random: inout Random) -> Microseconds? {
        let limit = LifecycleCore.snapshotTime.microseconds
        let range: ClosedRange<Microseconds>? =
            switch random.below(4) {
            case 0: 0...50 * .millisecond
            case 1: limit - 2...limit + 2
            case 2: limit / 2...3 * limit
            default: isQuiet ? 0...100 : nil
            }
        return range.map { random.within($0) }
    }
}

extension World {
    /// A program was executed: it may connect, now, once it runs for a while, or in the middle of a transition, and may connect
    /// again and handle something else.
    mutating func planConnections(_ run: Int) {
        guard connections.areUsed, runs[run].isAware, runs[run].readiness != .listening,
            connections.random.chance(700)
        else { return }
        // A library connects before it says that the program is ready.
        var time = connections.random.chance(800) ? 0 : connections.random.within(0...5 * .second)
        for number in 0..<connections.random.within(1...4) {
            let handled = number == 0 ? drawHandled() : connections.random.pick([drawHandled(), drawHandled(), []])
            plan(.send(.run(runs[run].id, .connection(.attached(handled)))), by: run, after: Microseconds(time))
            time += connections.random.within(1 * .millisecond...20 * .second)
        }
        planHints(run)
    }

    /// The app says that it has nothing to do, whether or not that is true, and may take it back.
    private mutating func planHints(_ run: Int) {
        var time: Microseconds = 0
        for _ in 0..<connections.random.within(0...6) {
            time += connections.random.within(1 * .millisecond...30 * .second)
            let isIdle = connections.random.chance(850)
            plan(.send(.run(runs[run].id, .traffic(.idleHinted(isIdle)))), by: run, after: Microseconds(time))
        }
    }

    private mutating func drawHandled() -> HandledNotices {
        var handled = drawKinds()
        if scenes.areUsed, scenes.random.chance(700) { handled.insert(.scenes) }
        if connections.takeSnapshots, connections.snapshots.chance(600) { handled.insert(.takeSnapshot) }
        if scenes.areUsed, scenes.snapshots.chance(400) { handled.insert(.takeSceneSnapshot) }
        if scenes.areUsed, scenes.snapshots.chance(400) { handled.insert(.didDiscardScenes) }
        if connections.takeSnapshots, connections.withdrawals.chance(500) { handled.insert(.withdraw) }
        return handled
    }

    private mutating func drawKinds() -> HandledNotices {
        if connections.random.chance(500) { return [.didEnterBackground, .openURL, .willSuspend, .didResume] }
        return HandledNotices(rawValue: UInt32(connections.random.below(16)))
    }

    /// The app is asked for a snapshot: it takes it at once, in longer than it has, or never. What it says while it is frozen comes
    /// after the thaw.
    mutating func takeSnapshot(_ run: Int) {
        guard let time = FakeConnections.snapshotTime(isQuiet: isQuiet, &connections.snapshots) else { return }
        plan(.send(.run(runs[run].id, .connection(.snapshotTaken))), by: run, after: time)
    }

    /// The app takes back what it advertises: at once, or never.
    mutating func withdraw(_ run: Int) {
        guard isQuiet || connections.withdrawals.chance(800) else { return }
        plan(
            .send(.run(runs[run].id, .connection(.withdrawn))), by: run,
            after: connections.withdrawals.within(0...6 * .second))
    }

    /// The same for a scene.
    mutating func takeSnapshot(_ run: Int, of scene: SceneID) {
        guard let time = FakeConnections.snapshotTime(isQuiet: isQuiet, &scenes.snapshots) else { return }
        plan(.send(.run(runs[run].id, .scene(.snapshotTaken(scene)))), by: run, after: time)
    }

    /// The app was notified that it terminates: one with a connection may say that it has finished, before it exits or instead.
    mutating func planTerminationAnswer(_ run: Int) {
        guard connections.areUsed, runs[run].isAware, connections.random.chance(400) else { return }
        plan(
            .send(.run(runs[run].id, .transition(.terminationAnswered))), by: run,
            after: connections.random.within(0...3 * .second))
    }

    /// A URL that no other request has.
    mutating func urlRequest() -> Request {
        let url = "app:\(lastRequest)"
        guard connections.areUsed else { return .launch(.foreground, reason: .url, url: url) }
        return connections.random.chance(800) ? .open(url: url) : .launch(.foreground, reason: .url, url: url)
    }

    /// Several URLs at once, for an app that launches, returns or ends.
    mutating func openSeveral(_ app: AppID) {
        guard connections.areUsed, connections.random.chance(300) else { return }
        for _ in 0..<connections.random.within(1...3) {
            lastRequest += 1
            deliver(
                .requested(RequestID(lastRequest), app, .open(url: "app:\(lastRequest)")),
                after: connections.random.within(0...200 * .millisecond))
        }
    }
}
