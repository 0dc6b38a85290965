import CLinux
import Glibc
package import Posix

/// Reports that entries of folders, or the folders themselves, were removed or renamed: one descriptor for all of them
/// (inotify(7)).
package final class FolderChanges {
    /// Readable after a change.
    package let descriptor: SharedDescriptor

    package init() throws(SystemError) {
        let flags = Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK)
        descriptor = SharedDescriptor(Descriptor(adopting: try checkErrno(inotify_init1(flags), "inotify_init1")))
    }

    /// - Returns: the number of the folder in `changed`. A folder has one, by whatever path.
    package func watch(_ path: String) throws(SystemError) -> Int32 {
        try path.refuseNul("inotify_add_watch")
        return try check(clinux_watch_folder(descriptor.raw, path), "inotify_add_watch", path)
    }

    package func unwatch(_ number: Int32) { clinux_unwatch_folder(descriptor.raw, number) }

    /// The folders with changes since the last call, about 100 changes at a time: the others stay readable. -1 stands for all.
    package func changed() -> Set<Int32> {
        let capacity = 256
        let numbers = [Int32](unsafeUninitializedCapacity: capacity) { buffer, count in
            count = 0
            guard let start = buffer.baseAddress else { return }
            count = Int(max(0, clinux_read_changes(descriptor.raw, start, capacity)))
        }
        return Set(numbers)
    }
}
