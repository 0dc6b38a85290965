import Glibc
package import Posix

/// Reports that a folder was removed or renamed, or that an entry of it was (inotify(7)).
package struct FolderWatch: ~Copyable {
    /// Readable after a change.
    package let descriptor: SharedDescriptor

    package init(_ path: String) throws(SystemError) {
        try path.refuseNul("inotify_add_watch")
        let flags = Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK)
        let made = Descriptor(adopting: try checkErrno(inotify_init1(flags), "inotify_init1"))
        let events = UInt32(IN_DELETE_SELF | IN_MOVE_SELF | IN_DELETE | IN_MOVED_FROM) | UInt32(IN_ONLYDIR)
        try checkErrno(inotify_add_watch(made.raw, path, events), "inotify_add_watch", path)
        descriptor = SharedDescriptor(made)
    }

    /// The most reads of `clear`: files may be removed without a pause.
    private static let mostReads = 16

    /// Reads what has changed, so that the descriptor is no longer readable, unless there is more than a turn of the loop should
    /// read.
    /// - Returns: whether there was a change.
    @discardableResult
    package static func clear(_ descriptor: SharedDescriptor) -> Bool {
        var buffer = [UInt8](repeating: 0, count: 4096)
        for count in 0..<mostReads where retryInterrupted({ read(descriptor.raw, &buffer, buffer.count) }) <= 0 {
            return count > 0
        }
        return true
    }
}
