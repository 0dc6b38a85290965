import Glibc
import Posix
import TestKit
import Testing

@Suite("Closing descriptors on a helper thread")
struct DescriptorCloserTests {
    /// A TCP connection whose send buffer is full. With SO_LINGER, closing `writer` blocks until `reader` is closed.
    private static func lingeringConnection() throws -> (writer: Int32, reader: Int32) {
        var address = sockaddr_in()
        address.sin_family = sa_family_t(AF_INET)
        address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
        var size = socklen_t(MemoryLayout<sockaddr_in>.size)
        let listener = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        let writer = socket(AF_INET, Int32(SOCK_STREAM.rawValue), 0)
        defer { close(listener) }
        let isConnected = withUnsafeMutablePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                bind(listener, $0, size) == 0 && listen(listener, 1) == 0 && getsockname(listener, $0, &size) == 0
                    && connect(writer, $0, size) == 0
            }
        }
        try #require(isConnected)
        var time = linger(l_onoff: 1, l_linger: 900)
        setsockopt(writer, SOL_SOCKET, SO_LINGER, &time, socklen_t(MemoryLayout<linger>.size))
        let bytes = [UInt8](repeating: 1, count: 65_536)
        while send(writer, bytes, bytes.count, Int32(MSG_DONTWAIT)) > 0 {}
        return (writer, accept(listener, nil, nil))
    }

    @Test("a close that blocks does not block the caller, and is pending until it is done")
    func lingering() throws {
        let closer = DescriptorCloser()
        let (writer, reader) = try Self.lingeringConnection()
        closer.close(Descriptor(adopting: writer))
        #expect(closer.pending == 1)
        close(reader)
        while closer.pending > 0 { poll(nil, 0, 1) }
    }

    @Test("a descriptor with a closer is closed by the closer, wherever the descriptor is dropped")
    func dropped() throws {
        let closer = DescriptorCloser()
        let (writer, reader) = try Self.lingeringConnection()
        do {
            let shared = SharedDescriptor(Descriptor(adopting: writer), closer: closer)
            #expect(closer.pending == 0)
            withExtendedLifetime(shared) {}
        }
        #expect(closer.pending == 1)
        close(reader)
        while closer.pending > 0 { poll(nil, 0, 1) }
    }

    @Test("all descriptors are closed, including those that are queued when the closer is dropped")
    func many() throws {
        var ends: [Int32] = [-1, -1]
        var readers: [Int32] = []
        do {
            let closer = DescriptorCloser()
            for _ in 0..<200 {
                #expect(pipe(&ends) == 0)
                readers.append(ends[0])
                closer.close(Descriptor(adopting: ends[1]))
            }
        }
        for reader in readers {
            // Blocks until the last writer is closed.
            var byte: UInt8 = 0
            #expect(read(reader, &byte, 1) == 0)
            close(reader)
        }
    }

    @Test("the thread blocks every signal, and exists only while there are jobs")
    func thread() throws {
        try inOwnProcess {
            /// The signals that the thread blocks; `nil` without a thread.
            func blockedSignals() throws -> String? {
                for thread in entries(of: "/proc/self/task") {
                    let path = "/proc/self/task/\(thread)/status"
                    let bytes = try readFileIfPresent(at: path, limit: 65536) ?? []
                    let lines = String(decoding: bytes, as: UTF8.self).split(separator: "\n")
                    guard lines.contains("Name:\tcloser") else { continue }
                    return lines.first { $0.hasPrefix("SigBlk:\t") }.map { String($0.dropFirst(8)) }
                }
                return nil
            }
            let closer = DescriptorCloser()
            #expect(try blockedSignals() == nil)
            let (writer, reader) = try DescriptorCloserTests.lingeringConnection()
            closer.close(Descriptor(adopting: writer))
            // While the thread starts it blocks more: wait for all but SIGKILL, SIGSTOP and the two that libc reserves.
            while try blockedSignals() != "fffffffe7ffbfeff" { poll(nil, 0, 1) }
            close(reader)
            while try blockedSignals() != nil { poll(nil, 0, 1) }
            #expect(closer.pending == 0)
        }
    }
}
