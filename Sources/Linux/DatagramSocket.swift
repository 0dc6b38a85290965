import CLinux
import Glibc

/// Who sent a datagram, as the kernel vouches for it.
package struct Sender: Equatable {
    /// 0: of a pid namespace that we cannot see. The process may have ended, and its number been given away, since.
    package var pid: Int32
    package var uid: UInt32
    package var gid: UInt32

    package init(pid: Int32, uid: UInt32, gid: UInt32) {
        self.pid = pid
        self.uid = uid
        self.gid = gid
    }
}

/// Descriptors that came with a message. Those that nobody takes are closed with it.
package struct ReceivedDescriptors: ~Copyable {
    private var numbers: [Int32]
    private let closer: DescriptorCloser

    init(adopting numbers: [Int32], closer: DescriptorCloser) {
        self.numbers = numbers
        self.closer = closer
    }

    deinit { for number in numbers { closer.close(number) } }

    package var count: Int { numbers.count }

    /// The first that is left.
    package mutating func takeFirst() -> Descriptor? {
        numbers.isEmpty ? nil : Descriptor(adopting: numbers.removeFirst())
    }

    package mutating func closeAll() {
        for number in numbers { closer.close(number) }
        numbers = []
    }
}

/// One datagram of an app.
package struct Datagram: ~Copyable {
    /// Cut off at the socket's limit if `isTooLarge`.
    package let bytes: [UInt8]
    /// The datagram was longer than the limit; its descriptors are closed already.
    package let isTooLarge: Bool
    package let sender: Sender
    package var descriptors: ReceivedDescriptors
    /// Not all of its descriptors arrived: this process has too many open (RLIMIT_NOFILE). Those that did are closed.
    package let lostDescriptors: Bool
}

/// A socket in the file system that receives datagrams, such as an app's NOTIFY_SOCKET.
package struct DatagramSocket: ~Copyable {
    package let descriptor: Descriptor
    package let path: String
    /// Closes what came with the datagrams; whoever takes a descriptor for longer closes it here, too.
    package let closer = DescriptorCloser()
    private let limit: Int

    /// systemd's NOTIFY_BUFFER_MAX.
    package static let notifyLimit = 4096

    /// Makes the socket and removes one that was left at its path.
    /// - Parameters:
    ///   - mode: who may send: writing is connecting.
    ///   - owner: the app's user.
    ///   - limit: bytes of a datagram.
    /// - Throws: ENAMETOOLONG for a path of more than 107 bytes; EEXIST where something that is no socket lies.
    package init(
        at path: String, mode: UInt32 = 0o600, owner: Owner? = nil, limit: Int = DatagramSocket.notifyLimit
    ) throws(SystemError) {
        try path.refuseNul("bind")
        let made = Descriptor(adopting: try check(clinux_datagram_server(path, mode), "bind", path))
        if let owner {
            let changed = fchownat(AT_FDCWD, path, owner.uid, owner.gid, AT_SYMLINK_NOFOLLOW)
            try checkErrno(changed, "chown", path)
        }
        self.init(adopting: made, path: path, limit: limit)
    }

    /// Takes over a socket that an earlier daemon made.
    package init(adopting descriptor: consuming Descriptor, path: String, limit: Int = DatagramSocket.notifyLimit) {
        self.descriptor = descriptor
        self.path = path
        self.limit = limit
    }

    /// The next datagram; nil when there is none now.
    package func receive() throws(SystemError) -> Datagram? {
        var about = clinux_datagram()
        var result: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, used in
            result = clinux_receive(descriptor.raw, buffer.baseAddress, limit, &about)
            used = result == 1 ? about.length : 0
        }
        try check(result, "recvmsg", path)
        if result == 0 { return nil }
        let numbers = withUnsafeBytes(of: &about.descriptors) {
            Array($0.bindMemory(to: Int32.self)[..<about.descriptor_count])
        }
        var descriptors = ReceivedDescriptors(adopting: numbers, closer: closer)
        if about.truncated || about.control_truncated { descriptors.closeAll() }
        // SO_PASSCRED makes the kernel fill them in for each sender; the overflow user is what unix(7) gives for none.
        let sender =
            about.has_sender
            ? Sender(pid: about.pid, uid: about.uid, gid: about.gid) : Sender(pid: 0, uid: 65534, gid: 65534)
        return Datagram(
            bytes: bytes, isTooLarge: about.truncated, sender: sender, descriptors: descriptors,
            lostDescriptors: about.control_truncated)
    }

    /// Removes the socket's file.
    package func unlink() throws(SystemError) { try removeFile(at: path) }
}
