import Glibc
import Posix
import TestKit
import Testing

@Suite("Unix sockets")
struct UnixSocketTests {
    private func listens(_ socket: SharedDescriptor, _ path: String) -> Bool {
        UnixSocket.listens(socket.descriptor, at: path)
    }

    private func mode(_ path: String) -> UInt32 {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
    }

    @Test("a socket has the requested mode, independent of the umask", arguments: [0o600, 0o666, 0o660] as [UInt32])
    func modes(wanted: UInt32) throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/bus"
        let descriptor = SharedDescriptor(try UnixSocket.listen(at: path, mode: wanted))
        #expect(mode(path) == wanted)
        #expect(fcntl(descriptor.raw, F_GETFD) == FD_CLOEXEC)
        #expect(fcntl(descriptor.raw, F_GETFL) & O_NONBLOCK != 0)
        _ = try UnixSocket.connect(to: path)
    }

    @Test("1,000 clients can connect before the server accepts the first, also if its backlog was short")
    func backlog() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/bus"
        raiseDescriptorLimit()
        let server = try UnixSocket.listen(at: path, mode: 0o600, backlog: 1)
        try UnixSocket.setBacklog(UnixSocket.longestBacklog, of: server)
        var clients: [SharedDescriptor] = []
        for _ in 0..<1000 { clients.append(SharedDescriptor(try UnixSocket.connect(to: path))) }
        var accepted: [SharedDescriptor] = []
        while case .connection(let connection) = UnixSocket.accept(on: server) {
            accepted.append(SharedDescriptor(connection))
        }
        #expect(accepted.count == clients.count)
    }

    @Test("a socket whose program has ended is replaced; one that is in use is not")
    func stale() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/bus"
        // In a process of its own: a process that another test starts holds a copy of the socket until it executes its
        // program.
        try inOwnProcess {
            _ = try UnixSocket.listen(at: path, mode: 0o600)
            let second = SharedDescriptor(try UnixSocket.listen(at: path, mode: 0o600))
            #expect(throws: SystemError(call: "bind: another program listens at", errno: EADDRINUSE, path: path)) {
                _ = try UnixSocket.listen(at: path, mode: 0o600)
            }
            _ = try UnixSocket.connect(to: path)
            withExtendedLifetime(second) {}
        }
    }

    @Test("a passed socket is recognised by its path while its file exists")
    func handedOver() throws {
        let folder = try TemporaryFolder()
        let (path, other) = (folder.path + "/bus", folder.path + "/other")
        let descriptor = SharedDescriptor(try UnixSocket.listen(at: path, mode: 0o600))
        #expect(listens(descriptor, path))
        #expect(!listens(descriptor, other))
        let client = SharedDescriptor(try UnixSocket.connect(to: path))
        #expect(!listens(client, path))
        let file = SharedDescriptor(try Descriptor.open("/dev/null", O_RDONLY))
        #expect(!listens(file, path))
        rename(path, other)
        #expect(!listens(descriptor, path))
        close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o644))
        #expect(!listens(descriptor, path))
    }

    @Test("a passed socket is not used if the file at its path belongs to another socket")
    func handedOverInVain() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/bus"
        try inOwnProcess {
            let first = SharedDescriptor(try UnixSocket.listen(at: path, mode: 0o600))
            unlink(path)
            _ = try UnixSocket.listen(at: path, mode: 0o600)
            #expect(!listens(first, path))
            let second = SharedDescriptor(try UnixSocket.listen(at: path, mode: 0o600))
            #expect(listens(second, path))
            // No connection is accepted, and the backlog is full.
            var waiting: [SharedDescriptor] = []
            #expect(throws: (any Error).self) {
                while true { waiting.append(SharedDescriptor(try UnixSocket.connect(to: path, timeout: .seconds(1)))) }
            }
            #expect(listens(second, path))
        }
    }

    @Test("a file of another kind is not replaced")
    func otherFile() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/bus"
        close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o644))
        #expect(throws: SystemError(call: "bind: a file that is not a socket is at", errno: EEXIST, path: path)) {
            _ = try UnixSocket.listen(at: path, mode: 0o600)
        }
        #expect(mode(path) == 0o644)
    }

    @Test("a path of 107 bytes is accepted; the error for 108 bytes names the limit")
    func longPath() throws {
        let folder = try TemporaryFolder()
        let longest = folder.path + "/" + String(repeating: "x", count: 107 - folder.path.utf8.count - 1)
        _ = try UnixSocket.listen(at: longest, mode: 0o600)
        unlink(longest)
        let error = #expect(throws: SystemError.self) { _ = try UnixSocket.listen(at: longest + "x", mode: 0o600) }
        #expect(error?.errno == ENAMETOOLONG)
        #expect(error?.description.contains("at most 107 bytes, not 108") == true)
        #expect(throws: SystemError.self) { _ = try UnixSocket.connect(to: "") }
        #expect(throws: SystemError.self) { _ = try UnixSocket.connect(to: "a\0b") }
    }
}
