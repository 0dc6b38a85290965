import CSystemd
import Glibc

/// journald's native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL), without ever waiting: sd_journal_sendv(3) waits for a
/// journald that has stopped or is too slow, and with the caller would stand everything that it looks after.
final class JournalSocket {
    static let standardPath = "/run/systemd/journal/socket"

    private let descriptor: Int32
    private var address = sockaddr_un()

    /// `nil`: the path is too long, or there are no descriptors left.
    init?(path: String) {
        let bytes = Array(path.utf8)
        guard bytes.count <= UnixSocket.maximumPathLength else { return nil }
        address.sun_family = sa_family_t(AF_UNIX)
        withUnsafeMutableBytes(of: &address.sun_path) { $0.copyBytes(from: bytes) }
        let type = Int32(SOCK_DGRAM.rawValue) | Int32(SOCK_CLOEXEC.rawValue) | Int32(SOCK_NONBLOCK.rawValue)
        descriptor = socket(AF_UNIX, type, 0)
        if descriptor < 0 { return nil }
    }

    deinit { close(descriptor) }

    enum Outcome {
        case taken
        /// journald takes nothing now, or never this one.
        case missed
        /// Nobody listens there.
        case gone
    }

    func send(_ entry: [UInt8]) -> Outcome {
        let size = socklen_t(MemoryLayout<sockaddr_un>.size)
        let sent = withUnsafePointer(to: &address) { pointer in
            pointer.withMemoryRebound(to: sockaddr.self, capacity: 1) {
                sendto(descriptor, entry, entry.count, Int32(MSG_NOSIGNAL), $0, size)
            }
        }
        if sent >= 0 { return .taken }
        return errno == ENOENT || errno == ECONNREFUSED ? .gone : .missed
    }

    /// Appends one field: `NAME=VALUE`, or where the value has several lines its name, length and bytes.
    static func append(_ name: String, _ value: some Sequence<UInt8>, to entry: inout [UInt8]) {
        let value = Array(value)
        entry.append(contentsOf: name.utf8)
        if value.contains(UInt8(ascii: "\n")) {
            entry.append(UInt8(ascii: "\n"))
            withUnsafeBytes(of: UInt64(value.count).littleEndian) { entry.append(contentsOf: $0) }
        } else {
            entry.append(UInt8(ascii: "="))
        }
        entry.append(contentsOf: value)
        entry.append(UInt8(ascii: "\n"))
    }
}
