import JSON
import Testing

@testable import Daemon

@Suite("Dry runs on real processes (L58)", .enabled(if: TrafficStage.hasPython, "needs python3"))
struct DryRunTests {
    @Test("a server that would be suspended runs, and its client's bytes would have woken it (L58)")
    func server() throws {
        let stage = try TrafficStage(["server": "run()"], "Suspend=dry-run")
        let client = try TrafficClient(port: try stage.launch())
        try client.exchange([1])
        func isInDryRun() throws -> Bool {
            let status = try stage.daemon.status("server")
            #expect(status["state"]?.stringValue == "background")
            return status["awake"]?.arrayValue?.first?["reason"]?.stringValue == "dryRun"
        }
        try stage.daemon.eventually("it would be suspended") { try isInDryRun() }
        // Bytes that it answers at once are found by their time.
        try client.exchange([2])
        try stage.daemon.wait("server", "wouldResume")
        try stage.daemon.eventually("it would be suspended again") { try isInDryRun() }
    }
}
