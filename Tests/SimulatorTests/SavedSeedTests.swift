import LifecycleSimulator
import Testing

/// Seeds that once broke a rule, with what they had found. What a seed plays changes whenever the simulator does: what it
/// found is kept by a named test of the core as well, and the seed stays as one more of those that were worth something.
@Suite("Saved seeds")
struct SavedSeedTests {
    static let seeds: [(seed: UInt64, found: String)] = [
        (1, "a push that launched an app was never delivered to it"),
        (9, "what was sent during a freeze that timed out was not delivered"),
        (24, "an app that was to come to the foreground, and then not, ran on unthrottled"),
        (26, "a deadline that was met was cancelled as well"),
        (28, "a launch into the background left those who had activated the app without an answer"),
        (31, "the timer stayed due while memory was measured"),
        (68, "a task that asking for more time had opened was never reported as ended"),
        (82, "activating an app was answered with not running, as its manifest came anew while it ended"),
        (176, "a run that could not be spawned was killed"),
        (407, "an app that was being frozen was told to terminate"),
        (739, "an app that was told to terminate before its process existed never heard of it"),
    ]

    @Test("a seed that once found something finds nothing", arguments: seeds)
    func savedSeed(seed: UInt64, found: String) {
        let result = simulate(SimulationOptions(seed: seed, events: 1000))
        #expect(
            result.finding == nil,
            "seed \(seed) (\(found)), event \(result.events): \(result.finding?.sentence ?? "")")
    }
}
