import Glibc
package import Posix

/// A file to which records are appended, each in one write.
package struct AppendFile: ~Copyable {
    private let file: Descriptor
    private let path: String

    package init(_ path: String, mode: UInt32 = 0o644) throws(SystemError) {
        // A FIFO in its position would block until it is read.
        let flags = O_WRONLY | O_CREAT | O_APPEND | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY
        let file = try Descriptor.open(path, flags, mode: mode)
        try file.refuseIrregular(path)
        self.file = file
        self.path = path
    }

    /// Appends all of `record` or nothing: if the disk becomes full, the part that was written is removed.
    package func append(_ record: [UInt8]) throws(SystemError) {
        var about = Glibc.stat()
        try checkErrno(fstat(file.raw, &about), "fstat", path)
        do {
            try writeAll(record, to: file, path: path)
        } catch {
            ftruncate(file.raw, about.st_size)
            throw error
        }
    }
}

/// Whether a file exists at the path; a broken link counts.
package func exists(at path: String) -> Bool {
    var about = Glibc.stat()
    return lstat(path, &about) == 0
}

/// Whether the file is empty or a link to /dev/null, as systemd masks units.
package func isEmptyOrNull(at path: String) -> Bool {
    var about = Glibc.stat()
    guard stat(path, &about) == 0 else { return false }
    let isNull = about.st_mode & S_IFMT == S_IFCHR && about.st_rdev == 0x103
    return isNull || (about.st_mode & S_IFMT == S_IFREG && about.st_size == 0)
}

/// The owner of the file; `nil`: there is none.
package func fileOwner(at path: String) -> Owner? {
    var about = Glibc.stat()
    return lstat(path, &about) == 0 ? Owner(uid: about.st_uid, gid: about.st_gid) : nil
}
