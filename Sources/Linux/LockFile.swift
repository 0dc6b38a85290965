import CLinux
import Glibc

/// A file that one process at a time holds, and that says who. The kernel lets go of it when the last descriptor is
/// closed, however the holder ends; the file itself stays. Nobody else may open it: whoever can read a file can lock it
/// (flock(2)), and keep us from starting.
package struct LockFile: ~Copyable {
    package let descriptor: Descriptor
    package let path: String

    package enum Attempt: ~Copyable {
        case acquired(LockFile)
        /// By another process: its number, if it has written it.
        case held(by: Int32?)
    }

    package static func acquire(at path: String) throws(SystemError) -> Attempt {
        let file = try Descriptor.open(path, O_RDWR | O_CREAT | O_NOFOLLOW | O_NOCTTY, mode: 0o600)
        try file.refuseIrregular(path)
        if try check(clinux_lock(file.raw), "flock", path) == 0 {
            let bytes = try readAll(file.raw, limit: 64, path: path)
            var scanner = ByteScanner(bytes)
            return .held(by: scanner.number())
        }
        try checkErrno(fchmod(file.raw, 0o600), "fchmod", path)
        try checkErrno(ftruncate(file.raw, 0), "ftruncate", path)
        try writeAll(Array("\(getpid())\n".utf8), to: file.raw, path: path)
        return .acquired(LockFile(descriptor: file, path: path))
    }

    private init(descriptor: consuming Descriptor, path: String) {
        self.descriptor = descriptor
        self.path = path
    }

    /// Takes over a lock that was carried through a re-exec.
    package init(adopting descriptor: consuming Descriptor, path: String) {
        self.init(descriptor: descriptor, path: path)
    }
}
