import Glibc
import Linux
import Posix
import TestKit
import Testing

/// Random programs with and without `greenroomctl run`. GREENROOM_PROGRAMS_SEED= and GREENROOM_PROGRAMS_COUNT= choose others.
@Suite("greenroomctl run: random programs", .enabled(if: geteuid() == 0, "needs control groups"))
struct RunEqualityTests {
    private static func number(_ name: String) -> UInt64? {
        getenv("GREENROOM_PROGRAMS_" + name).flatMap { UInt64(String(cString: $0)) }
    }

    @Test(
        "random programs that sleep meanwhile write the same bytes, and end with the same status, as without run (L54)")
    func equality() throws {
        // Others each time where there is time for many.
        let seed = Self.number("SEED") ?? (isTestingAll ? UInt64(time(nil)) : 1)
        let count = Int(Self.number("COUNT") ?? (isTestingAll ? 1000 : 30))
        print("\(count) random programs of GREENROOM_PROGRAMS_SEED=\(seed)")
        var random = Dice(seed)
        let daemon = try TestDaemon()
        let blob = (0..<RandomProgram.blobSize).map { _ in UInt8(truncatingIfNeeded: random.below(256)) }
        let path = daemon.root + "/blob"
        try replaceFile(at: path, with: blob)
        var sleeps = 0
        for number in 0..<count {
            let program = RandomProgram(&random, hasPython: TrafficStage.hasPython)
            func play(isBare: Bool) throws -> RandomProgram.Outcome {
                let errors = "\(daemon.root)/errors-\(number)-\(isBare)"
                let name = "p\(number)"
                let client = try RunClient(
                    daemon, program.command(path), options: RunClient.soon + ["--name", name] + program.options,
                    errors: errors, isBare: isBare)
                let outcome = try program.play(client, blob, errors: errors) {
                    guard !isBare else { return }
                    try daemon.eventually("it is known") { try daemon.listed().contains("run@\(name)") }
                    try daemon.waitUntil("run@\(name)", is: "suspended")
                    sleeps += 1
                }
                unlink(errors)
                return outcome
            }
            let text = "program \(number) of seed \(seed): \(program)"
            do {
                let (bare, run) = (try play(isBare: true), try play(isBare: false))
                #expect(bare == run, "\(text)")
            } catch {
                throw TestFailure("\(text): \(error)")
            }
        }
        #expect(sleeps > count / 8, "only \(sleeps) of \(count) have slept")
        try daemon.eventually("nothing is left") { try daemon.listed().isEmpty }
    }
}
