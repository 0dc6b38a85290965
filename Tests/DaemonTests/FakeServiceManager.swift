import Glibc
import Linux
import Posix
import Synchronization

/// systemd, as far as a service's descriptors are concerned (sd_pid_notify_with_fds(3)): keeps what is stored with it,
/// by name, beyond the life of the daemon, and hands it to the next. On a thread of its own, as systemd is a process of
/// its own: a daemon waits for whoever does not read (unix(7), `net.unix.max_dgram_qlen`).
final class FakeServiceManager: Sendable {
    /// One descriptor in the store.
    private struct Kept {
        var name: String
        var descriptor: SharedDescriptor
        var raw: Int32 { descriptor.raw }
        /// `FDPOLL=0`: else it is closed when it hangs up, as a pidfd does.
        var isPolled: Bool
    }

    let path: String
    private let kept = Mutex<[Kept]>([])
    private let said = Mutex<[String]>([])
    /// A byte for each READY=1, and one for each `sync`.
    private let ready: Bell
    private let synced: Bell

    private struct Bell: Sendable {
        let reading: SharedDescriptor
        let writing: SharedDescriptor

        init() throws {
            let pipe = try Pipe()
            try pipe.read.setNonBlocking(false)
            reading = SharedDescriptor(try pipe.read.duplicate())
            writing = SharedDescriptor(pipe.closingRead())
        }
        func ring() { _ = write(writing.raw, "x", 1) }
        func take() {
            var byte: UInt8 = 0
            _ = read(reading.raw, &byte, 1)
        }
    }

    init(in folder: String) throws {
        path = folder + "/manager"
        (ready, synced) = (try Bell(), try Bell())
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

    /// What the thread takes with it.
    private final class Start {
        private(set) weak var manager: FakeServiceManager?
        let socket: DatagramSocket

        init(_ manager: FakeServiceManager, _ socket: consuming DatagramSocket) {
            self.manager = manager
            self.socket = socket
        }
    }

    // MARK: On the thread

    /// - Returns: whether to go on.
    private func serve(_ socket: borrowing DatagramSocket) -> Bool {
        var polled = pollfd(fd: socket.descriptor.raw, events: Int16(POLLIN), revents: 0)
        // Nobody tells the thread that the manager is dropped.
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
                    // systemd drops what it has already.
                    guard !all.contains(where: { isSame($0.raw, shared.raw) }) else { return }
                    all.append(Kept(name: name, descriptor: shared, isPolled: isPolled))
                }
            }
        }
        if lines.contains("FDSTOREREMOVE=1") {
            kept.withLock { all in all.removeAll { $0.name == name } }
        }
        if lines.contains("READY=1") { ready.ring() }
        if lines.contains("X_SYNC=1") { synced.ring() }
    }

    /// Whether two are of one socket, one process, or one file in memory.
    private func isSame(_ one: Int32, _ other: Int32) -> Bool {
        var (a, b) = (Glibc.stat(), Glibc.stat())
        return fstat(one, &a) == 0 && fstat(other, &b) == 0 && a.st_dev == b.st_dev && a.st_ino == b.st_ino
    }

    // MARK: Asked by tests

    /// Until all is read that was said up to now.
    func sync() throws {
        try sendDatagram("X_SYNC=1", to: path)
        synced.take()
    }

    /// The names in the store, sorted.
    func allNames() throws -> [String] {
        try sync()
        return kept.withLock { $0.map(\.name).sorted() }
    }

    /// Those that are there for apps.
    func names() throws -> [String] { try allNames().filter { $0 != "control" } }

    /// Readable when the daemon has said READY=1.
    var readyDescriptor: SharedDescriptor { ready.reading }
    func takeReady() { ready.take() }

    /// What the next daemon is handed: all that has not hung up, in the order stored.
    func handOver() throws -> [PassedDescriptor] {
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

    /// Forgets a name of its own accord, as where `FileDescriptorStoreMax=` is too small.
    func lose(_ name: String) throws {
        try sync()
        kept.withLock { all in all.removeAll { $0.name == name } }
    }
}
