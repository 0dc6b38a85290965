import LifecycleCore
import Testing
import Timeline

@testable import greenroomctl

@Suite("savings")
struct SavingsTests {
    @Test(
        "input that would have waited is counted in sleeps, and a sentence says in how many (L58)",
        arguments: [
            (0, 3, nil), (1, 1, "its only sleep"), (1, 4, "1 of its 4 sleeps"), (3, 3, "each of its 3 sleeps"),
        ] as [(Int, Int, String?)])
    func missedInput(missed: Int, sleeps: Int, which: String?) throws {
        var dryRun = SleepAccount.DryRun()
        dryRun.missedInputs = missed
        dryRun.sleeps = sleeps
        let app = try #require(AppID("web"))
        let expected = which.map {
            "Input that would not have woken web came in \($0), and would have waited: consider Traffic=yes.\n"
        }
        #expect(SavingsDocument.missedInput(of: app, dryRun) == expected ?? "")
    }
}
