import Glibc
import TestKit
import Testing

@testable import Linux

@Suite("Which processes are new")
struct ProcessMomentTests {
    @Test(
        "the pids between two moments are known, unless there are too many or they began anew",
        arguments: [
            (100, 5000, 100, 5000, []), (100, 5000, 103, 5002, [5001, 5002]), (100, 5000, 101, 4000, nil),
            (100, 5000, 99, 5001, nil), (100, 5000, 700, 5600, nil), (100, 5000, 101, 9000, nil),
        ] as [(UInt64, Int32, UInt64, Int32, [Int32]?)])
    func pids(_ created: UInt64, _ last: Int32, _ createdNow: UInt64, _ lastNow: Int32, _ expected: [Int32]?) {
        let (before, now) = (
            ProcessMoment(created: created, lastPID: last), ProcessMoment(created: createdNow, lastPID: lastNow)
        )
        #expect(now.pids(since: before) == expected)
    }

    @Test("a child is among the pids since the moment before its creation")
    func child() throws {
        let before = try #require(ProcessMoment(ProcFS()))
        var starting = try startProcess(SpawnRequest(executable: "/bin/sleep", arguments: ["1000"]))
        #expect(try starting.finalOutcome() == .executed)
        let process = starting.process
        defer {
            _ = try? process.signal(SIGKILL)
            _ = try? process.waitForEnd()
        }
        let now = try #require(ProcessMoment(ProcFS()))
        #expect(now.created > before.created)
        // Other tests may create many processes meanwhile.
        if let pids = now.pids(since: before) { #expect(pids.contains(process.pid)) }
    }
}
