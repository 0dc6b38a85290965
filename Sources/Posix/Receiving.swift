import CLinux
import Glibc

/// Descriptors that arrived with a message (SCM_RIGHTS). Those that are not taken are closed with it.
package struct ReceivedDescriptors: ~Copyable {
    private var numbers: [Int32]
    private let closer: DescriptorCloser

    init(adopting numbers: [Int32], closer: DescriptorCloser) {
        self.numbers = numbers
        self.closer = closer
    }

    deinit { for number in numbers { closer.close(number: number) } }

    package var count: Int { numbers.count }

    /// Removes and returns the first remaining descriptor. The message's closer closes it.
    package mutating func takeFirst() -> Descriptor? {
        numbers.isEmpty ? nil : Descriptor(adopting: numbers.removeFirst(), closer: closer)
    }

    /// Closes all but the last one.
    package mutating func keepLast() {
        for number in numbers.dropLast() { closer.close(number: number) }
        numbers = Array(numbers.suffix(1))
    }

    package mutating func closeAll() {
        for number in numbers { closer.close(number: number) }
        numbers = []
    }
}

/// One message of a socket: a datagram, or a part of a stream.
package struct ReceivedMessage: ~Copyable {
    /// Truncated to the receiver's limit if `isTruncated`. Empty at the end of a stream.
    package let bytes: [UInt8]
    /// The datagram was longer than the limit.
    package let isTruncated: Bool
    /// `nil` if the socket does not receive credentials (SO_PASSCRED).
    package let sender: PeerCredentials?
    package var descriptors: ReceivedDescriptors
    /// Not all of the descriptors arrived: this process has too many open (RLIMIT_NOFILE).
    package let lostDescriptors: Bool
}

extension Descriptor {
    /// Receives one message without blocking, with its descriptors and its sender's credentials.
    /// - Parameters:
    ///   - limit: of its bytes.
    ///   - closer: closes the descriptors that are not taken.
    /// - Returns: `nil` if there is no message now.
    package func receive(limit: Int, closer: DescriptorCloser) throws(SystemError) -> ReceivedMessage? {
        var message = clinux_message()
        var result: Int32 = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: limit) { buffer, used in
            result = clinux_receive(raw, buffer.baseAddress, limit, &message)
            used = result == 1 ? message.length : 0
        }
        if try check(result, "recvmsg") == 0 { return nil }
        let numbers = withUnsafeBytes(of: &message.descriptors) {
            Array($0.bindMemory(to: Int32.self)[..<message.descriptor_count])
        }
        return ReceivedMessage(
            bytes: bytes, isTruncated: message.truncated,
            sender: message.has_sender ? PeerCredentials(message.sender) : nil,
            descriptors: ReceivedDescriptors(adopting: numbers, closer: closer),
            lostDescriptors: message.control_truncated)
    }

    /// Sends one message without blocking.
    /// - Parameter descriptors: at most two; copies of them arrive with the message.
    /// - Returns: false if the socket's buffer is full.
    package func send(_ bytes: [UInt8], _ descriptors: [SharedDescriptor] = []) throws(SystemError) -> Bool {
        let numbers = descriptors.map(\.raw)
        return try check(clinux_send(raw, bytes, bytes.count, numbers, numbers.count), "sendmsg") == 1
    }

    /// The number of bytes that can be read now; 0 if the kernel does not report it.
    package var readableBytes: Int { Int(clinux_readable_bytes(raw)) }
}
