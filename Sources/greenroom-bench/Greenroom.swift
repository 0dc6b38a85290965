import Control
import Glibc
import Linux
import Posix
import Systemd

/// A greenroomd that the benchmark starts, and calls of its control interface.
final class Greenroom {
    private let server: Server
    let bus: BusConnection
    private let config: String

    /// - Parameters:
    ///   - name: the name of its directory.
    ///   - apps: IDs and manifests.
    ///   - configuration: the text of `greenroom.conf`.
    init(_ bench: Bench, _ name: String, apps: [(String, String)] = [], configuration: String = "") throws {
        let root = bench.folder + "/" + name
        config = root + "/config"
        try createDirectories(at: config + "/apps")
        try Self.write(apps, config)
        try replaceFile(at: config + "/greenroom.conf", with: Array(configuration.utf8))
        let runtime = bench.runtime + "/" + name
        let ready = try DatagramSocket(at: runtime + ".ready")
        server = try Server(
            bench.programs + "/greenroomd",
            ["--config", config, "--runtime", runtime, "--state", root + "/state"],
            environment: ["NOTIFY_SOCKET=\(runtime).ready"], log: root + "/log")
        let server = self.server
        try eventually("greenroomd is ready; see \(root)/log") {
            if server.hasEnded { throw BenchFailure("greenroomd exited: \(Self.log(root))") }
            guard let datagram = try ready.receive() else { return false }
            return String(decoding: datagram.bytes, as: UTF8.self).contains("READY=1")
        }
        bus = try BusConnection(path: runtime + "/bus")
        bench.record(groupsOf: try containment())
    }

    func stop() { server.stop() }
    func pss() throws -> Double { try server.pss() }
    func switches() throws -> ContextSwitches { try server.switches() }
    func awaitEndOfHelpers() throws { try server.awaitEndOfHelpers() }
    var hasEnded: Bool { server.hasEnded }
    /// The process of the daemon.
    var pid: Int32 { server.process.pid }

    private static func log(_ root: String) -> String {
        (try? readFile(at: root + "/log", limit: 1 << 20)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    private static func write(_ apps: [(String, String)], _ config: String) throws {
        for (id, text) in apps { try replaceFile(at: "\(config)/apps/\(id).app", with: Array(text.utf8)) }
    }

    /// Adds apps to the running daemon.
    func add(_ apps: [(String, String)]) throws {
        try Self.write(apps, config)
        _ = try call("Reload")
    }

    /// The text of a manifest for the bench app.
    static func manifest(_ arguments: [String], app: String = "", lifecycle: String = "") -> String {
        "[App]\nStartupSec=0\nExecStart=\(arguments.joined(separator: " "))\n\(app)\n[Lifecycle]\n\(lifecycle)\n"
    }

    // MARK: Calls

    func begin(_ member: String, _ arguments: [Variant]) throws -> BusConnection.Pending {
        try bus.callAsync(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: member, arguments,
            timeout: .seconds(60))
    }

    /// The first value of the answer.
    @discardableResult
    func finish(_ pending: BusConnection.Pending) throws -> Variant {
        try bus.wait(for: pending, until: nil)
        guard let result = pending.result else { throw BenchFailure("greenroomd did not answer") }
        return try result.get().first ?? .dictionary([])
    }

    @discardableResult
    func call(_ member: String, _ arguments: [Variant] = []) throws -> Variant {
        try finish(try begin(member, arguments))
    }

    func beginLaunch(_ app: String, background: Bool) throws -> BusConnection.Pending {
        try begin("Launch", [.string(app), .dictionary(background ? [("background", .bool(true))] : [])])
    }

    /// Launches apps into the background, this many at a time, and waits until they are suspended.
    func suspendAll(_ apps: [String], atOnce: Int = 32) throws {
        var pending: [BusConnection.Pending] = []
        var left = Set(apps)
        // The connection keeps a limited number of signals, so they are read between the calls.
        func finishNext() throws {
            try finish(pending.removeFirst())
            while let app = try nextChange(to: "suspended", until: EventLoop.now()) { left.remove(app) }
        }
        for app in apps {
            pending.append(try beginLaunch(app, background: true))
            if pending.count >= atOnce { try finishNext() }
        }
        while !pending.isEmpty { try finishNext() }
        while !left.isEmpty { left.remove(try next(state: "suspended")) }
    }

    /// The daemon's description of how it contains the processes of an app.
    func containment() throws -> String { try MemoryStatus(variant: try call("Pressure")).containment }

    func version() throws -> String { try call("Version").stringValue ?? "?" }

    // MARK: Signals

    /// Waits until an app enters this state.
    ///
    /// - Returns: the app's ID.
    @discardableResult
    func next(state: String, of app: String? = nil) throws -> String {
        if let app = try nextChange(to: state, of: app, until: EventLoop.now() + .seconds(30)) { return app }
        throw BenchFailure("timeout after 30 s: \(app ?? "an app") did not enter the state \(state)")
    }

    /// Whether the app enters this state within this time.
    func enters(_ state: String, app: String, seconds: Int) throws -> Bool {
        try nextChange(to: state, of: app, until: EventLoop.now() + .seconds(seconds)) != nil
    }

    /// The app that enters this state next, or `nil` if none does until then.
    private func nextChange(to state: String, of app: String? = nil, until deadline: Duration) throws -> String? {
        while let signal = try bus.nextSignal(until: deadline) {
            guard signal.member == ControlNames.lifecycleEventSignal, let first = signal.arguments.first else {
                continue
            }
            let event = try LifecycleEvent(variant: first)
            guard event.kind == LifecycleEvent.Kind.stateChanged.rawValue, event.state == state,
                let name = event.app, app == nil || app == name
            else { continue }
            return name
        }
        return nil
    }

    /// Discards the signals that have arrived.
    func discardSignals() throws {
        while try bus.nextSignal(until: EventLoop.now()) != nil {}
    }
}
