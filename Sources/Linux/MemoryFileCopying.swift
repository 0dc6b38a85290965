import Glibc
package import Posix

/// Copies between a memfd and a file with a path. A memfd cannot be linked into a folder (open(2), O_TMPFILE), so the kernel
/// copies its bytes (sendfile(2)).
extension MemoryFile {
    /// Writes the contents to a file atomically: a reader sees the old contents or these. The file offset is neither used nor
    /// changed. Holes are written as zeros.
    /// - Throws: EFBIG for more than `limit` bytes; ENOSPC if the file system is full. The old file stays then.
    package static func save(_ file: borrowing Descriptor, at path: String, limit: Int) throws(SystemError) {
        let temporary = path + "~"
        try removeFile(at: temporary)
        let copied = try Descriptor.open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
        do {
            try copy(from: file, to: copied, limit: limit, path)
            try checkErrno(rename(temporary, path), "rename", path)
        } catch {
            unlink(temporary)
            throw error
        }
    }

    /// Creates a memfd with the contents of a file. Its offset is 0 and its size is sealed.
    /// - Throws: EFBIG for more than `limit` bytes; EINVAL if the file is not regular.
    package static func load(_ path: String, name: String, limit: Int) throws(SystemError) -> Descriptor {
        let file = try Descriptor.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW)
        try file.refuseIrregular(path)
        let memory = try empty(name)
        try copy(from: file, to: memory, limit: limit, path)
        try sealSize(memory)
        try checkErrno(lseek(memory.raw, 0, SEEK_SET), "lseek", name)
        return memory
    }

    private static func copy(
        from source: borrowing Descriptor, to target: borrowing Descriptor, limit: Int, _ path: String
    ) throws(SystemError) {
        let (from, to) = (source.raw, target.raw)
        var position: off_t = 0
        while position <= limit {
            // One byte more than the limit, so that a longer file is detected.
            let space = limit + 1 - Int(position)
            let count = retryInterrupted { sendfile(to, from, &position, space) }
            try checkErrno(count, "sendfile", path)
            if count == 0 { return }
        }
        throw SystemError(call: "sendfile", errno: EFBIG, path: path)
    }
}
