import Glibc
import JSON
import Testing

@Suite("The watchdog of real processes")
struct WatchdogTests {
    @Test("WATCHDOG_USEC= counts instead of WatchdogSec=, also after a crash of the daemon, until the end of the run")
    func timeChanged() throws {
        let script = "say WATCHDOG_USEC=0 hangup=WATCHDOG_USEC=1000"
        var daemon = try TestDaemon(["app": TestDaemon.manifest(script, "[Lifecycle]\nWatchdogSec=300ms")])
        try daemon.launch("app")
        #expect(try daemon.status("app")["deadline"] == nil)
        daemon.crash()
        daemon = try daemon.successor()
        try daemon.ask("Background", "app")
        try daemon.ask("Activate", "app")
        #expect(try daemon.status("app")["deadline"] == nil)
        kill(try daemon.pid("app"), SIGHUP)
        try daemon.wait("app", "ended")
        let end = try #require(try daemon.receipts("app").last)
        #expect(
            end["explanation"]?.stringValue?.hasPrefix("Killed: sent no heartbeat (WATCHDOG=1) for 1ms") == true,
            "\(end)")
    }

    @Test("WATCHDOG=trigger ends an app that is not in the foreground, too")
    func trigger() throws {
        let daemon = try TestDaemon(["app": TestDaemon.manifest("hangup=WATCHDOG=trigger", "[App]\nRole=worker")])
        try daemon.launch("app")
        kill(try daemon.pid("app"), SIGHUP)
        try daemon.wait("app", "ended")
        let end = try #require(try daemon.receipts("app").last)
        #expect(end["code"]?.stringValue == "0x8badf00d")
        #expect(end["explanation"]?.stringValue == "Killed: reported an internal error (WATCHDOG=trigger).")
    }

    @Test("a key of systemd's that has no effect is a warning once in a run")
    func ignoredKey() throws {
        let daemon = try TestDaemon(["app": TestDaemon.manifest("say RELOADING=1 say RELOADING=1 say STATUS=done")])
        try daemon.launch("app")
        try daemon.eventually("all is read") { try daemon.status("app")["statusText"]?.stringValue == "done" }
        let warning = "app: RELOADING= was ignored: the state of an app does not show that it reloads"
        let lines = TestDaemon.text(of: daemon.root + "/log").split(separator: "\n")
        #expect(lines.count { $0.contains(warning) } == 1)
    }
}
