import Glibc
package import Posix

/// Requests of sock_diag(7) that can wait for a lock, so a helper thread sends them. The kernel takes the lock of a TCP socket
/// before it reports its counters (`tcp_get_info` in net/ipv4/tcp.c). A process that has the socket can hold that lock for as
/// long as it likes: it writes to the socket from memory that a FUSE server or userfaultfd(2) provides.
package final class SocketQuestion {
    /// The requests, and after them the answers.
    private let file: SharedDescriptor
    /// Where the answers begin.
    private let answersOffset: Int

    /// - Parameter requests: messages of NETLINK_SOCK_DIAG, one after the other.
    init(_ requests: [UInt8]) throws(SystemError) {
        let file = try MemoryFile.empty("sockets")
        try writeAll(requests, to: file, path: "sockets")
        self.file = SharedDescriptor(file)
        answersOffset = (requests.count + 3) & ~3
    }

    /// Lets a helper thread ask. `bytes` of its completion is for `WorkLook.answered`.
    /// - Returns: false if the thread takes no more jobs now.
    package func submit(to thread: HelperThread, token: UInt64) throws(SystemError) -> Bool {
        try thread.diagnose(try file.descriptor.duplicate(), token: token)
    }

    /// - Parameter bytes: the size of the answers.
    func answers(_ bytes: UInt64) -> DiagnosticAnswers {
        DiagnosticAnswers(file, at: answersOffset, bytes: Int(clamping: bytes))
    }
}

/// What a helper thread has received, in pieces of some 100 sockets.
final class DiagnosticAnswers {
    private let file: SharedDescriptor
    private var offset: Int
    private let end: Int
    /// A message is shorter: the kernel puts many into a datagram of this size.
    private static let piece = 32 * 1024

    init(_ file: SharedDescriptor, at offset: Int, bytes: Int) {
        self.file = file
        self.offset = offset
        end = offset + min(bytes, Int.max - offset)
    }

    /// Returns the next messages; none at the end.
    func next() throws(SystemError) -> [DiagnosticMessage] {
        // Messages without an answer in them are skipped.
        while offset < end {
            let (number, start, size) = (file.raw, off_t(offset), min(Self.piece, end - offset))
            let bytes = try readBuffer(size, "pread", "sockets") { pread(number, $0, size, start) }
            let length = wholeMessages(bytes)
            guard length > 0 else { break }
            offset += length
            let messages = diagnosticMessages(Array(bytes[..<length]))
            if !messages.isEmpty { return messages }
        }
        offset = end
        return []
    }
}

/// Returns how many bytes the messages have of which no byte is missing, with their padding.
func wholeMessages(_ bytes: [UInt8]) -> Int {
    var offset = 0
    while let length: UInt32 = nativeNumber(bytes[offset...], at: 0), length >= 16,
        Int(length) <= bytes.count - offset
    {
        offset = min(bytes.count, offset + (Int(length) + 3) & ~3)
    }
    return offset
}
