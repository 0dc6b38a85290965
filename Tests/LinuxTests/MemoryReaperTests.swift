import Glibc
import Linux
import Posix
import TestKit
import Testing

@Suite("Release of the memory of killed processes")
struct MemoryReaperTests {
    func completion(_ reaper: MemoryReaper) throws -> MemoryReaper.Completion {
        try wait(for: reaper.descriptor)
        return try #require(try reaper.completions().first)
    }

    @Test("the memory of a killed process is released; a live process is refused, a reaped one is gone")
    func release() throws {
        let reaper = try MemoryReaper()
        #expect(try reaper.completions() == [])
        var starting = try startProcess(
            SpawnRequest(
                executable: "/bin/sh",
                arguments: ["-c", "x=$(head -c 30000000 /dev/zero | tr '\\0' x); kill -STOP $$"],
                environment: ["PATH=/usr/bin:/bin"]))
        let process = starting.process
        #expect(try starting.finalOutcome() == .executed)
        try eventually("the process has allocated its memory") { try ProcFS().stat(of: process.pid)?.isStopped == true }
        #expect(try #require(try ProcFS().memory(of: process.pid)).anonymous > 30_000_000)

        #expect(try reaper.release(process, token: 1))
        let refused = try completion(reaper)
        #expect(refused.token == 1)
        #expect(refused.outcome == .failed(SystemError(call: "process_mrelease", errno: EINVAL)))

        try process.signal(SIGKILL)
        #expect(try reaper.release(process, token: 2))
        let freed = try completion(reaper)
        #expect(freed.token == 2)
        // The process may have ended before the helper thread released its memory.
        #expect(freed.outcome == .done || freed.outcome == .alreadyGone)
        #expect(freed.outcome == .alreadyGone || freed.elapsed > .zero)

        _ = try process.waitForEnd()
        #expect(try reaper.release(process, token: 3))
        #expect(try completion(reaper).outcome == .alreadyGone)
    }

    @Test("jobs up to the capacity are accepted and completed in order, further ones are refused")
    func capacity() throws {
        let reaper = try MemoryReaper()
        var starting = try startProcess(SpawnRequest(executable: "/bin/true"))
        _ = try starting.finalOutcome()
        _ = try starting.process.waitForEnd()
        for token in 0..<MemoryReaper.capacity {
            #expect(try reaper.release(starting.process, token: UInt64(token)))
        }
        #expect(try !reaper.release(starting.process, token: 999))
        var tokens: [UInt64] = []
        while tokens.count < MemoryReaper.capacity {
            try wait(for: reaper.descriptor)
            tokens += try reaper.completions().map(\.token)
        }
        #expect(tokens == Array(0..<UInt64(MemoryReaper.capacity)))
        #expect(try reaper.release(starting.process, token: 1000))
        #expect(try completion(reaper).token == 1000)
    }
}
