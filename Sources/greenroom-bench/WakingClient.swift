import Glibc
import Linux
import Posix

/// A connection to an echo server of the benchmark, or to a web server.
final class ClientConnection {
    let raw: Int32
    private static let request = [UInt8](repeating: 0x78, count: 64)

    /// Connects to a port of 127.0.0.1. An answer that does not arrive within this time is an error.
    init(port: UInt16, seconds: Int = 20) throws {
        let raw = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
        guard raw >= 0 else { throw BenchFailure("socket: error \(errno)") }
        self.raw = raw
        var timeout = timeval(tv_sec: seconds, tv_usec: 0)
        setsockopt(raw, SOL_SOCKET, SO_RCVTIMEO, &timeout, socklen_t(MemoryLayout<timeval>.size))
        guard connect(raw, to: port) == 0 else { throw BenchFailure("connect to port \(port): error \(errno)") }
    }

    deinit { close(raw) }

    func send(_ bytes: [UInt8] = ClientConnection.request) throws {
        guard Glibc.send(raw, bytes, bytes.count, Int32(MSG_NOSIGNAL)) == bytes.count else {
            throw BenchFailure("send: error \(errno)")
        }
    }

    /// Waits until the request came back.
    func receive() throws {
        var buffer = [UInt8](repeating: 0, count: 256)
        var received = 0
        while received < Self.request.count {
            let count = recv(raw, &buffer, buffer.count, 0)
            guard count > 0 else { throw BenchFailure("recv: \(count == 0 ? "end of the stream" : "error \(errno)")") }
            received += count
        }
    }

    /// Whether something has arrived, or the connection has ended.
    func isReadable(milliseconds: Int32) throws -> Bool {
        var polled = pollfd(fd: raw, events: Int16(POLLIN), revents: 0)
        return poll(&polled, 1, milliseconds) > 0
    }

    func exchange() throws {
        try send()
        try receive()
    }

    /// What arrives until the end of the stream, at most 1 MiB.
    func receiveAll() throws -> [UInt8] {
        var bytes: [UInt8] = []
        var buffer = [UInt8](repeating: 0, count: 1 << 16)
        while bytes.count < 1 << 20 {
            let count = recv(raw, &buffer, buffer.count, 0)
            guard count >= 0 else { throw BenchFailure("recv: error \(errno)") }
            if count == 0 { break }
            bytes += buffer[..<count]
        }
        return bytes
    }
}

private func loopback(_ port: UInt16) -> sockaddr_in {
    var address = sockaddr_in()
    address.sin_family = sa_family_t(AF_INET)
    address.sin_port = port.bigEndian
    address.sin_addr.s_addr = UInt32(0x7f00_0001).bigEndian
    return address
}

private func connect(_ raw: Int32, to port: UInt16) -> Int32 {
    var address = loopback(port)
    return withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            Glibc.connect(raw, $0, socklen_t(MemoryLayout<sockaddr_in>.size))
        }
    }
}

/// Ports of 127.0.0.1 that no socket has. They are below the range from which the kernel takes ports of clients.
func freePorts(_ count: Int) throws -> [UInt16] {
    var free: [UInt16] = []
    for port in UInt16(20_000)..<32_000 where free.count < count && isFree(port) { free.append(port) }
    guard free.count == count else { throw BenchFailure("\(count) free ports were not found") }
    return free
}

/// Whether a socket can be bound to this port of 127.0.0.1.
func isFree(_ port: UInt16) -> Bool {
    let raw = socket(AF_INET, Int32(SOCK_STREAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue), 0)
    guard raw >= 0 else { return false }
    defer { close(raw) }
    var address = loopback(port)
    return withUnsafePointer(to: &address) {
        $0.withMemoryRebound(to: sockaddr.self, capacity: 1) {
            bind(raw, $0, socklen_t(MemoryLayout<sockaddr_in>.size)) == 0
        }
    }
}

/// Whether a socket of 127.0.0.1 listens at the port. Nothing connects to it.
func isListening(_ port: UInt16) throws -> Bool {
    let digits = String(port, radix: 16, uppercase: true)
    let address = " 0100007F:" + String(repeating: "0", count: 4 - digits.count) + digits
    let text = String(decoding: try readFile(at: "/proc/net/tcp", limit: 64 << 20), as: UTF8.self)
    // 0A: TCP_LISTEN.
    return text.split(separator: "\n").contains { $0.contains(address + " 00000000:0000 0A ") }
}

/// Raises the number of descriptors that this process may open to its maximum.
func raiseDescriptorLimit() {
    var limit = rlimit()
    guard getrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit) == 0 else { return }
    limit.rlim_cur = limit.rlim_max
    setrlimit(__rlimit_resource_t(RLIMIT_NOFILE.rawValue), &limit)
}

/// The processor time of a process in seconds, of all its threads; 0 if it has ended.
func processorTime(of pid: Int32) -> Double {
    var clock = clockid_t()
    var time = timespec()
    guard clock_getcpuclockid(pid, &clock) == 0, clock_gettime(clock, &time) == 0 else { return 0 }
    return Double(time.tv_sec) + Double(time.tv_nsec) / 1e9
}

/// Random numbers that are the same in each run (SplitMix64).
struct SeededNumbers: RandomNumberGenerator {
    private var state: UInt64

    init(seed: UInt64) { state = seed }

    mutating func next() -> UInt64 {
        state &+= 0x9e37_79b9_7f4a_7c15
        var value = state
        value = (value ^ (value >> 30)) &* 0xbf58_476d_1ce4_e5b9
        value = (value ^ (value >> 27)) &* 0x94d0_49bb_1331_11eb
        return value ^ (value >> 31)
    }
}
