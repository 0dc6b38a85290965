import CLinux
import Glibc
package import Posix

/// Files in memory (memfd_create(2)), in which restoration states and snapshots are passed.
package enum MemoryFile {
    /// Creates a sealed file with these contents, which cannot be changed any more. Its offset is 0.
    /// - Parameter name: for /proc, at most 249 bytes.
    package static func sealed(_ name: String, _ contents: [UInt8]) throws(SystemError) -> Descriptor {
        let file = try empty(name)
        try writeAll(contents, to: file, path: name)
        try seal(file)
        try checkErrno(lseek(file.raw, 0, SEEK_SET), "lseek", name)
        return file
    }

    package static func empty(_ name: String) throws(SystemError) -> Descriptor {
        try name.refuseNul("memfd_create")
        return Descriptor(adopting: try check(clinux_memfd(name), "memfd_create", name))
    }

    /// Seals the contents.
    /// - Throws: EBUSY while a writable mapping exists; EPERM if F_SEAL_SEAL is set or the descriptor is read-only.
    package static func seal(_ file: borrowing Descriptor) throws(SystemError) {
        try check(clinux_add_seals(file.raw, clinux_all_seals), "fcntl F_ADD_SEALS")
    }

    /// Seals the size; the contents can still change.
    /// - Throws: EPERM if F_SEAL_SEAL is set or the descriptor is read-only; EINVAL for any other file.
    package static func sealSize(_ file: borrowing Descriptor) throws(SystemError) {
        try check(clinux_add_seals(file.raw, clinux_size_seals), "fcntl F_ADD_SEALS")
    }

    package static func isSealed(_ file: borrowing Descriptor) -> Bool {
        let seals = clinux_get_seals(file.raw)
        return seals >= 0 && seals & clinux_all_seals == clinux_all_seals
    }

    /// Whether neither the size nor the contents can change any more. Further seals may be added.
    package static func hasSealedContents(_ file: borrowing Descriptor) -> Bool {
        let seals = clinux_get_seals(file.raw)
        return seals >= 0 && seals & clinux_content_seals == clinux_content_seals
    }

    /// Whether the file is a memfd: other files have no seals.
    package static func isMemoryFile(_ file: borrowing Descriptor) -> Bool { clinux_get_seals(file.raw) >= 0 }

    package static func isReadable(_ file: borrowing Descriptor) -> Bool {
        let flags = fcntl(file.raw, F_GETFL)
        return flags >= 0 && flags & O_ACCMODE != O_WRONLY
    }

    package static func size(_ file: borrowing Descriptor) throws(SystemError) -> Int {
        var about = Glibc.stat()
        try checkErrno(fstat(file.raw, &about), "fstat")
        return about.st_size
    }

    /// The bytes that a memfd has in memory and in swap: pages that were never written take none. 0 for any other file.
    package static func memory(_ file: borrowing Descriptor) -> UInt64 {
        var about = Glibc.stat()
        guard isMemoryFile(file), fstat(file.raw, &about) == 0 else { return 0 }
        return UInt64(max(0, about.st_blocks)) * 512
    }

    /// The file with an offset of its own, which is 0: descriptors that are duplicated, or sent to another process, share one
    /// offset. If the file cannot be opened again, the shared offset is set to 0.
    package static func fromStart(_ file: SharedDescriptor) -> SharedDescriptor {
        let flags = fcntl(file.raw, F_GETFL)
        // The app may have a lease on the file (fcntl(2)), for whose end a blocking open would wait 45 s.
        let own = "/proc/self/fd/\(file.raw)"
        if flags >= 0, let opened = try? Descriptor.open(own, flags & O_ACCMODE | O_NONBLOCK) {
            _ = fcntl(opened.raw, F_SETFL, flags & ~O_NONBLOCK)
            return SharedDescriptor(opened)
        }
        lseek(file.raw, 0, SEEK_SET)
        return file
    }

    fileprivate static func reopened(_ file: borrowing Descriptor) throws(SystemError) -> SharedDescriptor {
        // The app may have a lease on the file (fcntl(2)), for whose end a blocking open would wait 45 s.
        let opened = try Descriptor.open("/proc/self/fd/\(file.raw)", O_RDONLY | O_NONBLOCK)
        _ = fcntl(opened.raw, F_SETFL, O_RDONLY)
        return SharedDescriptor(opened)
    }

    /// Reads the contents of a file that an app provides, whatever its offset. It is not mapped, so that an app that shrinks
    /// it meanwhile only shortens the result.
    /// - Returns: `nil` for a file of another kind, or one of more than `limit` bytes.
    package static func contents(_ file: borrowing Descriptor, limit: Int) throws(SystemError) -> [UInt8]? {
        guard isMemoryFile(file), try size(file) <= limit else { return nil }
        let number = file.raw
        var bytes: [UInt8] = []
        while true {
            let space = min(1 << 20, limit + 1 - bytes.count)
            let piece = try readBuffer(space, "pread", nil) { pread(number, $0, space, bytes.count) }
            if piece.isEmpty { return bytes }
            bytes += piece
            if bytes.count > limit { return nil }
        }
    }
}

/// A memfd for a program that only reads it: with an offset of its own, read-only, and with contents that cannot change any more. If
/// the app that provides it can still write to it, it is a copy, which is made in pieces: 8 MiB take about 4 ms together.
package final class ReadOnlyMemoryFile {
    private static let piece = 256 << 10

    private let source: SharedDescriptor
    private let limit: Int
    private var position: off_t = 0
    /// `nil`: the contents of the source cannot change.
    private let copy: SharedDescriptor?

    /// - Returns: `nil` for a file of another kind, or one of more than `limit` bytes.
    package init?(_ source: SharedDescriptor, limit: Int) throws(SystemError) {
        guard MemoryFile.isMemoryFile(source.descriptor), try MemoryFile.size(source.descriptor) <= limit else {
            return nil
        }
        self.source = source
        self.limit = limit
        copy =
            MemoryFile.hasSealedContents(source.descriptor)
            ? nil : SharedDescriptor(try MemoryFile.empty("greenroom-copy"))
    }

    /// Copies the next piece.
    /// - Returns: whether there is more.
    /// - Throws: EFBIG if the file has grown beyond the limit.
    package func advance() throws(SystemError) -> Bool {
        guard let copy else { return false }
        let (from, to) = (source.raw, copy.raw)
        // One byte more than the limit, so that a longer file is detected.
        let space = min(Self.piece, limit + 1 - Int(position))
        guard space > 0 else { throw SystemError(call: "sendfile", errno: EFBIG) }
        let count = retryInterrupted { sendfile(to, from, &position, space) }
        try checkErrno(count, "sendfile")
        return count > 0
    }

    /// After the last piece: a descriptor of its own for each reader.
    package func reader() throws(SystemError) -> SharedDescriptor {
        guard let copy else { return try MemoryFile.reopened(source.descriptor) }
        try MemoryFile.seal(copy.descriptor)
        return try MemoryFile.reopened(copy.descriptor)
    }
}
