import Glibc
import Linux
import Posix
import TestKit
import Testing

/// Processes are created by a process with a descriptor table of its own, which shares the memory of this one.
@Suite("Descriptors of this process at a launch")
struct LauncherTests {
    /// What each descriptor of this process refers to, by number.
    private func table() throws -> [String: String] {
        var table: [String: String] = [:]
        for number in try folderNames("/proc/self/fd") {
            var target = [CChar](repeating: 0, count: 512)
            let length = readlink("/proc/self/fd/\(number)", &target, 511)
            guard length > 0 else { continue }
            table[number] = String(decoding: target[..<length].map { UInt8(bitPattern: $0) }, as: UTF8.self)
        }
        // The folder that is being read.
        return table.filter { !$0.value.hasSuffix("/fd") }
    }

    @Test("with thousands of descriptors open a child has only its own", arguments: [false, true])
    func many(copyingMemory: Bool) throws {
        try inOwnProcess {
            let limit = Int(raiseDescriptorLimit())
            let file = try Descriptor.open("/dev/null", O_RDONLY)
            // Not close-on-exec. Both cases run in this process.
            for _ in 0..<min(10_000, limit / 2 - 500) { #expect(fcntl(file.raw, F_DUPFD, 100) >= 0) }
            let request = SpawnRequest(
                executable: "/bin/ls", arguments: ["/proc/self/fd"], oomScoreAdjust: copyingMemory ? 500 : nil,
                passedDescriptors: [PassedDescriptor(try standardInput(), name: "a")])
            // The last number is the folder that ls has open.
            #expect(try run(request).lines == ["0", "1", "2", "3", "4"])
        }
    }

    @Test("a launch changes no descriptor of this process, at whatever stage it fails")
    func untouched() throws {
        try inOwnProcess {
            let input = try standardInput()
            let closed = SharedDescriptor.notOpen
            let passed = PassedDescriptor(input, name: "a")
            let requests = [
                SpawnRequest(executable: "/bin/true", passedDescriptors: [passed, passed]),
                SpawnRequest(executable: "/bin/true", oomScoreAdjust: 500, passedDescriptors: [passed]),
                SpawnRequest(executable: "/no/such/program", standardInput: input),
                SpawnRequest(executable: "/bin/true", workingDirectory: "/no/such/folder"),
                SpawnRequest(executable: "/bin/true", standardInput: closed),
                SpawnRequest(executable: "/bin/true", standardOutput: closed, passedDescriptors: [passed]),
                SpawnRequest(
                    executable: "/bin/true", passedDescriptors: [passed, PassedDescriptor(closed, name: "bad")]),
                SpawnRequest(
                    executable: "/bin/true",
                    resourceLimits: [ResourceLimit(resource: Int32(RLIMIT_CORE.rawValue), soft: 2, hard: 1)]),
                SpawnRequest(executable: "/bin/true", cgroup: .notOpen),
            ]
            // The launcher and its channel exist from the first launch on.
            prepareStarts()
            let before = try table()
            for request in requests {
                do {
                    var starting = try startProcess(request)
                    _ = try starting.finalOutcome()
                    _ = try starting.process.waitForEnd()
                } catch {
                    let expected = SystemError(call: "clone3 into a cgroup", errno: EBADF, path: "/bin/true")
                    #expect((error as? SystemError) == expected)
                }
                // The Swift runtime may open one or two meanwhile.
                let now = try table()
                #expect(before.allSatisfy { now[$0.key] == $0.value })
                #expect(now.count < before.count + requests.count)
            }
        }
    }

    @Test("processes are started from several threads at a time")
    func threads() throws {
        let threads = (0..<4).compactMap { _ -> pthread_t? in
            var thread = pthread_t()
            let result = pthread_create(
                &thread, nil,
                { _ in
                    let outputs = (0..<20).map { _ in (try? run("/bin/echo", "hello"))?.output }
                    let isRight = outputs.allSatisfy { $0 == "hello\n" }
                    return isRight ? nil : UnsafeMutableRawPointer(bitPattern: 1)
                }, nil)
            return result == 0 ? thread : nil
        }
        #expect(threads.count == 4)
        for thread in threads {
            var failed: UnsafeMutableRawPointer?
            pthread_join(thread, &failed)
            #expect(failed == nil)
        }
    }

    /// The children of this process that create processes and have not ended.
    private func launchers() throws -> [Int32] {
        try ProcFS().pids().compactMap { try ProcFS().stat(of: $0) }
            .filter { $0.parent == getpid() && $0.comm == "launcher" && !$0.isDead }.map(\.pid)
    }

    @Test("signals for all processes of a terminal do not end the launcher; if it is killed, another one follows")
    func signals() throws {
        try inOwnProcess {
            let request = SpawnRequest(executable: "/bin/cat", arguments: ["/proc/self/stat"])
            func parentOfNext() throws -> Int32? { ProcessStat(parsing: Array(try run(request).output.utf8))?.parent }
            // Each process is a child of this one.
            #expect(try parentOfNext() == getpid())
            var first: [Int32] = []
            try eventually("the launcher runs") {
                first = try launchers()
                return first.count == 1
            }
            for signal in [SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGTSTP] { kill(first[0], signal) }
            #expect(try parentOfNext() == getpid())
            #expect(try launchers() == first)
            kill(first[0], SIGKILL)
            try eventually("the launcher has ended") { try launchers().isEmpty }
            // This process creates the next one itself.
            for _ in 0..<2 { #expect(try parentOfNext() == getpid()) }
            try eventually("the next launcher runs") { try launchers().count == 1 }
        }
    }
}
