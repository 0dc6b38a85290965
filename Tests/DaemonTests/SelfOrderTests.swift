import Control
import Glibc
import JSON
import Posix
import Systemd
import TestKit
import Testing

/// What an app gets, in which order, and once: also by several processes, and over restarts of the daemon.
@Suite("Connections of apps: order")
struct SelfOrderTests {
    private static let none = Variant.dictionary([])

    private func request(_ daemon: TestDaemon, _ member: String, _ more: [Variant] = []) throws {
        try SelfStage.request(daemon, member, "mail", more)
    }

    private func open(_ daemon: TestDaemon, _ url: String) throws {
        try request(daemon, "Open", [.string(url), Self.none])
    }

    /// The next events, each with its URL or cause if it has one.
    private func events(_ client: SelfClient, _ count: Int) throws -> [String] {
        try (0..<count).map { _ in
            let event = try client.next()
            return [event.kind, event.details["url"]?.stringValue ?? event.details["cause"]?.stringValue]
                .compactMap { $0 }.joined(separator: " ")
        }
    }

    /// A daemon whose app is active, and has a connection.
    private func active(_ more: String = "") throws -> (TestDaemon, SelfClient) {
        let daemon = try SelfConnectionTests.daemon(SelfStage.quick + more)
        return (daemon, try SelfStage.launch(daemon, "mail", "lend"))
    }

    /// The app enters the background, and a process has not answered yet.
    private func entering(_ daemon: TestDaemon, _ client: SelfClient) throws -> SelfClient.Event {
        try request(daemon, "Background")
        #expect(try events(client, 1) == ["willResignActive background"])
        let entered = try client.next()
        #expect(entered.kind == "didEnterBackground")
        return entered
    }

    @Test("several URLs, cold: the app is ready, gets them in order, then becomes active (L8)")
    func cold() throws {
        let daemon = try SelfConnectionTests.daemon(SelfStage.quick)
        for number in 1...3 { try open(daemon, "mail:\(number)") }
        let client = try SelfClient(daemon)
        let launch = try client.attach()
        #expect(launch["launchUrl"]?.stringValue == "mail:1")
        #expect(launch["launchReason"]?.stringValue == "url")
        try client.call("Ready")
        #expect(
            try events(client, 4) == [
                "openURL mail:1", "openURL mail:2", "openURL mail:3", "didBecomeActive launch",
            ])
        try open(daemon, "mail:4")
        #expect(try events(client, 1) == ["openURL mail:4"])
    }

    @Test("several URLs, warm: the app will enter the foreground, gets them in order, then becomes active (L8)")
    func warm() throws {
        let (daemon, client) = try active()
        let entered = try entering(daemon, client)
        // While it enters the background, and once it is suspended.
        try open(daemon, "mail:1")
        try open(daemon, "mail:2")
        try client.answer(entered.serial)
        #expect(
            try events(client, 4) == [
                "willEnterForeground", "openURL mail:1", "openURL mail:2", "didBecomeActive return",
            ])
        try client.answer(entering(daemon, client).serial)
        #expect(try events(client, 1) == ["willSuspend"])
        try daemon.waitUntil("mail", is: "suspended")
        try open(daemon, "mail:3")
        #expect(
            try events(client, 4) == ["didResume", "willEnterForeground", "openURL mail:3", "didBecomeActive return"])
        try open(daemon, "mail:4")
        #expect(try events(client, 1) == ["openURL mail:4"])
        #expect(try daemon.receipts("mail").isEmpty)
    }

    @Test("of several processes one answers a transition; the others' answers are errors, and all get all events (L17)")
    func several() throws {
        let (daemon, first) = try active()
        let others = try (0..<7).map { _ in
            let client = try SelfClient(daemon)
            try client.attach()
            return client
        }
        for round in 0..<3 {
            let entered = try entering(daemon, first)
            for client in others {
                #expect(try events(client, 1) == ["willResignActive background"])
                #expect(try client.next().serial == entered.serial)
            }
            let all = [first] + others
            let answers = (0..<all.count).map { position in
                all[(position + round) % all.count].failure("Answer", [.uint64(entered.serial), Self.none])?.name
            }
            #expect(answers == [nil] + Array(repeating: "NotOpen", count: 7))
            for client in all { #expect(try events(client, 1) == ["willSuspend"]) }
            try daemon.waitUntil("mail", is: "suspended")
            try request(daemon, "Activate")
            for client in all {
                #expect(try events(client, 3) == ["didResume", "willEnterForeground", "didBecomeActive return"])
            }
        }
        #expect(try daemon.receipts("mail").isEmpty)
    }

    @Test(
        "a daemon that is killed or replaced in the middle of a transition tells nothing twice that was answered, and loses nothing (L3)",
        arguments: [true, false])
    func replaced(isKilled: Bool) throws {
        var (daemon, client) = try active("BackgroundModes=push\nBackgroundTimeSec=5min\n")
        func replace(after position: UInt64) throws {
            if isKilled {
                daemon.crash()
                daemon = try daemon.successor()
            } else {
                _ = try? daemon.call("Reexec")
                try daemon.reconnect()
            }
            client = try SelfClient(daemon)
            try client.attach(after: position)
        }
        for round in 1...3 {
            // A suspended app could not connect.
            try client.call("BeginTask", [.string("keep"), .string("\(round)")])
            let entered = try entering(daemon, client)
            // Got, and not answered: the client has it, and answers it to the next daemon.
            try replace(after: entered.serial)
            try client.answer(entered.serial)
            try replace(after: entered.serial)
            #expect(client.failure("Answer", [.uint64(entered.serial), Self.none])?.name == "NotOpen")
            try request(daemon, "Push", [.string("\(round)")])
            let push = try client.next()
            #expect(push.kind == "push")
            // Not got: the client says so, and gets it from the next daemon.
            try replace(after: push.serial - 1)
            let again = try client.next()
            #expect(again.kind == "push" && again.serial == push.serial)
            #expect(again.details["payload"]?.stringValue == "\(round)")
            try client.answer(push.serial, [("result", .string("new-data"))])
            try replace(after: push.serial)
            #expect(client.failure("Answer", [.uint64(push.serial), Self.none])?.name == "NotOpen")
            #expect(try daemon.status("mail")["tasks"]?.arrayValue?.count == 1)
            try open(daemon, "mail:\(round)")
            #expect(
                try events(client, 3) == ["willEnterForeground", "openURL mail:\(round)", "didBecomeActive return"])
            try client.call("EndTask", [.string("\(round)")])
        }
        #expect(try daemon.receipts("mail").isEmpty)
    }

    @Test("a suspended app that cannot connect to the next daemon connects once it runs, and has lost nothing (L3)")
    func suspendedMeanwhile() throws {
        let root = try TestDaemon.makeFolder()
        let signals = "[App]\nEnvironment=TRACE=\(root)/trace\n[Signals]\nResignActive=SIGRTMIN+3\n"
        var daemon = try TestDaemon(
            [
                "mail": SelfConnectionTests.manifest(root, SelfStage.quick),
                "front": SelfConnectionTests.manifest(root, SelfStage.quick + signals, lend: "lend-front"),
            ], root: root)
        var client = try SelfStage.launch(daemon, "mail", "lend")
        try client.answer(entering(daemon, client).serial)
        #expect(try events(client, 1) == ["willSuspend"])
        try daemon.waitUntil("mail", is: "suspended")
        let position = client.serial
        let front = try SelfStage.launch(daemon, "front", "lend-front")
        daemon.crash()
        withExtendedLifetime(front) {}
        daemon = try daemon.successor()
        // The client of this app does not connect again. Its notice goes as a signal when the daemon waits no longer for the
        // clients of the one before; those of a frozen process could not connect in that time.
        try daemon.ask("Interrupt", "front")
        try daemon.eventually("the time for clients is over") { daemon.trace().contains("willResignActive") }
        #expect(try daemon.state("mail") == "suspended")
        try request(daemon, "Activate")
        client = try SelfClient(daemon)
        try client.attach(after: position)
        #expect(try events(client, 3) == ["didResume", "willEnterForeground", "didBecomeActive return"])
    }

    @Test("SetIdle suspends a worker at once; it is over with an event, with false, and with the connection (L51)")
    func idle() throws {
        let root = try TestDaemon.makeFolder()
        let text = SelfConnectionTests.manifest(root, "IdleSec=1h\n").replacing(
            "Type=notify", with: "Type=notify\nRole=worker")
        let daemon = try TestDaemon(["mail": text], root: root)
        try request(daemon, "Launch", [Self.none])
        let client = try SelfClient(daemon)
        try client.attach()
        try client.call("Ready")
        try client.answer(client.next().serial)
        try daemon.waitUntil("mail", is: "background")
        try client.call("SetIdle", [.bool(true)])
        try daemon.waitUntil("mail", is: "suspended")
        try daemon.ask("Activate", "mail")
        #expect(try daemon.state("mail") == "background")
        // A second process has something to do, until it ends.
        do {
            let second = try SelfClient(daemon)
            try second.call("SetIdle", [.bool(false)])
            try client.call("SetIdle", [.bool(true)])
            #expect(try daemon.state("mail") == "background")
            try second.call("SetIdle", [.bool(true)])
        }
        try daemon.waitUntil("mail", is: "suspended")
        try daemon.ask("Activate", "mail")
        try daemon.sendMessage("X_GREENROOM_IDLE=1")
        try daemon.waitUntil("mail", is: "suspended")
    }
}
