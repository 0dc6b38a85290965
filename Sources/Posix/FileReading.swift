import Glibc

/// Reads a whole file of at most `limit` bytes; a longer one throws EFBIG. It never blocks on a FIFO or a terminal, and
/// refuses everything but regular files and files of /proc and /sys.
/// - Parameters:
///   - folder: a relative path starts there instead of at the working directory.
///   - following: whether the last component may be a symbolic link.
package func readFile(
    at path: String, in folder: SharedDescriptor? = nil, limit: Int, following: Bool = true
) throws(SystemError) -> [UInt8] {
    let flags = O_RDONLY | O_NONBLOCK | O_NOCTTY | (following ? 0 : O_NOFOLLOW)
    let file = try openFile(path, flags, in: folder)
    try file.refuseIrregular(path)
    return try file.readAll(limit: limit, path: path)
}

/// `readFile` that returns `nil` for a file that does not exist, or whose process or cgroup is gone
/// (`SystemError.meansGone`).
package func readFileIfPresent(
    at path: String, in folder: SharedDescriptor? = nil, limit: Int, following: Bool = true
) throws(SystemError) -> [UInt8]? {
    do {
        return try readFile(at: path, in: folder, limit: limit, following: following)
    } catch {
        if error.meansGone { return nil }
        throw error
    }
}

/// Reads a file of /proc or of a cgroup that the kernel writes as one record (`single_open` of its seq_file(9)), so that a read which
/// does not fill the buffer returns all of it: its type and its end are not looked up, which are two of five system calls. `nil` if its
/// process or cgroup is gone. More than `limit` bytes throw EFBIG.
/// - Parameter folder: a relative path starts there instead of at the working directory.
package func readRecord(
    at path: String, in folder: SharedDescriptor? = nil, limit: Int
) throws(SystemError) -> [UInt8]? {
    do {
        let file = try openFile(path, O_RDONLY | O_NONBLOCK | O_NOCTTY, in: folder)
        return try file.readAll(limit: limit, path: path, isRecord: true)
    } catch {
        if error.meansGone { return nil }
        throw error
    }
}

/// Opens a file, close-on-exec; a relative path starts at `folder`, or at the working directory.
package func openFile(
    _ path: String, _ flags: Int32, in folder: SharedDescriptor?
) throws(SystemError) -> Descriptor {
    if let folder { return try folder.descriptor.open(path, flags) }
    return try Descriptor.open(path, flags)
}

extension Descriptor {
    /// Throws EISDIR for a folder and EINVAL for any other file that is not regular.
    package func refuseIrregular(_ path: String) throws(SystemError) {
        var about = Glibc.stat()
        try checkErrno(fstat(raw, &about), "fstat", path)
        if about.st_mode & S_IFMT == S_IFDIR { throw SystemError(call: "read", errno: EISDIR, path: path) }
        if about.st_mode & S_IFMT != S_IFREG { throw SystemError(call: "read", errno: EINVAL, path: path) }
    }

    /// Reads from the file offset to the end; more than `limit` bytes throw EFBIG.
    /// - Parameter isRecord: a read that does not fill the buffer has reached the end (`readRecord`).
    package func readAll(limit: Int, path: String?, isRecord: Bool = false) throws(SystemError) -> [UInt8] {
        var bytes: [UInt8] = []
        // Files of /proc and /sys report size 0; most of them fit into the first read.
        var size = 4096
        while true {
            let space = min(size, limit + 1 - bytes.count)
            let piece = try readBuffer(space, "read", path) { read(raw, $0, space) }
            if piece.isEmpty { return bytes }
            if bytes.isEmpty { bytes = piece } else { bytes += piece }
            if bytes.count > limit { throw SystemError(call: "read", errno: EFBIG, path: path) }
            if isRecord, piece.count < space { return bytes }
            size = min(size * 2, 1 << 20)
        }
    }
}

/// Returns the bytes that one call put into a buffer of `size` bytes.
package func readBuffer(
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

/// A file of /proc or of a cgroup that stays open: reading it again costs a third of opening it again.
package struct KeptFile: ~Copyable {
    package let descriptor: SharedDescriptor
    package let path: String

    package init(_ path: String, in folder: SharedDescriptor? = nil) throws(SystemError) {
        descriptor = SharedDescriptor(try openFile(path, O_RDONLY | O_NOCTTY, in: folder))
        self.path = path
    }

    /// `Descriptor.readStart`
    package func read(limit: Int = 8192) throws(SystemError) -> [UInt8] {
        try descriptor.descriptor.readStart(path, limit: limit)
    }

    /// `Descriptor.readStartIfPresent`
    package func readIfPresent(limit: Int = 8192) throws(SystemError) -> [UInt8]? {
        try descriptor.descriptor.readStartIfPresent(path, limit: limit)
    }
}

extension Descriptor {
    /// Reads a file from the start in one pread(2), so that the kernel's answer is consistent.
    /// - Parameters:
    ///   - path: for errors.
    ///   - limit: further bytes are cut off.
    package func readStart(_ path: String, limit: Int) throws(SystemError) -> [UInt8] {
        let number = raw
        return try readBuffer(limit, "pread", path) { pread(number, $0, limit, 0) }
    }

    /// `readStart` that returns `nil` if the process or cgroup behind the file is gone.
    package func readStartIfPresent(_ path: String, limit: Int) throws(SystemError) -> [UInt8]? {
        do {
            return try readStart(path, limit: limit)
        } catch {
            if error.meansGone { return nil }
            throw error
        }
    }
}
