import Control
import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// Processes that use all processors, each in a session of its own: the kernel divides processors among sessions first
/// (sched(7), autogroups).
private final class BusyLoops {
    private var processes: [Linux.Process] = []

    init(_ count: Int) throws {
        for _ in 0..<count {
            var starting = try startProcess(SpawnRequest(executable: TestDaemon.app, arguments: ["spin"]))
            while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
            processes.append(starting.process)
        }
    }

    deinit {
        for process in processes {
            _ = try? process.signal(SIGKILL)
            waitForReadable([process.descriptor])
            _ = try? process.reap()
        }
    }
}

@Suite("Launches under load", .serialized)
struct LoadTests {
    /// An app that is ready when a file exists, and computes until then.
    private static func waiting(_ root: String, _ name: String, _ more: String = "") -> String {
        "[App]\nType=notify\nLaunchAtStart=background\nExecStart=\(TestDaemon.app) compute-until \(root)/\(name) ready\n"
            + "[Lifecycle]\nLaunchDeadlineSec=50s\nSuspendDelaySec=0\n\(more)"
    }

    private func isWaiting(_ daemon: TestDaemon, _ app: String) throws -> Bool {
        try daemon.status(app)["launchWaitingSeconds"]?.numberValue != nil
    }

    @Test("a launch waits while LaunchesAtOnce= others compute, and is carried out when one is complete (L52)")
    func admission() throws {
        let root = try TestDaemon.makeFolder()
        let names = ["a", "b", "c"]
        let apps = Dictionary(uniqueKeysWithValues: names.map { ($0, Self.waiting(root, $0)) })
        let daemon = try TestDaemon(apps, configuration: "[Manager]\nLaunchesAtOnce=1\n", root: root)
        try daemon.waitUntil("a", is: "launching")
        try compute("a", daemon)
        #expect(try isWaiting(daemon, "b") && isWaiting(daemon, "c"))
        #expect(try daemon.state("b") == "notRunning")
        try replaceFile(at: root + "/a", with: [])
        try daemon.waitUntil("b", is: "launching")
        #expect(try daemon.state("a") != "launching")
        #expect(try isWaiting(daemon, "c"))
        // A client that wants it to end does not wait for the launch.
        #expect(try daemon.terminate("c")["state"]?.stringValue == "notRunning")
        #expect(try !isWaiting(daemon, "c"))
    }

    /// Waits until an app has used a processor for so long that it was measured several times.
    private func compute(_ app: String, _ daemon: TestDaemon) throws {
        let pid = try daemon.pid(app)
        try daemon.eventually("\(app) computes") { try ProcFS().stat(of: pid)?.ownTicks ?? 0 > 50 }
    }

    @Test(
        "in process-group mode a launch that computes makes others wait (L52)",
        .enabled(if: geteuid() == 0 && exists(at: "/usr/bin/systemd-notify"), "needs systemd-notify, and another user"))
    func processGroups() throws {
        let root = try TestDaemon.makeFolder()
        func manifest(_ name: String) -> String {
            let script = "until [ -e \(root)/\(name) ]; do :; done; systemd-notify --ready; exec sleep 1000"
            return "[App]\nType=notify\nLaunchAtStart=background\nExecStart=/bin/sh -c '\(script)'\n"
                + "[Lifecycle]\nLaunchDeadlineSec=50s\n"
        }
        let daemon = try TestDaemon(
            ["a": manifest("a"), "b": manifest("b")], configuration: "[Manager]\nLaunchesAtOnce=1\n", root: root,
            asUnprivilegedUser: true)
        try daemon.waitUntil("a", is: "launching")
        try compute("a", daemon)
        #expect(try isWaiting(daemon, "b"))
        try replaceFile(at: root + "/a", with: [])
        try daemon.waitUntil("b", is: "launching")
    }

    @Test("a launch into the foreground does not wait (L52)")
    func foreground() throws {
        let root = try TestDaemon.makeFolder()
        let apps = ["a": Self.waiting(root, "a"), "b": TestDaemon.manifest("")]
        let daemon = try TestDaemon(apps, configuration: "[Manager]\nLaunchesAtOnce=1\n", root: root)
        try daemon.waitUntil("a", is: "launching")
        #expect(try daemon.launch("b")["state"]?.stringValue == "active")
        #expect(try daemon.state("a") == "launching")
    }

    @Test("a launch that waits for something else than a processor does not hold up others (L52)")
    func idleLaunch() throws {
        let hangs = TestDaemon.manifest(
            "", app: "LaunchAtStart=background", "[Lifecycle]\nLaunchDeadlineSec=50s", hangs: true)
        let apps = ["a": hangs, "b": hangs, "c": hangs]
        let daemon = try TestDaemon(apps, configuration: "[Manager]\nLaunchesAtOnce=1\n")
        for app in ["a", "b", "c"] { try daemon.waitUntil(app, is: "launching") }
    }

    @Test("launches that wait survive the daemon (L52)")
    func recovered() throws {
        let root = try TestDaemon.makeFolder()
        let apps = ["a": Self.waiting(root, "a"), "b": Self.waiting(root, "b")]
        let first = try TestDaemon(apps, configuration: "[Manager]\nLaunchesAtOnce=1\n", root: root)
        try first.waitUntil("a", is: "launching")
        first.crash()
        let daemon = try first.successor()
        #expect(try isWaiting(daemon, "b"))
        try replaceFile(at: root + "/a", with: [])
        try daemon.waitUntil("b", is: "launching")
        try replaceFile(at: root + "/b", with: [])
        try daemon.waitUntil("b", is: "suspended")
    }

    @Test("apps that share the processors with busy loops are launched, and none is killed (L48, L52)")
    func manyLaunches() throws {
        // Each needs less than its deadline, and gets less than half of a processor.
        let manifest =
            "[App]\nType=notify\nLaunchAtStart=background\nExecStart=\(TestDaemon.app) compute 1000 ready\n"
            + "[Lifecycle]\nLaunchDeadlineSec=2500ms\nSuspendDelaySec=0\n"
        let names = (1...6).map { "app\($0)" }
        let loops = try BusyLoops(2 * usableProcessors())
        let daemon = try TestDaemon(Dictionary(uniqueKeysWithValues: names.map { ($0, manifest) }))
        for name in names {
            try daemon.eventually("\(name) is launched or killed") {
                try daemon.state(name) == "suspended" || !daemon.receipts(name).isEmpty
            }
        }
        for name in names {
            let explanations = try daemon.receipts(name).compactMap { $0["explanation"]?.stringValue }
            #expect(explanations.isEmpty)
        }
        withExtendedLifetime(loops) {}
    }
}

@Suite("Programs that start up")
struct StartUpTests {
    private static func loopback(_ port: UInt16) -> sockaddr_in {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_port = port.bigEndian
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        return address
    }

    /// Whether something listens. The kernel accepts a connection for a frozen program too.
    private static func canConnect(_ port: UInt16) -> Bool {
        let number = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(number) }
        var address = loopback(port)
        return withUnsafeMutablePointer(to: &address) {
            $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
            }
        }
    }

    /// A web server that starts slowly.
    private static func server(_ port: UInt16, _ more: String, after seconds: Int = 1) -> String {
        let command = "sleep \(seconds); exec python3 -m http.server \(port) --bind 127.0.0.1"
        return "[App]\nExecStart=/bin/sh -c '\(command)'\n\(more)\n[Lifecycle]\nSuspendDelaySec=0\n"
    }

    private static let hasPython = exists(at: "/usr/bin/python3")

    @Test(
        "a slow server that is launched into the background listens before it is suspended (L18)",
        .enabled(if: hasPython))
    func slowServer() throws {
        let port = try freePort()
        let daemon = try TestDaemon(["server": Self.server(port, "")])
        try daemon.launch("server", background: true)
        try daemon.waitUntil("server", is: "suspended")
        #expect(Self.canConnect(port))
    }

    @Test("with StartupSec=0 a program is suspended like any other (L18)", .enabled(if: hasPython))
    func withoutStartUp() throws {
        let port = try freePort()
        let daemon = try TestDaemon(["server": Self.server(port, "StartupSec=0", after: 4)])
        try daemon.launch("server", background: true)
        try daemon.waitUntil("server", is: "suspended")
        #expect(!Self.canConnect(port))
    }

    @Test("Type=listening is ready when the program listens (L7)", .enabled(if: hasPython))
    func listening() throws {
        let port = try freePort()
        let daemon = try TestDaemon(["server": Self.server(port, "Type=listening") + "LaunchDeadlineSec=50s\n"])
        #expect(try daemon.launch("server")["state"]?.stringValue == "active")
        #expect(Self.canConnect(port))
    }

    @Test("a program that does nothing is suspended before StartupSec= is over (L18)")
    func idle() throws {
        let text = "[App]\nExecStart=/bin/sleep 1000\nStartupSec=infinity\n[Lifecycle]\nSuspendDelaySec=0\n"
        let daemon = try TestDaemon(["sleep": text])
        try daemon.launch("sleep", background: true)
        try daemon.waitUntil("sleep", is: "suspended")
    }
}
