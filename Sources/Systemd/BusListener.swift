import Glibc
package import Posix

/// The listening socket of a D-Bus server, before there is a server: that of an app takes little as long as no process connects.
package struct BusListener {
    /// A process that takes it over serves the clients that have connected meanwhile.
    package let descriptor: SharedDescriptor
    private let identity: FileIdentity?
    /// Whether the socket was a previous server's.
    package let isAdopted: Bool

    /// Listens at `path`.
    /// - Parameters:
    ///   - adopted: the socket of a previous server. It is used if it listens at this path, otherwise closed.
    ///   - mode: of the socket's file.
    ///   - owner: of the socket's file; `nil`: this process.
    /// - Throws: ENAMETOOLONG for a path of more than 107 bytes; EADDRINUSE if another program listens there.
    package init(
        at path: String, adopting adopted: consuming Descriptor? = nil, mode: UInt32 = 0o600, owner: Owner? = nil
    ) throws(SystemError) {
        if let adopted, UnixSocket.listens(adopted, at: path) {
            descriptor = SharedDescriptor(adopted)
            isAdopted = true
        } else {
            descriptor = SharedDescriptor(try UnixSocket.listen(at: path, mode: mode))
            isAdopted = false
            if let owner {
                try checkErrno(fchownat(AT_FDCWD, path, owner.uid, owner.gid, AT_SYMLINK_NOFOLLOW), "chown", path)
            }
        }
        // A socket of a previous version may have another mode and a shorter backlog.
        if isAdopted {
            try checkErrno(chmod(path, mode), "chmod", path)
            try UnixSocket.setBacklog(UnixSocket.longestBacklog, of: descriptor.descriptor)
        }
        identity = FileIdentity(path)
    }

    /// Whether the file at the path is this socket.
    package func isInPlace(at path: String) -> Bool { identity != nil && identity == FileIdentity(path) }
}

/// Identifies the file at a path, so that another file at the same path is recognised.
private struct FileIdentity: Equatable {
    let device: UInt
    let inode: UInt

    init?(_ path: String) {
        var status = stat()
        guard lstat(path, &status) == 0 else { return nil }
        device = UInt(status.st_dev)
        inode = UInt(status.st_ino)
    }
}
