import Glibc
import Posix
import TestKit
import Testing

@Suite("Closing descriptors on a helper thread")
struct DescriptorCloserTests {
    // Sockets that linger are made in a process of their own: a program that another test launches may inherit them for a
    // moment, and closing them would not wait then.

    @Test("a close that blocks does not block the caller, and is pending until it is done")
    func lingering() throws {
        try inOwnProcess {
            let closer = DescriptorCloser()
            let (writer, reader) = try #require(lingeringConnection())
            closer.close(Descriptor(adopting: writer))
            #expect(closer.pending == 1)
            close(reader)
            while closer.pending > 0 { poll(nil, 0, 1) }
        }
    }

    @Test("a descriptor with a closer is closed by the closer, wherever the descriptor is dropped")
    func dropped() throws {
        try inOwnProcess {
            let closer = DescriptorCloser()
            let (writer, reader) = try #require(lingeringConnection())
            do {
                let shared = SharedDescriptor(Descriptor(adopting: writer), closer: closer)
                #expect(closer.pending == 0)
                withExtendedLifetime(shared) {}
            }
            #expect(closer.pending == 1)
            close(reader)
            while closer.pending > 0 { poll(nil, 0, 1) }
        }
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

    @Test("what waits to be closed can be held for another program, and is closed if that program is not executed")
    func held() throws {
        try inOwnProcess {
            let closer = DescriptorCloser()
            let (writer, reader) = try #require(lingeringConnection())
            var ends: [Int32] = [-1, -1]
            #expect(pipe(&ends) == 0)
            closer.close(Descriptor(adopting: writer))
            // The kernel removes the number before it waits.
            while fcntl(writer, F_GETFD) >= 0 { poll(nil, 0, 1) }
            closer.close(Descriptor(adopting: ends[1]))
            #expect(Set(DescriptorCloser.holdAll()) == [writer, ends[1]])
            close(reader)
            while closer.pending > 1 { poll(nil, 0, 1) }
            #expect(fcntl(ends[1], F_GETFD) >= 0)
            DescriptorCloser.continueAll()
            var byte: UInt8 = 0
            #expect(read(ends[0], &byte, 1) == 0)
            while closer.pending > 0 { poll(nil, 0, 1) }
        }
    }

    @Test("files are closed on a thread of their own, which a socket does not hold up")
    func files() throws {
        try inOwnProcess {
            let closer = DescriptorCloser()
            let (writer, reader) = try #require(lingeringConnection())
            closer.close(Descriptor(adopting: writer))
            closer.close(Descriptor(adopting: open("/dev/null", O_RDONLY)))
            while closer.pendingFiles > 0 { poll(nil, 0, 1) }
            #expect(closer.pending == 1)
            close(reader)
            while closer.pending > 0 { poll(nil, 0, 1) }
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
            let (writer, reader) = try #require(lingeringConnection())
            closer.close(Descriptor(adopting: writer))
            // While the thread starts it blocks more: wait for all but SIGKILL, SIGSTOP and the two that libc reserves.
            while try blockedSignals() != "fffffffe7ffbfeff" { poll(nil, 0, 1) }
            close(reader)
            while try blockedSignals() != nil { poll(nil, 0, 1) }
            #expect(closer.pending == 0)
        }
    }
}
