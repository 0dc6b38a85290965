import CLinux
import Glibc
package import Posix

/// The lock of the folder that contains all apps' groups (flock(2)). It outlives the runtime folder, in which the other lock
/// is: while a daemon has it, no other daemon ends its apps.
package struct GroupLock {
    package let descriptor: SharedDescriptor

    package enum Attempt {
        /// `nil`: there are no groups (process-group mode).
        case acquired(GroupLock?)
        /// Another process took the lock; its pid, if the kernel shows it.
        case held(by: Int32?, path: String)
    }

    package static func acquire(_ mode: ContainmentMode) throws(SystemError) -> Attempt {
        guard case .cgroup(let root) = mode else { return .acquired(nil) }
        let folder = try Descriptor.open(root.path, O_RDONLY | O_DIRECTORY | O_NOFOLLOW)
        if try check(clinux_lock(folder.raw), "flock", root.path) != 0 {
            return .acquired(GroupLock(descriptor: SharedDescriptor(folder)))
        }
        var about = Glibc.stat()
        try checkErrno(fstat(folder.raw, &about), "stat", root.path)
        return .held(by: try holder(inode: UInt64(about.st_ino)), path: root.path)
    }

    private init(descriptor: SharedDescriptor) { self.descriptor = descriptor }

    /// Takes over a lock that was passed through a re-exec.
    package init(adopting descriptor: consuming Descriptor) { self.init(descriptor: SharedDescriptor(descriptor)) }

    /// See `LockFile.release`.
    package func release() { clinux_unlock(descriptor.raw) }

    /// The process that took the lock, from /proc/locks (proc_locks(5)):
    /// `1: FLOCK  ADVISORY  WRITE 1234 00:1a:5678 0 EOF`. Inodes of cgroups are not reused while the file system is mounted.
    private static func holder(inode: UInt64) throws(SystemError) -> Int32? {
        let text = String(decoding: try readFile(at: "/proc/locks", limit: 16 << 20), as: UTF8.self)
        for line in text.split(separator: "\n") {
            let words = line.split(separator: " ")
            guard words.count >= 6, words[1] == "FLOCK", words[5].hasSuffix(":\(inode)") else { continue }
            return Int32(words[4])
        }
        return nil
    }
}
