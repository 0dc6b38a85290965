import CLinux
import Glibc
package import Posix

/// A file that one process at a time locks, and that contains its pid (flock(2)).
///
/// The kernel releases the lock when its last descriptor is closed, however the process ends; the file stays. Other users may
/// not open the file: read permission is enough to lock it, and so to keep the daemon from starting.
package struct LockFile: ~Copyable {
    package let descriptor: SharedDescriptor
    package let path: String

    package enum Attempt: ~Copyable {
        case acquired(LockFile)
        /// Another process holds the lock; its pid, if the file contains one.
        case held(by: Int32?)
    }

    package static func acquire(at path: String) throws(SystemError) -> Attempt {
        let file = try Descriptor.open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NOCTTY, mode: 0o600)
        try file.refuseIrregular(path)
        if try check(clinux_lock(file.raw), "flock", path) == 0 {
            let bytes = try file.readAll(limit: 64, path: path)
            var scanner = ByteScanner(bytes)
            return .held(by: scanner.number())
        }
        try checkErrno(fchmod(file.raw, 0o600), "fchmod", path)
        try checkErrno(ftruncate(file.raw, 0), "ftruncate", path)
        try writeAll(Array("\(getpid())\n".utf8), to: file, path: path)
        return .acquired(LockFile(descriptor: file, path: path))
    }

    /// Releases the lock before the end of this process: a thread that the kernel waits for keeps the descriptor open.
    package func release() { clinux_unlock(descriptor.raw) }

    /// Whether the file at the path is this one, so that another process that locks the path finds this lock.
    package var isInPlace: Bool {
        var (own, found) = (Glibc.stat(), Glibc.stat())
        guard fstat(descriptor.raw, &own) == 0, lstat(path, &found) == 0 else { return false }
        return own.st_dev == found.st_dev && own.st_ino == found.st_ino
    }

    private init(descriptor: consuming Descriptor, path: String) {
        self.descriptor = SharedDescriptor(descriptor)
        self.path = path
    }

    /// Takes over a lock that was passed through a re-exec.
    package init(adopting descriptor: consuming Descriptor, path: String) {
        self.init(descriptor: descriptor, path: path)
    }
}
