import CSystemd
import Glibc
import Posix

/// Sends entries in journald's native protocol (systemd.io/JOURNAL_NATIVE_PROTOCOL) without blocking. sd_journal_sendv(3)
/// blocks if journald has stopped or is too slow.
final class JournalSocket {
    static let standardPath = "/run/systemd/journal/socket"

    private var sender: DatagramSender

    /// - Throws: ENAMETOOLONG for a path of more than 107 bytes; EMFILE or ENFILE without a free descriptor.
    init(path: String) throws(SystemError) {
        sender = try DatagramSender(to: path)
    }

    enum Outcome {
        case taken
        /// journald does not accept the entry, or no entry now.
        case missed
        /// No journald listens.
        case gone
    }

    func send(_ entry: [UInt8]) -> Outcome {
        switch sender.send(entry) {
        case 0: .taken
        case ENOENT, ECONNREFUSED: .gone
        default: .missed
        }
    }

    /// Appends one field: `NAME=VALUE`, or for a value of several lines its name, length and bytes.
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
