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
    /// A shell with more than 30 MB, or another script that stops when it has its memory.
    private func allocated(
        _ test: borrowing TestContainment,
        _ script: String = "x=$(head -c 30000000 /dev/zero | tr '\\0' x); kill -STOP $$; exit 3"
    ) throws -> (Enclosure, Process) {
        let enclosure = try test.containment.create(app: "large", run: 1)
        let process = try test.shell(script, in: enclosure)
        try eventually("it has allocated its memory") { try ProcFS().stat(of: process.pid)?.isStopped == true }
        return (enclosure, process)
    }

    /// Pushes a process out to its last address.
    /// - Returns: how many slices it took.
    private func pushOut(_ process: borrowing Process) throws -> Int {
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
        return slices
    }

    @Test("a process is pushed out in slices up to its last address, and continues as if nothing had happened (L37)")
    func slices() throws {
        let test = try TestContainment("reclaim")
        defer { test.end() }
        let (_, process) = try allocated(test)
        #expect(try pushOut(process) > 30_000_000 / (4 << 20))
        try process.signal(SIGCONT)
        #expect(try process.waitForEnd().status == .exited(3))
    }

    @Test("addresses without memory take no slice, and locked memory does not end it (L37)")
    func sparse() throws {
        let test = try TestContainment("reclaim-sparse")
        defer { test.end() }
        // 1 GiB that is never touched, below 4 MiB that are locked, below 30 MiB.
        let script = """
            import ctypes, mmap, os, signal
            def filled(mib):
                memory = mmap.mmap(-1, mib << 20, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
                memory.write(b"x" * (mib << 20))
                return memory
            above = filled(30)
            locked = filled(4)
            start = ctypes.addressof(ctypes.c_char.from_buffer(locked))
            assert ctypes.CDLL(None).mlock(ctypes.c_void_p(start), 4 << 20) == 0
            empty = mmap.mmap(-1, 1 << 30, flags=mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS)
            os.kill(os.getpid(), signal.SIGSTOP)
            """
        let (_, process) = try allocated(test, "exec /usr/bin/python3 -c '\(script)'")
        let slices = try pushOut(process)
        #expect(slices > 34 / 4 && slices < 34, "\(slices) slices")
        try process.signal(SIGCONT)
        #expect(try process.waitForEnd().status == .exited(0))
    }

    @Test("each process of an app is pushed out, however small it is (L37)")
    func processes() throws {
        let test = try TestContainment("reclaim-processes")
        defer { test.end() }
        let script = "for i in 1 2 3 4 5 6 7 8 9 10 11 12; do sleep 100000 & done; kill -STOP $$"
        let (enclosure, process) = try allocated(test, script)
        #expect(try pushOut(enclosure).slices >= 13)
        _ = try enclosure.killAll()
        _ = try process.waitForEnd()
    }

    /// - Returns: how many slices it took, and how much was pushed out.
    private func pushOut(_ enclosure: Enclosure) throws -> (slices: Int, bytes: UInt64) {
        let thread = try HelperThread(name: "reclaim", .reports)
        let reclaim = try MemoryReclaim(enclosure, upTo: 1 << 30, thread: thread)
        var slices = 0
        while try reclaim.submit(token: 1) {
            try wait(for: try #require(thread.completions))
            for completion in try thread.collect() { reclaim.completed(completion) }
            slices += 1
        }
        return (slices, try reclaim.result().bytes)
    }

    @Test("it ends by itself, with swap and without, and after the process has ended (L37)")
    func ends() throws {
        let test = try TestContainment("reclaim-ends")
        defer { test.end() }
        let (enclosure, process) = try allocated(test)
        let before = try enclosure.footprint()
        let bytes = try pushOut(enclosure).bytes
        let after = try enclosure.footprint()
        #expect(after.swapped == before.swapped + bytes)
        #expect(after.bytes >= before.bytes - min(before.bytes, 1 << 20))
        try process.signal(SIGKILL)
        _ = try process.waitForEnd()
        #expect(try pushOut(enclosure).bytes == 0)
    }
}
