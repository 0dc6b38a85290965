import Glibc
import Linux
import TestKit
import Testing

@Suite("The helper thread for memory")
struct MemoryReaperTests {
    func completion(_ reaper: MemoryReaper) throws -> MemoryReaper.Completion {
        try wait(for: reaper.descriptor)
        return try #require(try reaper.completions().first)
    }

    @Test("a killed process is freed, a living one refused, a reaped one gone")
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
        try eventually("it has its memory") { try ProcFS().stat(of: process.pid)?.isStopped == true }
        #expect(try #require(try ProcFS().memory(of: process.pid)).anonymous > 30_000_000)

        #expect(try reaper.release(process, token: 1))
        let refused = try completion(reaper)
        #expect(refused.token == 1)
        #expect(refused.job == .release)
        #expect(refused.outcome == .failed(SystemError(call: "process_mrelease", errno: EINVAL)))

        try process.signal(SIGKILL)
        #expect(try reaper.release(process, token: 2))
        let freed = try completion(reaper)
        #expect(freed.token == 2)
        // Whether it was quicker to die than we to free it is the scheduler's choice.
        #expect(freed.outcome == .done || freed.outcome == .alreadyGone)
        #expect(freed.outcome == .alreadyGone || freed.elapsed > .zero)

        _ = try process.waitForEnd()
        #expect(try reaper.release(process, token: 3))
        #expect(try completion(reaper).outcome == .alreadyGone)
    }

    @Test("no more than its capacity is taken on, and all of that is answered in order")
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

    @Test("the thread blocks every signal and ends with its reaper")
    func thread() throws {
        try inOwnProcess {
            /// The signals that the helper thread blocks; nil when there is no such thread.
            func blocked() throws -> UInt64? {
                for thread in try ProcFS().threads(of: getpid()) {
                    let bytes = try readFileIfPresent(at: "/proc/self/task/\(thread)/status", limit: 65536) ?? []
                    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
                    guard lines.contains("Name:\tmemory-reaper") else { continue }
                    return lines.first { $0.hasPrefix("SigBlk:\t") }.flatMap { UInt64($0.dropFirst(8), radix: 16) }
                }
                return nil
            }
            var starting = try startProcess(SpawnRequest(executable: "/bin/true"))
            _ = try starting.finalOutcome()
            var reaper: MemoryReaper? = try MemoryReaper()
            #expect(try blocked() == nil, "it starts with the first job")
            _ = try reaper?.release(starting.process, token: 1)
            // While it starts it blocks more, so look when it has done something: all but SIGKILL, SIGSTOP and the two
            // that libc keeps to itself.
            try wait(for: #require(reaper?.descriptor))
            #expect(try blocked() == 0xffff_fffe_7ffb_feff)
            reaper = nil
            try eventually("it ended") { try blocked() == nil }
            _ = try starting.process.waitForEnd()
        }
    }

    @Test("a process is advised to page out")
    func pageOut() throws {
        let reaper = try MemoryReaper()
        var starting = try startProcess(SpawnRequest(executable: "/bin/sleep", arguments: ["1000"]))
        _ = try starting.finalOutcome()
        #expect(try reaper.pageOut(starting.process, token: 5))
        #expect(try completion(reaper).outcome == .done)
        try starting.process.signal(SIGKILL)
        _ = try starting.process.waitForEnd()
        #expect(try reaper.pageOut(starting.process, token: 6))
        #expect(try completion(reaper).outcome == .alreadyGone)
    }
}
