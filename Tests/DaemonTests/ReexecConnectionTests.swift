import Control
import Glibc
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// Clients that stay connected while `Reexec` replaces the daemon.
@Suite("Connections over reexec")
struct ReexecConnectionTests {
    private static func reexec(_ daemon: TestDaemon) throws {
        _ = try daemon.call("Reexec")
        try daemon.reconnect()
    }

    private static func version(_ bus: BusConnection) throws -> Variant? {
        try bus.call(path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: "Version").first
    }

    /// `greenroomctl --json watch`, and what it prints.
    private final class Watch {
        private let process: Linux.Process
        private let daemon: TestDaemon
        private var path: String { daemon.root + "/watch" }

        init(_ daemon: TestDaemon) throws {
            self.daemon = daemon
            let output = SharedDescriptor(
                try Descriptor.open(daemon.root + "/watch", O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600))
            var starting = try startProcess(
                SpawnRequest(
                    executable: TestDaemon.binaries + "/greenroomctl",
                    arguments: ["--runtime", daemon.runtime, "--json", "watch"], environment: ["PATH=/usr/bin:/bin"],
                    standardOutput: output, standardError: output))
            process = starting.process
            while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        }

        deinit {
            _ = try? process.signal(SIGKILL)
            waitForReadable([process.descriptor])
            _ = try? process.reap()
        }

        func signal(_ number: Int32) throws { _ = try process.signal(number) }
        var isStopped: Bool { (try? ProcFS().status(of: process.pid)?.state) == UInt8(ascii: "T") }

        var lines: [Substring] { TestDaemon.text(of: path).split(separator: "\n") }
        func count(_ app: String, _ state: String) -> Int {
            lines.count {
                $0.contains("\"stateChanged\"") && $0.contains("\"app\":\"\(app)\"")
                    && $0.contains("\"state\":\"\(state)\"")
            }
        }
    }

    private static func cycle(_ daemon: TestDaemon, _ app: String) throws {
        try daemon.launch(app)
        try daemon.terminate(app, remove: true)
    }

    /// It prints events once it is connected.
    private static func startedWatch(_ daemon: TestDaemon) throws -> Watch {
        let watch = try Watch(daemon)
        try daemon.eventually("the program prints an event") {
            try cycle(daemon, "first")
            return watch.count("first", "active") > 0
        }
        return watch
    }

    @Test("greenroomctl watch connects again after reexec, and prints each event once, also those that it has missed")
    func watch() throws {
        let apps = (0..<9).map { "app\($0)" }
        let daemon = try TestDaemon(
            Dictionary(uniqueKeysWithValues: (apps + ["first"]).map { ($0, TestDaemon.manifest("")) }))
        let watch = try Self.startedWatch(daemon)
        for round in 0..<3 {
            try watch.signal(SIGSTOP)
            try daemon.eventually("it is stopped") { watch.isStopped }
            try Self.cycle(daemon, apps[3 * round])
            try Self.reexec(daemon)
            // The next program sends these before the client connects.
            try Self.cycle(daemon, apps[3 * round + 1])
            try watch.signal(SIGCONT)
            try Self.cycle(daemon, apps[3 * round + 2])
            try daemon.eventually("the last event is printed") { watch.count(apps[3 * round + 2], "notRunning") > 0 }
        }
        for app in apps {
            #expect(watch.count(app, "active") == 1 && watch.count(app, "notRunning") == 1, "\(app)")
        }
        #expect(!watch.lines.contains { $0.contains("missing") })
    }

    private static let slow = TestDaemon.manifest("", "[Lifecycle]\nLaunchDeadlineSec=1h", hangs: true)

    @Test("a connection of the private socket whose call waits ends, and the request is carried out")
    func waiting() throws {
        let daemon = try TestDaemon(["slow": Self.slow])
        let client = try BusConnection(path: daemon.runtime + "/bus")
        let pending = try client.callAsync(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: "Launch",
            [.string("slow"), .dictionary([])])
        try daemon.waitUntil("slow", is: "launching")
        let pid = try daemon.pid("slow")
        try Self.reexec(daemon)
        #expect(throws: BusError.self) {
            try client.wait(for: pending, until: nil)
            _ = try pending.result?.get()
        }
        #expect(!client.isOpen)
        #expect(try daemon.pid("slow") == pid)
    }

    @Test(
        "a call over the message bus that waits gets an error, and the request is carried out",
        .enabled(if: PrivateBus.isPossible && geteuid() == 0, PrivateBus.requirement))
    func waitingOnMessageBus() throws {
        let stage = try BusStage(["slow": Self.slow])
        var answer: Result<[Variant], BusError>?
        try stage.client.call(
            ControlNames.busName, path: ControlNames.managerPath, interface: ControlNames.managerInterface,
            member: "Launch", [.string("slow"), .dictionary([])], timeout: nil
        ) { answer = $0 }
        try stage.serve("the launch") { try stage.daemon.state("slow") == "launching" }
        let pid = try stage.daemon.pid("slow")
        #expect(try stage.ask("Version").get() == [.string(ControlNames.version)])
        try Self.reexec(stage.daemon)
        try stage.serve("the error") { answer != nil }
        guard case .failure(let error) = answer else {
            Issue.record("the call was answered")
            return
        }
        #expect(error.name == ControlNames.Failure.replaced.name)
        #expect(error.message.contains("may have been carried out"))
        #expect(try stage.daemon.pid("slow") == pid)
    }

    @Test(
        "the next program has the bus name and answers, and its events follow",
        .enabled(if: PrivateBus.isPossible && geteuid() == 0, PrivateBus.requirement))
    func messageBus() throws {
        let stage = try BusStage(["photos": TestDaemon.manifest("")])
        #expect(try stage.ask("Version").get() == [.string(ControlNames.version)])
        for number in 0..<3 {
            let owner = try Self.owner(stage)
            try Self.reexec(stage.daemon)
            try stage.serve("the next program has the name") {
                let next = try Self.owner(stage)
                return next != nil && next != owner
            }
            let answer = try stage.ask("Launch", [.string("photos"), .dictionary([])]).get()
            #expect(answer.first?["outcome"] == .string("done"))
            let events = { (state: String) in
                stage.signals(named: ControlNames.lifecycleEventSignal).count {
                    let event = $0.arguments.first
                    return event?["kind"] == .string("stateChanged") && event?["state"] == .string(state)
                }
            }
            try stage.serve("the event of the launch") { events("active") == number + 1 }
            _ = try stage.ask("Terminate", [.string("photos"), .bool(true)]).get()
        }
    }

    /// The unique name of the daemon; `nil`: the name has no owner.
    private static func owner(_ stage: BusStage) throws -> Variant? {
        var answer: Result<[Variant], BusError>?
        stage.client.callDaemon("GetNameOwner", [.string(ControlNames.busName)]) { answer = $0 }
        try stage.serve("the owner of the name") { answer != nil }
        return (try? answer?.get())?.first
    }

    /// A client without a library.
    private static func connect(_ daemon: TestDaemon, _ bytes: some Collection<UInt8>) throws -> SharedDescriptor {
        let client = SharedDescriptor(try UnixSocket.connect(to: daemon.runtime + "/bus"))
        // The old program may have accepted it and be gone (EPIPE): `isAnswered` tells.
        let bytes = Array(bytes)
        _ = send(client.raw, bytes, bytes.count, Int32(MSG_NOSIGNAL))
        return client
    }

    /// Receives the answers to the handshake and the beginning of that to a call.
    private static func isAnswered(_ client: SharedDescriptor) -> Bool {
        var bytes: [UInt8] = []
        while bytes.count < BareBus.handshakeAnswer + 16 {
            waitForReadable([client])
            var buffer = [UInt8](repeating: 0, count: 1024)
            let count = recv(client.raw, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            guard count > 0 else { return false }
            bytes += buffer.prefix(count)
        }
        return bytes[BareBus.handshakeAnswer] == 0x6c && bytes[BareBus.handshakeAnswer + 1] == 2
    }

    @Test("what clients send to the listening socket while the program is replaced is answered by the next one")
    func justConnected() throws {
        let daemon = try TestDaemon()
        for _ in 0..<3 {
            _ = try daemon.call("Reexec")
            // Before, while or after the program is replaced: a connection that the old program has accepted ends.
            let clients = try (0..<20).map { _ in
                try Self.connect(daemon, BareBus.handshake + BareBus.pingCall())
            }
            try daemon.reconnect()
            let last = try Self.connect(daemon, BareBus.handshake + BareBus.pingCall())
            for client in clients { _ = Self.isAnswered(client) }
            #expect(Self.isAnswered(last))
        }
    }

    @Test("a client that does not read delays reexec for a limited time only")
    func doesNotRead() throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("")])
        let client = try BusConnection(path: daemon.runtime + "/bus")
        // Answers that do not all fit into the kernel's buffer.
        for _ in 0..<20 {
            _ = try client.callAsync(
                path: ControlNames.managerPath, interface: "org.freedesktop.DBus.Introspectable", member: "Introspect")
        }
        try Self.reexec(daemon)
        #expect(try daemon.state("photos") == "notRunning")
    }
}
