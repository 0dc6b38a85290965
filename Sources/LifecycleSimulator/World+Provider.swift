import LifecycleCore

/// A foreground provider (L55) that lies: it activates an app when its state has changed, late or several times, or another app, or moves it
/// to the background. After some changes it vanishes. It has a random stream of its own.
struct FakeProvider {
    private var random: Random
    /// How many changes it still answers.
    private var left: Int

    init(_ scenario: Scenario) {
        var random = Random(seed: scenario.seed ^ 0x70_726f_7669)
        let isUsed = random.chance(200) && scenario.storm == nil
        left = isUsed ? 1 + random.below(200) : 0
        self.random = random
    }

    /// - Parameters:
    ///   - app: whose state has changed.
    ///   - count: how many apps there are.
    /// - Returns: what it asks for, of which app, and after which time.
    fileprivate mutating func answers(_ app: Int, of count: Int) -> [(app: Int, request: Request, after: Microseconds)]
    {
        guard left > 0, random.chance(400) else { return [] }
        left -= 1
        let named = random.chance(700) ? app : random.below(count)
        let request: Request = random.chance(800) ? .activate : .background
        let time = random.pick([0, 20 * .millisecond, 2 * .second])
        return Array(repeating: (named, request, time), count: random.chance(100) ? 3 : 1)
    }
}

extension World {
    /// The provider is notified of a state.
    mutating func notifyProvider(_ id: AppID, _ state: AppState) {
        guard !isQuiet, state == .active || state == .inactive || state == .background, let app = indexes[id] else {
            return
        }
        for answer in provider.answers(app, of: apps.count) {
            lastRequest += 1
            deliver(.requested(RequestID(lastRequest), apps[answer.app].id, answer.request), after: answer.after)
        }
    }
}
