import Glibc
import JSON
import Linux
import Posix
import TestKit
import Testing

/// Where callers of `greenroomctl run` may be: other sessions and users, namespaces, sandboxes.
@Suite("greenroomctl run: contexts of callers", .enabled(if: geteuid() == 0, "needs control groups"))
struct RunContextTests {
    /// Denies system calls, as the sandboxes of containers do, and executes its arguments. The first ones are the number of an error, and
    /// the system calls. What is checked is the number alone, so it is the same for both architectures that have these numbers.
    private static let sandbox = #"""
        import ctypes, os, struct, sys
        error, calls = int(sys.argv[1]), [int(n) for n in sys.argv[2].split(",")]
        program = [(0x20, 0, 0, 0)]
        for number in calls: program += [(0x15, 0, 1, number), (6, 0, 0, 0x50000 | error)]
        program.append((6, 0, 0, 0x7FFF0000))
        code = ctypes.create_string_buffer(b"".join(struct.pack("HBBI", *line) for line in program))
        filter = struct.pack("HxxxxxxQ", len(program), ctypes.addressof(code))
        libc = ctypes.CDLL(None, use_errno=True)
        if libc.prctl(38, 1, 0, 0, 0) or libc.prctl(22, 2, ctypes.c_char_p(filter)): sys.exit("no seccomp")
        os.execv(sys.argv[3], sys.argv[3:])

        """#
    /// clone3, and the system calls of pidfds: pidfd_open, pidfd_getfd, pidfd_send_signal.
    private static let clone3 = "435"
    private static let pidfds = "434,438,424"

    struct Context: Sendable, CustomStringConvertible {
        var description: String
        /// A program that starts what follows its arguments. `ROOT` is the folder of the test.
        var starter: [String]
        /// Why the command is executed directly; `nil`: it sleeps.
        var reason: String?
    }

    private static let contexts: [Context] = [
        Context(description: "nohup", starter: ["/usr/bin/nohup"]),
        Context(description: "setsid", starter: ["/usr/bin/setsid", "--wait"]),
        Context(
            description: "su", starter: ["/usr/bin/su", "-s", "/bin/sh", "root", "-c", "exec \"$0\" \"$@\"", "--"]),
        Context(description: "sudo", starter: ["/usr/bin/sudo", "-n"]),
        Context(
            description: "a container of bubblewrap",
            starter: ["/usr/bin/bwrap", "--unshare-all", "--dev-bind", "/", "/", "--proc", "/proc"]),
        Context(description: "no_new_privs", starter: ["/usr/bin/setpriv", "--no-new-privs"]),
        Context(
            description: "no capabilities", starter: ["/usr/bin/setpriv", "--bounding-set=-all", "--inh-caps=-all"]),
        Context(description: "a mount namespace", starter: ["/usr/bin/unshare", "--mount"]),
        Context(
            description: "a pid namespace, as its first process",
            starter: ["/usr/bin/unshare", "--pid", "--fork", "--mount-proc"]),
        Context(
            description: "a pid namespace, below a shell",
            starter: ["/usr/bin/unshare", "--pid", "--fork", "--mount-proc", "/bin/sh", "-c", "\"$0\" \"$@\"; exit $?"]),
        Context(description: "a pid namespace without its /proc", starter: ["/usr/bin/unshare", "--pid", "--fork"]),
        Context(description: "a user namespace", starter: ["/usr/bin/unshare", "--user", "--map-root-user"]),
        Context(
            description: "a time and a network namespace",
            starter: ["/usr/bin/unshare", "--net", "--time", "--ipc", "--uts"]),
        Context(description: "a sandbox without clone3", starter: ["SANDBOX", "38", clone3]),
        Context(description: "a sandbox that forbids pidfds", starter: ["SANDBOX", "1", pidfds]),
        Context(
            description: "a sandbox without clone3 and pidfds", starter: ["SANDBOX", "38", clone3 + "," + pidfds],
            reason: "its process has no pidfd here"),
        Context(
            description: "within another run", starter: ["RUN", "--"],
            reason: "it runs within another 'greenroomctl run'"),
    ]

    private static func words(_ context: Context, _ daemon: TestDaemon) throws -> [String] {
        try replaceFile(at: daemon.root + "/sandbox.py", with: Array(sandbox.utf8))
        return context.starter.flatMap { word in
            switch word {
            case "SANDBOX": [TrafficStage.python, daemon.root + "/sandbox.py"]
            case "RUN": [TestDaemon.binaries + "/greenroomctl", "--runtime", daemon.runtime, "run"] + RunClient.soon
            default: [word]
            }
        }
    }

    @Test(
        "a command answers, sleeps unless it is said why not, and has its signals and its status, wherever its caller is (L54)",
        arguments: contexts)
    func answers(context: Context) throws {
        guard access(context.starter[0], X_OK) == 0 || !context.starter[0].hasPrefix("/") else { return }
        let daemon = try TestDaemon()
        let starter = try Self.words(context, daemon)
        let program =
            "trap 'echo caught' USR1; echo $$; while :; do read -r line && { echo $line; continue; }; exec sh -c 'exit 7'; done"
        let client = try RunClient(
            daemon, ["bash", "-c", program], options: RunClient.soon + ["--name", "inner"], by: starter)
        _ = try client.line()
        try client.exchange("one")
        if let reason = context.reason {
            #expect(daemon.errors == "greenroomctl: run: executed directly, it does not sleep: \(reason)\n")
        } else {
            try daemon.waitUntil("run@inner", is: "suspended")
            #expect(daemon.errors == "")
        }
        try client.exchange("two")
        // The relay, which may have another process as its parent.
        if context.reason == nil {
            try daemon.waitUntil("run@inner", is: "suspended")
            let relay = try #require(try ProcFS().stat(of: Int32(daemon.pid("run@inner")))?.parent)
            kill(relay, SIGUSR1)
            #expect(try client.line() == "caught")
            try daemon.waitUntil("run@inner", is: "suspended")
        }
        client.closeInput()
        #expect(try client.bytes() == [])
        #expect(try client.end() == .exited(7))
        try daemon.eventually("nothing is left") { try daemon.listed().isEmpty }
    }

    @Test(
        "the daemon of the system is found with HOME, PATH, SHELL and TERM alone, as cron and MCP clients have it (L54)",
        .enabled(if: access("/usr/bin/unshare", X_OK) == 0, "needs unshare"))
    func bareEnvironment() throws {
        let daemon = try TestDaemon()
        // Of no other daemon on this machine: a /run of its own.
        let mount =
            "mount -t tmpfs tmpfs /run && mkdir /run/greenroom && mount --bind \(daemon.runtime) /run/greenroom || exit 1; "
            + "exec env -i HOME=/root PATH=/usr/bin:/bin SHELL=/bin/sh TERM=dumb \(TestDaemon.binaries)/greenroomctl run "
            + "-p IdleSec=100ms -p StartupSec=0 --name inner -- sh -c 'env | sort | tr \"\\n\" \" \"; echo; exec cat'"
        let client = try RunClient(
            daemon, ["/usr/bin/unshare", "--mount", "/bin/sh", "-c", mount], isBare: true)
        let variables = try client.line().split(separator: " ").filter { !$0.hasPrefix("PWD=") && !$0.hasPrefix("_=") }
        #expect(
            variables == ["GREENROOM_WITHIN_RUN=1", "HOME=/root", "PATH=/usr/bin:/bin", "SHELL=/bin/sh", "TERM=dumb"])
        try daemon.waitUntil("run@inner", is: "suspended")
        try client.exchange("one")
        client.closeInput()
        #expect(try client.end() == .exited(0))
        #expect(daemon.errors == "")
    }
}
