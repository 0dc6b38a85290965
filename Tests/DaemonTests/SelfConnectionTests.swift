import Control
import Daemon
import Glibc
import JSON
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// The connections of apps of their own (`GREENROOM_BUS_ADDRESS`).
@Suite("Connections of apps")
struct SelfConnectionTests {
    /// A daemon with an app that lends connections and has no signals.
    static func daemon(
        _ more: String = "", script: String = "", root: String? = nil, manager: FakeServiceManager? = nil
    ) throws -> TestDaemon {
        let root = try root ?? TestDaemon.makeFolder()
        return try TestDaemon(
            ["mail": manifest(root, more, script: script)], root: root, manager: manager)
    }

    static func manifest(_ root: String, _ more: String = "", script: String = "", lend: String = "lend") -> String {
        """
        [App]
        Type=notify
        ExecStart=\(TestDaemon.app) \(script) lend \(root)/\(lend)
        [Lifecycle]
        SuspendDelaySec=0
        LaunchDeadlineSec=1min
        BackgroundDeadlineSec=1min
        \(more)

        """
    }

    /// The app is launched into the foreground, and a connection takes part.
    private func active(_ daemon: TestDaemon) throws -> SelfClient {
        let client = try launching(daemon)
        try client.call("Ready")
        #expect(try client.next().kind == "didBecomeActive")
        return client
    }

    /// Makes a request whose answer is not waited for: the app has to act before.
    private func request(_ daemon: TestDaemon, _ member: String, _ more: [Variant] = []) throws {
        _ = try daemon.bus.callAsync(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: member,
            [.string("mail")] + more)
    }

    /// The app launches, and a connection takes part.
    private func launching(_ daemon: TestDaemon) throws -> SelfClient {
        let client = try begin(daemon)
        try client.attach()
        return client
    }

    /// Begins a launch, whose answer is not waited for.
    private func begin(_ daemon: TestDaemon, _ options: [(String, Variant)] = []) throws -> SelfClient {
        let other = try BusConnection(path: daemon.runtime + "/bus")
        _ = try other.callAsync(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: "Launch",
            [.string("mail"), .dictionary(options)])
        // The launch is on its way before the connection ends.
        try daemon.eventually("the app launches") { try daemon.state("mail") != "notRunning" }
        return try SelfClient(daemon)
    }

    @Test("a launch: the process learns why, says that it is ready, and becomes active; its end is announced (L6, L46)")
    func launch() throws {
        let daemon = try Self.daemon()
        let client = try begin(daemon)
        let launch = try client.attach()
        #expect(launch["app"]?.stringValue == "mail")
        #expect(launch["launchState"]?.stringValue == "inactive")
        #expect(launch["launchReason"]?.stringValue == "user")
        #expect(launch["firstLaunch"]?.boolValue == true)
        #expect(launch["state"]?.stringValue == "launching")
        #expect(launch["lastReceipt"] == nil)
        try client.call("Ready")
        let active = try client.next()
        #expect(active.kind == "didBecomeActive")
        #expect(active.details["cause"]?.stringValue == "launch")
        try client.call("SetStatus", [.string("reading")])
        #expect(try daemon.status("mail")["statusText"]?.stringValue == "reading")
        try client.call("SetStateSummary", [.string("42 messages")])
        let other = try BusConnection(path: daemon.runtime + "/bus")
        let pending = try other.callAsync(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: "Terminate",
            [.string("mail"), .bool(false)])
        var end = try client.next()
        while end.kind != "willTerminate" { end = try client.next() }
        #expect(end.details["reason"]?.stringValue == "requested")
        try client.answer(end.serial)
        #expect(try other.wait(for: pending, until: EventLoop.now() + .seconds(60)))
        let receipt = try #require(try daemon.receipts("mail").last)
        let next = try begin(daemon)
        let again = try next.attach()
        #expect(again["stateSummary"]?.stringValue == "42 messages")
        #expect(again["lastReceipt"]?["id"]?.integerValue == receipt["id"]?.integerValue)
        #expect(again["firstLaunch"]?.boolValue == false)
    }

    @Test("the background is announced and answered once; an answer to an old serial has no effect (L17)")
    func background() throws {
        let daemon = try Self.daemon()
        let client = try active(daemon)
        try request(daemon, "Background")
        #expect(try client.kinds(1) == ["willResignActive"])
        let entered = try client.next()
        #expect(entered.kind == "didEnterBackground")
        let second = try SelfClient(daemon)
        try second.attach()
        // Any of the connections may answer it.
        #expect(try second.next() == entered || second.serial == entered.serial)
        try second.answer(entered.serial)
        #expect(client.failure("Answer", [.uint64(entered.serial), .dictionary([])])?.name == "NotOpen")
        try daemon.waitUntil("mail", is: "suspended")
        #expect(try client.next().kind == "willSuspend")
        try request(daemon, "Activate")
        #expect(try client.kinds(3) == ["didResume", "willEnterForeground", "didBecomeActive"])
        #expect(client.failure("Answer", [.uint64(entered.serial), .dictionary([])])?.name == "NotOpen")
        #expect(try daemon.status("mail")["lastWarning"] == nil)
        #expect(try daemon.state("mail") == "active")
    }

    @Test(
        "tasks have tokens: a repeated call is the same task, and the end of one that never began is an error (L21, L24)"
    )
    func tasks() throws {
        let daemon = try Self.daemon()
        let client = try active(daemon)
        #expect(try client.call("BeginTask", [.string("upload"), .string("a")]) == [.uint64(.max)])
        #expect(try client.call("BeginTask", [.string("upload"), .string("a")]) == [.uint64(.max)])
        #expect(try daemon.status("mail")["tasks"]?.arrayValue?.count == 1)
        #expect(client.failure("EndTask", [.string("b")])?.name == "NotOpen")
        try request(daemon, "Background")
        #expect(try client.kinds(1) == ["willResignActive"])
        try client.answer(client.next().serial)
        try daemon.waitUntil("mail", is: "background")
        let left = try client.call("RemainingTime")[0].uintValue ?? 0
        #expect(left > 0 && left <= 30_000_000)
        try client.call("EndTask", [.string("a")])
        try daemon.waitUntil("mail", is: "suspended")
        #expect(client.failure("BeginTask", [.string(""), .string("a")])?.name == "InvalidArgument")
        #expect(client.failure("BeginTask", [.string("x"), .string("a b")])?.name == "InvalidArgument")
    }

    @Test("a push comes over the connection, completes by its answer, and then has no file any more (L30)")
    func push() throws {
        let daemon = try Self.daemon("BackgroundModes=push")
        let client = try active(daemon)
        try request(daemon, "Background")
        #expect(try client.kinds(1) == ["willResignActive"])
        try client.answer(client.next().serial)
        #expect(try client.next().kind == "willSuspend")
        try daemon.waitUntil("mail", is: "suspended")
        try request(daemon, "Push", [.string("you have mail")])
        var event = try client.next()
        var kinds = [event.kind]
        while event.kind != "push" {
            event = try client.next()
            kinds.append(event.kind)
        }
        #expect(event.details["payload"]?.stringValue == "you have mail")
        #expect(daemon.inbox("mail", "push.0000000000000001") == "you have mail\n")
        #expect(client.failure("Answer", [.uint64(event.serial), .dictionary([])])?.name == "InvalidArgument")
        try client.answer(event.serial, [("result", .string("new-data"))])
        try daemon.wait("mail", "wakeCompleted")
        try daemon.waitUntil("mail", is: "suspended")
        #expect(daemon.inbox("mail", "push.0000000000000001") == nil)
        #expect(try daemon.receipts("mail").isEmpty)
    }

    @Test("what the daemon tells a suspended app over its connection does not wake it (L50)")
    func unreadEvents() throws {
        let daemon = try Self.daemon()
        let client = try active(daemon)
        try request(daemon, "Background")
        #expect(try client.kinds(1) == ["willResignActive"])
        try client.answer(client.next().serial)
        try daemon.waitUntilWatched("mail")
        #expect(try client.next().kind == "willSuspend")
        #expect(try daemon.status("mail")["trafficWakes"]?.integerValue ?? 0 == 0)
        #expect(try daemon.state("mail") == "suspended")
    }

    @Test("a state is a sealed memfd; anything else is refused at once, and the previous state is kept (L11)")
    func state() throws {
        let daemon = try Self.daemon()
        let client = try active(daemon)
        #expect(client.failure("GetState")?.name == "NotFound")
        let good = SharedDescriptor(try MemoryFile.sealed("state", Array("page 7".utf8)))
        try client.call("SaveState", [.descriptor(good)])
        let unsealed = SharedDescriptor(try MemoryFile.empty("state"))
        #expect(client.failure("SaveState", [.descriptor(unsealed)])?.sentence.contains("not sealed") == true)
        let large = SharedDescriptor(try MemoryFile.empty("state"))
        #expect(ftruncate(large.raw, 2 << 30) == 0)
        try MemoryFile.seal(large.descriptor)
        #expect(client.failure("SaveState", [.descriptor(large)])?.sentence.contains("the limit is") == true)
        let pipe = try Pipe()
        let end = SharedDescriptor(pipe.closingWrite())
        #expect(client.failure("SaveState", [.descriptor(end)])?.sentence.contains("not a memfd") == true)
        let pair = try SocketPair()
        let socket = SharedDescriptor(pair.closingNear())
        #expect(client.failure("SaveSnapshot", [.descriptor(socket)])?.sentence.contains("not a memfd") == true)
        #expect(client.failure("SetStatus", [.descriptor(good)])?.name == "NotSupported")
        // This client reads no descriptors.
        #expect(client.failure("GetState")?.sentence.contains("a file descriptor, which is not accepted here") == true)
        try client.call("DropState")
        #expect(client.failure("GetState")?.name == "NotFound")
        #expect(client.failure("SaveSceneState", [.string("a/b"), .descriptor(good)])?.name == "InvalidArgument")
        #expect(
            client.failure("SaveSceneState", [.string("a"), .descriptor(unsealed)])?.sentence.contains("not sealed")
                == true)
        #expect(client.failure("GetSceneState", [.string("a")])?.name == "NotFound")
    }

    @Test(
        "a killed daemon's clients connect to the same address, and get what they have not got, once (L3)",
        arguments: [true, false])
    func killedDaemon(withStore: Bool) throws {
        let root = try TestDaemon.makeFolder()
        let manager = withStore ? try FakeServiceManager(in: root) : nil
        var daemon = try Self.daemon(root: root, manager: manager)
        var client = try active(daemon)
        try client.call("BeginTask", [.string("upload"), .string("a")])
        try request(daemon, "Background")
        #expect(try client.kinds(1) == ["willResignActive"])
        // It does not read further.
        let position = client.serial
        daemon.crash()
        daemon = try daemon.successor()
        client = try SelfClient(daemon)
        try client.attach(after: position)
        let entered = try client.next()
        #expect(entered.kind == "didEnterBackground")
        #expect(try client.call("BeginTask", [.string("upload"), .string("a")])[0].uintValue ?? 0 > 0)
        #expect(try daemon.status("mail")["tasks"]?.arrayValue?.count == 1)
        try client.answer(entered.serial)
        daemon.crash()
        daemon = try daemon.successor()
        client = try SelfClient(daemon)
        let launch = try client.attach(after: entered.serial)
        #expect(UInt64(launch["serial"]?.integerValue ?? 0) >= entered.serial)
        #expect(client.failure("Answer", [.uint64(entered.serial), .dictionary([])])?.name == "NotOpen")
        try client.call("EndTask", [.string("a")])
        #expect(try client.next().kind == "willSuspend")
        #expect(try daemon.receipts("mail").isEmpty)
    }

    @Test("processes of others are refused, and more than eight connections")
    func admission() throws {
        let daemon = try Self.daemon()
        let first = try active(daemon)
        let runs = entries(of: daemon.runtime + "/self")
        #expect(runs.count == 1)
        #expect(throws: BusError.self) { try BusConnection(path: "\(daemon.runtime)/self/\(runs[0])/bus") }
        #expect(try daemon.status("mail")["lastWarning"]?.stringValue?.contains("not a process of this app") == true)
        var more: [SelfClient] = []
        for _ in 1..<8 { more.append(try SelfClient(daemon)) }
        #expect(throws: BusError.self) { try SelfClient(daemon) }
        more = []
        try daemon.eventually("another is admitted") { (try? SelfClient(daemon)) != nil }
        #expect(try first.call("RemainingTime") == [.uint64(.max)])
        try daemon.ask("Terminate", "mail", [.bool(true)])
        #expect(entries(of: daemon.runtime + "/self").isEmpty)
    }

    @Test("an app that calls too fast waits, and others notice nothing; one that sends no D-Bus is disconnected")
    func floods() throws {
        let daemon = try Self.daemon()
        let client = try active(daemon)
        // On a machine that is busy they may take so long that it is not too fast. More calls at once could have more answers than the
        // daemon keeps for a client that reads none meanwhile.
        try daemon.eventually("the app has called too fast") {
            for _ in 0..<6 { #expect(try client.callAll("Heartbeat", Array(repeating: [], count: 500))) }
            return try daemon.status("mail")["lastWarning"]?.stringValue?.contains("within 1s") == true
        }
        let silent = try SelfClient.borrow(daemon)
        let bytes = Array("\0AUTH EXTERNAL\r\nDATA\r\nNEGOTIATE_UNIX_FD\r\nBEGIN\r\nno message at all".utf8)
        try writeAll(bytes, to: silent)
        try daemon.eventually("the connection is closed") {
            try daemon.status("mail")["lastWarning"]?.stringValue?.contains("not a D-Bus message") == true
        }
        #expect(try client.call("RemainingTime") == [.uint64(.max)])
        #expect(try daemon.state("mail") == "active")
    }

    @Test("an app that closes its connection in the middle of a transition can connect again and answer")
    func closed() throws {
        let daemon = try Self.daemon()
        let entered: UInt64
        do {
            let client = try active(daemon)
            try request(daemon, "Background")
            #expect(try client.kinds(1) == ["willResignActive"])
            entered = try client.next().serial
        }
        let client = try SelfClient(daemon)
        try client.attach(after: entered)
        try client.answer(entered)
        #expect(try client.next().kind == "willSuspend")
        #expect(try daemon.receipts("mail").isEmpty)
    }

    @Test("the installed XML is the introspection data of a connection, and docs/DBUS.md has each of its words")
    func introspection() throws {
        let daemon = try Self.daemon()
        let client = try active(daemon)
        let answer = try client.bus.call(
            path: ControlNames.selfPath, interface: "org.freedesktop.DBus.Introspectable", member: "Introspect")
        let lines = (answer[0].stringValue ?? "").split(separator: "\n", omittingEmptySubsequences: false)
        let start = try #require(lines.firstIndex { $0.contains("\"\(ControlNames.selfInterface)\"") })
        let end = try #require(lines[start...].firstIndex { $0.contains("</interface>") })
        let live = lines[start...end].joined(separator: "\n")
        let file = "\(PrivateBus.data)/\(ControlNames.selfInterface).xml"
        #expect(TestDaemon.text(of: file).contains("\n\(live)\n"), "\(file) differs from the daemon:\n\(live)")
        let text = TestDaemon.text(of: "\(PrivateBus.data)/../docs/DBUS.md")
        for line in lines[start...end] where line.contains("<method ") || line.contains("<signal ") {
            let name = try #require(line.split(separator: "\"").dropFirst().first)
            #expect(text.contains("`\(name)`"), "docs/DBUS.md lacks \(name)")
        }
        for kind in EventKind.allCases {
            #expect(text.contains("`\(kind.rawValue)`"), "docs/DBUS.md lacks \(kind)")
        }
    }
}
