import Glibc
package import Posix

/// Reports changes of a folder and its entries (inotify(7)).
package struct FolderWatch: ~Copyable {
    /// What is reported.
    package enum Changes {
        /// The folder was removed or renamed, or an entry of it was.
        case removals
        /// Also new entries, and files that were closed after a program could write to them.
        case contents
        /// Writes to files in the folder, and no more.
        case writes
    }

    /// Readable after a change.
    package let descriptor: SharedDescriptor

    package init(_ path: String, for changes: Changes = .removals) throws(SystemError) {
        try path.refuseNul("inotify_add_watch")
        let flags = Int32(IN_CLOEXEC) | Int32(IN_NONBLOCK)
        let made = Descriptor(adopting: try checkErrno(inotify_init1(flags), "inotify_init1"))
        let removals = UInt32(IN_DELETE_SELF | IN_MOVE_SELF | IN_DELETE | IN_MOVED_FROM) | UInt32(IN_ONLYDIR)
        let events =
            switch changes {
            case .removals: removals
            case .contents: removals | UInt32(IN_CREATE | IN_MOVED_TO | IN_CLOSE_WRITE)
            case .writes: UInt32(IN_MODIFY) | UInt32(IN_ONLYDIR)
            }
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
