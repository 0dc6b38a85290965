import CLinux
import Glibc
import Posix

/// What a socket is that connections or datagrams arrive at.
package enum ListenType: Sendable {
    case stream, datagram, sequentialPacket

    var number: Int32 {
        switch self {
        case .stream: Int32(SOCK_STREAM.rawValue)
        case .datagram: Int32(SOCK_DGRAM.rawValue)
        case .sequentialPacket: Int32(SOCK_SEQPACKET.rawValue)
        }
    }
}

/// The address that a socket is bound to.
package enum ListenAddress: Hashable, Sendable, CustomStringConvertible {
    /// All addresses of the machine: IPv6, and IPv4 as `IPv6Only` says; or IPv4 if the kernel has no IPv6.
    case port(UInt16)
    case ipv4(String, UInt16)
    /// Without brackets, perhaps with an interface: `fe80::1%eth0`.
    case ipv6(String, UInt16)
    /// A socket in the file system.
    case path(String)
    /// An abstract name, without the `@`.
    case abstract(String)

    /// `8080`, `127.0.0.1:80`, `[::1]:80`, `/run/app.sock`, `@name`.
    package var description: String {
        switch self {
        case .port(let port): "\(port)"
        case .ipv4(let address, let port): "\(address):\(port)"
        case .ipv6(let address, let port): "[\(address)]:\(port)"
        case .path(let path): path
        case .abstract(let name): "@" + name
        }
    }

    /// Whether connections to it are of TCP, and datagrams of UDP.
    package var isInternet: Bool {
        switch self {
        case .port, .ipv4, .ipv6: true
        case .path, .abstract: false
        }
    }

    package var path: String? { if case .path(let path) = self { path } else { nil } }

    /// The addresses to try in the kernel's form, the first one first.
    /// - Throws: EINVAL for an address of another form, ENODEV for an unknown interface, ENAMETOOLONG.
    func candidates() throws(SystemError) -> [clinux_address] {
        switch self {
        case .port(let port): [try internet(AF_INET6, nil, port), try internet(AF_INET, nil, port)]
        case .ipv4(let text, let port): [try internet(AF_INET, text, port)]
        case .ipv6(let text, let port): [try internet(AF_INET6, text, port)]
        case .path(let path): [try local(path, isAbstract: false)]
        case .abstract(let name): [try local(name, isAbstract: true)]
        }
    }

    private func internet(_ domain: Int32, _ text: String?, _ port: UInt16) throws(SystemError) -> clinux_address {
        var address = clinux_address()
        let result =
            if let text {
                text.withCString { clinux_internet_address(&address, domain, $0, port) }
            } else {
                clinux_internet_address(&address, domain, nil, port)
            }
        try check(result, "address", description)
        return address
    }

    private func local(_ name: String, isAbstract: Bool) throws(SystemError) -> clinux_address {
        var address = clinux_address()
        let result = name.withCString { clinux_unix_address(&address, $0, name.utf8.count, isAbstract) }
        if result == -ENAMETOOLONG {
            throw SystemError(
                call: "the path or name of a socket has at most \(UnixSocket.maximumPathLength) bytes, not "
                    + "\(name.utf8.count):", errno: ENAMETOOLONG, path: description)
        }
        try check(result, "address", description)
        return address
    }
}
