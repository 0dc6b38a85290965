import Control
import Glibc
import Linux
import Posix
import Systemd

/// What a server of the part `waking` consists of.
struct ServerShape {
    var name: String
    /// `plain`, `threads` or `processes`, as Sources/scripts/bench.d/server.c reads it.
    var kind = "plain"
    /// How many threads or processes it has.
    var number = 1
    /// How many connections it has that no request comes through.
    var quiet = 0
}

/// The same servers three times: suspended by greenroomd, frozen by the bare loop (Sources/scripts/bench.d/watch.c), and left
/// running.
final class WakingServers {
    enum Owner: Int, CaseIterable { case greenroom, bare, running }
    /// How a request reaches a server.
    enum Way { case established, new }

    let count: Int
    let greenroom: Greenroom
    /// The owners that exist on this machine: without a cgroup there is no bare loop.
    let owners: [Owner]
    private let suspensions: Suspensions
    private let board: Board
    private let bare: BareLoop?
    private var running: [Server] = []
    private var established: [[ClientConnection]] = []
    private var quiet: [ClientConnection] = []

    /// - Parameter count: how many servers each owner has.
    init(_ bench: Bench, _ shape: ServerShape, count: Int) throws {
        self.count = count
        let board = try Board(slots: Owner.allCases.count * count)
        self.board = board
        func command(_ owner: Owner, _ index: Int) -> [String] {
            let slot = owner.rawValue * count + index
            return ["\(bench.folder)/server", shape.kind, board.path, "\(slot)", "\(shape.number)"]
        }
        let manifests = (0..<count).map { (Self.app($0), Self.manifest(command(.greenroom, $0))) }
        greenroom = try Greenroom(bench, "waking-\(shape.name)", apps: manifests)
        suspensions = Suspensions(greenroom)
        bare = try BareLoop(bench, shape.name, count, command(.bare, 0))
        owners = bare == nil ? [.greenroom, .running] : Owner.allCases
        for index in 0..<count {
            let words = command(.running, index)
            let log = "\(bench.folder)/running.log"
            running.append(try Server(words[0], Array(words.dropFirst()), log: log))
        }
        try greenroom.suspendAll(manifests.map(\.0))
        for owner in owners { try board.awaitPorts(owner.rawValue * count..<(owner.rawValue + 1) * count) }
        try connectAll(shape)
        try suspendAll()
    }

    /// The manifest of a worker that input wakes.
    static func manifest(_ command: [String]) -> String {
        Greenroom.manifest(
            command, app: "Type=listening\nRole=worker",
            lifecycle: "IdleSec=1s\nLaunchDeadlineSec=5min\n\n[Wake]\nTraffic=yes")
    }

    private static func app(_ index: Int) -> String { "server\(index)" }

    /// Opens the connections that stay open, and has one answer through each of those that are used.
    private func connectAll(_ shape: ServerShape) throws {
        for owner in Owner.allCases {
            var connections: [ClientConnection] = []
            for index in owners.contains(owner) ? 0..<count : 0..<0 {
                for _ in 0..<shape.quiet { quiet.append(try ClientConnection(port: port(owner, index))) }
                let connection = try ClientConnection(port: port(owner, index))
                if owner == .greenroom { suspensions.expect(Self.app(index)) }
                try connection.exchange()
                connections.append(connection)
                if index % 16 == 0 { try suspensions.readArrived(pause: .milliseconds(2)) }
            }
            established.append(connections)
        }
    }

    func stop() {
        established = []
        quiet = []
        greenroom.stop()
        bare?.stop()
        for server in running { server.stop() }
    }

    private func port(_ owner: Owner, _ index: Int) -> UInt16 { board.port(owner.rawValue * count + index) }

    // MARK: Suspending

    /// Waits until greenroomd has suspended its servers, and freezes those of the bare loop.
    func suspendAll() throws {
        // It takes more than 1s, in which the servers of the bare loop handle the ends of connections. The other order would
        // leave the daemon's signals unread for too long.
        try suspensions.awaitAll()
        try bare?.freezeAll()
    }

    // MARK: Answers

    /// Measures the answer of a server after 2 ms of idle time, so that the processors sleep.
    func measure(_ owner: Owner, _ index: Int, _ way: Way, _ samples: inout Samples) throws {
        try suspensions.readArrived(pause: .microseconds(20))
        rest(microseconds: 2000)
        let start = clockNow()
        let connection =
            way == .established
            ? established[owner.rawValue][index] : try ClientConnection(port: port(owner, index))
        try connection.exchange()
        samples.add(from: start, to: clockNow())
        // A connection that was opened for this answer is closed after the measurement.
        withExtendedLifetime(connection) {}
        if owner == .greenroom { suspensions.expect(Self.app(index)) }
    }

    /// Sends a request to all servers of an owner through new connections.
    ///
    /// - Returns: the time until the last answer in seconds.
    func wakeAll(_ owner: Owner) throws -> Double {
        let start = clockNow()
        var connections: [ClientConnection] = []
        for index in 0..<count {
            let connection = try ClientConnection(port: port(owner, index))
            try connection.send()
            connections.append(connection)
            // The daemon ends the connection of a client that does not read its signals.
            if owner == .greenroom, index % 16 == 0 { try suspensions.readArrived(pause: .microseconds(20)) }
        }
        for (index, connection) in connections.enumerated() {
            if owner == .greenroom {
                try suspensions.read(untilReadable: connection)
                if index % 16 == 0 { try suspensions.readArrived(pause: .microseconds(20)) }
            }
            try connection.receive()
        }
        let end = clockNow()
        if owner == .greenroom {
            // The daemon reports the wakes after the answers.
            try suspensions.readArrived(pause: .milliseconds(100))
            for index in 0..<count { suspensions.expect(Self.app(index)) }
        }
        return Double(end - start) / 1e9
    }
}

/// Which apps of a daemon are awake, as its signals report it.
final class Suspensions {
    private let greenroom: Greenroom
    private var awake: Set<String> = []

    init(_ greenroom: Greenroom) { self.greenroom = greenroom }

    /// The app was woken, so a signal will report its suspension.
    func expect(_ app: String) { awake.insert(app) }

    private func record(_ change: (app: String, state: String)) {
        if change.state == "suspended" { awake.remove(change.app) } else { awake.insert(change.app) }
    }

    /// Reads signals until none has arrived for this long, and all that have arrived if this program did not run for a while.
    func readArrived(pause: Duration) throws {
        try greenroom.bus.readArrived()
        while let change = try greenroom.nextChange(until: EventLoop.now() + pause) { record(change) }
    }

    /// Reads signals until a server has answered.
    func read(untilReadable connection: ClientConnection) throws {
        let limit = EventLoop.now() + .seconds(20)
        while EventLoop.now() < limit {
            if try greenroom.bus.waitForInput(or: [(connection.raw, Int16(POLLIN))], until: limit)[0] != 0 { return }
            try readArrived(pause: .zero)
        }
        throw BenchFailure("a server did not answer within 20s")
    }

    /// Reads the signals that arrive until then, and all that have arrived before.
    func read(until deadline: Duration) throws {
        try greenroom.bus.readArrived()
        while let change = try greenroom.nextChange(until: deadline) { record(change) }
    }

    /// Waits until all apps have been suspended for more than 1 s: one that is woken sooner, several times in turn, is left
    /// awake (L50).
    func awaitAll() throws {
        let limit = EventLoop.now() + .seconds(120)
        while true {
            while !awake.isEmpty {
                guard let change = try greenroom.nextChange(until: limit) else {
                    throw BenchFailure("\(awake.count) apps are not suspended after 120 s: \(awake.min() ?? "")")
                }
                record(change)
            }
            let rested = EventLoop.now() + .milliseconds(1200)
            try read(until: rested)
            if awake.isEmpty { return }
        }
    }
}

extension Greenroom {
    /// The next change of an app's state, or `nil` if there is none until then.
    func nextChange(until deadline: Duration) throws -> (app: String, state: String)? {
        while let signal = try bus.nextSignal(until: deadline) {
            guard signal.member == ControlNames.lifecycleEventSignal, let first = signal.arguments.first else {
                continue
            }
            let event = try LifecycleEvent(variant: first)
            guard event.kind == LifecycleEvent.Kind.stateChanged.rawValue, let app = event.app, let state = event.state
            else { continue }
            return (app, state)
        }
        return nil
    }
}

/// Servers that a small C program freezes and thaws: each of them in a cgroup, without supervision, records or decisions.
private final class BareLoop {
    private let server: Server
    private let channel: SharedDescriptor
    private let root: String

    /// - Parameter command: of the server with the first slot.
    /// - Returns: `nil` if no cgroup can be created on this machine.
    init?(_ bench: Bench, _ name: String, _ count: Int, _ command: [String]) throws {
        let mode = ContainmentMode.detect(name: "greenroom-bench-waking-\(getpid())")
        guard case .cgroup(let root) = mode else { return nil }
        bench.record(groupsOf: root.path)
        self.root = root.path
        var ends: [Int32] = [-1, -1]
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue)
        guard socketpair(AF_UNIX, type, 0, &ends) == 0 else { throw BenchFailure("socketpair: error \(errno)") }
        channel = SharedDescriptor(Descriptor(adopting: ends[0]))
        let far = SharedDescriptor(Descriptor(adopting: ends[1]))
        server = try Server(
            "\(bench.folder)/watch", ["\(root.path)/\(name)", "\(count)"] + command,
            log: "\(bench.folder)/watch.log", channel: far)
    }

    /// Freezes all servers that are not frozen, and waits until their sockets are watched.
    func freezeAll() throws {
        var byte: UInt8 = 1
        guard write(channel.raw, &byte, 1) == 1, read(channel.raw, &byte, 1) == 1 else {
            throw BenchFailure("the bare loop has ended; error \(errno)")
        }
    }

    func stop() {
        // The end of its input: it kills its servers and removes their groups.
        shutdown(channel.raw, Int32(SHUT_RDWR))
        var polled = pollfd(fd: server.process.descriptor.raw, events: Int16(POLLIN), revents: 0)
        poll(&polled, 1, 20_000)
        server.stop()
        rmdir(root)
    }
}
