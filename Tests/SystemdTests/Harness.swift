import Glibc
import Systemd
import Testing

/// A folder of its own for a test, removed with all that is in it.
final class TemporaryFolder {
    let path: String

    init() throws {
        var template = Array("/tmp/greenroom-systemd-XXXXXX".utf8CString)
        try #require(mkdtemp(&template) != nil)
        path = template.withUnsafeBufferPointer { String(cString: $0.baseAddress!) }
    }

    deinit {
        if let folder = opendir(path) {
            while let entry = readdir(folder) {
                let name = withUnsafePointer(to: &entry.pointee.d_name) {
                    $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
                }
                unlink("\(path)/\(name)")
            }
            closedir(folder)
        }
        rmdir(path)
    }
}

/// What the tests wait for at most, however slow the machine: reaching it is a failure.
let patience = Duration.seconds(30)

extension EventLoop {
    /// Serves events until `condition` holds.
    /// - Returns: whether it held before the patience was over.
    func serve(until condition: () -> Bool) throws -> Bool {
        let deadline = now() + patience
        while !condition() {
            guard now() < deadline else { return false }
            _ = try runOnce(timeout: .milliseconds(100))
        }
        return true
    }
}

/// A pipe that closes its ends.
final class Pipe {
    private(set) var reading: Int32
    private(set) var writing: Int32

    init() throws {
        var ends: [Int32] = [-1, -1]
        try #require(pipe(&ends) == 0)
        (reading, writing) = (ends[0], ends[1])
        _ = fcntl(reading, F_SETFD, FD_CLOEXEC)
        _ = fcntl(writing, F_SETFD, FD_CLOEXEC)
    }

    func write(_ text: String) {
        _ = Glibc.write(writing, text, text.utf8.count)
    }

    func closeWriting() {
        if writing >= 0 { close(writing) }
        writing = -1
    }

    func read() -> [UInt8] {
        var buffer = [UInt8](repeating: 0, count: 65_536)
        let count = Glibc.read(reading, &buffer, buffer.count)
        return Array(buffer.prefix(max(0, count)))
    }

    deinit {
        closeWriting()
        close(reading)
    }
}

/// How many descriptors this process has open, for tests that run alone.
func openDescriptors() -> Set<Int32> {
    var result: Set<Int32> = []
    guard let folder = opendir("/proc/self/fd") else { return [] }
    while let entry = readdir(folder) {
        let name = withUnsafePointer(to: &entry.pointee.d_name) {
            $0.withMemoryRebound(to: CChar.self, capacity: 256) { String(cString: $0) }
        }
        if let number = Int32(name), number != dirfd(folder) { result.insert(number) }
    }
    closedir(folder)
    return result
}

/// SplitMix64: the same numbers at each run.
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
