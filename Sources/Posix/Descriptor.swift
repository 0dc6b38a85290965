import CLinux
import Glibc

/// An open file descriptor that closes itself. It cannot be copied, so it is closed once and not used afterwards.
package struct Descriptor: ~Copyable, Sendable {
    /// The number, for the line that calls C. -1 once it has been released.
    package private(set) var raw: Int32
    /// Closes the descriptor instead of this thread.
    private let closer: DescriptorCloser?

    /// Takes ownership of an open descriptor number.
    /// - Parameter closer: closes the descriptor on a helper thread; for descriptors that another program provided.
    package init(adopting raw: Int32, closer: DescriptorCloser? = nil) {
        precondition(raw >= 0, "not a descriptor: \(raw)")
        self.raw = raw
        self.closer = closer
    }

    deinit {
        if raw < 0 { return }
        if let closer { return closer.close(number: raw) }
        // EINTR closes too (close(2), Linux). After EBADF the next close could close another owner's descriptor.
        let result = close(raw)
        precondition(result == 0 || errno != EBADF, "descriptor \(raw) was closed by other code than its owner")
    }

    /// Gives up ownership and returns the number, which the caller must close.
    package consuming func release() -> Int32 {
        let number = raw
        raw = -1
        return number
    }

    /// Returns a second descriptor of the same open file, close-on-exec.
    package func duplicate() throws(SystemError) -> Descriptor { try Descriptor.duplicate(of: raw) }

    /// Returns a duplicate of a descriptor that a C library owns, close-on-exec.
    package static func duplicate(of raw: Int32) throws(SystemError) -> Descriptor {
        Descriptor(adopting: try check(clinux_duplicate(raw), "fcntl F_DUPFD_CLOEXEC"))
    }

    /// Sets whether a program that this process executes inherits the descriptor.
    package func setInherited(_ isInherited: Bool) throws(SystemError) {
        try check(clinux_set_inherited(raw, isInherited), "fcntl F_SETFD")
    }

    package func setNonBlocking(_ isNonBlocking: Bool) throws(SystemError) {
        try check(clinux_set_nonblocking(raw, isNonBlocking), "fcntl F_SETFL")
    }

    /// Opens a file, close-on-exec (open(2)).
    package static func open(_ path: String, _ flags: Int32, mode: UInt32 = 0) throws(SystemError) -> Descriptor {
        try open(path, flags, mode, AT_FDCWD)
    }

    /// Opens a file relative to this folder, close-on-exec (openat(2)).
    package func open(_ path: String, _ flags: Int32, mode: UInt32 = 0) throws(SystemError) -> Descriptor {
        try Descriptor.open(path, flags, mode, raw)
    }

    private static func open(
        _ path: String, _ flags: Int32, _ mode: UInt32, _ folder: Int32
    ) throws(SystemError) -> Descriptor {
        try path.refuseNul("open")
        return Descriptor(adopting: try check(clinux_openat(folder, path, flags, mode), "open", path))
    }
}

/// A descriptor with several owners; it is closed when the last of them releases it.
package final class SharedDescriptor: Sendable, Equatable {
    package let descriptor: Descriptor

    package init(_ descriptor: consuming Descriptor) {
        self.descriptor = descriptor
    }

    /// - Parameter closer: closes the descriptor on a helper thread instead of this one.
    package convenience init(_ descriptor: consuming Descriptor, closer: DescriptorCloser) {
        self.init(Descriptor(adopting: descriptor.release(), closer: closer))
    }

    /// The number, for the line that calls C.
    package var raw: Int32 { descriptor.raw }

    /// Descriptors 1 and 2 of this process, which are never closed.
    package static let standardOutput = SharedDescriptor(Descriptor(adopting: STDOUT_FILENO))
    package static let standardError = SharedDescriptor(Descriptor(adopting: STDERR_FILENO))

    package static func == (left: SharedDescriptor, right: SharedDescriptor) -> Bool { left === right }
}

/// Opens those of the descriptors 0, 1 and 2 that are closed on /dev/null. Called before anything else is opened: another file
/// would get such a number, and what is written to standard error would be written to it.
package func openStandardDescriptors() throws(SystemError) {
    for number: Int32 in 0...2 where fcntl(number, F_GETFD) < 0 {
        let lowest = open("/dev/null", O_RDWR)
        try checkErrno(lowest, "open", "/dev/null")
        precondition(lowest == number, "descriptor \(lowest) was opened for \(number)")
    }
}

/// Two Unix stream sockets that are connected to each other, close-on-exec and non-blocking.
package struct SocketPair: ~Copyable {
    package let near: Descriptor
    package let far: Descriptor

    package init() throws(SystemError) {
        var ends: [Int32] = [-1, -1]
        let type = SOCK_STREAM.rawValue | SOCK_CLOEXEC.rawValue | SOCK_NONBLOCK.rawValue
        try checkErrno(socketpair(AF_UNIX, Int32(type), 0, &ends), "socketpair")
        near = Descriptor(adopting: ends[0])
        far = Descriptor(adopting: ends[1])
    }

    /// Closes the near socket and returns the far one.
    package consuming func closingNear() -> Descriptor { far }
}

/// The two ends of a pipe, close-on-exec and non-blocking.
package struct Pipe: ~Copyable {
    package let read: Descriptor
    package let write: Descriptor

    package init() throws(SystemError) {
        var ends: [Int32] = [-1, -1]
        try check(clinux_pipe(&ends), "pipe2")
        read = Descriptor(adopting: ends[0])
        write = Descriptor(adopting: ends[1])
    }

    /// Closes the write end and returns the read end.
    package consuming func closingWrite() -> Descriptor { read }

    /// Closes the read end and returns the write end.
    package consuming func closingRead() -> Descriptor { write }
}

/// Waits until the descriptor is readable or has ended, for this time at most. A signal ends the wait.
/// - Returns: whether it is.
package func isReadable(_ descriptor: Int32, within limit: Duration) -> Bool {
    let (seconds, attoseconds) = limit.components
    return clinux_is_readable(descriptor, seconds, attoseconds / 1_000_000_000)
}

/// Makes `number` a duplicate of the descriptor, close-on-exec (dup3(2)). What it was before is closed.
package func duplicate(_ descriptor: Int32, as number: Int32) throws(SystemError) {
    _ = try check(clinux_replace(descriptor, number), "dup3")
}
