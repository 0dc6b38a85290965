import Testing

@testable import greenroomctl

@Suite("The journal of an app")
struct LogTests {
    private func query(_ line: [String], daemonUser: UInt32 = 0) -> [String]? {
        guard case .run(let invocation) = Invocation.parse(["log"] + line) else { return nil }
        return JournalQuery(invocation, daemonUser: daemonUser).arguments
    }

    @Test("is what the daemon says of it, and what it wrote itself")
    func app() {
        #expect(
            query(["photos"]) == [
                "_COMM=greenroomd", "_UID=0", "GREENROOM_APP=photos", "+", "_TRANSPORT=stdout",
                "SYSLOG_IDENTIFIER=photos",
            ])
    }

    @Test("without an app it is the daemon's, of the user whose daemon it is")
    func house() {
        #expect(query([], daemonUser: 1000) == ["_COMM=greenroomd", "_UID=1000"])
    }

    @Test("follows, counts and speaks JSON as it was asked to, and nothing else gets through as an option")
    func options() throws {
        let all = try #require(query(["photos", "-f", "-n", "5", "--json"]))
        #expect(all.prefix(3) == ["--follow", "--lines=5", "--output=json"])
        #expect(query(["photos", "-n", "x --root=/"]) == nil)
        #expect(query(["photos", "--root=/"]) == nil)
    }

    @Test("what cannot be an app's name never reaches journalctl")
    func names() throws {
        for name in ["--root=/", "a b", "a+b", "../x", "a=b", "+"] {
            guard case .wrong(let sentence) = Invocation.parse(["log", "--", name]) else {
                Issue.record("“\(name)” was taken")
                continue
            }
            #expect(sentence.contains("cannot be the name of an app"))
        }
    }
}
