import CLinux
import Glibc

/// Stream and message sockets with a path in the file system (unix(7)).
package enum UnixSocket {
    /// sun_path has 108 bytes, one of them for the NUL.
    package static let maximumPathLength = 107
    /// Connections that wait for `accept`. The kernel lowers the number to `net.core.somaxconn`, 4096 by default.
    package static let longestBacklog: Int32 = 4096

    package enum Kind: Sendable {
        case stream
        /// Messages, in order, over a connection (SOCK_SEQPACKET).
        case messages

        fileprivate var type: Int32 { Int32(self == .stream ? SOCK_STREAM.rawValue : SOCK_SEQPACKET.rawValue) }
    }

    /// Creates a listening socket at `path`, non-blocking and close-on-exec.
    ///
    /// A socket that a process left there when it ended is replaced. One that is in use, or a file of another kind, throws.
    /// - Parameter mode: of the socket's file, independent of the umask.
    package static func listen(
        at path: String, mode: UInt32, kind: Kind = .stream, backlog: Int32 = UnixSocket.longestBacklog
    ) throws(SystemError) -> Descriptor {
        let socket = try make(SOCK_NONBLOCK, kind)
        // bind(2) gives the file the socket's mode: no other user can connect before the chmod below.
        try checkErrno(fchmod(socket.raw, 0o600), "fchmod", path)
        do throws(SystemError) {
            try bind(socket, path)
        } catch  where error.errno == EADDRINUSE {
            try removeStale(path, kind)
            try bind(socket, path)
        }
        try checkErrno(chmod(path, mode), "chmod", path)
        try checkErrno(Glibc.listen(socket.raw, backlog), "listen", path)
        return socket
    }

    /// Sets how many connections of a listening socket can wait for `accept`.
    package static func setBacklog(_ backlog: Int32, of socket: borrowing Descriptor) throws(SystemError) {
        try checkErrno(Glibc.listen(socket.raw, backlog), "listen")
    }

    /// Whether `socket` listens at `path`, and connections to `path` reach a listener. The file at the path may belong to
    /// another socket by now, whose listener has ended.
    package static func listens(_ socket: borrowing Descriptor, at path: String) -> Bool {
        var isListening: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(socket.raw, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &length) == 0, isListening != 0,
            boundPath(of: socket) == Array(path.utf8)
        else { return false }
        return isServed(path)
    }

    /// Tries a connection without blocking. EAGAIN: the backlog of a listener is full.
    private static func isServed(_ path: String) -> Bool {
        do throws(SystemError) {
            let socket = try make(SOCK_NONBLOCK)
            try connect(socket, path)
            return true
        } catch {
            return error.errno == EAGAIN
        }
    }

    private static func boundPath(of socket: borrowing Descriptor) -> [UInt8]? {
        var address = sockaddr_un()
        var length = socklen_t(MemoryLayout<sockaddr_un>.size)
        let number = socket.raw
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(number, $0, &length) }
        }
        guard result == 0, address.sun_family == sa_family_t(AF_UNIX) else { return nil }
        return withUnsafeBytes(of: &address.sun_path) { Array($0.prefix { $0 != 0 }) }
    }

    /// Connects to the socket at `path`. The connection is blocking and close-on-exec.
    /// - Throws: EAGAIN if the listener does not accept within `timeout` (whole seconds).
    package static func connect(
        to path: String, kind: Kind = .stream, timeout: Duration = .seconds(5)
    ) throws(SystemError) -> Descriptor {
        let socket = try make(nil, kind)
        // connect(2) on a Unix socket blocks while the backlog is full, for at most the send timeout.
        var time = timeval(tv_sec: Int(timeout.components.seconds), tv_usec: 0)
        try checkErrno(
            setsockopt(socket.raw, SOL_SOCKET, SO_SNDTIMEO, &time, socklen_t(MemoryLayout<timeval>.size)),
            "setsockopt SO_SNDTIMEO", path)
        try connect(socket, path)
        return socket
    }

    /// The result of `accept`.
    package enum Acceptance: ~Copyable {
        /// Non-blocking and close-on-exec.
        case connection(Descriptor)
        /// No connection waits, or the one that waited is gone.
        case none
        /// This process or the machine has no descriptors left (EMFILE, ENFILE); the connection stays in the backlog.
        case outOfDescriptors
    }

    /// Accepts one connection.
    package static func accept(on listener: borrowing Descriptor) -> Acceptance {
        let result = clinux_accept(listener.raw)
        if result >= 0 { return .connection(Descriptor(adopting: result)) }
        return result == -EMFILE || result == -ENFILE ? .outOfDescriptors : .none
    }

    private static func make(_ flag: __socket_type?, _ kind: Kind = .stream) throws(SystemError) -> Descriptor {
        let type = kind.type | Int32(SOCK_CLOEXEC.rawValue) | Int32(flag?.rawValue ?? 0)
        return Descriptor(adopting: try checkErrno(socket(AF_UNIX, type, 0), "socket AF_UNIX"))
    }

    private static func bind(_ socket: borrowing Descriptor, _ path: String) throws(SystemError) {
        let number = socket.raw
        try withAddress(path, "bind") { Glibc.bind(number, $0, $1) }
    }

    private static func connect(_ socket: borrowing Descriptor, _ path: String) throws(SystemError) {
        let number = socket.raw
        try withAddress(path, "connect") { Glibc.connect(number, $0, $1) }
    }

    /// Unlinks a socket without a listener. A process that only holds the descriptor of a process that has ended (a service
    /// manager, a process on its way to exec) accepts no connections.
    private static func removeStale(_ path: String, _ kind: Kind) throws(SystemError) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw SystemError(call: "bind: a file that is not a socket is at", errno: EEXIST, path: path)
        }
        do throws(SystemError) {
            let probe = try connect(to: path, kind: kind, timeout: .seconds(1))
            // The process that called listen(2); 0: outside of this pid namespace.
            let listener = try PeerCredentials(ofSocket: probe).pid
            if listener > 0, kill(listener, 0) < 0, errno == ESRCH {
                unlink(path)
                return
            }
        } catch  where error.errno == ECONNREFUSED {
            unlink(path)
            return
        }
        throw SystemError(call: "bind: another program listens at", errno: EADDRINUSE, path: path)
    }

    private static func withAddress(
        _ path: String, _ call: String, _ body: (UnsafePointer<sockaddr>, socklen_t) -> Int32
    ) throws(SystemError) {
        var address = try UnixAddress(path)
        try checkErrno(address.with(body), call, path)
    }
}

/// The address of a Unix socket with a path.
struct UnixAddress {
    private var address = sockaddr_un()

    /// - Throws: ENAMETOOLONG for more than `UnixSocket.maximumPathLength` bytes, EINVAL for an empty path or a NUL.
    init(_ path: String) throws(SystemError) {
        let bytes = Array(path.utf8)
        guard bytes.count <= UnixSocket.maximumPathLength else {
            throw SystemError(
                call: "a socket's path has at most \(UnixSocket.maximumPathLength) bytes, not \(bytes.count):",
                errno: ENAMETOOLONG, path: path)
        }
        guard !bytes.isEmpty, !bytes.contains(0) else {
            throw SystemError(call: "a socket's path is empty or contains a NUL:", errno: EINVAL, path: path)
        }
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
    }

    /// Calls a C function with the address and its length.
    mutating func with<Result>(_ body: (UnsafePointer<sockaddr>, socklen_t) -> Result) -> Result {
        withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                body($0, socklen_t(MemoryLayout<sockaddr_un>.size))
            }
        }
    }
}
