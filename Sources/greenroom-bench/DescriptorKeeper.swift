import Glibc
import Linux
import Posix
import Synchronization

/// What systemd does for greenroomd.service: receives its messages, and keeps the descriptors that it stores (FDSTORE=1) for the next
/// daemon. It reads on a thread, because the daemon waits if its messages are not read.
final class DescriptorKeeper: Sendable {
    private struct Kept {
        var name: String
        /// Identifies what it refers to: systemd ignores a descriptor that it has already.
        var device: UInt64
        var inode: UInt64
        /// A high number: the next daemon gets 3, 4, ….
        var number: Int32
    }

    private static let firstNumber: Int32 = 8192

    let path: String
    private let kept = Mutex<[Kept]>([])
    private let isReady = Atomic(false)
    private let isOver = Atomic(false)

    init(at path: String) throws {
        self.path = path
        let start = Start(self, try DatagramSocket(at: path))
        var thread = pthread_t()
        let result = pthread_create(
            &thread, nil,
            { argument in
                guard let argument else { return nil }
                Unmanaged<Start>.fromOpaque(argument).takeRetainedValue().run()
                return nil
            }, Unmanaged.passRetained(start).toOpaque())
        guard result == 0 else { throw BenchFailure("pthread_create: error \(result)") }
        pthread_detach(thread)
    }

    /// Ends the thread and closes what is kept.
    func stop() {
        isOver.store(true, ordering: .relaxed)
        kept.withLock { all in
            for one in all { close(one.number) }
            all = []
        }
    }

    private final class Start {
        private let keeper: DescriptorKeeper
        private let socket: DatagramSocket

        init(_ keeper: DescriptorKeeper, _ socket: consuming DatagramSocket) {
            self.keeper = keeper
            self.socket = socket
        }

        func run() {
            while !keeper.isOver.load(ordering: .relaxed) {
                var polled = pollfd(fd: socket.descriptor.raw, events: Int16(POLLIN), revents: 0)
                poll(&polled, 1, 50)
                while let datagram = try? socket.receive() {
                    var datagram = datagram
                    keeper.take(String(decoding: datagram.bytes, as: UTF8.self), &datagram.descriptors)
                }
            }
        }
    }

    // MARK: On the thread

    private func take(_ text: String, _ descriptors: inout ReceivedDescriptors) {
        let lines = text.split(separator: "\n")
        let name = lines.first { $0.hasPrefix("FDNAME=") }.map { String($0.dropFirst(7)) } ?? "stored"
        while let descriptor = descriptors.takeFirst() {
            guard lines.contains("FDSTORE=1") else { continue }
            var about = Glibc.stat()
            let number = fcntl(descriptor.raw, F_DUPFD_CLOEXEC, Self.firstNumber)
            guard number >= 0, fstat(number, &about) == 0 else { continue }
            let new = Kept(name: name, device: UInt64(about.st_dev), inode: UInt64(about.st_ino), number: number)
            let isNew = kept.withLock { all in
                if all.contains(where: { $0.inode == new.inode && $0.device == new.device }) { return false }
                all.append(new)
                return true
            }
            if !isNew { close(number) }
        }
        if lines.contains("FDSTOREREMOVE=1") {
            kept.withLock { all in
                for one in all where one.name == name { close(one.number) }
                all.removeAll { $0.name == name }
            }
        }
        if lines.contains("READY=1") { isReady.store(true, ordering: .releasing) }
    }

    // MARK: The daemon

    /// Whether READY=1 has arrived since the last start.
    var hasReady: Bool { isReady.load(ordering: .acquiring) }

    /// Starts a program that ends with this one, and passes it what is kept (sd_listen_fds(3)).
    func start(_ command: [String], log: String) throws -> pid_t {
        isReady.store(false, ordering: .releasing)
        var actions = posix_spawn_file_actions_t()
        posix_spawn_file_actions_init(&actions)
        defer { posix_spawn_file_actions_destroy(&actions) }
        posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0)
        posix_spawn_file_actions_addopen(&actions, 1, log, O_WRONLY | O_CREAT | O_APPEND, 0o600)
        posix_spawn_file_actions_adddup2(&actions, 1, 2)
        return try kept.withLock { all in
            for (index, one) in all.enumerated() {
                posix_spawn_file_actions_adddup2(&actions, one.number, 3 + Int32(index))
            }
            // The shell knows its own pid, and keeps it.
            let script = "\(all.isEmpty ? "" : "export LISTEN_PID=$$; ")exec setpriv --pdeathsig TERM \"$@\""
            let arguments = ["/bin/sh", "-c", script, "sh"] + command
            var environment = [
                "PATH=/usr/sbin:/usr/bin:/sbin:/bin", "HOME=/", "SWIFT_BACKTRACE=enable=no", "NOTIFY_SOCKET=\(path)",
                "FDSTORE=8192",
            ]
            if !all.isEmpty {
                environment += [
                    "LISTEN_FDS=\(all.count)", "LISTEN_FDNAMES=\(all.map(\.name).joined(separator: ":"))",
                ]
            }
            return try spawn(arguments, environment, &actions)
        }
    }

    private func spawn(
        _ arguments: [String], _ environment: [String], _ actions: inout posix_spawn_file_actions_t
    ) throws -> pid_t {
        let words = arguments.map { strdup($0) } + [nil]
        let variables = environment.map { strdup($0) } + [nil]
        defer { for text in words + variables { free(text) } }
        var pid: pid_t = 0
        let result = posix_spawn(&pid, arguments[0], &actions, nil, words, variables)
        guard result == 0 else { throw BenchFailure("posix_spawn: error \(result)") }
        return pid
    }
}
