import Glibc
import Linux
import Posix
import TestKit
import Testing

/// What is in swap afterwards is tested where there is swap: Tests/vm/guest/77-reclaim.sh.
@Suite(
    "Memory of frozen apps is pushed out (L37)",
    .enabled(if: TestContainment.isPossible, "needs a cgroup v2 mount that this user may write"))
struct MemoryReclaimTests {
    /// A shell with more than 30 MB.
    private func allocated(_ test: borrowing TestContainment) throws -> (Enclosure, Process) {
        let enclosure = try test.containment.create(app: "large", run: 1)
        let script = "x=$(head -c 30000000 /dev/zero | tr '\\0' x); kill -STOP $$; exit 3"
        let process = try test.shell(script, in: enclosure)
        try eventually("it has allocated its memory") { try ProcFS().stat(of: process.pid)?.isStopped == true }
        return (enclosure, process)
    }

    @Test("a process is pushed out in slices up to its last address, and continues as if nothing had happened (L37)")
    func slices() throws {
        let test = try TestContainment("reclaim")
        defer { test.end() }
        let (_, process) = try allocated(test)
        let thread = try HelperThread(name: "reclaim", .reports)
        let completions = try #require(thread.completions)
        var (address, slices) = (UInt64(0), 0)
        repeat {
            let pidfd = try process.descriptor.descriptor.duplicate()
            #expect(try thread.reclaim(4 << 20, of: pidfd, pid: process.pid, from: address, token: 7))
            try wait(for: completions)
            let done = try #require(try thread.collect().first)
            #expect(done.token == 7)
            // EPERM: without CAP_SYS_NICE.
            #expect(done.errno == 0 || geteuid() != 0, "errno \(done.errno)")
            #expect(done.bytes == 0 || done.bytes > address)
            address = done.bytes
            slices += 1
        } while address != 0
        #expect(slices > 30_000_000 / (4 << 20))
        try process.signal(SIGCONT)
        #expect(try process.waitForEnd().status == .exited(3))
    }

    @Test("it ends by itself, with swap and without, and after the process has ended (L37)")
    func ends() throws {
        let test = try TestContainment("reclaim-ends")
        defer { test.end() }
        let (enclosure, process) = try allocated(test)
        let thread = try HelperThread(name: "reclaim", .reports)
        func pushOut() throws -> UInt64 {
            let reclaim = try MemoryReclaim(enclosure, upTo: 1 << 30, thread: thread)
            while try reclaim.submit(token: 1) {
                try wait(for: try #require(thread.completions))
                for completion in try thread.collect() { reclaim.completed(completion) }
            }
            return try reclaim.result().bytes
        }
        let before = try enclosure.footprint()
        let bytes = try pushOut()
        let after = try enclosure.footprint()
        #expect(after.swapped == before.swapped + bytes)
        #expect(after.bytes >= before.bytes - min(before.bytes, 1 << 20))
        try process.signal(SIGKILL)
        _ = try process.waitForEnd()
        #expect(try pushOut() == 0)
    }
}
