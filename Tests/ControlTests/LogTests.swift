import Testing

@testable import greenroomctl

@Suite("log")
struct LogTests {
    private func query(_ line: [String], daemonUser: UInt32 = 0) -> [String]? {
        guard case .run(let invocation) = Invocation.parse(["log"] + line) else { return nil }
        return JournalQuery(invocation, daemonUser: daemonUser).arguments
    }

    @Test("shows the daemon's entries about an app, and the app's output")
    func app() {
        #expect(
            query(["photos"]) == [
                "_COMM=greenroomd", "_UID=0", "GREENROOM_APP=photos", "+", "_TRANSPORT=stdout",
                "SYSLOG_IDENTIFIER=photos",
            ])
    }

    @Test("without an app shows the entries of the daemon's user")
    func wholeDaemon() {
        #expect(query([], daemonUser: 1000) == ["_COMM=greenroomd", "_UID=1000"])
    }

    @Test("passes --follow, --lines and --json to journalctl, and no other option")
    func options() throws {
        let all = try #require(query(["photos", "-f", "-n", "5", "--json"]))
        #expect(all.prefix(3) == ["--follow", "--lines=5", "--output=json"])
        #expect(query(["photos", "-n", "x --root=/"]) == nil)
        #expect(query(["photos", "--root=/"]) == nil)
    }

    @Test("an invalid app ID never reaches journalctl")
    func names() throws {
        for name in ["--root=/", "a b", "a+b", "../x", "a=b", "+"] {
            guard case .wrong(let sentence) = Invocation.parse(["log", "--", name]) else {
                Issue.record("'\(name)' was accepted")
                continue
            }
            #expect(sentence.contains("invalid app ID"))
        }
    }
}
