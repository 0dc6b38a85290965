import CLinux
import Glibc
package import Posix

/// A file that is mapped into memory (mmap(2), MAP_SHARED). What is stored survives the process, however it ends, but not a
/// crash of the machine. All blocks are allocated beforehand: otherwise a full file system would end the process with SIGBUS.
package final class MappedFile {
    package let path: String
    package private(set) var size: Int
    private let file: Descriptor
    private var memory: UnsafeMutableRawPointer

    /// Creates a file of `size` zero bytes, or with `size` `nil` opens an existing one.
    /// - Throws: ENOSPC if the file system is full.
    package init(at path: String, creating size: Int?) throws(SystemError) {
        self.path = path
        let flags = O_RDWR | O_NOFOLLOW | O_NOCTTY | (size == nil ? 0 : O_CREAT | O_EXCL)
        file = try Descriptor.open(path, flags, mode: 0o600)
        try file.refuseIrregular(path)
        if let size { try Self.allocate(file, size, path) }
        var about = Glibc.stat()
        try checkErrno(fstat(file.raw, &about), "fstat", path)
        self.size = Int(about.st_size)
        guard self.size > 0 else { throw SystemError(call: "mmap", errno: EINVAL, path: path) }
        memory = try Self.map(file, self.size, path)
    }

    deinit { munmap(memory, size) }

    private static func allocate(_ file: borrowing Descriptor, _ size: Int, _ path: String) throws(SystemError) {
        let result = posix_fallocate(file.raw, 0, off_t(size))
        if result != 0 { throw SystemError(call: "posix_fallocate", errno: result, path: path) }
    }

    private static func map(
        _ file: borrowing Descriptor, _ size: Int, _ path: String
    ) throws(SystemError) -> UnsafeMutableRawPointer {
        guard let memory = mmap(nil, size, PROT_READ | PROT_WRITE, MAP_SHARED, file.raw, 0), memory != MAP_FAILED else {
            throw SystemError(call: "mmap", errno: errno, path: path)
        }
        return memory
    }

    /// Makes the file larger and keeps its contents.
    package func grow(to size: Int) throws(SystemError) {
        guard size > self.size else { return }
        try Self.allocate(file, size, path)
        let memory = try Self.map(file, size, path)
        munmap(self.memory, self.size)
        (self.memory, self.size) = (memory, size)
    }

    /// Makes the file smaller, and keeps what is left of its contents.
    package func shrink(to size: Int) throws(SystemError) {
        guard size > 0, size < self.size else { return }
        let memory = try Self.map(file, size, path)
        munmap(self.memory, self.size)
        (self.memory, self.size) = (memory, size)
        try checkErrno(ftruncate(file.raw, off_t(size)), "ftruncate", path)
    }

    /// Allocates all blocks of a file that another process has written: it may have holes.
    package func fill() throws(SystemError) { try Self.allocate(file, size, path) }

    package func bytes(at offset: Int, count: Int) -> [UInt8] {
        precondition(offset >= 0 && count >= 0 && offset <= size - count, "beyond the end of \(path)")
        return Array(UnsafeRawBufferPointer(start: memory + offset, count: count))
    }

    package func store(_ bytes: [UInt8], at offset: Int) {
        precondition(offset >= 0 && offset <= size - bytes.count, "beyond the end of \(path)")
        bytes.withUnsafeBytes {
            memory.advanced(by: offset).copyMemory(
                from: $0.baseAddress ?? UnsafeRawPointer(memory), byteCount: $0.count)
        }
    }

    /// Reads a word at an offset that is a multiple of 8.
    package func word(at offset: Int) -> UInt64 {
        precondition(offset >= 0 && offset <= size - 8 && offset % 8 == 0, "no word of \(path)")
        return memory.load(fromByteOffset: offset, as: UInt64.self)
    }

    /// Stores a word with release ordering: a reader that sees it also sees everything that was stored before.
    package func publish(_ value: UInt64, at offset: Int) {
        precondition(offset >= 0 && offset <= size - 8 && offset % 8 == 0, "no word of \(path)")
        clinux_publish(memory.advanced(by: offset).assumingMemoryBound(to: UInt64.self), value)
    }

    /// Increments a word when this process dies of a fault or of SIGABRT. Only one word of one file at a time can count, and
    /// the file must stay mapped.
    package func countOwnEnd(at offset: Int) {
        precondition(offset >= 0 && offset <= size - 8 && offset % 8 == 0, "no word of \(path)")
        clinux_count_own_end(memory.advanced(by: offset).assumingMemoryBound(to: UInt64.self))
    }

    package static func stopCountingOwnEnd() { clinux_count_own_end(nil) }

    /// Renames the file. A file of that name gets the name that this one had, if the file system can exchange two names (tmpfs
    /// can), and is replaced otherwise.
    package func exchange(with other: String) throws(SystemError) {
        try path.refuseNul("rename")
        try other.refuseNul("rename")
        if clinux_exchange(path, other) == 0 { return }
        try checkErrno(Glibc.rename(path, other), "rename", other)
    }
}

/// Returns the ID of this boot of the machine (proc_sys_kernel_random(5)); empty if it cannot be read.
package func bootID() -> String {
    guard let bytes = try? readFile(at: "/proc/sys/kernel/random/boot_id", limit: 64) else { return "" }
    return bytes.prefix { $0 != 0x0a }.text
}
