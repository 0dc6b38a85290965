import Glibc

/// Why a file of a test cannot be read or written.
struct FileError: Error {
    var path: String
    var errno: Int32
}

func readFile(_ path: String) throws -> [UInt8] {
    let descriptor = open(path, O_RDONLY | O_CLOEXEC)
    guard descriptor >= 0 else { throw FileError(path: path, errno: errno) }
    defer { close(descriptor) }
    var bytes = [UInt8](repeating: 0, count: 1 << 20)
    let count = read(descriptor, &bytes, bytes.count)
    guard count >= 0 else { throw FileError(path: path, errno: errno) }
    return Array(bytes.prefix(count))
}

func writeFile(_ bytes: [UInt8], to path: String) throws {
    let descriptor = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0o644)
    guard descriptor >= 0 else { throw FileError(path: path, errno: errno) }
    defer { close(descriptor) }
    guard write(descriptor, bytes, bytes.count) == bytes.count else { throw FileError(path: path, errno: errno) }
}

func environmentVariable(_ name: String) -> String? { getenv(name).map { String(cString: $0) } }
