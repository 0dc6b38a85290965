import Glibc
import Linux
import Posix
import TestKit
import Testing

@Suite("Sockets that are held for apps")
struct ListeningSocketTests {
    private func make(
        _ type: ListenType, _ address: ListenAddress, _ change: (inout ListeningSocket.Settings) -> Void = { _ in }
    ) throws -> ListeningSocket {
        var settings = ListeningSocket.Settings()
        change(&settings)
        return try ListeningSocket(type, address, settings)
    }

    private func failure(_ type: ListenType, _ address: ListenAddress) -> SystemError? {
        do throws(SystemError) {
            _ = try ListeningSocket(type, address, ListeningSocket.Settings())
            return nil
        } catch {
            return error
        }
    }

    private func about(_ path: String) -> Glibc.stat {
        var about = Glibc.stat()
        lstat(path, &about)
        return about
    }

    private func flags(_ socket: ListeningSocket) -> Int32 { fcntl(socket.descriptor.raw, F_GETFL) }

    // MARK: Binding

    @Test("a port alone accepts IPv4 and IPv6")
    func dualStack() throws {
        let port = try freePort()
        let socket = try make(.stream, .port(port))
        #expect(socket.state == .usable)
        #expect(connects(AF_INET, port))
        #expect(connects(AF_INET6, port))
        #expect(flags(socket) & O_NONBLOCK != 0)
        #expect(fcntl(socket.descriptor.raw, F_GETFD) & FD_CLOEXEC != 0)
        #expect(failure(.stream, .port(port))?.errno == EADDRINUSE)
        #expect(failure(.datagram, .port(port)) == nil)
    }

    @Test("an address of IPv4 or IPv6 is bound alone")
    func addresses() throws {
        let port = try freePort()
        let four = try make(.stream, .ipv4("127.0.0.1", port))
        let six = try make(.stream, .ipv6("::1", port))
        #expect(four.state == .usable && six.state == .usable)
        #expect(connects(AF_INET, port) && connects(AF_INET6, port))
        #expect(failure(.stream, .ipv4("192.0.2.1", port))?.errno == EADDRNOTAVAIL)
        #expect(failure(.stream, .ipv4("not an address", port))?.errno == EINVAL)
        #expect(failure(.stream, .ipv6("fe80::1%nothing", port))?.errno == ENODEV)
        let sentence = failure(.stream, .ipv6("::1", port)).map { "\($0)" }
        #expect(sentence == "bind [::1]:\(port): Address already in use (EADDRINUSE)")
    }

    @Test("the file of a socket has its mode, whatever the umask, and its owner; folders are created with theirs")
    func file() throws {
        // The umask belongs to the process, and other tests of this suite change it for a moment.
        try inOwnProcess {
            let scratch = try Scratch()
            let path = scratch.path + "/a/b/socket"
            let before = umask(0o077)
            defer { umask(before) }
            let socket = try make(.stream, .path(path)) {
                $0.mode = 0o620
                $0.directoryMode = 0o751
                if geteuid() == 0 { $0.owner = Owner(uid: 65_534, gid: 12) }
            }
            #expect(about(path).st_mode & 0o7777 == 0o620)
            #expect(about(scratch.path + "/a").st_mode & 0o7777 == 0o751)
            #expect(about(scratch.path + "/a/b").st_mode & 0o7777 == 0o751)
            if geteuid() == 0 { #expect(about(path).st_uid == 65_534 && about(path).st_gid == 12) }
            #expect(umask(0o077) == 0o077)
            #expect(socket.isFileInPlace)
            socket.removeFile()
            #expect(!exists(at: path) && !socket.isFileInPlace)
        }
    }

    @Test(
        "abstract names, datagrams and sequential packets are bound",
        arguments: [ListenType.stream, .datagram, .sequentialPacket])
    func kinds(_ type: ListenType) throws {
        let scratch = try Scratch()
        let abstract = try make(type, .abstract("greenroom-test-\(getpid())-\(type)"))
        let path = try make(type, .path(scratch.path + "/socket"))
        #expect(abstract.state == .usable && path.state == .usable)
        #expect(failure(type, .abstract("greenroom-test-\(getpid())-\(type)"))?.errno == EADDRINUSE)
        #expect(failure(type, .path(scratch.path + "/socket"))?.errno == EADDRINUSE)
        #expect(path.isFileInPlace)
    }

    @Test("a file that a socket has left is replaced; another file, and a socket in use, are not")
    func stale() throws {
        let scratch = try Scratch()
        let path = scratch.path + "/socket"
        for type in [ListenType.stream, .datagram, .sequentialPacket] {
            var old: ListeningSocket? = try make(type, .path(path))
            #expect(failure(.stream, .path(path))?.errno == EADDRINUSE)
            let inode = about(path).st_ino
            old = nil
            #expect(old == nil && exists(at: path))
            let new = try make(.stream, .path(path))
            #expect(new.isFileInPlace)
            #expect(about(path).st_ino != inode || new.state == .usable)
            new.removeFile()
        }
        _ = try scratch.file("socket")
        #expect(failure(.stream, .path(path))?.errno == EEXIST)
        #expect(exists(at: path))
        // A link is not followed, and not replaced.
        unlink(path)
        #expect(symlink(scratch.path + "/elsewhere", path) == 0)
        #expect(failure(.stream, .path(path))?.errno == EEXIST)
        #expect(!exists(at: scratch.path + "/elsewhere"))
    }

    @Test("a path or a name that is too long is refused with its length")
    func tooLong() throws {
        let error = failure(.stream, .path("/tmp/" + String(repeating: "x", count: 120)))
        #expect(error?.errno == ENAMETOOLONG)
        #expect(error.map { "\($0)".contains("at most 107 bytes, not 125") } ?? false)
        #expect(failure(.stream, .abstract(String(repeating: "x", count: 108)))?.errno == ENAMETOOLONG)
        #expect(failure(.stream, .path("relative"))?.errno == EINVAL)
        #expect(failure(.stream, .path("/tmp/../x"))?.errno == EINVAL)
    }

    @Test(
        "in a folder of another user a socket is bound; below one it is not", .enabled(if: geteuid() == 0, "needs root")
    )
    func folders() throws {
        let scratch = try Scratch()
        chmod(scratch.path, 0o755)
        let own = scratch.path + "/user"
        mkdir(own, 0o755)
        chown(own, 65_534, 65_534)
        let socket = try make(.stream, .path(own + "/socket"))
        #expect(socket.isFileInPlace)
        mkdir(own + "/deep", 0o755)
        let error = failure(.stream, .path(own + "/deep/socket"))
        #expect(error?.errno == EPERM)
        #expect(error.map { "\($0)".contains("\(own) is not safe, because it belongs to uid 65534") } ?? false)
        // A link of another user is not followed.
        #expect(symlink("/tmp", own + "/link") == 0)
        #expect(failure(.stream, .path(own + "/link/greenroom-test"))?.errno == EPERM)
        // A folder of another user in a folder that all users share.
        let shared = scratch.path + "/shared"
        mkdir(shared, 0)
        chmod(shared, 0o1777)
        mkdir(shared + "/user", 0o755)
        chown(shared + "/user", 65_534, 65_534)
        #expect(failure(.stream, .path(shared + "/user/socket"))?.errno == EPERM)
        #expect(failure(.stream, .path(shared + "/socket")) == nil)
        chmod(shared, 0o777)
        #expect(failure(.stream, .path(shared + "/made/socket"))?.errno == EPERM)
        // A link of root is followed.
        mkdir(scratch.path + "/real", 0o755)
        #expect(symlink(scratch.path + "/real", scratch.path + "/link") == 0)
        #expect(failure(.stream, .path(scratch.path + "/link/socket")) == nil)
        #expect(exists(at: scratch.path + "/real/socket"))
    }

    // MARK: State

    @Test("a socket is taken over if its type and address are right")
    func comparison() throws {
        let scratch = try Scratch()
        let port = try freePort()
        let all: [(ListenType, ListenAddress)] = [
            (.stream, .port(port)), (.datagram, .port(port)), (.stream, .ipv4("127.0.0.2", try freePort())),
            (.datagram, .ipv6("::1", try freePort())), (.stream, .path(scratch.path + "/stream")),
            (.datagram, .path(scratch.path + "/datagram")), (.sequentialPacket, .abstract("greenroom-\(getpid())")),
        ]
        let made = try all.map { try make($0.0, $0.1) }
        for (position, socket) in made.enumerated() {
            for (other, (type, address)) in all.enumerated() {
                let copy = SharedDescriptor(try socket.descriptor.descriptor.duplicate())
                let adopted = ListeningSocket(type, address, adopting: copy)
                #expect((adopted != nil) == (position == other), "\(all[position]) as \(all[other])")
                if position == other {
                    #expect(adopted?.inode == socket.inode)
                    #expect(adopted?.isFileInPlace ?? false)
                }
            }
        }
        let six = try make(.stream, .ipv6("::", try freePort()))
        #expect(six.state == .usable)
        let pipe = SharedDescriptor(try Pipe().closingWrite())
        #expect(ListeningSocket(.stream, .port(port), adopting: pipe) == nil)
    }

    @Test("a socket that was shut down, or connected, is noticed", arguments: [SHUT_RD, SHUT_WR, SHUT_RDWR])
    func shutDown(_ how: Int) throws {
        let scratch = try Scratch()
        let stream = try make(.stream, .path(scratch.path + "/socket"))
        let tcp = try make(.stream, .ipv4("127.0.0.1", try freePort()))
        for socket in [stream, tcp] { shutdown(socket.descriptor.raw, Int32(how)) }
        if how != SHUT_WR {
            #expect(stream.state == .shutDown)
            #expect(tcp.state == .shutDown)
        }
        let datagram = try make(.datagram, .ipv4("127.0.0.1", try freePort()))
        let peer = try make(.datagram, .ipv4("127.0.0.1", try freePort()))
        var address = sockaddr_storage()
        var length = socklen_t(MemoryLayout<sockaddr_storage>.size)
        let (from, to) = (datagram.descriptor.raw, peer.descriptor.raw)
        withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                getsockname(to, $0, &length)
                connect(from, $0, length)
            }
        }
        #expect(datagram.state == .shutDown)
        #expect(peer.state == .usable)
    }

    @Test("connections that wait are reset, and nothing else")
    func rejection() throws {
        let port = try freePort()
        let socket = try make(.stream, .ipv4("127.0.0.1", port))
        let clients = try (0..<3).map { _ in try #require(connected(AF_INET, port)) }
        for left in [true, true, true, false] { #expect(try socket.rejectConnection() == left) }
        for client in clients {
            var byte: UInt8 = 0
            #expect(recv(client.raw, &byte, 1, 0) < 0 && errno == ECONNRESET)
        }
        #expect(connects(AF_INET, port))
        let datagrams = try make(.datagram, .ipv4("127.0.0.1", port))
        #expect(try !datagrams.rejectConnection())
    }

    @Test("the flag of accept(2) belongs to all descriptors of the socket")
    func blocking() throws {
        let socket = try make(.stream, .ipv4("127.0.0.1", try freePort()))
        let copy = try socket.descriptor.descriptor.duplicate()
        try socket.setNonBlocking(false)
        #expect(fcntl(copy.raw, F_GETFL) & O_NONBLOCK == 0)
        try socket.setNonBlocking(true)
        #expect(fcntl(copy.raw, F_GETFL) & O_NONBLOCK != 0)
    }

    // MARK: Folders

    @Test("folders report removed files, each by its number, and a folder that is removed")
    func changes() throws {
        let scratch = try Scratch()
        let changes = try FolderChanges()
        let (one, two) = (scratch.path + "/one", scratch.path + "/two")
        mkdir(one, 0o755)
        mkdir(two, 0o755)
        let numbers = (try changes.watch(one), try changes.watch(two))
        #expect(try changes.watch(one) == numbers.0)
        close(open(one + "/file", O_CREAT | O_WRONLY | O_CLOEXEC, 0o600))
        #expect(changes.changed().isEmpty)
        unlink(one + "/file")
        #expect(changes.changed() == [numbers.0])
        #expect(changes.changed().isEmpty)
        rmdir(two)
        #expect(changes.changed().contains(numbers.1))
        mkdir(two, 0o755)
        #expect(try changes.watch(two) != numbers.1)
        changes.unwatch(numbers.0)
        _ = changes.changed()
        rmdir(one)
        #expect(!changes.changed().contains(numbers.0))
    }

    // MARK: Options

    private func option(_ socket: ListeningSocket, _ level: Int32, _ name: Int32) -> Int32 {
        var (value, length) = (Int32(-1), socklen_t(MemoryLayout<Int32>.size))
        getsockopt(socket.descriptor.raw, level, name, &value, &length)
        return value
    }

    @Test(
        "a port alone is for IPv6 and IPv4, for IPv6 only, or as the kernel's setting says",
        arguments: [true, false, nil])
    func onlyIPv6(_ isOnly: Bool?) throws {
        let port = try freePort()
        let socket = try make(.stream, .port(port)) { $0.binding.isOnlyIPv6 = isOnly }
        let text = String(decoding: try readFile(at: "/proc/sys/net/ipv6/bindv6only", limit: 16), as: UTF8.self)
        #expect(connects(AF_INET, port) == !(isOnly ?? text.hasPrefix("1")))
        #expect(connects(AF_INET6, port))
        for other in [true, false] {
            var binding = ListeningSocket.Binding()
            binding.isOnlyIPv6 = other
            #expect(socket.isBound(as: binding) == (other == (isOnly ?? text.hasPrefix("1"))))
        }
        #expect(socket.isBound(as: ListeningSocket.Binding()))
        // What is taken over is the same socket.
        #expect(ListeningSocket(.stream, .port(port), adopting: socket.descriptor) != nil)
    }

    @Test("a port is shared if both sockets want it, and an address is bound that the machine does not have")
    func sharing() throws {
        let port = try freePort()
        var shared = ListeningSocket.Binding()
        shared.reusesPort = true
        for type in [ListenType.stream, .datagram] {
            let first = try make(type, .ipv4("127.0.0.1", port)) { $0.binding = shared }
            let second = try make(type, .ipv4("127.0.0.1", port)) { $0.binding = shared }
            #expect(failure(type, .ipv4("127.0.0.1", port))?.errno == EADDRINUSE)
            #expect(second.isBound(as: shared) && first.isBound(as: ListeningSocket.Binding()))
        }
        let alone = try make(.stream, .ipv4("127.0.0.2", port))
        #expect(!alone.isBound(as: shared))
        for address in [ListenAddress.ipv4("198.51.100.1", port), .ipv6("2001:db8::1", port)] {
            #expect(failure(.stream, address)?.errno == EADDRNOTAVAIL)
            #expect(try make(.stream, address) { $0.binding.isFree = true }.state == .usable)
        }
        // They have no meaning for a path.
        let scratch = try Scratch()
        shared.isOnlyIPv6 = true
        let local = try make(.stream, .path(scratch.path + "/socket")) { $0.binding = shared }
        #expect(local.isBound(as: shared))
    }

    @Test("connections of TCP inherit SO_KEEPALIVE and TCP_NODELAY, and a reload changes them")
    func connectionOptions() throws {
        var settings = ListeningSocket.Settings()
        let socket = try make(.stream, .ipv4("127.0.0.1", try freePort()))
        let options = [(SOL_SOCKET, SO_KEEPALIVE), (Int32(IPPROTO_TCP), TCP_NODELAY)]
        for isOn in [true, false] {
            (settings.keepsAlive, settings.hasNoDelay) = (isOn, isOn)
            try socket.apply(settings)
            for (level, name) in options { #expect(option(socket, level, name) == (isOn ? 1 : 0)) }
        }
        let made = try make(.stream, .ipv4("127.0.0.1", try freePort())) { $0.keepsAlive = true }
        #expect(option(made, SOL_SOCKET, SO_KEEPALIVE) == 1)
        // Others have no such options.
        settings.hasNoDelay = true
        for type in [ListenType.datagram, .stream] {
            let abstract = ListenAddress.abstract("greenroom-test-\(getpid())-options-\(type)")
            #expect(try make(type, abstract) { $0 = settings }.state == .usable)
        }
        #expect(try make(.datagram, .ipv4("127.0.0.1", try freePort())) { $0 = settings }.state == .usable)
    }

    // MARK: Taking back

    @Test("a socket is taken back from a process that has it at any number")
    func retrieval() throws {
        let socket = try make(.stream, .ipv4("127.0.0.1", try freePort()))
        let other = try make(.stream, .ipv4("127.0.0.1", try freePort()))
        let containment = try Containment(mode: .processGroup(reason: "a test"), name: "sockets")
        let enclosure = try containment.create(app: "app", run: 1)
        var request = SpawnRequest(executable: "/bin/sleep", arguments: ["1000"])
        request.environment = [try #require(enclosure.environmentMarker)]
        request.passedDescriptors = [
            PassedDescriptor(try standardInput(), name: "first"), PassedDescriptor(other.descriptor, name: "other"),
            PassedDescriptor(socket.descriptor, name: "wanted"),
        ]
        var starting = try startProcess(request)
        let outcome = try starting.finalOutcome()
        #expect(outcome == .executed)
        try enclosure.started(starting.process)
        let found = try enclosure.takeSockets([socket.inode, 1])
        #expect(Array(found.keys) == [socket.inode])
        let taken = try #require(found[socket.inode])
        #expect(ListeningSocket(.stream, socket.address, adopting: taken) != nil)
        #expect(fcntl(taken.raw, F_GETFD) & FD_CLOEXEC != 0)
        _ = try starting.process.signal(SIGKILL)
        _ = try starting.process.waitForEnd()
    }
}

// MARK: Clients

/// A port that no socket has now.
func freePort() throws -> UInt16 {
    let number = socket(AF_INET6, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    try #require(number >= 0)
    defer { close(number) }
    var address = sockaddr_in6()
    address.sin6_family = sa_family_t(AF_INET6)
    var length = socklen_t(MemoryLayout<sockaddr_in6>.size)
    let result = withUnsafeMutablePointer(to: &address) { pointer in
        pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            bind(number, $0, length) == 0 && getsockname(number, $0, &length) == 0
        }
    }
    try #require(result)
    return UInt16(bigEndian: address.sin6_port)
}

private func connects(_ domain: Int32, _ port: UInt16) -> Bool { connected(domain, port) != nil }

/// A connection to this machine.
private func connected(_ domain: Int32, _ port: UInt16) -> SharedDescriptor? {
    let number = socket(domain, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard number >= 0 else { return nil }
    let client = SharedDescriptor(Descriptor(adopting: number))
    var four = sockaddr_in()
    four.sin_family = sa_family_t(AF_INET)
    four.sin_port = port.bigEndian
    four.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    var six = sockaddr_in6()
    six.sin6_family = sa_family_t(AF_INET6)
    six.sin6_port = port.bigEndian
    six.sin6_addr = in6addr_loopback
    let result =
        domain == AF_INET
        ? withUnsafePointer(to: &four) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(number, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
            }
        }
        : withUnsafePointer(to: &six) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                connect(number, $0, socklen_t(MemoryLayout<sockaddr_in6>.size))
            }
        }
    return result == 0 ? client : nil
}
