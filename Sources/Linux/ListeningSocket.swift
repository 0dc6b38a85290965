import CLinux
import Glibc
package import Posix

/// A socket that this process holds for another program: bound, and listening if it accepts connections.
package final class ListeningSocket {
    package let type: ListenType
    package let address: ListenAddress
    package let descriptor: SharedDescriptor
    /// Identifies the socket among all of the machine, in /proc/PID/fd too.
    package let inode: UInt64
    /// The file of a socket with a path; `nil`: it has none, or it is another socket's by now.
    private var file: FileIdentity?

    /// How a socket is made.
    package struct Settings: Equatable {
        /// Of the file of a socket with a path.
        package var mode: UInt32 = 0o666
        /// Of its folders that do not exist yet.
        package var directoryMode: UInt32 = 0o755
        /// Of the file; `nil`: this process's user and group.
        package var owner: Owner?
        /// How many connections can wait. The kernel lowers it to net.core.somaxconn.
        package var backlog: UInt32 = .max
        /// How an address of the internet is bound.
        package var binding = Binding()
        /// SO_KEEPALIVE and TCP_NODELAY of the connections of a TCP socket, until the program changes them.
        package var keepsAlive = false
        package var hasNoDelay = false

        package init() {}
    }

    /// What bind(2) depends on.
    package struct Binding: Equatable {
        /// IPV6_V6ONLY; `nil`: net.ipv6.bindv6only decides.
        package var isOnlyIPv6: Bool?
        /// SO_REUSEPORT: other sockets of the same user can have the port, too.
        package var reusesPort = false
        /// IP_FREEBIND: the machine need not have the address.
        package var isFree = false

        package init() {}

        func options(_ type: ListenType, mode: UInt32 = 0) -> clinux_bind_options {
            clinux_bind_options(
                type: type.number, mode: mode, v6only: isOnlyIPv6.map { $0 ? 1 : 0 } ?? -1, reuses_port: reusesPort,
                is_free: isFree)
        }
    }

    /// Binds a socket, as systemd does: non-blocking and close-on-exec. A file that a socket has left at the path is replaced.
    /// - Throws: what cannot be done with the address, the call, and why.
    package init(_ type: ListenType, _ address: ListenAddress, _ settings: Settings) throws(SystemError) {
        let bound: Descriptor
        if let path = address.path {
            let folder = try SocketFolder(of: path, creating: settings.directoryMode)
            do throws(SystemError) {
                bound = try Self.bind(type, address, settings)
            } catch  where error.errno == EADDRINUSE {
                try folder.removeStale(type, address)
                bound = try Self.bind(type, address, settings)
            }
            file = try folder.own(settings.owner)
        } else {
            bound = try Self.bind(type, address, settings)
        }
        inode = clinux_inode(bound.raw)
        self.type = type
        self.address = address
        descriptor = SharedDescriptor(bound)
        try listen(settings)
    }

    /// Takes over a socket that an earlier process has bound.
    /// - Returns: `nil` if it is another socket. It is closed then.
    package init?(_ type: ListenType, _ address: ListenAddress, adopting socket: SharedDescriptor) {
        inode = clinux_inode(socket.raw)
        self.type = type
        self.address = address
        descriptor = socket
        if state == .other { return nil }
        file = address.path.flatMap { FileIdentity(ofSocketAt: $0) }
    }

    /// The first address that the kernel has.
    private static func bind(
        _ type: ListenType, _ address: ListenAddress, _ settings: Settings
    ) throws(SystemError) -> Descriptor {
        var failure = SystemError(call: "bind", errno: EADDRNOTAVAIL, path: address.description)
        var options = settings.binding.options(type, mode: settings.mode)
        for var candidate in try address.candidates() {
            var made = clinux_bound_socket()
            let result = clinux_bind(&candidate, &options, &made)
            if result == 0 { return Descriptor(adopting: made.descriptor) }
            let call = made.call.map { String(cString: $0) } ?? "bind"
            failure = SystemError(call: call, errno: -result, path: address.description)
            // The kernel has no IPv6. `BindIPv6Only=ipv6-only` opens no port for IPv4 then.
            guard result == -EAFNOSUPPORT || result == -EADDRNOTAVAIL, !(settings.binding.isOnlyIPv6 ?? false) else {
                throw failure
            }
        }
        throw failure
    }

    private var acceptsConnections: Bool { type != .datagram }

    /// Sets how many connections can wait, and what they inherit: at the start, and because a process that shares the socket may
    /// have changed it.
    package func listen(_ settings: Settings) throws(SystemError) {
        guard acceptsConnections else { return }
        try check(clinux_listen(descriptor.raw, settings.backlog), "listen", address.description)
        guard address.isInternet else { return }
        try check(
            clinux_set_connection_options(descriptor.raw, settings.keepsAlive, settings.hasNoDelay), "setsockopt",
            address.description)
    }

    /// Whether the socket was bound as these settings say. If not, it has to be made again.
    package func isBound(as binding: Binding) -> Bool {
        var options = binding.options(type)
        return clinux_is_bound_with(descriptor.raw, &options)
    }

    /// Gives the socket and its file other settings.
    package func apply(_ settings: Settings) throws(SystemError) {
        try listen(settings)
        guard let path = address.path, isFileInPlace else { return }
        try SocketFolder(of: path, creating: settings.directoryMode).set(settings.mode, settings.owner)
    }

    // MARK: State

    package enum State {
        case usable
        /// It is not the socket of this address.
        case other
        /// A process that shares it has shut it down or connected it (shutdown(2), connect(2)).
        case shutDown
    }

    package var state: State {
        guard let candidates = try? address.candidates() else { return .other }
        var found = State.other
        for var candidate in candidates {
            switch clinux_socket_state(descriptor.raw, &candidate, type.number) {
            case CLINUX_SOCKET_USABLE: return .usable
            case CLINUX_SOCKET_SHUT_DOWN: found = .shutDown
            default: break
            }
        }
        return found
    }

    /// Whether a client that uses the path reaches the socket. True for a socket without a path.
    package var isFileInPlace: Bool {
        guard let path = address.path else { return true }
        return file != nil && file == FileIdentity(ofSocketAt: path)
    }

    /// Removes the file of the socket, unless another file has its path.
    package func removeFile() {
        guard let path = address.path, isFileInPlace else { return }
        unlink(path)
        file = nil
    }

    /// A process that accepts connections waits for them, unless it changes that (systemd.exec(5), `NonBlocking=no`). The flag
    /// belongs to the socket, not to the descriptor.
    package func setNonBlocking(_ isNonBlocking: Bool) throws(SystemError) {
        try descriptor.descriptor.setNonBlocking(isNonBlocking)
    }

    /// How many bytes the first datagram has; 0 if that is not known, and for connections.
    package var waitingBytes: UInt64 {
        acceptsConnections ? 0 : UInt64(clamping: clinux_readable_bytes(descriptor.raw))
    }

    /// Whether a connection or a datagram waits.
    package var isReadable: Bool {
        var polled = pollfd(fd: descriptor.raw, events: Int16(POLLIN), revents: 0)
        return poll(&polled, 1, 0) > 0 && polled.revents & Int16(POLLIN) != 0
    }

    /// Resets the connection that has waited longest. The socket has to be non-blocking.
    /// - Returns: whether another one may wait.
    package func rejectConnection() throws(SystemError) -> Bool {
        guard acceptsConnections else { return false }
        return try check(clinux_reject(descriptor.raw), "accept", address.description) > 0
    }
}

/// The file of a socket.
struct FileIdentity: Equatable {
    private var device: UInt64
    private var inode: UInt64

    /// `nil` if the file is not a socket.
    private init?(_ about: Glibc.stat) {
        guard about.st_mode & S_IFMT == S_IFSOCK else { return nil }
        device = UInt64(about.st_dev)
        inode = UInt64(about.st_ino)
    }

    init?(of descriptor: borrowing Descriptor) {
        var about = Glibc.stat()
        guard fstat(descriptor.raw, &about) == 0 else { return nil }
        self.init(about)
    }

    init?(ofSocketAt path: String) {
        var about = Glibc.stat()
        guard lstat(path, &about) == 0 else { return nil }
        self.init(about)
    }
}
