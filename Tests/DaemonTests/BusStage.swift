import Control
import Glibc
import Linux
import Posix
import Systemd
import TestKit
import Testing

/// The longest wait of a test, for a slow machine: reaching it is a failure.
private let timeout = Duration.seconds(60)

/// A daemon on a private message bus, and a client of that bus. One loop serves everything in the test process, so a call that
/// waits for the test process has to use `ask` or `run`.
final class BusStage {
    let root: String
    let bus: PrivateBus
    let daemon: TestDaemon
    let loop: EventLoop
    let client: BusPeer
    private(set) var signals: [BusSignal] = []

    init(_ apps: [String: String] = [:], configuration: String? = nil) throws {
        root = try TestDaemon.makeFolder()
        bus = try PrivateBus(in: root)
        loop = try EventLoop()
        client = try BusPeer(loop: loop, busAddress: bus.address)
        daemon = try TestDaemon(apps, configuration: configuration, root: root)
        client.onSignal = { [unowned self] in signals.append($0) }
        client.addMatch("type='signal',path_namespace='\(ControlNames.managerPath)'")
        try waitForOwner(of: ControlNames.busName)
    }

    func waitForOwner(of name: String) throws {
        client.addMatch("type='signal',member='NameOwnerChanged',arg0='\(name)'")
        var hasOwner = false
        client.callDaemon("NameHasOwner", [.string(name)]) { result in
            if case .success(let answer) = result, answer.first == .bool(true) { hasOwner = true }
        }
        try serve("an owner of \(name)") {
            hasOwner
                || self.signals.contains {
                    $0.member == "NameOwnerChanged" && $0.arguments.first == .string(name)
                        && $0.arguments.last != .string("")
                }
        }
    }

    func serve(_ what: String, until condition: () throws -> Bool) throws {
        let deadline = loop.now() + timeout
        while try !condition() {
            guard loop.now() < deadline else {
                throw TestFailure(
                    "timed out waiting for \(what); the log: \(TestDaemon.text(of: root + "/log").suffix(2000))")
            }
            try loop.runOnce(timeout: .seconds(1))
        }
    }

    // MARK: Calls over the bus

    func ask(
        _ member: String, _ arguments: [Variant] = [], path: String = ControlNames.managerPath,
        interface: String = ControlNames.managerInterface, meanwhile: () throws -> Void = {}
    ) throws -> Result<[Variant], BusError> {
        var answer: Result<[Variant], BusError>?
        try client.call(
            ControlNames.busName, path: path, interface: interface, member: member, arguments, timeout: timeout
        ) { answer = $0 }
        try meanwhile()
        try serve("an answer to \(member)") { answer != nil }
        return try #require(answer)
    }

    static func path(_ app: String) -> String { ObjectPath.encode(app, below: ControlNames.appPrefix) }

    /// The signals of the daemon's objects so far, of one name.
    func signals(named member: String) -> [BusSignal] {
        signals.filter { $0.member == member && $0.path.hasPrefix(ControlNames.managerPath) }
    }

    /// The values of an app's property in all PropertiesChanged signals, in order.
    func changes(of property: String, in app: String) -> [Variant] {
        signals(named: "PropertiesChanged").filter { $0.path == BusStage.path(app) }.compactMap {
            $0.arguments[1][property]
        }
    }

    // MARK: Programs

    /// The user `nobody`.
    static let otherUser: UInt32 = 65534

    /// Runs a program while the loop serves, with the private bus as the system's.
    func run(_ words: [String], asOtherUser: Bool = false) throws -> (status: Int32, text: String) {
        let running = try start(words, asOtherUser: asOtherUser)
        try serve("the end of \(words[0])") { try running.hasEnded() }
        let status: Int32 =
            switch try running.process.reap()?.status {
            case .exited(let code): code
            default: -1
            }
        return (status, TestDaemon.text(of: running.output))
    }

    struct Running {
        let process: Linux.Process
        let output: String
        let source: EventSource

        func hasEnded() throws -> Bool { try process.hasEnded() }
    }

    private var programs = 0

    func start(_ words: [String], asOtherUser: Bool = false) throws -> Running {
        programs += 1
        let path = "\(root)/output-\(programs)"
        let output = SharedDescriptor(try Descriptor.open(path, O_WRONLY | O_CREAT | O_TRUNC, mode: 0o666))
        var all = words
        if asOtherUser {
            all = ["setpriv", "--reuid=\(Self.otherUser)", "--regid=\(Self.otherUser)", "--clear-groups"] + words
        }
        let request = SpawnRequest(
            executable: "/usr/bin/" + all[0], arguments: Array(all.dropFirst()),
            environment: ["PATH=/usr/bin:/bin", "HOME=/", "DBUS_SYSTEM_BUS_ADDRESS=\(bus.address)"],
            standardOutput: output, standardError: output)
        var starting = try startProcess(request)
        let process = starting.process
        while try starting.outcome() == .pending { waitForReadable([starting.outcomeDescriptor]) }
        // The end of the process ends a turn of the loop. An edge: a pidfd stays readable, and would delay the bus peers.
        let source = try loop.addDescriptor(process.descriptor, events: [.readable, .edge]) { _ in }
        return Running(process: process, output: path, source: source)
    }

    /// busctl on the private bus.
    func busctl(_ words: String..., asOtherUser: Bool = false) throws -> (status: Int32, text: String) {
        try run(["busctl", "--system", "--no-pager"] + words, asOtherUser: asOtherUser)
    }
}

/// A polkit with the methods that the daemon calls.
final class FakePolkit {
    struct Question {
        let call: MethodCall
        var subject: Variant { call.arguments[0] }
        var action: Variant { call.arguments[1] }
        var details: Variant { call.arguments[2] }
        var mayAsk: Bool { call.arguments[3] == .uint32(1) }
        var cancellation: Variant { call.arguments[4] }

        func answer(_ isAllowed: Bool, isChallenge: Bool = false) {
            call.reply([.structure([.bool(isAllowed), .bool(isChallenge), .array("{ss}", [])])])
        }
    }

    private let messageBus: MessageBus
    private(set) var questions: [Question] = []
    private(set) var cancelled: [Variant] = []
    /// If set, each question is answered immediately.
    var decide: ((Question) -> Void)?

    init(_ stage: BusStage) throws {
        let objects = BusObjects()
        messageBus = try MessageBus(
            loop: stage.loop, address: stage.bus.address, name: "org.freedesktop.PolicyKit1", objects: objects)
        objects.add(
            at: "/org/freedesktop/PolicyKit1/Authority",
            [
                BusInterface(
                    "org.freedesktop.PolicyKit1.Authority",
                    methods: [
                        BusMethod("CheckAuthorization", in: "(sa{sv})sa{ss}us", out: "(bba{ss})", access: .anyone) {
                            [unowned self] call in
                            questions.append(Question(call: call))
                            decide?(Question(call: call))
                        },
                        BusMethod("CancelCheckAuthorization", in: "s", access: .anyone) { [unowned self] call in
                            cancelled.append(call.arguments[0])
                            call.reply()
                        },
                    ])
            ])
        messageBus.connect()
        try stage.serve("the fake polkit's name") { self.messageBus.nameState == .owned }
    }
}
