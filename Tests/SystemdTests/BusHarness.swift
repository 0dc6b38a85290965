import Glibc
import Posix
import Systemd
import TestKit
import Testing

/// The objects of the bus tests: one at a fixed path, some below a prefix.
final class Exhibit {
    static let name = "org.example.Greenroom"
    static let path = "/org/example"
    static let appPrefix = "/org/example/app"
    static let manager = "org.example.Manager1"
    static let app = "org.example.App1"

    var ids = ["org.example.Photos", "mail"]
    var states: [String: String] = [:]
    /// Calls of `Later` without an answer.
    var waiting: [MethodCall] = []
    var calls = 0
    var goneWhileWaiting = 0
    /// Called before an `Echo` is answered.
    var onEcho: ((Variant) -> Void)?
    /// Answers `Long`.
    var onLong: ((MethodCall) -> Void)?

    func objects() -> BusObjects {
        let objects = BusObjects()
        objects.add(at: Self.path, [manager()])
        objects.add(
            below: Self.appPrefix, contains: { [unowned self] in ids.contains($0) }, list: { [unowned self] in ids },
            [app()])
        objects.addObjectManager(at: Self.path)
        return objects
    }

    private func manager() -> BusInterface {
        BusInterface(
            Self.manager,
            methods: [
                BusMethod("Echo", in: "v", out: "v", arguments: ["value"], results: ["same"]) { [unowned self] call in
                    calls += 1
                    if let value = call.arguments.first { onEcho?(value) }
                    call.reply(call.arguments)
                },
                BusMethod("Launch", in: "sa{sv}", out: "a{sv}", arguments: ["id", "options"], results: ["app"]) {
                    call in
                    call.reply([.dictionary([("id", call.arguments[0]), ("options", .variant(call.arguments[1]))])])
                },
                BusMethod("Later") { [unowned self] call in
                    call.onPeerGone { [weak self] in self?.goneWhileWaiting += 1 }
                    waiting.append(call)
                },
                BusMethod("Drop") { _ in },
                BusMethod("Long", out: "as", results: ["texts"]) { [unowned self] in onLong?($0) },
                BusMethod("Fail") { $0.fail("org.example.Error.Sad", "It is sad.") },
                BusMethod("Lie", out: "s") { $0.reply([.int32(1)]) },
                BusMethod("Who", out: "iu", results: ["pid", "uid"], access: .anyone) { call in
                    call.identify { result in
                        guard let caller = try? result.get() else { return }
                        call.reply([.int32(caller.pid), .uint32(caller.uid)])
                    }
                },
            ],
            properties: [
                BusProperty("Version", "s", .constant) { _ in .string("1") },
                BusProperty("Calls", "u", .silent) { [unowned self] _ in .uint32(UInt32(calls)) },
                BusProperty("Broken", "s", .silent) { _ throws(BusError) in
                    throw BusError("org.example.Error.No", "No.")
                },
            ],
            signals: [BusSignalDeclaration("Changed", "su", arguments: ["what", "number"])])
    }

    private func app() -> BusInterface {
        BusInterface(
            Self.app,
            methods: [
                BusMethod("Name", out: "s", results: ["name"]) { $0.reply([.string($0.target.id)]) }
            ],
            properties: [
                BusProperty("State", "s") { [unowned self] in .string(states[$0.id] ?? "notRunning") }
            ])
    }
}

/// A served exhibit in a folder of its own.
final class Stage {
    let folder: TemporaryFolder
    let loop: EventLoop
    let exhibit = Exhibit()
    let server: BusServer
    var gone: [String] = []
    var warnings: [String] = []

    var path: String { folder.path + "/bus" }

    /// - Parameter isTrusting: as for root and the daemon's user; otherwise as for an app.
    init(
        limits: BusServer.Limits = BusServer.Limits(), mode: UInt32 = 0o600,
        permittedUsers: Set<UInt32> = [0, geteuid()], isTrusting: Bool = false
    ) throws {
        folder = try TemporaryFolder()
        if mode & 0o006 != 0 { chmod(folder.path, 0o755) }
        loop = try EventLoop()
        let path = folder.path + "/bus"
        server = try BusServer(
            loop: loop, path: path, listening: BusListener(at: path, mode: mode), objects: exhibit.objects(),
            configuration: BusServer.Configuration(
                names: [Exhibit.name], permittedUsers: permittedUsers, limits: limits),
            closer: isTrusting ? nil : DescriptorCloser())
        server.onPeerGone = { [unowned self] in gone.append($1) }
        server.onWarning = { [unowned self] in warnings.append($0) }
    }

    /// A client on the same loop.
    func client() throws -> BusPeer {
        try BusPeer(loop: loop, descriptor: try UnixSocket.connect(to: path), role: .client)
    }

    /// A connection without D-Bus.
    func bareClient() throws -> SharedDescriptor { SharedDescriptor(try UnixSocket.connect(to: path)) }

    /// A call of org.freedesktop.DBus.Peer.Ping.
    /// - Parameter wantsReply: without it the message has the flag NO_REPLY_EXPECTED.
    static func pingCall(wantsReply: Bool = true) -> [UInt8] {
        BareBus.pingCall(wantsReply: wantsReply)
    }

    /// Calls a method and runs the loop until the answer arrives.
    func ask(
        _ client: BusPeer, _ member: String, _ arguments: [Variant] = [], interface: String = Exhibit.manager,
        path: String = Exhibit.path
    ) throws -> Result<[Variant], BusError> {
        var answer: Result<[Variant], BusError>?
        try client.call(path: path, interface: interface, member: member, arguments, timeout: testTimeout) {
            answer = $0
        }
        #expect(try loop.serve { answer != nil })
        return try #require(answer)
    }

    func busctl(_ words: String...) throws -> (status: Int32, text: String) {
        try loop.run(["busctl", "--address=unix:path=\(path)", "--no-pager"] + words)
    }
}

extension EventLoop {
    /// Runs a program while the loop serves it.
    /// - Returns: its exit status and what it wrote, both streams.
    func run(_ words: [String]) throws -> (status: Int32, text: String) {
        let pipe = try TestPipe()
        var text: [UInt8] = []
        var ended = false
        let source = try addDescriptor(pipe.reading, events: .readable) { _ in
            let bytes = pipe.read()
            text += bytes
            ended = bytes.isEmpty
        }
        let pid = try spawn(words, output: pipe.writing)
        pipe.closeWriting()
        #expect(try serve { ended })
        source.cancel()
        if !ended { kill(pid, SIGKILL) }
        var status: Int32 = 0
        waitpid(pid, &status, 0)
        return ((status >> 8) & 0xff, String(decoding: text, as: UTF8.self))
    }
}

func spawn(_ words: [String], output: SharedDescriptor) throws -> pid_t {
    var actions = posix_spawn_file_actions_t()
    posix_spawn_file_actions_init(&actions)
    defer { posix_spawn_file_actions_destroy(&actions) }
    posix_spawn_file_actions_adddup2(&actions, output.raw, 1)
    posix_spawn_file_actions_adddup2(&actions, output.raw, 2)
    var pid: pid_t = 0
    let arguments = words.map { strdup($0) } + [nil]
    defer { for argument in arguments { free(argument) } }
    let result = posix_spawnp(&pid, words[0], &actions, nil, arguments, environ)
    try #require(result == 0, "\(words[0]): \(String(cString: strerror(result)))")
    return pid
}

/// Whether a program is installed.
func isInstalled(_ program: String) -> Bool {
    ["/usr/bin", "/bin", "/usr/local/bin"].contains { access("\($0)/\(program)", X_OK) == 0 }
}
