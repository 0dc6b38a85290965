import Glibc
import Systemd
import TestKit
import Testing

@Suite("Unix sockets")
struct UnixSocketTests {
    private func mode(_ path: String) -> UInt32 {
        var status = stat()
        return lstat(path, &status) == 0 ? status.st_mode & 0o7777 : 0
    }

    @Test("a socket has the mode that was asked for, whatever the umask", arguments: [0o600, 0o666, 0o660] as [UInt32])
    func modes(wanted: UInt32) throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/bus"
        let descriptor = try UnixSocket.listen(at: path, mode: wanted)
        defer { close(descriptor) }
        #expect(mode(path) == wanted)
        #expect(fcntl(descriptor, F_GETFD) == FD_CLOEXEC)
        #expect(fcntl(descriptor, F_GETFL) & O_NONBLOCK != 0)
        close(try UnixSocket.connect(to: path))
    }

    @Test("a socket that a dead program left is replaced; one that is in use is not")
    func stale() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/bus"
        // Where no other test starts a process: until that executes its program, it has the dead one's socket open too.
        try inOwnProcess {
            close(try UnixSocket.listen(at: path, mode: 0o600))
            let second = try UnixSocket.listen(at: path, mode: 0o600)
            defer { close(second) }
            #expect(throws: SystemdError("bind: another program listens at", errno: EADDRINUSE, path: path)) {
                _ = try UnixSocket.listen(at: path, mode: 0o600)
            }
            close(try UnixSocket.connect(to: path))
        }
    }

    @Test("a socket that was handed over is known by its path, as long as one lies there")
    func handedOver() throws {
        let folder = try TemporaryFolder()
        let (path, other) = (folder.path + "/bus", folder.path + "/other")
        let descriptor = try UnixSocket.listen(at: path, mode: 0o600)
        defer { close(descriptor) }
        #expect(UnixSocket.listens(descriptor, at: path))
        #expect(!UnixSocket.listens(descriptor, at: other))
        let client = try UnixSocket.connect(to: path)
        defer { close(client) }
        #expect(!UnixSocket.listens(client, at: path))
        #expect(!UnixSocket.listens(0, at: path))
        rename(path, other)
        #expect(!UnixSocket.listens(descriptor, at: path))
        close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o644))
        #expect(!UnixSocket.listens(descriptor, at: path))
    }

    @Test("a socket that was handed over is of no use where another's lies at its path, though that one has ended")
    func handedOverInVain() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/bus"
        try inOwnProcess {
            let first = try UnixSocket.listen(at: path, mode: 0o600)
            defer { close(first) }
            unlink(path)
            close(try UnixSocket.listen(at: path, mode: 0o600))
            #expect(!UnixSocket.listens(first, at: path))
            let second = try UnixSocket.listen(at: path, mode: 0o600)
            defer { close(second) }
            #expect(UnixSocket.listens(second, at: path))
            // Nobody takes a connection, and there is room for no more.
            var waiting: [Int32] = []
            defer { for one in waiting { close(one) } }
            #expect(throws: (any Error).self) {
                while true { waiting.append(try UnixSocket.connect(to: path, patience: .seconds(1))) }
            }
            #expect(UnixSocket.listens(second, at: path))
        }
    }

    @Test("another kind of file is left alone")
    func otherFile() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/bus"
        close(open(path, O_CREAT | O_WRONLY | O_CLOEXEC, 0o644))
        #expect(throws: SystemdError("bind: something that is no socket is at", errno: EEXIST, path: path)) {
            _ = try UnixSocket.listen(at: path, mode: 0o600)
        }
        #expect(mode(path) == 0o644)
    }

    @Test("a path of 107 bytes is taken, one of 108 is refused with the limit")
    func longPath() throws {
        let folder = try TemporaryFolder()
        let longest = folder.path + "/" + String(repeating: "x", count: 107 - folder.path.utf8.count - 1)
        close(try UnixSocket.listen(at: longest, mode: 0o600))
        unlink(longest)
        let error = #expect(throws: SystemdError.self) { _ = try UnixSocket.listen(at: longest + "x", mode: 0o600) }
        #expect(error?.code == ENAMETOOLONG)
        #expect(error?.description.contains("at most 107 bytes, not 108") == true)
        #expect(throws: SystemdError.self) { _ = try UnixSocket.connect(to: "") }
        #expect(throws: SystemdError.self) { _ = try UnixSocket.connect(to: "a\0b") }
    }

    @Test("a server's socket goes with it, but not its successor's")
    func removal() throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/bus"
        let loop = try EventLoop()
        func serve() throws -> BusServer {
            try BusServer(loop: loop, path: path, names: [], objects: BusObjects())
        }
        var first: BusServer? = try serve()
        #expect(mode(path) == 0o600)
        first = nil
        #expect(mode(path) == 0)
        first = try serve()
        unlink(path)
        let successor = try serve()
        withExtendedLifetime(first) {}
        first = nil
        #expect(mode(path) == 0o600)
        withExtendedLifetime(successor) {}
    }
}
