import CLinux
import Glibc

/// Files that live in memory (memfd_create(2)): how states and snapshots are handed over.
package enum MemoryFile {
    /// A sealed one with these contents, that nobody can change any more; it stands at its start.
    /// - Parameter name: shown in /proc, at most 249 bytes.
    package static func sealed(_ name: String, _ contents: [UInt8]) throws(SystemError) -> Descriptor {
        let file = try empty(name)
        try writeAll(contents, to: file.raw, path: name)
        try seal(file.raw)
        try checkErrno(lseek(file.raw, 0, SEEK_SET), "lseek", name)
        return file
    }

    package static func empty(_ name: String) throws(SystemError) -> Descriptor {
        try name.refuseNul("memfd_create")
        return Descriptor(adopting: try check(clinux_memfd(name), "memfd_create", name))
    }

    /// - Throws: EBUSY while a writable mapping exists, EPERM where sealing is sealed or the descriptor is read-only.
    package static func seal(_ raw: Int32) throws(SystemError) {
        try check(clinux_add_seals(raw, clinux_all_seals), "fcntl F_ADD_SEALS")
    }

    /// Its size stays what it is; its contents may still change in place.
    /// - Throws: EPERM where sealing is sealed or the descriptor is read-only; EINVAL for what is no file in memory.
    package static func sealSize(_ raw: Int32) throws(SystemError) {
        try check(clinux_add_seals(raw, clinux_size_seals), "fcntl F_ADD_SEALS")
    }

    package static func isSealed(_ raw: Int32) -> Bool {
        let seals = clinux_get_seals(raw)
        return seals >= 0 && seals & clinux_all_seals == clinux_all_seals
    }

    /// Whether it is a file in memory at all: others cannot say what seals they have.
    package static func isMemoryFile(_ raw: Int32) -> Bool { clinux_get_seals(raw) >= 0 }

    package static func size(_ raw: Int32) throws(SystemError) -> Int {
        var about = Glibc.stat()
        try checkErrno(fstat(raw, &about), "fstat")
        return about.st_size
    }

    /// The contents of one that an app offered, wherever it stands. It is read and not mapped, so an app that shrinks it
    /// meanwhile only shortens the answer.
    /// - Returns: nil for a file of another kind, or one of more than `limit` bytes.
    package static func contents(_ raw: Int32, limit: Int) throws(SystemError) -> [UInt8]? {
        guard isMemoryFile(raw), try size(raw) <= limit else { return nil }
        var bytes: [UInt8] = []
        while true {
            let room = min(1 << 20, limit + 1 - bytes.count)
            let piece = try filled(room, "pread", nil) { pread(raw, $0, room, bytes.count) }
            if piece.isEmpty { return bytes }
            bytes += piece
            if bytes.count > limit { return nil }
        }
    }
}
