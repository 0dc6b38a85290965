import Glibc
import LifecycleCore
import Linux
import LoopPolicy
import Posix
import Synchronization
import Systemd
import TestKit
import Testing

@testable import Daemon

/// A thread that floods the loop until it is dropped.
private final class Flood {
    private final class Work: Sendable {
        let isEnded = Atomic(false)
        let body: @Sendable (borrowing Atomic<Bool>) -> Void
        init(_ body: @escaping @Sendable (borrowing Atomic<Bool>) -> Void) { self.body = body }
    }

    private let work: Work
    private var thread = pthread_t()

    init(_ body: @escaping @Sendable (borrowing Atomic<Bool>) -> Void) throws {
        work = Work(body)
        let result = pthread_create(
            &thread, nil,
            { argument in
                let work = Unmanaged<Work>.fromOpaque(argument!).takeRetainedValue()
                work.body(work.isEnded)
                return nil
            }, Unmanaged.passRetained(work).toOpaque())
        try #require(result == 0)
    }

    func end() {
        work.isEnded.store(true, ordering: .relaxed)
        pthread_join(thread, nil)
    }
}

/// Counts the datagrams of a notify socket.
private final class Receiver: NotifySocketDelegate {
    var count = 0
    func reasonToIgnore(sender: Int32) -> String? {
        count += 1
        return nil
    }
    func received(_ messages: [NotifyMessage], _ descriptors: inout ReceivedDescriptors, from sender: Int32) {}
    func warned(_ sentence: String) {}
    func logWarning(_ sentence: String) {}
}

/// A loop with one source of each kind that the daemon has, and sources that are flooded.
private final class Stage {
    let root = makeTemporaryFolder("greenroom-flood")
    let loop: EventLoop
    let server: BusServer
    let logbook: Logbook
    let quiet = Receiver()
    let flooded = Receiver()
    private var sockets: [NotifySocket] = []
    private let client: BusPeer

    /// Each level uses its budget within some 10 turns by this stage's clock; an answer may take two rounds.
    static let turnsOfRound = 160

    static let path = "/org/example"
    static let interface = "org.example.Flood1"

    init() throws {
        loop = try EventLoop()
        logbook = Logbook(path: root + "/logbook", journal: .quiet)
        let objects = BusObjects()
        objects.add(
            at: Self.path,
            [
                BusInterface(
                    Self.interface,
                    methods: [
                        BusMethod("List", out: "as", access: .anyone) { [unowned loop] call in
                            let reply = call.beginArrayReply()
                            loop.controlWork.add(each: 0..<20) {
                                reply.append(.string("\($0)"))
                            } completion: {
                                reply.send()
                            }
                        }
                    ])
            ])
        server = try BusServer(loop: loop, path: root + "/bus", names: [], objects: objects)
        client = try BusPeer(loop: loop, descriptor: try UnixSocket.connect(to: root + "/bus"), role: .client)
        let notifySockets = NotifySockets(loop: loop, logbook: logbook, folder: root)
        for (number, receiver) in [quiet, flooded].enumerated() {
            let socket = try NotifySocket(RunID(UInt64(number)), in: notifySockets, owner: nil)
            socket.delegate = receiver
            sockets.append(socket)
        }
        while !client.isReady { try loop.runOnce(timeout: .seconds(30)) }
        // By this clock each turn takes some ms, so that a level uses its budget within a few turns.
        var time = Duration.zero
        loop.clock = {
            time += .milliseconds(1)
            return time
        }
    }

    deinit { removeTree(root) }

    /// How the daemon waits for something. Each returns whether it has come.
    enum Source: CaseIterable { case deadline, message, end, call, work, later }

    func begin(_ source: Source) throws -> () -> Bool {
        switch source {
        case .deadline:
            var isReached = false
            let timer = try loop.makeTimer(level: .urgent) { _ in isReached = true }
            timer.arm(at: loop.now())
            return { withExtendedLifetime(timer) { isReached } }
        case .message:
            let before = quiet.count
            let socket = try connectedDatagramSocket(root + "/0")
            try #require(send(socket.raw, "READY=1", 7, Int32(MSG_NOSIGNAL)) == 7)
            return { [quiet] in quiet.count > before }
        case .end:
            var isReached = false
            let process = try startSleep()
            let source = try loop.addDescriptor(process.descriptor, events: .readable) { _ in isReached = true }
            try process.signal(SIGKILL)
            waitForReadable([process.descriptor])
            return {
                if isReached {
                    source.cancel()
                    _ = try? process.reap()
                }
                return isReached
            }
        case .call:
            var isReached = false
            try client.call(path: Self.path, interface: Self.interface, member: "List", timeout: nil) { _ in
                isReached = true
            }
            return { isReached }
        case .work:
            var isReached = false
            loop.work.add {
                isReached = true
                return false
            }
            return { isReached }
        case .later:
            var isReached = false
            loop.callLater { isReached = true }
            return { isReached }
        }
    }

    /// Expects each source to be reached within a number of turns of the loop.
    func expectReached(within limit: Int, during flood: String) throws {
        for source in Source.allCases {
            let hasCome = try begin(source)
            var turns = 0
            while !hasCome(), turns <= limit {
                try loop.runOnce(timeout: .seconds(30))
                turns += 1
            }
            #expect(turns <= limit, "\(source) is not reached within \(limit) turns during \(flood)")
        }
    }
}

private func connectedDatagramSocket(_ path: String) throws -> SharedDescriptor {
    let made = socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    try #require(made >= 0)
    let descriptor = SharedDescriptor(Descriptor(adopting: made))
    var address = sockaddr_un()
    address.sun_family = UInt16(AF_UNIX)
    withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: Array(path.utf8)) }
    let result = withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            connect(made, $0, socklen_t(MemoryLayout<sockaddr_un>.size))
        }
    }
    try #require(result == 0)
    return descriptor
}

/// Every source of the loop is reached within a bounded number of turns, whatever floods the others. It is counted in turns, not
/// in time: a turn serves one source, and does about 1 ms of work. The output of apps is no source: it goes to the journal, or
/// to the standard error of the daemon, without the daemon.
@Suite("Floods", .serialized)
struct FloodTurnTests {
    @Test("calls without a pause, 16 of them always in flight, delay no source by more than the turns of their answers")
    func calls() throws {
        let stage = try Stage()
        let path = stage.root + "/bus"
        let flood = try Flood { isEnded in
            guard let bus = try? BusConnection(path: path) else { return }
            var pending: [BusConnection.Pending] = []
            while !isEnded.load(ordering: .relaxed) {
                while pending.count < 16 {
                    guard
                        let call = try? bus.callAsync(path: Stage.path, interface: Stage.interface, member: "List")
                    else { return }
                    pending.append(call)
                }
                guard let oldest = pending.first,
                    let isAnswered = try? bus.wait(for: oldest, until: EventLoop.now() + .milliseconds(100))
                else { return }
                if isAnswered { pending.removeFirst() }
            }
        }
        while stage.server.peers.count < 2 || !stage.server.peers.allSatisfy(\.isReady) {
            try stage.loop.runOnce(timeout: .seconds(30))
        }
        for _ in 0..<200 { try stage.loop.runOnce(timeout: .seconds(30)) }
        // An answer has 22 pieces, and each takes a turn by this clock.
        try stage.expectReached(within: 17 * 22 * 2 + Stage.turnsOfRound, during: "calls")
        #expect(stage.server.peers.count == 2)
        flood.end()
    }

    @Test(
        "notify messages without a pause delay no source by more than the turns that read the messages of two seconds")
    func messages() throws {
        let stage = try Stage()
        let socket = try connectedDatagramSocket(stage.root + "/1")
        let flood = try Flood { isEnded in
            while !isEnded.load(ordering: .relaxed) { _ = send(socket.raw, "STATUS=x", 8, Int32(MSG_DONTWAIT)) }
        }
        while stage.flooded.count < 100 { try stage.loop.runOnce(timeout: .seconds(30)) }
        // A turn may find a single message. Then the socket is not read for the rest of the second.
        try stage.expectReached(within: 2 * NotifySocket.messagesPerSecond + 60, during: "notify messages")
        flood.end()
    }

    @Test("the ends of 50 processes at once delay no source by more than a turn for each")
    func ends() throws {
        let stage = try Stage()
        for source in Stage.Source.allCases {
            let processes = try (0..<50).map { _ in try startSleep() }
            var sources: [Int32: EventSource] = [:]
            for process in processes {
                sources[process.pid] = try stage.loop.addDescriptor(process.descriptor, events: .readable) { _ in
                    sources[process.pid] = nil
                    _ = try? process.reap()
                }
            }
            for process in processes { try process.signal(SIGKILL) }
            for process in processes { waitForReadable([process.descriptor]) }
            let hasCome = try stage.begin(source)
            var turns = 0
            while !hasCome() {
                try #require(turns <= 50 + Stage.turnsOfRound, "\(source) is not reached")
                try stage.loop.runOnce(timeout: .seconds(30))
                turns += 1
            }
            while !sources.isEmpty { try stage.loop.runOnce(timeout: .seconds(30)) }
        }
    }

    @Test(
        "files that are created and removed without a pause in a watched folder delay no source by more than 60 turns")
    func files() throws {
        let stage = try Stage()
        let folder = stage.root + "/watched"
        mkdir(folder, 0o700)
        let watch = try FolderWatch(folder)
        let descriptor = watch.descriptor
        var changes = 0
        // As FolderGuard reads it.
        let source = try stage.loop.addDescriptor(descriptor, events: .readable) { _ in
            FolderWatch.clear(descriptor)
            changes += 1
        }
        let floods = try (0..<4).map { number in
            try Flood { isEnded in
                let path = folder + "/\(number)"
                while !isEnded.load(ordering: .relaxed) {
                    close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o600))
                    unlink(path)
                }
            }
        }
        while changes < 10 { try stage.loop.runOnce(timeout: .seconds(30)) }
        try stage.expectReached(within: 60, during: "changes of files")
        for flood in floods { flood.end() }
        source.cancel()
    }
}
