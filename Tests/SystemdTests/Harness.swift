import Glibc
import Posix
import Systemd
import TestKit
import Testing

/// A folder for one test, removed with its contents.
final class TemporaryFolder {
    let path: String

    init() throws {
        path = makeTemporaryFolder("greenroom-systemd")
    }

    deinit { removeTree(path) }
}

/// The longest time that a test waits, also on a slow machine. A test that reaches it fails.
let testTimeout = Duration.seconds(120)

extension EventLoop {
    /// Serves events until `condition` holds.
    /// - Returns: whether it held before the time was over.
    func serve(until condition: () -> Bool) throws -> Bool {
        let deadline = now() + testTimeout
        while !condition() {
            guard now() < deadline else { return false }
            _ = try runOnce(timeout: .milliseconds(100))
        }
        return true
    }
}

/// A blocking pipe for tests.
final class TestPipe {
    let reading: SharedDescriptor
    private(set) var writing: SharedDescriptor!

    init() throws {
        let pipe = try Pipe()
        try pipe.read.setNonBlocking(false)
        try pipe.write.setNonBlocking(false)
        reading = SharedDescriptor(try pipe.read.duplicate())
        writing = SharedDescriptor(pipe.closingRead())
    }

    func write(_ text: String) {
        if let writing { _ = Glibc.write(writing.raw, text, text.utf8.count) }
    }

    func closeWriting() { writing = nil }

    func read() -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = Glibc.read(reading.raw, &buffer, buffer.count)
        return Array(buffer.prefix(max(0, count)))
    }
}

func socketPair() throws -> (SharedDescriptor, SharedDescriptor) {
    var ends: [Int32] = [-1, -1]
    try #require(socketpair(AF_UNIX, Int32(SOCK_STREAM.rawValue), 0, &ends) == 0)
    return (SharedDescriptor(Descriptor(adopting: ends[0])), SharedDescriptor(Descriptor(adopting: ends[1])))
}

/// The sockets and pipes that this process has open, with their inodes, and `/dev/null`, for tests that run alone. The
/// Swift runtime opens and closes others (epoll, timers, files in /proc) at any time.
func openDescriptors() -> [Int32: String] {
    var result: [Int32: String] = [:]
    guard let folder = opendir("/proc/self/fd") else { return [:] }
    defer { closedir(folder) }
    while let entry = readdir(folder) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        guard let number = Int32(name), number != dirfd(folder) else { continue }
        var target = [UInt8](repeating: 0, count: 256)
        let count = target.withUnsafeMutableBytes { readlink("/proc/self/fd/\(name)", $0.baseAddress!, $0.count) }
        let what = String(decoding: target.prefix(max(0, count)), as: UTF8.self)
        if what.hasPrefix("socket:") || what.hasPrefix("pipe:") || what == "/dev/null" { result[number] = what }
    }
    return result
}

/// SplitMix64: the same numbers in each run.
struct SeededGenerator: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) {
        state = seed
    }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
        return value ^ (value >> 31)
    }
}

/// Waits until a closer has closed the descriptors that it has. It closes them in order, the end of a pipe last.
func waitUntilClosed(by closer: DescriptorCloser) throws {
    let pipe = try Pipe()
    closer.close(try pipe.write.duplicate())
    let reading = SharedDescriptor(pipe.closingWrite())
    var polled = pollfd(fd: reading.raw, events: Int16(POLLIN), revents: 0)
    let result = poll(&polled, 1, Int32(testTimeout.components.seconds) * 1000)
    withExtendedLifetime(reading) {}
    try #require(result == 1)
}
