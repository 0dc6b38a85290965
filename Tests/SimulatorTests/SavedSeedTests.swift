import LifecycleSimulator
import Testing

/// What the simulator has found so far, each with a seed that finds it again where the fault is put back. A seed plays
/// something else whenever the simulator changes: what it had found is therefore kept by a named test of the core, too.
@Suite("Saved seeds")
struct SavedSeedTests {
    struct Saved: Sendable, CustomTestStringConvertible {
        var seed: UInt64
        var events: Int
        var found: String
        var testDescription: String { "\(seed): \(found)" }
    }

    static let seeds: [Saved] = [
        Saved(seed: 348, events: 300, found: "a push that launched an app was never delivered to it"),
        Saved(seed: 18, events: 300, found: "a deadline that was met was cancelled as well"),
        Saved(seed: 277, events: 300, found: "the timer stayed due while memory was measured"),
        Saved(
            seed: 547, events: 300, found: "an app that was to come to the foreground, and then not, ran unthrottled"),
        Saved(seed: 937, events: 300, found: "what was sent during a freeze that timed out was not delivered"),
        Saved(seed: 672, events: 300, found: "a launch into the background left earlier requests without an answer"),
        Saved(
            seed: 480, events: 300, found: "a launch was lost as the manifest went and came back while the app ended"),
        Saved(seed: 429, events: 300, found: "a run that could not be spawned was killed"),
        Saved(seed: 293, events: 3200, found: "an app that was being frozen was told to terminate"),
        Saved(seed: 428, events: 300, found: "an app told to terminate before its process existed never heard of it"),
        Saved(seed: 280, events: 300, found: "a task that asking for more time had opened was never reported as ended"),
        Saved(seed: 1111, events: 300, found: "a wake that was completed before the thaw was heard of did not count"),
        Saved(seed: 221, events: 300, found: "an interruption outlived the way to the foreground that it began on"),
        Saved(seed: 954, events: 300, found: "an app was killed for its tasks after it had ended them"),
        Saved(seed: 676, events: 300, found: "an app that was asked to end was launched again"),
        Saved(seed: 569, events: 300, found: "an app that had stopped itself was woken, and not continued"),
        Saved(seed: 651, events: 1500, found: "jetsam waited for ever for a victim that could not be killed"),
        Saved(seed: 28, events: 300, found: "a huge threshold made the core trap"),
    ]

    @Test("a seed that once found something finds nothing", arguments: seeds)
    func savedSeed(saved: Saved) {
        let result = simulate(SimulationOptions(seed: saved.seed, events: saved.events))
        #expect(
            result.finding == nil,
            "\(saved.found); seed \(saved.seed), event \(result.events): \(result.finding?.sentence ?? "")")
    }
}
