import Control
import Glibc
import JSON
import Linux
import Posix
import Systemd

/// A greenroomd of our own, and what is asked of it over its bus.
final class Greenroom {
    private let server: Server
    let bus: BusConnection
    private let config: String

    /// - Parameters:
    ///   - name: of its folder.
    ///   - apps: manifests' text by ID.
    ///   - configuration: `greenroom.conf`.
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
            if server.hasEnded { throw BenchFailure("greenroomd has ended: \(Self.log(root))") }
            guard let datagram = try ready.receive() else { return false }
            return String(decoding: datagram.bytes, as: UTF8.self).contains("READY=1")
        }
        bus = try BusConnection(path: runtime + "/bus")
        bench.remember(groupsOf: try containment())
    }

    func stop() { server.stop() }
    func pss() throws -> Double { try server.pss() }
    func switches() throws -> UInt64 { try server.switches() }

    private static func log(_ root: String) -> String {
        (try? readFile(at: root + "/log", limit: 1 << 20)).map { String(decoding: $0, as: UTF8.self) } ?? ""
    }

    private static func write(_ apps: [(String, String)], _ config: String) throws {
        for (id, text) in apps { try replaceFile(at: "\(config)/apps/\(id).app", with: Array(text.utf8)) }
    }

    /// More apps, in a daemon that runs.
    func add(_ apps: [(String, String)]) throws {
        try Self.write(apps, config)
        _ = try call("Reload")
    }

    /// A manifest that runs the bench app.
    static func manifest(_ arguments: [String], app: String = "", lifecycle: String = "") -> String {
        "[App]\nExecStart=\(arguments.joined(separator: " "))\n\(app)\n[Lifecycle]\n\(lifecycle)\n"
    }

    // MARK: Calls

    func begin(_ member: String, _ arguments: [Variant]) throws -> BusConnection.Pending {
        try bus.callAsync(
            path: ControlNames.managerPath, interface: ControlNames.managerInterface, member: member, arguments,
            timeout: .seconds(60))
    }

    @discardableResult
    func finish(_ pending: BusConnection.Pending) throws -> JSONValue {
        try bus.wait(for: pending, until: nil)
        guard let result = pending.result else { throw BenchFailure("greenroomd did not answer") }
        return try result.get().first.map { JSONValue($0) } ?? .null
    }

    @discardableResult
    func call(_ member: String, _ arguments: [Variant] = []) throws -> JSONValue {
        try finish(try begin(member, arguments))
    }

    func beginLaunch(_ app: String, background: Bool) throws -> BusConnection.Pending {
        try begin("Launch", [.string(app), .dictionary(background ? [("background", .bool(true))] : [])])
    }

    /// Launches them all into the background, some at a time, and waits until they are suspended.
    func suspendAll(_ apps: [String]) throws {
        var pending: [BusConnection.Pending] = []
        for app in apps {
            pending.append(try beginLaunch(app, background: true))
            if pending.count >= 32 { try finish(pending.removeFirst()) }
        }
        for one in pending { try finish(one) }
        var left = Set(apps)
        while !left.isEmpty { left.remove(try next(state: "suspended")) }
    }

    /// How apps are held together, in the daemon's words.
    func containment() throws -> String { try call("Pressure")["containment"]?.stringValue ?? "?" }

    func version() throws -> String { try call("Version").stringValue ?? "?" }

    // MARK: News

    /// Waits until an app comes into this state.
    /// - Returns: which.
    @discardableResult
    func next(state: String, of app: String? = nil) throws -> String {
        let deadline = EventLoop.now() + .seconds(30)
        while let signal = try bus.nextSignal(until: deadline) {
            guard signal.member == ControlNames.newsSignal, let first = signal.arguments.first else { continue }
            let news = JSONValue(first)
            guard news["kind"]?.stringValue == "stateChanged", news["state"]?.stringValue == state,
                let name = news["app"]?.stringValue, app == nil || app == name
            else { continue }
            return name
        }
        throw BenchFailure("waited 30 s in vain: \(app ?? "an app") becomes \(state)")
    }

    /// Drops the news that have come.
    func forgetNews() throws {
        while try bus.nextSignal(until: EventLoop.now()) != nil {}
    }
}
