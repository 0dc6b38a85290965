import Glibc
import JSON
import Linux
import Systemd
import Testing

/// A real daemon takes real processes through all states.
@Suite("The lifecycle of real processes")
struct LifecycleTests {
    @Test("an app is notified of every transition, in order (L3, L4)")
    func order() throws {
        let root = try TestDaemon.makeFolder()
        let text = TestDaemon.manifest("", trace: root + "/trace")
        let daemon = try TestDaemon(["photos": text], root: root)
        #expect(try daemon.launch("photos")["state"]?.stringValue == "active")
        // A notice waits for the one before it, but no longer than a second.
        try daemon.eventually("the first notice is delivered") { daemon.trace().last == "didBecomeActive" }
        #expect(try daemon.ask("Background", "photos")["state"]?.stringValue == "background")
        try daemon.waitUntil("photos", is: "suspended")
        #expect(try daemon.ask("Activate", "photos")["state"]?.stringValue == "active")
        try daemon.eventually("the second notice is delivered") {
            daemon.trace().count { $0 == "didBecomeActive" } == 2
        }
        let end = try daemon.terminate("photos")
        #expect(end["outcome"]?.stringValue == "ended")
        #expect(end["lastReceipt"]?["signal"]?.integerValue == 15)
        #expect(
            daemon.trace() == [
                "willFinishLaunching", "didBecomeActive", "willResignActive", "didEnterBackground",
                "willEnterForeground",
                "didBecomeActive",
            ])
    }

    @Test("a notice is sent when the previous signal is no longer pending, so the kernel does not reorder them (L3)")
    func signalsInOrder() throws {
        // A notice waits a second at most, within which a busy machine may not run the app.
        #expect(try (1...3).contains { _ in try areInOrder() })
    }

    private func areInOrder() throws -> Bool {
        let root = try TestDaemon.makeFolder()
        let text = TestDaemon.manifest("sigwait", trace: root + "/trace")
        let daemon = try TestDaemon(["photos": text], root: root)
        try daemon.launch("photos")
        // The app answers after it has handled the previous notices.
        for _ in 0..<3 {
            #expect(try daemon.ask("Background", "photos")["state"]?.stringValue == "background")
            try daemon.ask("Activate", "photos")
        }
        try daemon.eventually("all notices are delivered") { daemon.trace().count { $0 == "didBecomeActive" } == 4 }
        let round = ["willResignActive", "didEnterBackground", "willEnterForeground", "didBecomeActive"]
        return daemon.trace() == ["willFinishLaunching", "didBecomeActive"] + round + round + round
    }

    @Test("no process of a suspended app runs, not even in another session; after activation all run (L1)")
    func frozen() throws {
        let daemon = try TestDaemon(["family": TestDaemon.manifest("fork 3")])
        try daemon.launch("family")
        let processes = try daemon.processes(of: "family")
        #expect(processes.count == 4)
        try daemon.ask("Background", "family")
        try daemon.waitUntil("family", is: "suspended")
        // A frozen process does not handle a signal, not even one that ends it.
        for pid in processes { kill(pid, SIGUSR2) }
        #expect(try daemon.frozen("family"))
        try daemon.ask("Activate", "family")
        #expect(try !daemon.frozen("family"))
    }

    @Test(
        "an app with a process in uninterruptible sleep does not run (L1)",
        .enabled(if: geteuid() == 0 && access("/dev/fuse", R_OK | W_OK) == 0, "only root can mount a FUSE file system"))
    func uninterruptible() throws {
        let root = try TestDaemon.makeFolder()
        #expect(mkdir(root + "/silent", 0o755) == 0)
        let manifest = TestDaemon.manifest("sleep-in-kernel \(root)/silent", trace: root + "/trace")
        let daemon = try TestDaemon(["evader": manifest], root: root)
        try daemon.launch("evader")
        guard try daemon.groupPath("evader") != nil else { return }
        let processes = try daemon.processes(of: "evader")
        #expect(processes.count == 3)
        try daemon.ask("Background", "evader")
        try daemon.wait("evader", "freezeTakesLong")
        #expect(try daemon.state("evader") == "background")
        #expect(try !daemon.frozen("evader"))
        // The busy loop is frozen once it has had a processor; without the freeze it would be in the state R.
        func states() throws -> [UInt8] { try processes.compactMap { try ProcFS().status(of: $0)?.state }.sorted() }
        try daemon.eventually("one waits for the file system, the others are frozen") {
            try states() == Array("DSS".utf8)
        }
        #expect(try states() == Array("DSS".utf8))
        #expect(try daemon.ask("Activate", "evader")["state"]?.stringValue == "active")
        try daemon.terminate("evader")
        #expect(try daemon.state("evader") == "notRunning")
    }

    @Test("a program without support for Greenroom is launched, frozen, thawed and terminated (L2)")
    func unaware() throws {
        let daemon = try TestDaemon(["sleep": "[App]\nStartupSec=0\nExecStart=/bin/sleep 1000\n"])
        #expect(try daemon.launch("sleep", background: true)["state"]?.stringValue == "background")
        try daemon.waitUntil("sleep", is: "suspended")
        #expect(try daemon.ask("Activate", "sleep")["state"]?.stringValue == "active")
        #expect(try daemon.terminate("sleep")["explanation"]?.stringValue == "Terminated on request: ended by SIGTERM.")
        #expect(try daemon.state("sleep") == "notRunning")
    }

    @Test("an app receives its launch reason, its first launch is marked, and its directories exist (L6, L9)")
    func environment() throws {
        let script =
            "/bin/sh -c 'env > $$0.$$GREENROOM_FIRST_LAUNCH; ls -d $$STATE_DIRECTORY >> $$0.$$GREENROOM_FIRST_LAUNCH'"
        let root = try TestDaemon.makeFolder()
        let text = "[App]\nExecStart=\(script) \(root)/env\nStateDirectory=notes\nEnvironment=COLOUR=green\n"
        let daemon = try TestDaemon(["notes": text], root: root)
        _ = try daemon.ask(
            "Launch", "notes", [.dictionary([("background", .bool(true)), ("reason", .string("fetch"))])])
        try daemon.wait("notes", "ended")
        let first = TestDaemon.text(of: root + "/env.1").split(separator: "\n")
        #expect(first.contains("GREENROOM_APP=notes"))
        #expect(first.contains("GREENROOM_LAUNCH_REASON=fetch"))
        #expect(first.contains("GREENROOM_LAUNCH_STATE=background"))
        #expect(first.contains("COLOUR=green"))
        #expect(first.last == "\(root)/state/apps/notes")
        try daemon.waitUntil("notes", is: "notRunning")
        _ = try daemon.launch("notes")
        try daemon.wait("notes", "ended")
        let second = TestDaemon.text(of: root + "/env.").split(separator: "\n")
        #expect(second.contains("GREENROOM_LAUNCH_STATE=inactive"))
        #expect(second.contains { $0.hasPrefix("GREENROOM_LAST_RECEIPT=") })
    }

    @Test("a URL for a running app is refused with a sentence (L8)")
    func urlOfRunning() throws {
        let daemon = try TestDaemon(["photos": "[App]\nExecStart=/bin/sleep 1000\n"])
        let options: [Variant] = [.string("photos"), .dictionary([("url", .string("photos://1"))])]
        _ = try daemon.call("Launch", options)
        #expect(daemon.failure("Launch", options) == "OpensNoURLs")
    }

    @Test("activating an app moves the active app to the background (L12)")
    func foregroundLimit() throws {
        let daemon = try TestDaemon(["a": TestDaemon.manifest(""), "b": TestDaemon.manifest("")])
        try daemon.launch("a")
        try daemon.launch("b")
        try daemon.waitUntil("a", is: "suspended")
        #expect(try daemon.state("b") == "active")
        try daemon.ask("Activate", "a")
        #expect(try daemon.status("a")["foreground"]?.boolValue == true)
        #expect(try daemon.status("b")["foreground"]?.boolValue == false)
    }

    @Test("interruptions nest (L13)")
    func interruptions() throws {
        let daemon = try TestDaemon(["call": TestDaemon.manifest("")])
        try daemon.launch("call")
        #expect(try daemon.ask("Interrupt", "call")["state"]?.stringValue == "inactive")
        #expect(try daemon.ask("Interrupt", "call")["state"]?.stringValue == "inactive")
        #expect(try daemon.ask("Resume", "call")["state"]?.stringValue == "inactive")
        #expect(try daemon.ask("Resume", "call")["state"]?.stringValue == "active")
        #expect(daemon.failure("Resume", [.string("call")]) == "NotInterrupted")
    }

    @Test("an app may answer by stopping itself, and activation sends SIGCONT to it (L17)")
    func answersByStopping() throws {
        let daemon = try TestDaemon(["editor": TestDaemon.manifest("background=stop")])
        try daemon.launch("editor")
        #expect(try daemon.ask("Background", "editor")["state"]?.stringValue == "background")
        try daemon.waitUntil("editor", is: "suspended")
        #expect(try daemon.ask("Activate", "editor")["state"]?.stringValue == "active")
        try daemon.eventually("the app runs again") { try ProcFS().stat(of: daemon.pid("editor"))?.isStopped == false }
    }

    @Test("an app with ExitsOnSuspend=yes is terminated instead of suspended (L20)")
    func exitsOnSuspend() throws {
        let daemon = try TestDaemon([
            "once": TestDaemon.manifest("", "[Lifecycle]\nExitsOnSuspend=yes\nSuspendDelaySec=0")
        ])
        try daemon.launch("once", background: true)
        try daemon.wait("once", "ended")
        #expect(try daemon.receipts("once").last?["explanation"]?.stringValue?.contains("ExitsOnSuspend") == true)
    }

    @Test("no process of an app survives its end, however it forked (L47)")
    func nothingOutlives() throws {
        let daemon = try TestDaemon(["family": TestDaemon.manifest("fork 5")])
        try daemon.launch("family")
        let processes = try daemon.processes(of: "family")
        #expect(processes.count == 6)
        kill(try daemon.pid("family"), SIGKILL)
        try daemon.wait("family", "stateChanged", state: "notRunning")
        #expect(processes.allSatisfy { !isAlive($0) })
        let receipt = try #require(try daemon.receipts("family").last)
        #expect(receipt["namespace"]?.stringValue == "signal")
        #expect(receipt["signal"]?.integerValue == 9)
    }

    @Test("the launch count survives the daemon, and an invalid one counts as 0 (L9)")
    func launchesCount() throws {
        let root = try TestDaemon.makeFolder()
        let text = "[App]\nExecStart=/bin/true\n"
        try createDirectories(at: root + "/state/launches")
        try replaceFile(at: root + "/state/launches/known", with: Array("8\n".utf8))
        try replaceFile(at: root + "/state/launches/torn", with: Array("\0\0\0".utf8))
        let first = try TestDaemon(["known": text, "torn": text], root: root)
        for _ in 0..<2 {
            try first.launch("known")
            try first.waitUntil("known", is: "notRunning")
        }
        #expect(try first.status("known")["launches"]?.integerValue == 10)
        #expect(try first.status("torn")["launches"]?.integerValue == 0)
        first.stop()
        let second = try TestDaemon(["known": text], root: root)
        #expect(try second.status("known")["launches"]?.integerValue == 10)
    }

    @Test("receipts survive the daemon, and their IDs continue (L45)")
    func receiptsSurvive() throws {
        let root = try TestDaemon.makeFolder()
        let text = "[App]\nExecStart=/bin/sh -c 'exit 7'\n"
        let first = try TestDaemon(["seven": text], root: root)
        try first.launch("seven")
        try first.wait("seven", "ended")
        first.stop()
        // A crash during a write: the incomplete line is ignored, and the next receipt is complete.
        try AppendFile(root + "/state/receipts.jsonl").append(Array(#"{"id":9,"app":"sev"#.utf8))
        let second = try TestDaemon(["seven": text], root: root)
        try second.launch("seven")
        try second.wait("seven", "ended")
        let receipts = try second.receipts("seven")
        #expect(receipts.map { $0["exitStatus"]?.integerValue } == [7, 7])
        #expect(receipts.map { $0["id"]?.integerValue } == [1, 2])
    }

    @Test("a stop of the daemon leaves no process, group or socket behind")
    func leavesNothing() throws {
        let daemon = try TestDaemon([
            "a": TestDaemon.manifest("fork 2"),
            "b": TestDaemon.manifest("term=ignore", "[Lifecycle]\nTerminateDeadlineSec=100ms"),
        ])
        try daemon.launch("a")
        try daemon.launch("b")
        let processes = try daemon.processes(of: "a") + daemon.processes(of: "b")
        let groups = try daemon.groupPath("a")
        #expect(daemon.stop() == .exited(0))
        #expect(processes.allSatisfy { !isAlive($0) })
        #expect(groups.map { !exists(at: $0) } ?? true)
        #expect(!exists(at: daemon.runtime + "/bus"))
    }
}
