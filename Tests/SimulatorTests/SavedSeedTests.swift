import LifecycleSimulator
import Testing

/// Seeds that found a fault, each with the fault that it finds again if the fix is reverted. A change of the simulator
/// changes what a seed simulates; therefore each fault has a named test of the core too.
@Suite("Saved seeds")
struct SavedSeedTests {
    struct Saved: Sendable, CustomTestStringConvertible {
        var seed: UInt64
        var events: Int
        var found: String
        var testDescription: String { "\(seed): \(found)" }
    }

    static let seeds: [Saved] = [
        Saved(
            seed: 276, events: 5500,
            found: "beside an app that exceeds the budget alone, the receipt of a victim did not name itself first"),
        Saved(
            seed: 44, events: 5500, found: "the checker dropped a stall that waited with the exact size of a candidate"),
        Saved(seed: 348, events: 300, found: "a push that launched an app was not delivered"),
        Saved(seed: 18, events: 300, found: "a met deadline was also cancelled"),
        Saved(seed: 277, events: 300, found: "a timer stayed due during a measurement"),
        Saved(
            seed: 547, events: 300, found: "an app that was sent back on its way to the foreground ran unthrottled"),
        Saved(seed: 937, events: 300, found: "notifications during a freeze that timed out were not delivered"),
        Saved(seed: 672, events: 300, found: "a launch into the background left earlier requests unanswered"),
        Saved(
            seed: 480, events: 300,
            found: "a launch was lost because the manifest was removed and added while the app ended"),
        Saved(seed: 429, events: 300, found: "a run that was not spawned was killed"),
        Saved(seed: 293, events: 3200, found: "an app that was being frozen got willTerminate"),
        Saved(seed: 428, events: 300, found: "an app did not get willTerminate, because its process did not exist yet"),
        Saved(seed: 280, events: 300, found: "the end of a task of EXTEND_TIMEOUT_USEC= was not reported"),
        Saved(
            seed: 1111, events: 300,
            found: "a wake that was completed before the thaw was reported did not count as completed"),
        Saved(
            seed: 221, events: 300,
            found: "an interruption stayed open after the app was sent back on its way to the foreground"),
        Saved(seed: 954, events: 300, found: "an app was killed for its tasks after it had ended them"),
        Saved(seed: 676, events: 300, found: "an app that was asked to end was relaunched"),
        Saved(seed: 569, events: 300, found: "an app that stopped itself was woken, but not continued"),
        Saved(seed: 651, events: 1500, found: "jetsam waited for ever for a victim that survived SIGKILL"),
        Saved(seed: 28, events: 300, found: "a huge threshold made the core trap"),
        Saved(seed: 1_010_218, events: 5500, found: "a task that may have ended kept an app awake for ever"),
        Saved(seed: 3_000_797, events: 1000, found: "a relaunch was lost because a requested launch was postponed"),
        Saved(
            seed: 2_005_626, events: 3000,
            found: "an app without processes got SIGKILL before its exit status was known"),
        Saved(
            seed: 7_312_577, events: 2000,
            found: "the execution of a program counted as its answer, although its manifest had changed to Type=notify"),
        Saved(
            seed: 900_114, events: 1800,
            found: "an active app was killed at its first look, because another app had been looked at before"),
        Saved(
            seed: 7_315_564, events: 5000,
            found: "the outcome of an earlier inspection was delivered before what the app did before the next one"),
        Saved(
            seed: 309, events: 1500,
            found: "an end on request counted as the app's own if its processes ended before the exit status came"),
        Saved(
            seed: 700_174, events: 5500,
            found: "an app that the kernel killed for memory while it was unloaded came back"),
        Saved(
            seed: 2_078_787_023_388, events: 5500,
            found: "the checker took a datagram for a connection, because one had waited before the app was removed"),
        Saved(
            seed: 1_814_653_090_574, events: 5500,
            found: "a look that the dead daemon had not answered was not made again, and held up a hint"),
        Saved(
            seed: 1_334_027_467_113, events: 5500,
            found: "EXTEND_TIMEOUT_USEC= kept a worker awake for ever, because the manifest's limit did not hold"),
        Saved(
            seed: 88_500_712, events: 5500,
            found: "the checker missed the cause of a wake by input that the app had read while others had continued it"
        ),
        Saved(
            seed: 7_700_300_488, events: 2200,
            found: "another IdleSec= did not count from the last look, because the app was left awake"),
        Saved(
            seed: 7_700_600_998, events: 3200,
            found: "the checker of looks took the late answer to an earlier look for the one that counted"),
        Saved(
            seed: 7_700_700_452, events: 900,
            found: "the checker of URLs took the URL of a request for the same one of a request that was superseded"),
        Saved(
            seed: 9_900_200_726, events: 5500,
            found: "the checker of clients that wait missed a launch that was complete, and then ended on request"),
        Saved(
            seed: 9_900_700_933, events: 400,
            found: "the checker of processor time took the late answer to an earlier look for that of the last one"),
        Saved(
            seed: 9_901_200_807, events: 5500,
            found: "a hint was refuted by what a look had found before it"),
        Saved(
            seed: 66, events: 300,
            found: "a hint that came before a look of the next daemon counted as made during it"),
        Saved(
            seed: 2_158_359_405_859, events: 1100,
            found: "the checker of bursts took the launch of the home app, which was due, for an effect of input"),
        Saved(
            seed: 79_100_274, events: 5500,
            found: "the size of an app that ended, known from a late inspection, counted for the budget"),
        Saved(
            seed: 79_201_046, events: 5500,
            found: "the checker of quick turns saw only one of the apps that a deadline thawed"),
        Saved(
            seed: 1_623_654_701_169, events: 5500,
            found: "victims counted against Budget= with what they may have, and too few were killed"),
        Saved(
            seed: 6_105_917, events: 5500,
            found: "a short wait counted as a tick after one look, because a reload had made IdleSec= shorter"),
        Saved(
            seed: 2_030_394_490_614, events: 5500,
            found: "the end of a dry run took from a checker the 3s that a connection has to find the next daemon"),
        Saved(
            seed: 770_001_596, events: 5500,
            found: "a checker took a main window that could not end for one that had ended, and its snapshot with it"),
        Saved(
            seed: 770_002_386, events: 5500,
            found: "daemons that were killed one after the other kept an app awake for longer than its checker allowed"),
        Saved(
            seed: 770_002_402, events: 5500,
            found: "the checker of absences expected an app back in the foreground during a shutdown"),
        Saved(
            seed: 770_011_806, events: 5500,
            found: "what clients had waited for a suspended app counted after its end"),
        Saved(
            seed: 770_011_906, events: 5500,
            found: "an app was killed for its processor time, and the checker asked the manifest that came after it"),
        Saved(
            seed: 880_006_327, events: 5500,
            found: "the model waited for a hook that follows the one at the end of a transition"),
        Saved(
            seed: 880_007_566, events: 5500,
            found: "an app ended its last scene that was not closed, and its foreground slot had no scene"),
        Saved(
            seed: 880_009_518, events: 5500,
            found: "the checker of held sockets counted the time before the next daemon, which waits anew"),
        Saved(
            seed: 880_013_737, events: 5500,
            found: "an app was frozen at the end of ExecBeforeSuspend=, in which its tasks had begun and ended"),
        Saved(
            seed: 5_520_001_130, events: 5500,
            found: "the checker of essential apps asked a manifest that was read after a shutdown had begun"),
    ]

    @Test("a seed that found a fault finds none", arguments: seeds)
    func savedSeed(saved: Saved) {
        let result = simulate(SimulationOptions(seed: saved.seed, events: saved.events))
        #expect(
            result.finding == nil,
            "\(saved.found); seed \(saved.seed), event \(result.events): \(result.finding?.sentence ?? "")")
    }
}
