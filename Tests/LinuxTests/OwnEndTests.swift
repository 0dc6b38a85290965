import Glibc
import Linux
import Posix
import TestKit
import Testing

@Suite("How a process ends")
struct OwnEndTests {
    /// What a process that ends by this signal has counted.
    private func counted(_ name: String, by end: () -> Void, function: String = #function, line: Int = #line) throws
        -> UInt64
    {
        // The process of its own is a child of the one that looks.
        let mine = "/tmp/greenroom-own-end-\(name)-\(getpid())"
        let parents = "/tmp/greenroom-own-end-\(name)-\(getppid())"
        defer { unlink(mine) }
        let file = try? MappedFile(at: mine, creating: 4096)
        #expect(throws: OwnProcessFailed.self) {
            try inOwnProcess(
                {
                    // Nothing comes after the end.
                    unlink(mine)
                    let file = try MappedFile(at: parents, creating: nil)
                    file.countOwnEnd(at: 8)
                    end()
                }, function: function, line: line)
        }
        return file?.word(at: 8) ?? 0
    }

    @Test("a fault and an abort are counted as its own, SIGKILL is not")
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
}
