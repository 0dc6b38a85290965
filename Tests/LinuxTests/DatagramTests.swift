import Glibc
import Linux
import Posix
import TestKit
import Testing

/// A client that sends arbitrary datagrams.
struct Client: ~Copyable {
    let descriptor: Descriptor

    init(to path: String) throws {
        descriptor = Descriptor(adopting: socket(AF_UNIX, Int32(SOCK_DGRAM.rawValue), 0))
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: path.utf8) }
        let result = withUnsafeBytes(of: &address) {
            connect(
                descriptor.raw, $0.assumingMemoryBound(to: sockaddr.self).baseAddress,
                socklen_t(MemoryLayout<sockaddr_un>.size))
        }
        try #require(result == 0)
    }

    /// errno, or 0.
    @discardableResult
    func send(_ bytes: [UInt8], descriptors: [Int32] = [], messages: Int = 1) -> Int32 {
        var bytes = bytes
        // SCM_RIGHTS (1) of SOL_SOCKET (1), in the layout of cmsg(3).
        var control: [UInt64] = []
        let count = messages == 0 ? 0 : descriptors.count / messages
        for index in 0..<(descriptors.isEmpty ? 0 : messages) {
            control += [UInt64(16 + 4 * count), 1 << 32 | 1]
            let part = Array(descriptors[(index * count)..<((index + 1) * count)]) + (count % 2 == 0 ? [] : [0])
            for pair in stride(from: 0, to: part.count, by: 2) {
                control.append(UInt64(UInt32(part[pair])) | UInt64(UInt32(part[pair + 1])) << 32)
            }
        }
        let size = bytes.count
        return bytes.withUnsafeMutableBytes { data in
            control.withUnsafeMutableBytes { control in
                var part = iovec(iov_base: data.baseAddress, iov_len: size)
                return withUnsafeMutablePointer(to: &part) { part in
                    var message = msghdr()
                    message.msg_iov = part
                    message.msg_iovlen = 1
                    message.msg_control = control.baseAddress
                    message.msg_controllen = control.count
                    return sendmsg(descriptor.raw, &message, Int32(MSG_DONTWAIT)) < 0 ? errno : 0
                }
            }
        }
    }
}

@Suite("Notify sockets")
struct DatagramTests {
    let scratch: Scratch
    let path: String

    init() throws {
        scratch = try Scratch()
        path = scratch.path + "/notify"
    }

    /// The number of descriptors that refer to this file. Other tests of this process open and close descriptors meanwhile.
    func openCount(of file: String) throws -> Int {
        try folderNames("/proc/self/fd").filter { name in
            var target = [CChar](repeating: 0, count: 512)
            let length = readlink("/proc/self/fd/\(name)", &target, 511)
            return length > 0 && target.withUnsafeBufferPointer { String(cString: $0.baseAddress!) } == file
        }.count
    }

    @Test("datagrams arrive in order, with any bytes and with their sender")
    func plain() throws {
        let server = try DatagramSocket(at: path)
        #expect(try server.receive() == nil)
        let client = try Client(to: path)
        let noise: [UInt8] = [0, 255, 10, 0, 61]
        for bytes in [Array("READY=1".utf8), noise, []] { #expect(client.send(bytes) == 0) }
        for bytes in [Array("READY=1".utf8), noise, []] {
            try wait(for: server.descriptor)
            guard let datagram = try server.receive() else {
                Issue.record("a datagram is missing")
                return
            }
            #expect(datagram.bytes == bytes)
            #expect(datagram.isTooLarge == false)
            #expect(datagram.sender == PeerCredentials(pid: getpid(), uid: getuid(), gid: getgid()))
            #expect(datagram.descriptors.count == 0)
        }
        #expect(try server.receive() == nil)
    }

    @Test("the sender of a datagram is the process that sent it, as with systemd-notify")
    func otherProcess() throws {
        let server = try DatagramSocket(at: path)
        guard access("/usr/bin/python3", X_OK) == 0 else {
            print("skipped: no python3 here to send from another process")
            return
        }
        var starting = try startProcess(
            SpawnRequest(
                executable: "/usr/bin/python3",
                arguments: [
                    "-c",
                    "import socket,sys; socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM).sendto(b'READY=1', sys.argv[1])",
                    path,
                ]))
        _ = try starting.finalOutcome()
        #expect(try starting.process.waitForEnd().status == .exited(0))
        guard let datagram = try server.receive() else {
            Issue.record("the datagram is missing")
            return
        }
        #expect(datagram.sender.pid == starting.pid)
    }

    @Test("a datagram at the limit arrives whole; the descriptors of a larger one are closed")
    func tooLarge() throws {
        let server = try DatagramSocket(at: path)
        let client = try Client(to: path)
        let file = try scratch.file("passed")
        let passed = try Descriptor.open(file, O_RDONLY)
        for size in [4096, 4097, 100_000] {
            #expect(client.send([UInt8](repeating: 7, count: size), descriptors: [passed.raw, passed.raw]) == 0)
            guard let datagram = try server.receive() else {
                Issue.record("a datagram is missing")
                return
            }
            #expect(datagram.bytes.count == 4096)
            #expect(datagram.isTooLarge == (size > 4096))
            #expect(datagram.descriptors.count == (size > 4096 ? 0 : 2))
            try eventually("the others are closed") { try openCount(of: file) == (size > 4096 ? 1 : 3) }
        }
        try eventually("all are closed") { try openCount(of: file) == 1 }
    }

    @Test("descriptors are close-on-exec, and closed unless they are taken", arguments: [(1, 1), (253, 1), (250, 10)])
    func descriptors(count: Int, messages: Int) throws {
        let server = try DatagramSocket(at: path)
        let client = try Client(to: path)
        let file = try scratch.file("passed")
        let passed = try Descriptor.open(file, O_RDONLY)
        let many = [Int32](repeating: passed.raw, count: count)
        #expect(client.send([1], descriptors: many, messages: messages) == 0)
        if var datagram = try server.receive() {
            #expect(datagram.descriptors.count == count)
            #expect(try openCount(of: file) == count + 1)
            if let taken = datagram.descriptors.takeFirst() {
                #expect(fcntl(taken.raw, F_GETFD) == FD_CLOEXEC)
                #expect(datagram.descriptors.count == count - 1)
            }
            try eventually("the descriptor that was taken is closed") { try openCount(of: file) == count }
        } else {
            Issue.record("the datagram is missing")
        }
        try eventually("all are closed") { try openCount(of: file) == 1 }
    }

    @Test(
        "the descriptors of datagrams that were not read are closed by the socket's closer, not by the thread that drops it"
    )
    func unread() throws {
        // A process that another test forks meanwhile would have the same sockets.
        try inOwnProcess {
            func drop(_ server: consuming DatagramSocket) {}
            let server = try DatagramSocket(at: path)
            let closer = server.closer
            let client = try Client(to: path)
            let (writer, reader) = try #require(lingeringConnection())
            #expect(client.send([1], descriptors: [writer]) == 0)
            // The datagram has the last one now.
            close(writer)
            drop(server)
            #expect(closer.pending == 1)
            close(reader)
            while closer.pending > 0 { poll(nil, 0, 1) }
        }
    }

    @Test("if this process may open no more descriptors, the descriptors that did arrive are closed")
    func descriptorLimit() throws {
        try inOwnProcess {
            let scratch = try Scratch()
            let server = try DatagramSocket(at: scratch.path + "/notify")
            let client = try Client(to: scratch.path + "/notify")
            let passed = try Descriptor.open(try scratch.file("passed"), O_RDONLY)
            #expect(client.send([1], descriptors: [Int32](repeating: passed.raw, count: 200)) == 0)
            let before = try folderNames("/proc/self/fd").count
            var limit = rlimit()
            getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            let whole = limit
            limit.rlim_cur = rlim_t(before + 50)
            setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
            do {
                guard let datagram = try server.receive() else { throw SystemError(call: "recvmsg", errno: EAGAIN) }
                limit = whole
                setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
                #expect(datagram.lostDescriptors == true)
                #expect(datagram.descriptors.count == 0)
                #expect(datagram.bytes == [1])
            }
            try eventually("they are closed") { try folderNames("/proc/self/fd").count < before + 20 }
        }
    }

    @Test("a full queue stops the sender, and every accepted datagram arrives")
    func flood() throws {
        let server = try DatagramSocket(at: path)
        let client = try Client(to: path)
        var sent = 0
        var received = 0
        for attempt in 0..<1000 {
            let error = client.send([UInt8](repeating: 1, count: 100))
            if error == 0 { sent += 1 } else { #expect(error == EAGAIN) }
            if attempt % 3 == 0, try server.receive() != nil { received += 1 }
        }
        while try server.receive() != nil { received += 1 }
        #expect(received == sent)
        #expect(sent > 100)
    }

    @Test("the socket's file has the requested mode and owner, and replaces a stale socket but no other file")
    func file() throws {
        let server = try DatagramSocket(at: path, mode: 0o620, owner: geteuid() == 0 ? Owner(uid: 12, gid: 34) : nil)
        _ = server.descriptor
        var about = stat()
        #expect(lstat(path, &about) == 0)
        #expect(about.st_mode == S_IFSOCK | 0o620)
        if geteuid() == 0 { #expect(about.st_uid == 12 && about.st_gid == 34) }
        let again = try DatagramSocket(at: path)
        #expect(try Client(to: path).send([1]) == 0)
        #expect(try again.receive() != nil)
        try removeFile(at: path)
        #expect(access(path, F_OK) != 0)

        let plain = try scratch.file("plain")
        #expect(throws: SystemError(call: "bind", errno: EEXIST, path: plain)) { _ = try DatagramSocket(at: plain) }
        let long = scratch.path + "/" + String(repeating: "x", count: 108)
        #expect(throws: SystemError(call: "bind", errno: ENAMETOOLONG, path: long)) { _ = try DatagramSocket(at: long) }
    }

    @Test("the mode of the socket's file does not depend on the umask")
    func umask() throws {
        try inOwnProcess {
            let scratch = try Scratch()
            Glibc.umask(0)
            let server = try DatagramSocket(at: scratch.path + "/notify")
            var about = stat()
            #expect(lstat(scratch.path + "/notify", &about) == 0)
            _ = server.descriptor
            #expect(about.st_mode == S_IFSOCK | 0o600)
        }
    }

    @Test("of several descriptors the last one can be kept; the others are closed", arguments: [1, 2, 7])
    func keepLast(count: Int) throws {
        let server = try DatagramSocket(at: path)
        let client = try Client(to: path)
        let file = try scratch.file("first")
        let last = try scratch.file("last")
        let first = try Descriptor.open(file, O_RDONLY)
        let kept = try Descriptor.open(last, O_RDONLY)
        let many = [Int32](repeating: first.raw, count: count - 1) + [kept.raw]
        #expect(client.send([1], descriptors: many) == 0)
        if var datagram = try server.receive() {
            #expect(datagram.descriptors.count == count)
            datagram.descriptors.keepLast()
            #expect(datagram.descriptors.count == 1)
            try eventually("the others are closed") { try openCount(of: file) == 1 }
            #expect(try openCount(of: last) == 2)
            if let taken = datagram.descriptors.takeFirst() {
                var (one, other) = (Glibc.stat(), Glibc.stat())
                let results = [fstat(taken.raw, &one), fstat(kept.raw, &other)]
                #expect(results == [0, 0] && one.st_ino == other.st_ino)
            }
            datagram.descriptors.keepLast()
            #expect(datagram.descriptors.count == 0)
        } else {
            Issue.record("the datagram is missing")
        }
    }
}
