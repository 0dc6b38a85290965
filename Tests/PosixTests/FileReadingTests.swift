import Glibc
import Posix
import Testing

@Suite("Reading of files")
struct FileReadingTests {
    @Test(
        "a record is read whole, however it compares with the first buffer and the limit",
        arguments: [0, 10, 4095, 4096, 4097, 10_000])
    func records(size: Int) throws {
        let folder = try TemporaryFolder()
        let path = folder.path + "/record"
        let contents = (0..<size).map { UInt8(truncatingIfNeeded: $0) }
        let file = try #require(fopen(path, "w"))
        #expect(fwrite(contents, 1, size, file) == size && fclose(file) == 0)
        #expect(try readRecord(at: path, limit: 65536) == contents)
        #expect(try readRecord(at: path, limit: size) == contents)
        if size > 0 {
            let error = #expect(throws: SystemError.self) { _ = try readRecord(at: path, limit: size - 1) }
            #expect(error?.errno == EFBIG)
        }
    }

    @Test("a record of the kernel is what readFile reads; one that is gone is none")
    func kernel() throws {
        #expect(
            try readRecord(at: "/proc/self/limits", limit: 65536) == readFile(at: "/proc/self/limits", limit: 65536))
        #expect(try readRecord(at: "/proc/self/none", limit: 64) == nil)
    }
}
