import Glibc
package import Posix

/// Both ends of a pair of AF_UNIX sockets for datagrams that block neither.
package func makeDatagramPair() throws -> (SharedDescriptor, SharedDescriptor) {
    var ends: [Int32] = [-1, -1]
    let type = SOCK_DGRAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
    try checkErrno(socketpair(AF_UNIX, Int32(type), 0, &ends), "socketpair")
    return (SharedDescriptor(Descriptor(adopting: ends[0])), SharedDescriptor(Descriptor(adopting: ends[1])))
}
