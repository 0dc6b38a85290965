import Control
import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// Each invalid input is reported with a sentence; afterwards the daemon answers at once, and has no more descriptors open.
@Suite("Hostile apps and invalid input")
struct BadInputTests {
    /// Runs an app that misbehaves until it ends, and checks the daemon afterwards.
    private func survive(
        _ script: String, _ sections: String = "", sourceLocation: SourceLocation = #_sourceLocation,
        _ body: (TestDaemon) throws -> Void = { _ in }
    ) throws {
        let daemon = try TestDaemon(["bad": TestDaemon.manifest(script, sections), "good": TestDaemon.manifest("")])
        try daemon.launch("good", background: true)
        try daemon.waitUntilWatched("good")
        let before = try daemon.settledDescriptors()
        try daemon.launch("bad")
        try body(daemon)
        if try daemon.state("bad") != "notRunning" { try daemon.terminate("bad", remove: true) }
        #expect(try daemon.state("bad") == "notRunning", sourceLocation: sourceLocation)
        #expect(try daemon.state("good") == "suspended", sourceLocation: sourceLocation)
        #expect(try daemon.ask("Activate", "good")["state"]?.stringValue == "active", sourceLocation: sourceLocation)
        // While it is suspended the daemon has duplicates of its descriptors (L50), as before.
        try daemon.ask("Background", "good")
        try daemon.waitUntilWatched("good")
        daemon.waitUntilNothingOpen(beyond: before, sourceLocation: sourceLocation)
    }

    @Test("datagrams that are too large or not text are ignored, with a warning")
    func junk() throws {
        try survive("huge junk say STATUS=still-here") { daemon in
            try daemon.eventually("the status changes") {
                try daemon.status("bad")["statusText"]?.stringValue == "still-here"
            }
        }
    }

    @Test("a flood of 100,000 datagrams does not delay other apps or clients")
    func flood() throws {
        try survive("flood 100000") { daemon in
            // Other apps are served during the flood.
            for _ in 0..<20 {
                let state = try daemon.state("good")
                #expect(state == "suspended")
            }
        }
    }

    @Test(
        "the apps' limit of open files is not higher than the daemon's own",
        .enabled(if: isInstalled("prlimit"), "prlimit is missing"))
    func fewDescriptors() throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("")])
        let request = SpawnRequest(
            executable: "/usr/bin/prlimit", arguments: ["--pid=\(daemon.process.pid)", "--nofile=500:500"],
            environment: [])
        var starting = try startProcess(request)
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        waitForReadable([starting.process.descriptor])
        #expect(try starting.process.reap()?.status == .exited(0))
        #expect(try daemon.launch("photos")["state"]?.stringValue == "active")
        let limits = TestDaemon.text(of: "/proc/\(try daemon.pid("photos"))/limits").split(separator: "\n")
        let files = try #require(limits.first { $0.hasPrefix("Max open files") })
        #expect(files.split(separator: " ")[3...4] == ["500", "500"])
    }

    @Test("a launch option of the wrong type is refused, and nothing is launched")
    func optionOfAnotherType() throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("")])
        let options = Variant.dictionary([("background", .string("yes"))])
        #expect(daemon.failure("Launch", [.string("photos"), options]) == "InvalidArgument")
        #expect(try daemon.state("photos") == "notRunning")
    }

    @Test("warnings about an app are limited, so it cannot fill the journal")
    func limitedWarnings() throws {
        try survive("usurp 500 say STATUS=said") { daemon in
            try daemon.eventually("the last status arrives") {
                try daemon.status("bad")["statusText"]?.stringValue == "said"
            }
            let lines = TestDaemon.text(of: daemon.root + "/log").split(separator: "\n")
            // Ten in a minute; on a very slow machine this may take several minutes.
            #expect((1...100).contains(lines.count { $0.contains("MAINPID=1 is not a process of this app") }))
        }
    }

    @Test("descriptors that an app sends without storing them are closed")
    func descriptors() throws {
        try survive("descriptors 60 descriptors 60 say STATUS=sent") { daemon in
            try daemon.eventually("the descriptors have arrived") {
                try daemon.status("bad")["statusText"]?.stringValue == "sent"
            }
        }
    }

    @Test(
        "a process of another user is refused on the private socket, and a descriptor that it sends blocks no app",
        .enabled(if: geteuid() == 0, "only root can become another user"))
    func otherUser() throws {
        let root = try TestDaemon.makeFolder()
        let bad = TestDaemon.manifest("intrude \(root)/run/bus", trace: root + "/trace")
        let daemon = try TestDaemon(["bad": bad], root: root)
        let before = try daemon.settledDescriptors()
        // With mode 0600 the process could not connect.
        #expect(chmod(root + "/run/bus", 0o666) == 0)
        try daemon.launch("bad")
        try daemon.eventually("the refusal is in the log") {
            TestDaemon.text(of: root + "/log").contains(
                "(uid 65534) to \(root)/run/bus was refused: only uid 0 may connect.")
        }
        #expect(try daemon.state("bad") == "active", "\(TestDaemon.text(of: root + "/log"))")
        // close(2) of the descriptor blocks until the app, which has the other end, has ended.
        try daemon.terminate("bad", remove: true)
        daemon.waitUntilNothingOpen(beyond: before)
    }

    @Test("a descriptor that is slow to close delays only the app that sent it")
    func lingering() throws {
        let root = try TestDaemon.makeFolder()
        let bad = TestDaemon.manifest("term=linger", trace: root + "/trace")
        let daemon = try TestDaemon(["bad": bad], root: root)
        let before = try daemon.settledDescriptors()
        try daemon.launch("bad")
        let app = try daemon.pid("bad")
        // The daemon must have the last copy: it reads the datagram after the app has closed its own.
        try daemon.process.signal(SIGSTOP)
        kill(app, SIGTERM)
        try daemon.eventually("the descriptor was sent") { daemon.trace().contains("sent") }
        try daemon.process.signal(SIGCONT)
        #expect(try daemon.state("bad") == "active")
        // It is closed when the app, which has the other end, has ended.
        try daemon.terminate("bad", remove: true)
        daemon.waitUntilNothingOpen(beyond: before)
    }

    @Test("each message of a datagram counts against the app's limit")
    func chatter() throws {
        // Ready before the flood: a launch that waits for the last message may miss its deadline, or not. One datagram uses up a second.
        try survive("ready chatter 10 say STATUS=done") { daemon in
            // 10,000 messages at 1,000 in a second: the warning is logged long before the last message is read.
            try daemon.eventually("the app is held back") {
                TestDaemon.text(of: daemon.root + "/log").contains("notify messages within 1s; the rest waits")
            }
            #expect(try daemon.status("bad")["statusText"]?.stringValue != "done")
        }
    }

    @Test("a datagram of 2,000 invalid lines uses up the app's messages of a second, and causes few log lines")
    func invalidLines() throws {
        try survive("") { daemon in
            let socket = try daemon.notifySocket("bad")
            try sendDatagram(String(repeating: "x\n", count: 2000), to: socket)
            try sendDatagram("STATUS=later", to: socket)
            try daemon.eventually("the next message is read") {
                try daemon.status("bad")["statusText"]?.stringValue == "later"
            }
            let log = TestDaemon.text(of: daemon.root + "/log")
            #expect(log.contains("notify messages within 1s; the rest waits"))
            #expect((1...9).contains(log.split(separator: "\n").count { $0.contains("is not an assignment") }))
        }
    }

    @Test("an inbox with more than 10,000 files is removed when the app has ended, in steps")
    func fullInbox() throws {
        try survive("") { daemon in
            let inbox = daemon.runtime + "/inbox/bad"
            for number in 0...10_000 { try Descriptor.createEmpty(inbox + "/\(number)") }
            try daemon.terminate("bad")
            try daemon.eventually("the inbox is removed") {
                entries(of: daemon.runtime + "/inbox").allSatisfy {
                    entries(of: daemon.runtime + "/inbox/" + $0).isEmpty
                }
            }
            #expect(entries(of: daemon.runtime + "/inbox").allSatisfy { !$0.hasPrefix(".") })
            try daemon.launch("bad")
            #expect(exists(at: inbox))
        }
    }

    @Test("all processes of an app that keeps forking are killed")
    func bomb() throws {
        try survive("bomb 8") { daemon in
            let group = try #require(try daemon.groupPath("bad"))
            try daemon.eventually("the app has forked") { try daemon.processes(of: "bad").count > 50 }
            try daemon.terminate("bad", remove: true)
            #expect(!exists(at: group))
        }
    }

    @Test("the daemon survives an app that stops itself, closes its descriptors, crashes or exits at once")
    func oddEnds() throws {
        try survive("stop")
        try survive("close")
        try survive("crash") { try $0.wait("bad", "ended") }
        try survive("exit 3") { try $0.wait("bad", "ended") }
        try survive("fork 3 exit 0") { try $0.wait("bad", "stateChanged", state: "notRunning") }
    }

    @Test(
        "an app that ends in any state has a receipt",
        arguments: [
            "background=exit:4", "background=task:x expire=end:x", "term=exit:5",
        ])
    func diesBetween(_ script: String) throws {
        try survive(script, "[Lifecycle]\nBackgroundTimeSec=30s\nExpirationNoticeSec=29800ms\nSuspendDelaySec=0") {
            daemon in
            let answer = try daemon.ask("Background", "bad")
            // After its exit the app is terminating until its group is empty.
            if answer["outcome"]?.stringValue != "ended" { try daemon.terminate("bad") }
            #expect(try daemon.receipts("bad").count == 1)
        }
    }

    @Test(
        "a program that cannot be executed, or a user that does not exist, is reported with a sentence",
        arguments: [
            ("ExecStart=/no/such/program", "/no/such/program", 203),
            ("ExecStart=/etc/passwd", "/etc/passwd", 203),
            ("ExecStart=/bin/true\nUser=nobody-of-that-name", "no such user", 217),
            ("ExecStart=/bin/true\nGroup=nogroup-of-that-name", "no such group", 217),
            ("ExecStart=/bin/true\nWorkingDirectory=/no/such/folder", "/no/such/folder", 200),
        ])
    func notLaunched(_ text: String, _ words: String, _ status: Int) throws {
        let daemon = try TestDaemon(["bad": "[App]\n\(text)\n"])
        let before = try daemon.settledDescriptors()
        let end = try daemon.launch("bad")
        #expect(end["outcome"]?.stringValue == "ended")
        #expect(end["explanation"]?.stringValue?.contains("Could not be launched") == true)
        #expect(end["explanation"]?.stringValue?.contains(words) == true, "\(end)")
        #expect(end["lastReceipt"]?["exitStatus"]?.integerValue == Int64(status))
        #expect(try daemon.state("bad") == "notRunning")
        daemon.waitUntilNothingOpen(beyond: before)
    }

    @Test("an error in a manifest disables that app only, and names the file, line, key and what was expected")
    func wrongManifest() throws {
        let daemon = try TestDaemon([
            "wrong": "[App]\nExecStart=/bin/sleep 9\n[Lifecycle]\nLaunchDeadlineSec=5 parsecs\n",
            "right": "[App]\nExecStart=/bin/sleep 9\n",
        ])
        let error = try #require(try daemon.status("wrong")["error"]?.stringValue)
        #expect(error.contains("wrong.app:4:"))
        #expect(error.contains("LaunchDeadlineSec="))
        #expect(error.contains("5 parsecs"))
        #expect(daemon.failure("Launch", [.string("wrong"), .dictionary([])]) == "UnknownApp")
        #expect(try daemon.launch("right")["state"]?.stringValue == "active")
    }

    @Test("the maximum number of apps is listed; one more is reported and ignored")
    func manyApps() throws {
        var apps: [String: String] = [:]
        for number in 0...10_000 { apps["app\(10_000 + number)"] = "[App]\nExecStart=/bin/true\n" }
        let daemon = try TestDaemon(apps)
        let list = JSONValue(try daemon.call("List")[0]).arrayValue ?? []
        #expect(list.count == 10_000)
        #expect(!list.contains { $0["id"]?.stringValue == "app20000" })
        #expect(TestDaemon.text(of: daemon.root + "/log").contains("the limit is 10000: app20000"))
    }

    @Test("the error for an unknown app suggests a similar name, or describes valid names")
    func unknownApp() throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("")])
        #expect(throws: BusError.self) { try daemon.launch("photso") }
        do { try daemon.launch("photso") } catch let error as BusError {
            #expect(error.message.contains("Did you mean 'photos'?"))
        }
        for name in ["", ".hidden", "a/b", "../../etc", String(repeating: "x", count: 5000), "ä"] {
            #expect(daemon.failure("Activate", [.string(name)]) == "UnknownApp")
        }
        #expect(daemon.failure("Send", [.string("photos"), .string("no-such-kind"), .string("")]) == "InvalidArgument")
        #expect(daemon.failure("Push", [.string("photos"), .string("x")]) == "ModeNotDeclared")
        #expect(daemon.failure("Receipt", [.uint64(77)]) == "UnknownReceipt")
        #expect(
            daemon.failure("Launch", [.string("photos"), .dictionary([("reason", .string("fun"))])])
                == "InvalidArgument")
    }

    @Test("a second daemon on the same runtime folder exits with an error that names the first one's pid")
    func secondDaemon() throws {
        let daemon = try TestDaemon()
        let (status, output) = try TestDaemon.runToEnd(TestDaemon.daemonArguments(daemon.root), in: daemon.root)
        #expect(status == .exited(1))
        #expect(output.contains("pid \(daemon.process.pid)"))
        #expect(try daemon.call("List").count == 1)
    }

    @Test("a runtime folder that cannot be created, or whose path is too long, is refused with a sentence")
    func runtimeFolder() throws {
        let root = try TestDaemon.makeFolder()
        defer { removeTree(root) }
        let long = root + "/" + String(repeating: "x", count: 90)
        let (status, output) = try TestDaemon.runToEnd(["--runtime", long, "--state", root + "/s"], in: root)
        #expect(status == .exited(2))
        #expect(output.contains("--runtime: the path has "))
        let (other, words) = try TestDaemon.runToEnd(
            ["--runtime", "/proc/nothing/here", "--state", root + "/s"], in: root)
        #expect(other == .exited(1))
        #expect(words.contains("the runtime folder cannot be created"))
        #expect(words.contains("/proc/nothing/here"))
    }

    @Test("a runtime folder that other users may write to is refused and not changed")
    func sharedRuntimeFolder() throws {
        let root = try TestDaemon.makeFolder()
        defer { removeTree(root) }
        #expect(mkdir(root + "/shared", 0o700) == 0 && chmod(root + "/shared", 0o1777) == 0)
        let (status, output) = try TestDaemon.runToEnd(
            ["--runtime", root + "/shared", "--state", root + "/s", "--config", root + "/c"], in: root)
        #expect(status == .exited(1))
        #expect(output.contains("\(root)/shared is not safe: every user may write to it (mode 1777)"))
        var about = stat()
        #expect(stat(root + "/shared", &about) == 0 && about.st_mode & 0o7777 == 0o1777)
        #expect(entries(of: root + "/shared").isEmpty)
    }

    @Test("a receipts file that cannot be read is renamed, and a new one is created")
    func unreadableReceipts() throws {
        let root = try TestDaemon.makeFolder()
        try createDirectories(at: root + "/state")
        #expect(mkfifo(root + "/state/receipts.jsonl", 0o600) == 0)
        let daemon = try TestDaemon(["bad": "[App]\nExecStart=/etc/passwd\n"], root: root)
        #expect(exists(at: root + "/state/receipts.jsonl.unreadable"))
        try daemon.launch("bad")
        #expect(try daemon.receipts("bad").count == 1)
    }

    @Test("the error for a state folder that cannot be used names the folder")
    func stateFolder() throws {
        let root = try TestDaemon.makeFolder()
        defer { removeTree(root) }
        let (status, output) = try TestDaemon.runToEnd(
            ["--runtime", root + "/run", "--state", "/proc/nothing", "--config", root + "/c"], in: root)
        #expect(status == .exited(1))
        #expect(output.contains("the state folder /proc/nothing cannot be used: "))
        // No group of its name (FNV-1a of the runtime folder) is left.
        let hash = (root + "/run").utf8.reduce(0xcbf2_9ce4_8422_2325 as UInt64) { ($0 ^ UInt64($1)) &* 0x100_0000_01b3 }
        for mount in ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"] {
            #expect(!exists(at: "\(mount)/greenroom-\(String(hash, radix: 16))"))
        }
    }

    @Test("clients that are silent, send garbage or disconnect do not affect others")
    func clients() throws {
        let daemon = try TestDaemon([
            "hang": TestDaemon.manifest("", "[Lifecycle]\nLaunchDeadlineSec=1min", hangs: true)
        ])
        let before = try daemon.settledDescriptors()
        for garbage in ["", "\0AUTH EXTERNAL", "GET / HTTP/1.0\r\n\r\n", String(repeating: "\0", count: 5000)] {
            let client = try connect(daemon.runtime + "/bus")
            try writeAll(Array(garbage.utf8), to: client)
        }
        do {
            let impatient = try BusConnection(path: daemon.runtime + "/bus")
            _ = try impatient.callAsync(
                path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: "Launch",
                [.string("hang"), .dictionary([])], timeout: nil)
            try daemon.wait("hang", "stateChanged", state: "launching")
        }
        // The client has disconnected; its request is carried out.
        #expect(try daemon.state("hang") == "launching")
        try daemon.terminate("hang", remove: true)
        daemon.waitUntilNothingOpen(beyond: before)
    }

    private func connect(_ path: String) throws -> Descriptor {
        let raw = socket(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0)
        var address = sockaddr_un()
        address.sun_family = UInt16(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                Glibc.connect(raw, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
        guard result == 0 else { throw TestFailure("connect: \(errno)") }
        return Descriptor(adopting: raw)
    }
}

extension Descriptor {
    fileprivate static func createEmpty(_ path: String) throws {
        _ = try Descriptor.open(path, O_WRONLY | O_CREAT, mode: 0o600)
    }
}
