import Posix
import Testing

@testable import Daemon

@Suite("What holds up the end of the daemon")
struct BlockedHelpersTests {
    @Test("the sentence names the apps, each once, and what to do about each call")
    func sentences() {
        #expect(BlockedHelpers.problem(of: []) == nil)
        let blocked = [
            BlockedHelper(.examining, owner: "web"), BlockedHelper(.closingFile, owner: "photos"),
            BlockedHelper(.closingFile, owner: "music"), BlockedHelper(.closingFile, owner: "photos"),
            BlockedHelper(.closing, owner: ""),
        ]
        #expect(
            BlockedHelpers.problem(of: blocked)
                == "files that music, photos sent cannot be closed: their file system does not answer; end the program that "
                + "serves it; descriptors of an app or a client cannot be closed: another process holds their lock; end that "
                + "process; descriptors or files of web cannot be examined: another process holds their lock, or their file "
                + "system does not answer; end that process")
    }
}
