import Glibc
import LifecycleSimulator
import Testing

@Suite("Simulated day")
struct DayTests {
    @Test("docs/HACKING.md has the table of a day of a handheld")
    func table() throws {
        let block = (["$ greenroom-sim day"] + DayTable().lines).joined(separator: "\n")
        #expect(try Self.text(of: "docs/HACKING.md").contains("\n\(block)\n"), "\(block)")
    }

    /// - Parameter path: in the source tree.
    private static func text(of path: String) throws -> String {
        let root = #filePath.split(separator: "/").dropLast(3).map { "/" + $0 }.joined()
        let file = try #require(fopen("\(root)/\(path)", "r"))
        defer { fclose(file) }
        var bytes = [UInt8](repeating: 0, count: 1 << 20)
        let count = fread(&bytes, 1, bytes.count, file)
        return String(decoding: bytes.prefix(count), as: UTF8.self)
    }
}
