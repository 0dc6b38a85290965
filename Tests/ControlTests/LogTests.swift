import Glibc
import Systemd
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

    @Test("the values of several apps are alternatives, and --since is passed as it is")
    func several() throws {
        let line = try #require(query(["photos", "mail.app", "--since", "2 days ago"]))
        #expect(
            line == [
                "--since=2 days ago", "_COMM=greenroomd", "_UID=0", "GREENROOM_APP=photos", "GREENROOM_APP=mail", "+",
                "_TRANSPORT=stdout", "SYSLOG_IDENTIFIER=photos", "SYSLOG_IDENTIFIER=mail",
            ])
    }

    private static var hasJournal: Bool {
        let paths: [String] = ["/run/systemd/journal/socket", "/var/log/journal", "/run/log/journal"]
        return paths.contains { access($0, F_OK) == 0 }
    }

    @Test("without a journal log fails and says so", .enabled(if: !hasJournal, "this machine has a journal"))
    func noJournal() throws {
        let program = try RunningProgram(["--runtime", "/nowhere", "log"], environment: [], terminal: false)
        let outcome = try program.finish(in: EventLoop())
        #expect(outcome.status == 1)
        #expect(
            outcome.errors
                == "greenroomctl: There is no journal on this machine: greenroomd writes its log to standard error. 'greenroomctl log "
                + "APP' shows the output of an app.\n")
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
