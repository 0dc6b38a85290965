import CLinux

/// The process at the other end of a socket, or the sender of a message, as the kernel reports it.
package struct PeerCredentials: Equatable, Sendable {
    /// 0 if the process is in a pid namespace that is not visible here. The process may have ended since, and its
    /// number may belong to another process.
    package let pid: Int32
    package let uid: UInt32
    package let gid: UInt32

    package init(pid: Int32, uid: UInt32, gid: UInt32) {
        self.pid = pid
        self.uid = uid
        self.gid = gid
    }

    /// What the kernel recorded when the other end connected, or listened (SO_PEERCRED, unix(7)).
    package init(ofSocket socket: borrowing Descriptor) throws(SystemError) {
        var peer = clinux_credentials()
        try check(clinux_peer_credentials(socket.raw, &peer), "getsockopt SO_PEERCRED")
        self.init(peer)
    }

    init(_ credentials: clinux_credentials) {
        self.init(pid: credentials.pid, uid: credentials.uid, gid: credentials.gid)
    }
}
