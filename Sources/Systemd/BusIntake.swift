import CSystemd
import Glibc

/// Closes what a user who is neither root nor our own has sent us, or may have, without waiting for it: close(2) of another's
/// descriptor takes as long as that one likes (a TCP socket with SO_LINGER, a file of a FUSE server that does not answer),
/// and closing a connection closes what lies unread in it.
package struct StrangersCloser {
    /// Takes a descriptor over, for this user.
    package var close: (Int32, _ uid: UInt32) -> Void
    /// How many of this user's are not closed yet.
    package var pending: (_ uid: UInt32) -> Int

    package init(close: @escaping (Int32, UInt32) -> Void, pending: @escaping (UInt32) -> Int) {
        self.close = close
        self.pending = pending
    }

    /// Waits. For who serves no strangers.
    package static var waiting: StrangersCloser {
        StrangersCloser(close: { descriptor, _ in Glibc.close(descriptor) }, pending: { _ in 0 })
    }
}

/// What a stranger's connection brings: we read it ourselves and pass the bytes on to libsystemd by a pipe. Left to itself
/// libsystemd would take descriptors along, whatever was agreed on in the handshake, and close them where everybody waits.
final class BusIntake {
    enum Failure: Error { case sentDescriptors }

    /// PIPE_BUF: an empty pipe takes that much at once, however small the kernel has made it (pipe(7)).
    private static let portion = 4096

    private var socket: Int32
    private let uid: UInt32
    private let closer: StrangersCloser
    let reading: Int32
    /// libsystemd has taken `reading` over, and closes it.
    var isReadingGiven = false
    private var writing: Int32

    /// Takes over `socket`, unless it throws.
    init(socket: Int32, uid: UInt32, closer: StrangersCloser) throws(SystemdError) {
        var ends: [Int32] = [-1, -1]
        guard pipe2(&ends, O_CLOEXEC | O_NONBLOCK) == 0 else { throw SystemdError("pipe2", errno: errno) }
        self.socket = socket
        self.uid = uid
        self.closer = closer
        (reading, writing) = (ends[0], ends[1])
    }

    deinit {
        close()
        if !isReadingGiven { Glibc.close(reading) }
    }

    /// Ends the connection; to be called when libsystemd has closed its own copy of the socket, as the last copy that is
    /// closed closes what lies in it.
    func close() {
        guard socket >= 0 else { return }
        endWriting()
        // The other side hears of it at once, however long closing takes.
        shutdown(socket, Int32(SHUT_RDWR))
        closer.close(socket, uid)
        socket = -1
    }

    /// Passes on what there is, once all that went before was taken.
    func pass() throws(Failure) {
        guard writing >= 0, csystemd_readable_bytes(reading) == 0 else { return }
        var came = csystemd_intake()
        var length = 0
        let bytes = [UInt8](unsafeUninitializedCapacity: Self.portion) { buffer, used in
            length = csystemd_receive(socket, buffer.baseAddress, Self.portion, &came)
            used = max(0, length)
        }
        let code = errno
        if came.descriptor_count > 0 {
            closeAll(&came)
            throw .sentDescriptors
        }
        if length > 0 {
            // It fits, as the pipe is empty.
            _ = write(writing, bytes, length)
        } else if length == 0 || (code != EAGAIN && code != EINTR) {
            endWriting()
        }
    }

    private func closeAll(_ came: inout csystemd_intake) {
        let count = Int(came.descriptor_count)
        withUnsafeBytes(of: &came.descriptors) { all in
            for descriptor in all.bindMemory(to: Int32.self)[..<count] { closer.close(descriptor, uid) }
        }
    }

    /// What libsystemd then takes for the end of the connection.
    private func endWriting() {
        if writing >= 0 { Glibc.close(writing) }
        writing = -1
    }
}
