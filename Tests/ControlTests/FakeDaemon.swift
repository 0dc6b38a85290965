import Control
import Glibc
import Systemd
import TestKit
import Testing

/// The longest wait of a test, for a slow machine: reaching it is a failure.
let timeout = Duration.seconds(30)

/// Serves the control interface with the answers of a test, and runs the command line against it.
final class FakeDaemon {
    let folder = TemporaryFolder()
    let loop: EventLoop
    private let objects = BusObjects()
    private var server: BusServer?
    private var timer: Systemd.Timer?
    private var answers: [String: (MethodCall) -> Void] = [:]
    /// The calls, in their order.
    private(set) var calls: [(member: String, arguments: [Variant])] = []
    /// Calls that are not answered yet.
    var pending: [MethodCall] = []

    var runtime: String { folder.path }

    private static let methods: [(name: String, input: String, output: String, access: BusAccess)] = [
        ("List", "", "aa{sv}", .anyone), ("Status", "s", "a{sv}", .anyone), ("Launch", "sa{sv}", "a{sv}", .owner),
        ("Activate", "s", "a{sv}", .owner), ("Background", "s", "a{sv}", .owner),
        ("Interrupt", "s", "a{sv}", .owner),
        ("InterruptWhileConnected", "s", "a{sv}", .owner), ("Resume", "s", "a{sv}", .owner),
        ("Terminate", "sb", "a{sv}", .owner),
        ("Push", "ss", "a{sv}", .owner), ("Send", "sss", "a{sv}", .owner), ("Receipts", "su", "aa{sv}", .anyone),
        ("Open", "ssa{sv}", "a{sv}", .owner),
        ("Receipt", "t", "a{sv}", .anyone), ("Pressure", "", "a{sv}", .anyone),
        ("SimulatePressure", "s", "a{sv}", .owner), ("Reload", "", "a{sv}", .owner), ("Version", "", "s", .anyone),
        ("RecentEvents", "t", "a{sv}", .anyone),
    ]

    /// The properties of the manager.
    private let properties: [(name: String, value: Variant)]

    /// - Parameter isOld: whether it is of a version that had none of the properties.
    init(isOld: Bool = false, fileProblems: [String] = []) throws {
        loop = try EventLoop()
        properties =
            isOld
            ? []
            : [
                ("ConfigFolder", .string(folder.path + "/config")), ("RuntimeFolder", .string(folder.path)),
                ("StateFolder", .string("/var/lib/greenroom")), ("VendorFolder", .string("/usr/lib/greenroom")),
                ("StartTimestamp", .uint64(Records.time.microseconds)), ("StartTimestampMonotonic", .uint64(0)),
                ("FileProblems", .array("s", fileProblems.map(Variant.string))),
                ("Containment", .string("containing apps in cgroups below /sys/fs/cgroup/greenroom (cgroup v2)")),
            ]
        let methods = Self.methods.map { method in
            BusMethod(method.name, in: method.input, out: method.output, access: method.access) { [unowned self] call in
                self.calls.append((call.member, call.arguments))
                guard let answer = self.answers[call.member] else {
                    return call.fail(ControlNames.Failure.failed.error("\(call.member) was not expected"))
                }
                answer(call)
            }
        }
        let properties = self.properties.map { name, value in BusProperty(name, value.signature, .silent) { _ in value }
        }
        objects.add(
            at: ControlNames.managerPath,
            [BusInterface(ControlNames.managerInterface, methods: methods, properties: properties)])
        server = try BusServer(loop: loop, path: runtime + "/bus", names: [ControlNames.busName], objects: objects)
    }

    func on(_ member: String, _ answer: @escaping (MethodCall) -> Void) {
        answers[member] = answer
    }

    func answer(_ member: String, _ value: some RecordValue) {
        on(member) { $0.reply(value) }
    }

    /// Runs `work` when a client has connected and finished the handshake: it receives no signal before that.
    func onceConnected(_ work: @escaping (FakeDaemon) -> Void) {
        server?.onPeer = { [unowned self] peer in self.whenReady(peer, work) }
    }

    private func whenReady(_ peer: BusPeer, _ work: @escaping (FakeDaemon) -> Void) {
        if peer.isReady { return work(self) }
        timer = try? loop.makeTimer { [unowned self, unowned peer] _ in whenReady(peer, work) }
        timer?.arm(at: loop.now() + .milliseconds(1))
    }

    func emit(_ event: LifecycleEvent) {
        try? server?.emitSignal(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface,
            member: ControlNames.lifecycleEventSignal, [event.variant])
    }

    /// Closes all connections, like a daemon that dies.
    func hangUp() {
        for peer in server?.peers ?? [] { peer.close() }
    }

    /// Closes all connections during a call, like a daemon that is replaced.
    func die(with call: MethodCall) {
        pending.append(call)
        loop.callLater { [unowned self] in self.hangUp() }
    }

    /// Stops listening, like a daemon that is not replaced.
    func stopListening() { server = nil }

    func count(of member: String) -> Int { calls.count { $0.member == member } }

    /// Runs the program against this daemon until it has ended.
    func run(
        _ arguments: String..., environment: [String] = [], terminal: Bool = false,
        during: ((RunningProgram) -> Void)? = nil
    ) throws -> Outcome {
        let program = try RunningProgram(
            ["--runtime", runtime] + arguments, environment: environment, terminal: terminal)
        return try program.finish(in: loop, during: during)
    }
}

/// A folder for one test, removed with its content.
final class TemporaryFolder {
    let path = makeTemporaryFolder("greenroomctl")

    deinit {
        removeTree(path)
    }

    /// Writes a file into the folder, and creates the folders of its path.
    @discardableResult
    func write(_ name: String, _ text: String) throws -> String {
        var folder = path
        for part in name.split(separator: "/").dropLast() {
            folder += "/\(part)"
            mkdir(folder, 0o700)
        }
        let file = try #require(fopen("\(path)/\(name)", "w"))
        fputs(text, file)
        fclose(file)
        return "\(path)/\(name)"
    }
}

extension MethodCall {
    func reply(_ value: some RecordValue) { reply([value.variant]) }
}
