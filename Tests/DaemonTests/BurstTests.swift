import Control
import Glibc
import Posix
import Systemd
import TestKit
import Testing

/// Many clients at the same time.
@Suite("A burst of clients", .serialized)
struct BurstTests {
    private static let clients = 1000
    /// A sixteenth of the daemon's open files is the number of its connections, and seven eighths of these are for one user.
    static let isPossible = raiseDescriptorLimit() * 7 / 8 / 16 > UInt64(clients)
    static let requirement: Comment = "the hard limit of open files (ulimit -Hn) is lower than 18,400"

    @Test(
        "1,000 clients that connect at the same time are all answered while all of them are connected",
        .enabled(if: BurstTests.isPossible, BurstTests.requirement))
    func burst() throws {
        let daemon = try TestDaemon(["photos": TestDaemon.manifest("")])
        let path = daemon.runtime + "/bus"
        let request = BareBus.handshake + BareBus.pingCall()
        var sockets: [SharedDescriptor] = []
        for _ in 0..<Self.clients {
            let socket = SharedDescriptor(try UnixSocket.connect(to: path))
            #expect(send(socket.raw, request, request.count, Int32(MSG_NOSIGNAL)) == request.count)
            sockets.append(socket)
        }
        for socket in sockets {
            let answer = try Self.receive(BareBus.handshakeAnswer + 16, from: socket)
            let reply = answer.dropFirst(BareBus.handshakeAnswer)
            // Little endian, METHOD_RETURN.
            #expect(Array(reply.prefix(2)) == [0x6c, 2])
        }
        let log = TestDaemon.text(of: daemon.root + "/log")
        #expect(!log.contains("was refused"), "\(log.suffix(2000))")
        #expect(try daemon.state("photos") == "notRunning")
        withExtendedLifetime(sockets) {}
    }

    /// Reads until so many bytes have arrived, or the connection ends.
    private static func receive(_ length: Int, from socket: SharedDescriptor) throws -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 256)
        while bytes.count < length {
            waitForReadable([socket])
            let count = recv(socket.raw, &buffer, buffer.count, Int32(MSG_DONTWAIT))
            guard count > 0 else { break }
            bytes += buffer[..<count]
        }
        return bytes
    }
}
