import Glibc
import Linux
import Testing

@Suite("Closing what strangers gave us")
struct DescriptorCloserTests {
    /// Both ends of a TCP connection that is full in one direction; closing `writer` waits for `reader` (SO_LINGER).
    private func fullConnection() throws -> (writer: Int32, reader: Int32) {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        let writer = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(listener) }
        let connected = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, size) == 0 && listen(listener, 1) == 0 && getsockname(listener, $0, &size) == 0
                    && connect(writer, $0, size) == 0
            }
        }
        try #require(connected)
        var patience = linger(l_onoff: 1, l_linger: 900)
        setsockopt(writer, SOL_SOCKET, SO_LINGER, &patience, socklen_t(MemoryLayout<linger>.size))
        let bytes = [UInt8](repeating: 1, count: 65_536)
        while send(writer, bytes, bytes.count, Int32(MSG_DONTWAIT)) > 0 {}
        return (writer, accept(listener, nil, nil))
    }

    @Test("Whoever has a descriptor closed does not wait for it, and knows that it is not closed yet")
    func lingering() throws {
        let closer = DescriptorCloser()
        let (writer, reader) = try fullConnection()
        closer.close(writer)
        #expect(closer.pending == 1)
        // The other end goes: nobody is left to wait for.
        close(reader)
        while closer.pending > 0 { poll(nil, 0, 1) }
    }

    @Test("Many are closed, and those that are left when the closer goes are, too")
    func many() throws {
        var ends: [Int32] = [-1, -1]
        var readers: [Int32] = []
        do {
            let closer = DescriptorCloser()
            for _ in 0..<200 {
                #expect(pipe(&ends) == 0)
                readers.append(ends[0])
                closer.close(ends[1])
            }
        }
        for reader in readers {
            // The end of the file comes when the last writer is closed; this waits for it.
            var byte: UInt8 = 0
            #expect(read(reader, &byte, 1) == 0)
            close(reader)
        }
    }
}
