import Glibc
import Linux
import Posix
import Synchronization

/// A service manager with a file descriptor store (sd_pid_notify_with_fds(3)): keeps descriptors by name after the
/// daemon has ended, and passes them to the next one. It reads on a thread: the daemon blocks if its messages are not
/// read (unix(7), `net.unix.max_dgram_qlen`).
final class FakeServiceManager: Sendable {
    /// A descriptor in the store.
    private struct Kept {
        var name: String
        var descriptor: SharedDescriptor
        var raw: Int32 { descriptor.raw }
        /// Without `FDPOLL=0`, the descriptor is closed on a hang-up, which a pidfd reports when its process ends.
        var isPolled: Bool
    }

    let path: String
    private let kept = Mutex<[Kept]>([])
    private let said = Mutex<[String]>([])
    /// A byte for each READY=1, and one for each `sync`.
    private let ready: EventPipe
    private let synced: EventPipe

    private struct EventPipe: Sendable {
        let reading: SharedDescriptor
        let writing: SharedDescriptor

        init() throws {
            let pipe = try Pipe()
            try pipe.read.setNonBlocking(false)
            reading = SharedDescriptor(try pipe.read.duplicate())
            writing = SharedDescriptor(pipe.closingRead())
        }
        func signal() { _ = write(writing.raw, "x", 1) }
        func take() {
            var byte: UInt8 = 0
            _ = read(reading.raw, &byte, 1)
        }
    }

    init(in folder: String) throws {
        path = folder + "/manager"
        (ready, synced) = (try EventPipe(), try EventPipe())
        let socket = try DatagramSocket(at: path)
        let start = Start(self, consume socket)
        var thread = pthread_t()
        let result = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                let start = Unmanaged<Start>.fromOpaque(argument).takeRetainedValue()
                while let manager = start.manager, manager.serve(start.socket) {}
                return nil
            }, Unmanaged.passRetained(start).toOpaque())
        guard result == 0 else { throw TestFailure("pthread_create: \(result)") }
        pthread_detach(thread)
    }

    /// The values that are passed to the thread.
    private final class Start {
        private(set) weak var manager: FakeServiceManager?
        let socket: DatagramSocket

        init(_ manager: FakeServiceManager, _ socket: consuming DatagramSocket) {
            self.manager = manager
            self.socket = socket
        }
    }

    // MARK: On the thread

    /// - Returns: whether to continue.
    private func serve(_ socket: borrowing DatagramSocket) -> Bool {
        var polled = pollfd(fd: socket.descriptor.raw, events: Int16(POLLIN), revents: 0)
        // The thread checks repeatedly whether the manager still exists.
        poll(&polled, 1, 50)
        while let datagram = try? socket.receive() {
            var datagram = datagram
            take(String(decoding: datagram.bytes, as: UTF8.self), &datagram.descriptors)
        }
        return true
    }

    private func take(_ text: String, _ descriptors: inout ReceivedDescriptors) {
        let lines = text.split(separator: "\n").map(String.init)
        said.withLock { $0.append(text) }
        let name = lines.first { $0.hasPrefix("FDNAME=") }.map { String($0.dropFirst(7)) } ?? "stored"
        if lines.contains("FDSTORE=1") {
            while let descriptor = descriptors.takeFirst() {
                let shared = SharedDescriptor(descriptor)
                let isPolled = !lines.contains("FDPOLL=0")
                kept.withLock { all in
                    // systemd ignores a descriptor that it has stored already.
                    guard !all.contains(where: { isSame($0.raw, shared.raw) }) else { return }
                    all.append(Kept(name: name, descriptor: shared, isPolled: isPolled))
                }
            }
        }
        if lines.contains("FDSTOREREMOVE=1") {
            kept.withLock { all in all.removeAll { $0.name == name } }
        }
        if lines.contains("READY=1") { ready.signal() }
        if lines.contains("X_SYNC=1") { synced.signal() }
    }

    /// Whether two descriptors refer to the same socket, process or memfd.
    private func isSame(_ one: Int32, _ other: Int32) -> Bool {
        var (a, b) = (Glibc.stat(), Glibc.stat())
        return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino
    }

    // MARK: Calls of tests

    /// Waits until all messages that were sent are read.
    func sync() throws {
        try sendDatagram("X_SYNC=1", to: path, from: nil)
        synced.take()
    }

    /// The names in the store, sorted.
    func allNames() throws -> [String] {
        try sync()
        return kept.withLock { $0.map(\.name).sorted() }
    }

    /// The names of the descriptors that are stored for apps.
    func names() throws -> [String] { try allNames().filter { $0 != "control" } }

    /// Readable when the daemon has sent READY=1.
    var readyDescriptor: SharedDescriptor { ready.reading }
    func takeReady() { ready.take() }

    /// The descriptors for the next daemon: those without a hang-up, in the order in which they were stored.
    func passedDescriptors() throws -> [PassedDescriptor] {
        try sync()
        return kept.withLock { all in
            let gone = all.filter { one in
                var polled = pollfd(fd: one.raw, events: 0, revents: 0)
                return one.isPolled && poll(&polled, 1, 0) > 0
            }
            all.removeAll { one in gone.contains { $0.raw == one.raw } }
            return all.map { PassedDescriptor($0.descriptor, name: $0.name) }
        }
    }

    /// Loses a descriptor, as if `FileDescriptorStoreMax=` were too small.
    func lose(_ name: String) throws {
        try sync()
        kept.withLock { all in all.removeAll { $0.name == name } }
    }
}
