import Control
import Glibc
import LifecycleCore
import Linux
import Posix
import Systemd
import TestKit
import Testing

@testable import Daemon

/// The daemon in the test process, with clients on the same loop: its work is counted in turns of the loop. Each turn does one
/// piece of work. Use it in `inOwnProcess`.
final class ProgramStage {
    let root: String
    let program: Program
    private(set) var turnCount = 0
    private let ready: DatagramSocket
    private(set) var isReady = false
    private var time = Duration.zero

    /// The most turns of a test.
    private static let limit = 100_000

    /// - Parameters:
    ///   - apps: how many apps `app0`, `app1`, … have a manifest.
    ///   - suspended: how many of them a previous daemon has suspended. Their processes have ended.
    init(apps: Int, suspended: Int = 0) throws {
        root = try TestDaemon.makeFolder()
        try createDirectories(at: root + "/config/apps")
        for number in 0..<apps { try Self.writeManifest("app\(number)", root) }
        ready = try DatagramSocket(at: root + "/ready")
        setenv("NOTIFY_SOCKET", root + "/ready", 1)
        var folders = try #require(Folders(mode: .system) { _ in nil })
        folders.config = root + "/config"
        folders.vendor = root + "/vendor"
        folders.moveRuntime(to: root + "/run")
        folders.moveState(to: root + "/state")
        try createDirectories(at: folders.runtime)
        if suspended > 0 {
            let logbook = Logbook(path: folders.logbook, journal: .quiet)
            logbook.create(Self.coreWithSuspendedApps(suspended), records: [:])
        }
        var options = DaemonOptions(mode: .system, folders: folders) { _ in nil }
        options.logLevel = .error
        options.busAddress = nil
        options.systemBusAddress = "unix:path=\(root)/no-bus"
        program = try Program(options)
        program.context.loop.clock = { [unowned self] in
            time += EventLoop.turnBudget
            return time
        }
    }

    private static func writeManifest(_ app: String, _ root: String) throws {
        let text = "[App]\nExecStart=/bin/sleep 1000\n"
        try replaceFile(at: "\(root)/config/apps/\(app).app", with: Array(text.utf8))
    }

    func writeManifest(_ app: String) throws { try Self.writeManifest(app, root) }

    private static func coreWithSuspendedApps(_ count: Int) -> LifecycleCore {
        var core = LifecycleCore()
        let now = Instant(sinceOrigin: EventLoop.now())
        for number in 0..<count {
            guard let app = AppID("app\(number)") else { continue }
            var policy = AppPolicy()
            policy.suspendDelay = .zero
            _ = core.handle(.configuration(.registered(app, policy, launches: 0)), at: now)
            let launch = Request.launch(.background, reason: .user, url: nil)
            _ = core.handle(.requested(RequestID(UInt64(number)), app, launch), at: now)
            guard let run = core.run(of: app) else { continue }
            _ = core.handle(.run(run, .process(.spawned(pid: .max - Int32(number)))), at: now)
            _ = core.handle(.run(run, .process(.executed)), at: now)
            for effect in core.handle(.deadlineReached, at: now) {
                if case .run(run, .suspension(.freeze(let attempt))) = effect {
                    _ = core.handle(.run(run, .suspension(.frozen(attempt: attempt, memory: 1 << 20))), at: now)
                }
            }
        }
        return core
    }

    // MARK: The daemon

    /// Begins the start, without a turn of the loop.
    func begin() throws { try program.start() }

    /// Starts the daemon.
    func start() throws {
        try begin()
        while !isReady { try turns(1, wait: .seconds(60)) }
    }

    /// Ends all apps and the daemon.
    func stop() throws {
        program.shutDown()
        while try program.context.loop.runOnce(timeout: .seconds(60)) {}
        program.end()
        removeTree(root)
    }

    // MARK: Turns

    /// - Parameter wait: how long to wait for an event if nothing is to be done.
    func turns(_ count: Int, wait: Duration = .zero) throws {
        for _ in 0..<count {
            turnCount += 1
            try #require(turnCount < Self.limit, "the daemon does not stop working")
            try program.context.loop.runOnce(timeout: wait)
            while let datagram = try ready.receive() {
                if String(decoding: datagram.bytes, as: UTF8.self).contains("READY=1") { isReady = true }
            }
        }
    }

    /// Runs the loop until a call is answered.
    /// - Returns: the number of turns.
    func turns(until call: Call) throws -> Int {
        let before = turnCount
        while call.answer == nil { try turns(1, wait: .seconds(60)) }
        return turnCount - before
    }

    // MARK: Clients

    final class Call {
        fileprivate(set) var answer: Result<[Variant], BusError>?
        func result() throws -> [Variant] { try #require(answer).get() }
    }

    /// A client that has finished its handshake.
    func client() throws -> BusPeer {
        let peer = try BusPeer(
            loop: program.context.loop, descriptor: try UnixSocket.connect(to: root + "/run/bus"), role: .client)
        while !peer.isReady { try turns(1, wait: .seconds(60)) }
        return peer
    }

    func call(_ client: BusPeer, _ member: String, _ arguments: [Variant] = []) throws -> Call {
        let call = Call()
        try client.call(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: member, arguments,
            timeout: nil
        ) { call.answer = $0 }
        return call
    }
}
