import Glibc
import Posix
import Systemd
import TestKit
import Testing

/// A served exhibit on a thread of its own, for clients that block.
final class ServedThread {
    let folder: TemporaryFolder
    private let stop: TestPipe
    private var thread = pthread_t()

    var path: String { folder.path + "/bus" }

    /// The values that are passed to the thread.
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
    /// of a string sends a signal.
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

/// The exhibit on a message bus, on a thread of its own.
private final class BusThread {
    private let stop: TestPipe
    private var thread = pthread_t()

    private final class Start {
        let address: String
        let stop: SharedDescriptor
        let ready: SharedDescriptor

        init(_ address: String, _ stop: SharedDescriptor, _ ready: SharedDescriptor) {
            (self.address, self.stop, self.ready) = (address, stop, ready)
        }
    }

    init(_ address: String) throws {
        stop = try TestPipe()
        let ready = try TestPipe()
        let start = Start(address, stop.reading, ready.writing)
        let result = pthread_create(
            &thread, nil,
            { argument in
                let start = Unmanaged<Start>.fromOpaque(argument!).takeRetainedValue()
                do { try BusThread.serve(start) } catch { Issue.record(error) }
                return nil
            }, Unmanaged.passRetained(start).toOpaque())
        try #require(result == 0)
        _ = ready.read()
    }

    /// Serves until the other end of `stop` is closed. Each `Echo` of a string sends a signal.
    private static func serve(_ start: Start) throws {
        let loop = try EventLoop()
        let exhibit = Exhibit()
        let bus = try MessageBus(loop: loop, address: start.address, name: Exhibit.name, objects: exhibit.objects())
        exhibit.onEcho = { [unowned bus] value in
            guard let text = value.unwrapped.stringValue else { return }
            try? bus.peer?.emitSignal(
                path: Exhibit.path, interface: Exhibit.manager, member: "Changed", [.string(text), .uint32(1)])
        }
        bus.onName = { if $0 == .owned { _ = write(start.ready.raw, "x", 1) } }
        bus.connect()
        let source = try loop.addDescriptor(start.stop, events: .readable) { _ in loop.exit(0) }
        _ = try loop.run()
        source.cancel()
    }

    deinit {
        stop.closeWriting()
        pthread_join(thread, nil)
    }
}

@Suite("Blocking client on a message bus", .serialized, .enabled(if: PrivateBus.isPossible, PrivateBus.requirement))
struct BusConnectionOnBusTests {
    private func echo(_ client: BusConnection, _ text: String) throws -> [Variant] {
        try client.call(
            path: Exhibit.path, interface: Exhibit.manager, member: "Echo", [.variant(.string(text))],
            timeout: testTimeout)
    }

    @Test("calls are answered and signals arrive, and the connection ends when the service does")
    func service() throws {
        let bus = try PrivateBus()
        var thread: BusThread? = try BusThread(bus.address)
        let client = try BusConnection(busAddress: bus.address, destination: Exhibit.name)
        #expect(try echo(client, "one") == [.variant(.string("one"))])
        let signal = try client.nextSignal(until: EventLoop.now() + testTimeout)
        #expect(signal?.member == "Changed" && signal?.arguments.first == .string("one"))
        #expect(client.isOpen)
        withExtendedLifetime(thread) {}
        thread = nil
        let error = #expect(throws: BusError.self) {
            while try client.nextSignal(until: EventLoop.now() + testTimeout) != nil {}
        }
        #expect(error?.name == "org.freedesktop.DBus.Error.Disconnected")
        #expect(!client.isOpen)
    }

    @Test("a signal of another program is not accepted as the service's")
    func forged() throws {
        let bus = try PrivateBus()
        let thread = try BusThread(bus.address)
        let client = try BusConnection(busAddress: bus.address, destination: Exhibit.name)
        let other = try BusStage(bus, name: "org.example.Other")
        try other.settle()
        try other.messageBus.peer?.emitSignal(
            path: Exhibit.path, interface: Exhibit.manager, member: "Changed", [.string("forged"), .uint32(1)])
        _ = try other.ask(other.client(), "Who")
        _ = try echo(client, "own")
        #expect(try client.nextSignal(until: EventLoop.now() + testTimeout)?.arguments.first == .string("own"))
        withExtendedLifetime(thread) {}
    }

    @Test("a name without an owner is reported as no server, and no service is started")
    func noOwner() throws {
        let bus = try PrivateBus()
        // The bus daemon listens by now.
        let other = try BusStage(bus)
        try other.settle()
        let error = #expect(throws: BusError.self) {
            _ = try BusConnection(busAddress: bus.address, destination: "org.example.Missing")
        }
        #expect(error == .noServer("no program owns org.example.Missing on the message bus"))
    }
}

@Suite("Blocking client", .serialized)
struct BusConnectionTests {
    private func echo(_ client: BusConnection, _ value: Variant) throws -> Variant? {
        try client.call(path: Exhibit.path, interface: Exhibit.manager, member: "Echo", [.variant(value)]).first?
            .unwrapped
    }

    @Test("calls are answered, properties are read, and errors are thrown")
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

    @Test("a wait for an answer returns at its deadline, and the call can be waited for again")
    func countdown() throws {
        let server = try ServedThread()
        let client = try BusConnection(path: server.path)
        let pending = try client.callAsync(path: Exhibit.path, interface: Exhibit.manager, member: "Later")
        #expect(try !client.wait(for: pending, until: EventLoop.now() + .milliseconds(5)))
        #expect(pending.result == nil)
        #expect(try echo(client, .bool(true)) == .bool(true))
        #expect(try client.wait(for: pending, until: EventLoop.now() + testTimeout))
        #expect(pending.result == .success([]))
    }

    @Test("a call without an answer ends with its timeout")
    func timeout() throws {
        let server = try ServedThread()
        let client = try BusConnection(path: server.path)
        let error = #expect(throws: BusError.self) {
            _ = try client.call(
                path: Exhibit.path, interface: Exhibit.manager, member: "Later", timeout: .milliseconds(5))
        }
        #expect(error?.name == "org.freedesktop.DBus.Error.NoReply")
    }

    @Test("signals are read in order, including those that arrive during a call")
    func signals() throws {
        let server = try ServedThread()
        let client = try BusConnection(path: server.path)
        let other = try BusConnection(path: server.path)
        for text in ["a", "b"] { #expect(try echo(client, .string(text)) == .string(text)) }
        #expect(try echo(other, .string("c")) == .string("c"))
        var seen: [String?] = []
        while seen.count < 3 {
            let signal = try #require(try client.nextSignal(until: EventLoop.now() + testTimeout))
            seen.append(signal.arguments.first?.stringValue)
        }
        #expect(seen == ["a", "b", "c"])
        #expect(try client.nextSignal(until: EventLoop.now()) == nil)
    }

    @Test("the end of the connection ends pending calls and waits")
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

    @Test("without a server the error names the server and the socket")
    func noServer() throws {
        // A process that another test forks meanwhile would keep the socket that listens.
        try inOwnProcess {
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
    }

    @Test("a server that closes the connection at once is reported as disconnected")
    func refused() throws {
        let end = try socketPair().0
        let error = #expect(throws: BusError.self) {
            _ = try BusConnection(descriptor: end.descriptor.duplicate(), name: "the server")
        }
        #expect(error?.name == "org.freedesktop.DBus.Error.Disconnected")
    }
}
