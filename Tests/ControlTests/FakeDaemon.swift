import Control
import Glibc
import Systemd
import TestKit
import Testing

/// What the tests wait for at most, however slow the machine: reaching it is a failure.
let patience = Duration.seconds(30)

/// Serves the control interface with answers that a test has made up, and runs the command line against it.
final class FakeDaemon {
    let folder = TemporaryFolder()
    let loop: EventLoop
    private let objects = BusObjects()
    private var server: BusServer?
    private var timer: Systemd.Timer?
    private var answers: [String: (MethodCall) -> Void] = [:]
    /// What was called, in its order.
    private(set) var calls: [(member: String, arguments: [Variant])] = []
    /// Calls that are kept unanswered.
    var kept: [MethodCall] = []

    var runtime: String { folder.path }

    private static let methods: [(name: String, input: String, output: String, access: BusAccess)] = [
        ("List", "", "aa{sv}", .anyone), ("Status", "s", "a{sv}", .anyone), ("Launch", "sa{sv}", "a{sv}", .owner),
        ("Activate", "s", "a{sv}", .owner), ("Background", "s", "a{sv}", .owner),
        ("Interrupt", "s", "a{sv}", .owner), ("Resume", "s", "a{sv}", .owner), ("Terminate", "sb", "a{sv}", .owner),
        ("Push", "ss", "a{sv}", .owner), ("Send", "sss", "a{sv}", .owner), ("Receipts", "su", "aa{sv}", .anyone),
        ("Receipt", "t", "a{sv}", .anyone), ("Pressure", "", "a{sv}", .anyone),
        ("SimulatePressure", "s", "a{sv}", .owner), ("Version", "", "s", .anyone),
    ]

    init() throws {
        loop = try EventLoop()
        let methods = Self.methods.map { method in
            BusMethod(method.name, in: method.input, out: method.output, access: method.access) { [unowned self] call in
                self.calls.append((call.member, call.arguments))
                guard let answer = self.answers[call.member] else {
                    return call.fail(ControlNames.Failure.failed.error("\(call.member) was not expected"))
                }
                answer(call)
            }
        }
        objects.add(at: ControlNames.managerPath, [BusInterface(ControlNames.managerInterface, methods: methods)])
        server = try BusServer(loop: loop, path: runtime + "/bus", names: [ControlNames.busName], objects: objects)
    }

    func on(_ member: String, _ answer: @escaping (MethodCall) -> Void) {
        answers[member] = answer
    }

    func answer(_ member: String, _ value: Variant) {
        on(member) { $0.reply([value]) }
    }

    /// When somebody has connected and the handshake is done: before that nobody is told anything.
    func onceConnected(_ work: @escaping (FakeDaemon) -> Void) {
        server?.onPeer = { [unowned self] peer in self.whenReady(peer, work) }
    }

    private func whenReady(_ peer: BusPeer, _ work: @escaping (FakeDaemon) -> Void) {
        if peer.isReady { return work(self) }
        timer = try? loop.makeTimer { [unowned self, unowned peer] _ in whenReady(peer, work) }
        timer?.arm(at: loop.now() + .milliseconds(1))
    }

    func tell(_ news: [(String, Variant)]) {
        try? server?.emitSignal(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface,
            member: ControlNames.newsSignal, [.dictionary(news)])
    }

    /// Ends all connections, as a daemon that dies does.
    func hangUp() {
        for peer in server?.peers ?? [] { peer.close() }
    }

    /// As a daemon does that is replaced while it is asked.
    func die(with call: MethodCall) {
        kept.append(call)
        loop.callLater { [unowned self] in self.hangUp() }
    }

    /// As one that is not: nobody listens any more.
    func goAway() { server = nil }

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

/// A folder of its own for a test, removed with all that is in it.
final class TemporaryFolder {
    let path = makeTemporaryFolder("greenroomctl")

    deinit {
        removeTree(path)
    }

    /// Writes a file below it, with the folders on the way.
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
