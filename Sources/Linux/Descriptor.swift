import CLinux
import Glibc

/// An open file descriptor that closes itself. It cannot be copied, so nobody closes it twice or uses it afterwards.
package struct Descriptor: ~Copyable {
    package let raw: Int32

    /// Takes over `raw`, which nobody else may close from now on.
    package init(adopting raw: Int32) {
        precondition(raw >= 0, "not a descriptor: \(raw)")
        self.raw = raw
    }

    package static func adopt(_ raw: Int32) -> Descriptor { Descriptor(adopting: raw) }

    deinit {
        // EINTR closes too (close(2), Linux). EBADF means that somebody else closed our number: a bug that would close a
        // stranger's next time.
        let result = close(raw)
        precondition(result == 0 || errno != EBADF, "descriptor \(raw) was closed behind its owner's back")
    }

    /// Gives the number away, to whoever will close it.
    package consuming func take() -> Int32 {
        let number = raw
        discard self
        return number
    }

    /// A second descriptor of the same open file, close-on-exec.
    package func duplicate() throws(SystemError) -> Descriptor {
        Descriptor(adopting: try check(clinux_duplicate(raw), "fcntl F_DUPFD_CLOEXEC"))
    }

    /// A duplicate of a descriptor that is somebody else's.
    package static func duplicate(of raw: Int32) throws(SystemError) -> Descriptor {
        Descriptor(adopting: try check(clinux_duplicate(raw), "fcntl F_DUPFD_CLOEXEC"))
    }

    /// Whether a program that this process executes has it.
    package static func setInherited(_ raw: Int32, _ on: Bool) throws(SystemError) {
        try check(clinux_set_inherited(raw, on), "fcntl F_SETFD")
    }

    package func setNonBlocking(_ on: Bool) throws(SystemError) {
        _ = try check(clinux_set_nonblocking(raw, on), "fcntl F_SETFL")
    }

    /// open(2), close-on-exec.
    package static func open(
        _ path: String, _ flags: Int32, mode: UInt32 = 0, in directory: Int32 = currentFolder
    ) throws(SystemError) -> Descriptor {
        try path.refuseNul("open")
        return Descriptor(adopting: try check(clinux_openat(directory, path, flags, mode), "open", path))
    }
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

    /// Keeps the read end alone, once the writer has its own copy.
    package consuming func closingWrite() -> Descriptor { read }
}

/// Where relative paths start: AT_FDCWD.
package let currentFolder: Int32 = -100

extension String {
    /// C would silently cut the string at its first NUL and act on another file.
    func refuseNul(_ call: String) throws(SystemError) {
        if utf8.contains(0) { throw SystemError(call: call, errno: EINVAL, path: self) }
    }
}
