import Glibc
import Linux
import Posix
import TestKit
import Testing

@Suite("How a process ends")
struct OwnEndTests {
    /// The count of a process that a signal ends.
    private func counted(
        _ name: String, after prepare: () -> Void = {}, by end: () -> Void, function: String = #function,
        line: Int = #line
    ) throws -> UInt64 {
        // The process that ends is a child of the one that reads the count.
        let mine = "/tmp/greenroom-own-end-\(name)-\(getpid())"
        let parents = "/tmp/greenroom-own-end-\(name)-\(getppid())"
        defer { unlink(mine) }
        let file = try? MappedFile(at: mine, creating: 4096)
        #expect(throws: OwnProcessFailed.self) {
            try inOwnProcess(
                {
                    // A signal ends this process, so its `defer` does not run.
                    unlink(mine)
                    let file = try MappedFile(at: parents, creating: nil)
                    prepare()
                    file.countOwnEnd(at: 8)
                    end()
                }, function: function, line: line)
        }
        return file?.word(at: 8) ?? 0
    }

    @Test("a fault and an abort are counted, SIGKILL is not")
    func counts() throws {
        #expect(try counted("abort", by: { abort() }) == 1)
        #expect(try counted("fault", by: { raise(SIGSEGV) }) == 1)
        #expect(try counted("killed", by: { raise(SIGKILL) }) == 0)
        #expect(
            try counted(
                "over",
                by: {
                    MappedFile.stopCountingOwnEnd()
                    abort()
                }) == 0)
    }

    @Test("the first SIGABRT ends the process, also if a handler that was installed before returns, as Swift's does")
    func handlerReturns() throws {
        let count = try counted(
            "returns", after: { signal(SIGABRT) { _ in } },
            by: {
                // The threads of tests have it blocked. abort(3) would end the process in any case.
                var set = sigset_t()
                sigemptyset(&set)
                sigaddset(&set, SIGABRT)
                pthread_sigmask(SIG_UNBLOCK, &set, nil)
                raise(SIGABRT)
            })
        #expect(count == 1)
    }
}
