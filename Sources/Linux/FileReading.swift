import Glibc

/// Reads all of a file of at most `limit` bytes; a longer one throws EFBIG. Never waits for a FIFO's writer or a
/// terminal, and refuses what is neither a regular file nor one of /proc or /sys.
/// - Parameter following: whether the last component may be a symbolic link.
package func readFile(
    at path: String, in directory: Int32 = currentFolder, limit: Int, following: Bool = true
) throws(SystemError) -> [UInt8] {
    let flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | (following ? 0 : O_NOFOLLOW)
    let file = try Descriptor.open(path, flags, in: directory)
    try file.refuseIrregular(path)
    return try readAll(file.raw, limit: limit, path: path)
}

/// `readFile` where a missing file, or one of a process that is gone, is an answer: nil for ENOENT, ENOTDIR, ESRCH and
/// ENODEV (a cgroup that was removed).
package func readFileIfPresent(
    at path: String, in directory: Int32 = currentFolder, limit: Int, following: Bool = true
) throws(SystemError) -> [UInt8]? {
    do {
        return try readFile(at: path, in: directory, limit: limit, following: following)
    } catch {
        if error.meansGone { return nil }
        throw error
    }
}

extension SystemError {
    /// The file, the process behind it or the cgroup behind it no longer exists.
    package var meansGone: Bool { errno == ENOENT || errno == ENOTDIR || errno == ESRCH || errno == ENODEV }
}

extension Descriptor {
    func refuseIrregular(_ path: String) throws(SystemError) {
        var about = Glibc.stat()
        try checkErrno(fstat(raw, &about), "fstat", path)
        if about.st_mode & S_IFMT == S_IFDIR { throw SystemError(call: "read", errno: EISDIR, path: path) }
        if about.st_mode & S_IFMT != S_IFREG { throw SystemError(call: "read", errno: EINVAL, path: path) }
    }
}

/// Reads from where the descriptor stands to the end.
func readAll(_ raw: Int32, limit: Int, path: String?) throws(SystemError) -> [UInt8] {
    var bytes: [UInt8] = []
    // /proc and /sys say size 0, so the size is no guide; most of their files fit the first piece.
    var size = 4096
    while true {
        let room = min(size, limit + 1 - bytes.count)
        let piece = try filled(room, "read", path) { read(raw, $0, room) }
        if piece.isEmpty { return bytes }
        if bytes.isEmpty { bytes = piece } else { bytes += piece }
        if bytes.count > limit { throw SystemError(call: "read", errno: EFBIG, path: path) }
        size = min(size * 2, 1 << 20)
    }
}

/// What one call put into a buffer of `size` bytes.
func filled(
    _ size: Int, _ call: String, _ path: String?, _ body: (UnsafeMutableRawPointer?) -> Int
) throws(SystemError) -> [UInt8] {
    var failure: Int32 = 0
    let bytes = [UInt8](unsafeUninitializedCapacity: size) { buffer, used in
        let count = retryInterrupted { body(buffer.baseAddress) }
        if count < 0 { failure = errno }
        used = max(count, 0)
    }
    if failure != 0 { throw SystemError(call: call, errno: failure, path: path) }
    return bytes
}

func retryInterrupted(_ call: () -> Int) -> Int {
    while true {
        let result = call()
        if result >= 0 || errno != EINTR { return result }
    }
}

/// A file of /proc or a cgroup that stays open: reading it again costs a third of opening it anew.
package struct KeptFile: ~Copyable {
    package let descriptor: Descriptor
    package let path: String

    package init(_ path: String, in directory: Int32 = currentFolder) throws(SystemError) {
        descriptor = try Descriptor.open(path, O_RDONLY | O_NOCTTY, in: directory)
        self.path = path
    }

    /// The whole of it from its start, in one pread so that the kernel's answer is of one piece.
    /// - Parameter limit: what does not fit is cut off.
    package func read(limit: Int = 8192) throws(SystemError) -> [UInt8] {
        try filled(limit, "pread", path) { pread(descriptor.raw, $0, limit, 0) }
    }

    /// nil when the process or cgroup behind the file is gone.
    package func readIfPresent(limit: Int = 8192) throws(SystemError) -> [UInt8]? {
        do {
            return try read(limit: limit)
        } catch {
            if error.meansGone { return nil }
            throw error
        }
    }
}
