import Glibc
import Posix
import Systemd
import Testing

/// A served exhibit on a thread of its own, for clients that block.
final class ServedThread {
    let folder: TemporaryFolder
    private let stop: TestPipe
    private var thread = pthread_t()

    var path: String { folder.path + "/bus" }

    /// What the thread takes with it.
    private final class Start {
        let path: String
        let stop: SharedDescriptor
        let ready: SharedDescriptor

        init(path: String, stop: SharedDescriptor, ready: SharedDescriptor) {
            self.path = path
            self.stop = stop
            self.ready = ready
        }
    }

    init() throws {
        folder = try TemporaryFolder()
        stop = try TestPipe()
        let ready = try TestPipe()
        let start = Start(path: folder.path + "/bus", stop: stop.reading, ready: ready.writing)
        let result = pthread_create(
            &thread, nil,
            { argument in
                let start = Unmanaged<Start>.fromOpaque(argument!).takeRetainedValue()
                do {
                    try ServedThread.serve(start.path, stop: start.stop, ready: start.ready)
                } catch {
                    Issue.record(error)
                }
                return nil
            }, Unmanaged.passRetained(start).toOpaque())
        try #require(result == 0)
        _ = ready.read()
    }

    /// Serves until the other end of `stop` is closed. A call of `Later` is answered by the next `Echo`, and each `Echo`
    /// of a string is told of in a signal.
    private static func serve(_ path: String, stop: SharedDescriptor, ready: SharedDescriptor) throws {
        let loop = try EventLoop()
        let exhibit = Exhibit()
        let server = try BusServer(loop: loop, path: path, names: [Exhibit.name], objects: exhibit.objects())
        exhibit.onEcho = { [unowned server, unowned exhibit] value in
            let text = value.unwrapped.stringValue
            if text == "hang up" { for peer in server.peers { peer.close(reason: "asked to") } }
            for call in exhibit.waiting { call.reply() }
            exhibit.waiting = []
            guard let text else { return }
            try? server.emitSignal(
                path: Exhibit.path, interface: Exhibit.manager, member: "Changed", [.string(text), .uint32(1)])
        }
        let source = try loop.addDescriptor(stop, events: .readable) { _ in loop.exit(0) }
        _ = write(ready.raw, "x", 1)
        _ = try loop.run()
        source.cancel()
    }

    deinit {
        stop.closeWriting()
        pthread_join(thread, nil)
    }
}

@Suite("Blocking client", .serialized)
struct BusConnectionTests {
    private func echo(_ client: BusConnection, _ value: Variant) throws -> Variant? {
        try client.call(path: Exhibit.path, interface: Exhibit.manager, member: "Echo", [.variant(value)]).first?
            .unwrapped
    }

    @Test("calls are answered, properties read, errors thrown")
    func calls() throws {
        let server = try ServedThread()
        let client = try BusConnection(path: server.path)
        #expect(try echo(client, .int32(5)) == .int32(5))
        #expect(
            try client.property(path: Exhibit.path, interface: Exhibit.manager, "Version") == .string("1"))
        #expect(throws: BusError("org.example.Error.Sad", "It is sad.")) {
            _ = try client.call(path: Exhibit.path, interface: Exhibit.manager, member: "Fail")
        }
        for number in 0..<1000 { #expect(try echo(client, .int32(Int32(number))) == .int32(Int32(number))) }
    }

    @Test("one can look at the clock while waiting for an answer")
    func countdown() throws {
        let server = try ServedThread()
        let client = try BusConnection(path: server.path)
        let pending = try client.callAsync(path: Exhibit.path, interface: Exhibit.manager, member: "Later")
        #expect(try !client.wait(for: pending, until: EventLoop.now() + .milliseconds(5)))
        #expect(pending.result == nil)
        #expect(try echo(client, .bool(true)) == .bool(true))
        #expect(try client.wait(for: pending, until: EventLoop.now() + patience))
        #expect(pending.result == .success([]))
    }

    @Test("an answer that does not come ends with the time-out")
    func timeout() throws {
        let server = try ServedThread()
        let client = try BusConnection(path: server.path)
        let error = #expect(throws: BusError.self) {
            _ = try client.call(
                path: Exhibit.path, interface: Exhibit.manager, member: "Later", timeout: .milliseconds(5))
        }
        #expect(error?.name == "org.freedesktop.DBus.Error.NoReply")
    }

    @Test("signals come in order, those that came during a call too")
    func signals() throws {
        let server = try ServedThread()
        let client = try BusConnection(path: server.path)
        let other = try BusConnection(path: server.path)
        for text in ["a", "b"] { #expect(try echo(client, .string(text)) == .string(text)) }
        #expect(try echo(other, .string("c")) == .string("c"))
        var seen: [String?] = []
        while seen.count < 3 {
            let signal = try #require(try client.nextSignal(until: EventLoop.now() + patience))
            seen.append(signal.arguments.first?.stringValue)
        }
        #expect(seen == ["a", "b", "c"])
        #expect(try client.nextSignal(until: EventLoop.now()) == nil)
    }

    @Test("the end of the connection ends what waits")
    func hangUp() throws {
        let server = try ServedThread()
        let client = try BusConnection(path: server.path)
        let watcher = try BusConnection(path: server.path)
        let pending = try client.callAsync(path: Exhibit.path, interface: Exhibit.manager, member: "Later")
        #expect(throws: BusError.self) { _ = try echo(client, .string("hang up")) }
        #expect(throws: BusError.self) { while try watcher.nextSignal(until: nil) != nil {} }
        if let result = pending.result { #expect(throws: BusError.self) { _ = try result.get() } }
        #expect(throws: BusError.self) { _ = try echo(client, .bool(true)) }
    }

    @Test("without a server the error says who does not listen where")
    func nobody() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/bus"
        #expect(throws: BusError.noServer("no greenroomd listens at \(path) (No such file or directory)")) {
            _ = try BusConnection(path: path)
        }
        _ = try UnixSocket.listen(at: path, mode: 0o600)
        #expect(throws: BusError.noServer("no greenroomd listens at \(path) (Connection refused)")) {
            _ = try BusConnection(path: path)
        }
    }

    @Test("a server that closes at once is told apart from one that is not there")
    func refused() throws {
        let end = try socketPair().0
        let error = #expect(throws: BusError.self) {
            _ = try BusConnection(descriptor: end.descriptor.duplicate(), name: "the server")
        }
        #expect(error?.name == "org.freedesktop.DBus.Error.Disconnected")
    }
}
