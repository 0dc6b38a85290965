import Glibc
import Systemd
import Testing

@Suite(
    "The output of apps",
    .enabled(if: access("/run/systemd/journal/socket", W_OK) != 0, "journald has it on this machine")
)
struct OutputTests {
    @Test("without journald the output of apps goes to the daemon's standard error")
    func standardError() throws {
        let manifest = """
            [App]
            ExecStart=/bin/sh -c 'echo an answer; echo a warning >&2; exec sleep 1000'

            """
        let daemon = try TestDaemon(["talker": manifest])
        try daemon.launch("talker")
        try daemon.eventually("the app has written") {
            let lines = TestDaemon.text(of: daemon.root + "/log").split(separator: "\n")
            return lines.contains("an answer") && lines.contains("a warning")
        }
    }
}
