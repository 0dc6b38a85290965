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

    @Test("a client of the private socket stays connected: it gets all later events, and no object is added or removed")
    func privateSocket() throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest(""), "broken": "[App]\nType=notfy\n"])
        let client = try BusConnection(path: daemon.runtime + "/bus")
        for _ in 0..<3 {
            #expect(try Self.version(client) == .string(ControlNames.version))
            try Self.reexec(daemon)
            try daemon.launch("photos")
            try daemon.terminate("photos", remove: true)
        }
        var states: [String] = []
        while states.count(where: { $0 == "notRunning" }) < 3 {
            let signal = try #require(try client.nextSignal(until: EventLoop.now() + .seconds(60)))
            // Before the first launch the objects of the first program may still be announced.
            let isOfObjects = ["InterfacesAdded", "InterfacesRemoved"].contains(signal.member)
            #expect(!isOfObjects || states.isEmpty, "\(signal)")
            guard signal.member == ControlNames.lifecycleEventSignal, let event = signal.arguments.first,
                event["kind"] == .string("stateChanged")
            else { continue }
            states.append(event["state"]?.stringValue ?? "")
        }
        #expect(states.count(where: { $0 == "active" }) == 3)
        #expect(!TestDaemon.text(of: daemon.root + "/log").contains("A connection of the previous program ended"))
    }

    @Test("a client that stays connected over reexec gets the memory level, which may have changed meanwhile")
    func memoryLevel() throws {
        let daemon = try TestDaemon()
        let client = try BusConnection(path: daemon.runtime + "/bus")
        #expect(try Self.version(client) == .string(ControlNames.version))
        try Self.reexec(daemon)
        while true {
            let signal = try #require(try client.nextSignal(until: EventLoop.now() + .seconds(60)))
            guard signal.member == "PropertiesChanged", signal.path == ControlNames.managerPath else { continue }
            if let level = signal.arguments[1]["MemoryLevel"]?.stringValue {
                #expect(["normal", "warning", "critical"].contains(level))
                return
            }
        }
    }

    @Test("an app that was added just before reexec is an added object to clients before its properties change")
    func addedBefore() throws {
        let daemon = try TestDaemon()
        let client = try BusConnection(path: daemon.runtime + "/bus")
        for number in 0..<3 {
            #expect(try Self.version(client) == .string(ControlNames.version))
            let path = "\(daemon.config)/apps/app\(number).app"
            try replaceFile(at: path, with: Array(TestDaemon.manifest("").utf8))
            _ = try daemon.call("Reload")
            try Self.reexec(daemon)
            let object = ObjectPath.encode("app\(number)", below: ControlNames.appPrefix)
            while true {
                let signal = try #require(try client.nextSignal(until: EventLoop.now() + .seconds(60)))
                #expect(signal.path != object, "\(signal)")
                if signal.member == "InterfacesAdded", signal.arguments.first == .objectPath(object) { break }
            }
        }
    }

    @Test("manifests with errors that were added, removed or corrected before reexec are announced as by a reload")
    func disabled() throws {
        let broken = "[App]\nType=notfy\n"
        let daemon = try TestDaemon(["gone": broken, "fixed": broken, "same": broken])
        let client = try BusConnection(path: daemon.runtime + "/bus")
        #expect(try Self.version(client) == .string(ControlNames.version))
        unlink(daemon.config + "/apps/gone.app")
        try replaceFile(at: daemon.config + "/apps/fixed.app", with: Array(TestDaemon.manifest("").utf8))
        try replaceFile(at: daemon.config + "/apps/new.app", with: Array(broken.utf8))
        try Self.reexec(daemon)
        func path(_ app: String) -> String { ObjectPath.encode(app, below: ControlNames.appPrefix) }
        var isReplaced = false
        var announced: [String: String] = [:]
        while announced.count < 4 {
            let signal = try #require(try client.nextSignal(until: EventLoop.now() + .seconds(60)))
            // The memory level is the first that the new program sends.
            if signal.member == "PropertiesChanged", signal.path == ControlNames.managerPath { isReplaced = true }
            guard isReplaced else { continue }
            switch signal.member {
            case "InterfacesAdded", "InterfacesRemoved":
                if case .objectPath(let object) = signal.arguments[0] { announced[object] = signal.member }
            case "PropertiesChanged" where signal.path != ControlNames.managerPath:
                announced[signal.path] = signal.arguments[1]["LoadState"]?.stringValue
            default: break
            }
        }
        #expect(announced[path("gone")] == "InterfacesRemoved")
        #expect(announced[path("new")] == "InterfacesAdded")
        #expect(announced[path("fixed")] == "loaded")
        #expect(announced[path("same")] == "bad-setting")
    }

    @Test("greenroomctl watch continues over reexec, and prints the events that follow")
    func watch() throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("")])
        let path = daemon.root + "/watch"
        let output = SharedDescriptor(try Descriptor.open(path, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o600))
        var starting = try startProcess(
            SpawnRequest(
                executable: TestDaemon.binaries + "/greenroomctl",
                arguments: ["--runtime", daemon.runtime, "--json", "watch"], environment: ["PATH=/usr/bin:/bin"],
                standardOutput: output, standardError: output))
        let process = starting.process
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        defer {
            _ = try? process.signal(SIGKILL)
            waitForReadable([process.descriptor])
            _ = try? process.reap()
        }
        func events(_ state: String) -> Int {
            TestDaemon.text(of: path).split(separator: "\n").count {
                $0.contains("\"stateChanged\"") && $0.contains("\"\(state)\"")
            }
        }
        // It prints events once it is connected.
        try daemon.eventually("the program prints an event") {
            try daemon.launch("photos")
            try daemon.terminate("photos", remove: true)
            return events("active") > 0
        }
        let before = events("active")
        try Self.reexec(daemon)
        try daemon.launch("photos")
        try daemon.eventually("the program prints the event after reexec") { events("active") > before }
        #expect(try !process.hasEnded())
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
        let owner = try Self.owner(stage)
        #expect(try stage.ask("Version").get() == [.string(ControlNames.version)])
        try Self.reexec(stage.daemon)
        try stage.serve("the error") { answer != nil }
        guard case .failure(let error) = answer else {
            Issue.record("the call was answered")
            return
        }
        #expect(error.name == ControlNames.Failure.replaced.name)
        #expect(error.message.contains("may have been carried out"))
        #expect(try Self.owner(stage) == owner)
        #expect(try stage.daemon.pid("slow") == pid)
    }

    @Test(
        "the daemon keeps its connection to the message bus and its name: no object is added or removed",
        .enabled(if: PrivateBus.isPossible && geteuid() == 0, PrivateBus.requirement))
    func messageBus() throws {
        let stage = try BusStage(["photos": TestDaemon.manifest(""), "broken": "[App]\nType=notfy\n"])
        let owner = try Self.owner(stage)
        // The first daemon may announce its objects to a client that connects early.
        #expect(try stage.ask("Version").get() == [.string(ControlNames.version)])
        let added = stage.signals(named: "InterfacesAdded").count
        for number in 0..<3 {
            // The answers to the daemon's own calls have arrived before this call.
            #expect(try stage.ask("Version").get() == [.string(ControlNames.version)])
            try Self.reexec(stage.daemon)
            #expect(try Self.owner(stage) == owner)
            try stage.serve("the log entry of the new program about its name") {
                let lines = TestDaemon.text(of: stage.root + "/log").split(separator: "\n")
                return lines.count { $0.contains("Acquired the bus name") } == number + 2
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
        #expect(stage.signals(named: "InterfacesAdded").count == added)
        #expect(stage.signals(named: "InterfacesRemoved").isEmpty)
        let lost = stage.signals.contains {
            $0.member == "NameOwnerChanged" && $0.arguments.first == .string(ControlNames.busName)
                && $0.arguments.last == .string("")
        }
        #expect(!lost)
    }

    @Test(
        "the connection to the message bus is kept if a connected client has had an interruption that has ended",
        .enabled(if: PrivateBus.isPossible && geteuid() == 0, PrivateBus.requirement))
    func endedInterruption() throws {
        let stage = try BusStage(["call": TestDaemon.manifest("")])
        let owner = try Self.owner(stage)
        _ = try stage.ask("Launch", [.string("call"), .dictionary([])]).get()
        for _ in 0..<2 {
            let inactive = try stage.ask("InterruptWhileConnected", [.string("call")]).get()
            #expect(inactive.first?["state"] == .string("inactive"))
            let active = try stage.ask("Resume", [.string("call")]).get()
            #expect(active.first?["state"] == .string("active"))
            #expect(try stage.ask("Version").get() == [.string(ControlNames.version)])
            try Self.reexec(stage.daemon)
            #expect(try Self.owner(stage) == owner)
        }
    }

    /// The unique name of the daemon.
    private static func owner(_ stage: BusStage) throws -> Variant? {
        var owner: Variant?
        stage.client.callDaemon("GetNameOwner", [.string(ControlNames.busName)]) { owner = (try? $0.get())?.first }
        try stage.serve("the owner of the name") { owner != nil }
        return owner
    }

    /// A client without a library.
    private static func connect(_ daemon: TestDaemon, _ bytes: some Collection<UInt8>) throws -> SharedDescriptor {
        let client = SharedDescriptor(try UnixSocket.connect(to: daemon.runtime + "/bus"))
        try send(bytes, to: client)
        return client
    }

    private static func send(_ bytes: some Collection<UInt8>, to client: SharedDescriptor) throws {
        let bytes = Array(bytes)
        try #require(Glibc.send(client.raw, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count)
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

    @Test("clients that have just connected are answered after reexec, whatever they have sent of their handshake")
    func justConnected() throws {
        let daemon = try TestDaemon()
        let whole = BareBus.handshake
        for _ in 0..<3 {
            var clients: [(socket: SharedDescriptor, sent: Int)] = []
            for count in 0...whole.count { clients.append((try Self.connect(daemon, whole.prefix(count)), count)) }
            // These call at once, before or while the program is replaced.
            let early = try (0..<20).map { _ in try Self.connect(daemon, whole + BareBus.pingCall()) }
            try Self.reexec(daemon)
            for (socket, sent) in clients {
                try Self.send(whole.dropFirst(sent) + BareBus.pingCall(), to: socket)
                #expect(Self.isAnswered(socket), "\(sent) bytes of the handshake were sent before")
            }
            for client in early { #expect(Self.isAnswered(client)) }
        }
        let log = TestDaemon.text(of: daemon.root + "/log")
        #expect(!log.contains("cannot be handed over") && !log.contains("A connection of the previous program ended"))
    }

    @Test("a client with a part of a message is waited for; one that does not end it is disconnected, with a log entry")
    func partOfMessage() throws {
        let daemon = try TestDaemon()
        let call = BareBus.pingCall(serial: 2)
        let stalled = try Self.connect(daemon, BareBus.handshake + BareBus.pingCall())
        #expect(Self.isAnswered(stalled))
        try Self.send(call.prefix(50), to: stalled)
        // The daemon has read what was sent before this call.
        let other = try BusConnection(path: daemon.runtime + "/bus")
        #expect(try Self.version(other) == .string(ControlNames.version))
        try daemon.eventually("the part of the message is read") {
            var waiting: Int32 = 0
            return ioctl(stalled.raw, UInt(TIOCOUTQ), &waiting) == 0 && waiting == 0
        }
        try Self.reexec(daemon)
        var byte: UInt8 = 0
        waitForReadable([stalled])
        while recv(stalled.raw, &byte, 1, Int32(MSG_DONTWAIT)) > 0 {}
        #expect(recv(stalled.raw, &byte, 1, 0) <= 0)
        #expect(try Self.version(other) == .string(ControlNames.version))
        let reason = "a part of its handshake or of a message is missing"
        #expect(TestDaemon.text(of: daemon.root + "/log").contains(reason))
    }
}
