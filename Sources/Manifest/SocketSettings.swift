/// The sockets that the daemon holds for an app, with systemd.socket(5)'s names and defaults (L29).
package struct SocketSettings: Hashable, Sendable {
    /// In the order of the file: the app gets them in this order as descriptors 3, 4, ….
    package var all: [HeldSocket] = []
    /// `FileDescriptorName=`; `nil`: the ID of the app and `.socket`, as systemd names a socket unit.
    package var name: String?
    /// The owner of sockets in the file system; `nil`: the daemon's user and group. Without a group it is that of `user`.
    package var user: String?
    package var group: String?
    /// The mode of sockets in the file system, and of folders that are created for them.
    package var mode: UInt32 = 0o666
    package var directoryMode: UInt32 = 0o755
    /// `Backlog=`. The kernel limits it to net.core.somaxconn.
    package var backlog: UInt32 = .max
    /// `NonBlocking=`: the app gets its sockets with O_NONBLOCK.
    package var isNonBlocking = false
    /// `ReusePort=` and `FreeBind=`, of addresses of the internet.
    package var reusesPort = false
    package var isFreeBind = false
    /// `BindIPv6Only=`
    package var ipv6Only = IPv6Only.default
    /// `KeepAlive=` and `NoDelay=`, of the connections of TCP.
    package var keepsAlive = false
    package var hasNoDelay = false

    /// What a socket of IPv6 accepts.
    package enum IPv6Only: String, CaseIterable, Hashable, Sendable {
        /// As net.ipv6.bindv6only says.
        case `default`
        /// IPv6, and IPv4 if it is bound to all addresses.
        case both
        case only = "ipv6-only"
    }

    package init() {}
}

/// A socket that the daemon holds for an app.
package struct HeldSocket: Hashable, Sendable {
    package enum Kind: String, CaseIterable, Hashable, Sendable {
        case stream, datagram, sequentialPacket
    }

    package enum Address: Hashable, Sendable {
        /// All addresses of the machine: IPv6, and IPv4 as `BindIPv6Only=` says; or IPv4 if there is no IPv6.
        case port(UInt16)
        /// In dotted notation.
        case ipv4(String, UInt16)
        /// Without brackets.
        case ipv6(String, UInt16)
        /// A socket in the file system: an absolute path.
        case path(String)
        /// An abstract name, without the `@`.
        case abstract(String)
    }

    package var kind: Kind
    package var address: Address

    package init(_ kind: Kind, _ address: Address) {
        self.kind = kind
        self.address = address
    }
}

extension HeldSocket.Address: CustomStringConvertible {
    /// As manifests write it: `8080`, `127.0.0.1:80`, `[::1]:80`, `/run/app.sock`, `@name`.
    package var description: String {
        switch self {
        case .port(let port): "\(port)"
        case .ipv4(let address, let port): "\(address):\(port)"
        case .ipv6(let address, let port): "[\(address)]:\(port)"
        case .path(let path): path
        case .abstract(let name): "@" + name
        }
    }
}
