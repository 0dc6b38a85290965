import Glibc

/// Between a file in memory and one with a name: a memfd can't be given one (open(2), O_TMPFILE), so its bytes are copied,
/// within the kernel (sendfile(2)).
extension MemoryFile {
    /// Writes the contents to a file, as a whole: whoever reads that sees the old ones or these. Where the descriptor stands
    /// does not matter, and stays. Sparse ones come out full.
    /// - Throws: EFBIG for more than `limit` bytes; ENOSPC where there is no room. The file is as it was then.
    package static func save(_ raw: Int32, at path: String, limit: Int) throws(SystemError) {
        let temporary = path + "~"
        try removeFile(at: temporary)
        let file = try Descriptor.open(temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, mode: 0o600)
        do {
            try copy(from: raw, to: file.raw, limit: limit, path)
            try checkErrno(rename(temporary, path), "rename", path)
        } catch {
            unlink(temporary)
            throw error
        }
    }

    /// A new one, of the size and with the contents of a file; it stands at its start, and keeps its size.
    /// - Throws: EFBIG for more than `limit` bytes, EINVAL for no regular file.
    package static func load(_ path: String, name: String, limit: Int) throws(SystemError) -> Descriptor {
        let file = try Descriptor.open(path, O_RDONLY | O_NONBLOCK | O_NOCTTY | O_NOFOLLOW)
        try file.refuseIrregular(path)
        let memory = try empty(name)
        try copy(from: file.raw, to: memory.raw, limit: limit, path)
        try sealSize(memory.raw)
        try checkErrno(lseek(memory.raw, 0, SEEK_SET), "lseek", name)
        return memory
    }

    private static func copy(from source: Int32, to target: Int32, limit: Int, _ path: String) throws(SystemError) {
        var position: off_t = 0
        while position <= limit {
            // A byte more than allowed, so that it is noticed.
            let room = limit + 1 - Int(position)
            let count = retryInterrupted { sendfile(target, source, &position, room) }
            try checkErrno(count, "sendfile", path)
            if count == 0 { return }
        }
        throw SystemError(call: "sendfile", errno: EFBIG, path: path)
    }
}
