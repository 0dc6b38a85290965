import CLinux
import Glibc

/// The owner of a new file or folder.
package struct Owner: Equatable {
    package var uid: UInt32
    package var gid: UInt32

    package init(uid: UInt32, gid: UInt32) {
        self.uid = uid
        self.gid = gid
    }
}

/// One datagram of an app.
package struct Datagram: ~Copyable {
    /// Truncated to the socket's limit if `isTooLarge`.
    package let bytes: [UInt8]
    /// The datagram was longer than the limit; its descriptors are closed already.
    package let isTooLarge: Bool
    package let sender: PeerCredentials
    package var descriptors: ReceivedDescriptors
    /// Not all of its descriptors arrived: this process has too many open (RLIMIT_NOFILE). Those that arrived are closed.
    package let lostDescriptors: Bool
}

/// A socket with a path that receives datagrams, such as an app's NOTIFY_SOCKET.
package struct DatagramSocket: ~Copyable {
    package let descriptor: SharedDescriptor
    /// Closes the descriptors that arrive with the datagrams, and the socket: with it the kernel closes the descriptors of the
    /// datagrams that were not read.
    package let closer: DescriptorCloser

    /// systemd's NOTIFY_BUFFER_MAX, in bytes.
    package static let notifyLimit = 4096
    /// The user that unix(7) gives for a sender without credentials.
    private static let overflowUser: UInt32 = 65534

    /// Creates the socket and removes one that exists at its path.
    /// - Parameters:
    ///   - mode: sending requires write permission.
    ///   - owner: the app's user.
    ///   - closer: a new one, if none is given.
    /// - Throws: ENAMETOOLONG for a path of more than 107 bytes; EEXIST if a file of another kind exists at the path.
    package init(
        at path: String, mode: UInt32 = 0o600, owner: Owner? = nil, closer: DescriptorCloser = DescriptorCloser()
    ) throws(SystemError) {
        try path.refuseNul("bind")
        let made = Descriptor(adopting: try check(clinux_datagram_server(path, mode), "bind", path))
        if let owner {
            let changed = fchownat(AT_FDCWD, path, owner.uid, owner.gid, AT_SYMLINK_NOFOLLOW)
            try checkErrno(changed, "chown", path)
        }
        self.init(adopting: made, closer: closer)
    }

    /// Takes over a socket that a previous instance of the daemon created.
    package init(adopting descriptor: consuming Descriptor, closer: DescriptorCloser = DescriptorCloser()) {
        self.closer = closer
        self.descriptor = SharedDescriptor(descriptor, closer: closer)
    }

    /// Returns the next datagram, or `nil` if there is none now.
    package func receive() throws(SystemError) -> Datagram? {
        guard var message = try descriptor.descriptor.receive(limit: Self.notifyLimit, closer: closer) else {
            return nil
        }
        if message.isTruncated || message.lostDescriptors { message.descriptors.closeAll() }
        let unknown = PeerCredentials(pid: 0, uid: Self.overflowUser, gid: Self.overflowUser)
        return Datagram(
            bytes: message.bytes, isTooLarge: message.isTruncated, sender: message.sender ?? unknown,
            descriptors: message.descriptors, lostDescriptors: message.lostDescriptors)
    }
}

/// Sends datagrams to a socket with a path, without blocking.
package struct DatagramSender: ~Copyable {
    private let descriptor: Descriptor
    private var address: UnixAddress

    package init(to path: String) throws(SystemError) {
        let address = try UnixAddress(path)
        let type = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        let number = try checkErrno(socket(AF_UNIX, type, 0), "socket AF_UNIX")
        descriptor = Descriptor(adopting: number)
        self.address = address
    }

    /// Sends one datagram.
    /// - Returns: 0, or a positive errno: ENOENT and ECONNREFUSED if there is no receiver, EAGAIN if its queue is full.
    package mutating func send(_ bytes: [UInt8]) -> Int32 {
        let number = descriptor.raw
        let sent = address.with { sendto(number, bytes, bytes.count, Int32(MSG_NOSIGNAL), $0, $1) }
        return sent < 0 ? errno : 0
    }
}
