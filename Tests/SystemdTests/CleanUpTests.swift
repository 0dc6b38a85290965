import Glibc
import Posix
import Systemd
import TestKit
import Testing

/// In a process of its own, where no other test opens descriptors.
@Suite("Cleaning up")
struct CleanUpTests {
    @Test("after many connections every descriptor is closed and every object is released")
    func everything() throws {
        try inOwnProcess {
            // libsystemd opens some descriptors once and keeps them.
            try CleanUpTests.useEverything()
            let before = openDescriptors()
            for _ in 0..<5 { try CleanUpTests.useEverything() }
            // The closers of the server's peers work on threads of their own.
            while openDescriptors().contains(where: { before[$0.key] != $0.value }) { usleep(1000) }
        }
    }

    /// A server with callers, connections without a handshake, a pending call and a peer that disconnects meanwhile.
    static func useEverything() throws {
        weak var exhibit: Exhibit?
        weak var loop: EventLoop?
        weak var peer: BusPeer?
        weak var call: MethodCall?
        do {
            var limits = BusServer.Limits()
            limits.peers = 12
            let stage = try Stage(limits: limits)
            exhibit = stage.exhibit
            loop = stage.loop
            var clients = try (0..<10).map { _ in try stage.client() }
            let idle = try (0..<4).map { _ in try stage.bareClient() }
            for client in clients { _ = try stage.ask(client, "Echo", [.variant(.bool(true))]) }
            #expect(try stage.loop.serve { stage.warnings.count == 2 })
            withExtendedLifetime(idle) {}
            peer = stage.server.peers.first
            try clients[0].call(path: Exhibit.path, interface: Exhibit.manager, member: "Later", timeout: nil) { _ in }
            #expect(try stage.loop.serve { !stage.exhibit.waiting.isEmpty })
            call = stage.exhibit.waiting.first
            clients.removeFirst()
            #expect(try stage.loop.serve { stage.exhibit.goneWhileWaiting == 1 })
            #expect(peer != nil && call != nil)
        }
        #expect(exhibit == nil)
        #expect(loop == nil)
        #expect(peer == nil)
        #expect(call == nil)
    }

    @Test("a failed start leaves no descriptor behind")
    func failures() throws {
        try inOwnProcess {
            let loop = try EventLoop()
            let folder = try TemporaryFolder()
            let taken = SharedDescriptor(try UnixSocket.listen(at: folder.path + "/taken", mode: 0o600))
            _ = try? BusConnection(path: folder.path + "/none")
            let before = openDescriptors()
            for path in ["/taken", "/none/bus", "/" + String(repeating: "x", count: 120)] {
                #expect(throws: SystemError.self) {
                    _ = try BusServer(loop: loop, path: folder.path + path, names: [], objects: BusObjects())
                }
                #expect(throws: BusError.self) { _ = try BusConnection(path: folder.path + "/none" + path) }
            }
            // A descriptor that is not a socket is closed too.
            var pipe: TestPipe? = try TestPipe()
            #expect(throws: SystemError.self) {
                _ = try BusPeer(loop: loop, descriptor: #require(pipe).reading.descriptor.duplicate(), role: .client)
            }
            let wrong = BusObjects()
            wrong.add(
                at: "/x",
                [BusInterface("org.example.X", methods: [BusMethod("M", in: "s", arguments: ["no good"]) { _ in }])])
            var ends: (SharedDescriptor, SharedDescriptor)? = try socketPair()
            #expect(throws: SystemError.self) {
                let server = try #require(ends).0.descriptor.duplicate()
                _ = try BusPeer(loop: loop, descriptor: server, role: .server(names: []), objects: wrong)
            }
            ends = nil
            pipe = nil
            // The closer of a server's peer works on a thread of its own.
            while openDescriptors() != before { usleep(1000) }
            withExtendedLifetime(taken) {}
        }
    }

    @Test(
        "a descriptor that libsystemd closes is not watched any more, also while another process has a duplicate of it")
    func copied() throws {
        // Otherwise libsystemd would abort the process.
        try inOwnProcess {
            let loop = try EventLoop()
            let folder = try TemporaryFolder()
            // The socket does not exist yet: libsystemd waits for it with a descriptor that it then closes.
            let peer = try BusPeer(loop: loop, busAddress: "unix:path=\(folder.path)/bus")
            for _ in 0..<5 { try loop.runOnce(timeout: .milliseconds(1)) }
            // As in a process that is about to exec.
            let copies = (3..<64).map { fcntl($0, F_DUPFD_CLOEXEC, 100) }
            let listener = SharedDescriptor(try UnixSocket.listen(at: folder.path + "/bus", mode: 0o600))
            for number in 0..<20 {
                close(open(folder.path + "/\(number)", O_CREAT | O_WRONLY | O_CLOEXEC, 0o600))
                try loop.runOnce(timeout: .milliseconds(1))
            }
            #expect(accept(listener.raw, nil, nil) >= 0)
            peer.close()
            for descriptor in copies where descriptor >= 0 { close(descriptor) }
        }
    }
}
