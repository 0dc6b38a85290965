import Glibc
import TestKit
import Testing

@testable import Linux

@Suite("What waits at a socket")
struct SocketDescriberTests {
    @Test(
        "the bytes that wait at a connection and its peer are known without the socket's lock (L50)",
        .enabled(if: !DiagnosticSocket.isSerialized, "needs Linux 6.9"))
    func describes() throws {
        let (writer, reader) = try #require(lingeringConnection())
        defer {
            close(reader)
            close(writer)
        }
        let table = try tcpSockets()
        func known(_ descriptor: Int32) throws -> (UInt64, KnownSocket) {
            var about = stat()
            try #require(fstat(descriptor, &about) == 0)
            let inode = UInt64(about.st_ino)
            return (inode, try #require(table[inode]))
        }
        let describer = SocketDescriber()
        let (inode, socket) = try known(reader)
        let description = try #require(describer.describe(inode, socket))
        var (address, size) = (sockaddr_in(), socklen_t(MemoryLayout<sockaddr_in>.size))
        withUnsafeMutablePointer(to: &address) { pointer in
            _ = pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) { getsockname(writer, $0, &size) }
        }
        #expect(description.peer == "127.0.0.1:\(UInt16(bigEndian: address.sin_port))")
        #expect(description.bytes > 0)
        // Nothing waits there, and another socket has that inode.
        let (other, empty) = try known(writer)
        #expect(describer.describe(other, empty) == nil)
        #expect(describer.describe(other, socket) == nil)
        // Each answer is read.
        #expect(describer.describe(inode, socket)?.peer == description.peer)
    }
}

/// The TCP sockets of this network namespace as a look finds them, by their inodes.
func tcpSockets() throws -> [UInt64: KnownSocket] {
    let dump = SocketDump(.tcp, at: .zero)
    while try dump.advance() {}
    return dump.table.internet.mapValues { KnownSocket(family: $0.family, identity: $0.identity) }
}
