import Glibc
import Posix

/// Reads a peer's socket and passes the bytes on to libsystemd through a pipe, so that no descriptor of the peer reaches
/// libsystemd.
///
/// libsystemd accepts descriptors from a peer whatever was negotiated, and closes them on the loop's thread. close(2) of a
/// peer's descriptor can block for as long as the peer likes; so can close(2) of a socket with unread descriptors in it. A
/// `DescriptorCloser` closes both.
final class BusIntake {
    enum Failure: Error { case receivedDescriptors }

    /// PIPE_BUF: an empty pipe accepts this many bytes at once, whatever size the kernel gave it (pipe(7)).
    private static let portion = 4096

    /// The peer's socket; `nil` once it is closed.
    private(set) var socket: SharedDescriptor?
    /// A duplicate of the end of the pipe from which libsystemd reads.
    let reading: SharedDescriptor
    private var writing: Descriptor?
    private let closer: DescriptorCloser

    /// Takes ownership of `socket` and gives `bus` the pipe for reading and a duplicate of the socket for writing.
    init(socket: consuming Descriptor, bus: OpaquePointer, closer: DescriptorCloser) throws(SystemError) {
        let socket = SharedDescriptor(socket, closer: closer)
        let pipe = try Pipe()
        reading = SharedDescriptor(try pipe.read.duplicate())
        let output = try socket.descriptor.duplicate()
        try setDescriptors(of: bus, input: try pipe.read.duplicate(), output: output)
        writing = pipe.closingRead()
        self.socket = socket
        self.closer = closer
    }

    deinit { close() }

    /// Ends the connection. libsystemd must have closed its duplicate of the socket before: the last close of a socket also
    /// closes the descriptors that are unread in it.
    func close() {
        guard let socket else { return }
        writing = nil
        // The peer sees the end at once, however long the close takes.
        shutdown(socket.raw, Int32(SHUT_RDWR))
        self.socket = nil
    }

    /// Passes on at most 4,096 bytes, once libsystemd has read the previous ones.
    func pass() throws(Failure) {
        guard let socket, let number = writing?.raw, reading.descriptor.readableBytes == 0 else { return }
        let received: ReceivedMessage?
        do throws(SystemError) {
            received = try socket.descriptor.receive(limit: Self.portion, closer: closer)
        } catch {
            // libsystemd takes the end of the pipe for the end of the connection.
            return writing = nil
        }
        guard let received else { return }
        if received.descriptors.count > 0 || received.lostDescriptors { throw .receivedDescriptors }
        if received.bytes.isEmpty { return writing = nil }
        // The pipe is empty, so it accepts all of them.
        _ = write(number, received.bytes, received.bytes.count)
    }
}
