import CSystemd
import Glibc

/// Stream sockets with a path in the file system, unix(7).
package enum UnixSocket {
    /// sun_path has 108 bytes, one of them for the NUL.
    package static let maximumPathLength = 107

    /// A listening socket (non-blocking, close-on-exec) at `path`, with this mode whatever the umask says. A socket
    /// left behind by a program that is gone is replaced; one that is in use, or another kind of file, throws.
    package static func listen(at path: String, mode: UInt32, backlog: Int32 = 64) throws(SystemdError) -> Int32 {
        let descriptor = try make(Int32(SOCK_NONBLOCK.rawValue))
        do throws(SystemdError) {
            // Until the chmod below nobody may connect who will not be allowed to: bind(2) takes the inode's mode.
            try call("fchmod", path) { fchmod(descriptor, 0o600) }
            do throws(SystemdError) {
                try bind(descriptor, path)
            } catch  where error.code == EADDRINUSE {
                try removeStale(path)
                try bind(descriptor, path)
            }
            try call("chmod", path) { chmod(path, mode) }
            try call("listen", path) { Glibc.listen(descriptor, backlog) }
        } catch {
            close(descriptor)
            throw error
        }
        return descriptor
    }

    /// Whether this descriptor is a socket that listens at `path`, and whoever connects there is heard. What lies there may
    /// be another one's by now, that has ended: then nobody would ever come by this descriptor.
    package static func listens(_ descriptor: Int32, at path: String) -> Bool {
        var isListening: Int32 = 0
        var length = socklen_t(MemoryLayout<Int32>.size)
        guard getsockopt(descriptor, SOL_SOCKET, SO_ACCEPTCONN, &isListening, &length) == 0, isListening != 0,
            boundPath(of: descriptor) == Array(path.utf8)
        else { return false }
        return isServed(path)
    }

    /// Without waiting: where too many wait already somebody listens (EAGAIN).
    private static func isServed(_ path: String) -> Bool {
        guard let descriptor = try? make(Int32(SOCK_NONBLOCK.rawValue)) else { return false }
        defer { close(descriptor) }
        do throws(SystemdError) {
            try withAddress(path) { (address, length) throws(SystemdError) in
                try call("connect", path) { Glibc.connect(descriptor, address, length) }
            }
            return true
        } catch {
            return error.code == EAGAIN
        }
    }

    private static func boundPath(of descriptor: Int32) -> [UInt8]? {
        var address = sockaddr_un()
        var length = socklen_t(MemoryLayout<sockaddr_un>.size)
        let result = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(descriptor, $0, &length) }
        }
        guard result == 0, address.sun_family == sa_family_t(AF_UNIX) else { return nil }
        return withUnsafeBytes(of: &address.sun_path) { Array($0.prefix { $0 != 0 }) }
    }

    /// A blocking, close-on-exec connection to the socket at `path`. A server that does not accept within `patience`
    /// throws EAGAIN.
    package static func connect(to path: String, patience: Duration = .seconds(5)) throws(SystemdError) -> Int32 {
        let descriptor = try make(0)
        do throws(SystemdError) {
            // connect(2) on a Unix socket waits while the backlog is full, as long as the send time-out says.
            var time = timeval(tv_sec: Int(patience.components.seconds), tv_usec: 0)
            try call("setsockopt SO_SNDTIMEO", path) {
                setsockopt(descriptor, SOL_SOCKET, SO_SNDTIMEO, &time, socklen_t(MemoryLayout<timeval>.size))
            }
            try withAddress(path) { (address, length) throws(SystemdError) in
                try call("connect", path) { Glibc.connect(descriptor, address, length) }
            }
        } catch {
            close(descriptor)
            throw error
        }
        return descriptor
    }

    private static func make(_ flags: Int32) throws(SystemdError) -> Int32 {
        let type = Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | flags
        let descriptor = socket(AF_UNIX, type, 0)
        guard descriptor >= 0 else { throw SystemdError("socket AF_UNIX", errno: errno) }
        return descriptor
    }

    private static func bind(_ descriptor: Int32, _ path: String) throws(SystemdError) {
        try withAddress(path) { (address, length) throws(SystemdError) in
            try call("bind", path) { Glibc.bind(descriptor, address, length) }
        }
    }

    /// Unlinks a socket that nobody listens on. Whoever holds one for a program that has ended (a service manager, a process
    /// that it was about to start) takes no connection.
    private static func removeStale(_ path: String) throws(SystemdError) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return }
        guard status.st_mode & S_IFMT == S_IFSOCK else {
            throw SystemdError("bind: something that is no socket is at", errno: EEXIST, path: path)
        }
        do throws(SystemdError) {
            let probe = try connect(to: path, patience: .seconds(1))
            defer { close(probe) }
            // Whoever called listen(2); 0: from outside of our pid namespace.
            let listener = try PeerCredentials(ofSocket: probe).pid
            if listener > 0, kill(listener, 0) < 0, errno == ESRCH {
                unlink(path)
                return
            }
        } catch  where error.code == ECONNREFUSED {
            unlink(path)
            return
        }
        throw SystemdError("bind: another program listens at", errno: EADDRINUSE, path: path)
    }

    private static func withAddress(
        _ path: String, _ body: (UnsafePointer<sockaddr>, socklen_t) throws(SystemdError) -> Void
    ) throws(SystemdError) {
        let bytes = Array(path.utf8)
        guard bytes.count <= maximumPathLength else {
            throw SystemdError(
                "a socket's path has at most \(maximumPathLength) bytes, not \(bytes.count):", errno: ENAMETOOLONG,
                path: path)
        }
        guard !bytes.isEmpty, !bytes.contains(0) else {
            throw SystemdError("a socket's path is empty or holds a NUL:", errno: EINVAL, path: path)
        }
        var address = sockaddr_un()
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let length = socklen_t(MemoryLayout<sockaddr_un>.size)
        let result = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { pointer -> Result<Void, SystemdError> in
                Result { () throws(SystemdError) in try body(pointer, length) }
            }
        }
        try result.get()
    }

    private static func call(_ name: String, _ path: String, _ body: () -> Int32) throws(SystemdError) {
        guard body() == 0 else { throw SystemdError(name, errno: errno, path: path) }
    }
}
