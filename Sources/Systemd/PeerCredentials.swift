import CSystemd
import Glibc

/// Who is at the other end of a socket, as the kernel noted it when the connection was made (SO_PEERCRED, unix(7)).
package struct PeerCredentials: Equatable, Sendable {
    package let pid: Int32
    package let uid: UInt32
    package let gid: UInt32

    package init(pid: Int32, uid: UInt32, gid: UInt32) {
        self.pid = pid
        self.uid = uid
        self.gid = gid
    }

    /// The other end of a connected Unix socket.
    package init(ofSocket descriptor: Int32) throws(SystemdError) {
        var pid: Int32 = 0
        var uid: UInt32 = 0
        var gid: UInt32 = 0
        guard csystemd_peer_credentials(descriptor, &pid, &uid, &gid) == 0 else {
            throw SystemdError("getsockopt SO_PEERCRED", errno: errno)
        }
        self.init(pid: pid, uid: uid, gid: gid)
    }
}
