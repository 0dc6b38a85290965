import LifecycleCore

/// Apps with several scenes, and users who want to see one of them (L34). They have a random stream of their own.
struct FakeScenes {
    var random: Random
    /// Apps have scenes in this seed.
    let areUsed: Bool
    /// What they are asked for is drawn from numbers of its own.
    var snapshots: Random

    init(_ scenario: Scenario) {
        var random = Random(seed: scenario.seed ^ 0x73_6365_6e65)
        let isDrawn = random.chance(300)
        areUsed = isDrawn && scenario.storm == nil
        snapshots = Random(seed: scenario.seed ^ 0x6672_616d_6573)
        self.random = random
    }

    private static let names = ["main", "a", "b", "c"].compactMap { SceneID($0) }

    fileprivate mutating func name() -> SceneID {
        random.chance(950) ? random.pick(Self.names) : SceneID("scene-\(random.below(40))") ?? .main
    }

    fileprivate mutating func role() -> SceneRole { random.pick([.window, .window, .window, .external, .panel]) }
}

extension World {
    /// A program was executed: it may begin and end scenes, whatever state it is in.
    mutating func planScenes(_ run: Int) {
        guard scenes.areUsed, scenes.random.chance(600) else { return }
        var time: Microseconds = 0
        for _ in 0..<scenes.random.within(1...12) {
            time += scenes.random.chance(300) ? 0 : scenes.random.within(1 * .millisecond...20 * .second)
            let event: SceneEvent =
                scenes.random.chance(600) ? .began(scenes.name(), scenes.role()) : .ended(scenes.name())
            plan(.send(.run(runs[run].id, .scene(event))), by: run, after: time)
        }
        guard scenes.random.chance(50) else { return }
        for number in 0..<40 {
            guard let name = SceneID("scene-\(number)") else { return }
            plan(.send(.run(runs[run].id, .scene(.began(name, scenes.role())))), by: run, after: time)
        }
    }

    mutating func requestScene() {
        guard scenes.areUsed, scenes.random.chance(250) else { return }
        lastRequest += 1
        let app = apps[scenes.random.below(scenes.random.chance(500) ? min(2, apps.count) : apps.count)].id
        let what: SceneRequest =
            scenes.random.chance(600) ? .activate : scenes.random.pick([.background, .close])
        deliver(.requested(RequestID(lastRequest), app, .scene(scenes.name(), what)), after: 0)
    }
}
