import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// Commands that real processes are run for at transitions (L57).
@Suite("Hooks")
struct HookTests {
    /// A program that takes no part, and scripts for its hooks in a folder of its own.
    private final class Stage {
        let folder = makeTemporaryFolder("greenroom-hooks")
        let daemon: TestDaemon

        /// - Parameter lifecycle: settings, in which `@` is the folder.
        init(_ lifecycle: String, app: String = "", scripts: [String: String], wrapper: [String] = []) throws {
            chmod(folder, 0o777)
            for (name, text) in scripts {
                let script = text.split(separator: "@", omittingEmptySubsequences: false).joined(separator: folder)
                try replaceFile(at: folder + "/" + name, with: Array(script.utf8), mode: 0o755)
            }
            let settings = lifecycle.split(separator: "@", omittingEmptySubsequences: false).joined(separator: folder)
            let manifest = """
                [App]
                ExecStart=/bin/sleep infinity
                StartupSec=0
                \(app)
                [Lifecycle]
                SuspendDelaySec=0
                \(settings)

                """
            daemon = try TestDaemon(["llama": manifest], wrapper: wrapper)
        }

        deinit { removeTree(folder) }

        func text(_ name: String) -> String { TestDaemon.text(of: folder + "/" + name) }

        /// The lines of a file, once it is there.
        func lines(_ name: String) throws -> [String] {
            try daemon.eventually(name) { exists(at: folder + "/" + name) }
            return text(name).split(separator: "\n").map(String.init)
        }

        /// Lets a script that waits for the file continue.
        func create(_ name: String) throws { try replaceFile(at: folder + "/" + name, with: []) }

        func background() throws -> JSONValue { try daemon.ask("Background", "llama") }
        func activate() throws -> JSONValue { try daemon.ask("Activate", "llama") }
    }

    /// Writes its environment to a file.
    private static let write = """
        #!/bin/sh
        { env; echo "uid=$(id -u)"; echo "folder=$PWD"; cat /proc/self/cgroup; } > "@/$1.new"
        echo "output of $1"
        mv "@/$1.new" "@/$1"
        """
    /// Waits for a file.
    private static let hold =
        "#!/bin/sh\necho $$ > @/held.new\nmv @/held.new @/held\nuntil [ -e @/release ]; do sleep 0.02; done\n"

    @Test(
        "the commands of hooks run in the app's group, as its user and with its environment, and get the reason (L57)",
        .enabled(if: geteuid() == 0, "it starts an app as another user"))
    func environment() throws {
        let stage = try Stage(
            """
            BackgroundDeadlineSec=50s
            ExecEnterBackground=@/write ${PREFIX}background
            ExecBeforeSuspend=@/write before
            ExecAfterResume=@/write after
            ExecEnterForeground=@/write foreground
            """,
            app: "User=nobody\nEnvironment=PREFIX=in-\nWorkingDirectory=/usr",
            scripts: ["write": Self.write])
        let daemon = stage.daemon
        try daemon.launch("llama")
        let pid = try daemon.pid("llama")
        _ = try stage.background()
        let entered = try stage.lines("in-background")
        for line in [
            "GREENROOM_STATE=background", "GREENROOM_REASON=requested", "GREENROOM_APP=llama", "MAINPID=\(pid)",
            "PREFIX=in-", "uid=65534", "folder=/usr",
        ] { #expect(entered.contains(line), "\(line) is missing in \(entered)") }
        #expect(!entered.contains { $0.hasPrefix("NOTIFY_SOCKET=") || $0.hasPrefix("GREENROOM_BUS_ADDRESS=") })
        if try daemon.groupPath("llama") != nil {
            let group = TestDaemon.text(of: "/proc/\(pid)/cgroup").split(separator: "\n").map(String.init)
            #expect(group.allSatisfy(entered.contains))
        }
        try daemon.waitUntil("llama", is: "suspended")
        let before = try stage.lines("before")
        #expect(before.contains("GREENROOM_STATE=suspended") && before.contains("GREENROOM_REASON=idle"))
        #expect(!exists(at: stage.folder + "/after"))
        #expect(try stage.activate()["state"]?.stringValue == "active")
        let after = try stage.lines("after")
        #expect(after.contains("GREENROOM_STATE=inactive") && after.contains("GREENROOM_REASON=requested"))
        #expect(after.contains { $0.hasPrefix("GREENROOM_SLEPT_SEC=") })
        #expect(try stage.lines("foreground").contains("GREENROOM_STATE=inactive"))
        #expect(try daemon.pid("llama") == pid)
        // Their output goes where the app's goes.
        let output = TestDaemon.text(of: daemon.state + "/output/llama") + TestDaemon.text(of: daemon.root + "/log")
        #expect(output.contains("output of after"))
    }

    @Test("a hook that hangs is killed at the background deadline, with its children; the app continues (L57)")
    func hangs() throws {
        let stage = try Stage(
            "BackgroundDeadlineSec=4s\nExecEnterBackground=@/hang",
            scripts: ["hang": "#!/bin/sh\nsleep 1000 &\necho $! > @/child\nmv @/child @/pid\nwait\n"])
        try stage.daemon.launch("llama")
        let pid = try stage.daemon.pid("llama")
        let killed = try stage.daemon.begin("Background", "llama", [])
        let event = try stage.daemon.wait("llama", "hookKilled")
        #expect(event["hook"]?.stringValue == "ExecEnterBackground")
        _ = try stage.daemon.finish(killed)
        let child = try #require(Int32(try stage.lines("pid").first ?? ""))
        try stage.daemon.waitUntil("llama", is: "suspended")
        #expect(try stage.daemon.pid("llama") == pid && isAlive(pid))
        try stage.daemon.eventually("its child has ended") { !isAlive(child) }
    }

    @Test("status 75 of ExecBeforeSuspend= refuses once; a program that does not exist is logged (L57)")
    func refuses() throws {
        let stage = try Stage(
            "BackgroundDeadlineSec=50s\nExecBeforeSuspend=@/refuse\nExecEnterBackground=/does/not/exist",
            scripts: ["refuse": "#!/bin/sh\necho run >> @/runs\nexit 75\n"])
        try stage.daemon.launch("llama")
        _ = try stage.background()
        let failure = try stage.daemon.wait("llama", "hookFailed")
        #expect(failure["message"]?.stringValue?.contains("/does/not/exist") == true)
        try stage.daemon.wait("llama", "suspensionRefused")
        let second = try stage.daemon.wait("llama", "hookFailed")
        #expect(second["exitStatus"]?.integerValue == 75)
        try stage.daemon.waitUntil("llama", is: "suspended")
        #expect(try stage.lines("runs").count == 2)
    }

    @Test("an activation does not wait for ExecBeforeSuspend=, which is followed by ExecAfterResume= (L57)")
    func activation() throws {
        let stage = try Stage(
            "BackgroundDeadlineSec=50s\nExecBeforeSuspend=@/hold\nExecAfterResume=@/write after",
            scripts: ["hold": Self.hold, "write": Self.write])
        try stage.daemon.launch("llama")
        _ = try stage.background()
        _ = try stage.lines("held")
        let awake = try stage.daemon.status("llama")["awake"]?.arrayValue?.first
        #expect(awake?["reason"]?.stringValue == "hook")
        #expect(awake?["explanation"]?.stringValue == "it runs ExecBeforeSuspend=")
        #expect(try stage.activate()["state"]?.stringValue == "active")
        #expect(!exists(at: stage.folder + "/after"))
        try stage.create("release")
        #expect(try stage.lines("after").contains("GREENROOM_SLEPT_SEC=0"))
        #expect(try stage.daemon.state("llama") == "active")
    }

    @Test("the next daemon waits for a hook that runs, and runs the commands after it (L57)")
    func recovery() throws {
        let stage = try Stage(
            "BackgroundDeadlineSec=50s\nExecBeforeSuspend=@/hold\nExecBeforeSuspend=@/write second",
            scripts: ["hold": Self.hold, "write": Self.write])
        try stage.daemon.launch("llama")
        _ = try stage.background()
        let hook = try #require(Int32(try stage.lines("held").first ?? ""))
        stage.daemon.crash()
        let next = try stage.daemon.successor()
        #expect(try next.state("llama") == "background" && isAlive(hook))
        try stage.create("release")
        try next.waitUntil("llama", is: "suspended")
        #expect(try stage.lines("second").contains("GREENROOM_STATE=suspended"))
    }

    @Test("a hook that has ended while there was no daemon keeps no app awake (L57)")
    func endedMeanwhile() throws {
        let stage = try Stage(
            "BackgroundDeadlineSec=50s\nExecBeforeSuspend=@/hold", scripts: ["hold": Self.hold])
        try stage.daemon.launch("llama")
        _ = try stage.background()
        let hook = try #require(Int32(try stage.lines("held").first ?? ""))
        stage.daemon.crash()
        try stage.create("release")
        try stage.daemon.eventually("the hook has ended") { !isAlive(hook) }
        try stage.daemon.successor().waitUntil("llama", is: "suspended")
    }

    @Test("a hook ends with its app (L47, L57)", arguments: [false, true])
    func ends(remove: Bool) throws {
        let stage = try Stage(
            "BackgroundDeadlineSec=50s\nExecAfterResume=@/hold\nExecAfterResume=@/write second",
            scripts: ["hold": Self.hold, "write": Self.write])
        try stage.daemon.launch("llama")
        _ = try stage.background()
        try stage.daemon.waitUntil("llama", is: "suspended")
        _ = try stage.activate()
        let hook = try #require(Int32(try stage.lines("held").first ?? ""))
        try stage.daemon.terminate("llama", remove: remove)
        #expect(try stage.daemon.state("llama") == "notRunning")
        #expect(!isAlive(hook) && !exists(at: stage.folder + "/second"))
    }
}
