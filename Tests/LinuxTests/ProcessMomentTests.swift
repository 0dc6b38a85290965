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

    @Test(
        "the more processes there are, the more pids are searched before all processes are",
        arguments: [(0, 512, true), (0, 513, false), (3000, 3000, true), (3000, 3001, false), (100_000, 8193, false)])
    func limit(_ threads: Int, _ new: Int32, _ isSearched: Bool) {
        let before = ProcessMoment(created: 100, lastPID: 1000)
        let now = ProcessMoment(created: 100 + UInt64(new), lastPID: 1000 + new, threads: threads)
        #expect(now.pids(since: before)?.count == (isSearched ? Int(new) : nil))
    }

    @Test(
        "the first search of a run examines only processes that are newer than it",
        .enabled(if: TestContainment.isPossible, "this machine allows no root cgroup"))
    func firstSearch() throws {
        let test = try TestContainment("first-search")
        defer { test.end() }
        let enclosure = try test.containment.create(app: "app", run: 1)
        // `nil`: other tests have created too many processes.
        guard let search = enclosure.beginSearch(in: test.containment) else { return }
        while try search.advance() {}
        #expect(search.isPartial)
        #expect(search[try #require(try ProcFS().stat(of: getppid())).key] == nil)
        #expect(try enclosure.escaped(in: search).isEmpty)
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
